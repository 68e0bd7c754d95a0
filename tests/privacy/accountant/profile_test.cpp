// The dominating pair against direct numerical integration in long double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "privacy/theorems/structured_pairs.h"
#include "tsdp/base/error.h"
#include "tsdp/privacy/accountant/dominating_pair.h"

namespace tsdp::privacy {
namespace {

using Real = long double;
using Components = std::vector<DominatingPair::Component>;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

Components substitution_components(double q) {
  if (q == 1.0) return {{2.0, 1.0}};
  return {{0.0, 1.0 - q}, {2.0, q}};
}

/// Density of N(0, sigma^2).
Real normal_density(Real x, Real sigma) {
  const Real z = x / sigma;
  return std::exp(-z * z / 2) / (sigma * std::sqrt(2 * std::numbers::pi_v<Real>));
}

/// Tanh-sinh quadrature over [from, to].
template <class Function>
Real integral(Function f, Real from, Real to) {
  const Real middle = (from + to) / 2;
  const Real half = (to - from) / 2;
  const Real step = 1.0L / 64;
  Real sum = 0;
  for (int i = -260; i <= 260; ++i) {
    const Real t = step * i;
    const Real s = std::numbers::pi_v<Real> / 2 * std::sinh(t);
    const Real weight = std::numbers::pi_v<Real> / 2 * std::cosh(t) / (std::cosh(s) * std::cosh(s));
    sum += weight * f(middle + half * std::tanh(s));
  }
  return step * half * sum;
}

/// The pair by its definition: densities, and hockey-stick divergences as integrals over {dA > alpha dB}.
class Reference {
 public:
  Reference(Components p, double sigma) : p_(std::move(p)), sigma_(sigma) {}

  [[nodiscard]] Real p(Real x) const {
    Real sum = 0;
    for (const auto& c : p_) sum += static_cast<Real>(c.weight) * normal_density(x - static_cast<Real>(c.mean), sigma_);
    return sum;
  }
  [[nodiscard]] Real q(Real x) const { return normal_density(x, sigma_); }

  /// The x with p(x) = e^loss q(x), by bisection on the ratio, which rises in x.
  [[nodiscard]] Real border(Real loss) const {
    Real low = -1e6L * sigma_;
    Real high = 1e6L * sigma_;
    for (int i = 0; i < 300; ++i) {
      const Real middle = (low + high) / 2;
      Real ratio = 0;
      for (const auto& c : p_) {
        const auto mean = static_cast<Real>(c.mean);
        ratio += static_cast<Real>(c.weight) * std::exp(mean * (middle - mean / 2) / (sigma_ * sigma_) - loss);
      }
      (ratio > 1 ? high : low) = middle;
    }
    return (low + high) / 2;
  }

  /// H_alpha(P||Q), alpha = e^epsilon: p > alpha q right of the border.
  [[nodiscard]] Real h_pq(Real epsilon) const {
    const Real x = border(epsilon);
    Real largest = 0;
    for (const auto& c : p_) largest = std::max(largest, static_cast<Real>(c.mean));
    const Real end = std::max(x, largest) + 12 * sigma_;
    return integral([&](Real y) { return std::max<Real>(0, p(y) - std::exp(epsilon) * q(y)); }, x, end);
  }
  /// H_alpha(Q||P): q > alpha p left of the point where p/q = 1/alpha.
  [[nodiscard]] Real h_qp(Real epsilon) const {
    const Real x = border(-epsilon);
    const Real end = std::min<Real>(x, 0) - 12 * sigma_;
    return integral([&](Real y) { return std::max<Real>(0, q(y) - std::exp(epsilon) * p(y)); }, end, x);
  }
  [[nodiscard]] Real symmetrised(Real epsilon) const { return epsilon >= 0 ? h_pq(epsilon) : h_qp(epsilon); }

 private:
  Components p_;
  Real sigma_;
};

/// delta of the Gaussian mechanism: Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu).
Real gaussian_delta(Real epsilon, Real mu) {
  const auto phi = [](Real z) { return std::erfc(-z / std::numbers::sqrt2_v<Real>) / 2; };
  return phi(mu / 2 - epsilon / mu) - std::exp(epsilon) * phi(-mu / 2 - epsilon / mu);
}

TEST(Profile, IsTheIntegralOfTheDefinitionForBothSignsOfEpsilon) {
  for (const double q : {1e-4, 0.01, 0.3, 1.0}) {
    for (const double sigma : {0.5, 1.0, 4.0}) {
      const auto pair = one_window_pair(q, sigma);
      const Reference reference(substitution_components(q), sigma);
      for (const double epsilon : {-3.0, -0.5, -0.01, 0.0, 0.01, 0.5, 3.0}) {
        const Real exact = reference.symmetrised(epsilon);
        const auto tolerance = epsilon < 0 ? 1e-13 : std::max(1e-9 * static_cast<double>(exact), 1e-250);
        EXPECT_NEAR(pair.symmetrised_profile(epsilon), static_cast<double>(exact), tolerance)
            << "q " << q << " sigma " << sigma << " epsilon " << epsilon;
      }
    }
  }
}

TEST(Profile, OfMixturesWithMoreMeansIsTheIntegralToo) {
  const Components p = {{0.0, 0.5}, {1.0, 0.3}, {3.0, 0.2}};
  for (const double sigma : {0.7, 2.0}) {
    const DominatingPair pair(p, sigma);
    const Reference reference(p, sigma);
    for (const double epsilon : {-2.0, -0.1, 0.0, 0.1, 1.0, 6.0}) {
      const auto exact = static_cast<double>(reference.symmetrised(epsilon));
      EXPECT_NEAR(pair.symmetrised_profile(epsilon), exact, std::max(1e-9 * exact, 1e-250)) << sigma << " " << epsilon;
    }
  }
}

TEST(Profile, DoesNotDependOnHowAComponentIsWritten) {
  // q N(2) once as one component (closed inverse) and once as two halves (Newton's method).
  const double q = 0.02;
  const auto one = one_window_pair(q, 1.5);
  const DominatingPair two({{0.0, 1.0 - q}, {2.0, q / 2}, {2.0, q / 2}}, 1.5);
  for (const double epsilon : {-4.0, -0.3, 0.0, 1e-6, 0.2, 2.0, 9.0})
    EXPECT_NEAR(two.symmetrised_profile(epsilon) / one.symmetrised_profile(epsilon), 1.0, 1e-10) << epsilon;
}

TEST(Profile, ObeysTheIdentityOfSwappedMeasures) {
  // (3.1): H_alpha(Q||P) = 1 - alpha + alpha H_{1/alpha}(P||Q), both sides integrated on their own.
  const Reference reference(substitution_components(0.1), 0.8);
  const auto pair = one_window_pair(0.1, 0.8);
  for (const double epsilon : {-2.5, -1.0, -0.05}) {
    const Real alpha = std::exp(static_cast<Real>(epsilon));
    const Real right = 1 - alpha + alpha * reference.h_pq(-epsilon);
    EXPECT_NEAR(static_cast<double>(reference.h_qp(epsilon)), static_cast<double>(right), 1e-15);
    EXPECT_NEAR(pair.symmetrised_profile(epsilon), static_cast<double>(right), 1e-15);
  }
}

TEST(Profile, IsContinuousAtZeroWithTheTotalVariationThere) {
  // H_1 = q (Phi(1/sigma) - Phi(-1/sigma)) = q erf(1/(sigma sqrt 2)).
  for (const double q : {1e-5, 0.05, 1.0}) {
    for (const double sigma : {0.4, 1.0, 10.0}) {
      const auto pair = one_window_pair(q, sigma);
      const double exact = q * std::erf(1.0 / (sigma * std::numbers::sqrt2));
      EXPECT_NEAR(pair.symmetrised_profile(0.0) / exact, 1.0, 1e-9);
      // The slope in epsilon is at most 1.
      EXPECT_NEAR(pair.symmetrised_profile(1e-12), exact, 2e-12);
      EXPECT_NEAR(pair.symmetrised_profile(-1e-12), exact, 2e-12);
    }
  }
}

TEST(Profile, IsConvexFallingAndAboveThePerfectProfileInAlpha) {
  for (const double q : {0.003, 0.4, 1.0}) {
    for (const double sigma : {0.6, 3.0}) {
      const auto pair = one_window_pair(q, sigma);
      std::vector<double> alpha;
      std::vector<double> h;
      for (int i = 1; i <= 400; ++i) {
        alpha.push_back(0.01 * i);
        h.push_back(pair.symmetrised_profile(std::log(alpha.back())));
      }
      for (std::size_t i = 0; i < h.size(); ++i) {
        EXPECT_GE(h[i], std::max(0.0, 1.0 - alpha[i]) - 1e-15);
        EXPECT_LE(h[i], 1.0);
        EXPECT_LE(h[i], (i > 0 ? h[i - 1] : 1.0) + 1e-15);
      }
      for (std::size_t i = 2; i < h.size(); ++i)
        EXPECT_GE(h[i] - 2 * h[i - 1] + h[i - 2], -1e-14) << "q " << q << " alpha " << alpha[i];
    }
  }
}

TEST(Profile, WithoutSubsamplingIsThatOfTheGaussianMechanism) {
  for (const double sigma : {0.5, 2.0, 8.0}) {
    const auto pair = one_window_pair(1.0, sigma);
    for (const double epsilon : {0.0, 0.1, 1.0, 4.0}) {
      const auto exact = static_cast<double>(gaussian_delta(epsilon, 2.0L / sigma));
      EXPECT_NEAR(pair.symmetrised_profile(epsilon), exact, 1e-9 * exact);
    }
  }
}

TEST(Profile, IsRightDeepInTheTail) {
  // sigma = 1, q = 1, epsilon = 30: x = 16, about Q-bar(14) = 8e-45; epsilon = 60: x = 31, about Q-bar(29) = 3e-185.
  for (const double q : {1e-3, 1.0}) {
    const auto pair = one_window_pair(q, 1.0);
    const Reference reference(substitution_components(q), 1.0);
    for (const double epsilon : {10.0, 30.0, 60.0}) {
      const Real exact = reference.h_pq(epsilon);
      ASSERT_GT(exact, 0);
      EXPECT_NEAR(static_cast<double>(pair.symmetrised_profile(epsilon) / exact), 1.0, 1e-9) << q << " " << epsilon;
    }
    EXPECT_LT(pair.symmetrised_profile(30.0), 1e-43);
  }
}

TEST(Profile, RisesWithSamplingAndFallsWithNoise) {
  for (const double epsilon : {-0.5, 0.0, 0.3, 2.0}) {
    double before = 0.0;
    for (const double q : {1e-5, 1e-3, 0.1, 0.5, 1.0}) {
      const double h = one_window_pair(q, 1.3).symmetrised_profile(epsilon);
      EXPECT_GT(h, before);
      before = h;
    }
    for (const double sigma : {1.4, 2.0, 5.0}) {
      const double h = one_window_pair(1.0, sigma).symmetrised_profile(epsilon);
      EXPECT_LT(h, before);
      before = h;
    }
  }
}

TEST(Loss, IsInvertedByItsInverse) {
  for (const double q : {1e-8, 0.02, 1.0}) {
    for (const double sigma : {0.3, 1.0, 30.0}) {
      const auto pair = one_window_pair(q, sigma);
      for (const double z : {0.0, 0.5, 3.0, 12.0}) {
        const double x = 1.0 + z * sigma;
        EXPECT_NEAR(pair.inverse_loss(pair.loss(x)), x, 1e-9 * std::max(1.0, sigma)) << q << " " << sigma << " " << z;
      }
      EXPECT_NEAR(pair.inverse_loss(0.0), 1.0, 1e-12);  // the two densities cross half way
      for (const double loss : {1e-9, 0.4, 25.0, 35.0, 900.0}) {
        // The last place of x is worth L'(x) <= 2 / sigma^2 times as much in the loss.
        const double x = pair.inverse_loss(loss);
        EXPECT_NEAR(pair.loss(x), loss, 1e-12 * loss + 1e-15 * x * 2.0 / (sigma * sigma)) << q << " " << sigma;
      }
    }
  }
  const DominatingPair mixture({{0.0, 0.9}, {2.0, 0.06}, {4.0, 0.03}, {6.0, 0.01}}, 1.2);
  for (const double loss : {-0.1, -1e-3, 1e-3, 0.5, 5.0, 80.0})
    EXPECT_NEAR(mixture.loss(mixture.inverse_loss(loss)) / loss, 1.0, 1e-10) << loss;
}

TEST(Loss, KeepsItsDigitsNearZero) {
  // L = log(1 + q expm1(u)) with u = 2 (x - 1) / sigma^2; q = 1e-6, sigma = 4, x = 1 + 8e-6: u = 1e-6.
  const auto pair = one_window_pair(1e-6, 4.0);
  const auto u = 2.0L * (static_cast<Real>(1.0 + 8e-6) - 1) / 16;
  const auto exact = std::log1p(1e-6L * std::expm1(u));
  EXPECT_NEAR(static_cast<double>(pair.loss(1.0 + 8e-6) / exact), 1.0, 1e-9);
}

TEST(Loss, NeverReachesTheLogarithmOfTheUnmovedWeight) {
  const auto pair = one_window_pair(0.25, 1.0);
  EXPECT_GT(pair.loss(-40.0), std::log(0.75) - 1e-15);
  EXPECT_THROW((void)pair.inverse_loss(std::log(0.75) - 1e-3), PrivacyError);
}

TEST(Tails, AreThoseOfTheNormalLaw) {
  for (double z = -30.0; z <= 60.0; z += 0.37) {
    const Real exact = std::log(std::erfc(static_cast<Real>(z) / std::numbers::sqrt2_v<Real>) / 2);
    // e^(error) - 1 below 1e-13 wherever the tail itself is a double; beyond, the exponent's own last place.
    EXPECT_NEAR(log_normal_tail(z), static_cast<double>(exact), std::max(2e-13, 2e-16 * z * z)) << z;
  }
  const auto pair = one_window_pair(0.5, 2.0);
  // P(X > 2) = 1/2 Q-bar(1) + 1/2 Q-bar(0), Q(X > 2) = Q-bar(1) = 0.15865525393145707.
  EXPECT_NEAR(std::exp(pair.log_tail_q(2.0)), 0.15865525393145707, 1e-15);
  EXPECT_NEAR(std::exp(pair.log_tail_p(2.0)), 0.5 * 0.15865525393145707 + 0.25, 1e-15);
}

TEST(DominatingPairs, RefuseWhatIsNone) {
  for (const double q : {0.0, -0.1, 1.0 + 1e-15, infinity, not_a_number})
    EXPECT_THROW((void)one_window_pair(q, 1.0), PrivacyError) << q;
  for (const double sigma : {0.0, -1.0, infinity, not_a_number})
    EXPECT_THROW((void)one_window_pair(0.5, sigma), PrivacyError) << sigma;
  const std::vector<Components> broken = {{},                                 // no component
                                          {{0.0, 1.0}},                       // no positive mean: P = Q
                                          {{-1.0, 0.5}, {2.0, 0.5}},          // the ratio would not be monotone
                                          {{0.0, 0.5}, {2.0, 0.4}},           // weights sum to 0.9
                                          {{0.0, 1.0}, {2.0, 0.0}},           // weight 0
                                          {{0.0, 1.5}, {2.0, -0.5}},          // negative weight
                                          {{0.0, 0.5}, {infinity, 0.5}},      //
                                          {{0.0, 0.5}, {not_a_number, 0.5}},  //
                                          {{0.0, not_a_number}, {2.0, not_a_number}}};  //
  for (const auto& components : broken) EXPECT_THROW((void)DominatingPair(components, 1.0), PrivacyError);
}

}  // namespace
}  // namespace tsdp::privacy
