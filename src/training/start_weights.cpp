#include "training/start_weights.h"

#include <algorithm>

#include "dp/stored_tensor.h"
#include "training/model_setup.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::training {

void initialise(models::Forecaster& trained, std::int64_t seed, const std::optional<mechanism::StartWeights>& start) {
  auto& model = trained.network();
  RandomStream weights(SecretKey::from_seed(static_cast<std::uint64_t>(seed)), "initial weights", 0);
  model.initialise(weights);
  if (!start) {
    model.keep_start();
    return;
  }
  const auto where = start->file.string();
  const auto& data = start->content.data;
  const auto& parameters = model.parameters();
  const auto& entries = parameters.entries();
  const auto found_weights = std::count_if(data.tensors.begin(), data.tensors.end(), [](const auto& tensor) {
    return !tensor.name.starts_with(
               mechanism::start_prefix) &&  // of an earlier start, other networks and their mixture
           !tensor.name.starts_with(mechanism::network_prefix) &&
           !tensor.name.starts_with(mechanism::mixture_prefix);
  });
  if (found_weights != std::ssize(entries))
    throw DataError(cat(where, ": holds ", found_weights, " weights; the model has ", entries.size(),
                        "; expected a file as it was exported"));
  const auto horizon = model.options().prediction_length;
  const auto& sizes = start->content.model.at("sizes");
  const auto theirs = sizes.at("prediction_length").get<std::int64_t>();
  const auto covariates = model.options().covariates;
  const bool reads_covariates = covariates > 0 && !sizes.contains("covariates");
  for (std::size_t i = 0; i < entries.size(); ++i) {
    auto shape = entries[i].shape;
    // The head's last inputs are the covariates; a start that knows none says nothing of them.
    const bool adds_covariates =
        reads_covariates && entries[i].name.starts_with("args_proj.proj.") && entries[i].name.ends_with("weight");
    if (adds_covariates) shape.back() -= 2 * covariates;
    const auto& found = data.tensor(entries[i].name, where);
    const bool by_steps = found.shape != shape && !shape.empty() && shape.front() % horizon == 0;
    if (by_steps) shape.front() = shape.front() / horizon * theirs;
    if (found.shape != shape)
      throw DataError(cat(where, ": weights '", entries[i].name,
                          "': have another shape than the model's; expected a model of the same sizes"));
    const auto value = dp::tensor_of(found);
    if (!value.isfinite().all().item<bool>())
      throw DataError(cat(where, ": holds weights that are not finite; expected a model that trained to its end"));
    auto own = parameters.value(i);
    if (adds_covariates) own = own.zero_().narrow(1, 0, found.shape.back());
    own.copy_(by_steps ? value.narrow(0, 0, entries[i].shape.front()) : value);
  }
  model.keep_start();
}

std::vector<std::shared_ptr<const models::Forecaster>> networks_of(
    const Config& config, const std::vector<mechanism::StartWeights>& weights) {
  std::vector<std::shared_ptr<const models::Forecaster>> out;
  for (const auto& one : weights) {
    const auto own = mechanism::config_of_network(config, one);
    auto options = model_options(own);
    options.every = mechanism::steps_of_network(config, one);
    auto network = models::make_model(own.model.name, options, at::TensorOptions(at::kFloat));
    initialise(*network, 0, one);
    out.push_back(std::move(network));
  }
  return out;
}

}  // namespace tsdp::training
