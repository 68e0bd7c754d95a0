// The commands `epsilon`, `delta`, `steps` and `sigma` are inverses of each other, and none asks for more where less is
// wanted: random settings of all rows.
//
// CTest takes a few with a fixed seed; scripts/inverses.sh takes as many as it is told.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "privacy/theorems/noise_choice.h"
#include "privacy/theorems/series_law.h"
#include "privacy/theorems/structured_pairs.h"
#include "support/draw.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/text.h"

namespace tsdp::privacy {
namespace {

struct Setting {
  std::string text;
  std::function<AppliedTheorem(double)> at;  // by σ
  PrivacyTarget target;
  std::uint64_t limit = 0;  // uses that are accounted for
};

enum class Rows {
  one_window,
  with_replacement,
  poisson_windows,
  deterministic,
  shuffled,
  poisson,
  wor,
  bins,
  matrix
};
constexpr int rows = 9;

AppliedTheorem of_pair(DominatingPair pair, double sigma) {
  return {"4.4", Bound::upper, CompositionUnit::step, 1, sigma, std::move(pair)};
}

Setting random_setting(test::Draw& draw, int number) {
  const auto row = static_cast<Rows>(number % rows);
  Setting out;
  const auto count = [&](double least, double most) {
    return static_cast<std::int64_t>(draw.log_between(least, most + 0.999));
  };
  out.target.epsilon = draw.log_between(0.2, 12.0);
  out.target.delta = number % 7 == 6 ? 1e-15 : draw.log_between(1e-11, 1e-3);
  const bool steps = row == Rows::poisson || row == Rows::wor || row <= Rows::poisson_windows;
  out.target.uses = number % 5 == 4 ? 1 : static_cast<std::uint64_t>(count(1.0, steps ? 3000.0 : 20.0));
  out.limit = 1'000'000;
  const double share = draw.log_between(1e-3, 1.0);
  const double rho = draw.log_between(0.05, 1.0);
  const int windows = static_cast<int>(count(2.0, 5.0));
  const auto batches = count(2.0, row == Rows::bins ? 2000.0 : 300.0);
  SeriesLaw law{TopLevel::deterministic, batches};
  switch (row) {
    case Rows::one_window: out.at = [=](double s) { return of_pair(one_window_pair(rho * share, s), s); }; break;
    case Rows::with_replacement:
      out.at = [=](double s) { return of_pair(with_replacement_upper(windows, share, rho, s), s); };
      break;
    case Rows::poisson_windows:
      out.at = [=](double s) { return of_pair(poisson_upper(windows, share, rho, s), s); };
      break;
    case Rows::deterministic: break;
    case Rows::shuffled:
      law.sampler = TopLevel::shuffled;
      if (number % 2 == 0) law.reshuffle = Reshuffle::once;
      break;
    case Rows::poisson: law.sampler = TopLevel::poisson; break;
    case Rows::wor: law.sampler = TopLevel::without_replacement; break;
    case Rows::bins:
      law.sampler = TopLevel::balls_in_bins;
      if (number / rows % 2 == 1) law.redraw = Redraw::every_epoch;
      break;
    case Rows::matrix: {
      constexpr StrategyKind kinds[] = {StrategyKind::identity, StrategyKind::bsr, StrategyKind::bisr};
      law.batches = count(2.0, 40.0);
      if (number % 4 != 0) law.sampler = TopLevel::balls_in_bins;
      const auto epochs = std::min<std::int64_t>(static_cast<std::int64_t>(out.target.uses), 4);
      out.target.uses = static_cast<std::uint64_t>(epochs);
      out.limit = static_cast<std::uint64_t>(epochs);
      const auto strategy = std::make_shared<const Strategy>(
          planned_strategy({kinds[number / rows % 3], count(2.0, 4.0), 2}, law.batches, epochs));
      // (Conditional composition takes seconds for every σ: few settings.)
      const auto method = number / rows % 8 == 7 ? CorrelatedMethod::automatic : CorrelatedMethod::renyi;
      out.at = [=](double s) { return series_theorem(law, noise_by(strategy, s), std::nullopt, method); };
      out.text = cat(name(strategy->kind()), " of ", strategy->bands(), " bands, ", name(method));
      break;
    }
  }
  if (row >= Rows::deterministic && row < Rows::matrix) out.at = [=](double s) { return series_theorem(law, s); };
  out.text = cat("number ", number, ", ", number % rows, " ", out.text, ": ", name(law.sampler), " ", law.batches,
                 ", share ", share, ", rho ", rho, ", windows ", windows, ", epsilon ", out.target.epsilon, ", delta ",
                 out.target.delta, ", uses ", out.target.uses);
  return out;
}

/// Where δ is computed on grids, its own relative width.
constexpr double width = 1.2e-2;

void expect_consistent(const Setting& setting) {
  const auto& [epsilon, delta, uses] = setting.target;
  double sigma = 0.0;
  try {
    sigma = least_noise(setting.target, setting.at);
  } catch (const PrivacyError&) {
    return;  // no σ in range
  }
  SCOPED_TRACE(cat("noise multiplier ", sigma));
  EXPECT_EQ(cat(sigma), rounded_up(sigma, 7)) << "not what is printed";
  const auto fresh = [&] { return setting.at(sigma).curve(); };
  const auto stated = fresh()->epsilon(delta, uses);
  EXPECT_LE(stated.upper, epsilon) << "epsilon(sigma)";
  EXPECT_LE(stated.lower, stated.upper);
  // Noise that is least: unless it is 0.01, or no ε is refuted, 1 % less is not enough.
  if (sigma > 0.0102) {
    EXPECT_FALSE(setting.at(0.98 * sigma).curve()->stays_within(epsilon, delta, uses)) << "less noise";
  }
  const auto most = fresh()->max_uses(epsilon, delta, setting.limit);
  EXPECT_GE(most, uses) << "steps(sigma)";
  if (most > 0) {
    EXPECT_LE(fresh()->epsilon(delta, most).upper, epsilon) << "epsilon(steps), " << most;
    if (most < setting.limit) { EXPECT_FALSE(fresh()->stays_within(epsilon, delta, most + 1)) << most; }
  }
  const auto curve = fresh();
  if (stated.upper > 0.0) {
    const auto there = curve->delta(stated.upper, uses);
    EXPECT_LE(there.upper, delta * (1.0 + width)) << "delta(epsilon)";
    EXPECT_LE(there.lower, delta * (1.0 + 1e-9));
    const auto before = curve->delta(0.7 * stated.upper, uses);
    const auto beyond = curve->delta(1.3 * stated.upper, uses);
    EXPECT_LE(beyond.upper, there.upper * (1.0 + 1e-6)) << "delta grows";
    EXPECT_LE(there.upper, before.upper * (1.0 + 1e-6)) << "delta grows";
    // The upper end alone is one, too, and as near as it is meant to be.
    for (const auto& [at, bracket] : {std::pair{stated.upper, there}, std::pair{0.7 * stated.upper, before}}) {
      const double alone = curve->upper_delta(at, uses, width);
      EXPECT_GE(alone, bracket.lower) << at;
      EXPECT_LE(alone, bracket.upper * (1.0 + 3.0 * width) + 1e-30) << at;
    }
    if (before.upper < 0.9 && before.upper > 1e-20) {
      EXPECT_LE(curve->epsilon(before.upper, uses).upper, 0.7 * stated.upper * (1.0 + width)) << "epsilon(delta)";
    }
  }
  // More is asked of a smaller target.
  auto larger = setting.target;
  larger.epsilon *= 1.25;
  EXPECT_LE(least_noise(larger, setting.at), sigma * (1.0 + 1e-9)) << "more noise for a larger target";
}

TEST(Inverses, OfAllRowsAtRandom) {
  const char* wanted = std::getenv("TSDP_INVERSES");
  const char* seed = std::getenv("TSDP_INVERSES_SEED");
  const char* first = std::getenv("TSDP_INVERSES_FIRST");
  const int settings = wanted == nullptr ? 18 : std::atoi(wanted);
  test::Draw draw(seed == nullptr ? 39 : static_cast<std::uint64_t>(std::atoll(seed)));
  for (int i = 0; i < settings; ++i) {
    const auto setting = random_setting(draw, i);
    if (first != nullptr && i < std::atoi(first)) continue;  // to look at one again
    SCOPED_TRACE(setting.text);
    expect_consistent(setting);
    if (wanted != nullptr && i % 90 == 89) std::printf("%d settings\n", i + 1), std::fflush(stdout);
  }
}

// Of many bins with independent noise tables end at an epsilon of four or so: what is enough for less is enough for
// more, and calibration asks this.
TEST(Inverses, MoreEpsilonNeverAsksForMoreNoiseOfBins) {
  RandomAllocationCurve curve(1000, 0.4667);
  ASSERT_TRUE(curve.certifies(4.0, 1e-5, 1));
  for (const double epsilon : {4.1, 5.0, 6.0, 9.0, 20.0}) EXPECT_TRUE(curve.certifies(epsilon, 1e-5, 1)) << epsilon;
  EXPECT_LE(curve.epsilon(1e-5, 1).upper, 4.0);
  // By Rényi divergences, of which a program of its own makes 9.913e-6 at 0.3854 (sums of logarithms).
  RandomAllocationCurve less(1000, 0.3854);
  EXPECT_NEAR(less.delta(8.0, 1, 1e-2).upper, 9.913443557391603e-6, 1e-11);
}

// δ falls in ε over all methods that give it, and what gave it is named.
TEST(Inverses, DeltaOfBinsFallsAndNamesItsMethod) {
  for (const std::int64_t bins : {1000}) {
    RandomAllocationCurve curve(bins, 0.48);
    double last = 1.0;
    for (double epsilon = 3.0; epsilon < 24.0; epsilon *= 1.2) {
      const auto at = curve.delta(epsilon, 1);
      EXPECT_LE(at.upper, last * (1.0 + 1e-9)) << bins << " bins, epsilon " << epsilon;
      last = at.upper;
      const auto& why = at.why;
      const bool exact = why.upper.find("exact pair") != std::string::npos;
      if (exact && at.upper > 1e-12) { EXPECT_LT(at.upper - at.lower, 0.05 * at.upper) << why.upper; }
      EXPECT_TRUE(exact || why.upper.find("Rényi") != std::string::npos ||
                  why.upper.find("Gaussian") != std::string::npos ||
                  why.upper.find("smaller epsilon") != std::string::npos)
          << why.upper;
    }
  }
}

// Where the errors of tables hide δ, what a smaller ε has counts; so an ε that is stated for a δ is found from it
// again.
TEST(Inverses, DeltaOfBinsFallsBelowTheErrorsOfItsTables) {
  RandomAllocationCurve curve(377, 1.292458);
  double last = 1.0;
  for (const double epsilon : {0.7, 0.9, 1.0, 1.1, 1.18226, 1.196, 1.3, 1.5, 1.6}) {
    const double upper = curve.delta(epsilon, 1).upper;
    EXPECT_LE(upper, last * (1.0 + 1e-12)) << epsilon;
    EXPECT_LE(curve.epsilon(upper, 1).upper, epsilon * (1.0 + width)) << epsilon;
    last = upper;
  }
  EXPECT_LT(last, 1.2e-15);
  // Between the points at which tables are asked, the rounding of their values is larger than what δ falls.
  RandomAllocationCurve other(564, 1.204193);
  double before = 1.0;
  for (double epsilon = 0.9; epsilon < 1.45; epsilon *= 1.0037) {
    const double upper = other.delta(epsilon, 1).upper;
    EXPECT_LE(upper, before * (1.0 + 1e-12)) << epsilon;
    before = upper;
  }
}

// Where a table's errors hide delta, few bins have a grid: whoever asks more finely is told no more.
TEST(Inverses, AFinerAnswerOfBinsIsNoLarger) {
  RandomAllocationCurve fine(64, 1.0);
  RandomAllocationCurve rough(64, 1.0);
  const double epsilon = fine.epsilon(6e-15, 1, 1e-3).upper;
  EXPECT_LE(epsilon, rough.epsilon(6e-15, 1, 7e-3).upper * 1.001);
  EXPECT_LE(fine.delta(3.97, 1, 1e-3).upper, rough.delta(3.97, 1, 7e-3).upper * 1.001);
  // And whatever was asked before.
  EXPECT_EQ(fine.delta(3.97, 1, 7e-3).upper, rough.delta(3.97, 1, 7e-3).upper);
  EXPECT_EQ(RandomAllocationCurve(64, 1.0).certifies(1.01 * epsilon, 6e-15, 1),
            fine.certifies(1.01 * epsilon, 6e-15, 1));
}

// Fixed batches cost no less than bins, whatever method is asked, and are an answer of each but conditional
// composition, which is asked for what it gives.
TEST(Inverses, DeltaOfOneMethodIsThatOfItsEpsilon) {
  const auto strategy = std::make_shared<const Strategy>(planned_strategy({StrategyKind::bsr, 4, 2}, 2, 4));
  for (const auto method : {CorrelatedMethod::renyi, CorrelatedMethod::gram, CorrelatedMethod::deterministic,
                            CorrelatedMethod::automatic}) {
    CorrelatedNoiseCurve curve(strategy, TopLevel::balls_in_bins, 2, 12.36277, std::nullopt, method);
    const double delta = 9.524928769008386e-06;
    const double epsilon = curve.epsilon(delta, 4).upper;
    EXPECT_LE(curve.delta(epsilon, 4).upper, delta * (1.0 + width)) << name(method);
    EXPECT_TRUE(curve.certifies(epsilon, delta, 4)) << name(method);
  }
}

// Larger orders come from fewer bands of the matrix, so that the least over both is not convex in the order: nothing
// may stop at an order that looks like the least. And as small a δ as is asked for is found by delta(), too.
TEST(Inverses, DeltaOfCorrelatedNoiseIsThatOfItsEpsilon) {
  struct Row {
    std::int64_t bins, epochs;
    double sigma, delta;
    CorrelatedMethod method;
  };
  for (const auto& [bins, epochs, sigma, delta, method] :
       {Row{17, 4, 4.986804, 3.565301913058312e-10, CorrelatedMethod::renyi},
        Row{8, 2, 30.0, 1e-15, CorrelatedMethod::automatic}}) {
    const auto strategy = std::make_shared<const Strategy>(planned_strategy({StrategyKind::bisr, 2, 2}, bins, epochs));
    const auto fresh = [&, bins = bins, sigma = sigma, method = method] {
      return CorrelatedNoiseCurve(strategy, TopLevel::balls_in_bins, bins, sigma, std::nullopt, method);
    };
    const auto uses = static_cast<std::uint64_t>(epochs);
    const double epsilon = fresh().epsilon(delta, uses).upper;
    EXPECT_LE(fresh().delta(epsilon, uses).upper, delta * (1.0 + width)) << bins;
    // Whatever was asked before.
    auto asked = fresh();
    EXPECT_TRUE(asked.certifies(epsilon, delta, uses));
    EXPECT_EQ(asked.epsilon(delta, uses).upper, epsilon) << bins;
  }
}

// The identity as matrix is independent noise.
TEST(Inverses, AutoWithTheIdentityIsTheExactProfile) {
  const auto strategy = std::make_shared<const Strategy>(planned_strategy({StrategyKind::identity, 1, 1}, 100, 1));
  for (const double epsilon : {0.5, 8.0}) {
    CorrelatedNoiseCurve matrix(strategy, TopLevel::balls_in_bins, 100, 0.6);
    RandomAllocationCurve independent(100, 0.6);
    EXPECT_EQ(matrix.delta(epsilon, 1).upper, independent.delta(epsilon, 1).upper);
    EXPECT_EQ(matrix.delta(epsilon, 1).why.upper, independent.delta(epsilon, 1).why.upper);
    EXPECT_TRUE(matrix.certifies(epsilon, independent.delta(epsilon, 1).upper * (1.0 + 1e-9), 1));
  }
}

// Conditional composition: what epsilon() certifies delta() knows, and a larger ε has no larger δ.
TEST(Inverses, DeltaOfConditionalCompositionIsThatOfEpsilon) {
  const auto strategy = std::make_shared<const Strategy>(planned_strategy({StrategyKind::identity, 1, 1}, 30, 1));
  CorrelatedNoiseCurve curve(strategy, TopLevel::balls_in_bins, 30, 1.8, std::nullopt, CorrelatedMethod::conditional);
  const double epsilon = curve.epsilon(1e-5, 1).upper;
  ASSERT_LT(epsilon, 1.0);
  double last = 1e-5 * 1.011;
  for (const double factor : {1.0, 3.0}) {
    const double at = curve.delta(factor * epsilon, 1).upper;
    EXPECT_LE(at, last * (1.0 + 1e-2)) << factor;
    last = at;
  }
}

// A single step has a closed form: its σ, and its one step.
TEST(Inverses, OneStepFitsTheNoiseThatIsCalibratedForIt) {
  for (const double delta : {1e-5, 1e-15})
    for (const std::uint64_t uses : {1ULL, 10ULL}) {
      const auto at = [](double s) { return of_pair(one_window_pair(1.0 / 50.0, s), s); };
      const double sigma = least_noise(PrivacyTarget{8.0, delta, uses}, at);
      EXPECT_GE(at(sigma).curve()->max_uses(8.0, delta), uses) << delta;
      EXPECT_LE(at(sigma).curve()->epsilon(delta, uses).upper, 8.0) << delta;
    }
}

// A replaced series is known at the same δ, whatever (1 + e^ε) δ is.
// A replaced series is removed and added: what one direction costs says nothing of it. Here all of it lies in a
// removal: with noise this small the event that the sum is above 0.5 has a chance of 1/20 where the series is there,
// and of next to nothing where another one points the other way.
TEST(Substitution, AsksBothDirectionsWhateverOneIsStated) {
  const SeriesLaw law{TopLevel::poisson, 20};
  const auto one_sided = series_theorem(law, 0.02, Direction::add).curve()->epsilon(1e-6, 1).upper;
  ASSERT_LT(one_sided, 0.1);
  const auto found = substitution_of(law, 0.02, 1, one_sided, 1e-6);
  EXPECT_TRUE(found.delta >= 0.05 || found.epsilon > 300.0) << found.epsilon << " at " << found.delta;
}

// Two neighbours in a row are looked for up to a stated ε of 20. Beyond, the Gaussian bound alone is given, at once.
TEST(Substitution, AsksNoSecondNeighbourWhereEpsilonProtectsNobody) {
  const SeriesLaw law{TopLevel::poisson, 10};
  const double delta = 1e-7;
  const auto at = [&](std::uint64_t uses, double epsilon) { return substitution_of(law, 2.0, uses, epsilon, delta); };
  const auto gaussian = [&](std::uint64_t uses) { return GaussianCurve(2.0, 2.0).epsilon(delta, uses).upper; };
  EXPECT_EQ(at(5000, 26.2).epsilon, gaussian(5000));
  EXPECT_EQ(at(5000, 26.2).delta, delta);
  EXPECT_LT(at(2500, 16.0).epsilon, 0.1 * gaussian(2500));
  // Where no bound is in reach nothing is stated.
  const auto beyond = at(1'000'000'000, 1e4);
  EXPECT_TRUE(beyond.delta == 1.0 || beyond.epsilon >= 1e4);
}

TEST(Substitution, IsAtTheSameDeltaAndAtMostTheGaussianOfTwiceTheDistance) {
  const double delta = 1e-2;
  for (const auto sampler : {TopLevel::deterministic, TopLevel::shuffled, TopLevel::poisson, TopLevel::balls_in_bins,
                             TopLevel::without_replacement}) {
    const SeriesLaw law{sampler, 20};
    const double sigma = 0.4;
    const auto theorem = series_theorem(law, sigma);
    const double epsilon = theorem.curve()->epsilon(delta, 1).upper;
    const auto replaced = substitution_of(law, sigma, 1, epsilon, delta);
    EXPECT_EQ(replaced.delta, delta) << name(sampler);
    EXPECT_GE(replaced.epsilon, epsilon * (1.0 - 1e-6)) << name(sampler);
    EXPECT_TRUE(std::isfinite(replaced.epsilon)) << name(sampler);
    if (sampler == TopLevel::deterministic || sampler == TopLevel::shuffled) {
      EXPECT_EQ(replaced.epsilon, GaussianCurve(sigma, 2.0).epsilon(delta, 1).upper) << name(sampler);
    }
    if (sampler == TopLevel::balls_in_bins) {
      EXPECT_LE(replaced.epsilon, GaussianCurve(sigma, 2.0).epsilon(delta, 1).upper * (1.0 + 1e-12)) << name(sampler);
    }
    if (sampler == TopLevel::poisson || sampler == TopLevel::balls_in_bins) {
      const double half = 0.5 * replaced.epsilon;
      EXPECT_GT(replaced.epsilon, 1.05 * epsilon) << name(sampler);
      const bool by_two = (1.0 + std::exp(half)) * theorem.curve()->delta(half, 1, 1e-2).upper <= delta * (1.0 + 1e-9);
      EXPECT_TRUE(by_two || sampler == TopLevel::balls_in_bins) << name(sampler);
    }
  }
  // With correlated noise the sensitivity is doubled.
  const auto strategy = std::make_shared<const Strategy>(planned_strategy({StrategyKind::bsr, 3, 1}, 10, 2));
  const auto replaced = substitution_of({TopLevel::deterministic, 10}, noise_by(strategy, 1.0), 2, 5.0, delta);
  const double mu = 2.0 * std::sqrt(squared_sensitivity(*strategy, 10, 2));
  EXPECT_NEAR(gaussian_delta(replaced.epsilon, mu).upper, delta, 1e-6 * delta);
}

// Coefficients of which nothing is private take no time, and one line says so.
TEST(Inverses, WildCoefficientsAreAnsweredOrRefusedAtOnce) {
  const auto with = [](std::vector<double> numbers, NoiseRecursion::Form form) {
    NoiseRecursion recursion;
    recursion.form = form;
    recursion.coefficients = std::move(numbers);
    return std::make_shared<const Strategy>(StrategyKind::file, recursion, 20);
  };
  const auto epsilon_of = [&](std::shared_ptr<const Strategy> strategy) {
    return series_theorem({TopLevel::balls_in_bins, 10}, noise_by(std::move(strategy), 8.0))
        .curve()
        ->epsilon(1e-5, 2)
        .upper;
  };
  EXPECT_GT(epsilon_of(with({1.0, -2.0}, NoiseRecursion::Form::banded_inverse)), 1e6);
  for (const auto& numbers : {std::vector<double>{1e-300, 1e300}, {1.0, 1e12}, {1.0, 1e200}})
    EXPECT_THROW(with(numbers, NoiseRecursion::Form::banded), UsageError);
  for (const auto& numbers : {std::vector<double>{1e12, 1e11}, {1e200, 1e199}, {1e300}}) {
    try {
      static_cast<void>(epsilon_of(with(numbers, NoiseRecursion::Form::banded)));
      ADD_FAILURE() << "answered";
    } catch (const PrivacyError& error) {
      EXPECT_NE(std::string(error.what()).find("coefficients: one series moves the sums"), std::string::npos)
          << error.what();
    }
  }
}

// What a file of coefficients is.
TEST(Inverses, CoefficientsThatAreNoJsonAreToldWhatIsExpected) {
  const auto file = std::filesystem::path(testing::TempDir()) / "coefficients_of_inverses_test.json";
  for (const char* text : {"[1, NaN]", "[1, 0.5", "{}", "[1, \"a\"]", "1, 2"}) {
    write_file_atomically(file, text);
    try {
      static_cast<void>(read_coefficients(file));
      ADD_FAILURE() << text;
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find("expected a JSON list of finite numbers, the first column of C"),
                std::string::npos)
          << error.what();
    }
  }
  std::filesystem::remove(file);
}

// A record's certificate names the method that gave its number.
TEST(Inverses, AnAskedCertificateNamesOneMethod) {
  const auto strategy = std::make_shared<const Strategy>(planned_strategy({StrategyKind::bsr, 3, 1}, 10, 2));
  for (const auto& theorem : {series_theorem({TopLevel::balls_in_bins, 10}, noise_by(strategy, 4.0)),
                              series_theorem({TopLevel::balls_in_bins, 10}, 2.0)}) {
    const auto why = asked_certificate(theorem, 1e-5, 2);
    EXPECT_FALSE(why.upper.empty());
    EXPECT_EQ(why.upper.find("the least of"), std::string::npos) << why.upper;
    EXPECT_EQ(asked_certificate(theorem, 1e-5, 2).upper, why.upper);
    const auto curve = theorem.curve();
    EXPECT_EQ(curve->epsilon(1e-5, 2).why.upper, why.upper);
  }
}

}  // namespace
}  // namespace tsdp::privacy
