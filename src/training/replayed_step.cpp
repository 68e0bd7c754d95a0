#include "training/replayed_step.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <limits>

#include "tsdp/base/error.h"

namespace tsdp::training {

std::unique_ptr<ReplayedStep> ReplayedStep::of(StepEngine& engine, models::Forecaster& model, WindowSource& source) {
  const auto device = model.parameters().values().device();
  if (engine.joins_ || engine.threads() != 1 || !dp::can_record(device)) return nullptr;
  return std::unique_ptr<ReplayedStep>(new ReplayedStep(engine, model, source));
}

ReplayedStep::ReplayedStep(StepEngine& engine, models::Forecaster& model, WindowSource& source)
    : engine_(engine), original_(model), source_(source), model_(model.replica()) {
  const auto options = model_->parameters().values().options();
  const auto in_double = options.dtype(at::kDouble);
  const auto largest = engine_.bounded_windows_ ? engine_.expected_windows_ : engine_.most_summed();
  most_ = std::max<std::int64_t>(1, std::min(engine_.piece_size(0), largest));
  losses_ = at::zeros({most_}, options);
  sum_ = at::zeros({model_->parameters().trained_count()}, in_double);
  // Where every batch is one full piece, nothing has to be left out.
  if (!engine_.fixed_windows_ || most_ < engine_.expected_windows_) kept_ = at::ones({most_}, options);
  if (engine_.is_private()) {
    norms_ = at::zeros({most_}, in_double);
    noise_ = at::zeros_like(sum_);
  }
  prepare();
}

bool give_the_same(models::Forecaster& model, const std::vector<std::function<at::Tensor()>>& sums) {
  const c10::NoGradGuard no_autograd;
  constexpr double least_share = 0.25;  // of coordinates that are not 0
  auto values = model.parameters().values();
  const auto kept = values.clone();
  values.copy_(at::arange(values.numel(), values.options()).mul_(0.7).sin_().mul_(0.1));
  bool same = true;
  at::Tensor first;
  for (const auto& sum : sums) {
    const auto found = sum();
    if (!first.defined()) first = found;
    same = same && at::equal(found, first);
  }
  values.copy_(kept);
  return same && first.ne(0.0).to(at::kDouble).mean().item<double>() >= least_share;
}

void ReplayedStep::prepare() {
  const c10::NoGradGuard no_autograd;
  places_ = source_.trial_places(most_);
  const auto sum_of = [this](const std::function<void()>& work) {
    return [this, work] {
      sum_.zero_();
      work();
      return sum_.clone();
    };
  };
  add();  // what is done for the first time may not be recordable
  add_ = dp::recorded(sum_.device(), [this] { add(); });
  const auto eager = sum_of([this] { add(); });
  const auto replayed = sum_of([this] { add_->replay(); });
  repeats_ = give_the_same(*model_, {eager, eager, replayed, replayed});
  // On copies: what is prepared must not move a weight.
  const auto values = original_.parameters().trained_values().clone();
  dp::Adam adam(engine_.adam_.options(), values);
  finish(values, adam);
  original_.parameters().gradients().zero_();  // it held a sum without noise
}

void ReplayedStep::add() {
  const auto& gradients = model_->parameters().gradients();
  gradients.zero_();
  engine_.add_gradients(*model_, source_.gather_at(places_), dp::Records::each_window(most_), losses_, norms_, kept_);
  sum_.add_(gradients);
}

void ReplayedStep::finish(const at::Tensor& values, dp::Adam& adam) {
  const auto& gradients = original_.parameters().gradients();  // where a step's release is looked for
  if (noise_.defined()) sum_.add_(noise_);
  dp::finish_noised(gradients, sum_, engine_.noise_ ? engine_.noise_->deviation() : 0.0, 1.0 / engine_.divisor_);
  engine_.update(values, gradients, adam);
  if (noise_.defined()) noise_.fill_(std::numeric_limits<double>::quiet_NaN());
}

void ReplayedStep::add_piece(std::span<const data::WindowIndex> windows) {
  const auto count = static_cast<std::int64_t>(windows.size());
  TORCH_CHECK(count <= most_ && (kept_.defined() || count == most_), "a piece has another size than was planned");
  places_.copy_(source_.places(windows, most_), /*non_blocking=*/true);
  if (kept_.defined()) {
    kept_.narrow(0, 0, count).fill_(1.0);
    kept_.narrow(0, count, most_ - count).zero_();
  }
  add_->replay();
}

StepEngine::Result ReplayedStep::step(const sampling::Draw& drawn, const SecretKey& key, std::uint64_t step) {
  const c10::NoGradGuard no_autograd;
  if (in_a_step_)
    throw Error(ExitCode::failure, "a step failed before this one; the run must be resumed from its folder");
  in_a_step_ = true;
  sum_.zero_();
  const auto windows = static_cast<std::int64_t>(drawn.windows.size());
  engine_.check(drawn.places, windows);
  const auto pieces = engine_.pieces_of(dp::Records::each_window(windows), drawn.places).front();
  engine_.check_pieces(windows, pieces.size());
  std::vector<at::Tensor> losses;
  std::vector<at::Tensor> norms;
  for (const auto& piece : pieces) {
    const auto count = piece.last - piece.first;
    add_piece(std::span(drawn.windows).subspan(static_cast<std::size_t>(piece.first), static_cast<std::size_t>(count)));
    const auto part = [&](const at::Tensor& all) {
      const auto own = all.narrow(0, 0, count);
      return pieces.size() == 1 ? own : own.clone();  // the next piece writes to the same place
    };
    losses.push_back(part(losses_));
    if (engine_.is_private()) norms.push_back(part(norms_));
  }
  if (engine_.noise_) {
    auto noise = at::empty(noise_.sizes(), dp::host_memory_for(noise_.device()).dtype(at::kDouble));
    engine_.noise_->draw(noise, key, step);
    noise_.copy_(noise, /*non_blocking=*/true);
  }
  if (const auto rate = engine_.adam_.options().learning_rate; !finish_ || rate != recorded_rate_) {
    finish_ = dp::recorded(sum_.device(), [this] { finish(original_.parameters().trained_values(), engine_.adam_); });
    recorded_rate_ = rate;
  }
  const auto joined = [](const std::vector<at::Tensor>& parts, const at::Tensor& like) {
    if (parts.size() == 1) return parts.front();
    return parts.empty() ? at::empty({0}, like.options()) : at::cat(parts);
  };
  StepEngine::Result result{joined(losses, losses_), engine_.is_private() ? joined(norms, norms_) : at::Tensor()};
  finish_->replay();
  in_a_step_ = false;
  return result;
}

}  // namespace tsdp::training
