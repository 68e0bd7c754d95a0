// What the steps of a run were charged for: if any of it changed, a replayed step would be a new release with old
// noise.
#pragma once

#include <string>
#include <string_view>

#include "tsdp/run/run_folder.h"
#include "tsdp/settings/config.h"
#include "tsdp/settings/configured.h"

namespace tsdp::training {

/// Begins the line of charged_for that tells the training series of one run from those of another, however each reads
/// and uses them: a digest of only the lengths and single-precision values.
inline constexpr std::string_view training_series_line = "training series, SHA-256: ";

/// The configuration; digests of all values the run reads (in double precision, too, if present), of start times, and
/// of the training series; and the run (RunIdentity::id).
[[nodiscard]] std::string charged_for(const Config& config, const data::PreparedData& data, const std::string& run);

/// What the run in `folder` wrote of this when it began: the run, and the text of the configuration. Both throw
/// DataError.
[[nodiscard]] std::string run_charged_for(const RunFolder& folder);
[[nodiscard]] std::string config_charged_for(const RunFolder& folder);

/// Restores config.yaml to the text that the run began with if it is missing or differs: the ledger names that text.
/// Throws as config_charged_for.
void put_config_back(const RunFolder& folder);

/// Throws UsageError, naming the first line that differs, unless the run in `folder` began with the same.
void refuse_what_was_not_charged_for(const RunFolder& folder, const Config& config, const data::PreparedData& data);

}  // namespace tsdp::training
