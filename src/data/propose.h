// A configuration for a file with series, proposed from what may be public: its form, the frequency, how many series
// there are and how long they are.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "tsdp/data/dataset.h"
#include "tsdp/data/input_form.h"

namespace tsdp::data {

/// What the user has said already; the rest follows from the frequency and the lengths.
struct ProposalOptions {
  std::optional<std::int64_t> prediction_length, season_length;
};

/// The text of a configuration in `folder`, with comments: how `file` is read, a split that three quarters of the
/// series fit, and `auto` for everything that a rule settles from public facts (docs/choosing.md). `read` is how
/// `dataset` was read, `stated` what the user said about that. No value of a series influences it. Throws DataError if
/// most series are too short for any split.
[[nodiscard]] std::string proposed_configuration(const std::filesystem::path& file, const std::filesystem::path& folder,
                                                 const StatedForm& stated, const ReadOptions& read,
                                                 const Dataset& dataset, const ProposalOptions& options);

}  // namespace tsdp::data
