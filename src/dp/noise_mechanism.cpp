#include "dp/noise_mechanism.h"

#include <algorithm>
#include <utility>

#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::dp {

void NoiseMechanism::finish(const at::Tensor& gradient, const std::vector<at::Tensor>& parts, const SecretKey& key,
                            std::uint64_t step, double scale) {
  const auto correlate = next(step);
  finish_sum(gradient, parts, deviation_, RandomStream(key, noise_purpose, step), scale, correlate);
}

void NoiseMechanism::draw(const at::Tensor& noise, const SecretKey& key, std::uint64_t step) {
  const auto correlate = next(step);
  draw_noise(noise, deviation_, RandomStream(key, noise_purpose, step), correlate);
}

CorrelatedNoise::CorrelatedNoise(Recursion recursion, std::uint64_t steps, double deviation, std::int64_t coordinates)
    : NoiseMechanism(deviation), recursion_(std::move(recursion)), steps_(steps) {
  const bool buffered = recursion_.form == Form::buffered;
  const auto rows = static_cast<std::int64_t>(buffered ? recursion_.decays.size() : recursion_.coefficients.size() - 1);
  // On the host, where noise is drawn.
  kept_ = at::zeros({rows, coordinates}, at::kDouble);
  next_ = at::zeros({1}, at::kLong);
}

std::vector<at::Tensor> CorrelatedNoise::state() const { return {kept_, next_}; }

Correlate CorrelatedNoise::next(std::uint64_t step) {
  if (step >= steps_)
    throw Error(ExitCode::failure,
                cat("step ", step + 1, " of correlated noise that was planned for ", steps_, " steps"));
  auto& next = *next_.data_ptr<std::int64_t>();
  if (step != static_cast<std::uint64_t>(next))
    throw Error(ExitCode::failure, cat("step ", step + 1, " of correlated noise whose next step is ", next + 1));
  ++next;
  return [this, step](std::int64_t place, std::span<double> noise) { correlate(step, place, noise); };
}

void CorrelatedNoise::correlate(std::uint64_t step, std::int64_t place, std::span<double> noise) {
  const auto length = static_cast<std::int64_t>(noise.size());
  const auto width = kept_.size(1);
  auto* __restrict x = noise.data();
  const auto& a = recursion_.coefficients;
  if (recursion_.form == Form::buffered) {
    auto* rows = kept_.data_ptr<double>() + place;
    for (std::size_t j = 0; j < recursion_.decays.size(); ++j) {
      const double weight = recursion_.weights[j];
      const double* __restrict buffer = rows + static_cast<std::int64_t>(j) * width;
      for (std::int64_t i = 0; i < length; ++i) x[i] -= weight * buffer[i];
    }
    for (std::size_t j = 0; j < recursion_.decays.size(); ++j) {
      const double decay = recursion_.decays[j];
      double* __restrict buffer = rows + static_cast<std::int64_t>(j) * width;
      for (std::int64_t i = 0; i < length; ++i) buffer[i] = decay * buffer[i] + x[i];
    }
    return;
  }
  const auto past = static_cast<std::uint64_t>(a.size() - 1);
  const bool of_inverse = recursion_.form == Form::banded_inverse;
  auto* rows = past > 0 ? kept_.data_ptr<double>() + place : nullptr;
  const auto row = [&](std::uint64_t of_step) { return rows + static_cast<std::int64_t>(of_step % past) * width; };
  if (of_inverse) {
    if (past == 0) {
      for (std::int64_t i = 0; i < length; ++i) x[i] *= a[0];
      return;
    }
    // The row for what is drawn now may still hold the oldest.
    const std::vector<double> drawn(x, x + length);
    for (std::int64_t i = 0; i < length; ++i) x[i] *= a[0];
    for (std::uint64_t j = 1; j <= past && j <= step; ++j) {
      const double coefficient = a[j];
      const double* __restrict z = row(step - j);
      for (std::int64_t i = 0; i < length; ++i) x[i] += coefficient * z[i];
    }
    std::copy(drawn.begin(), drawn.end(), row(step));
    return;
  }
  for (std::uint64_t j = 1; j <= past && j <= step; ++j) {
    const double coefficient = a[j];
    const double* __restrict earlier = row(step - j);
    for (std::int64_t i = 0; i < length; ++i) x[i] -= coefficient * earlier[i];
  }
  const double inverse = 1.0 / a[0];
  for (std::int64_t i = 0; i < length; ++i) x[i] *= inverse;
  if (past > 0) std::copy_n(x, length, row(step));
}

}  // namespace tsdp::dp
