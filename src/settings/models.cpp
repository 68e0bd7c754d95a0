#include "tsdp/settings/config.h"

#include <utility>

#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp {
namespace {

// One row per forecaster of models/, so that programs without LibTorch know it too.
std::vector<ModelRules>& models() {
  // name, reads_lags, has_prior, width_with_prior, reads_covariates, joins_variables
  static std::vector<ModelRules> all = {{"simple_ff", false, true, 16, true},
                                        {"deepar", true, true, 0, true},
                                        {"itransformer", false, true, 0, true, true},
                                        {"dlinear", false, true, 4, true}};
  return all;
}

}  // namespace

const std::vector<ModelRules>& known_models() { return models(); }

const ModelRules* find_model(const std::string& name) {
  for (const auto& model : models())
    if (model.name == name) return &model;
  return nullptr;
}

std::int64_t joined_variables(const Config& config) {
  const auto* rules = find_model(config.model.name);
  return rules != nullptr && rules->joins_variables ? config.dataset.variable_count() : 1;
}

void add_model(ModelRules rules) {
  if (find_model(rules.name) != nullptr) throw Error(ExitCode::failure, cat("two forecasters are called ", rules.name));
  models().push_back(std::move(rules));
}

}  // namespace tsdp
