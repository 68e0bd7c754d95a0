#include "conditional_composition.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "blended_loss.h"
#include "privacy/terms/checks.h"
#include "privacy/terms/numbers.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::privacy {
namespace {

/// A mixture of a step, by increasing mean, and the variance of dP/dQ under Q (with exponents capped), which says how
/// much it costs.
struct Mixture {
  std::vector<DominatingPair::Component> parts;
  double cost = 0.0;
};

double kernel(double a, double b, double inverse) { return std::expm1(std::min(a * b * inverse, 50.0)); }

double cost_of(const std::vector<DominatingPair::Component>& parts, double inverse) {
  double sum = 0.0;
  for (const auto& a : parts)
    for (const auto& b : parts) sum += a.weight * b.weight * kernel(a.mean, b.mean, inverse);
  return sum;
}

/// Moves weights to the next larger mean, which dominates (Lemma 2), where that costs least, until there are at most
/// `most` components and no move is left that costs next to nothing.
void merge_upwards(Mixture& mixture, double inverse, std::size_t most) {
  auto& parts = mixture.parts;
  const auto original = parts;
  const double whole = cost_of(original, inverse);
  std::vector<double> rate;  // of the cost in the weight of a mean
  for (const auto& a : original) {
    double sum = 0.0;
    for (const auto& b : original) sum += b.weight * kernel(a.mean, b.mean, inverse);
    rate.push_back(2.0 * sum);
  }
  while (parts.size() > 1) {
    std::size_t best = 0;
    double least = infinity;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const double price = parts[i].weight * (rate[i + 1] - rate[i]);
      if (price < least) least = price, best = i;
    }
    if (parts.size() <= most && !(least <= 1e-7 * whole)) break;
    parts[best + 1].weight += parts[best].weight;
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best));
    rate.erase(rate.begin() + static_cast<std::ptrdiff_t>(best));
  }
  mixture.cost = cost_of(parts, inverse);
}

/// P(mean ≥ m).
double from(const Mixture& mixture, double m) {
  double sum = 0.0;
  for (auto it = mixture.parts.rbegin(); it != mixture.parts.rend() && it->mean >= m; ++it) sum += it->weight;
  return sum;
}

/// The t in [0, 1] of least cost for which (1 − t) a + t b is stochastically at least `step`; none if there is no such
/// t. Sums are off by a few units per term, and so are weights: the step's are taken 1e-11 higher.
std::optional<double> share_between(const Mixture& a, const Mixture& b, const Mixture& step) {
  if (a.parts.front().mean < step.parts.front().mean || b.parts.front().mean < step.parts.front().mean)
    return std::nullopt;
  double least = 0.0;
  double most = 1.0;
  for (std::size_t i = 1; i < step.parts.size(); ++i) {
    const double m = step.parts[i].mean;
    const double target = from(step, m) * (1.0 + 1e-11);
    const double of_a = from(a, m);
    const double of_b = from(b, m);
    if (of_a >= target && of_b >= target) continue;
    if (of_a < target && of_b < target) return std::nullopt;
    const double at = (target - of_a) / (of_b - of_a);
    if (of_b > of_a) least = std::max(least, std::min(1.0, at * (1.0 + 1e-12)));
    else most = std::min(most, std::max(0.0, at * (1.0 - 1e-12)));
  }
  if (least > most) return std::nullopt;
  const double t = b.cost >= a.cost ? least : most;
  // The rounded t is checked once more.
  for (std::size_t i = 1; i < step.parts.size(); ++i) {
    const double m = step.parts[i].mean;
    if (!((1.0 - t) * from(a, m) + t * from(b, m) >= from(step, m) * (1.0 + 5e-12))) return std::nullopt;
  }
  return t;
}

/// The mixture of a step whose bins have these means and, in the `order` of their means, these weights; equal means are
/// one component. Some weights are moved upwards, which dominates (Lemma 2).
Mixture mixture_of(const double* means, const std::vector<std::size_t>& order, const std::vector<double>& weight,
                   double inverse) {
  constexpr std::size_t most_components = 24;
  Mixture mixture;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (!(weight[i] > 0.0)) continue;
    const double mean = means[order[i]];
    if (!mixture.parts.empty() && mixture.parts.back().mean == mean) mixture.parts.back().weight += weight[i];
    else mixture.parts.push_back({mean, weight[i]});
  }
  merge_upwards(mixture, inverse, most_components);
  return mixture;
}

/// Few of many mixtures, and every mixture's place between two of them: (1 − share) a + share b.
struct Few {
  struct Place {
    std::size_t a, b;
    double share;
  };
  std::vector<std::size_t> kept;
  std::vector<Place> places;
};

/// In the order of their cost, each mixture between two others a, b is replaced by (1 − t) a + t b with the least t for
/// which it is stochastically at least the mixture (Lemma 2), and which of the two is drawn is revealed (Lemma 3).
/// Where that costs more than a share `slack` of it, the mixture in the middle becomes one of the few.
Few few_of(const std::vector<Mixture>& mixtures, double slack) {
  const auto count = mixtures.size();
  Few out{{0}, std::vector<Few::Place>(count)};
  auto& [kept, places] = out;
  std::vector<std::pair<std::size_t, std::size_t>> open;
  places[0] = {0, 0, 0.0};
  if (count > 1) {
    open.emplace_back(0, count - 1);
    places[count - 1] = {count - 1, count - 1, 0.0};
    kept.push_back(count - 1);
  }
  while (!open.empty()) {
    const auto [left, right] = open.back();
    open.pop_back();
    if (right - left < 2) continue;
    const auto& a = mixtures[left];
    const auto& z = mixtures[right];
    double extra = 0.0;
    double whole = 0.0;
    bool fits = true;
    for (auto k = left + 1; k < right && fits; ++k) {
      const auto t = share_between(a, z, mixtures[k]);
      fits = t.has_value();
      if (!fits) break;
      extra += (1.0 - *t) * a.cost + *t * z.cost - mixtures[k].cost;
      whole += mixtures[k].cost;
      places[k] = {left, right, *t};
    }
    if (fits && extra <= slack * whole) continue;
    const auto middle = left + (right - left) / 2;
    places[middle] = {middle, middle, 0.0};
    kept.push_back(middle);
    open.emplace_back(left, middle);
    open.emplace_back(middle, right);
  }
  std::sort(kept.begin(), kept.end());
  return out;
}

}  // namespace

namespace {

/// Checks the arguments before anything is made of them.
double checked(double spent_delta, double sigma) {
  check_noise_multiplier(sigma);
  if (!(spent_delta > 0.0) || !(spent_delta < 1.0))
    throw PrivacyError(cat("delta of the bounds: found ", spent_delta, "; expected a number in (0, 1)"));
  return spent_delta;
}

}  // namespace

ConditionalComposition::ConditionalComposition(Means means, double sigma, double spent_delta, Direction direction,
                                               HazardMode mode)
    : means_(std::move(means)),
      sigma_(sigma),
      spent_delta_(checked(spent_delta, sigma)),
      direction_(direction),
      hazards_(union_hazards(means_, sigma, spent_delta, direction, mode)) {
  find_pairs();
}

ConditionalComposition::ConditionalComposition(Means means, double sigma, double spent_delta, Direction direction,
                                               Hazards hazards)
    : means_(std::move(means)),
      sigma_(sigma),
      spent_delta_(checked(spent_delta, sigma)),
      direction_(direction),
      hazards_(std::move(hazards)) {
  if (hazards_.size() != static_cast<std::size_t>(means_.steps))
    throw Error(ExitCode::failure, "conditional composition needs hazards of every step");
  find_pairs();
}

std::vector<std::int64_t> ConditionalComposition::order(std::int64_t n) const {
  const auto order =
      by_mean(means_.values.data() + static_cast<std::size_t>(n * means_.bins), static_cast<std::size_t>(means_.bins));
  return {order.begin(), order.end()};
}

std::vector<double> ConditionalComposition::weights(std::int64_t n) const {
  const auto b = static_cast<std::size_t>(means_.bins);
  const auto& hazards = hazards_[static_cast<std::size_t>(n)];
  std::vector<double> out(b, 0.0);
  double rest = 1.0;
  for (std::size_t k = 0; k < hazards.size(); ++k) {
    const double hazard = hazards[hazards.size() - 1 - k];
    out[b - 1 - k] = hazard * rest;
    rest *= 1.0 - hazard;
  }
  out[b - 1 - hazards.size()] = rest;
  return out;
}

/// Steps become mixtures of few of them, which dominate them (Lemmas 2 and 3).
void ConditionalComposition::find_pairs() {
  constexpr std::size_t most_pairs = 256;
  const double inverse = 1.0 / (sigma_ * sigma_);
  const auto b = static_cast<std::size_t>(means_.bins);
  std::vector<Mixture> mixtures;
  for (std::int64_t n = 0; n < means_.steps; ++n) {
    const double* now = means_.values.data() + static_cast<std::size_t>(n) * b;
    const auto order = by_mean(now, b);
    if (!(now[order.back()] > 0.0)) continue;  // such a step tells nothing
    mixtures.push_back(mixture_of(now, order, weights(n), inverse));
  }
  if (mixtures.empty()) return;
  std::stable_sort(mixtures.begin(), mixtures.end(), [](const auto& x, const auto& y) { return x.cost < y.cost; });
  double slack = 1e-4;
  auto few = few_of(mixtures, slack);
  while (few.kept.size() > most_pairs && slack <= 1.0) few = few_of(mixtures, slack *= 4.0);
  std::vector<std::size_t> number(mixtures.size(), 0);
  std::vector<DominatingPair> pairs;
  for (const auto k : few.kept) {
    number[k] = pairs.size();
    pairs.emplace_back(mixtures[k].parts, sigma_);
  }
  std::vector<BlendedLoss::Step> steps;
  for (const auto& place : few.places) steps.push_back({number[place.a], number[place.b], place.share});
  pairs_ = pairs.size();
  // Weights are products of up to b numbers, each off by two units, and sums of them.
  loss_ = std::make_shared<const BlendedLoss>(std::move(pairs), std::move(steps), direction_,
                                              (6.0 * static_cast<double>(b) + 64.0) * roundoff);
}

double ConditionalComposition::composed(double epsilon, double precision) const {
  return loss_ ? loss_->delta(epsilon, precision) : 0.0;
}

double ConditionalComposition::delta(double epsilon, double precision) const {
  return std::min(1.0, up(composed(epsilon, precision) + spent_delta_));
}

}  // namespace tsdp::privacy
