#include "audit/neighbours.h"

#include <algorithm>
#include <cmath>

#include "privacy/accountant/components.h"
#include "privacy/theorems/noised_share.h"
#include "privacy/theorems/structured_pairs.h"

namespace tsdp::audit {
namespace {

using privacy::BottomLevel;
using privacy::TopLevel;

/// The chance that a series is drawn in a step in which it has its turn: 1 in fixed batches, its coin, or ρ.
double drawn_share(const privacy::SubsamplingScheme& scheme) {
  if (scheme.parameters().top_level == TopLevel::deterministic) return 1.0;
  return scheme.draws_each_series() ? scheme.coin() : scheme.drawn_share();
}

double poisson_rate(const privacy::SubsamplingScheme& scheme, std::int64_t windows) {
  return std::min(1.0,
                  static_cast<double>(scheme.parameters().subsequences_per_sequence) / static_cast<double>(windows));
}

/// Bin(i; trials, probability) at spacing · i, without outcomes that never happen; trials may be 0.
std::vector<Component> binomial(std::int64_t trials, double probability, double spacing) {
  if (trials == 0) return {{0.0, 1.0}};
  std::vector<Component> out;
  double total = 0.0;
  for (const auto& c : privacy::binomial_components(trials, probability, spacing))
    if (c.weight > 1e-15) {
      out.push_back(c);
      total += c.weight;
    }
  for (auto& c : out) c.weight /= total;
  return out;
}

/// The chance that a series that is drawn has any window: coins for its windows may all fail.
double share_with_windows(const privacy::SubsamplingScheme& scheme, std::int64_t series) {
  if (scheme.parameters().bottom_level == BottomLevel::with_replacement) return 1.0;
  const auto windows = scheme.windows_of(series);
  const double rate = poisson_rate(scheme, windows);
  return rate >= 1.0 ? 1.0 : -std::expm1(static_cast<double>(windows) * std::log1p(-rate));
}

/// A series or owner as the record. The last of the best: in fixed batches not in the first one.
Neighbours worst_record(const privacy::SubsamplingScheme& scheme) {
  const auto& lengths = scheme.parameters().lengths;
  Neighbours out;
  double most = -1.0;
  for (std::int64_t s = 0; s < scheme.sequences(); ++s)
    if (const double share = share_with_windows(scheme, s); share >= most) {
      most = share;
      out.series = s;
    }
  out.missing = lengths.has_owners() ? lengths.series_of(out.series) : std::vector{out.series};
  return out;
}

}  // namespace

Neighbours worst_neighbours(const privacy::SubsamplingScheme& scheme, const privacy::PrivacyUnit& unit) {
  const auto& p = scheme.parameters();
  if (p.record == privacy::Record::series) return worst_record(scheme);
  const bool in_turn = p.top_level == TopLevel::deterministic;
  const auto used = in_turn ? scheme.sequences_per_batch() * scheme.steps_per_epoch() : scheme.sequences();
  Neighbours out;
  double worst = -1.0;
  for (std::int64_t s = 0; s < used; ++s) {
    const auto length = p.lengths[s];
    const auto touched =
        static_cast<double>(privacy::touched_windows(length, p.context_length, p.forecast_length, unit));
    const auto windows = scheme.windows_of(s);
    const double value = touched * (p.bottom_level == BottomLevel::poisson ? poisson_rate(scheme, windows)
                                                                           : 1.0 / static_cast<double>(windows));
    if (value >= worst) {  // the last one: under deterministic iteration not in the first batch
      worst = value;
      out.series = s;
    }
  }
  const auto length = p.lengths[out.series];
  const bool event = unit.relation == privacy::Relation::event;
  const auto apart = event ? 1 : p.context_length + p.forecast_length;
  const auto first = std::min(p.forecast_length - 1, event ? length - unit.w : length - 1);
  for (std::int64_t i = 0; i < unit.w && first + i * apart < length; ++i) out.places.push_back(first + i * apart);
  return out;
}

std::vector<TouchedWindow> touched_windows_of(const privacy::SubsamplingScheme& scheme, const Neighbours& neighbours) {
  const auto& p = scheme.parameters();
  const auto windows = scheme.windows_of(neighbours.series);
  std::vector<TouchedWindow> out;
  // From the window whose forecast ends with the first changed place to the one whose context begins with the last.
  const auto first = std::max<std::int64_t>(0, neighbours.places.front() - p.forecast_length + 1);
  const auto last = std::min(windows - 1, neighbours.places.back() + p.context_length);
  for (auto start = first; start <= last; ++start) {
    const auto count = [&](std::int64_t from, std::int64_t to) {  // of places from … to − 1
      const auto begin = std::lower_bound(neighbours.places.begin(), neighbours.places.end(), from);
      return static_cast<std::int64_t>(std::lower_bound(begin, neighbours.places.end(), to) - begin);
    };
    const TouchedWindow window{start, count(start - p.context_length, start), count(start, start + p.forecast_length)};
    if (window.context + window.forecast > 0) out.push_back(window);
  }
  return out;
}

CanaryKind canary_kind(const privacy::SubsamplingScheme& scheme) {
  if (scheme.parameters().record == privacy::Record::series) return CanaryKind::present;
  return scheme.parameters().bottom_level == BottomLevel::poisson ? CanaryKind::opposed : CanaryKind::substituted;
}

Shape canary_shape(const privacy::SubsamplingScheme& scheme, const Neighbours& neighbours, double unit_length) {
  const auto& p = scheme.parameters();
  if (canary_kind(scheme) == CanaryKind::present)
    return {{{0.0, 1.0}}, {{unit_length, 1.0}}, touched_share_of_batches(scheme, neighbours)};
  const auto touched = touched_windows_of(scheme, neighbours);
  const auto windows = scheme.windows_of(neighbours.series);
  const auto m = static_cast<std::int64_t>(touched.size());
  Shape out;
  out.drawn = drawn_share(scheme);
  if (canary_kind(scheme) == CanaryKind::opposed) {
    const double rate = poisson_rate(scheme, windows);
    out.second = binomial(m, rate, unit_length);
    out.first = out.second;
    for (auto& c : out.first) c.mean = -c.mean;
    if (windows > m && out.drawn < 1.0) out.trace = binomial(windows - m, rate, unit_length);
    return out;
  }
  const auto lambda = p.subsequences_per_sequence;
  if (p.context_noise == 0.0 && p.forecast_noise == 0.0) {
    out.first = {{0.0, 1.0}};
    out.second = binomial(lambda, static_cast<double>(m) / static_cast<double>(windows), 2.0 * unit_length);
    return out;
  }
  // λ = 1. For a window of total variation τ, the likelier data set is named rightly with probability
  // Φ(κ/2) = (1 + τ)/2.
  double right = 0.0;
  double wrong = 0.0;
  for (const auto& w : touched) {
    const double tau = privacy::noised_window_variation(w.context, w.forecast, p.context_noise, p.forecast_noise);
    right += 0.5 * (1.0 + tau) / static_cast<double>(windows);
    wrong += 0.5 * (1.0 - tau) / static_cast<double>(windows);
  }
  out.first = {{0.0, 1.0 - wrong}, {2.0 * unit_length, wrong}};
  out.second = {{0.0, 1.0 - right}, {2.0 * unit_length, right}};
  return out;
}

double touched_share_of_batches(const privacy::SubsamplingScheme& scheme, const Neighbours& neighbours) {
  const auto& p = scheme.parameters();
  if (canary_kind(scheme) == CanaryKind::present)
    return drawn_share(scheme) * share_with_windows(scheme, neighbours.series);
  const auto m = static_cast<double>(touched_windows_of(scheme, neighbours).size());
  const auto windows = scheme.windows_of(neighbours.series);
  const bool poisson = p.bottom_level == BottomLevel::poisson;
  const double each = poisson ? poisson_rate(scheme, windows) : m / static_cast<double>(windows);
  const double coins = poisson ? m : static_cast<double>(p.subsequences_per_sequence);
  return drawn_share(scheme) * (each >= 1.0 ? 1.0 : -std::expm1(coins * std::log1p(-each)));
}

}  // namespace tsdp::audit
