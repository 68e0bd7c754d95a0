#include "audit/attack.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "privacy/terms/checks.h"
#include "privacy/terms/numbers.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::audit {
namespace {

using privacy::infinity;

/// Φ̄(z).
double normal_tail(double z) { return 0.5 * std::erfc(z / std::numbers::sqrt2); }

double log_sum(double a, double b) {
  const double top = std::max(a, b);
  if (std::isinf(top)) return top;
  return top + std::log1p(std::exp(std::min(a, b) - top));
}

/// log Σ w N(mean, σ²) over N(0, σ²) at x.
double log_ratio(const std::vector<Component>& parts, double x, double sigma) {
  const double scale = 1.0 / (sigma * sigma);
  double top = -infinity;
  for (const auto& c : parts) top = std::max(top, c.mean * (x - 0.5 * c.mean) * scale);
  double sum = 0.0;
  for (const auto& c : parts) sum += c.weight * std::exp(c.mean * (x - 0.5 * c.mean) * scale - top);
  return top + std::log(sum);
}

void check(const std::vector<Component>& parts) {
  double total = 0.0;
  for (const auto& c : parts) {
    if (!std::isfinite(c.mean) || !(c.weight >= 0.0))
      throw PrivacyError(cat("law of an attack: found mean ", c.mean, " with weight ", c.weight,
                             "; expected finite means and weights of at least 0"));
    total += c.weight;
  }
  if (!(std::abs(total - 1.0) <= 1e-9))
    throw PrivacyError(cat("law of an attack: found total weight ", total, "; expected 1"));
}

struct Range {
  double low = infinity;
  double high = -infinity;
  void take(const std::vector<Component>& parts, double least_weight) {
    for (const auto& c : parts)
      if (c.weight >= least_weight) {
        low = std::min(low, c.mean);
        high = std::max(high, c.mean);
      }
  }
};

}  // namespace

Attack::Attack(Shape shape, double sigma) : shape_(std::move(shape)), sigma_(sigma) {
  privacy::check_noise_multiplier(sigma);
  privacy::check_sampling_probability(shape_.drawn);
  check(shape_.first);
  check(shape_.second);
  for (auto* parts : {&shape_.first, &shape_.second})
    std::erase_if(*parts, [](const Component& c) { return c.weight == 0.0; });
  if (shape_.drawn == 1.0) shape_.trace.clear();  // nothing to tell
  if (!shape_.trace.empty()) check(shape_.trace);
}

double Attack::log_trace_ratio(double across) const {
  return shape_.trace.empty() ? 0.0 : log_ratio(shape_.trace, across, sigma_);
}

/// `log_odds`: log of the factor by which `across` multiplies the odds of drawn to not drawn.
double Attack::score_given(double along, double log_odds) const {
  const double absent = shape_.drawn < 1.0 ? std::log1p(-shape_.drawn) : -infinity;
  const double present = std::log(shape_.drawn) + log_odds;
  return log_sum(absent, present + log_ratio(shape_.second, along, sigma_)) -
         log_sum(absent, present + log_ratio(shape_.first, along, sigma_));
}

double Attack::score(double along, double across) const { return score_given(along, log_trace_ratio(across)); }

Attack::Event Attack::event(double threshold) const {
  Event out;
  out.threshold = threshold;
  if (shape_.trace.empty()) {
    out.nodes = {0.0};
  } else {
    // An eighth of σ is half the least deviation asked for; there, the rectangle rule is exact for Gaussians to
    // e^{−8π²}.
    Range range;
    range.take(shape_.trace, 0.0);
    const double step = sigma_ / (2.0 * fit_range);
    const double margin = 8.0 * fit_range * sigma_;
    for (double y = std::min(0.0, range.low) - margin; y <= std::max(0.0, range.high) + margin; y += step)
      out.nodes.push_back(y);
  }
  Range means;
  means.take(shape_.first, 0.0);
  means.take(shape_.second, 0.0);
  const double reach = std::max(std::abs(means.low), std::abs(means.high)) + 16.0 * fit_range * sigma_;
  out.edges.reserve(out.nodes.size());
  for (const double y : out.nodes) {
    const double log_odds = log_trace_ratio(y);
    double low = -reach;
    double high = reach;
    if (score_given(high, log_odds) <= threshold) {
      out.edges.push_back(infinity);
      continue;
    }
    if (score_given(low, log_odds) > threshold) {
      out.edges.push_back(-infinity);
      continue;
    }
    for (int i = 0; i < 52; ++i) {
      const double middle = 0.5 * (low + high);
      (score_given(middle, log_odds) > threshold ? high : low) = middle;
    }
    out.edges.push_back(high);
  }
  return out;
}

double Attack::probability(const Event& event, bool second, double sigma) const {
  const auto& parts = second ? shape_.second : shape_.first;
  const auto beyond = [&](double edge) {
    double sum = 0.0;
    for (const auto& c : parts) sum += c.weight * normal_tail((edge - c.mean) / sigma);
    return sum;
  };
  if (shape_.trace.empty())
    return (1.0 - shape_.drawn) * normal_tail(event.edges[0] / sigma) + shape_.drawn * beyond(event.edges[0]);
  const double step = event.nodes[1] - event.nodes[0];
  const double front = step / (sigma * std::sqrt(2.0 * std::numbers::pi));
  double sum = 0.0;
  for (std::size_t i = 0; i < event.nodes.size(); ++i) {
    const double y = event.nodes[i];
    const double absent = std::exp(-0.5 * y * y / (sigma * sigma));
    double present = 0.0;
    for (const auto& c : shape_.trace)
      present += c.weight * std::exp(-0.5 * (y - c.mean) * (y - c.mean) / (sigma * sigma));
    if (absent < 1e-16 && present < 1e-16) continue;
    sum += (1.0 - shape_.drawn) * absent * normal_tail(event.edges[i] / sigma) +
           shape_.drawn * present * beyond(event.edges[i]);
  }
  return front * sum;
}

std::vector<double> telling_thresholds(const Attack& attack, const privacy::DominatingPair& pair) {
  const auto& shape = attack.shape();
  const double sigma = attack.sigma();
  const double less = 0.9 * sigma;
  Range range;
  range.take(shape.first, 1e-3);
  range.take(shape.second, 1e-3);
  double across = 0.0;
  for (const auto& c : shape.trace) across += c.weight * c.mean;
  // Best so far: by D alone, by D′ alone, against the profile with D′ the likelier, with D the likelier.
  double best[4] = {-infinity, -infinity, -infinity, -infinity};
  double chosen[4] = {0.0, 0.0, 0.0, 0.0};
  constexpr int candidates = 41;
  for (int i = 0; i < candidates; ++i) {
    const double along = range.low - 3.5 * sigma + (range.high - range.low + 7.0 * sigma) * i / (candidates - 1);
    const double t = attack.score(along, across);
    if (!std::isfinite(t)) continue;
    const auto event = attack.event(t);
    double p[2], p_less[2], deviation[2];
    for (const bool second : {false, true}) {
      const auto which = second ? 1 : 0;
      p[which] = attack.probability(event, second, sigma);
      p_less[which] = attack.probability(event, second, less);
      deviation[which] = std::sqrt(std::max(p_less[which] * (1.0 - p_less[which]), 1e-3));
    }
    // What a use would tell, in deviations; an event that hardly ever happens tells nothing from few uses.
    const double ratio = std::exp(std::abs(t));
    const double allowed = pair.profile_bracket(std::abs(t)).upper;
    const double noise = deviation[0] + deviation[1];
    const double value[4] = {
        std::abs(p_less[0] - p[0]) / deviation[0],
        std::abs(p_less[1] - p[1]) / deviation[1],
        t < 0.0 ? -infinity : (p_less[1] - ratio * p_less[0] - allowed) / (noise + (ratio - 1.0) * deviation[0]),
        t > 0.0 ? -infinity
                : (1.0 - p_less[0] - ratio * (1.0 - p_less[1]) - allowed) / (noise + (ratio - 1.0) * deviation[1]),
    };
    for (int k = 0; k < 4; ++k)
      if (value[k] > best[k]) {
        best[k] = value[k];
        chosen[k] = t;
      }
  }
  std::vector<double> out = {0.0};
  for (int k = 0; k < 4; ++k)
    if (best[k] > 0.0) out.push_back(chosen[k]);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace tsdp::audit
