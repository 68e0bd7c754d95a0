// The accountant against a second implementation: rounding of losses and direct convolution, no transform, no tilt.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "privacy/accountant/composition.h"
#include "privacy/theorems/structured_pairs.h"
#include "support/draw.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/privacy/accountant/accountant.h"

namespace tsdp::privacy {
namespace {

using Real = long double;

Real upper_normal(Real z) { return std::erfc(z / std::numbers::sqrt2_v<Real>) / 2; }

/// delta of one Gaussian of sensitivity mu, Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu); k of mu/sqrt(k) make one.
Real gaussian_delta(Real epsilon, Real mu) {
  return upper_normal(epsilon / mu - mu / 2) - std::exp(epsilon) * upper_normal(epsilon / mu + mu / 2);
}

/// (1 - q) N(0, sigma^2) + q N(2, sigma^2) against N(0, sigma^2), by its definition.
struct Pair {
  Real q;
  Real sigma;

  [[nodiscard]] Real p_beyond(Real x) const {
    return (1 - q) * upper_normal(x / sigma) + q * upper_normal((x - 2) / sigma);
  }
  [[nodiscard]] Real q_beyond(Real x) const { return upper_normal(x / sigma); }
  /// e^loss = 1 - q + q e^{2 (x - 1)/sigma^2}; the lowest loss, log(1 - q), lies at minus infinity.
  [[nodiscard]] Real at_loss(Real loss) const {
    const Real ratio = 1 + std::expm1(loss) / q;
    return ratio <= 0 ? -1e6L * sigma : 1 + sigma * sigma / 2 * std::log(ratio);
  }
  [[nodiscard]] Real largest_loss() const {
    const Real u = 2 * (1 + 11 * sigma) / (sigma * sigma);
    return std::log1p(q * std::expm1(u));
  }
};

enum class Side {
  up,
  down
};
enum class Direction {
  symmetrised,
  forward,
  backward
};  // H_sym, (P, Q), (Q, P)

/// Masses at (first + i) step, and the mass at infinite loss.
struct Masses {
  Real step = 0;
  int first = 0;
  std::vector<double> at;
  Real infinite = 0;

  [[nodiscard]] int last() const { return first + static_cast<int>(at.size()) - 1; }

  /// E (1 - e^{epsilon - loss})+, infinite loss counted whole.
  [[nodiscard]] double delta(double epsilon) const {
    Real sum = infinite;
    for (std::size_t i = at.size(); i-- > 0;) {
      const Real loss = step * (first + static_cast<Real>(i));
      if (loss <= static_cast<Real>(epsilon)) break;
      sum += at[i] * -std::expm1(epsilon - loss);
    }
    return static_cast<double>(sum);
  }
};

/// Rounds the loss of one use up or down to the grid. Every cell mass is a difference of normal tails.
/// H_sym: right of x0 the loss +L has mass P and the loss -L mass Q; the rest, 1 - P(x > x0) - Q(x > x0), has loss 0.
Masses rounded_loss(const Pair& pair, Direction direction, Real step, Side side) {
  const int n = static_cast<int>(std::ceil(pair.largest_loss() / step));
  Masses out;
  out.step = step;
  out.first = -n;
  out.at.assign(static_cast<std::size_t>(2 * n + 1), 0.0);
  const auto add = [&](int place, Real mass) {
    if (place < -n) {
      if (side == Side::down) return;  // dropping only lowers
      place = -n;
    }
    if (place > n) {
      if (side == Side::up) {
        out.infinite += mass;
        return;
      }
      place = n;
    }
    out.at[static_cast<std::size_t>(place + n)] += static_cast<double>(mass);
  };
  const int lowest = direction == Direction::symmetrised ? 0 : -n;
  for (int i = lowest; i <= n; ++i) {
    // Cell of losses [i h, (i + 1) h); the outermost ones reach to infinity.
    const bool open_left = i == lowest && direction != Direction::symmetrised;
    const Real left = open_left ? -1e6L * pair.sigma : pair.at_loss(i * step);
    const Real right = i == n ? 1e6L * pair.sigma : pair.at_loss((i + 1) * step);
    const Real p = pair.p_beyond(left) - pair.p_beyond(right);
    const Real q = pair.q_beyond(left) - pair.q_beyond(right);
    const bool up = side == Side::up;
    if (direction != Direction::backward) add(open_left && !up ? -n - 1 : up ? i + 1 : i, p);
    // -L lies in (-(i + 1) h, -i h].
    if (direction != Direction::forward) {
      if (open_left) {
        add(up ? n + 1 : n, q);
      } else {
        add(up ? -i : i == n ? -n - 1 : -i - 1, q);
      }
    }
  }
  if (direction == Direction::symmetrised) {
    const Real zero = pair.at_loss(0);
    add(0, 1 - pair.p_beyond(zero) - pair.q_beyond(zero));
  }
  return out;
}

Masses convolve(const Masses& a, const Masses& b) {
  Masses out;
  out.step = a.step;
  out.first = a.first + b.first;
  out.at.assign(a.at.size() + b.at.size() - 1, 0.0);
  for (std::size_t i = 0; i < a.at.size(); ++i)
    for (std::size_t j = 0; j < b.at.size(); ++j) out.at[i + j] += a.at[i] * b.at[j];
  out.infinite = 1 - (1 - a.infinite) * (1 - b.infinite);
  return out;
}

Masses fold(const Masses& one, int uses) {
  Masses out = one;
  for (int i = 1; i < uses; ++i) out = convolve(out, one);
  return out;
}

Accountant accountant_of(double q, double sigma) { return Accountant(one_window_pair(q, sigma)); }

// Second implementation ----------------------------------------------------------------------------------------------

TEST(Composition, OverlapsWithDirectConvolutionFromTheRightSides) {
  const struct {
    double q, sigma;
    Real step;
  } cases[] = {{0.05, 1.0, 0.015L}, {0.3, 1.5, 0.012L}, {1.0, 4.0, 0.01L}, {0.5, 0.7, 0.05L}};
  for (const auto& c : cases) {
    const Pair pair{c.q, c.sigma};
    auto accountant = accountant_of(c.q, c.sigma);
    const auto up = rounded_loss(pair, Direction::symmetrised, c.step, Side::up);
    const auto down = rounded_loss(pair, Direction::symmetrised, c.step, Side::down);
    auto up_k = up;
    auto down_k = down;
    for (int k = 1; k <= 8; ++k) {
      if (k > 1) {
        up_k = convolve(up_k, up);
        down_k = convolve(down_k, down);
      }
      if (k != 1 && k != 2 && k != 5 && k != 8) continue;
      for (const double epsilon : {0.0, 0.2, 1.0, 3.0, 8.0}) {
        const auto bracket = accountant.delta(epsilon, static_cast<std::uint64_t>(k), 1e-4);
        const double high = up_k.delta(epsilon) * (1 + 1e-12) + 1e-18;
        const double low = down_k.delta(epsilon) * (1 - 1e-12) - 1e-18;
        EXPECT_LE(bracket.lower, bracket.upper);
        EXPECT_LE(bracket.lower, high) << "q " << c.q << " sigma " << c.sigma << " k " << k << " epsilon " << epsilon;
        EXPECT_GE(bracket.upper, low) << "q " << c.q << " sigma " << c.sigma << " k " << k << " epsilon " << epsilon;
        // The accountant's grid is the better one: its whole bracket lies inside that of plain rounding, but for its
        // width.
        EXPECT_LE(bracket.upper, high * (1 + 2e-4));
        EXPECT_GE(bracket.lower, low * (1 - 2e-4));
      }
    }
  }
}

TEST(Composition, OfOneUseIsTheProfile) {
  for (const double q : {1e-3, 0.05, 1.0}) {
    for (const double sigma : {0.3, 1.0, 50.0}) {
      auto accountant = accountant_of(q, sigma);
      for (const double epsilon : {0.0, 0.1, 1.0, 20.0}) {
        const auto bracket = accountant.delta(epsilon, 1, 0.02);
        const double exact = accountant.mechanisms().front().pair.symmetrised_profile(epsilon);
        EXPECT_LE(bracket.lower, exact * (1 + 1e-9)) << q << " " << sigma << " " << epsilon;
        EXPECT_GE(bracket.upper, exact * (1 - 1e-9)) << q << " " << sigma << " " << epsilon;
      }
    }
  }
}

TEST(Composition, OfMixturesWithMoreMeansHoldsTheProfile) {
  Accountant accountant(DominatingPair({{0.0, 0.7}, {2.0, 0.2}, {4.0, 0.1}}, 2.0));
  for (const double epsilon : {0.0, 0.3, 2.0, 6.0}) {
    const auto bracket = accountant.delta(epsilon, 1, 1e-3);
    const double exact = accountant.mechanisms().front().pair.symmetrised_profile(epsilon);
    EXPECT_LE(bracket.lower, exact * (1 + 1e-9));
    EXPECT_GE(bracket.upper, exact * (1 - 1e-9));
    EXPECT_LE(bracket.upper - bracket.lower, 0.02 * exact) << epsilon;
  }
}

TEST(Grids, LieOnTheirSideOfTheProfile) {
  for (const double q : {0.01, 1.0}) {
    const auto pair = one_window_pair(q, 1.0);
    for (const double step : {0.05, 0.4}) {
      for (const auto rounding : {Rounding::pessimistic, Rounding::optimistic}) {
        Composer composer(discretise(pair, step, 1.0, rounding));
        const auto& grid = composer.loss().parts.front().distribution;
        double mass = grid.at_zero;
        for (const auto& point : grid.points) mass += point.plus + point.minus;
        EXPECT_NEAR(mass, 1.0, 1e-12);  // nothing is lost but tails below 1e-35
        const auto one = composer.compose(1, best_tilt_for_epsilon(grid, 1, 1.0));
        for (const double epsilon : {0.0, 0.31, 1.0, 2.77}) {
          const double exact = pair.symmetrised_profile(epsilon);
          const double side = rounding == Rounding::pessimistic ? 1.0 : -1.0;
          EXPECT_GE(side * one.delta(epsilon), side * exact - 1e-12 * exact) << q << " " << step << " " << epsilon;
        }
      }
    }
  }
}

// Coarse grids and odd steps, on which the middle's loss lies anywhere between two points.
TEST(Grids, OfOneDirectionLieOnTheirSideOfTheProfile) {
  test::Draw draw(3);
  for (int i = 0; i < 200; ++i) {
    const double q = i % 7 == 0 ? 1.0 : draw.log_between(0.005, 1.0);
    const double sigma = draw.log_between(0.3, 6.0);
    const auto pair = one_window_pair(q, sigma);
    for (const auto direction : {privacy::Direction::remove, privacy::Direction::add}) {
      const double deviation = loss_scale(pair, direction).deviation;
      const double step = deviation * draw.log_between(0.03, 2.0);
      for (const auto rounding : {Rounding::pessimistic, Rounding::optimistic}) {
        const auto grid = discretise(pair, step, 2.0 * deviation, rounding, 0.0, std::size_t{1} << 20, direction);
        SCOPED_TRACE(cat(q, ", ", sigma, ", ", name(direction), ", step ", step, ", pessimistic ",
                         rounding == Rounding::pessimistic));
        const auto delta = [&](double epsilon) {
          const auto of = [&](double loss) { return std::max(0.0, -std::expm1(epsilon - grid.offset - loss)); };
          double sum = grid.at_zero * of(0.0) + grid.infinite_mass;
          for (const auto& point : grid.points) {
            const double loss = static_cast<double>(point.index) * grid.step;
            sum += point.plus * of(loss) + point.minus * of(-loss);
          }
          return sum;
        };
        for (const double share : {0.0, 0.1, 0.5, 1.0, 2.0, 4.0}) {
          const double epsilon = share * deviation;
          const auto exact = pair.profile_bracket(direction, epsilon);
          const double off = 1e-11 + 2.0 * grid.loss_error;  // which a composition charges
          if (rounding == Rounding::pessimistic) EXPECT_GE(delta(epsilon), exact.lower - off) << epsilon;
          else EXPECT_LE(delta(epsilon), exact.upper + off) << epsilon;
        }
      }
    }
  }
}

// Where the middle could hold most of the losses below, and merge them all.
TEST(Grids, OfOneDirectionKeepTheMiddleNarrow) {
  const struct {
    double q, sigma;
    privacy::Direction direction;
    std::uint64_t uses;
    double epsilon;
  } cases[] = {{0.5717, 0.421, privacy::Direction::add, 900, 62.0},
               {0.3444, 11.223, privacy::Direction::remove, 10, 0.10582},
               {0.8505, 0.479, privacy::Direction::add, 2, 0.52651}};
  for (const auto& c : cases) {
    Accountant accountant(DominatingPair({{0.0, 1.0 - c.q}, {1.0, c.q}}, c.sigma), c.direction);
    for (const double precision : {1e-2, 1e-3, 1e-4}) {
      const auto found = accountant.delta(c.epsilon, c.uses, precision);
      EXPECT_LE(found.upper - found.lower, precision * found.upper) << c.q << ", precision " << precision;
    }
  }
}

// Exact Gaussian composition ----------------------------------------------------------------------------------------

TEST(Composition, WithoutSubsamplingIsOneGaussianOfRootKTimesTheSensitivity) {
  const struct {
    double sigma;
    std::uint64_t uses;
  } cases[] = {{4.0, 1}, {4.0, 7}, {20.0, 100}, {50.0, 1000}, {100.0, 10000}, {400.0, 10000}};
  for (const auto& c : cases) {
    auto accountant = accountant_of(1.0, c.sigma);
    const Real mu = 2 / static_cast<Real>(c.sigma) * std::sqrt(static_cast<Real>(c.uses));
    for (const double deviations : {0.0, 1.0, 4.0, 7.0, 10.0}) {
      // The loss is N(mu^2/2, mu^2): from the bulk to about 1e-24.
      const auto epsilon = static_cast<double>(mu * mu / 2 + mu * static_cast<Real>(deviations));
      const auto exact = static_cast<double>(gaussian_delta(epsilon, mu));
      const auto bracket = accountant.delta(epsilon, c.uses);
      EXPECT_LE(bracket.lower, exact * (1 + 1e-12)) << c.sigma << " " << c.uses << " " << epsilon;
      EXPECT_GE(bracket.upper, exact * (1 - 1e-12)) << c.sigma << " " << c.uses << " " << epsilon;
      EXPECT_LE(bracket.upper - bracket.lower, 0.05 * exact) << c.sigma << " " << c.uses << " " << epsilon;
    }
    for (const double delta : {1e-3, 1e-7, 1e-15}) {
      Real low = 0;
      Real high = 1e4;
      for (int i = 0; i < 200; ++i) {
        const Real middle = (low + high) / 2;
        (gaussian_delta(middle, mu) > static_cast<Real>(delta) ? low : high) = middle;
      }
      const auto bracket = accountant.epsilon(delta, c.uses);
      EXPECT_LE(bracket.lower, static_cast<double>(high) * (1 + 1e-12)) << c.sigma << " " << c.uses << " " << delta;
      EXPECT_GE(bracket.upper, static_cast<double>(low) * (1 - 1e-12)) << c.sigma << " " << c.uses << " " << delta;
      EXPECT_LE(bracket.upper - bracket.lower, 2e-3 * bracket.upper) << c.sigma << " " << c.uses << " " << delta;
    }
  }
}

TEST(Composition, OfTheTrafficSettingAgreesWithTheReferenceBracket) {
  // Theorem 4.4, N = 862, Lambda = 256, T = 13893, m = 120, sigma = 4: epsilon(1e-7) after 10000 steps is in
  // [0.73958, 0.73960] for the symmetrised profile. The larger of the two directions would give 0.6310.
  auto accountant = accountant_of(256.0 / 862.0 * 120.0 / 13893.0, 4.0);
  const auto bracket = accountant.epsilon(1e-7, 10000, 1e-4);
  EXPECT_GE(bracket.upper, 0.73958);
  EXPECT_LE(bracket.upper, 0.7397);
  EXPECT_LE(bracket.lower, 0.73960);
  EXPECT_GE(bracket.lower, 0.7395);
}

// Different mechanisms -----------------------------------------------------------------------------------------------

TEST(CompositionOfSeveral, OverlapsWithDirectConvolutionFromTheRightSides) {
  struct Part {
    Pair pair;
    int uses;
  };
  const std::vector<std::vector<Part>> cases = {
      {{{0.3L, 1.5L}, 2}, {{1.0L, 4.0L}, 3}},
      {{{0.05L, 1.0L}, 4}, {{0.5L, 0.9L}, 1}},
      {{{1.0L, 6.0L}, 1}, {{0.2L, 2.0L}, 2}, {{0.7L, 3.0L}, 2}},
  };
  for (const auto& parts : cases) {
    std::vector<MechanismUse> mechanisms;
    Masses up;
    Masses down;
    for (const auto& part : parts) {
      mechanisms.push_back({one_window_pair(static_cast<double>(part.pair.q), static_cast<double>(part.pair.sigma)),
                            static_cast<std::uint64_t>(part.uses)});
      const Real step = 0.015L;
      const auto up_k = fold(rounded_loss(part.pair, Direction::symmetrised, step, Side::up), part.uses);
      const auto down_k = fold(rounded_loss(part.pair, Direction::symmetrised, step, Side::down), part.uses);
      up = up.at.empty() ? up_k : convolve(up, up_k);
      down = down.at.empty() ? down_k : convolve(down, down_k);
    }
    Accountant accountant(mechanisms);
    for (const double epsilon : {0.0, 0.2, 1.0, 3.0}) {
      const auto bracket = accountant.delta(epsilon, 1, 1e-3);
      EXPECT_LE(bracket.lower, up.delta(epsilon)) << parts.size() << " parts, " << epsilon;
      EXPECT_GE(bracket.upper, down.delta(epsilon)) << parts.size() << " parts, " << epsilon;
      EXPECT_LE(bracket.upper - bracket.lower, 2e-3 * bracket.upper) << epsilon;
      EXPECT_LE(up.delta(epsilon) - down.delta(epsilon), 0.2 * bracket.upper)
          << epsilon;  // the other side tells something
    }
    // ε and δ are one curve.
    const auto epsilon = accountant.epsilon(1e-5, 1, 1e-3);
    EXPECT_LE(accountant.delta(epsilon.upper, 1, 1e-4).lower, 1e-5);
    EXPECT_GE(accountant.delta(epsilon.lower, 1, 1e-4).upper, 1e-5);
  }
}

TEST(CompositionOfSeveral, OfOneMechanismInPartsIsThatOfTheWhole) {
  const auto pair = one_window_pair(0.01, 2.0);
  Accountant whole(pair);
  Accountant parts(std::vector<MechanismUse>{{pair, 300}, {pair, 700}});
  for (const double epsilon : {0.1, 0.5, 1.0}) {
    const auto one = whole.delta(epsilon, 1000, 1e-4);
    const auto other = parts.delta(epsilon, 1, 1e-4);
    EXPECT_LE(std::max(one.lower, other.lower), std::min(one.upper, other.upper)) << epsilon;
    EXPECT_LE(other.upper, one.upper * 1.001) << epsilon;
  }
  const auto one = whole.epsilon(1e-6, 3000, 1e-4);
  const auto other = parts.epsilon(1e-6, 3, 1e-4);
  EXPECT_LE(std::max(one.lower, other.lower), std::min(one.upper, other.upper));
  EXPECT_EQ(parts.max_uses(other.upper, 1e-6), 3U);
}

// Losses of which one reaches far and the other hardly anywhere stand on one grid.
TEST(CompositionOfSeveral, HoldsForLossesOfDifferentScales) {
  const std::vector<std::vector<MechanismUse>> cases = {
      {{one_window_pair(1.0, 1.0), 1}, {one_window_pair(1.0, 400.0), 1}},
      {{one_window_pair(0.01, 1.0), 1000}, {one_window_pair(0.01, 20.0), 1000}},
      {{one_window_pair(0.01, 1.0), 10}, {one_window_pair(0.001, 50.0), 10}},
      {{one_window_pair(1.0, 4.0), 20}, {one_window_pair(0.001, 200.0), 2000}},
  };
  for (const auto& mechanisms : cases) {
    const auto together = Accountant(mechanisms).epsilon(1e-6, 1, 1e-2);
    const auto first = Accountant(mechanisms[0].pair).epsilon(1e-6, mechanisms[0].uses);
    const auto second = Accountant(mechanisms[1].pair).epsilon(1e-6, mechanisms[1].uses);
    EXPECT_GE(together.upper, std::max(first.lower, second.lower));
    EXPECT_LE(together.lower, first.upper + second.upper);
    EXPECT_GT(together.lower, 0.97 * together.upper);
  }
  // Two Gaussians are one: (2/1)² + (2/400)² = μ².
  const double mu = std::hypot(2.0, 2.0 / 400.0);
  const auto both = Accountant(cases[0]).delta(3.0, 1, 1e-3);
  const auto exact = static_cast<double>(gaussian_delta(3.0L, mu));
  EXPECT_LE(both.lower, exact * (1.0 + 1e-9));
  EXPECT_GE(both.upper, exact * (1.0 - 1e-9));
}

// Mechanisms of very different sizes, and many of them: still a bracket, and not a wide one.
TEST(CompositionOfSeveral, HoldsForUnlikeMechanisms) {
  Accountant accountant(std::vector<MechanismUse>{
      {one_window_pair(1e-4, 1.0), 20000},
      {one_window_pair(1.0, 30.0), 10},
      {DominatingPair({{0.0, 0.9}, {2.0, 0.08}, {4.0, 0.02}}, 3.0, DominatingPair::Against::mirror), 200}});
  const auto bracket = accountant.epsilon(1e-6, 1, 1e-3);
  EXPECT_GT(bracket.lower, 0.99 * bracket.upper);
  for (const auto& m : accountant.mechanisms())
    EXPECT_GT(bracket.upper, Accountant(m.pair).epsilon(1e-6, m.uses).lower);
  EXPECT_THROW(Accountant(std::vector<MechanismUse>{}), PrivacyError);
  EXPECT_THROW(Accountant(std::vector<MechanismUse>{{one_window_pair(0.1, 1.0), 0}}), PrivacyError);
}

TEST(CompositionOfSeveral, ChargesTheTailOfEveryPart) {
  const double tail = 1e-4;
  const auto pair = one_window_pair(0.02, 1.0);
  const double step = loss_scale(pair).deviation / 20.0;
  const auto cut = [&](double t) { return discretise(pair, step, 20.0 * step, Rounding::pessimistic, t); };
  // Parts that are cut and parts that are not, in either order: the same is charged.
  std::vector<double> bounds;
  for (const bool first : {true, false}) {
    std::vector<ProductLoss::Part> parts;
    parts.push_back({cut(first ? tail : 0.0), 2});
    parts.push_back({cut(first ? 0.0 : tail), 2});
    const ProductLoss loss(std::move(parts));
    Composer composer(loss);
    const double epsilon = 2.0;
    bounds.push_back(composer.compose(1, best_tilt_for_epsilon(loss, 1, epsilon)).delta(epsilon));
  }
  EXPECT_NEAR(bounds[0], bounds[1], 1e-3 * bounds[0]);
  EXPECT_GE(bounds[0], 2.0 * cut(tail).infinite_mass);
}

// Why the symmetrised profile is composed ----------------------------------------------------------------------------

TEST(Composition, CoversMechanismsThatChooseTheirDirectionAsTheyGo) {
  // q = 0.2, sigma = 0.8, three uses. A mechanism may choose (P, Q) or (Q, P) anew at each step, by what it has seen:
  //   d_j(eps) = max over directions of E d_{j-1}(eps - loss),  d_0(eps) = (1 - e^eps)+,
  // here with losses rounded down, so d_3 is a lower bound for a real adversary. The product of either direction with
  // itself is below it although rounded up (epsilon = 1: 0.2493 < 0.2537): the larger of the two is no upper bound.
  // The product of H_sym is one (0.2668).
  const Pair pair{0.2, 0.8};
  const Real step = 0.02L;
  const int uses = 3;
  const Masses down[2] = {rounded_loss(pair, Direction::forward, step, Side::down),
                          rounded_loss(pair, Direction::backward, step, Side::down)};
  const Masses up[2] = {fold(rounded_loss(pair, Direction::forward, step, Side::up), uses),
                        fold(rounded_loss(pair, Direction::backward, step, Side::up), uses)};
  const int n = down[0].last();
  auto accountant = accountant_of(0.2, 0.8);
  for (const int at : {25, 50, 100}) {  // epsilon = 0.5, 1, 2
    const int reach = uses * n + at;
    const auto center = static_cast<std::size_t>(reach);
    std::vector<double> d(2 * center + 1);
    for (int e = -reach; e <= reach; ++e)
      d[static_cast<std::size_t>(e + reach)] = e < 0 ? static_cast<double>(-std::expm1(step * e)) : 0.0;
    for (int j = 1; j <= uses; ++j) {
      auto next = d;
      const int width = (uses - j) * n;  // where later uses look
      for (int e = at - width; e <= at + width; ++e) {
        double best = 0.0;
        for (const auto& law : down) {
          double sum = 0.0;
          for (int l = -n; l <= n; ++l)
            if (e - l <= reach && e - l >= -reach)
              sum += law.at[static_cast<std::size_t>(l + n)] * d[static_cast<std::size_t>(e - l + reach)];
          best = std::max(best, sum);
        }
        next[static_cast<std::size_t>(e + reach)] = best;
      }
      d = std::move(next);
    }
    const double adaptive = d[static_cast<std::size_t>(at + reach)];
    const auto epsilon = static_cast<double>(step * at);
    const auto symmetrised = accountant.delta(epsilon, static_cast<std::uint64_t>(uses));
    EXPECT_GE(symmetrised.upper, adaptive) << epsilon;
    for (const auto& fixed : up) EXPECT_GT(adaptive, fixed.delta(epsilon)) << epsilon;
  }
}

// Properties ---------------------------------------------------------------------------------------------------------

TEST(Accountants, KeepTheOrderOfTheirArguments) {
  test::Draw draw(1);
  const double precision = 0.02;
  for (int i = 0; i < 8; ++i) {
    const double q = draw.log_between(1e-4, 1.0);
    const double sigma = draw.log_between(0.6, 10.0);
    const auto uses = static_cast<std::uint64_t>(draw.log_between(1.0, 2000.0));
    const double delta = draw.log_between(1e-12, 1e-2);
    SCOPED_TRACE(testing::Message() << "q " << q << " sigma " << sigma << " uses " << uses << " delta " << delta);
    const auto base = accountant_of(q, sigma).epsilon(delta, uses, precision);
    EXPECT_LE(base.lower, base.upper);
    EXPECT_GE(base.lower, 0.0);
    ASSERT_TRUE(std::isfinite(base.upper));
    // Truth is monotone, so a lower end never passes the upper end of what costs more.
    EXPECT_LE(base.lower, accountant_of(q, sigma).epsilon(delta, 2 * uses, precision).upper);
    EXPECT_LE(base.lower, accountant_of(std::min(1.0, 1.5 * q), sigma).epsilon(delta, uses, precision).upper);
    EXPECT_LE(accountant_of(q, 1.5 * sigma).epsilon(delta, uses, precision).lower, base.upper);
    EXPECT_LE(accountant_of(q, sigma).epsilon(2 * delta, uses, precision).lower, base.upper);
    // Twice the uses or half the noise cost clearly more than the width of a bracket.
    if (base.upper > 0.0) {
      EXPECT_LT(base.upper, accountant_of(q, sigma).epsilon(delta, 2 * uses, precision).upper);
      EXPECT_LT(base.upper, accountant_of(q, 0.7 * sigma).epsilon(delta, uses, precision).upper);
    }
  }
}

TEST(Accountants, AnswerEpsilonAndDeltaConsistently) {
  test::Draw draw(2);
  for (int i = 0; i < 8; ++i) {
    const double q = draw.log_between(1e-4, 1.0);
    const double sigma = draw.log_between(0.6, 10.0);
    const auto uses = static_cast<std::uint64_t>(draw.log_between(1.0, 5000.0));
    const double delta = draw.log_between(1e-14, 1e-2);
    SCOPED_TRACE(testing::Message() << "q " << q << " sigma " << sigma << " uses " << uses << " delta " << delta);
    auto accountant = accountant_of(q, sigma);
    const auto epsilon = accountant.epsilon(delta, uses);
    // truth(upper) <= delta <= truth(lower) if lower > 0.
    EXPECT_LE(accountant.delta(epsilon.upper, uses).lower, delta * (1 + 1e-12));
    if (epsilon.lower > 0.0) { EXPECT_GE(accountant.delta(epsilon.lower, uses).upper, delta * (1 - 1e-12)); }
  }
}

TEST(Accountants, NarrowWithPrecisionAndKeepOverlapping) {
  test::Draw draw(3);
  for (int i = 0; i < 4; ++i) {
    const double q = draw.log_between(0.01, 1.0);
    const double sigma = draw.log_between(0.8, 8.0);
    const auto uses = static_cast<std::uint64_t>(draw.log_between(10.0, 3000.0));
    SCOPED_TRACE(testing::Message() << "q " << q << " sigma " << sigma << " uses " << uses);
    double before = 1e300;
    Interval all{0.0, 1e300};
    for (const double precision : {3e-2, 2e-3, 1e-4}) {
      const auto bracket = accountant_of(q, sigma).epsilon(1e-6, uses, precision);
      all = {std::max(all.lower, bracket.lower), std::min(all.upper, bracket.upper)};
      EXPECT_LE(all.lower, all.upper);  // one number lies in all of them
      EXPECT_LE(bracket.upper - bracket.lower, precision * bracket.upper);
      EXPECT_LT(bracket.upper - bracket.lower, before);
      before = bracket.upper - bracket.lower;
    }
  }
}

TEST(Accountants, CertifyTheMostUses) {
  const struct {
    double q, sigma, epsilon, delta;
  } cases[] = {{0.01, 2.0, 2.0, 1e-6},
               {256.0 / 862.0 * 120.0 / 13893.0, 4.0, 0.25, 1e-7},
               {1.0, 30.0, 1.0, 1e-5},
               {0.2, 8.0, 3.0, 1e-10}};
  for (const auto& c : cases) {
    SCOPED_TRACE(testing::Message() << "q " << c.q << " sigma " << c.sigma);
    auto accountant = accountant_of(c.q, c.sigma);
    const auto most = accountant.max_uses(c.epsilon, c.delta, max_uses_ever, 1e-4);
    ASSERT_GE(most, 1U);
    EXPECT_LE(accountant.delta(c.epsilon, most, 1e-4).upper, c.delta * (1 + 1e-14));
    // One more is not certified on the same grid, and a few per mille more are refuted.
    EXPECT_LT(accountant.max_uses(c.epsilon, c.delta, most + 1, 1e-4), most + 1);
    const auto more = most + most / 200 + 1;
    EXPECT_GT(accountant.delta(c.epsilon, more, 1e-4).lower, c.delta);
    // A limit below is all certified; a coarser grid certifies no more.
    EXPECT_EQ(accountant.max_uses(c.epsilon, c.delta, most - most / 3, 1e-4), most - most / 3);
    EXPECT_LE(accountant.max_uses(c.epsilon, c.delta, max_uses_ever, 1e-3), most);
  }
  // 1276 steps of the traffic setting are certified feasible for 0.25 at 1e-7, within 0.1 %.
  const auto traffic = accountant_of(cases[1].q, 4.0).max_uses(0.25, 1e-7);
  EXPECT_GE(traffic, 1274U);
  EXPECT_LE(traffic, 1277U);
  EXPECT_EQ(accountant_of(0.5, 0.5).max_uses(0.01, 1e-9), 0U);
}

TEST(Accountants, GoDeepIntoTheTail) {
  auto accountant = accountant_of(0.01, 1.2);
  for (const double delta : {1e-10, 1e-15, 1e-25}) {
    const auto bracket = accountant.epsilon(delta, 1000);
    EXPECT_LE(bracket.upper - bracket.lower, 1e-3 * bracket.upper) << delta;
    const auto back = accountant.delta(bracket.upper, 1000);
    EXPECT_LE(back.lower, delta);
    EXPECT_GE(back.upper, 0.95 * delta) << "the tail is not resolved";
  }
  // Traffic, k = 10000, epsilon = 1.3: the truth is 1.29e-17.
  const auto traffic = accountant_of(256.0 / 862.0 * 120.0 / 13893.0, 4.0).delta(1.3, 10000);
  EXPECT_GE(traffic.upper, 1.28e-17);
  EXPECT_LE(traffic.lower, 1.30e-17);
  EXPECT_LE(traffic.upper - traffic.lower, 0.02 * traffic.upper);
}

TEST(Accountants, NeverLoseTheTailAtSmallNoise) {
  // Densities of Q underflow 38 deviations out, where P still has mass 1e-31.
  for (const double sigma : {0.074, 0.1, 0.2}) {
    auto accountant = accountant_of(1.0, sigma);
    for (const double epsilon : {2.0, 100.0, 500.0, 600.0, 670.0}) {
      const double exact = accountant.mechanisms().front().pair.symmetrised_profile(epsilon);
      EXPECT_GE(accountant.delta(epsilon, 1).upper, exact * (1 - 1e-9)) << sigma << " " << epsilon;
    }
  }
}

TEST(Accountants, AnswerAtTheEdgesOfTheirRange) {
  // Losses in the ten thousands: no exponential may overflow or vanish where it matters. q = 1: μ = 2 √k / σ.
  for (const double sigma : {0.02, 0.0224}) {
    for (const std::uint64_t uses : {2U, 5U}) {
      const double mu = 2.0 * std::sqrt(static_cast<double>(uses)) / sigma;
      const auto bracket = accountant_of(1.0, sigma).epsilon(1e-5, uses);
      // The least ε lies 4 to 4.5 deviations μ above the mean loss μ²/2 (Φ̄(4.26) = 1e-5, less what e^ε Q takes away).
      EXPECT_GE(bracket.upper, 0.5 * mu * mu + 3.0 * mu);
      EXPECT_LE(bracket.lower, 0.5 * mu * mu + 4.5 * mu);
      EXPECT_LE(bracket.upper - bracket.lower, 1e-3 * bracket.upper);
    }
  }
  // A wide mixture at small noise, where middle components overflow first and masses vanish.
  const auto wide = Accountant(flat_optimistic(39, 33, 13, 0.062444691824551896)).epsilon(3.2e-11, 2);
  EXPECT_GT(wide.lower, 0.0);
  EXPECT_LE(wide.upper - wide.lower, 1e-3 * wide.upper);
  EXPECT_TRUE(std::isfinite(flat_optimistic(10000, 32, 1000, 1.0).loss(40.0)));
  // One window in a million, many uses: single large losses decide.
  const auto rare = accountant_of(1e-6, 1.0).epsilon(1e-6, 1000);
  EXPECT_GT(rare.lower, 0.0);
  EXPECT_LE(rare.upper - rare.lower, 0.02 * rare.upper);
  // Beyond what fits a computation: refused, not tried.
  EXPECT_THROW((void)Accountant(with_replacement_upper(500, 0.05, 0.01, 0.5)).epsilon(1e-7, 1000), PrivacyError);
  EXPECT_THROW((void)with_replacement_upper(1'000'000'000, 0.5, 1.0, 1.0), PrivacyError);
}

TEST(Accountants, AnswerNothingForNothing) {
  auto accountant = accountant_of(0.1, 1.0);
  EXPECT_EQ(accountant.epsilon(1e-5, 0).upper, 0.0);
  EXPECT_EQ(accountant.delta(1.0, 0).upper, 0.0);
  EXPECT_EQ(accountant.max_uses(1.0, 1e-5, 0), 0U);
  // delta(0) of one use is 0.1 erf(1/sqrt 2) = 0.0683: at 0.07 no epsilon is needed.
  const auto none = accountant.epsilon(0.07, 1);
  EXPECT_EQ(none.lower, 0.0);
  EXPECT_EQ(none.upper, 0.0);
}

TEST(Accountants, RefuseWhatTheyCannotAnswer) {
  auto accountant = accountant_of(0.1, 1.0);
  for (const double delta : {0.0, 1.0, -1.0, std::nan("")})
    EXPECT_THROW((void)accountant.epsilon(delta, 1), PrivacyError) << delta;
  for (const double epsilon : {-1e-9, std::nan(""), static_cast<double>(INFINITY)})
    EXPECT_THROW((void)accountant.delta(epsilon, 1), PrivacyError) << epsilon;
  for (const double precision : {0.0, 0.9, std::nan("")})
    EXPECT_THROW((void)accountant.delta(1.0, 1, precision), PrivacyError) << precision;
  EXPECT_THROW((void)accountant.delta(1.0, max_uses_ever + 1), PrivacyError);
  EXPECT_THROW((void)discretise(accountant.mechanisms().front().pair, 1e-9, 1.0, Rounding::pessimistic), PrivacyError);
  EXPECT_THROW((void)discretise(accountant.mechanisms().front().pair, 0.0, 1.0, Rounding::pessimistic), PrivacyError);
}

TEST(Calibration, FindsTheLeastNoiseThatIsEnough) {
  const auto enough = [](double sigma) { return accountant_of(0.02, sigma).delta(1.0, 500).upper <= 1e-6; };
  const double sigma = calibrate_noise(enough, 1e-3);
  EXPECT_TRUE(enough(sigma));
  EXPECT_FALSE(enough(sigma / 1.0011));
  // A step function at 0.037 and at 300: found from above, within the tolerance.
  for (const double edge : {0.037, 0.9, 300.0}) {
    const double found = calibrate_noise([edge](double s) { return s >= edge; }, 1e-3);
    EXPECT_GE(found, edge);
    EXPECT_LE(found, 1.001 * edge);
  }
  EXPECT_THROW((void)calibrate_noise([](double) { return false; }), PrivacyError);
}

// Cut far inside the distribution, where what is charged for the tail is most of delta.
TEST(Composition, ChargesWhatLiesBeyondTheLastPoint) {
  const Pair pair{0.02L, 1.0L};
  const auto dominating = one_window_pair(static_cast<double>(pair.q), static_cast<double>(pair.sigma));
  const auto scale = loss_scale(dominating);
  for (const double tail : {1e-3, 1e-5}) {
    const auto cut = discretise(dominating, scale.deviation / 20.0, scale.deviation, Rounding::pessimistic, tail);
    ASSERT_LT(cut.largest_loss(), static_cast<double>(pair.largest_loss()));
    EXPECT_GE(cut.infinite_mass, 0.1 * tail);
    for (const std::uint64_t uses : {1, 4, 16}) {
      // The largest sum of grid losses: what is beyond it is the tail's alone.
      const double epsilon = 0.999 * cut.largest_loss();
      Composer composer(cut);
      const double bound = composer.compose(uses, best_tilt_for_epsilon(cut, uses, epsilon)).delta(epsilon);
      // At least that a single use passes epsilon, in any of them.
      const double truth = Accountant(dominating).delta(epsilon, uses).lower;
      EXPECT_GE(bound, truth) << tail << ", " << uses << " uses";
      EXPECT_LE(bound, 1.5 * truth + 2.0 * static_cast<double>(uses) * cut.infinite_mass)
          << tail << ", " << uses << " uses";
    }
  }
}

}  // namespace
}  // namespace tsdp::privacy
