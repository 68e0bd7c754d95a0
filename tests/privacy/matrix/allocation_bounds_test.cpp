// Rényi divergences and bounds by larger Gram matrices, where they are known in closed form.
#include "privacy/matrix/allocation_bounds.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "privacy/whole_series/allocation_renyi.h"
#include "privacy/whole_series/gaussian_curve.h"
#include "privacy/whole_series/random_allocation_curve.h"

namespace tsdp::privacy {
namespace {

// All bins alike are one Gaussian mechanism: R_α = α g/2σ². The terms of the sum lie further apart than a double's
// exponents.
TEST(AllocationRenyi, BinsThatAreAlikeAreOneGaussian) {
  for (const double g : {0.693, 0.05, 3.0})
    for (const std::int64_t bins : {3, 5}) {
      const Gram gram(std::vector<double>(static_cast<std::size_t>(bins * bins), g), bins);
      const std::int64_t bands = bins / 2 + 1;
      const auto found = renyi_remove(gram, 1.0, bands, 64);
      ASSERT_EQ(found.size(), 65U);
      for (const std::size_t order : {2, 17, 64}) {
        const double exact = 0.5 * static_cast<double>(order) * g;
        EXPECT_GE(found[order], exact * (1.0 - 1e-12)) << "order " << order << ", " << bins << " bins of " << g;
        // (e^{α²g/2} may be more than a number can be: then nothing is claimed.)
        if (exact * static_cast<double>(order) < 700.0) {
          EXPECT_LE(found[order], exact * (1.0 + 1e-6)) << "order " << order << ", " << bins << " bins of " << g;
        }
      }
    }
}

// With next to nothing in common the bins' own part is all there is, with next to nothing of its own the common one.
TEST(CommonAndOwn, LiesBetweenItsTwoParts) {
  constexpr std::int64_t bins = 30;
  for (const auto direction : {Direction::remove, Direction::add})
    for (const double epsilon : {0.01, 0.1, 0.4}) {
      const auto own = RandomAllocationCurve(bins, 1.0 / 0.5).delta(direction, epsilon, 1, 1e-3);
      CommonAndOwn nearly_own(bins, 1e-8, 0.25);
      const auto found = nearly_own.delta(direction, epsilon);
      EXPECT_NEAR(found.upper, own.upper, 0.02 * own.upper + 1e-4) << epsilon;
      EXPECT_GE(found.upper, own.lower * (1.0 - 1e-9));
      CommonAndOwn nearly_common(bins, 0.25, 1e-8);
      const auto common = gaussian_delta(epsilon, 0.5);
      EXPECT_NEAR(nearly_common.delta(direction, epsilon).upper, common.upper, 0.02 * common.upper) << epsilon;
      // Both together: no less than either, and no more than t + u as one Gaussian (joint convexity).
      CommonAndOwn both(bins, 0.25, 0.25);
      const auto sum = both.delta(direction, epsilon);
      EXPECT_LE(sum.lower, sum.upper);
      EXPECT_GE(sum.upper, common.lower);
      EXPECT_LE(sum.lower, gaussian_delta(epsilon, std::sqrt(0.5)).upper);
      EXPECT_LE(sum.upper - sum.lower, 0.05 * sum.upper) << epsilon;
    }
}

}  // namespace
}  // namespace tsdp::privacy
