#include "training/step_engine.h"

#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <limits>

#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/privacy/terms/strategy.h"

namespace tsdp::training {
namespace {

/// Windows whose gradients are summed in single precision. What rounding costs of the clip norm grows with the square
/// of this number (dp::rounding_guard): 0.2 % on the CPU; other devices take twice as many at a time, for 0.8 %.
constexpr std::int64_t most_summed_on_cpu = 128;
constexpr std::int64_t most_summed_elsewhere = 256;

dp::Clipping clipping_of(const privacy::Clipping& clipping) {
  switch (clipping.kind) {
    case privacy::ClippingKind::flat: return {clipping.norm, dp::ClipFactor::exact, false};
    case privacy::ClippingKind::per_layer: return {clipping.norm, dp::ClipFactor::exact, true};
    case privacy::ClippingKind::automatic: return {clipping.norm, dp::ClipFactor::automatic, false};
  }
  throw Error(ExitCode::failure, "a kind of clipping that no step has");
}

std::unique_ptr<dp::NoiseMechanism> noise_of(const mechanism::PrivateMechanism& mechanism, std::int64_t coordinates) {
  switch (mechanism.noise().kind) {
    case privacy::NoiseKind::independent: return std::make_unique<dp::IndependentNoise>(mechanism.noise_deviation());
    case privacy::NoiseKind::correlated: {
      const auto& strategy = *mechanism.noise().strategy;
      const auto& r = strategy.recursion();
      const auto form = r.form == privacy::NoiseRecursion::Form::banded ? dp::CorrelatedNoise::Form::banded
                        : r.form == privacy::NoiseRecursion::Form::banded_inverse
                            ? dp::CorrelatedNoise::Form::banded_inverse
                            : dp::CorrelatedNoise::Form::buffered;
      return std::make_unique<dp::CorrelatedNoise>(
          dp::CorrelatedNoise::Recursion{form, r.coefficients, r.decays, r.weights},
          static_cast<std::uint64_t>(strategy.steps()), mechanism.noise_deviation(), coordinates);
    }
  }
  throw Error(ExitCode::failure, "a kind of noise that no step has");
}

}  // namespace

StepEngine::StepEngine(models::Forecaster& model, const mechanism::TrainingMethod& method, Options options)
    : model_(model),
      options_(options),
      places_(method.scheme().places()),
      expected_windows_(method.scheme().expected_windows()),
      fixed_windows_(method.scheme().has_fixed_windows()),
      bounded_windows_(method.scheme().has_bounded_windows()),
      joins_(method.scheme().parameters().record == privacy::Record::series),
      record_windows_(method.scheme().parameters().subsequences_per_sequence),
      divisor_(method.divisor()),
      adam_(options.adam, model.parameters().trained_values()) {
  if (model.parameters().values().device().is_cpu() && at::get_num_threads() > 1) {
    settle_vector_functions();
    for (int i = 1; i < at::get_num_threads(); ++i) replicas_.push_back(model.replica());
  }
  if (!method.privacy()) return;
  dp::require_full_precision(model.parameters().values().device());
  noise_ = noise_of(*method.privacy(), model.parameters().trained_count());
  clipping_ = clipping_of(method.privacy()->clipping());
  clipping_.summed = most_summed();
  clipping_.joined = joins_;
  clipping_.scale = method.scheme().record_scale();
  if (!fixed_windows_) return;
  // For the largest block: smaller batches are guarded less.
  const auto count = block_count();
  const auto each = (expected_windows_ + places_ - 1) / places_;
  clipping_.summed = std::clamp<std::int64_t>((places_ + count - 1) / count * each, 1, clipping_.summed);
}

void settle_vector_functions() {
  for (const auto type : {at::kFloat, at::kDouble}) {
    const auto x = at::full({64}, 0.5, type);
    for (auto* function : {&at::log, &at::log1p, &at::exp, &at::expm1, &at::sqrt, &at::rsqrt, &at::tanh, &at::sigmoid,
                           &at::lgamma, &at::digamma, &at::erf, &at::sin, &at::cos})
      static_cast<void>(function(x));
    static_cast<void>(at::softplus(x));
    static_cast<void>(at::pow(x, 1.5));
  }
}

std::vector<at::Tensor> StepEngine::noise_state() const { return noise_ ? noise_->state() : std::vector<at::Tensor>(); }

std::int64_t StepEngine::most_summed() const {
  return model_.parameters().values().device().is_cpu() ? most_summed_on_cpu : most_summed_elsewhere;
}

std::int64_t StepEngine::chunk_of_a_thread() const {
  auto chunk = std::min(model_.preferred_chunk(is_private()), most_summed());
  if (options_.memory_budget > 0)
    chunk =
        std::min(chunk, std::max<std::int64_t>(1, options_.memory_budget / (threads() * model_.bytes_per_window())));
  return chunk;
}

std::int64_t StepEngine::chunk() const {
  const auto each = chunk_of_a_thread();
  return each > std::numeric_limits<std::int64_t>::max() / threads() ? each : each * threads();
}

std::int64_t StepEngine::block_count() const {
  // If coins decide, some blocks are larger than expected, so they are sized for three quarters.
  const auto room = bounded_windows_ ? most_summed() : most_summed() * 3 / 4;
  const auto each = (expected_windows_ + threads() - 1) / threads();
  return threads() * std::max<std::int64_t>(1, (each + room - 1) / room);
}

dp::Records StepEngine::records_of(std::span<const std::int64_t> places) const {
  const auto windows = static_cast<std::int64_t>(places.size());
  if (!is_private() || !joins_) return dp::Records::each_window(windows);
  std::vector<std::int64_t> starts;
  for (std::int64_t w = 0; w < windows; ++w)
    if (w == 0 || places[static_cast<std::size_t>(w)] != places[static_cast<std::size_t>(w) - 1]) starts.push_back(w);
  starts.push_back(windows);
  return dp::Records(std::move(starts), record_windows_);
}

std::int64_t StepEngine::piece_size(std::int64_t windows) const {
  if (!is_private()) return chunk_of_a_thread();
  // dp::rounding_guard: a block that coins made too large is summed record by record.
  const bool too_large = !fixed_windows_ && windows > clipping_.summed;
  return too_large ? 1 : std::min(chunk_of_a_thread(), clipping_.summed);
}

std::vector<std::vector<StepEngine::Piece>> StepEngine::pieces_of(const dp::Records& records,
                                                                  std::span<const std::int64_t> places) const {
  const auto count = block_count();
  std::vector<std::vector<Piece>> out(static_cast<std::size_t>(threads()));
  std::int64_t end = 0;     // of the block's windows
  std::int64_t record = 0;  // the next one
  for (std::int64_t b = 0; b < count; ++b) {
    const auto begin = end;
    end = std::lower_bound(places.begin() + begin, places.end(), places_ * (b + 1) / count) - places.begin();
    const auto size = piece_size(end - begin);
    auto& pieces = out[static_cast<std::size_t>(b / (count / threads()))];
    while (record < records.count() && records.begin(record) < end) {
      const auto first = record++;
      while (record < records.count() && records.end(record) <= end &&
             records.end(record) - records.begin(first) <= size)
        ++record;
      pieces.push_back({first, record});
    }
  }
  return out;
}

at::Tensor StepEngine::work(models::Forecaster& model, at::Tensor& sum, const models::WindowBatch& batch,
                            const dp::Records& records, std::span<const Piece> pieces, const Result& result) const {
  const c10::NoGradGuard no_autograd;  // of this thread
  const auto& gradients = model.parameters().gradients();
  gradients.zero_();
  for (const auto& piece : pieces) {
    const auto begin = records.begin(piece.first);
    const auto count = records.begin(piece.last) - begin;
    add_gradients(model, batch.rows(begin, count), records.range(piece.first, piece.last),
                  result.losses.narrow(0, begin, count),
                  is_private() ? result.norms.narrow(0, piece.first, piece.last - piece.first) : at::Tensor());
    if (pieces.size() == 1) return gradients;
    if (&piece == &pieces.front()) dp::fitted(sum, gradients.sizes(), gradients.options().dtype(at::kDouble)).zero_();
    sum.add_(gradients);
    gradients.zero_();
  }
  return pieces.empty() ? gradients : sum;
}

void StepEngine::add_gradients(models::Forecaster& model, const models::WindowBatch& batch, const dp::Records& records,
                               at::Tensor losses, at::Tensor norms, const at::Tensor& kept) const {
  losses.copy_(model.losses(batch));
  model.backward();
  if (is_private()) {
    norms.copy_(
        dp::add_clipped_sum(model.layers(), records, clipping_, model.parameters().gradients().options(), kept));
  } else {
    for (auto* layer : model.layers()) {
      if (kept.defined()) layer->discard(kept.eq(0.0));  // what only fills the batch up may hold anything
      layer->add_gradient(kept);
    }
  }
}

void StepEngine::check(std::span<const std::int64_t> places, std::int64_t windows) const {
  if (static_cast<std::int64_t>(places.size()) != windows ||
      (windows > 0 && (places.front() < 0 || places.back() >= places_)))
    throw Error(ExitCode::failure, "a batch comes with the places of its windows");
}

void StepEngine::check_pieces(std::int64_t windows, std::size_t pieces) const {
  if (is_private() && static_cast<double>(windows) * static_cast<double>(pieces) > dp::most_pieces_times_windows)
    throw Error(
        ExitCode::failure,
        cat("a batch of ", windows,
            " windows is larger than the rounding of its sum is proven for; expected a smaller sampling.batch_size"));
}

void StepEngine::update(const at::Tensor& values, const at::Tensor& gradients, dp::Adam& adam) const {
  if (!is_private() && options_.gradient_norm_bound > 0.0)
    gradients.mul_((options_.gradient_norm_bound / (gradients.norm() + 1e-6)).clamp_max_(1.0));
  adam.step(values, gradients);
}

std::vector<at::Tensor> StepEngine::parts_of(const models::WindowBatch& batch, std::span<const std::int64_t> places,
                                             Result& result) {
  const auto& gradients = model_.parameters().gradients();
  const auto windows = batch.size();
  check(places, windows);
  const auto records = records_of(places);
  result.losses = at::empty({windows}, gradients.options());
  if (is_private()) result.norms = at::empty({records.count()}, gradients.options().dtype(at::kDouble));
  const auto pieces = pieces_of(records, places);
  std::size_t count = 0;
  for (const auto& of_thread : pieces) count += of_thread.size();
  check_pieces(windows, count);
  sums_.resize(static_cast<std::size_t>(threads()));
  std::vector<at::Tensor> parts(static_cast<std::size_t>(threads()));
  const auto work_of = [&](std::int64_t thread) {
    const auto place = static_cast<std::size_t>(thread);
    parts[place] =
        work(thread == 0 ? model_ : *replicas_[place - 1], sums_[place], batch, records, pieces[place], result);
  };
  if (threads() == 1) {
    work_of(0);
  } else {
    at::parallel_for(0, threads(), 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto thread = begin; thread < end; ++thread) work_of(thread);
    });
  }
  return parts;
}

at::Tensor StepEngine::sum(const models::WindowBatch& batch, std::span<const std::int64_t> places) {
  const c10::NoGradGuard no_autograd;
  Result result;
  auto out = at::zeros_like(model_.parameters().gradients(), at::kDouble);
  for (const auto& part : parts_of(batch, places, result)) out.add_(part);
  return out;
}

StepEngine::Result StepEngine::step(const models::WindowBatch& batch, std::span<const std::int64_t> places,
                                    const SecretKey& key, std::uint64_t step) {
  const c10::NoGradGuard no_autograd;
  const auto& parameters = model_.parameters();
  const auto& gradients = parameters.gradients();
  Result result;
  const auto parts = parts_of(batch, places, result);
  // Divided by a public number after the noise; the ordinary gradient is that of the mean, over the same number.
  if (noise_) {
    noise_->finish(gradients, parts, key, step, 1.0 / divisor_);
  } else {
    dp::add_up(gradients, parts, 1.0 / divisor_);
  }
  update(parameters.trained_values(), gradients, adam_);
  return result;
}

}  // namespace tsdp::training
