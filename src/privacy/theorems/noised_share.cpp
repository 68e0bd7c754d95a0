#include "privacy/theorems/noised_share.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/privacy/theorems/theorems.h"

namespace tsdp::privacy {
namespace {

constexpr std::int64_t most_offsets = 100'000'000;

/// Sums of noised_window_variation over the windows t = j + d of a series in which the steps j … j + w − 1 differ.
/// (c_t, f_t) depends on d alone, and is (0, 0) outside of 1 − L_F ≤ d ≤ L_C + w − 1.
class ConsecutiveChange {
 public:
  ConsecutiveChange(std::int64_t context_length, std::int64_t forecast_length, std::int64_t w, double context_noise,
                    double forecast_noise)
      : first_(1 - forecast_length), last_(context_length + w - 1), w_(w) {
    if (last_ - first_ >= most_offsets)
      throw UsageError(cat("context length, forecast length and w: found ", context_length, ", ", forecast_length,
                           " and ", w, "; expected a sum of at most ", most_offsets,
                           " where noise is accounted for by tsdp.1"));
    before_.reserve(static_cast<std::size_t>(last_ - first_ + 2));
    before_.push_back(0.0L);
    for (auto d = first_; d <= last_; ++d) {
      // Changed steps, counted from j: context of window d is d − L_C … d − 1, its forecast d … d + L_F − 1.
      const auto within = [&](std::int64_t from, std::int64_t to) {
        return std::max<std::int64_t>(0, std::min(w - 1, to) - std::max<std::int64_t>(0, from) + 1);
      };
      before_.push_back(before_.back() + static_cast<long double>(noised_window_variation(
                                             within(d - context_length, d - 1), within(d, d + forecast_length - 1),
                                             context_noise, forecast_noise)));
    }
  }

  /// The maximum over j of the sum over the windows 1 … T, rounded up.
  [[nodiscard]] double largest_sum(std::int64_t windows) const {
    const auto all = before_.back();
    long double largest = all;
    // Where T reaches the number of offsets, some j has them all; a shorter series has few places to check.
    if (windows <= last_ - first_) {
      const auto length = windows - first_;  // L = T + L_F − 1
      largest = 0.0L;
      for (std::int64_t j = 1; j + w_ - 1 <= length; ++j) {
        const auto from = std::max(first_, 1 - j);
        const auto to = std::min(last_, windows - j);
        if (from <= to) largest = std::max(largest, at(to + 1) - at(from));
      }
    }
    // Each partial sum is off by less than (number of terms) · u · (all of them), each term by a few double roundings.
    const auto rounding =
        2.0L * static_cast<long double>(before_.size()) * std::numeric_limits<long double>::epsilon() * all;
    return static_cast<double>((largest + rounding) * (1.0L + 1e-14L));
  }

 private:
  [[nodiscard]] long double at(std::int64_t d) const { return before_[static_cast<std::size_t>(d - first_)]; }

  std::int64_t first_;
  std::int64_t last_;
  std::int64_t w_;
  std::vector<long double> before_;  // sums over d′ < d
};

/// The largest noised_share over `lengths`.
double largest_share(const std::vector<std::int64_t>& lengths, std::int64_t context_length,
                     std::int64_t forecast_length, const PrivacyUnit& unit, double context_noise,
                     double forecast_noise) {
  const bool user = unit.relation == Relation::user;
  const auto at_least_touched = [&](std::int64_t length) {
    return touched_windows(length, context_length, forecast_length, unit);
  };
  for (const auto length : lengths) static_cast<void>(at_least_touched(length));  // refuses before anything is summed
  const ConsecutiveChange change(context_length, forecast_length, user ? 1 : unit.w, context_noise, forecast_noise);
  // The most telling window has as many changed steps as fit where the noise is less, the rest in the other part.
  const bool context_first = context_noise < forecast_noise;
  const auto first = std::min(unit.w, context_first ? context_length : forecast_length);
  const auto second = std::min(unit.w - first, context_first ? forecast_length : context_length);
  const double most = noised_window_variation(context_first ? first : second, context_first ? second : first,
                                              context_noise, forecast_noise);
  double largest = 0.0;
  for (const auto length : lengths) {
    const auto windows = length - forecast_length + 1;
    double sum = change.largest_sum(windows);
    if (user) {
      // a ↦ 2Φ(½√a) − 1 is concave and 0 at 0, hence subadditive: w changed steps add up to at most w times the worst
      // one, in every window and so in the sum.
      sum = std::min(static_cast<double>(unit.w) * sum, static_cast<double>(at_least_touched(length)) * most);
    }
    largest = std::max(largest, sum / static_cast<double>(windows));
  }
  return std::min(1.0, largest * (1.0 + 1e-14));
}

}  // namespace

double noised_window_variation(std::int64_t context, std::int64_t forecast, double context_noise,
                               double forecast_noise) {
  if ((context > 0 && context_noise == 0.0) || (forecast > 0 && forecast_noise == 0.0)) return 1.0;
  const auto distance = [](std::int64_t steps, double noise) {
    return steps == 0 ? 0.0 : std::sqrt(static_cast<double>(steps)) / noise;
  };
  return std::erf(std::hypot(distance(context, context_noise), distance(forecast, forecast_noise)) /
                  (2.0 * std::numbers::sqrt2));
}

double noised_share(std::int64_t length, std::int64_t context_length, std::int64_t forecast_length,
                    const PrivacyUnit& unit, double context_noise, double forecast_noise) {
  return largest_share({length}, context_length, forecast_length, unit, context_noise, forecast_noise);
}

double noised_share(const SubsamplingScheme& scheme, const PrivacyUnit& unit) {
  const auto& p = scheme.parameters();
  return largest_share(p.lengths.distinct(), p.context_length, p.forecast_length, unit, p.context_noise,
                       p.forecast_noise);
}

}  // namespace tsdp::privacy
