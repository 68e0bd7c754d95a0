#include <map>
#include <utility>

#include "deepar.h"
#include "dlinear.h"
#include "forecaster.h"
#include "itransformer.h"
#include "simple_ff.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::models {
namespace {

// One line per forecaster.
std::map<std::string, Factory>& registry() {
  static std::map<std::string, Factory> models = {
      {"deepar", factory_of<DeepAR>()},
      {"dlinear", factory_of<DLinear>()},
      {"itransformer", factory_of<ITransformer>()},
      {"simple_ff", factory_of<SimpleFeedForward>()},
  };
  return models;
}

}  // namespace

bool register_model(const ModelRules& rules, Factory factory) {
  add_model(rules);
  registry().emplace(rules.name, std::move(factory));
  return true;
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const auto& [name, unused] : registry()) names.push_back(name);
  return names;
}

std::unique_ptr<Forecaster> make_model(const std::string& name, const ModelOptions& options,
                                       const at::TensorOptions& tensor_options) {
  const auto found = registry().find(name);
  if (found == registry().end())
    throw UsageError(cat("model.name: found '", name, "'; expected one of ", join(model_names(), ", ")));
  return found->second(options, tensor_options);
}

}  // namespace tsdp::models
