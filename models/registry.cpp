#include <map>

#include "forecaster.h"
#include "deepar.h"
#include "dlinear.h"
#include "itransformer.h"
#include "simple_ff.h"
#include "tsdp/core/error.h"
#include "tsdp/core/text.h"

namespace tsdp::models {
namespace {

template <class Model>
Factory factory() {
  return [](const ModelOptions& options, const at::TensorOptions& tensor_options) -> std::unique_ptr<Forecaster> {
    return std::make_unique<Model>(options, tensor_options);
  };
}

// One line a forecaster.
const std::map<std::string, Factory>& registry() {
  static const std::map<std::string, Factory> models = {
      {"deepar", factory<DeepAR>()},
      {"dlinear", factory<DLinear>()},
      {"itransformer", factory<ITransformer>()},
      {"simple_ff", factory<SimpleFeedForward>()},
  };
  return models;
}

}  // namespace

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
