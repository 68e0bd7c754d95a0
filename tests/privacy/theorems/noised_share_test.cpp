// How far noise hides a change, against a count over every window and place.
#include "privacy/theorems/noised_share.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "tsdp/base/error.h"
#include "tsdp/privacy/theorems/theorems.h"

namespace tsdp::privacy {
namespace {

struct Shape {
  std::int64_t length, context, forecast;
};

/// Sum over all windows of 2 Φ(shift/2) − 1 for the changed steps `changed` (bit j − 1 for step j), step by step.
double sum_over_windows(const Shape& s, unsigned changed, double context_noise, double forecast_noise) {
  double sum = 0.0;
  for (std::int64_t t = 1; t <= s.length - s.forecast + 1; ++t) {
    double squared = 0.0;  // squared distance of the noised windows in standard deviations
    for (std::int64_t j = std::max<std::int64_t>(1, t - s.context); j < t + s.forecast; ++j) {
      if ((changed >> (j - 1) & 1U) == 0) continue;
      const double noise = j < t ? context_noise : forecast_noise;
      squared += noise == 0.0 ? std::numeric_limits<double>::infinity() : 1.0 / (noise * noise);
    }
    sum += std::erf(std::sqrt(squared) / std::sqrt(8.0));
  }
  return sum;
}

TEST(NoisedShare, IsTheWorstPlaceOfConsecutiveChanges) {
  for (std::int64_t length = 1; length <= 12; ++length)
    for (std::int64_t context = 1; context <= 5; ++context)
      for (std::int64_t forecast = 1; forecast <= std::min<std::int64_t>(4, length); ++forecast)
        for (std::int64_t w = 1; w <= std::min<std::int64_t>(6, length); ++w)
          for (const auto& [context_noise, forecast_noise] :
               std::vector<std::pair<double, double>>{{0.0, 0.0}, {0.0, 1.0}, {2.0, 0.0}, {1.0, 1.0}, {0.7, 3.0}}) {
            const Shape shape{length, context, forecast};
            double worst = 0.0;
            for (std::int64_t first = 0; first + w <= length; ++first)
              worst =
                  std::max(worst, sum_over_windows(shape, ((1U << w) - 1U) << first, context_noise, forecast_noise));
            worst /= static_cast<double>(length - forecast + 1);
            const double found =
                noised_share(length, context, forecast, {Relation::event, w, 1.0}, context_noise, forecast_noise);
            EXPECT_GE(found, worst) << length << " " << context << " " << forecast << " " << w;
            EXPECT_NEAR(found, worst, 1e-12) << length << " " << context << " " << forecast << " " << w;
          }
}

TEST(NoisedShare, IsNeverBelowChangesAnywhere) {
  for (std::int64_t length = 2; length <= 9; ++length)
    for (std::int64_t context = 1; context <= 3; ++context)
      for (std::int64_t forecast = 1; forecast <= std::min<std::int64_t>(3, length); ++forecast)
        for (std::int64_t w = 1; w <= std::min<std::int64_t>(4, length); ++w)
          for (const auto& [context_noise, forecast_noise] :
               std::vector<std::pair<double, double>>{{0.0, 0.0}, {0.0, 1.0}, {2.0, 0.0}, {1.0, 1.0}, {0.7, 3.0}}) {
            double worst = 0.0;
            for (unsigned changed = 0; changed < (1U << length); ++changed)
              if (std::popcount(changed) <= w)
                worst = std::max(worst,
                                 sum_over_windows({length, context, forecast}, changed, context_noise, forecast_noise));
            worst /= static_cast<double>(length - forecast + 1);
            const PrivacyUnit unit{Relation::user, w, 1.0};
            const double found = noised_share(length, context, forecast, unit, context_noise, forecast_noise);
            EXPECT_GE(found, worst * (1.0 - 1e-15)) << length << " " << context << " " << forecast << " " << w;
            EXPECT_LE(found, (1.0 + 1e-13) * static_cast<double>(touched_windows(length, context, forecast, unit)) /
                                 static_cast<double>(length - forecast + 1));
          }
}

TEST(NoisedShare, OfLongSeriesAndManyLengths) {
  // Room for all windows: L_C + L_F terms, whatever the length.
  const double share = noised_share(50000, 96, 24, {Relation::event, 1, 1.0}, 1.0, 2.0);
  const double terms = 96.0 * std::erf(0.5 / std::sqrt(2.0)) + 24.0 * std::erf(0.25 / std::sqrt(2.0));
  EXPECT_NEAR(share, terms / (50000 - 23), 1e-14);
  EXPECT_LE(noised_share(50000, 20000, 10000, {Relation::event, 25000, 1.0}, 1.0, 2.0), 1.0);
  SubsamplingScheme::Parameters p;
  std::vector<std::int64_t> lengths;
  for (std::int64_t length = 1000; length < 60000; ++length) lengths.push_back(length);
  p.lengths = lengths;
  p.context_length = 96;
  p.forecast_length = 24;
  p.context_noise = 1.0;
  p.forecast_noise = 2.0;
  EXPECT_DOUBLE_EQ(noised_share(SubsamplingScheme(p), {Relation::event, 1, 1.0}),
                   noised_share(1000, 96, 24, {Relation::event, 1, 1.0}, 1.0, 2.0));
  EXPECT_THROW(static_cast<void>(noised_share(900000000, 500000000, 24, {Relation::event, 1, 1.0}, 1.0, 2.0)),
               UsageError);
}

}  // namespace
}  // namespace tsdp::privacy
