// The forecasters that a configuration may name, and what it may say about each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tsdp/mechanism/prior.h"

namespace tsdp {

/// What the configuration has to know about a forecaster; everything else is up to the forecaster.
struct ModelRules {
  std::string name;         ///< model.name
  bool reads_lags = false;  ///< whether model.lags must be given, or must be empty
  bool has_prior = false;   ///< whether it can begin as a naive forecast (model.prior)
  std::int64_t width_with_prior =
      0;  ///< hidden units to use with it, as noise grows with parameters; 0: the standard ones
  bool reads_covariates = false;      ///< whether it is given what is known of every step (dataset.covariates)

  bool operator==(const ModelRules&) const = default;
};

/// All forecasters, in the order in which they are offered, including those that a program links itself.
[[nodiscard]] const std::vector<ModelRules>& known_models();
/// The forecaster of that name; null if there is none.
[[nodiscard]] const ModelRules* find_model(const std::string& name);
/// Adds a forecaster. To be called when the program starts, before a configuration is read. Throws Error if the name is
/// taken.
void add_model(ModelRules rules);

}  // namespace tsdp
