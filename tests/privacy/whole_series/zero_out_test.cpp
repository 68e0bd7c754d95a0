// Curves of whole series as records: what they must agree on among themselves, and with values found in another way.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>
#include <vector>

#include "privacy/theorems/series_law.h"
#include "privacy/whole_series/gaussian_curve.h"
#include "privacy/whole_series/poisson_curve.h"
#include "privacy/whole_series/random_allocation_curve.h"
#include "privacy/whole_series/rounded_sum.h"
#include "privacy/whole_series/shuffled_curve.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/random/random.h"

namespace tsdp::privacy {
namespace {

void expect_meet(const Interval& a, const Interval& b, double slack = 0.0) {
  EXPECT_LE(a.lower, b.upper * (1.0 + slack));
  EXPECT_LE(b.lower, a.upper * (1.0 + slack));
}

/// Law of the loss of one step on a fine grid of outputs, by brute force: pairs (loss, mass).
struct Atoms {
  std::vector<double> loss, mass;
};

Atoms atoms_of(double q, double sigma, Direction direction, int cells) {
  const auto below = [&](double x, double mean) {
    return 0.5 * std::erfc(-(x - mean) / (sigma * std::numbers::sqrt2));
  };
  Atoms out;
  const double low = -9.0 * sigma;
  const double high = 1.0 + 9.0 * sigma;
  for (int i = -1; i <= cells; ++i) {
    const double from = low + (high - low) * i / cells;
    const double to = low + (high - low) * (i + 1) / cells;
    const auto mass = [&](double mean) {
      return (i == cells ? 1.0 : below(to, mean)) - (i == -1 ? 0.0 : below(from, mean));
    };
    const double none = mass(0.0);
    const double p = (1.0 - q) * none + q * mass(1.0);
    if (!(none > 1e-18) || !(p > 1e-18)) continue;
    out.loss.push_back(direction == Direction::remove ? std::log(p / none) : std::log(none / p));
    out.mass.push_back(direction == Direction::remove ? p : none);
  }
  return out;
}

/// δ of two steps by summing over all pairs of cells: a lower bound, near the truth where cells are narrow.
double two_steps(const Atoms& atoms, double epsilon) {
  double sum = 0.0;
  for (std::size_t i = 0; i < atoms.loss.size(); ++i)
    for (std::size_t j = 0; j < atoms.loss.size(); ++j)
      sum += atoms.mass[i] * atoms.mass[j] * std::max(0.0, -std::expm1(epsilon - atoms.loss[i] - atoms.loss[j]));
  return sum;
}

TEST(PoissonCurve, BracketsTwoStepsByBruteForceInBothDirections) {
  for (const double sigma : {0.4, 1.0})
    for (const double q : {0.02, 0.6})
      for (const auto direction : {Direction::remove, Direction::add}) {
        const auto atoms = atoms_of(q, sigma, direction, 1000);
        PoissonCurve curve(q, sigma);
        for (const double epsilon : {0.0, 0.05, 1.0}) {
          SCOPED_TRACE(cat("sigma ", sigma, ", q ", q, ", ", name(direction), ", epsilon ", epsilon));
          const double expected = two_steps(atoms, epsilon);
          const auto found = curve.of(direction).delta(epsilon, 2, 1e-4);
          // Cells of a thousandth of the range lose a share of about 1e-4.
          EXPECT_GE(found.upper, expected * (1.0 - 1e-9));
          EXPECT_LE(found.lower, expected * (1.0 + 1e-3) + 1e-12);
          EXPECT_LE(found.upper, expected * (1.0 + 3e-3) + 1e-9);
        }
      }
}

TEST(PoissonCurve, LowerEndsStayBelowUpperEnds) {
  std::mt19937 random(7);
  const auto uniform = [&](double low, double high) { return std::uniform_real_distribution(low, high)(random); };
  for (int i = 0; i < 16; ++i) {
    const double q = std::exp(uniform(std::log(1e-5), 0.0));
    const double sigma = std::exp(uniform(std::log(0.25), std::log(8.0)));
    const auto uses = static_cast<std::uint64_t>(std::exp(uniform(0.0, 8.0)));
    const double epsilon = std::exp(uniform(-4.0, 1.5));
    PoissonCurve curve(q, sigma);
    for (const auto direction : {Direction::remove, Direction::add}) {
      SCOPED_TRACE(cat("sigma ", sigma, ", q ", q, ", uses ", uses, ", ", name(direction), ", epsilon ", epsilon));
      const auto coarse = curve.of(direction).delta(epsilon, uses, 0.3);
      const auto fine = curve.of(direction).delta(epsilon, uses, 0.01);
      EXPECT_LE(coarse.lower, coarse.upper);
      EXPECT_LE(fine.lower, fine.upper);
      expect_meet(coarse, fine);
    }
  }
}

TEST(PoissonCurve, AlwaysTakenIsAGaussianMechanism) {
  for (const std::uint64_t uses : {1U, 4U, 50U}) {
    PoissonCurve always(1.0, 3.0);
    GaussianCurve gauss(3.0);
    for (const double epsilon : {0.1, 1.0, 3.0}) {
      expect_meet(always.delta(epsilon, uses), gauss.delta(epsilon, uses));
      for (const auto direction : {Direction::remove, Direction::add})
        expect_meet(always.of(direction).delta(epsilon, uses), gauss.delta(epsilon, uses));
    }
    expect_meet(always.epsilon(1e-5, uses), gauss.epsilon(1e-5, uses));
  }
}

TEST(PoissonCurve, DirectionsAgreeAtEpsilonZeroAndTheLargerCounts) {
  PoissonCurve curve(0.05, 0.9);
  const auto removed = curve.of(Direction::remove).delta(0.0, 20);
  const auto added = curve.of(Direction::add).delta(0.0, 20);
  expect_meet(removed, added);  // a total variation distance is symmetric
  for (const double epsilon : {0.0, 0.02, 0.3}) {
    const auto both = curve.delta(epsilon, 20);
    EXPECT_GE(both.upper, curve.of(Direction::remove).delta(epsilon, 20).lower);
    EXPECT_GE(both.upper, curve.of(Direction::add).delta(epsilon, 20).lower);
  }
  // An addition loses at most −log(1 − q) a step.
  const auto beyond = curve.of(Direction::add).delta(20.0 * -std::log1p(-0.05) * 1.0001, 20);
  EXPECT_EQ(beyond.upper, 0.0);
}

TEST(PoissonCurve, MostUsesAreTheLastThatAreCertified) {
  PoissonCurve curve(0.01, 1.0);
  const auto most = curve.max_uses(1.0, 1e-6);
  EXPECT_GT(most, 100U);
  EXPECT_TRUE(curve.certifies(1.0, 1e-6, most));
  EXPECT_FALSE(curve.certifies(1.0, 1e-6, most + most / 200 + 1));
}

TEST(GaussianCurve, EpsilonAndDeltaAreInverseAndEpochsAreLessNoise) {
  for (const double sigma : {0.3, 1.0, 20.0})
    for (const std::uint64_t uses : {1U, 9U, 400U}) {
      GaussianCurve curve(sigma);
      const auto epsilon = curve.epsilon(1e-7, uses);
      EXPECT_LE(curve.delta(epsilon.upper, uses).upper, 1e-7);
      EXPECT_GE(curve.delta(epsilon.lower, uses).upper, 1e-7 * (1.0 - 1e-9));
      expect_meet(epsilon, GaussianCurve(sigma / std::sqrt(static_cast<double>(uses))).epsilon(1e-7, 1), 1e-14);
      // A record that is replaced moves the sum twice as far.
      expect_meet(GaussianCurve(sigma, 2.0).epsilon(1e-7, uses), GaussianCurve(0.5 * sigma).epsilon(1e-7, uses), 1e-14);
      const auto most = curve.max_uses(epsilon.upper * (1.0 + 1e-12), 1e-7);
      EXPECT_EQ(most, uses);
    }
}

TEST(ShuffledCurve, OneBatchIsAGaussianMechanism) {
  ShuffledCurve one(1, 1.5, Reshuffle::every_epoch);
  for (const double epsilon : {0.1, 1.0, 3.0}) {
    const auto found = one.delta(epsilon, 1);
    EXPECT_NEAR(found.lower / found.upper, 1.0, 1e-9);
  }
}

TEST(ShuffledCurve, EndsAreOrderedAndTheLowerOneFallsWithBatches) {
  for (const auto reshuffle : {Reshuffle::every_epoch, Reshuffle::once})
    for (const std::uint64_t uses : {1U, 2U, 7U, 40U}) {
      double before = 1.0;
      for (const std::int64_t batches : {2, 30, 1000, 100'000}) {
        ShuffledCurve curve(batches, 1.0, reshuffle);
        const auto delta = curve.delta(1.0, uses);
        EXPECT_LE(delta.lower, delta.upper);
        EXPECT_LE(delta.lower, before * 1.01);
        before = delta.lower;
        const auto epsilon = curve.epsilon(1e-6, uses);
        EXPECT_LE(epsilon.lower, epsilon.upper);
        EXPECT_GE(curve.delta(0.999 * epsilon.lower, uses).lower, 1e-6 * (1.0 - 1e-9));
      }
    }
}

/// What one epoch's events give, k times, is never more than what their composition gives.
TEST(ShuffledCurve, MoreEpochsTellMore) {
  double before = 0.0;
  for (const std::uint64_t uses : {1U, 2U, 4U, 16U, 64U}) {
    const double lower = ShuffledCurve(1000, 1.0, Reshuffle::every_epoch).delta(1.0, uses).lower;
    EXPECT_GT(lower, before);
    before = lower;
  }
}

TEST(RandomAllocationCurve, OneBinIsAGaussianMechanism) {
  for (const std::uint64_t epochs : {1U, 5U}) {
    RandomAllocationCurve one(1, 2.0);
    GaussianCurve gauss(2.0);
    for (const double epsilon : {0.2, 0.5}) {
      expect_meet(one.delta(Direction::remove, epsilon, epochs), gauss.delta(epsilon, epochs), 1e-10);
      expect_meet(one.delta(Direction::add, epsilon, epochs), gauss.delta(epsilon, epochs), 1e-10);
      EXPECT_NEAR(one.delta(epsilon, epochs).lower / gauss.delta(epsilon, epochs).upper, 1.0, 1e-9);
    }
  }
}

TEST(RandomAllocationCurve, EpochsAreLessNoiseAndMoreNoiseIsBetter) {
  expect_meet(RandomAllocationCurve(50, 2.0).delta(0.5, 4), RandomAllocationCurve(50, 1.0).delta(0.5, 1), 1e-12);
  double before = 1.0;
  for (const double sigma : {0.7, 1.0, 1.5, 3.0}) {
    const auto found = RandomAllocationCurve(50, sigma).delta(0.5, 1);
    EXPECT_LE(found.lower, found.upper);
    EXPECT_LT(found.upper, before);
    before = found.upper;
  }
}

/// Tables serve ranges of ε; just beyond the end of one its threshold must not be cut to the table's.
TEST(RandomAllocationCurve, HoldsAtAndBesideTheEndsOfItsTables) {
  for (const auto& [bins, sigma] : {std::pair{1000, 1.0}, std::pair{100, 1.0}, std::pair{1000, 0.8}})
    for (const double end : {0.5 * std::numbers::sqrt2, 1.0, std::numbers::sqrt2})
      for (const double beside : {-1e-9, -1e-12, 0.0, 1e-16, 1e-12, 1e-10, 3e-10, 1e-9}) {
        RandomAllocationCurve curve(bins, sigma);
        const auto at = curve.delta(Direction::remove, end, 1);
        const auto near = curve.delta(Direction::remove, end * (1.0 + beside), 1);
        EXPECT_LE(near.lower, near.upper);
        // δ moves by at most e^ε times what ε does.
        EXPECT_LE(near.lower, at.upper + 10.0 * std::abs(beside)) << end << " " << beside;
        EXPECT_GE(near.upper, at.lower - 10.0 * std::abs(beside)) << end << " " << beside;
        // … and by about its own slope, a few times δ.
        EXPECT_NEAR(near.upper / at.upper, 1.0, 1e-7 + 2e-15 / at.upper) << end << " " << beside;
      }
}

/// Where e^ε or Q's tail leave the range of numbers nothing is claimed from below, and the Gaussian curve goes on by
/// Mills' ratio.
TEST(ZeroOutCurves, AreRightWhereNumbersEnd) {
  RandomAllocationCurve bins(1'000'000, 0.02);
  const auto delta = bins.delta(Direction::remove, 1250.0, 1);
  EXPECT_LE(delta.lower, delta.upper);
  EXPECT_LE(ShuffledCurve(1000, 0.02, Reshuffle::every_epoch).delta(1250.0, 1).lower, 0.492);
  EXPECT_LE(RandomAllocationCurve(1'000'000, 0.5).epsilon(1e-5, 400).lower,
            958.0);  // δ(958) ≤ Φ((800 − 958 − log b + log 2)/40) < 1e-5
  // By 60 digits.
  const auto far = gaussian_delta(11340.0, 142.5);
  EXPECT_NEAR(far.lower / 3.84986319971e-17, 1.0, 1e-11);
  EXPECT_NEAR(far.upper / 3.84986319971e-17, 1.0, 1e-11);
  EXPECT_NEAR(gaussian_delta(11355.0, 142.4).upper / 6.31710e-18, 1.0, 1e-5);
  const auto epsilon = GaussianCurve(0.01).epsilon(1e-5, 10);
  EXPECT_NEAR(epsilon.lower / epsilon.upper, 1.0, 1e-12);
  // Nearly all of one direction's loss is in one place: still answered.
  const auto little_noise = PoissonCurve(1e-4, 0.05).delta(1.0, 2);
  EXPECT_NEAR(little_noise.upper, 2e-4, 1e-7);
}

/// Where no table is made the ends are those of theorems that need none.
TEST(RandomAllocationCurve, StillBracketsWhereItWouldTakeTooLong) {
  RandomAllocationCurve few(3, 0.3);
  const auto epsilon = few.epsilon(1e-5, 1);
  EXPECT_LT(epsilon.lower, epsilon.upper);
  EXPECT_LE(epsilon.upper, GaussianCurve(0.3).epsilon(1e-5, 1).upper * (1.0 + 1e-12));
  EXPECT_GT(epsilon.lower, 0.8 * epsilon.upper);
}

// Two ways to the same number: the inverse Laplace transform and the law on a grid.
TEST(RoundedSum, HoldsTheExactProfile) {
  for (const std::int64_t bins : {2, 7, 40, 64})
    for (const double sigma : {0.9, 1.5, 4.0})
      for (const double epsilon : {0.05, 0.4, 1.0}) {
        const auto exact = RandomAllocationCurve(bins, sigma).delta(Direction::remove, epsilon, 1);
        const auto ends = RoundedSum::removal(bins, 1.0 / sigma, epsilon);
        EXPECT_LE(ends.lower, exact.upper) << bins << ", " << sigma << ", " << epsilon;
        EXPECT_GE(ends.upper, exact.lower) << bins << ", " << sigma << ", " << epsilon;
      }
  // One other bin: E g(S′) by numbers of a fine integral over its normal.
  for (const double epsilon : {1.0, 3.0, 6.0}) {
    const double mu = 1.3;
    const double threshold = 2.0 * std::exp(epsilon);
    const auto tail = [](double t) { return 0.5 * std::erfc(t / std::sqrt(2.0)); };
    double sum = 0.0;
    for (double z = -10.0; z < 10.0; z += 1e-4) {
      const double rest = threshold - std::exp(mu * z - 0.5 * mu * mu);
      const double at = rest > 0.0 ? std::log(rest) / mu : 0.0;
      const double g =
          rest > 0.0 ? tail(at - 0.5 * mu) - std::exp(epsilon) * tail(at + 0.5 * mu) : 1.0 - std::exp(epsilon);
      sum += 1e-4 * std::exp(-0.5 * z * z) / std::sqrt(2.0 * std::numbers::pi) * g;
    }
    const auto ends = RoundedSum::removal(2, mu, epsilon);
    EXPECT_LE(ends.lower, sum * (1.0 + 1e-4)) << epsilon;
    EXPECT_GE(ends.upper, sum * (1.0 - 1e-4)) << epsilon;
    EXPECT_LT(ends.upper - ends.lower, 0.03 * sum) << epsilon;
  }
}

// Importance sampling of E_P[(1 − γ b/S)₊] where thresholds are far above the mean: eight bins, forty epochs.
TEST(RoundedSum, ByMonteCarlo) {
  constexpr std::int64_t bins = 8;
  for (const auto& [sigma, epsilon] : {std::pair{4.441, 5.0}, std::pair{2.5, 14.0}}) {
    const double mu = std::sqrt(40.0) / sigma;
    const double threshold = static_cast<double>(bins) * std::exp(epsilon);
    // Mostly the own coordinate is shifted to where it alone reaches the threshold, else one of the others.
    const double own_shift = std::log(threshold) / mu - 0.5 * mu;
    const double other_shift = own_shift + mu;
    constexpr std::uint64_t samples = 2'000'000;
    std::vector<double> z(static_cast<std::size_t>(bins) * 4096);
    RandomStream choice(SecretKey::from_seed(32), "choices", 0);
    double sum = 0.0, square = 0.0;
    for (std::uint64_t done = 0; done < samples; done += 4096) {
      RandomStream(SecretKey::from_seed(31), "samples", done).normals(0, z);
      for (std::size_t i = 0; i < 4096; ++i) {
        double* own = &z[i * bins];
        const bool itself = choice.uniform() < 0.7;
        const auto shifted = itself ? 0 : 1 + choice.below(bins - 1);
        own[shifted] += itself ? own_shift : other_shift;
        double all = std::exp(mu * own[0] + 0.5 * mu * mu);
        double density =
            0.7 * std::exp(own_shift * own[0] - 0.5 * own_shift * own_shift);  // of the draw, over that of normals
        for (std::int64_t j = 1; j < bins; ++j) {
          all += std::exp(mu * own[j] - 0.5 * mu * mu);
          density += 0.3 / (bins - 1) * std::exp(other_shift * own[j] - 0.5 * other_shift * other_shift);
        }
        const double value = std::max(0.0, 1.0 - threshold / all) / density;
        sum += value;
        square += value * value;
      }
    }
    const auto count = static_cast<double>((samples + 4095) / 4096 * 4096);
    const double mean = sum / count;
    const double error = std::sqrt((square / count - mean * mean) / count);
    const auto ends = RandomAllocationCurve(bins, sigma).delta(Direction::remove, epsilon, 40);
    EXPECT_GE(ends.upper, mean - 5.5 * error) << epsilon;
    EXPECT_LE(ends.lower, mean + 5.5 * error) << epsilon;
    EXPECT_LT(ends.upper, 1.05 * ends.lower) << epsilon;
  }
}

TEST(RandomAllocationCurve, ByMonteCarlo) {
  // Direction remove: E_P[(1 − e^{ε−L})₊], P a mixture of b shifts; 1e6 samples.
  constexpr int bins = 20;
  constexpr double sigma = 0.9;
  constexpr double epsilon = 0.7;
  constexpr int samples = 1'000'000;
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal;
  double sum = 0.0;
  double square = 0.0;
  for (int i = 0; i < samples; ++i) {
    double ratio = 0.0;
    for (int t = 0; t < bins; ++t) {
      const double w = sigma * normal(random) + (t == 0 ? 1.0 : 0.0);
      ratio += std::exp((w - 0.5) / (sigma * sigma)) / bins;
    }
    const double value = std::max(0.0, 1.0 - std::exp(epsilon) / ratio);
    sum += value;
    square += value * value;
  }
  const double mean = sum / samples;
  const double error = std::sqrt((square / samples - mean * mean) / samples);
  const auto found = RandomAllocationCurve(bins, sigma).delta(Direction::remove, epsilon, 1);
  EXPECT_NEAR(found.upper, mean, 5.5 * error);
  EXPECT_NEAR(found.lower, mean, 5.5 * error);
  EXPECT_LT(found.upper - found.lower, 1e-9 * found.upper);
}

TEST(SeriesTheorem, NamesItsRowAndRefusesWhatASamplerHasNoUseFor) {
  EXPECT_EQ(series_theorem({TopLevel::poisson, 100}, 1.0).theorem, "series.poisson");
  EXPECT_EQ(series_theorem({TopLevel::poisson, 100}, 1.0).unit, CompositionUnit::step);
  EXPECT_EQ(series_theorem({TopLevel::shuffled, 100}, 1.0).uses_of_steps(101), 2U);
  const auto refused = [](SeriesLaw law, double sigma, const char* word) {
    try {
      static_cast<void>(series_theorem(law, sigma));
      FAIL() << word;
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
  };
  refused({TopLevel::poisson, 100, 0.0}, 1.0, "sampling rate: found 0");
  refused({TopLevel::poisson, 100, 1.5}, 1.0, "sampling rate: found 1.5");
  refused({TopLevel::shuffled, 100, 0.1}, 1.0, "only poisson, cyclic_poisson and wor have one");
  refused({TopLevel::poisson, 100, {}, Reshuffle::once}, 1.0, "only shuffled has an order");
  refused({TopLevel::poisson, 100, {}, Reshuffle::every_epoch, Redraw::every_epoch}, 1.0,
          "only balls_in_bins has bins");
  refused({TopLevel::shuffled, 0}, 1.0, "batches: found 0");
  refused({TopLevel::shuffled, 10}, -1.0, "noise multiplier: found -1");
}

/// Every use of a row's pair costs at least what its own curve says: totals and budgets compose the pair.
TEST(SeriesTheorem, PairsBoundTheirCurvesFromAbove) {
  std::vector<SeriesLaw> laws;
  for (const auto sampler : {TopLevel::deterministic, TopLevel::shuffled, TopLevel::poisson,
                             TopLevel::without_replacement, TopLevel::balls_in_bins})
    laws.push_back({sampler, 20});
  laws.push_back({TopLevel::balls_in_bins, 20, {}, Reshuffle::every_epoch, Redraw::every_epoch});
  for (const auto& law : laws) {
    const auto sampler = law.sampler;
    const auto theorem = series_theorem(law, 1.5);
    for (const std::uint64_t uses : {1U, 3U}) {
      const auto own = theorem.curve()->delta(0.4, uses);
      EXPECT_LE(own.upper, Accountant(theorem.pair).delta(0.4, uses).upper * (1.0 + 1e-3)) << name(sampler);
    }
  }
}

/// Another series takes the absent one's place: the sum moves by twice the clip norm.
TEST(SeriesTheorem, WithoutReplacementIsTheorem44WithEveryWindowTouched) {
  SubsamplingScheme::Parameters p;
  p.lengths = SeriesLengths::equal(20, 5);
  p.forecast_length = 5;  // one window a series: r = 1
  const auto by_value = apply_theorem(SubsamplingScheme(p), {}, 1.5);
  ASSERT_EQ(by_value.theorem, "4.4");
  const auto by_series = series_theorem({TopLevel::without_replacement, 20}, 1.5);
  for (const std::uint64_t uses : {1U, 40U})
    EXPECT_EQ(by_series.curve()->delta(0.3, uses).upper, by_value.curve()->delta(0.3, uses).upper);
}

TEST(SeriesTheorem, ShuffledAdditionsHaveNoLowerEnd) {
  const auto curve = series_theorem({TopLevel::shuffled, 20}, 1.5, Direction::add).curve();
  EXPECT_TRUE(curve->methods().lower.empty());
  EXPECT_EQ(curve->delta(0.4, 1).lower, 0.0);
  EXPECT_TRUE(series_theorem({TopLevel::without_replacement, 20}, 1.5).curve()->methods().lower.empty());
}

TEST(Substitution, IsTwoNeighboursInARowUnlessMoreIsKnown) {
  // At the same δ: the least ε′ with (1 + e^ε′) δ(ε′) ≤ δ, twice.
  PoissonCurve poisson(1.0 / 20.0, 1.0);
  const double single = poisson.epsilon(1e-6, 1).upper;
  const auto twice = substitution_of({TopLevel::poisson, 20}, 1.0, 1, single, 1e-6);
  EXPECT_EQ(twice.delta, 1e-6);
  const auto doubled = [&](double e) { return (1.0 + std::exp(e)) * poisson.delta(e, 1).upper; };
  EXPECT_LE(doubled(0.5 * twice.epsilon), 1e-6 * (1.0 + 1e-9));
  EXPECT_GT(doubled(0.49 * twice.epsilon), 1e-6);
  const auto exact =
      substitution_of({TopLevel::deterministic}, 3.0, 1, GaussianCurve(3.0).epsilon(1e-6, 1).upper, 1e-6);
  EXPECT_EQ(exact.delta, 1e-6);
  EXPECT_NEAR(exact.epsilon, GaussianCurve(1.5).epsilon(1e-6, 1).upper, 1e-9);
  const auto same = substitution_of({TopLevel::without_replacement, 20}, 1.0, 1, 0.5, 1e-6);
  EXPECT_EQ(same.epsilon, 0.5);
}

}  // namespace
}  // namespace tsdp::privacy
