// Attacks on the claims about whole series: worst-case neighbours, the samplers and the normals that training uses, and
// the best test of one data set against the other. A claim fails if the attack wins more than its upper end; the attack
// must be able to reach the lower end.
//
// Error rate: shares are bracketed by Clopper–Pearson at 2.5e-7 a side, thresholds are fixed before the draws, keys are
// fixed. Each comparison errs with probability below 1e-6; a test makes fewer than ten of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

#include "privacy/theorems/series_law.h"
#include "sampling/structured_sampler.h"
#include "settings/setup.h"
#include "support/binomial_share.h"
#include "support/trials.h"
#include "tsdp/privacy/terms/scheme.h"
#include "tsdp/random/random.h"

namespace tsdp::sampling {
namespace {

using namespace privacy;
using test::share;

constexpr double window_gradient = 5.0;  // of every window, in multiples of C: clipping always acts

/// Series 0 is there, or a ghost in its place; the others' clipped gradients are `others`. Releases of all steps of
/// `epochs` epochs make a score.
struct Game {
  SubsamplingScheme::Parameters law;
  double others = 0.0;
  double sigma = 1.0;
  int epochs = 1;
  std::function<double(const std::vector<double>& releases)> score;
  std::uint64_t trials = 150'000;  ///< of the full test
  std::uint64_t seed = 1;
  /// A sample without replacement has no ghosts: the data set without the series is one shorter.
  bool shorter_without = false;
  bool clip_windows = false;  ///< planted: every window by itself, which moves the sum by λ C
};

SubsamplingScheme::Parameters scheme_of(TopLevel sampler, std::int64_t series, std::int64_t batches) {
  SubsamplingScheme::Parameters p;
  p.record = Record::series;
  p.lengths = SeriesLengths::equal(series, 9);
  p.context_length = 3;
  p.forecast_length = 2;
  p.subsequences_per_sequence = 2;
  p.top_level = sampler;
  p.batches = batches;
  return p;
}

std::vector<double> scores(const Game& game, bool with) {
  auto law = game.law;
  const bool shorter = game.shorter_without && !with;
  if (shorter) {
    // As many series a batch as before.
    law.batches.reset();
    law.batch_size = SubsamplingScheme(game.law).parameters().batch_size;
    law.lengths = SeriesLengths::equal(game.law.lengths.count() - 1, 9);
  }
  StructuredSampler sampler{SubsamplingScheme(law)};
  const auto steps = static_cast<std::size_t>(SubsamplingScheme(game.law).steps_per_epoch() * game.epochs);
  const auto lambda = static_cast<double>(law.subsequences_per_sequence);
  std::vector<double> out(game.trials), releases(steps), normals(steps);
  for (std::uint64_t trial = 0; trial < game.trials; ++trial) {
    const auto key = SecretKey::from_seed(4 * (game.seed * game.trials + trial) + (with ? 1 : 0));
    RandomStream(key, "noise", 0).normals(0, normals);
    for (std::size_t step = 0; step < steps; ++step) {
      const auto [windows, places] = sampler.draw(key, step);
      double sum = 0.0;
      double of_others = 0.0;  // known to the attacker, who knows the others and the law
      for (std::size_t i = 0; i < windows.size();) {
        const auto first = i;
        while (i < windows.size() && places[i] == places[first]) ++i;
        const auto count = static_cast<double>(i - first);
        const double clipped = game.clip_windows ? count : std::min(1.0, window_gradient * count / lambda);
        const bool own = windows[first].series == 0 && !shorter;
        sum += !own ? game.others * clipped : with ? clipped : 0.0;
        of_others += game.others * clipped;
      }
      releases[step] = sum - of_others + game.sigma * normals[step];
    }
    out[trial] = game.score(releases);
  }
  return out;
}

class Outcome {
 public:
  explicit Outcome(Game game) {
    game.trials = test::trials(game.trials);
    with_ = scores(game, true);
    without_ = scores(game, false);
    std::sort(with_.begin(), with_.end());
    std::sort(without_.begin(), without_.end());
  }
  /// Bracket of P[score > t | there] − e^ε P[score > t | not there].
  [[nodiscard]] Interval removal(double epsilon, double threshold) const {
    return advantage(with_, without_, epsilon, threshold, true);
  }
  /// Bracket of P[score ≤ t | not there] − e^ε P[score ≤ t | there].
  [[nodiscard]] Interval addition(double epsilon, double threshold) const {
    return advantage(without_, with_, epsilon, threshold, false);
  }

 private:
  static Interval advantage(const std::vector<double>& a, const std::vector<double>& b, double epsilon,
                            double threshold, bool above) {
    const auto hits = [&](const std::vector<double>& sorted) {
      const auto below =
          static_cast<std::uint64_t>(std::upper_bound(sorted.begin(), sorted.end(), threshold) - sorted.begin());
      return share(above ? sorted.size() - below : below, sorted.size());
    };
    const auto of_a = hits(a);
    const auto of_b = hits(b);
    return {of_a.lower - std::exp(epsilon) * of_b.upper, of_a.upper - std::exp(epsilon) * of_b.lower};
  }
  std::vector<double> with_, without_;
};

const std::vector<double> epsilons = {0.0, 0.4, 1.0};

Interval claim(const SubsamplingScheme::Parameters& law, double sigma, Direction direction, double epsilon,
               std::uint64_t epochs) {
  const SubsamplingScheme scheme(law);
  const auto theorem = series_theorem(series_law_of(scheme), sigma, direction);
  const auto steps = epochs * static_cast<std::uint64_t>(scheme.steps_per_epoch());
  return theorem.curve()->delta(epsilon, theorem.uses_of_steps(steps));
}

/// Not broken, and attained in both directions.
void expect_exact(const Game& game) {
  const Outcome outcome(game);
  const auto epochs = static_cast<std::uint64_t>(game.epochs);
  for (const double epsilon : epsilons) {
    SCOPED_TRACE(epsilon);
    const auto removed = claim(game.law, game.sigma, Direction::remove, epsilon, epochs);
    const auto found = outcome.removal(epsilon, epsilon);
    EXPECT_LE(found.lower, removed.upper);
    EXPECT_GE(found.upper, removed.lower);
    const auto added = claim(game.law, game.sigma, Direction::add, epsilon, epochs);
    const auto other = outcome.addition(epsilon, -epsilon);
    EXPECT_LE(other.lower, added.upper);
    EXPECT_GE(other.upper, added.lower);
  }
}

/// Whether the attack wins more than a claim at some ε.
bool refutes(const Outcome& outcome, const std::function<double(double epsilon)>& allowed) {
  return std::any_of(epsilons.begin(), epsilons.end(),
                     [&](double e) { return outcome.removal(e, e).lower > allowed(e); });
}

/// log of (1 − q) + q e^{(2 d y − d²)/2σ²}: a step in which the series shows by d with probability q.
double log_ratio(double q, double d, double y, double sigma) {
  return std::log1p(q * std::expm1((2.0 * d * y - d * d) / (2.0 * sigma * sigma)));
}

TEST(SeriesAttack, FixedBatchesAreAttainedAndNotBroken) {
  // Series 0 is in the first of four batches; three epochs.
  Game game{scheme_of(TopLevel::deterministic, 8, 4), 0.0, 2.5, 3, {}, 150'000, 1};
  game.score = [&](const std::vector<double>& y) {
    double sum = 0.0;
    for (std::size_t e = 0; e < 3; ++e) sum += (2.0 * y[4 * e] - 1.0) / (2.0 * 2.5 * 2.5);
    return sum;
  };
  expect_exact(game);
  // Planted: windows clipped by themselves move the sum by 2 C.
  game.clip_windows = true;
  EXPECT_TRUE(refutes(Outcome(game), [&](double e) { return claim(game.law, 2.5, Direction::remove, e, 3).upper; }));
}

TEST(SeriesAttack, PoissonIsAttainedAndNotBroken) {
  Game game{scheme_of(TopLevel::poisson, 5, 4), 0.0, 1.2, 2, {}, 150'000, 2};
  game.law.batches.reset();
  game.law.rate = 0.3;  // three steps an epoch
  game.score = [](const std::vector<double>& y) {
    return std::accumulate(y.begin(), y.end(), 0.0,
                           [](double sum, double x) { return sum + log_ratio(0.3, 1.0, x, 1.2); });
  };
  ASSERT_EQ(SubsamplingScheme(game.law).steps_per_epoch(), 3);
  expect_exact(game);
  // Planted: a tenth less is drawn than is said. (Only all trials find it.)
  const Outcome outcome(game);
  auto less = game.law;
  less.rate = 0.27;
  EXPECT_TRUE(!test::full_trials() ||
              refutes(outcome, [&](double e) { return claim(less, 1.2, Direction::remove, e, 2).upper; }));
}

TEST(SeriesAttack, SamplesWithoutReplacementAreAttainedAndAreNotPoisson) {
  Game game{scheme_of(TopLevel::without_replacement, 6, 3), -1.0, 1.5, 1, {}, 150'000, 3, true};
  const double q = 1.0 / 3.0;
  ASSERT_NEAR(SubsamplingScheme(game.law).drawn_share(), q, 1e-12);
  // Another series takes the absent one's place: from −1 to +1.
  game.score = [&](const std::vector<double>& y) {
    return std::accumulate(y.begin(), y.end(), 0.0,
                           [&](double sum, double x) { return sum + log_ratio(q, 2.0, x, 1.5); });
  };
  const Outcome outcome(game);
  const auto curve = series_theorem(series_law_of(SubsamplingScheme(game.law)), 1.5).curve();
  for (const double e : epsilons) {
    EXPECT_LE(outcome.removal(e, e).lower, curve->delta(e, 3).upper);
    EXPECT_GE(outcome.removal(e, e).upper, 0.85 * curve->delta(e, 3).upper);
  }
  // Planted: accounted as if every series had a coin of its own.
  EXPECT_TRUE(refutes(
      outcome, [&](double e) { return series_theorem({TopLevel::poisson, 3, q}, 1.5).curve()->delta(e, 3).upper; }));
}

TEST(SeriesAttack, BallsInBinsAreAttainedAndNotBroken) {
  Game game{scheme_of(TopLevel::balls_in_bins, 5, 6), 0.0, 1.1, 2, {}, 150'000, 4};
  game.law.lengths = SeriesLengths::equal(6, 9);
  game.score = [](const std::vector<double>& y) {
    double sum = 0.0;
    for (std::size_t b = 0; b < 6; ++b) sum += std::exp((2.0 * (y[b] + y[b + 6]) - 2.0) / (2.0 * 1.1 * 1.1)) / 6.0;
    return std::log(sum);
  };
  expect_exact(game);
  // Planted: bins drawn anew in every epoch, which is what composing single epochs would say.
  const Outcome outcome(game);
  EXPECT_TRUE(refutes(
      outcome, [&](double e) { return series_theorem({TopLevel::balls_in_bins, 6}, 1.1).curve()->delta(e, 1).upper; }));
}

TEST(SeriesAttack, RedrawnBinsAreAttainedAndNotBroken) {
  Game game{scheme_of(TopLevel::balls_in_bins, 5, 6), 0.0, 1.1, 4, {}, 150'000, 6};
  game.law.lengths = SeriesLengths::equal(6, 9);
  game.law.redraw = Redraw::every_epoch;
  game.score = [](const std::vector<double>& y) {
    double score = 0.0;
    for (std::size_t epoch = 0; epoch < 4; ++epoch) {
      double sum = 0.0;
      for (std::size_t b = 0; b < 6; ++b) sum += std::exp((2.0 * y[b + 6 * epoch] - 1.0) / (2.0 * 1.1 * 1.1)) / 6.0;
      score += std::log(sum);
    }
    return score;
  };
  expect_exact(game);
  // Planted: a quarter of the epochs is charged.
  const Outcome outcome(game);
  EXPECT_TRUE(refutes(outcome, [&](double e) {
    return series_theorem(series_law_of(SubsamplingScheme(game.law)), 1.1).curve()->delta(e, 1).upper;
  }));
}

TEST(SeriesAttack, CyclicPoissonIsAttainedAndNotBroken) {
  // Eight steps an epoch, four groups: series 0 has its turn in steps 0 and 4, with a coin that shows heads half the
  // time.
  Game game{scheme_of(TopLevel::cyclic_poisson, 9, 8), 0.0, 1.2, 2, {}, 150'000, 7};
  game.law.groups = 4;
  game.score = [](const std::vector<double>& y) {
    double sum = 0.0;
    for (std::size_t step = 0; step < 16; step += 4) sum += log_ratio(0.5, 1.0, y[step], 1.2);
    return sum;
  };
  expect_exact(game);
  // Planted: accounted as if every step had a coin of the rate that steps have on average.
  const Outcome outcome(game);
  EXPECT_TRUE(refutes(
      outcome, [&](double e) { return series_theorem({TopLevel::poisson, 8}, 1.2).curve()->delta(e, 16).upper; }));
}

TEST(SeriesAttack, ShuffledBatchesReachTheLowerEndAndAreNotPoisson) {
  const boost::math::normal standard;
  for (const auto reshuffle : {Reshuffle::every_epoch, Reshuffle::once})
    for (const int epochs : {1, 3}) {
      SCOPED_TRACE(std::string(name(reshuffle)) + ", epochs " + std::to_string(epochs));
      // 20 series in ten batches of two; others −1, so that a batch's release, its size added, is 2, 1 or 0.
      const double sigma = 0.5;
      Game game{scheme_of(TopLevel::shuffled, 20, 10), -1.0, sigma, epochs, {}, 60'000, 5};
      game.law.reshuffle = reshuffle;
      const double each = reshuffle == Reshuffle::once ? sigma / std::sqrt(epochs) : sigma;
      // Largest coordinate; of one order for all epochs that of their mean. Of several orders the log-likelihood of the
      // largest ones.
      const auto ratio = [&](double m) {
        const auto density = [&](double shift) {
          const double rest = boost::math::cdf(standard, m / each);
          return boost::math::pdf(standard, (m - shift) / each) * rest +
                 9.0 * boost::math::cdf(standard, (m - shift) / each) * boost::math::pdf(standard, m / each);
        };
        return std::log(density(2.0) / density(1.0));
      };
      game.score = [&](const std::vector<double>& y) {
        if (reshuffle == Reshuffle::every_epoch) {
          double sum = 0.0;
          for (int e = 0; e < epochs; ++e) sum += ratio(*std::max_element(y.begin() + 10 * e, y.begin() + 10 * e + 10));
          return sum;
        }
        double most = -1e300;
        for (std::size_t b = 0; b < 10; ++b) {
          double mean = 0.0;
          for (int e = 0; e < epochs; ++e) mean += y[b + 10 * static_cast<std::size_t>(e)] / epochs;
          most = std::max(most, mean);
        }
        return ratio(most);
      };
      const Outcome outcome(game);
      const auto theorem = series_theorem(series_law_of(SubsamplingScheme(game.law)), sigma, Direction::remove);
      ASSERT_EQ(theorem.theorem, "series.shuffled");
      for (const double e : {0.0, 1.0, 2.0, 3.0}) {
        const auto stated = theorem.curve()->delta(e, static_cast<std::uint64_t>(epochs));
        EXPECT_LE(outcome.removal(e, e).lower, stated.upper) << e;
        EXPECT_GE(outcome.removal(e, e).upper, stated.lower) << e;
      }
      // Planted: accounted as Poisson. (Where noise is as small as here that is far too little.)
      const auto as_poisson = series_theorem({TopLevel::poisson, 10}, sigma, Direction::remove).curve();
      bool broken = false;
      for (const double e : {2.0, 3.0, 4.0, 5.0})
        broken =
            broken || outcome.removal(e, e).lower > as_poisson->delta(e, static_cast<std::uint64_t>(10 * epochs)).upper;
      EXPECT_TRUE(broken);
    }
}

}  // namespace
}  // namespace tsdp::sampling
