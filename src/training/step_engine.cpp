#include "tsdp/training/step_engine.h"

#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include <algorithm>

namespace tsdp::training {
namespace {

/// Windows whose gradients are summed in single precision; what rounding costs of the clip norm grows with its square
/// (dp::rounding_guard): 0.1 % on the CPU; other devices take twice as many at a time, for 0.4 %.
constexpr std::int64_t most_summed_on_cpu = 128;
constexpr std::int64_t most_summed_elsewhere = 256;

}  // namespace

StepEngine::StepEngine(models::Forecaster& model, Options options)
    : model_(model), options_(options), adam_(options.adam, model.parameters().values()) {
  if (!model.parameters().values().device().is_cpu()) return;
  for (int i = 1; i < at::get_num_threads(); ++i) replicas_.push_back(model.replica());
}

std::int64_t StepEngine::most_summed() const {
  return model_.parameters().values().device().is_cpu() ? most_summed_on_cpu : most_summed_elsewhere;
}

std::int64_t StepEngine::chunk_of_a_thread() const {
  auto chunk = std::min(model_.preferred_chunk(options_.is_private), most_summed());
  if (options_.memory_budget > 0)
    chunk = std::min(chunk, std::max<std::int64_t>(1, options_.memory_budget / (threads() * model_.bytes_per_window())));
  return chunk;
}

std::int64_t StepEngine::chunk() const {
  const auto each = chunk_of_a_thread();
  return each > std::numeric_limits<std::int64_t>::max() / threads() ? each : each * threads();
}

at::Tensor StepEngine::work(models::Forecaster& model, at::Tensor& sum, const models::WindowBatch& batch,
                            std::int64_t begin, std::int64_t end, const Result& result) const {
  const c10::NoGradGuard no_autograd;  // of this thread
  const auto& gradients = model.parameters().gradients();
  gradients.zero_();
  const auto chunk = chunk_of_a_thread();
  auto clipping = options_.clipping;
  // The same for all threads and chunks, and however small memory makes them: factors do not hang on that.
  clipping.summed = std::min((batch.size() + threads() - 1) / threads(), most_summed());
  const bool several = end - begin > chunk;
  if (several) dp::fitted(sum, gradients.sizes(), gradients.options().dtype(at::kDouble)).zero_();
  for (auto first = begin; first < end; first += chunk) {
    const auto count = std::min(chunk, end - first);
    const auto part = batch.rows(first, count);
    result.losses.narrow(0, first, count).copy_(model.losses(part));
    model.backward();
    if (options_.is_private) {
      result.norms.narrow(0, first, count)
          .copy_(dp::add_clipped_sum(model.layers(), count, clipping, gradients.options()));
    } else {
      for (auto* layer : model.layers()) layer->add_gradient({});
    }
    if (!several) return gradients;
    sum.add_(gradients);
    gradients.zero_();
  }
  return several ? sum : gradients;
}

StepEngine::Result StepEngine::step(const models::WindowBatch& batch, const RandomStream& noise) {
  const c10::NoGradGuard no_autograd;
  const auto& parameters = model_.parameters();
  const auto& gradients = parameters.gradients();
  const auto windows = batch.size();
  Result result;
  result.losses = at::empty({windows}, gradients.options());
  if (options_.is_private) result.norms = at::empty({windows}, gradients.options().dtype(at::kDouble));
  const auto share = (windows + threads() - 1) / threads();
  sums_.resize(static_cast<std::size_t>(threads()));
  std::vector<at::Tensor> parts(static_cast<std::size_t>(threads()));
  const auto work_of = [&](std::int64_t thread) {
    const auto place = static_cast<std::size_t>(thread);
    const auto begin = std::min(windows, thread * share);
    parts[place] = work(thread == 0 ? model_ : *replicas_[place - 1], sums_[place], batch, begin,
                        std::min(windows, begin + share), result);
  };
  if (threads() == 1) {
    work_of(0);
  } else {
    at::parallel_for(0, threads(), 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto thread = begin; thread < end; ++thread) work_of(thread);
    });
  }
  // Divided by Λ after the noise; the ordinary gradient is that of the mean, also over Λ.
  dp::finish_sum(gradients, parts, options_.is_private ? options_.noise_multiplier * options_.clipping.norm : 0.0, noise,
                 1.0 / options_.batch_size);
  if (!options_.is_private && options_.gradient_norm_bound > 0.0)
    gradients.mul_((options_.gradient_norm_bound / (gradients.norm() + 1e-6)).clamp_max_(1.0));
  adam_.step(parameters.values(), gradients);
  return result;
}

}  // namespace tsdp::training
