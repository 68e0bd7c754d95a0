#include "privacy/theorems/inference.h"

#include <cmath>

#include "privacy/accountant/components.h"
#include "privacy/terms/checks.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::privacy {
namespace {

/// δ_G(ε; μ) of the Gaussian mechanism with shift μ in multiples of the noise: the hockey-stick divergence of N(μ, 1)
/// from N(0, 1).
double gaussian_delta(double epsilon, double shift) {
  return DominatingPair({{shift, 1.0}}, 1.0).symmetrised_profile(epsilon);
}

void check(const InferenceMechanism& m, double epsilon) {
  if (m.changed < 1 || m.changed > 1'000'000)
    throw PrivacyError(cat("changed steps: found ", m.changed, "; expected an integer from 1 to 1000000"));
  if (!(m.keep > 0.0) || !(m.keep <= 1.0))
    throw PrivacyError(cat("probability of keeping a step: found ", m.keep, "; expected a number in (0, 1]"));
  if (m.pattern == DropPattern::hidden && m.changed != 1)
    throw PrivacyError(cat("hidden pattern: found ", m.changed, " changed steps; expected 1, or a visible pattern"));
  if (!(epsilon >= 0.0) || !(epsilon <= 1e6))
    throw PrivacyError(cat("epsilon: found ", epsilon, "; expected a number from 0 to 1e6"));
}

/// δ(ε) without noise: the chance that a changed step is kept.
double delta_without_noise(const InferenceMechanism& m) {
  return -std::expm1(static_cast<double>(m.changed) * std::log1p(-m.keep));
}

}  // namespace

double inference_delta(const InferenceMechanism& m, double epsilon, double noise_over_v) {
  check(m, epsilon);
  if (!(noise_over_v > 0.0) || !std::isfinite(noise_over_v))
    throw PrivacyError(cat("noise: found ", noise_over_v, " times v; expected a positive finite number"));
  if (m.pattern == DropPattern::hidden) {
    // ε₀ = log(1 + (e^ε − 1)/r), without overflow where e^ε is large.
    const double before = epsilon < 30.0 ? std::log1p(std::expm1(epsilon) / m.keep)
                                         : epsilon - std::log(m.keep) + std::log1p((m.keep - 1.0) * std::exp(-epsilon));
    return m.keep * gaussian_delta(before, 1.0 / noise_over_v);
  }
  double sum = 0.0;
  for (const auto& kept : binomial_components(m.changed, m.keep, 1.0))
    if (kept.mean > 0.0) sum += kept.weight * gaussian_delta(epsilon, std::sqrt(kept.mean) / noise_over_v);
  return sum;
}

double inference_noise(const InferenceMechanism& m, double epsilon, double delta) {
  check(m, epsilon);
  check_delta(delta);
  if (delta_without_noise(m) * (1.0 + 1e-14) <= delta) return 0.0;
  // The divergence falls as the noise grows; its documented error is charged.
  const auto enough = [&](double noise) { return inference_delta(m, epsilon, noise) * (1.0 + 1e-10) <= delta; };
  double high = 1.0;
  while (!enough(high)) high *= 2.0;
  double low = 0.5 * high;
  while (low > 1e-6 && enough(low)) low = 0.5 * (high = low);
  // So little noise is needed only where δ is close to that without noise: not refined.
  if (low <= 1e-6 && enough(low)) return low;
  while (high - low > 1e-13 * high) {
    const double middle = 0.5 * (low + high);
    if (middle <= low || middle >= high) break;
    (enough(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace tsdp::privacy
