// Adaptive composition (tsdp.6): the cover of triangles, their profiles, the game and its brackets against values
// computed in other ways.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <random>
#include <vector>

#include "privacy/adaptive/adaptive_curve.h"
#include "privacy/adaptive/adaptive_game.h"
#include "privacy/adaptive/shared_game.h"
#include "privacy/adaptive/triangle_pairs.h"
#include "privacy/theorems/noise_choice.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/privacy/accountant/accountant.h"

namespace tsdp::privacy {
namespace {

// Traffic with batches of 256 of 862 series and 120 of 13,893 windows touched.
constexpr double traffic_rate = 256.0 / 862.0 * 120.0 / 13893.0;

DominatingPair step_pair(double q, double sigma) { return DominatingPair({{0.0, 1.0 - q}, {2.0, q}}, sigma); }

/// The matrix of three points, in units of σ².
template <std::size_t dimensions>
TriangleGram gram_of(const std::array<std::array<double, dimensions>, 3>& points, double sigma) {
  TriangleGram out{0.0, 0.0, 0.0};
  for (std::size_t d = 0; d < dimensions; ++d) {
    const double a = (points[1][d] - points[0][d]) / sigma;
    const double b = (points[2][d] - points[0][d]) / sigma;
    out.r += a * a;
    out.s += b * b;
    out.t += a * b;
  }
  return out;
}

template <std::size_t dimensions>
std::array<std::array<double, dimensions>, 3> points_of_the_ball(std::mt19937_64& engine) {
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  std::array<std::array<double, dimensions>, 3> out;
  // Half of them on the sphere, where the hard ones are.
  const bool on_sphere = uniform(engine) < 0.5;
  for (auto& point : out) {
    double square = 0.0;
    for (auto& x : point) {
      x = normal(engine);
      square += x * x;
    }
    const double radius = (on_sphere ? 1.0 : std::pow(uniform(engine), 1.0 / dimensions)) / std::sqrt(square);
    for (auto& x : point) x *= radius;
  }
  return out;
}

bool is_below(const TriangleGram& a, const TriangleGram& b) {
  const double r = b.r - a.r;
  const double s = b.s - a.s;
  const double t = b.t - a.t;
  return r >= 0.0 && s >= 0.0 && r * s >= t * t - 1e-12 * (r + s);
}

TEST(TriangleCover, EveryTriangleOfTheBallIsBelowAMember) {
  for (const double sigma : {1.0, 4.0}) {
    SCOPED_TRACE(cat("sigma ", sigma));
    const auto cover = triangle_cover(sigma, 1e-3);
    std::mt19937_64 engine(1);
    int uncovered = 0;
    const auto check = [&](const TriangleGram& g) {
      uncovered += std::none_of(cover.begin(), cover.end(),
                                [&](const TriangleGram& c) { return is_below(g, c) || is_below(g, c.swapped()); });
    };
    for (int i = 0; i < 700; ++i) {
      check(gram_of(points_of_the_ball<1>(engine), sigma));
      check(gram_of(points_of_the_ball<2>(engine), sigma));
      check(gram_of(points_of_the_ball<5>(engine), sigma));
    }
    // Right-angled and inscribed: the extreme ones.
    for (int i = 0; i <= 300; ++i) {
      const double angle = std::numbers::pi * i / 300.0;
      const std::array<std::array<double, 2>, 3> right{{{std::cos(angle), std::sin(angle)}, {1.0, 0.0}, {-1.0, 0.0}}};
      check(gram_of(right, sigma));
      check(gram_of<2>({right[1], right[0], right[2]}, sigma));
    }
    EXPECT_EQ(uncovered, 0);
    for (const auto& c : cover) {
      EXPECT_LE(c.t, c.r);
      EXPECT_LE(c.t, c.s);
      EXPECT_GE(c.t, 0.0);
      EXPECT_GE(c.r * c.s, c.t * c.t);
    }
  }
}

/// H_α of a matrix by the trapezoidal rule in the plane, where the densities relative to N(u) are those of correlated
/// lognormals.
double by_plane(const TriangleGram& g, double q, double alpha) {
  const double a = std::sqrt(g.r);
  const double b = g.r > 0.0 ? g.t / a : 0.0;
  const double c = std::sqrt(std::max(0.0, g.s - b * b));
  constexpr double step = 0.02;
  double sum = 0.0;
  for (double x = -8.0; x <= 8.0 + a; x += step)
    for (double y = -8.0; y <= 8.0 + c; y += step) {
      const double u = std::exp(a * x - 0.5 * g.r);
      const double v = std::exp(b * x + c * y - 0.5 * g.s);
      const double value = (1.0 - q) * (1.0 - alpha) + q * u - alpha * q * v;
      if (value > 0.0) sum += value * std::exp(-0.5 * (x * x + y * y));
    }
  return sum * step * step / (2.0 * std::numbers::pi);
}

TEST(TriangleProfile, IsAboveThePlaneIntegralAndClose) {
  std::mt19937_64 engine(2);
  for (const double q : {0.003, 0.1, 0.6})
    for (const double sigma : {1.0, 4.0})
      for (int i = 0; i < 3; ++i) {
        // (Profiles are of matrices with t between 0 and the others.)
        TriangleGram g{-1.0, 0.0, 0.0};
        while (!(g.t >= 0.0 && g.t <= g.r && g.t <= g.s)) g = gram_of(points_of_the_ball<2>(engine), sigma);
        const TriangleProfile profile(g, q, 0.05);
        for (const double excess : {0.0, 0.3 * q, 2.0 * q}) {
          const double expected = by_plane(g, q, 1.0 + excess);
          const double found = profile.upper(std::log1p(excess));
          EXPECT_GE(found, expected * (1.0 - 1e-3) - 1e-9 * q) << q << ", " << sigma << ", " << excess;
          EXPECT_LE(found, expected * (1.0 + 4e-3) + 1e-6 * q) << q << ", " << sigma << ", " << excess;
        }
      }
}

TEST(TriangleProfile, CornersAreTheoremFourPointFour) {
  for (const double q : {0.003, 0.1})
    for (const double sigma : {0.7, 4.0}) {
      const auto pair = step_pair(q, sigma);
      // What chords cost: less than a third of their square in r.
      const auto wider = step_pair(q, sigma / std::sqrt(1.0 + 0.05 * 0.05 / 3.0));
      const TriangleGram corner{4.0 / (sigma * sigma), 0.0, 0.0};
      const TriangleProfile remove(corner, q, 0.05);
      const TriangleProfile add(corner.swapped(), q, 0.05);
      for (const double epsilon : {0.0, 0.2 * q, 0.8 * q, 3.0 * q, 0.5}) {
        const double a = pair.profile(Direction::remove, epsilon);
        const double b = pair.profile(Direction::add, epsilon);
        EXPECT_GE(remove.upper(epsilon), a * (1.0 - 1e-12));
        EXPECT_LE(remove.upper(epsilon), wider.profile(Direction::remove, epsilon) + 1e-15);
        EXPECT_GE(add.upper(epsilon), b * (1.0 - 1e-12));
        EXPECT_LE(add.upper(epsilon), wider.profile(Direction::add, epsilon) + 1e-12);
      }
    }
}

/// The game's values of a second implementation, made from the proof's definitions alone, by integration in the plane
/// over a grid of angles; and what composing the symmetrised pair gives.
struct GameValue {
  double sigma, q;
  std::size_t k;
  double alpha, game, accuracy, symmetrised;
};
const std::vector<GameValue> game_values = {{1, 0.1, 1, 1.0, 0.068268949214, 1e-12, 0.068268949214},
                                            {1, 0.1, 1, 1.35, 0.041844172936, 1e-12, 0.041844172936},
                                            {1, 0.1, 2, 1.0, 0.121982651018, 4e-12, 0.126215924136},
                                            {1, 0.1, 2, 1.05, 0.111387881324, 3e-12, 0.115489167599},
                                            {1, 0.1, 2, 1.35, 0.079749345420, 2e-12, 0.081590342837},
                                            {1, 0.1, 3, 1.0, 0.166110548, 3e-8, 0.176252411104},
                                            {1, 0.1, 3, 1.05, 0.153693221067, 7e-8, 0.163216844702},
                                            {1, 0.1, 3, 1.35, 0.114274861312, 2e-7, 0.11921969347},
                                            {1, 0.5, 1, 2.0, 0.245966339589, 1e-12, 0.245966339589},
                                            {1, 0.5, 2, 1.0, 0.522195253031, 2e-11, 0.537866632143},
                                            {1, 0.5, 2, 2.0, 0.409639648301, 2e-11, 0.426478768035},
                                            {4, 0.00256519, 1, 1.0, 0.000506400959, 1e-12, 0.000506400959},
                                            {4, 0.00256519, 2, 1.0, 0.000774848744, 1e-12, 0.000808543207},
                                            {4, 0.00256519, 3, 1.0, 0.000971788754, 1e-10, 0.001030580976}};

TEST(AdaptiveGame, IsAboveTheValuesOfASecondImplementation) {
  for (const auto& [sigma, q] : std::vector<std::pair<double, double>>{{1.0, 0.1}, {1.0, 0.5}, {4.0, 0.00256519}}) {
    AdaptiveGame game(q, sigma);
    game.play(3);
    for (const auto& v : game_values) {
      if (v.sigma != sigma || v.q != q) continue;
      SCOPED_TRACE(cat("sigma ", v.sigma, ", q ", v.q, ", k ", v.k, ", alpha ", v.alpha));
      const double found = game.profiles().profile(v.k, std::log(v.alpha));
      EXPECT_GE(found, v.game - v.accuracy);
      EXPECT_LE(found, v.game * 1.02);
      if (v.k > 1) { EXPECT_LT(v.game, v.symmetrised); }
    }
  }
}

// A mirror triangle (v ⊥ v′) first, then the better direction: above what the two directions alone give, 7.7366e-4.
TEST(AdaptiveGame, CoversStrategiesThatTheTwoDirectionsDoNot) {
  AdaptiveGame game(traffic_rate, 4.0);
  game.play(2);
  const double side = 2.0 / 16.0;
  const double step = 0.02;
  const auto pair = step_pair(traffic_rate, 4.0);
  double value = 0.0;  // E_B[W_1(A/B)] = E_B[L H_{1/L}], the better direction
  for (double x = -9.0; x <= 9.0; x += step)
    for (double y = -9.0; y <= 9.0; y += step) {
      const double a = 1.0 + traffic_rate * std::expm1(std::sqrt(side) * x - 0.5 * side);
      const double b = 1.0 + traffic_rate * std::expm1(std::sqrt(side) * y - 0.5 * side);
      const double loss = std::log(a / b);
      // L H_{1/L} = L H_{e^{−loss}}: for loss > 0 by H_α = 1 − α + α H_{1/α} of the other order.
      const double w = loss <= 0.0 ? std::exp(loss) * pair.symmetrised_profile(-loss)
                                   : std::exp(loss) - 1.0 + pair.symmetrised_profile(loss);
      value += b * w * std::exp(-0.5 * (x * x + y * y));
    }
  value *= step * step / (2.0 * std::numbers::pi);
  EXPECT_NEAR(value, 7.7477e-4, 2e-8);
  EXPECT_GE(game.profiles().profile(2, 0.0), value);
  EXPECT_LE(game.profiles().profile(2, 0.0), 1.01 * value);
}

TEST(AdaptiveGame, GrowsWithStepsAndFallsWithEpsilon) {
  AdaptiveGame game(0.02, 2.0);
  game.play(12);
  for (std::size_t t = 1; t <= 12; ++t) {
    double before = 1.0;
    for (double epsilon = 0.0; epsilon < 3.0; epsilon += 0.01) {
      const double now = game.profiles().profile(t, epsilon);
      EXPECT_LE(now, before);
      EXPECT_GE(now, game.profiles().profile(t - 1, epsilon) * (1.0 - 1e-9) - 1e-13);
      before = now;
    }
    EXPECT_LT(game.profiles().rows()[t].error, 1e-11);
  }
  EXPECT_EQ(game.profiles().profile(0, 0.0), 0.0);
}

// Rounds played at once and in parts, and lists of candidates kept or not, are the same rounds.
TEST(AdaptiveGame, DoesNotDependOnHowItIsPlayed) {
  AdaptiveGame at_once(0.01, 4.0);
  at_once.play(40);
  AdaptiveGame in_parts(0.01, 4.0);
  for (std::size_t t = 1; t <= 40; ++t) in_parts.play(t);
  const auto& one = at_once.profiles().rows()[40];
  const auto& other = in_parts.profiles().rows()[40];
  ASSERT_EQ(one.values.size(), other.values.size());
  EXPECT_EQ(one.stride, other.stride);
  for (std::size_t n = 0; n < one.values.size(); ++n) EXPECT_NEAR(one.values[n], other.values[n], 1e-14);
}

// What the process keeps of one game is not handed out for another of the same noise, or of the same share.
TEST(SharedGames, AreKnownByShareAndNoise) {
  const std::vector<std::pair<double, double>> settings = {{0.1, 3.0}, {0.5, 3.0}, {0.1, 4.0}, {0.00256519, 4.0}};
  std::vector<double> own;
  for (const auto& [q, sigma] : settings) {
    AdaptiveGame game(q, sigma);
    game.play(2);
    own.push_back(game.profiles().profile(2, 0.3));
  }
  for (const bool again : {false, true})
    for (std::size_t i = 0; i < settings.size(); ++i) {
      const auto& [q, sigma] = settings[i];
      EXPECT_EQ(game_profiles(q, sigma, 2)->profile(2, 0.3), own[i])
          << "q " << q << ", sigma " << sigma << (again ? ", again" : "");
    }
}

TEST(AdaptiveCurve, LiesBetweenOneDirectionAndTheSymmetrisedPair) {
  const auto pair = step_pair(traffic_rate, 4.0);
  // Short blocks, so that they are composed.
  AdaptiveCurve curve(pair, 50);
  Accountant symmetrised(pair);
  Accountant remove(pair, Direction::remove);
  for (const std::uint64_t steps : {2, 40, 50, 51, 1000, 10'000}) {
    SCOPED_TRACE(cat(steps, " steps"));
    const auto found = curve.epsilon(1e-7, steps);
    EXPECT_LE(found.lower, found.upper);
    EXPECT_GE(found.lower, remove.epsilon(1e-7, steps).lower * (1.0 - 1e-6));
    EXPECT_LT(found.upper, symmetrised.epsilon(1e-7, steps).upper);
    const auto delta = curve.delta(found.upper, steps);
    EXPECT_LE(delta.upper, 1.001e-7);
    EXPECT_LE(delta.lower, delta.upper);
  }
  // One use is Theorem 4.4, from its closed form.
  EXPECT_EQ(curve.epsilon(1e-7, 1).upper, symmetrised.epsilon(1e-7, 1).upper);
  // 0.2200 and 0.7398 of the symmetrised pair; 0.19258 and 0.63107 of the game's lower end.
  EXPECT_LE(curve.epsilon(1e-7, 1000).upper, 0.1985);
  EXPECT_GE(curve.epsilon(1e-7, 1000).upper, 0.19258);
  EXPECT_LE(curve.epsilon(1e-7, 10'000).upper, 0.663);
  EXPECT_GE(curve.epsilon(1e-7, 10'000).upper, 0.63107);
}

// The fewest tries: enough noise, and a thousandth less is not.
TEST(AdaptiveCurve, TheLeastNoiseIsFoundInFewTries) {
  const PrivacyTarget target{0.05, 1e-6, 40};
  const auto theorem_at = [&](double sigma) {
    SubsamplingScheme::Parameters p;
    p.lengths = SeriesLengths::equal(862, 13916);
    p.context_length = 96;
    p.forecast_length = 24;
    p.batch_size = 256;
    return composed_adaptively(apply_theorem(SubsamplingScheme(std::move(p)), {}, sigma), 50);
  };
  const double sigma = least_noise(target, theorem_at);
  EXPECT_TRUE(theorem_at(sigma).curve()->certifies(target.epsilon, target.delta, target.uses));
  EXPECT_FALSE(theorem_at(sigma / 1.002).curve()->certifies(target.epsilon, target.delta, target.uses));
  const double of_pair = calibrate_noise(
      [&](double s) { return Accountant(theorem_at(s).pair).certifies(target.epsilon, target.delta, target.uses); });
  EXPECT_LT(sigma, 0.97 * of_pair);
}

// Targets that hardly any noise meets, or that a release after the steps uses up.
TEST(AdaptiveCurve, TheLeastNoiseIsCertifiedAtTheEdges) {
  const auto at = [](double q, double pure) {
    return [q, pure](double sigma) {
      auto out = composed_adaptively({"4.4", Bound::tight, CompositionUnit::step, 1, sigma, step_pair(q, sigma)}, 50);
      return pure > 0.0 ? followed_by_pure_release(std::move(out), pure) : out;
    };
  };
  struct Case {
    double q, pure;
    PrivacyTarget target;
  };
  for (const auto& [q, pure, target] :
       std::vector<Case>{{1e-8, 0.0, {1.0, 1e-6, 3}}, {0.1, 0.0, {2.0, 0.9, 3}}, {0.3, 0.3, {1.0, 1e-3, 3}}}) {
    SCOPED_TRACE(cat("q ", q, ", pure ", pure));
    const double sigma = least_noise(target, at(q, pure), 1e-2);
    EXPECT_TRUE(at(q, pure)(sigma).curve()->certifies(target.epsilon, target.delta, target.uses));
  }
  EXPECT_THROW(static_cast<void>(least_noise({1.0, 1e-5, 10}, at(0.3, 1.5))), PrivacyError);
}

TEST(AdaptiveCurve, MostStepsAreCertifiedAndNoMoreAre) {
  const auto pair = step_pair(traffic_rate, 4.0);
  AdaptiveCurve curve(pair, 50);
  const auto most = curve.max_uses(0.5, 1e-7);
  EXPECT_GT(most, 5'600U);  // 4,768 of the symmetrised pair
  EXPECT_TRUE(curve.certifies(0.5, 1e-7, most));
  EXPECT_GT(curve.delta(0.5, most + most / 100).upper, 1e-7);
  EXPECT_EQ(curve.max_uses(0.5, 1e-7, 1000), 1000U);
}

// Where the game is out of reach the symmetrised composition answers.
TEST(AdaptiveCurve, FallsBackToTheSymmetrisedPair) {
  const auto pair = step_pair(0.5, 0.06);
  AdaptiveCurve curve(pair);
  Accountant symmetrised(pair);
  EXPECT_EQ(curve.delta(1.0, 3).upper, symmetrised.delta(1.0, 3).upper);
}

TEST(AdaptiveCurve, OtherPairsAreRefused) {
  EXPECT_THROW(AdaptiveCurve(DominatingPair({{2.0, 1.0}}, 1.0)), PrivacyError);
  EXPECT_THROW(AdaptiveCurve(DominatingPair({{0.0, 0.9}, {1.0, 0.1}}, 1.0)), PrivacyError);
  EXPECT_THROW(AdaptiveCurve(DominatingPair({{0.0, 0.9}, {2.0, 0.1}}, 1.0, DominatingPair::Against::mirror)),
               PrivacyError);
  EXPECT_THROW(AdaptiveCurve(DominatingPair({{0.0, 0.9}, {2.0, 0.1}}, 1.0, DominatingPair::Against::noise, 0.5)),
               PrivacyError);
  EXPECT_THROW(AdaptiveCurve(step_pair(0.1, 1.0), 0), PrivacyError);
  EXPECT_THROW(AdaptiveGame(0.0, 1.0), PrivacyError);
  EXPECT_THROW(AdaptiveGame(1.0, 1.0), PrivacyError);
  EXPECT_THROW(AdaptiveGame(0.1, 0.0), PrivacyError);
  EXPECT_THROW(AdaptiveGame(0.1, 0.05), PrivacyError);
}

}  // namespace
}  // namespace tsdp::privacy
