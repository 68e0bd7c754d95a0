// From a configuration to series, split and subsampling scheme.
#pragma once

#include <filesystem>
#include <vector>

#include "tsdp/core/config.h"
#include "tsdp/data/dataset.h"
#include "tsdp/data/input_form.h"
#include "tsdp/data/split.h"
#include "tsdp/sampling/ledger.h"
#include "tsdp/sampling/scheme.h"

namespace tsdp::sampling {

/// The form of the series as the configuration states it, and what complaints about it name.
[[nodiscard]] data::StatedForm stated_form_of(const Config& config);
[[nodiscard]] data::FormNames form_names_of(const std::filesystem::path& config_file);

/// The series that a configuration names, with Series::exact if asked for. `config_file` tells where relative paths are looked
/// up. Throws DataError or UsageError.
[[nodiscard]] data::Dataset read_series(const Config& config, const std::filesystem::path& config_file,
                                        bool exact = false);

/// How they are split.
[[nodiscard]] data::SplitOptions split_options_of(const Config& config);

/// The data a configuration names, split as it says.
struct PreparedData {
  data::Dataset dataset;
  data::Split split;
};
/// Reads and splits. Series::exact is filled where a proof needs it: for private training with noise on the data, and for
/// forecasts from privatised pasts (`private_forecasts`). Throws DataError or UsageError.
[[nodiscard]] PreparedData prepare_data(const Config& config, const std::filesystem::path& config_file,
                                        bool private_forecasts = false);

/// L_C of the accountant: how many past steps can influence the gradient of a window. Lags reach beyond the context by
/// max(lag) − 1 (GluonTS counts lag 1 as the newest known value).
[[nodiscard]] std::int64_t accounted_context(const Config& config);

/// The subsampling scheme of a configuration for training series of the given lengths.
[[nodiscard]] SubsamplingScheme scheme_of(const Config& config, std::vector<std::int64_t> training_lengths);
[[nodiscard]] PrivacyUnit unit_of(const Config& config);

/// Throws DataError that begins with `where` and names the first term of `ledger` that is not what a run of `config` has: what
/// is stated is stated of the configuration beside it.
void require_terms_of(const Config& config, const Ledger& ledger, const std::string& where);

}  // namespace tsdp::sampling
