#include "privacy/accountant/components.h"

#include <algorithm>

#include "privacy/terms/checks.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::privacy {
namespace {

/// Weights on first … last from the ratio of neighbours w(i+1)/w(i), started at `mode` and normalised: no term that
/// matters underflows, and each carries two roundings a step away from the mode.
template <class Ratio>
std::vector<DominatingPair::Component> by_recurrence(std::int64_t first, std::int64_t last, std::int64_t mode,
                                                     double spacing, Ratio ratio) {
  mode = std::clamp(mode, first, last);
  std::vector<long double> right{1.0L};
  for (std::int64_t i = mode; i < last; ++i) {
    right.push_back(right.back() * ratio(i));
    if (right.back() < 1e-305L) break;
  }
  std::vector<long double> left;
  long double value = 1.0L;
  for (std::int64_t i = mode; i > first; --i) {
    value /= ratio(i - 1);
    left.push_back(value);
    if (value < 1e-305L) break;
  }
  long double total = 0.0L;
  for (auto it = right.rbegin(); it != right.rend(); ++it) total += *it;
  for (const auto w : left) total += w;
  constexpr std::size_t most_components = 5000;
  if (left.size() + right.size() > most_components)
    throw PrivacyError(cat("several windows a series: their number has ", left.size() + right.size(),
                           " values that matter; at most ", most_components, " are accounted for"));
  std::vector<DominatingPair::Component> out;
  const auto put = [&](std::int64_t i, long double w) {
    const auto weight = static_cast<double>(w / total);
    if (weight > 1e-300) out.push_back({spacing * static_cast<double>(i), weight});
  };
  for (std::size_t i = left.size(); i-- > 0;) put(mode - 1 - static_cast<std::int64_t>(i), left[i]);
  for (std::size_t i = 0; i < right.size(); ++i) put(mode + static_cast<std::int64_t>(i), right[i]);
  return out;
}

}  // namespace

std::vector<DominatingPair::Component> binomial_components(std::int64_t trials, double probability, double spacing) {
  if (trials < 1 || !(probability > 0.0) || !(probability <= 1.0))
    throw PrivacyError(cat("binomial weights: found ", trials, " trials of probability ", probability,
                           "; expected at least 1 and a number in (0, 1]"));
  if (probability == 1.0) return {{spacing * static_cast<double>(trials), 1.0}};
  const auto n = static_cast<long double>(trials);
  const auto odds = static_cast<long double>(probability) / (1.0L - static_cast<long double>(probability));
  return by_recurrence(
      0, trials, static_cast<std::int64_t>((n + 1.0L) * static_cast<long double>(probability)), spacing,
      [&](std::int64_t i) { return (n - static_cast<long double>(i)) / static_cast<long double>(i + 1) * odds; });
}

std::vector<DominatingPair::Component> hypergeometric_components(std::int64_t population, std::int64_t marked,
                                                                 std::int64_t drawn, double spacing) {
  if (population < 1 || marked < 1 || marked > population || drawn < 1 || drawn > population)
    throw PrivacyError(cat("hypergeometric weights: found ", drawn, " drawn of ", population, " with ", marked,
                           " marked; expected 1 to ", population, " of each"));
  const auto n = static_cast<long double>(population);
  const auto k = static_cast<long double>(marked);
  const auto d = static_cast<long double>(drawn);
  return by_recurrence(std::max<std::int64_t>(0, marked + drawn - population), std::min(marked, drawn),
                       static_cast<std::int64_t>((d + 1.0L) * (k + 1.0L) / (n + 2.0L)), spacing, [&](std::int64_t at) {
                         const auto i = static_cast<long double>(at);
                         return (k - i) * (d - i) / ((i + 1.0L) * (n - k - d + i + 1.0L));
                       });
}

std::vector<DominatingPair::Component> diluted(std::vector<DominatingPair::Component> components, double use) {
  check_sampling_probability(use);
  if (use == 1.0) return components;
  for (auto& c : components) c.weight *= use;
  if (!components.empty() && components.front().mean == 0.0) components.front().weight += 1.0 - use;
  else components.insert(components.begin(), {0.0, 1.0 - use});
  return components;
}

}  // namespace tsdp::privacy
