// Which forecasters a configuration may name, and what it may say of each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tsdp/mechanism/prior.h"

namespace tsdp {

/// What the configuration has to know of a forecaster; all else is its own.
struct ModelRules {
  std::string name;         ///< model.name
  bool reads_lags = false;  ///< whether model.lags must be given, or must be empty
  bool has_prior = false;   ///< whether it can begin as a naive forecast (model.prior)
  std::int64_t width_with_prior = 0;  ///< hidden units that then serve, as noise grows with parameters; 0: the standard ones
  bool reads_covariates = false;      ///< whether it is told what is known of every step (dataset.covariates)

  bool operator==(const ModelRules&) const = default;
};

/// In the order in which they are offered. Programs that link a forecaster of their own have it here, too.
[[nodiscard]] const std::vector<ModelRules>& known_models();
/// The one of that name; null if there is none.
[[nodiscard]] const ModelRules* find_model(const std::string& name);
/// Adds one, when the program starts: before a configuration is read. Throws Error for a name that is taken.
void add_model(ModelRules rules);

}  // namespace tsdp
