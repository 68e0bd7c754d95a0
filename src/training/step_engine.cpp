#include "training/step_engine.h"

#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
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
      joins_(method.scheme().joins_windows()),
      of_series_(method.scheme().parameters().record == privacy::Record::series),
      variables_(method.scheme().variables()),
      record_windows_(variables_ * (of_series_ ? method.scheme().parameters().subsequences_per_sequence : 1)),
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
  const auto count = options_.exact ? blocks_of(expected_windows_) : block_count();
  const auto each = (expected_windows_ / variables_ + places_ - 1) / places_ * variables_;
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

std::int64_t StepEngine::blocks_of(std::int64_t expected) const {
  // If coins decide, some blocks are larger than expected, so they are sized for three quarters.
  const auto room = bounded_windows_ ? most_summed() : most_summed() * 3 / 4;
  return std::max<std::int64_t>(1, (expected + room - 1) / room);
}

std::int64_t StepEngine::block_count() const {
  return threads() * blocks_of((expected_windows_ + threads() - 1) / threads());
}

dp::Records StepEngine::records_of(std::span<const std::int64_t> places) const {
  const auto windows = static_cast<std::int64_t>(places.size());
  const bool by_series = is_private() && of_series_;
  if (!by_series && variables_ == 1) return dp::Records::each_window(windows);
  std::vector<std::int64_t> starts;
  for (std::int64_t w = 0; w < windows; ++w) {
    const auto place = static_cast<std::size_t>(w);
    if (by_series ? w == 0 || places[place] != places[place - 1] : w % variables_ == 0) starts.push_back(w);
  }
  starts.push_back(windows);
  return dp::Records(std::move(starts), record_windows_);
}

std::int64_t StepEngine::piece_size(std::int64_t windows) const {
  if (!is_private()) return chunk_of_a_thread();
  // dp::rounding_guard: a block that coins made too large is summed record by record.
  const bool too_large = (options_.exact || !fixed_windows_) && windows > clipping_.summed;
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
    add_block(out[static_cast<std::size_t>(b / (count / threads()))], records, record, begin, end);
  }
  return out;
}

void StepEngine::add_block(std::vector<Piece>& pieces, const dp::Records& records, std::int64_t& record,
                           std::int64_t begin, std::int64_t end) const {
  const auto size = piece_size(end - begin);
  while (record < records.count() && records.begin(record) < end) {
    const auto first = record++;
    while (record < records.count() && records.end(record) <= end && records.end(record) - records.begin(first) <= size)
      ++record;
    pieces.push_back({first, record});
  }
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
  if (static_cast<std::int64_t>(places.size()) != windows || windows % variables_ != 0 ||
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
  const auto windows = batch.size();
  check(places, windows);
  const auto records = records_of(places);
  make_room(result, records);
  const auto pieces = pieces_of(records, places);
  std::size_t count = 0;
  for (const auto& of_thread : pieces) count += of_thread.size();
  check_pieces(windows, count);
  sums_.resize(static_cast<std::size_t>(threads()));
  std::vector<at::Tensor> parts(static_cast<std::size_t>(threads()));
  on_all_threads([&](std::int64_t thread) {
    const auto place = static_cast<std::size_t>(thread);
    parts[place] = work(model_of(thread), sums_[place], batch, records, pieces[place], result);
  });
  return parts;
}

void StepEngine::make_room(Result& result, const dp::Records& records) const {
  const auto options = model_.parameters().gradients().options();
  result.losses = at::empty({records.windows()}, options);
  if (is_private()) result.norms = at::empty({records.count()}, options.dtype(at::kDouble));
}

void StepEngine::on_all_threads(const std::function<void(std::int64_t)>& work) const {
  if (threads() == 1) {
    work(0);
    return;
  }
  at::parallel_for(0, threads(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto thread = begin; thread < end; ++thread) work(thread);
  });
}

namespace {

constexpr int exact_digits = 40;                               // of a clip norm
constexpr std::int64_t most_exact_parameters = std::int64_t{1} << 25;

/// The sum of a piece's clipped gradients in whole numbers of `unit` = 2^(⌊log₂ C⌋ − 40), each the nearest one.
///
/// Takes the place of sums in double precision in the proof of dp::rounding_guard, whose blocks are here the windows of
/// one file at a range of places: which these are is public, and a window has the same place in neighbouring data. (So
/// it is for batches of fixed size, too, where a window may be replaced by one of another file.) A piece has at most
/// m = 128 windows, each of norm at most C < 2^41 unit, so |coordinate| ≤ 2^49 unit; what is further out, which no
/// clipped sum is, is moved to there, which moves no two sums further apart. Additions of whole numbers are exact,
/// since a batch of at most 2^20 windows sums to below 2^62. A block has at most m pieces, and m + K if a record of K
/// windows that is inserted makes it too large; the nearest whole number is off by half a unit in every coordinate of
/// each. So the rounded sum of the block moves by at most (m + ½) √d unit more for an inserted window than the sum
/// itself: for d ≤ 2^25 parameters by less than 12 u C, u = 2⁻²⁴. The whole, at most 2^20 C, is rounded to double
/// precision once, which is off by 2⁻³³ C. Together less than the 16 u C that the guard leaves for double precision.
at::Tensor whole_numbers(const at::Tensor& gradients, double unit) {
  constexpr double most = 0x1p49;
  return gradients.to(at::kDouble).div_(unit).nan_to_num_(0.0, most, -most).round_().clamp_(-most, most).to(at::kLong);
}

}  // namespace

double StepEngine::exact_unit() const { return std::ldexp(1.0, std::ilogb(clipping_.norm) - exact_digits); }

at::Tensor StepEngine::exact_sum(const models::WindowBatch& batch, std::span<const std::int64_t> places,
                                 std::span<const Shard> shards, std::span<const std::int64_t> windows, Result& result) {
  const c10::NoGradGuard no_autograd;
  TORCH_CHECK(is_private() && options_.exact, "only private steps are summed exactly, by an engine made for it");
  const auto count = model_.parameters().trained_count();
  TORCH_CHECK(count <= most_exact_parameters, "a sum of ranks has at most 2^25 parameters");
  const auto records = records_of(places);
  make_room(result, records);
  std::vector<Piece> pieces;
  std::int64_t end = 0;  // of the block's windows
  std::int64_t record = 0;
  for (std::size_t s = 0; s < shards.size(); ++s) {
    const auto last = end + windows[s];
    const auto blocks = blocks_of(shards[s].expected_windows);
    const auto in_places = shards[s].last_place - shards[s].first_place;
    for (std::int64_t b = 0; b < blocks; ++b) {
      const auto begin = end;
      const auto before = shards[s].first_place + in_places * (b + 1) / blocks;
      end = b + 1 == blocks ? last
                            : std::lower_bound(places.begin() + begin, places.begin() + last, before) - places.begin();
      add_block(pieces, records, record, begin, end);
    }
  }
  TORCH_CHECK(end == batch.size() && end == static_cast<std::int64_t>(places.size()),
              "the windows of the shards are those of the batch");
  std::vector<at::Tensor> sums(static_cast<std::size_t>(threads()));
  on_all_threads([&](std::int64_t thread) {
    const c10::NoGradGuard none;  // of this thread
    auto& model = model_of(thread);
    auto& sum = sums[static_cast<std::size_t>(thread)] = at::zeros({count}, at::kLong);
    const auto& gradients = model.parameters().gradients();
    for (auto p = static_cast<std::size_t>(thread); p < pieces.size(); p += static_cast<std::size_t>(threads())) {
      const auto& piece = pieces[p];
      const auto begin = records.begin(piece.first);
      const auto rows = records.begin(piece.last) - begin;
      gradients.zero_();
      add_gradients(model, batch.rows(begin, rows), records.range(piece.first, piece.last),
                    result.losses.narrow(0, begin, rows),
                    result.norms.narrow(0, piece.first, piece.last - piece.first));
      sum.add_(whole_numbers(gradients, exact_unit()));
    }
  });
  for (std::size_t t = 1; t < sums.size(); ++t) sums.front().add_(sums[t]);
  return sums.front();
}

void StepEngine::finish_exact(const at::Tensor& sum, const SecretKey& key, std::uint64_t step) {
  const c10::NoGradGuard no_autograd;
  const auto& gradients = model_.parameters().gradients();
  noise_->finish(gradients, {sum.to(at::kDouble).mul_(exact_unit())}, key, step, 1.0 / divisor_);
  update(model_.parameters().trained_values(), gradients, adam_);
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
