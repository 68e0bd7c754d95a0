// What transforms are charged for rounding, against what they really round: long double beside every coefficient, an
// exact convolution beside every composed value, and Higham's bound computed anew.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <numbers>
#include <ostream>
#include <vector>

#include "privacy/accountant/composition.h"

namespace tsdp::privacy {
namespace {

using Real = long double;

constexpr double unit = std::numeric_limits<double>::epsilon() / 2;

/// A law on few multiples of 0.01; what the points leave lies at 0.
LossDistribution law(std::vector<LossDistribution::Point> points, Rounding rounding = Rounding::pessimistic) {
  LossDistribution d;
  d.rounding = rounding;
  d.step = 0.01;
  d.points = std::move(points);
  d.at_zero = 1.0;
  for (const auto& p : d.points) d.at_zero -= p.plus + p.minus;
  return d;
}

/// One far point, three points, and a dense law.
std::vector<std::vector<LossDistribution::Point>> laws() {
  std::vector<LossDistribution::Point> dense;
  for (int i = 1; i <= 20; ++i) dense.push_back({i, 0.02 * std::exp(-0.1 * i), 0.02 * std::exp(-0.2 * i)});
  return {{{7, 0.3, 0.2}}, {{1, 0.3, 0.2}, {5, 0.1, 0.05}, {23, 0.05, 0.01}}, dense};
}

/// The tilted masses as the product rounds them: their own rounding is charged elsewhere, as a relative error.
struct Tilted {
  std::vector<std::int64_t> index;
  std::vector<double> plus, minus;
  double at_zero = 0.0;

  Tilted(const LossDistribution& d, double theta, double cumulant) : at_zero(d.at_zero * std::exp(-cumulant)) {
    for (const auto& p : d.points) {
      const double loss = static_cast<double>(p.index) * d.step;
      index.push_back(p.index);
      plus.push_back(p.plus * std::exp(theta * loss - cumulant));
      minus.push_back(p.minus * std::exp(-theta * loss - cumulant));
    }
  }

  /// Their Fourier transform at frequency m of a circle of `size` cells.
  [[nodiscard]] std::complex<Real> at(std::int64_t m, std::int64_t size) const {
    Real re = at_zero;
    Real im = 0;
    for (std::size_t i = 0; i < index.size(); ++i) {
      const Real angle =
          2 * std::numbers::pi_v<Real> * static_cast<Real>(index[i] * m % size) / static_cast<Real>(size);
      re += (static_cast<Real>(plus[i]) + static_cast<Real>(minus[i])) * std::cos(angle);
      im -= (static_cast<Real>(plus[i]) - static_cast<Real>(minus[i])) * std::sin(angle);
    }
    return {re, im};
  }

  /// Sum and sum of squares of the masses that go through the transform: all but the one at 0.
  [[nodiscard]] double sum() const {
    double out = 0.0;
    for (std::size_t i = 0; i < index.size(); ++i) out += plus[i] + minus[i];
    return out;
  }
  [[nodiscard]] double squares() const {
    double out = 0.0;
    for (std::size_t i = 0; i < index.size(); ++i) out += plus[i] * plus[i] + minus[i] * minus[i];
    return out;
  }
};

struct Errors {
  double largest = 0.0;    ///< of one coefficient, in units of what every coefficient is charged
  double euclidean = 0.0;  ///< of all together, in units of their charge
};

Errors errors_of(const TiltedTransform& transform) {
  const Tilted exact(transform.distribution(), transform.theta(), transform.at_theta().value);
  const auto size = transform.size();
  const auto& found = transform.coefficients();
  double largest = 0.0;
  double squares = 0.0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto m = static_cast<std::int64_t>(i);
    const auto difference = exact.at(m, size) - std::complex<Real>(found[i].real(), found[i].imag());
    const auto error = static_cast<double>(std::abs(difference));
    largest = std::max(largest, error);
    squares += (m == 0 || 2 * m == size ? 1.0 : 2.0) * error * error;
  }
  return {largest / transform.error(), std::sqrt(squares / static_cast<double>(size)) / transform.euclidean_error()};
}

TEST(RoundingCharge, HoldsForEveryCoefficientOfTheFastTransform) {
  double most = 0.0;
  double most_together = 0.0;
  for (const auto& points : laws()) {
    const auto d = law(points);
    for (const double theta : {0.5, 5.0}) {
      for (const std::int64_t size : {64, 960, 32768}) {
        const TiltedTransform transform(d, theta, size, 1);
        ASSERT_EQ(transform.coefficients().size(), static_cast<std::size_t>(size / 2 + 1)) << "not the fast transform";
        const auto errors = errors_of(transform);
        EXPECT_LE(errors.largest, 1.0) << points.size() << " points, theta " << theta << ", size " << size;
        EXPECT_LE(errors.euclidean, 1.0) << points.size() << " points, theta " << theta << ", size " << size;
        most = std::max(most, errors.largest);
        most_together = std::max(most_together, errors.euclidean);

        // Higham (2002), Theorem 24.2: a radix-2 transform with twiddles accurate to mu has a relative error of at most
        // log2(N) eta, eta = mu + gamma_4 (sqrt 2 + mu); with mu = u, in l2 over all coefficients and, as every output
        // is a sum over as many stages, for each of them against the sum of the input.
        const Tilted input(d, theta, transform.at_theta().value);
        const double eta = unit + 4.0 * unit / (1.0 - 4.0 * unit) * (std::numbers::sqrt2 + unit);
        const double stages = std::log2(static_cast<double>(size));
        EXPECT_GE(transform.error(), stages * eta * input.sum() + unit) << "size " << size;
        EXPECT_GE(transform.euclidean_error(), stages * eta * std::sqrt(input.squares()) + unit) << "size " << size;
      }
    }
  }
  // A charge that is a hundredth of what it is would be found too small: the test has teeth.
  EXPECT_GT(most, 0.01);
  EXPECT_GT(most_together, 0.01);
}

TEST(RoundingCharge, HoldsForEveryCoefficientThatIsSummedDirectly) {
  double most = 0.0;
  for (const auto& points : {laws()[1], laws()[2]}) {
    const auto d = law(points);
    for (const double theta : {0.5, 5.0}) {
      constexpr std::int64_t size = std::int64_t{1} << 20;
      const TiltedTransform transform(d, theta, size, 4000);
      ASSERT_LT(transform.coefficients().size(), std::size_t{16385}) << "the fast transform";
      ASSERT_GT(transform.coefficients().size(), std::size_t{200});
      const auto errors = errors_of(transform);
      EXPECT_LE(errors.largest, 1.0) << points.size() << " points, theta " << theta;
      most = std::max(most, errors.largest);
    }
  }
  EXPECT_GT(most, 0.01);
}

/// Masses of the `uses`-fold sum by direct convolution, from the lowest loss on.
std::vector<Real> convolved(const LossDistribution& d, int uses) {
  const auto most = static_cast<std::size_t>(d.largest_index());
  std::vector<Real> one(2 * most + 1);
  one[most] = d.at_zero;
  for (const auto& p : d.points) {
    one[most + static_cast<std::size_t>(p.index)] = p.plus;
    one[most - static_cast<std::size_t>(p.index)] = p.minus;
  }
  std::vector<Real> out = {1};
  for (int use = 0; use < uses; ++use) {
    std::vector<Real> next(out.size() + 2 * most);
    for (std::size_t i = 0; i < out.size(); ++i)
      for (std::size_t j = 0; j < one.size(); ++j) next[i + j] += out[i] * one[j];
    out = std::move(next);
  }
  return out;
}

Real delta_of(const std::vector<Real>& masses, double step, double epsilon) {
  const auto middle = static_cast<std::int64_t>(masses.size() / 2);
  Real sum = 0;
  for (std::size_t i = masses.size(); i-- > 0;) {
    const Real loss = static_cast<Real>(static_cast<std::int64_t>(i) - middle) * static_cast<Real>(step);
    if (loss <= static_cast<Real>(epsilon)) break;
    sum -= masses[i] * std::expm1(static_cast<Real>(epsilon) - loss);
  }
  return sum;
}

// Where the truth is far below what a transform tuned for another epsilon can resolve, all that it finds is rounding.
// The upper end, less its charge, is that rounding itself: never above the charge, and not so far below it that a
// smaller charge would do.
TEST(RoundingCharge, HoldsForComposedValuesDownToTheNoiseOfTransforms) {
  double most = 0.0;
  int in_noise = 0;
  for (const auto& points : laws()) {
    const auto upper_law = law(points);
    const auto lower_law = law(points, Rounding::optimistic);
    for (const int uses : {1, 2, 8, 64, 200}) {
      const auto masses = convolved(upper_law, uses);
      const double reach = uses * upper_law.largest_loss();
      for (const double target : {0.004, 0.02, 0.06}) {
        const double theta = best_tilt_for_epsilon(upper_law, static_cast<std::uint64_t>(uses), target * reach);
        Composer for_upper(upper_law);
        Composer for_lower(lower_law);
        const auto upper = for_upper.compose(static_cast<std::uint64_t>(uses), theta);
        const auto lower = for_lower.compose(static_cast<std::uint64_t>(uses), theta);
        for (int i = 0; i < 250; ++i) {
          const double epsilon = 0.00123 + reach * i / 250.0;
          SCOPED_TRACE(testing::Message()
                       << points.size() << " points, uses " << uses << ", theta " << theta << ", epsilon " << epsilon);
          const auto exact = static_cast<double>(delta_of(masses, upper_law.step, epsilon));
          const double high = upper.delta(epsilon);
          const double charge = upper.charge(epsilon);
          EXPECT_GE(high, exact);
          EXPECT_LE(lower.delta(epsilon), exact);
          if (exact > 1e-4 * charge || high > 0.5) continue;
          ++in_noise;
          const double noise = high / (1.0 + 3e-12) - charge;
          EXPECT_LE(noise, charge);
          most = std::max(most, noise / charge);
        }
      }
    }
  }
  EXPECT_GT(in_noise, 2000);
  EXPECT_GT(most, 2e-3) << "a thousandth of the charge would pass";
}

// The charge from its definition: errors of coefficients, raised to the power of the uses and summed against the
// weights w(u) = e^{-theta u} (1 - e^{-u}), either all with the same sign or by Cauchy and Schwarz.
TEST(RoundingCharge, OfACompositionHasThatOfItsCoefficients) {
  for (const auto& points : laws()) {
    const auto d = law(points);
    for (const int uses : {1, 16, 300}) {
      for (const double theta : {0.5, 2.0}) {
        const auto k = static_cast<double>(uses);
        const auto window = window_of(d, static_cast<std::uint64_t>(uses), theta, 1e7);
        std::int64_t size = 64;
        while (size < window.cells) size *= 2;
        const TiltedTransform transform(d, window.theta, size, static_cast<std::uint64_t>(uses));
        const Composition composition(transform, static_cast<std::uint64_t>(uses), window.first);
        const double t = window.theta;
        // Weights by numbers, not by their integrals: the least sums over shifts of the grid are below both bounds.
        double sum = std::numeric_limits<double>::infinity();
        double squares = sum;
        for (int shift = 0; shift < 8; ++shift) {
          double w = 0.0;
          double w2 = 0.0;
          for (int i = 0; i < 20000; ++i) {
            const double u = d.step * (i + shift / 8.0);
            const double weight = -std::exp(-t * u) * std::expm1(-u);
            w += weight;
            w2 += weight * weight;
          }
          sum = std::min(sum, w);
          squares = std::min(squares, w2);
        }
        double together = 0.0;
        for (std::size_t m = 0; m < transform.coefficients().size(); ++m) {
          const double both = m == 0 || 2 * static_cast<std::int64_t>(m) == size ? 1.0 : 2.0;
          together += both * k * transform.error() * std::pow(std::abs(transform.coefficients()[m]), k - 1.0);
        }
        const double least =
            std::min(together / static_cast<double>(size) * sum, k * transform.euclidean_error() * std::sqrt(squares));
        for (const double epsilon : {0.0, 0.1, 1.0}) {
          const double front = std::exp(k * transform.at_theta().value - t * epsilon);
          EXPECT_GE(composition.charge(epsilon), front * least) << points.size() << " " << uses << " " << theta;
        }
      }
    }
  }
}

// The sums over i of w(u + ih) y^i, taken in every frequency at once, are rounded as well: at least as much as Higham's
// bounds say for a recursive sum (few frequencies) or another transform (all of them), relative to the sizes of the
// terms.
TEST(RoundingCharge, OfSuffixSumsIsThatOfTheirTerms) {
  int direct = 0;
  int fast = 0;
  for (const auto& points : laws()) {
    const auto d = law(points);
    for (const int uses : {2, 3000}) {
      for (const double theta : {0.01, 0.5}) {
        const auto k = static_cast<double>(uses);
        const auto window = window_of(d, static_cast<std::uint64_t>(uses), theta, 1e7);
        const double t = window.theta;
        std::int64_t size = 64;
        while (size < window.cells) size *= 2;
        const auto n = static_cast<double>(size);
        const TiltedTransform transform(d, t, size, static_cast<std::uint64_t>(uses));
        const Composition composition(transform, static_cast<std::uint64_t>(uses), window.first);
        double terms = 0.0;
        std::int64_t count = 0;
        for (std::size_t m = 0; m < transform.coefficients().size(); ++m) {
          const double power = k * std::log(std::abs(transform.coefficients()[m]));
          if (!(power > TiltedTransform::log_vanishing + 1.0)) continue;
          count = static_cast<std::int64_t>(m) + 1;
          const auto turn = std::polar(1.0, 2.0 * std::numbers::pi * static_cast<double>(m) / n);
          const double both = m == 0 || 2 * static_cast<std::int64_t>(m) == size ? 1.0 : 2.0;
          terms += both * std::exp(power) / n /
                   std::abs((1.0 - std::exp(-t * d.step) * turn) * (1.0 - std::exp(-(t + 1.0) * d.step) * turn));
        }
        const bool few = count < size / 5;  // of them the product sums directly
        if (!few && count < size / 2 - size / 20) continue;
        ++(few ? direct : fast);
        const double eta = unit + 4.0 * unit * (std::numbers::sqrt2 + unit);
        const double rounding = (few ? static_cast<double>(count) * unit : std::log2(n) * eta) * terms;
        // What depends on the place is charged for the suffix from the next grid point on, u = h/2 above epsilon, and
        // for that behind the window, which is taken off.
        const double last = d.step * static_cast<double>(window.first + size);
        const double everywhere = composition.charge(last + 1.0) * std::exp(t * (last + 1.0));
        const double u = 0.5 * d.step;
        const double epsilon = d.step * std::floor(0.4 * last / d.step) + u;
        ASSERT_GT(epsilon, 0.0);
        const double here = composition.charge(epsilon) * std::exp(t * epsilon);
        const auto weights = [&](double above) {
          return std::exp(-t * above) *
                 (-std::expm1(-above) + std::exp(-(t + 1.0) * d.step) * std::abs(std::expm1(d.step - above)));
        };
        const double least =
            std::exp(k * transform.at_theta().value) * (weights(u) + weights(last - epsilon)) * rounding;
        // Both charges hold the same part for coefficients, whose difference is taken here.
        EXPECT_GE(here - everywhere, 0.999 * least - 1e-9 * here)
            << points.size() << " points, uses " << uses << ", theta " << t << (few ? ", few" : ", all");
        EXPECT_GT(least, 1e-6 * here) << "too little to be seen";
      }
    }
  }
  EXPECT_GT(direct, 0);
  EXPECT_GT(fast, 0);
}

}  // namespace
}  // namespace tsdp::privacy
