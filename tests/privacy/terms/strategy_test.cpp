#include "tsdp/privacy/terms/strategy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::privacy {
namespace {

std::vector<Strategy> strategies(std::int64_t steps) {
  return {Strategy(StrategyKind::identity, {}, steps), Strategy(StrategyKind::bsr, square_root_bands(4), steps),
          Strategy(StrategyKind::bisr, inverse_square_root_bands(4), steps),
          Strategy(StrategyKind::blt, {NoiseRecursion::Form::buffered, {}, {0.98, 0.7}, {0.15, 0.3}}, steps),
          Strategy(StrategyKind::file, {NoiseRecursion::Form::banded, {2.0, -1.0, 0.5}}, steps)};
}

TEST(Strategy, TheInverseColumnIsTheInverse) {
  for (const auto& s : strategies(60)) {
    const auto c = s.column();
    const auto q = s.inverse();
    ASSERT_EQ(c.size(), 60u);
    for (std::size_t t = 0; t < c.size(); ++t) {
      double sum = 0.0;
      for (std::size_t j = 0; j <= t; ++j) sum += c[j] * q[t - j];
      EXPECT_NEAR(sum, t == 0 ? 1.0 : 0.0, 1e-13) << name(s.kind()) << " at " << t;
      EXPECT_LE(s.column_lower()[t], std::abs(c[t]));
      EXPECT_GE(s.column_upper()[t], std::abs(c[t]));
      EXPECT_NEAR(s.column_upper()[t], s.column_lower()[t], 1e-13);
    }
  }
}

TEST(Strategy, SignsAndBands) {
  const auto all = strategies(60);
  EXPECT_TRUE(all[0].is_identity());
  for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(all[i].non_negative()) << i;
  EXPECT_FALSE(all[4].non_negative());
  EXPECT_EQ(all[1].bands(), 4);
  EXPECT_EQ(all[2].bands(), 60);
}

/// The definition: sums of columns of the matrix itself.
TEST(Gram, IsThatOfTheSummedColumns) {
  for (const auto& strategy : strategies(24)) {
    for (const auto& [bins, epochs] : {std::pair<std::int64_t, std::int64_t>{6, 4}, {6, 3}, {24, 1}, {1, 24}, {5, 2}}) {
      const auto steps = bins * epochs;
      const auto c = strategy.column();
      std::vector<std::vector<double>> m(static_cast<std::size_t>(bins),
                                         std::vector<double>(static_cast<std::size_t>(steps), 0.0));
      for (std::int64_t i = 0; i < bins; ++i)
        for (std::int64_t j = 0; j < epochs; ++j)
          for (std::int64_t n = i + j * bins; n < steps; ++n)
            m[static_cast<std::size_t>(i)][static_cast<std::size_t>(n)] +=
                std::abs(c[static_cast<std::size_t>(n - i - j * bins)]);
      const Gram upper(strategy, bins, epochs, Gram::Side::upper);
      const Gram lower(strategy, bins, epochs, Gram::Side::lower);
      for (std::int64_t i = 0; i < bins; ++i)
        for (std::int64_t j = 0; j < bins; ++j) {
          double product = 0.0;
          for (std::size_t n = 0; n < static_cast<std::size_t>(steps); ++n)
            product += m[static_cast<std::size_t>(i)][n] * m[static_cast<std::size_t>(j)][n];
          EXPECT_NEAR(upper.at(i, j), product, 1e-12 * (1.0 + product));
          EXPECT_LE(lower.at(i, j), upper.at(i, j));
          EXPECT_LE(lower.at(i, j), product * (1 + 1e-14));
          EXPECT_GE(upper.at(i, j), product * (1 - 1e-14));
        }
      EXPECT_NEAR(squared_sensitivity(strategy, bins, epochs), upper.largest_diagonal(),
                  1e-12 * upper.largest_diagonal());
    }
  }
}

/// Every order of two or three epochs, every combination of signs.
TEST(OwnOrders, NoPartsOfARecordMoveSumsFurther) {
  auto all = strategies(12);
  all.emplace_back(StrategyKind::file, NoiseRecursion{NoiseRecursion::Form::banded, {1.0, 0.1, 0.9, 0.0, 0.3}}, 12);
  all.emplace_back(StrategyKind::bsr, square_root_bands(2), 12);
  for (const auto& strategy : all)
    for (const auto& [bins, epochs] :
         {std::pair<std::int64_t, std::int64_t>{4, 3}, {6, 2}, {3, 3}, {12, 1}, {1, 12}, {2, 2}}) {
      SCOPED_TRACE(cat(name(strategy.kind()), ", ", bins, " bins, ", epochs, " epochs"));
      const auto steps = bins * epochs;
      const auto c = strategy.column();
      double most = 0.0;
      std::int64_t orders = 1;
      for (std::int64_t m = 0; m < epochs; ++m) orders *= bins;
      for (std::int64_t order = 0; order < orders; ++order)
        for (std::int64_t signs = 0; signs < (std::int64_t{1} << epochs); ++signs) {
          std::vector<double> moved(static_cast<std::size_t>(steps), 0.0);
          auto rest = order;
          for (std::int64_t m = 0; m < epochs; ++m, rest /= bins)
            for (auto n = m * bins + rest % bins; n < steps; ++n)
              moved[static_cast<std::size_t>(n)] +=
                  ((signs >> m) % 2 == 0 ? 1.0 : -1.0) * c[static_cast<std::size_t>(n - m * bins - rest % bins)];
          double squared = 0.0;
          for (const double x : moved) squared += x * x;
          most = std::max(most, squared);
        }
      const double bound = squared_sensitivity_of_own_orders(strategy, bins, epochs);
      EXPECT_GE(bound, most);
      if (strategy.is_identity()) { EXPECT_NEAR(bound, most, 1e-12 * most); }
      // Two bands meet where the last step of an epoch is followed by the first of the next, which three epochs in a
      // row can do once between them.
      if (strategy.bands() == 2 && epochs == 2 && bins > 2) { EXPECT_NEAR(bound, most, 1e-12 * most); }
    }
}

// The sum of the definition, and the share of all planned epochs that bounds the first ones.
TEST(OwnOrders, AreAsDefined) {
  auto all = strategies(60);
  all.emplace_back(StrategyKind::file, NoiseRecursion{NoiseRecursion::Form::banded, {1.0, 0.0, 0.0, 1.2}}, 60);
  for (const auto& strategy : all) {
    const auto& c = strategy.column_upper();
    const double planned = squared_sensitivity_of_own_orders(strategy, 5, 12);
    for (std::int64_t epochs = 1; epochs <= 12; ++epochs) {
      SCOPED_TRACE(cat(name(strategy.kind()), ", ", epochs, " epochs"));
      const auto steps = static_cast<std::size_t>(5 * epochs);
      std::vector<double> d(c.begin(), c.begin() + static_cast<std::ptrdiff_t>(steps));
      for (std::size_t t = steps - 1; t-- > 0;) d[t] = std::max(d[t], d[t + 1]);
      const auto product = [&](std::size_t apart) {
        double sum = 0.0;
        for (std::size_t t = 0; t + apart < steps; ++t) sum += d[t] * d[t + apart];
        return sum;
      };
      double expected = static_cast<double>(epochs) * product(0);
      for (std::int64_t x = 1; x < epochs; ++x)
        expected += 2.0 * static_cast<double>(epochs - x) * product(static_cast<std::size_t>((x - 1) * 5 + 1));
      const double found = squared_sensitivity_of_own_orders(strategy, 5, epochs);
      EXPECT_GE(found, expected);
      EXPECT_LE(found, expected * (1.0 + 1e-12));
      EXPECT_GE(found, squared_sensitivity(strategy, 5, epochs) * (1.0 - 1e-12));
      EXPECT_LE(found, static_cast<double>(epochs) / 12.0 * planned * (1.0 + 1e-12));
    }
  }
}

TEST(Gram, EntriesBeyondABandAreCyclic) {
  // b = 4; at distance 2 only (0, 2) and (1, 3).
  const Gram g({9, 1, 5, 2, 1, 9, 3, 6, 5, 3, 9, 4, 2, 6, 4, 9}, 4);
  EXPECT_EQ(g.largest_beyond(1), 6.0);
  EXPECT_EQ(g.largest_beyond(2), 6.0);
  EXPECT_EQ(g.largest_beyond(3), 0.0);
  EXPECT_EQ(g.largest_beside(), 6.0);
  EXPECT_EQ(g.least_beside(), 1.0);
}

// C⁻¹ of such coefficients grows as 2^t, so that rounding would swallow the noise that is accounted for.
TEST(Strategy, RefusesNoiseThatOutgrowsNumbers) {
  const NoiseRecursion doubling{NoiseRecursion::Form::banded, {1.0, 2.0}};
  EXPECT_NO_THROW(Strategy(StrategyKind::file, doubling, 21));
  for (const std::int64_t steps : {22, 60, 5000})
    EXPECT_THROW(Strategy(StrategyKind::file, doubling, steps), UsageError) << steps;
  // Its scale does not matter, nor the form.
  EXPECT_THROW(Strategy(StrategyKind::file, {NoiseRecursion::Form::banded, {1e-9, 2e-9}}, 60), UsageError);
  EXPECT_THROW(Strategy(StrategyKind::file, {NoiseRecursion::Form::banded_inverse, {1.0, 1e7}}, 2), UsageError);
  EXPECT_THROW(Strategy(StrategyKind::file, {NoiseRecursion::Form::buffered, {}, {0.5}, {3.0}}, 60), UsageError);
  EXPECT_NO_THROW(Strategy(StrategyKind::file, square_root_bands(8), 5000));
  // What the programs make does not grow.
  for (const std::int64_t bands : {2, 16, 64})
    EXPECT_NO_THROW(Strategy(StrategyKind::file, square_root_bands(bands), 20'000)) << bands;
}

TEST(Strategy, RefusesWhatItCannotBe) {
  EXPECT_THROW(Strategy(StrategyKind::file, {NoiseRecursion::Form::banded, {0.0, 1.0}}, 5), UsageError);
  EXPECT_THROW(Strategy(StrategyKind::file, {NoiseRecursion::Form::banded, {}}, 5), UsageError);
  EXPECT_THROW(Strategy(StrategyKind::blt, {NoiseRecursion::Form::buffered, {}, {1.0}, {0.5}}, 5), UsageError);
  EXPECT_THROW(Strategy(StrategyKind::bsr, square_root_bands(2), 0), UsageError);
  // Its inverse grows without bound, and with it C.
  EXPECT_THROW(Strategy(StrategyKind::file, {NoiseRecursion::Form::banded_inverse, {1e-4, 1.0}}, 5000), UsageError);
  EXPECT_THROW(static_cast<void>(square_root_bands(0)), UsageError);
  const Strategy s(StrategyKind::bsr, square_root_bands(2), 20);
  EXPECT_THROW(Gram(s, 5, 5, Gram::Side::upper), UsageError);
}

}  // namespace
}  // namespace tsdp::privacy
