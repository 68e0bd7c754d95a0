#include "privacy/matrix/correlated_noise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "allocation_bounds.h"
#include "conditional_composition.h"
#include "privacy/accountant/root_finding.h"
#include "privacy/matrix/sampled_loss.h"
#include "privacy/terms/checks.h"
#include "privacy/terms/numbers.h"
#include "privacy/terms/out_of_reach.h"
#include "privacy/whole_series/allocation_renyi.h"
#include "privacy/whole_series/epoch_bounds.h"
#include "privacy/whole_series/gaussian_curve.h"
#include "privacy/whole_series/largest_coordinate.h"
#include "privacy/whole_series/random_allocation_curve.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::privacy {
namespace {

/// Work that the divergences of one bandwidth may take, in nanoseconds or so.
constexpr double work_of_bandwidth = 5e7;
/// The same for the matrix's own bandwidth, beyond which nothing lies.
constexpr double work_of_own_bandwidth = 5e8;
/// Higher orders are of use only for noise that nobody trains with.
constexpr std::int64_t most_order_of_one_band = 512;
constexpr std::int64_t most_order = 64;
/// Made first: what targets of ε from 1 on need.
constexpr std::int64_t first_orders = 16;

/// The largest μ of fixed batches at which conditional composition is asked unless it is asked by name. It was the
/// least in 33 of 396 random settings, all of them with μ ≤ 0.25; of 4,000 bins it is up to μ = 0.5. It takes longer
/// than all other methods together.
constexpr double most_mu_of_conditions = 0.75;

constexpr const char* by_fixed_batches = "fixed batches, a Gaussian mechanism (joint convexity)";
constexpr const char* by_own_orders =
    "parts of a series a step apart, a Gaussian mechanism (tsdp docs/proofs/correlated-noise.md, Theorem 3)";
constexpr const char* by_gram = "a larger Gram matrix (tsdp docs/proofs/correlated-noise.md, Theorem 1)";
constexpr const char* by_laplace =
    "Laplace transforms of an addition (tsdp docs/proofs/correlated-noise.md, Theorem 2)";
constexpr const char* by_renyi = "Rényi divergences (Schuchardt and Kalinin 2026, Lemmas 3.2 and 3.4)";
constexpr const char* by_conditions = "conditional composition (tsdp docs/proofs/conditional-composition.md)";
constexpr const char* by_smaller_gram = "a smaller Gram matrix (tsdp docs/proofs/correlated-noise.md, Theorem 1)";
constexpr const char* by_draws = "draws of the loss (tsdp docs/proofs/sampled-noise.md)";
constexpr const char* exactly = "Gaussian mechanism, closed form";

/// The ends of another curve's answer; what they rest on goes into `why`.
Interval answer_of(const Certified& answer, Certificate& why) {
  why.upper = answer.why.upper;
  why.lower = answer.why.lower;
  return answer;
}

}  // namespace

/// Bounds for one number of epochs, made on demand.
struct CorrelatedNoiseCurve::Bounds {
  std::uint64_t uses = 0;
  double mu, least_mu;  // of fixed batches
  std::optional<Gram> above, below;
  std::optional<CommonAndOwn> more, less;
  std::optional<RenyiAdd> addition;
  std::optional<bool> banded;  // whether nothing lies beyond the matrix's bands
  std::optional<LaplaceOfAddition> laplace;
  std::vector<double> removal;  // divergences by order, as far as they are made
  std::optional<Means> means;
  bool means_known = false;
  std::map<std::pair<Direction, double>, std::unique_ptr<ConditionalComposition>>
      conditional;  // by δ_E; null: out of reach
};

CorrelatedNoiseCurve::CorrelatedNoiseCurve(std::shared_ptr<const Strategy> strategy, TopLevel sampler,
                                           std::int64_t bins, double noise_multiplier, std::optional<Direction> only,
                                           CorrelatedMethod method, std::optional<SampledClaim> sampled,
                                           bool own_orders)
    : strategy_(std::move(strategy)),
      sampler_(sampler),
      bins_(bins),
      noise_multiplier_(noise_multiplier),
      only_(only),
      method_(method),
      sampled_(std::move(sampled)),
      own_orders_(own_orders) {
  check_noise_multiplier(noise_multiplier);
  if (bins < 1 || bins > strategy_->steps())
    throw UsageError(cat("batches: found ", bins, " for ", strategy_->steps(), " planned steps"));
  if (!covers_correlated_noise(sampler))
    throw PrivacyError(
        cat("correlated noise with top level ", name(sampler),
            sampler == TopLevel::poisson
                ? ": not implemented (Choquette-Choo et al., Privacy Amplification for Matrix Mechanisms, ICLR 2024, "
                  "have a theorem); cyclic_poisson, whose noise is banded, and balls_in_bins are covered"
                : ": no theorem is known; balls_in_bins is the nearest that is covered"));
  if (sampler == TopLevel::balls_in_bins && !own_orders && !strategy_->non_negative())
    throw PrivacyError(
        "correlated noise with top level balls_in_bins: a strategy matrix with negative entries is not covered; top "
        "level deterministic is, with the absolute values");
  if (sampled_ && (sampler != TopLevel::balls_in_bins || own_orders || strategy_->is_identity()))
    throw PrivacyError(cat("noise by sampling with top level ", name(sampler), " and mechanism ",
                           name(strategy_->kind()),
                           ": it is for correlated noise with balls_in_bins; others are accounted for without it"));
  if (own_orders) sampler_ = TopLevel::shuffled;  // what is known of both is the same
  if (sampler_ == TopLevel::balls_in_bins && method == CorrelatedMethod::automatic && strategy_->is_identity())
    exact_ = std::make_unique<RandomAllocationCurve>(bins, noise_multiplier, only);
}

CorrelatedNoiseCurve::~CorrelatedNoiseCurve() = default;

double CorrelatedNoiseCurve::squared_reach(std::uint64_t uses) const {
  const auto epochs = static_cast<std::int64_t>(uses);
  return own_orders_ ? squared_sensitivity_of_own_orders(*strategy_, bins_, epochs)
                     : squared_sensitivity(*strategy_, bins_, epochs);
}

bool CorrelatedNoiseCurve::claims(double epsilon, double delta) {
  if (!sampled_ || method_ != CorrelatedMethod::automatic || epsilon < sampled_->epsilon || delta < sampled_->delta)
    return false;
  try {
    // A key that was searched for does not get past the lower end.
    return lower(sampled_->epsilon, planned()) <= sampled_->delta &&
           passes(*sampled_, *strategy_, bins_, static_cast<std::int64_t>(planned()), noise_multiplier_);
  } catch (const OutOfReach&) {
    return false;  // the other bounds stand
  }
}

CorrelatedNoiseCurve::Bounds& CorrelatedNoiseCurve::bounds(std::uint64_t uses) {
  if (uses > planned())
    throw PrivacyError(cat("epochs: found ", uses, "; correlated noise was planned for ", planned(), ": plan more"));
  if (!bounds_ || bounds_->uses != uses) {
    bounds_ = std::make_unique<Bounds>();
    bounds_->uses = uses;
    bounds_->mu = std::sqrt(squared_reach(uses)) / noise_multiplier_ * (1.0 + 1e-15);
    bounds_->least_mu =
        std::sqrt(squared_sensitivity(*strategy_, bins_, static_cast<std::int64_t>(uses), Gram::Side::lower)) /
        noise_multiplier_ * (1.0 - 1e-15);
    if (sampler_ == TopLevel::balls_in_bins && bins_ <= Gram::most_bins &&
        static_cast<double>(uses) * static_cast<double>(bins_) * static_cast<double>(bins_) <= Gram::most_work) {
      bounds_->above.emplace(*strategy_, bins_, static_cast<std::int64_t>(uses), Gram::Side::upper);
      bounds_->below.emplace(*strategy_, bins_, static_cast<std::int64_t>(uses), Gram::Side::lower);
    }
  }
  return *bounds_;
}

bool CorrelatedNoiseCurve::asks_conditions(const Bounds& known) const {
  return method_ == CorrelatedMethod::conditional ||
         (method_ == CorrelatedMethod::automatic && known.mu <= most_mu_of_conditions);
}

double CorrelatedNoiseCurve::conditional(Direction direction, double epsilon, std::uint64_t uses, double spent) {
  auto& known = bounds(uses);
  if (!known.above || bins_ > most_composed_bins) return 1.0;
  try {
    if (!known.means_known) {
      known.means_known = true;
      // Several epochs are treated as one where the Gram matrix is not far from that of non-negative means: each step
      // then has one more bin.
      if (uses > 1) known.means = one_epoch(*known.above, 0.3);
      if (!known.means) known.means.emplace(*strategy_, bins_, static_cast<std::int64_t>(uses));
    }
    if (!known.means) return 1.0;
    auto found = known.conditional.find({direction, spent});
    if (found == known.conditional.end()) {
      found = known.conditional.emplace(std::pair{direction, spent}, nullptr).first;
      found->second = std::make_unique<ConditionalComposition>(*known.means, noise_multiplier_, spent, direction);
    }
    if (!found->second) return 1.0;
    for (double at = epsilon;; at = at > 0.02 * epsilon ? 0.7 * at : 0.0) {
      try {
        // Far beyond all losses, a transform may give nothing.
        const double value = found->second->delta(at);
        if (value < 1.0 || at == 0.0) return value;
      } catch (const OutOfReach&) {
        if (at == 0.0) throw;
      }
    }
  } catch (const OutOfReach&) { return 1.0; }
}

void CorrelatedNoiseCurve::extend_removal(Bounds& known) const {
  const auto& gram = *known.above;
  const auto now = static_cast<std::int64_t>(known.removal.size()) - 1;
  const auto next = now < first_orders ? first_orders : now < most_order ? most_order : most_order_of_one_band;
  known.removal.resize(static_cast<std::size_t>(next) + 1, infinity);
  std::vector<std::int64_t> tried = {1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25};
  if (strategy_->bands() <= 25 && std::find(tried.begin(), tried.end(), strategy_->bands()) == tried.end())
    tried.push_back(strategy_->bands());
  std::sort(tried.begin(), tried.end());
  for (const auto bands : tried) {
    const bool own = gram.largest_beyond(bands) == 0.0;
    const auto order = affordable_order(gram, bands, own ? work_of_own_bandwidth : work_of_bandwidth,
                                        std::min(next, bands == 1 ? most_order_of_one_band : most_order));
    if (order >= 2) {
      const auto found = renyi_remove(gram, noise_multiplier_, bands, order);
      for (std::size_t a = 2; a < found.size(); ++a) known.removal[a] = std::min(known.removal[a], found[a]);
    }
    if (own) break;
  }
}

/// The least upper end so far, and the method that gave it.
struct CorrelatedNoiseCurve::Least {
  double value;
  std::string by;

  void take(double other, const char* why) {
    if (other < value) {
      value = other;
      by = why;
    }
  }
};

void CorrelatedNoiseCurve::take_removal(Bounds& known, double epsilon, double enough, Least& best) const {
  // Few orders are made first. Where these are not enough all are made: larger orders come from fewer bands, so that
  // the least over both is not convex in α, and may lie beyond one that looks like the least.
  const auto take_known = [&] {
    for (std::size_t a = 2; a < known.removal.size(); ++a)
      best.take(delta_of_renyi(known.removal[a], static_cast<double>(a), epsilon), by_renyi);
  };
  take_known();
  while (best.value > enough && known.removal.size() <= static_cast<std::size_t>(most_order_of_one_band)) {
    extend_removal(known);
    take_known();
  }
}

void CorrelatedNoiseCurve::take_addition(Bounds& known, double epsilon, double enough, Least& best) const {
  const auto& gram = *known.above;
  if (!known.addition) known.addition.emplace(gram, noise_multiplier_);
  for (double order = 1.0625; order < 1e5; order = 1.0 + 1.0625 * (order - 1.0))
    best.take(delta_of_renyi((*known.addition)(order), order, epsilon), by_renyi);
  if (!known.banded) known.banded = gram.largest_beyond(strategy_->bands()) == 0.0;
  if (best.value > enough && *known.banded) {
    if (!known.laplace) known.laplace.emplace(gram, noise_multiplier_, strategy_->bands());
    best.take(known.laplace->delta(epsilon), by_laplace);
  }
}

double CorrelatedNoiseCurve::upper(double epsilon, std::uint64_t uses, double enough, double spent, std::string* by) {
  auto& known = bounds(uses);
  double worst = 0.0;
  std::string all_by;
  const auto closed = gaussian_delta(epsilon, known.mu).upper;
  // With too many bins for a Gram matrix, only fixed batches are known.
  if (sampler_ != TopLevel::balls_in_bins || method_ == CorrelatedMethod::deterministic || !known.above) {
    if (by != nullptr)
      *by = own_orders_ ? by_own_orders : sampler_ == TopLevel::deterministic ? exactly : by_fixed_batches;
    return closed;
  }
  const double variance = noise_multiplier_ * noise_multiplier_;
  for (const auto direction : {Direction::remove, Direction::add}) {
    if (only_ && *only_ != direction) continue;
    const bool all = method_ == CorrelatedMethod::automatic;
    // Conditional composition is asked for by itself, to see what it gives.
    Least best{method_ == CorrelatedMethod::conditional ? 1.0 : closed, by_fixed_batches};
    const auto wanted = [&](CorrelatedMethod method) { return (all || method_ == method) && best.value > enough; };
    // The cheap ones first.
    if (wanted(CorrelatedMethod::gram)) {
      if (!known.more) {
        const double common = known.above->largest_beside();
        known.more.emplace(bins_, common / variance * (1.0 + 1e-15),
                           std::max(0.0, known.above->largest_diagonal() - common) / variance * (1.0 + 1e-15));
      }
      best.take(known.more->delta(direction, epsilon).upper, by_gram);
    }
    if (wanted(CorrelatedMethod::renyi)) {
      if (direction == Direction::remove) take_removal(known, epsilon, enough, best);
      else take_addition(known, epsilon, enough, best);
    }
    if (spent > 0.0 && asks_conditions(known) && wanted(CorrelatedMethod::conditional))
      best.take(conditional(direction, epsilon, uses, spent), by_conditions);
    worst = std::max(worst, best.value);
    if (enough > 0.0 && worst > enough) return worst;  // the other direction changes nothing
    if (all_by.find(best.by) == std::string::npos) all_by += cat(all_by.empty() ? "" : "; ", best.by);
  }
  if (by != nullptr) *by = all_by;
  return worst;
}

double CorrelatedNoiseCurve::lower(double epsilon, std::uint64_t uses, std::string* by) {
  auto& known = bounds(uses);
  const auto is_by = [&](const char* what) {
    if (by != nullptr) *by = what;
  };
  is_by("");
  if (sampler_ == TopLevel::shuffled || !strategy_->non_negative()) return 0.0;
  if (sampler_ == TopLevel::deterministic) {
    is_by(exactly);
    return gaussian_delta(epsilon, known.least_mu).lower;
  }
  if (!known.below) return 0.0;
  is_by(by_smaller_gram);
  if (!known.less) {
    const double variance = noise_multiplier_ * noise_multiplier_;
    const double least = known.below->least_diagonal();
    const double common = std::min(bins_ > 1 ? known.below->least_beside() : least, least);
    known.less.emplace(bins_, common / variance * (1.0 - 1e-15),
                       std::max(0.0, least - common) / variance * (1.0 - 1e-14));
  }
  double most = 0.0;
  for (const auto direction : {Direction::remove, Direction::add})
    if (!only_ || *only_ == direction) most = std::max(most, known.less->delta(direction, epsilon).lower);
  return most;
}

Interval CorrelatedNoiseCurve::find_delta(double epsilon, std::uint64_t uses, double precision, Certificate& why) {
  check_epsilon(epsilon);
  if (uses == 0) return {0.0, 0.0};
  auto& known = bounds(uses);  // (throws for more uses than were planned)
  if (exact_) return answer_of(exact_->delta(epsilon, uses, precision), why);
  double high = upper(epsilon, uses, 0.0, 0.0, &why.upper);
  if (sampler_ == TopLevel::balls_in_bins && asks_conditions(known)) {
    // epsilon() certifies δ where conditional composition that may fail with δ/2 gives at most δ. So the least such δ
    // is looked for. The more may fail, the less the steps cost, so every larger δ is one too. What is found on the way
    // may be less than such a δ, and a bound as well; but epsilon() would not find this ε for it.
    const double told = std::min(high, gaussian_delta(epsilon, known.mu).upper);
    const auto room = [&](double depth) {  // log of δ over what is certified for it, δ = told e^{−depth}
      const double allowed = told * std::exp(-depth);
      std::string by;
      const double found = upper(epsilon, uses, 0.0, std::min(0.5 * allowed, 0.25), &by);
      if (found <= allowed && allowed < high) high = allowed, why.upper = by;
      return std::log(allowed / std::max(found, 1e-320));
    };
    constexpr double resolution = 5e-3;
    constexpr double least_delta = 1e-26;  // below any that is asked for; each evaluation may take a second
    const double deepest = std::log(told / least_delta);
    double low = 0.0;
    double at_low = told > 1e-30 ? room(low) : -1.0;
    for (double step = 3.0; at_low >= resolution; step *= 2.0) {
      // Far below `told`, what was found there is nearer.
      const double next = std::min(std::max(low + step, std::log(told / high)), deepest);
      if (!(next > low)) break;
      const double at_next = room(next);
      if (at_next < 0.0) {
        bracket_root(room, low, at_low, next, at_next, resolution / next);
        break;
      }
      low = next, at_low = at_next;
    }
  }
  if (sampled_ && high > sampled_->delta && claims(epsilon, sampled_->delta)) {
    high = sampled_->delta;
    why.upper = by_draws;
  }
  return in_order({lower(epsilon, uses, &why.lower), high});
}

Interval CorrelatedNoiseCurve::find_epsilon(double delta, std::uint64_t uses, double precision, Certificate& why) {
  check_delta(delta);
  if (uses == 0) return {0.0, 0.0};
  static_cast<void>(bounds(uses));
  if (exact_) return answer_of(exact_->epsilon(delta, uses, precision), why);
  const double log_delta = std::log(delta);
  // Its sign is that of the numbers themselves, which logarithms may not tell apart.
  const auto over = [&](double end) {
    const double apart = std::log(std::max(end, 1e-320)) - log_delta;
    return end <= delta ? std::min(apart, 0.0) : std::max(apart, 1e-300);
  };
  const auto root = [&](auto end, double most) -> std::pair<double, double> {
    double low = 0.0;
    double at_low = over(end(0.0));
    if (at_low <= 0.0) return {0.0, 0.0};
    double high = std::min(0.25, most);
    double at_high = over(end(high));
    while (at_high > 0.0) {
      if (high >= most) return {most, most};
      low = high;
      at_low = at_high;
      high = std::min(2.0 * high, most);
      at_high = over(end(high));
    }
    return bracket_root([&](double e) { return over(end(e)); }, low, at_low, high, at_high, 0.1 * precision);
  };
  GaussianCurve fixed(1.0 / bounds(uses).mu);
  const double cap = fixed.epsilon(delta, 1).upper;
  if (sampler_ != TopLevel::balls_in_bins) {
    static_cast<void>(upper(cap, uses, 0.0, 0.0, &why.upper));
    static_cast<void>(lower(cap, uses, &why.lower));
    if (why.lower.empty()) return {0.0, cap};
    return {std::min(cap, GaussianCurve(1.0 / bounds(uses).least_mu * (1.0 + 1e-15)).epsilon(delta, 1).lower), cap};
  }
  double high = method_ == CorrelatedMethod::conditional
                    ? cap
                    : root([&](double e) { return upper(e, uses, 0.0, 0.0); }, cap).second;
  const bool conditions = asks_conditions(bounds(uses));
  constexpr double worth = 0.995;  // of an ε: less is not worth the search
  if (conditions && upper(worth * high, uses, delta, 0.5 * delta) <= delta)
    high = bracket_root([&](double e) { return over(upper(e, uses, delta, 0.5 * delta)); }, 0.0, 1.0, worth * high,
                        -1e-3, std::max(0.1 * precision, 1e-4))
               .second;
  else if (method_ == CorrelatedMethod::conditional && upper(high, uses, delta, 0.5 * delta) > delta)
    throw PrivacyError(
        cat("delta: found ", delta,
            "; conditional composition certifies no epsilon for it that fixed batches do not: ask for method auto"));
  const double low = root([&](double e) { return lower(e, uses); }, high).first;
  // Finds what certifies the end that is stated.
  if (upper(high, uses, delta, 0.0, &why.upper) > delta)
    static_cast<void>(upper(high, uses, delta, 0.5 * delta, &why.upper));
  static_cast<void>(lower(low, uses, &why.lower));
  if (sampled_ && high > sampled_->epsilon && claims(sampled_->epsilon, delta)) {
    high = sampled_->epsilon;
    why.upper = by_draws;
  }
  return {std::min(low, high), high};
}

bool CorrelatedNoiseCurve::certifies(double epsilon, double delta, std::uint64_t uses, double precision) {
  if (uses == 0) return true;
  static_cast<void>(bounds(uses));
  if (exact_) return exact_->certifies(epsilon, delta, uses, precision);
  if (method_ != CorrelatedMethod::conditional && gaussian_delta(epsilon, bounds(uses).mu).upper <= delta) return true;
  if (claims(epsilon, delta)) return true;
  if (sampler_ != TopLevel::balls_in_bins) return upper(epsilon, uses, delta, 0.0) <= delta;
  // An event may refute it before anything is made: identity balls in bins of the least diagonal cost no more
  // (Theorem 1).
  if (only_ != Direction::add && bounds(uses).below &&
      LargestCoordinate(bins_, 1.0, 0.0, noise_multiplier_ / std::sqrt(bounds(uses).below->least_diagonal()))
              .best_event(epsilon) > delta)
    return false;
  return upper(epsilon, uses, delta, 0.5 * delta) <= delta;
}

std::uint64_t CorrelatedNoiseCurve::search_uses(double epsilon, double delta, std::uint64_t limit, double precision) {
  std::uint64_t low = 0;
  auto high = std::min({limit, max_uses_ever, planned()}) + 1;
  if (high > 1 && certifies(epsilon, delta, high - 1, precision)) return high - 1;
  --high;
  while (high - low > 1) {
    const auto middle = low + (high - low) / 2;
    (certifies(epsilon, delta, middle, precision) ? low : high) = middle;
  }
  return low;
}

Certificate CorrelatedNoiseCurve::methods() const {
  auto out = exact_ ? exact_->methods()
             : sampler_ != TopLevel::balls_in_bins
                 ? Certificate{own_orders_                           ? by_own_orders
                               : sampler_ == TopLevel::deterministic ? exactly
                                                                     : by_fixed_batches,
                               sampler_ == TopLevel::deterministic && strategy_->non_negative() ? exactly : "",
                               {}}
                 : Certificate{cat("the least of: ", by_fixed_batches, "; ", by_renyi, "; ", by_laplace, "; ",
                                   by_conditions, "; ", by_gram),
                               by_smaller_gram,
                               {}};
  if (sampled_)
    out.assumptions.push_back(cat(
        "the key of the test by sampling (", sampled_->key.hex(),
        ") was drawn at random, after the noise was chosen; of at most a thousand tests each had a key of its own, and "
        "which were made, and whose noise is used, does not depend on the data"));
  if (sampler_ == TopLevel::balls_in_bins || (sampler_ == TopLevel::deterministic && strategy_->non_negative()))
    out.assumptions.push_back("the strategy matrix has no negative entries (checked)");
  return out;
}

}  // namespace tsdp::privacy
