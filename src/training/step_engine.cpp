#include "tsdp/training/step_engine.h"

#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <limits>

#include "tsdp/core/error.h"
#include "tsdp/core/text.h"

namespace tsdp::training {
namespace {

/// Windows whose gradients are summed in single precision; what rounding costs of the clip norm grows with its square
/// (dp::rounding_guard): 0.2 % on the CPU; other devices take twice as many at a time, for 0.8 %.
constexpr std::int64_t most_summed_on_cpu = 128;
constexpr std::int64_t most_summed_elsewhere = 256;

}  // namespace

StepEngine::StepEngine(models::Forecaster& model, Options options)
    : model_(model), options_(options), adam_(options.adam, model.parameters().values()) {
  if (options_.is_private) dp::require_full_precision(model.parameters().values().device());
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

std::int64_t StepEngine::block_count(std::int64_t windows) const {
  // Where coins decide, some blocks are larger than expected: they are made for three quarters.
  const auto room = has_fixed_windows() ? most_summed() : most_summed() * 3 / 4;
  const auto expected = options_.places == 0 ? windows : options_.expected_windows;
  const auto each = (expected + threads() - 1) / threads();
  return threads() * std::max<std::int64_t>(1, (each + room - 1) / room);
}

std::vector<StepEngine::Block> StepEngine::blocks_of(std::int64_t windows, std::span<const std::int64_t> places) const {
  const auto count = block_count(windows);
  std::vector<Block> blocks(static_cast<std::size_t>(count));
  std::int64_t end = 0;
  for (std::int64_t b = 0; b < count; ++b) {
    const auto begin = end;
    if (options_.places == 0) {
      end = windows * (b + 1) / count;
    } else {
      const auto beyond = options_.places * (b + 1) / count;
      end = std::lower_bound(places.begin() + begin, places.end(), beyond) - places.begin();
    }
    blocks[static_cast<std::size_t>(b)] = {begin, end};
  }
  return blocks;
}

dp::Clipping StepEngine::clipping(std::int64_t windows) const {
  auto out = options_.clipping;
  out.summed = most_summed();
  if (!has_fixed_windows()) return out;
  // Of the largest block: smaller batches are guarded less.
  const auto count = block_count(windows);
  const auto places = options_.places == 0 ? windows : options_.places;
  const auto each = options_.places == 0 ? 1 : (options_.expected_windows + places - 1) / places;
  out.summed = std::clamp<std::int64_t>((places + count - 1) / count * each, 1, out.summed);
  return out;
}

std::int64_t StepEngine::piece_of(const Block& block, const dp::Clipping& clip) const {
  // dp::rounding_guard: a block that coins made too large is summed window by window.
  const bool too_large = !has_fixed_windows() && block.end - block.begin > clip.summed;
  return options_.is_private && too_large ? 1 : std::min(chunk_of_a_thread(), clip.summed);
}

std::int64_t StepEngine::pieces_of(std::span<const Block> blocks, const dp::Clipping& clip) const {
  std::int64_t count = 0;
  for (const auto& block : blocks) count += (block.end - block.begin + piece_of(block, clip) - 1) / piece_of(block, clip);
  return count;
}

at::Tensor StepEngine::work(models::Forecaster& model, at::Tensor& sum, const models::WindowBatch& batch,
                            std::span<const Block> blocks, const dp::Clipping& clip, const Result& result) const {
  const c10::NoGradGuard no_autograd;  // of this thread
  const auto& gradients = model.parameters().gradients();
  gradients.zero_();
  bool summing = false;
  std::int64_t left = 0;
  for (const auto& block : blocks) left += block.end - block.begin;
  for (const auto& block : blocks) {
    const auto piece = piece_of(block, clip);
    for (auto first = block.begin; first < block.end; first += piece) {
      const auto count = std::min(piece, block.end - first);
      const auto part = batch.rows(first, count);
      result.losses.narrow(0, first, count).copy_(model.losses(part));
      model.backward();
      if (options_.is_private) {
        result.norms.narrow(0, first, count)
            .copy_(dp::add_clipped_sum(model.layers(), count, clip, gradients.options()));
      } else {
        for (auto* layer : model.layers()) layer->add_gradient({});
      }
      left -= count;
      if (left == 0 && !summing) return gradients;
      if (!summing) dp::fitted(sum, gradients.sizes(), gradients.options().dtype(at::kDouble)).zero_();
      summing = true;
      sum.add_(gradients);
      gradients.zero_();
    }
  }
  return summing ? sum : gradients;
}

StepEngine::Result StepEngine::step(const models::WindowBatch& batch, const RandomStream& noise,
                                    std::span<const std::int64_t> places) {
  const c10::NoGradGuard no_autograd;
  const auto& parameters = model_.parameters();
  const auto& gradients = parameters.gradients();
  const auto windows = batch.size();
  if (options_.places > 0 && (static_cast<std::int64_t>(places.size()) != windows ||
                              (windows > 0 && (places.front() < 0 || places.back() >= options_.places))))
    throw Error(ExitCode::failure, "a batch comes with the places of its windows");
  Result result;
  result.losses = at::empty({windows}, gradients.options());
  if (options_.is_private) result.norms = at::empty({windows}, gradients.options().dtype(at::kDouble));
  const auto blocks = blocks_of(windows, places);
  const auto clip = clipping(windows);
  if (options_.is_private &&
      static_cast<double>(windows) * static_cast<double>(pieces_of(blocks, clip)) > dp::most_pieces_times_windows)
    throw Error(ExitCode::failure, cat("a batch of ", windows, " windows is larger than the rounding of its sum is proven for; a smaller "
                                       "sampling.batch_size is expected"));
  const auto each = blocks.size() / static_cast<std::size_t>(threads());
  sums_.resize(static_cast<std::size_t>(threads()));
  std::vector<at::Tensor> parts(static_cast<std::size_t>(threads()));
  const auto work_of = [&](std::int64_t thread) {
    const auto place = static_cast<std::size_t>(thread);
    parts[place] = work(thread == 0 ? model_ : *replicas_[place - 1], sums_[place], batch,
                        std::span(blocks).subspan(place * each, each), clip, result);
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
