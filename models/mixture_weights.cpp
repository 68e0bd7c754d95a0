#include "mixture_weights.h"

#include <mutex>
#include <utility>
#include <vector>

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include "mixture.h"
#include "script_module.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::models {
namespace {

at::Tensor deciles() { return at::arange(1, 10, at::kDouble).div_(10.0).view({9, 1}); }

}  // namespace

struct MixtureWeights::Shared {
  explicit Shared(std::unique_ptr<Forecaster> own) : network(std::move(own)) {}

  std::unique_ptr<Forecaster> network;
  std::once_flag once;
  torch::jit::Module module{};

  /// Made at the first loss, when the network has its weights and knows the others.
  const torch::jit::Module& script() {
    std::call_once(once, [&] { module = script_module(*network); });
    return module;
  }
};

MixtureWeights::MixtureWeights(std::unique_ptr<Forecaster> network)
    : MixtureWeights(std::make_shared<Shared>(std::move(network)), at::Tensor()) {
  auto& own = *shared_->network;
  if (own.samples_paths() || own.options().mixture.empty() || !own.options().mixture.external.empty())
    throw UsageError(
        "training.trainable: found mixture, and no candidates that a series' own past gives; expected some in "
        "model.candidates");
  if (!own.parameters().values().is_cpu())
    throw UsageError("training.trainable: found mixture on a device; expected --device cpu");
  std::vector<at::Tensor> trained;
  for (std::size_t i = 0; i < parameters_.entries().size(); ++i) trained.push_back(parameters_.value(i));
  own.keep_trained_mixture(std::move(trained));
}

MixtureWeights::MixtureWeights(std::shared_ptr<Shared> shared, const at::Tensor& values)
    : Forecaster(shared->network->options()), shared_(std::move(shared)) {
  for (const auto& [name, shape] : mixture_parameters(options_.mixture))
    parameters_.declare(cat("mixture.", name), shape);
  parameters_.allocate(shared_->network->parameters().values().options(), values);
  layer_ = std::make_unique<dp::GivenGradients>(parameters_.gradients());
  layer_list_.push_back(layer_.get());
}

std::unique_ptr<Forecaster> MixtureWeights::replica() const {
  return std::unique_ptr<Forecaster>(new MixtureWeights(shared_, parameters_.values()));
}

std::string MixtureWeights::name() const { return shared_->network->name(); }
std::int64_t MixtureWeights::longest_season() const { return shared_->network->longest_season(); }
const Forecaster& MixtureWeights::network() const { return *shared_->network; }
void MixtureWeights::initialise(RandomStream& stream) { shared_->network->initialise(stream); }
std::string MixtureWeights::script() const { return shared_->network->script(); }

std::int64_t MixtureWeights::past_length() const { return forecast_reach(*shared_->network); }

std::int64_t MixtureWeights::bytes_per_window() const {
  const auto& mixture = options_.mixture;
  // The forecasts of all windows, and eight pasts, from which the regression makes 8 numbers of each value. It works on
  // 64 at a time, which are no more than eight a window in chunks of eight windows or more.
  return 4 * 9 * options_.prediction_length * mixed_forecasts(mixture) * (4 * mixture.windows + 8) +
         8 * 8 * 40 * past_length();
}

at::Tensor MixtureWeights::losses(const WindowBatch& batch) {
  const auto rows = batch.size();
  auto module = shared_->script();
  const torch::jit::GraphOptimizerEnabledGuard as_written(false);  // the same operations in every call
  const auto found = module
                         .run_method("to_train_on", batch.past_target, batch.past_observed,
                                     batch.past_target.new_zeros({rows, batch.past_target.size(1), 0}))
                         .toTupleRef()
                         .elements()
                         .vec();
  const auto part = [&](std::size_t i) { return found[i].toTensor().to(at::kDouble); };
  const auto history = part(0), truth = part(1), evidence = part(2), counted = part(3), least = part(4),
             coming = part(5);
  const auto log_spread = parameters_.value(1).to(at::kDouble);
  const auto moves = parameters_.value(2).to(at::kDouble).unsqueeze(1);
  const auto places = module.run_method("place_in_horizon", evidence).toTensor();
  const auto levels = deciles();
  // w (B, K, H), the mixture m (B, 9, H), its spread s (B, 9, 1), the medians q_5 (B, K, H), and the forecast
  // f = m_5 + s (m − m_5) + Σ c d, where d is a quarter of q_5 − m_5, cut.
  const auto weights = module.run_method("mixture_weights", evidence, parameters_.value(0)).toTensor();
  const auto spread =
      module.run_method("mixture_spread", history, truth, weights, counted, levels.flatten()).toTensor() *
      log_spread.exp();
  const auto mixed = (coming * weights.unsqueeze(2)).sum(1);
  const auto middle = mixed.narrow(1, 4, 1);
  const auto medians = coming.select(2, 4);
  const auto distances = module.run_method("distances", medians, middle, least).toTensor();
  const auto about_middle = spread * (mixed - middle);
  const auto forecast = middle + about_middle + (distances * moves).sum(1, true);
  const auto target = batch.future_target.to(at::kDouble).unsqueeze(1);
  const auto observed = batch.future_observed.gt(0.0).unsqueeze(1);
  const auto error = target - forecast;
  const auto size = batch.past_target.abs().sum(1, true).to(at::kDouble) /
                    batch.past_observed.sum(1, true).to(at::kDouble).clamp_min(1.0);
  const auto scale = at::maximum(least, size.mul(1e-3));
  const auto counts = counted.gt(0.0).logical_and(scale.gt(0.0)).to(at::kDouble);
  const auto factor =
      counts * loss_unit / (9.0 * observed.sum({1, 2}).view({rows, 1}).clamp_min(1.0) * scale.clamp_min(1e-300));
  const auto none = at::zeros({}, error.options());
  const auto loss = at::where(observed, at::maximum(levels * error, (levels - 1.0) * error), none);
  // Of the loss by f: 1{y < f} − level; of f by m, by log s and by c; of m by the log weights: w (q − m).
  const auto by_forecast = at::where(observed, error.lt(0.0).to(at::kDouble) - levels, none) * factor.unsqueeze(2);
  auto by_mixed = spread * by_forecast;
  const auto by_move = by_forecast.sum(1, true);
  const auto uncut = distances.abs().lt(least.unsqueeze(2)).to(at::kDouble);
  const auto by_middle = (0.25 * uncut * moves).sum(1, true) * by_move;
  by_mixed.narrow(1, 4, 1).add_(((1.0 - spread) * by_forecast).sum(1, true) - by_middle);
  const auto by_weights = weights * (by_mixed.unsqueeze(1) * (coming - mixed.unsqueeze(1))).sum(2);
  const auto by_spread = (by_forecast * about_middle).sum({1, 2}).view({rows, 1});
  const auto by_moves = (distances * by_move).sum(2);
  layer_->set(at::cat({by_weights.sum(2), (by_weights * places).sum(2), by_spread, by_moves}, 1)
                  .to(parameters_.values().scalar_type()));
  return (loss.sum({1, 2}).view({rows, 1}) * factor).squeeze(1).to(parameters_.values().scalar_type());
}

Forecaster::Hidden MixtureWeights::forward(const WindowBatch& batch) {
  static_cast<void>(batch);
  throw Error(ExitCode::failure, "weights of a mixture have no hidden units");
}

}  // namespace tsdp::models
