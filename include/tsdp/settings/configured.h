// What a configuration says about data: how series are read and split.
#pragma once

#include <filesystem>

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

/// The data a configuration names, split as it says.
struct PreparedData {
  Dataset dataset;
  Split split;
  /// Of the series, and whose they are: what is public of the training data.
  [[nodiscard]] privacy::SeriesLengths training_lengths() const;
  Config config = {};  ///< as it was written, with format, frequency and columns of covariates as the files have them
};
/// Reads and splits the data of a configuration as it was written.
/// Series::exact is filled where a proof needs it: for private training with noise on the data, and for forecasts from
/// privatised pasts (`private_forecasts`). Series too short for the split are dropped or padded as dataset.short_series
/// says, based on their lengths alone. Throws DataError or UsageError.
[[nodiscard]] PreparedData prepare_data(Config config, const std::filesystem::path& config_file,
                                        bool private_forecasts = false);

}  // namespace tsdp::data
