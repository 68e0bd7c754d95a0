// What a configuration says about data: how series are read and split.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tsdp/data/dataset.h"
#include "tsdp/data/input_form.h"
#include "tsdp/data/windows.h"
#include "tsdp/privacy/terms/scheme.h"
#include "tsdp/settings/config.h"

namespace tsdp::data {

/// The form of the series as the configuration states it, and the names that error messages about it use.
[[nodiscard]] StatedForm stated_form_of(const Config& config);
[[nodiscard]] FormNames form_names_of(const std::filesystem::path& config_file);

/// The series that a configuration names, with Series::exact if asked for. `config_file` tells where relative paths are
/// looked up. Throws DataError or UsageError.
[[nodiscard]] Dataset read_series(const Config& config, const std::filesystem::path& config_file, bool exact = false);

/// How the series are split.
[[nodiscard]] SplitOptions split_options_of(const Config& config);

/// Which of the files of a data set a process reads: those of rank `number` among `of` ranks. Rank r of W has the files
/// from ⌊F r / W⌋ up to ⌊F (r + 1) / W⌋ of F, so one process has all of them.
struct Rank {
  std::int64_t number = 0;
  std::int64_t of = 1;
};

/// Where the series of a data set lie, if in several files (dataset.path with {rank}), in the files' order. A shard is
/// the series of one file.
struct Shards {
  struct File {
    std::vector<std::int64_t> training_length;  ///< of its series
    std::string digest = {};  ///< of their training values, lengths and start times; of other ranks' files on rank 0
    std::string environment = {};  ///< of the rank that sums it, on rank 0; empty: this process
  };
  std::vector<File> files;
  std::int64_t first = 0, own = 0;  ///< the first of the files read here, and how many there are
  std::string sampling_print = {};  ///< tells keys of sampling that ranks share apart; empty without one

  /// The first series of file `file`, for every file; and their number.
  [[nodiscard]] std::vector<std::int64_t> begins() const;
};

/// The data a configuration names, split as it says.
struct PreparedData {
  Dataset dataset;  ///< of the files read here
  Split split;  ///< likewise
  /// Of the series of all files, and whose they are: what is public of the training data.
  [[nodiscard]] privacy::SeriesLengths training_lengths() const;
  Config config = {};  ///< as it was written, with format, frequency and columns of covariates as the files have them
  /// None: one file. Until the ranks have shared what they know, of own files alone.
  std::optional<Shards> shards = {};
};
/// Reads and splits the data of a configuration as it was written.
/// Series::exact is filled where a proof needs it: for private training with noise on the data, and for forecasts from
/// privatised pasts (`private_forecasts`). Series too short for the split are dropped or padded as dataset.short_series
/// says, based on their lengths alone. Throws DataError or UsageError.
[[nodiscard]] PreparedData prepare_data(Config config, const std::filesystem::path& config_file,
                                        bool private_forecasts = false, Rank rank = {});

}  // namespace tsdp::data
