// Writers of files with time series. The readers read what they write back as the same series, every value to the bit.
#pragma once

#include <cstdint>
#include <filesystem>

#include "tsdp/data/dataset.h"
#include "tsdp/data/readers.h"
#include "tsdp/data/windows.h"

namespace tsdp::data {

/// Writes `dataset` in the form `format` (see readers.h), compressed by gzip if the name ends in .gz. Whoever reads
/// `path` meanwhile finds what was there before.
///
/// Each form holds series of any start, length and id, with these restrictions, all checked (DataError `path: series
/// 'id': found …; expected …`) before anything is written: lstnet: all series have one start and one length (ids and
/// the start get lost, columns are named by their number); csv: starts on one calendar, ids that are neither empty nor
/// equal and contain no line break; csv_long: likewise, but each series has a calendar of its own; tsf: no colon, line
/// break, outer white space or leading '#' in an id, starts at whole minutes unless steps are seconds, no business
/// days. No form holds a series without any value. Missing values at the ends of a series are written, but cut off when
/// they are read.
void write_dataset(const Dataset& dataset, const std::filesystem::path& path, Format format);

/// What write_split says about the data besides the series themselves.
struct SplitFacts {
  std::int64_t prediction_length = 1;
  std::int64_t season_length = 1;
};

/// Writes a split as GluonTS stores it, into `folder`, which is created if needed: train.jsonl (the training part of
/// each series), validation.jsonl and test.jsonl (one entry per range to forecast, in the order of `split`: the series
/// up to and including that range), metadata.json. Entries keep the start and, as item_id, the id of their series;
/// missing values are null, also at the ends.
void write_split(const Dataset& dataset, const Split& split, const SplitFacts& facts,
                 const std::filesystem::path& folder);

}  // namespace tsdp::data
