// Bounds by conditional composition: known values, exact profiles below them, and how often the bounds of the steps
// really fail.
#include "privacy/matrix/conditional_composition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "privacy/matrix/blended_loss.h"
#include "privacy/terms/out_of_reach.h"
#include "privacy/whole_series/random_allocation_curve.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/privacy/accountant/accountant.h"

namespace tsdp::privacy {
namespace {

using Mode = HazardMode;
constexpr Direction directions[] = {Direction::remove, Direction::add};

Strategy identity(std::int64_t steps) { return Strategy(StrategyKind::identity, {}, steps); }
Strategy bsr(std::int64_t bands, std::int64_t steps) {
  return Strategy(StrategyKind::bsr, square_root_bands(bands), steps);
}
Strategy bisr(std::int64_t bands, std::int64_t steps) {
  return Strategy(StrategyKind::bisr, inverse_square_root_bands(bands), steps);
}

/// Values of a second program.
TEST(ConditionalComposition, HazardsWeightsAndProfilesKnownFromElsewhere) {
  struct Row {
    Means means;
    double sigma, spent;
    Direction direction;
    Mode mode;
    std::int64_t step;
    double hazard, epsilon, delta;
  };
  const std::vector<Row> rows = {
      {Means(identity(8), 8, 1), 1.0, 1e-3, Direction::remove, Mode::all_in, 5, 0.2332857417887461, 0.5,
       0.19256403015613455},
      {Means(identity(8), 8, 1), 1.0, 1e-3, Direction::remove, Mode::sharp, 8, 0.4537955156364278, 1.0,
       0.0891854625984528},
      {Means(identity(8), 8, 1), 1.0, 1e-3, Direction::add, Mode::sharp, 5, 0.22750665003628323, 1.0,
       0.025802986322642524},
      {Means(bsr(2, 8), 8, 1), 2.0, 5e-6, Direction::remove, Mode::sharp, 8, 0.37510111670913104, 1.0,
       0.032021535124175375},
      {Means(bsr(4, 30), 30, 1), 3.0, 5e-6, Direction::add, Mode::all_in, 30, 0.07321276425928544, 0.5,
       0.03606208812870502},
      {Means(bisr(4, 20), 20, 1), 4.0, 5e-6, Direction::remove, Mode::sharp, 16, 0.09314325474276719, 0.5,
       0.012886419325713052},
      {Means(identity(20), 10, 2), 3.0, 5e-6, Direction::remove, Mode::sharp, 11, 0.39658869733188873, 1.0,
       0.0056679162031076456},
  };
  for (const auto& row : rows) {
    const ConditionalComposition found(row.means, row.sigma, row.spent, row.direction, row.mode);
    EXPECT_NEAR(found.hazards(row.step - 1).back(), row.hazard, 1e-7);
    EXPECT_NEAR(found.delta(row.epsilon), row.delta, 2e-3 * row.delta);
    EXPECT_GE(found.delta(row.epsilon), row.delta * (1.0 - 1e-4));
  }
  const ConditionalComposition banded(Means(bsr(2, 8), 8, 1), 2.0, 5e-6, Direction::remove);
  const auto weights = banded.weights(4);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(weights[i], 0.0);
  EXPECT_NEAR(weights[5] + weights[6] + weights[7], 1.0, 1e-15);
  EXPECT_NEAR(weights[7], 0.21519854535463678, 1e-9);
}

/// Where nothing has happened yet the posterior is uniform, for free.
TEST(ConditionalComposition, TheFirstStepIsUniform) {
  for (const auto mode : {Mode::sharp, Mode::all_in}) {
    const ConditionalComposition found(Means(bsr(3, 10), 10, 1), 1.0, 1e-5, Direction::remove, mode);
    EXPECT_NEAR(found.weights(0).back(), 0.1, 1e-15);
  }
}

TEST(ConditionalComposition, LiesAboveTheExactProfileOfIndependentNoise) {
  for (const std::int64_t bins : {2, 25})
    for (const double sigma : {0.6, 1.0, 2.5}) {
      RandomAllocationCurve exact(bins, sigma);
      for (const auto direction : directions) {
        const ConditionalComposition bound(Means(identity(bins), bins, 1), sigma, 1e-6, direction);
        double before = 1.0;
        for (const double epsilon : {0.0, 0.5, 2.0}) {
          const double found = bound.delta(epsilon, 1e-2);
          EXPECT_GE(found, exact.delta(direction, epsilon, 1).lower)
              << bins << " bins, sigma " << sigma << ", " << tsdp::name(direction) << ", " << epsilon;
          EXPECT_LE(found, before * 1.02 + 1e-12);
          before = found;
        }
      }
    }
  // Two epochs on all steps, and of one epoch with less noise.
  RandomAllocationCurve exact(12, 2.0);
  for (const auto direction : directions)
    for (const double epsilon : {0.25, 1.0}) {
      const double least = exact.delta(direction, epsilon, 2).lower;
      const auto reduced = one_epoch(Gram(identity(24), 12, 2, Gram::Side::upper));
      ASSERT_TRUE(reduced);
      const double long_way = ConditionalComposition(Means(identity(24), 12, 2), 2.0, 1e-6, direction).delta(epsilon);
      const double short_way = ConditionalComposition(*reduced, 2.0, 1e-6, direction).delta(epsilon);
      EXPECT_GE(short_way, least);
      EXPECT_GT(long_way, short_way);
    }
}

/// The same steps one by one, by the accountant.
TEST(ConditionalComposition, ComposesItsStepsAsTheAccountantDoes) {
  const std::int64_t bins = 16;
  const double sigma = 1.3;
  for (const auto direction : directions) {
    const ConditionalComposition bound(Means(identity(bins), bins, 1), sigma, 1e-5, direction);
    std::vector<MechanismUse> uses;
    for (std::int64_t n = 0; n < bins; ++n) {
      const double p = bound.weights(n).back();
      uses.push_back({DominatingPair({{0.0, 1.0 - p}, {1.0, p}}, sigma), 1, direction});
    }
    Accountant accountant(uses);
    for (const double epsilon : {0.2, 1.0}) {
      const auto expected = accountant.delta(epsilon, 1, 1e-3);
      const double found = bound.composed(epsilon, 1e-3);
      EXPECT_GE(found, expected.lower) << tsdp::name(direction) << " " << epsilon;
      EXPECT_LE(found, expected.upper * (1.0 + 3e-3)) << tsdp::name(direction) << " " << epsilon;
    }
  }
}

/// n steps, each of pair b with probability t: the mean over how many are.
TEST(BlendedLoss, IsTheMeanOverWhichPairsAreDrawn) {
  const DominatingPair a({{0.0, 0.9}, {1.0, 0.1}}, 1.0);
  const DominatingPair b({{0.0, 0.7}, {1.0, 0.3}}, 1.0);
  const double t = 0.35;
  for (const auto direction : directions) {
    const BlendedLoss blended({a, b}, {{0, 1, t}, {0, 1, t}, {0, 1, t}}, direction, 0.0);
    for (const double epsilon : {0.0, 0.3, 1.2}) {
      double lower = 0.0, upper = 0.0;
      for (int k = 0; k <= 3; ++k) {
        std::vector<MechanismUse> uses;
        if (k < 3) uses.push_back({a, static_cast<std::uint64_t>(3 - k), direction});
        if (k > 0) uses.push_back({b, static_cast<std::uint64_t>(k), direction});
        const auto delta = Accountant(uses).delta(epsilon, 1, 1e-3);
        const double chance = (k == 1 || k == 2 ? 3.0 : 1.0) * std::pow(t, k) * std::pow(1.0 - t, 3 - k);
        lower += chance * delta.lower;
        upper += chance * delta.upper;
      }
      const double found = blended.delta(epsilon, 1e-3);
      EXPECT_GE(found, lower);
      EXPECT_LE(found, upper * (1.0 + 2e-3));
    }
  }
}

/// Several means at once: brute force over outputs of two steps.
TEST(BlendedLoss, SeveralMeansAgainstSummedOutputs) {
  const double sigma = 1.5;
  const DominatingPair pair({{0.0, 0.5}, {0.4, 0.2}, {0.7, 0.2}, {1.0, 0.1}}, sigma);
  const auto below = [&](double x, double mean) { return 0.5 * std::erfc(-(x - mean) / (sigma * std::sqrt(2.0))); };
  for (const auto direction : directions) {
    std::vector<std::pair<double, double>> atoms;  // loss and mass, of cells whose outputs are merged: a lower bound
    const int cells = 1500;
    const double low = -8.0 * sigma, high = 1.0 + 8.0 * sigma;
    for (int i = 0; i < cells; ++i) {
      const double from = low + (high - low) * i / cells, to = low + (high - low) * (i + 1) / cells;
      double p = 0.0;
      for (const auto& c : pair.components()) p += c.weight * (below(to, c.mean) - below(from, c.mean));
      const double q = below(to, 0.0) - below(from, 0.0);
      const double loss = direction == Direction::remove ? std::log(p / q) : std::log(q / p);
      if (p > 1e-14 && q > 1e-14) atoms.emplace_back(loss, direction == Direction::remove ? p : q);
    }
    const BlendedLoss blended({pair}, {{0, 0, 0.0}, {0, 0, 0.0}}, direction, 0.0);
    for (const double epsilon : {0.1, 0.5}) {
      double expected = 0.0;
      for (const auto& [l, p] : atoms)
        for (const auto& [m, q] : atoms) expected += p * q * std::max(0.0, -std::expm1(epsilon - l - m));
      const double found = blended.delta(epsilon, 1e-3);
      EXPECT_GE(found, expected * (1.0 - 1e-9));
      EXPECT_LE(found, expected * (1.0 + 2e-3));
    }
  }
}

// How often bounds fail
// --------------------------------------------------------------------------------------------------------------

/// Log-likelihoods of the bins, up to a common term, as outputs come in.
class Posterior {
 public:
  Posterior(const Means& means, double sigma)
      : means_(means), inverse_(1.0 / (sigma * sigma)), log_(static_cast<std::size_t>(means.bins), 0.0) {}
  void add(std::int64_t n, double y) {
    for (std::int64_t i = 0; i < means_.bins; ++i)
      log_[static_cast<std::size_t>(i)] += means_.at(i, n) * (y - 0.5 * means_.at(i, n)) * inverse_;
  }
  /// P(z = i | z ≤ i, y) of all positions of an order.
  [[nodiscard]] const std::vector<double>& hazards(const std::vector<std::int64_t>& order) {
    out_.resize(order.size());
    double sum = 0.0;
    for (std::size_t k = 0; k < order.size(); ++k) {
      const double own = std::exp(log_[static_cast<std::size_t>(order[k])]);
      sum += own;
      out_[k] = own / sum;
    }
    return out_;
  }

 private:
  const Means& means_;
  double inverse_;
  std::vector<double> log_, out_;
};

/// Runs of outputs, of bin `bin` (−1: of none): look(n, posterior) before each step.
template <class Look>
void run(const Means& means, double sigma, std::int64_t bin, std::mt19937_64& random, Look look) {
  std::normal_distribution<double> normal;
  Posterior posterior(means, sigma);
  for (std::int64_t n = 0; n < means.steps; ++n) {
    if (!look(n, posterior)) return;
    posterior.add(n, (bin < 0 ? 0.0 : means.at(bin, n)) + sigma * normal(random));
  }
}

TEST(ConditionalComposition, AllBoundsTogetherFailWithinTheirBudget) {
  struct Case {
    Means means;
    double sigma, spent;
  };
  const std::vector<Case> cases = {
      {Means(identity(10), 10, 1), 1.0, 0.1}, {Means(identity(3), 3, 1), 0.7, 0.1},
      {Means(identity(20), 10, 2), 1.5, 0.1}, {Means(bsr(3, 10), 10, 1), 1.0, 0.1},
      {Means(bsr(2, 16), 8, 2), 2.0, 0.2},    {Means(bisr(3, 8), 8, 1), 1.5, 0.2},
  };
  std::mt19937_64 random(20250101);
  for (const auto& c : cases)
    for (const auto direction : directions)
      for (const auto mode : {Mode::sharp, Mode::all_in}) {
        const ConditionalComposition bound(c.means, c.sigma, c.spent, direction, mode);
        std::vector<std::vector<std::int64_t>> orders;
        for (std::int64_t n = 0; n < c.means.steps; ++n) orders.push_back(bound.order(n));
        constexpr int runs = 100'000;
        int failed = 0;
        for (int i = 0; i < runs; ++i) {
          const auto bin = direction == Direction::add
                               ? -1
                               : static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(c.means.bins));
          bool ok = true;
          run(c.means, c.sigma, bin, random, [&](std::int64_t n, Posterior& posterior) {
            const auto& hazards = posterior.hazards(orders[static_cast<std::size_t>(n)]);
            const auto& most = bound.hazards(n);
            for (std::size_t k = 1; k <= most.size() && ok; ++k)
              ok = hazards[hazards.size() - k] <= most[most.size() - k] * (1.0 + 1e-9);
            return ok;
          });
          failed += ok ? 0 : 1;
        }
        // Five deviations above: by chance below 3e-7 times.
        EXPECT_LE(failed, runs * c.spent + 5.0 * std::sqrt(runs * c.spent)) << tsdp::name(direction);
        RecordProperty("failed", failed);
      }
}

/// The value that is exceeded with probability `chance`, of a sample.
double upper_quantile(std::vector<double> values, double chance) {
  const auto place = static_cast<std::ptrdiff_t>(static_cast<double>(values.size()) * (1.0 - chance));
  std::nth_element(values.begin(), values.begin() + place, values.end());
  return values[static_cast<std::size_t>(place)];
}

/// A slip in print: outputs of bins before i are left out of the mixture of which the tail is taken. With exact
/// quantiles the bound then fails several times more often than it says.
TEST(ConditionalComposition, AReferenceMixtureThatIsCutFailsTooOften) {
  const std::int64_t bins = 20;
  const double beta = 1e-3;
  const Means means(identity(bins), bins, 1);
  std::mt19937_64 random(7);
  const auto hazard_at_end = [&](std::int64_t bin) {
    double out = 0.0;
    run(means, 1.0, bin, random, [&](std::int64_t n, Posterior& posterior) {
      if (n + 1 < bins) return true;
      std::vector<std::int64_t> order(static_cast<std::size_t>(bins));
      for (std::int64_t i = 0; i < bins; ++i) order[static_cast<std::size_t>(i)] = i;
      out = posterior.hazards(order).back();
      return false;
    });
    return out;
  };
  constexpr int runs = 100'000;
  const auto any_bin = [&] { return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(bins)); };
  std::vector<double> cut, full, fresh;
  for (int i = 0; i < runs; ++i) {
    cut.push_back(hazard_at_end(bins - 1));
    full.push_back(hazard_at_end(any_bin()));
    fresh.push_back(hazard_at_end(any_bin()));
  }
  // (1/b) N(μ_b) as printed has total mass 1/b, and β of it is bβ of N(μ_b).
  const double by_cut = upper_quantile(cut, static_cast<double>(bins) * beta);
  const double by_full = upper_quantile(full, beta);
  const auto share_above = [&](double level) {
    return static_cast<double>(std::count_if(fresh.begin(), fresh.end(), [&](double h) { return h > level; })) / runs;
  };
  EXPECT_GT(share_above(by_cut), 5.0 * beta);
  EXPECT_LT(share_above(by_full), 2.0 * beta);
}

/// The other: the largest of the quantiles of an epoch's steps, each at β, is exceeded in some step far more often than
/// β.
TEST(ConditionalComposition, TheLargestQuantileOfAnEpochIsExceededTooOften) {
  const std::int64_t bins = 10;
  const double beta = 0.02;
  const Means means(identity(2 * bins), bins, 2);
  std::mt19937_64 random(11);
  constexpr int runs = 40'000;
  const auto one_run = [&] {
    std::vector<double> top;
    run(means, 1.0, static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(bins)), random,
        [&](std::int64_t n, Posterior& posterior) {
          if (n < bins) return true;
          std::vector<std::int64_t> order;
          for (std::int64_t i = 0; i < bins; ++i)
            if (i != n - bins) order.push_back(i);
          order.push_back(n - bins);
          top.push_back(posterior.hazards(order).back());
          return true;
        });
    return top;
  };
  std::vector<std::vector<double>> by_step(static_cast<std::size_t>(bins));
  for (int i = 0; i < runs; ++i) {
    const auto top = one_run();
    for (std::size_t n = 0; n < top.size(); ++n) by_step[n].push_back(top[n]);
  }
  double largest = 0.0, largest_of_union = 0.0;
  for (const auto& values : by_step) {
    largest = std::max(largest, upper_quantile(values, beta));
    largest_of_union = std::max(largest_of_union, upper_quantile(values, beta / static_cast<double>(bins)));
  }
  int above = 0, above_union = 0;
  for (int i = 0; i < runs; ++i) {
    const auto top = one_run();
    const double worst = *std::max_element(top.begin(), top.end());
    above += worst > largest ? 1 : 0;
    above_union += worst > largest_of_union ? 1 : 0;
  }
  EXPECT_GT(above, 5.0 * beta * runs);
  EXPECT_LE(above_union, beta * runs + 5.0 * std::sqrt(beta * runs));
}

// One epoch in place of several
// --------------------------------------------------------------------------------------------------------

void expect_covers(const Means& means, const Gram& gram, double most) {
  for (std::int64_t i = 0; i < gram.bins(); ++i)
    for (std::int64_t j = 0; j < gram.bins(); ++j) {
      long double sum = 0.0L;
      for (std::int64_t n = 0; n < means.steps; ++n)
        sum += static_cast<long double>(means.at(i, n)) * static_cast<long double>(means.at(j, n));
      ASSERT_GE(sum, static_cast<long double>(gram.at(i, j)) * (1.0L - 1e-17L)) << i << " " << j;
      ASSERT_LE(sum, static_cast<long double>(gram.at(i, j) + most * gram.largest_diagonal())) << i << " " << j;
    }
}

TEST(OneEpoch, ItsGramMatrixIsAtLeastTheGivenOne) {
  for (const auto& [strategy, bins, epochs] :
       {std::tuple{bisr(4, 1000), 100, 10}, {bisr(4, 60), 20, 3}, {identity(60), 20, 3}, {bsr(4, 30), 30, 1}}) {
    const Gram gram(strategy, bins, epochs, Gram::Side::upper);
    const auto means = one_epoch(gram);
    ASSERT_TRUE(means) << tsdp::name(strategy.kind());
    EXPECT_EQ(means->steps, bins);
    expect_covers(*means, gram, 2e-9);
  }
  // A banded matrix that wraps around has no such factor; one that is a tenth above it has.
  const Gram cyclic(bsr(4, 200), 100, 2, Gram::Side::upper);
  EXPECT_FALSE(one_epoch(cyclic));
  const auto wide = one_epoch(cyclic, 0.1);
  ASSERT_TRUE(wide);
  expect_covers(*wide, cyclic, 0.1);
  EXPECT_FALSE(one_epoch(Gram({1.0, 1.0, 1.0, 1.0}, 2)));  // singular
}

TEST(OneEpoch, GivesFarLess) {
  const Means two(identity(40), 20, 2);
  const auto one = one_epoch(Gram(identity(40), 20, 2, Gram::Side::upper));
  ASSERT_TRUE(one);
  EXPECT_NEAR(ConditionalComposition(two, 2.0, 5e-6, Direction::remove).delta(1.0), 0.150, 0.001);
  EXPECT_NEAR(ConditionalComposition(*one, 2.0, 5e-6, Direction::remove).delta(1.0), 6.8e-4, 1e-5);
}

TEST(Means, AreRoundedUpAndRefusedWhereSignsMayDiffer) {
  const Means means(bisr(4, 30), 10, 3);
  const auto column = bisr(4, 30).column();
  for (std::int64_t n = 0; n < 30; ++n)
    for (std::int64_t i = 0; i < 10; ++i) {
      double sum = 0.0;
      for (std::int64_t at = n - i; at >= 0; at -= 10) sum += column[static_cast<std::size_t>(at)];
      EXPECT_GE(means.at(i, n), sum * (1.0 - 1e-15));
      EXPECT_LE(means.at(i, n), sum * (1.0 + 1e-12));
    }
  const Strategy mixed(StrategyKind::file, {NoiseRecursion::Form::banded, {1.0, -0.5}}, 10);
  EXPECT_THROW(Means(mixed, 10, 1), PrivacyError);
  EXPECT_THROW(Means(identity(10), 6, 2), UsageError);
  EXPECT_THROW(Means(2, 1, {1.0, -1.0}), UsageError);
  EXPECT_THROW(ConditionalComposition(Means(identity(4), 4, 1), 1.0, 0.0, Direction::remove), PrivacyError);
  EXPECT_THROW(ConditionalComposition(Means(identity(4), 4, 1), -1.0, 1e-5, Direction::remove), PrivacyError);
  EXPECT_THROW(ConditionalComposition(Means(identity(5000), 5000, 1), 1.0, 1e-5, Direction::remove), OutOfReach);
  EXPECT_THROW(ConditionalComposition(Means(bisr(4, 1000), 200, 5), 1.0, 1e-5, Direction::remove), OutOfReach);
}

}  // namespace
}  // namespace tsdp::privacy
