#include "sampling/private_context.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::sampling {
namespace {

constexpr double cut_mass = 0x1p-105;    // of a pair of normals outside the disk of radius √(2 · 105 log 2)
constexpr double coarse_mass =
    0x1p-46;  // above four times that of a pair where normals are coarser than what is released

/// The least multiple of 2⁻⁵³ that is not below `keep`; both scalings are exact.
double on_grid(double keep) { return std::ceil(keep * 0x1p53) * 0x1p-53; }

float to_float(double value) {
  constexpr auto largest = static_cast<double>(std::numeric_limits<float>::max());
  return static_cast<float>(std::clamp(value, -largest, largest));
}

const PrivateContext::Parameters& checked(const PrivateContext::Parameters& p) {
  const auto refuse = [](const char* what, const auto& found, const char* accepted) {
    throw UsageError(cat(what, ": found ", found, "; expected ", accepted));
  };
  if (!(p.epsilon > 0.0) || !(p.epsilon <= 1e6))
    refuse("epsilon", p.epsilon, "a number greater than 0 and at most 1e6");
  if (!(p.delta > 0.0) || !(p.delta < 1.0)) refuse("delta", p.delta, "a number greater than 0 and below 1");
  if (!(p.v > 0.0)) refuse("v", p.v, "a number greater than 0");
  if (p.w < 1 || p.w > 1'000'000) refuse("w", p.w, "an integer from 1 to 1000000");
  if (!(p.keep > 0.0) || !(p.keep <= 1.0)) refuse("keep probability", p.keep, "a number greater than 0 and at most 1");
  if (!std::isfinite(p.v))
    throw PrivacyError("v: found no bound on the change of a value; without one no noise is enough");
  return p;
}

}  // namespace

PrivateContext::PrivateContext(const Parameters& parameters)
    : parameters_(checked(parameters)), contraction_(parameters.v) {
  auto& p = parameters_;
  p.keep = on_grid(p.keep);
  if (const double least = static_cast<double>(p.w) * coarse_mass; p.delta < least)
    throw PrivacyError(cat("delta: found ", p.delta, " with w ", p.w, "; expected at least w 2^-46 = ", least,
                           ": so much of the noise is coarser than the values it hides"));
  const double cut = static_cast<double>(p.w) * cut_mass;
  const double left = (1.0 - cut) * p.delta - cut * std::exp(p.epsilon);
  if (!(left * (1.0 - 1e-14) >= 1e-25))
    throw PrivacyError(cat("delta: found ", p.delta, " with epsilon ", p.epsilon, " and w ", p.w,
                           "; expected a delta above w e^epsilon ", cut_mass,
                           ", since normals are cut at 12.07 standard deviations", ", or a smaller epsilon"));
  noise_multiplier_ = privacy::inference_noise(mechanism(), p.epsilon, left * (1.0 - 1e-14));
  noise_ = noise_multiplier_ > 0.0
               ? std::nextafter(contraction_.reach() * noise_multiplier_, std::numeric_limits<double>::infinity())
               : 0.0;
  if (!std::isfinite(noise_) || noise_ > static_cast<double>(std::numeric_limits<float>::max()))
    throw PrivacyError(cat("v: found ", p.v, "; noise of ", noise_multiplier_, " times it is too large for a number"));
}

void PrivateContext::release(RandomStream& coins, const RandomStream& noise, std::span<const double> exact,
                             std::span<float> values, std::span<float> marks) const {
  if (values.size() != marks.size() || exact.size() != marks.size())
    throw Error(ExitCode::failure, "values and marks of a past differ in number");
  std::vector<double> normals(noise_ > 0.0 ? values.size() : 0);
  noise.normals(0, normals);
  const double offset = noise_grid_offset(noise_);
  for (std::size_t j = 0; j < values.size(); ++j) {
    // A coin for every place, so that a missing one does not move the others' coins.
    const bool kept = coins.uniform() < parameters_.keep && marks[j] != 0.0F;
    const double read = kept ? contraction_(exact[j]) : 0.0;
    values[j] = to_float(kept && noise_ > 0.0 ? (read + noise_ * normals[j] + offset) - offset : read);
    marks[j] = kept ? 1.0F : 0.0F;
  }
}

void impute(std::span<float> values, std::span<float> marks, std::span<const float> observed) {
  double sum = 0.0;
  double count = 0.0;
  for (std::size_t j = 0; j < values.size(); ++j) {
    if (marks[j] == 0.0F) continue;
    sum += static_cast<double>(values[j]);
    count += 1.0;
  }
  if (count == 0.0) return;
  const float mean = to_float(sum / count);
  for (std::size_t j = 0; j < values.size(); ++j) {
    if (marks[j] != 0.0F || observed[j] == 0.0F) continue;
    values[j] = mean;
    marks[j] = 1.0F;
  }
}

}  // namespace tsdp::sampling
