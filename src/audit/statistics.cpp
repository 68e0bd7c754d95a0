#include "audit/statistics.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <numbers>

#include "privacy/adaptive/adaptive_curve.h"
#include "privacy/terms/numbers.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/privacy/accountant/accountant.h"

namespace tsdp::audit {

privacy::Interval share_bracket(std::uint64_t hits, std::uint64_t trials, double error) {
  using Law = boost::math::binomial_distribution<>;
  const auto n = static_cast<double>(trials);
  const auto h = static_cast<double>(hits);
  return {hits == 0 ? 0.0 : Law::find_lower_bound_on_p(n, h, error),
          hits == trials ? 1.0 : Law::find_upper_bound_on_p(n, h, error)};
}

namespace {

using privacy::infinity;

/// P_low(A | one) and P_high(A | other) of an event or its complement, with the data sets in some order.
struct Side {
  double low;
  double high;
  double threshold;
  bool complement;
  bool second;  ///< whether `one` is D′
};

std::vector<Side> sides_of(const std::vector<Measured>& events) {
  std::vector<Side> out;
  for (const auto& e : events)
    for (const bool complement : {false, true})
      for (const bool second : {false, true}) {
        const auto& one = second ? e.second : e.first;
        const auto& other = second ? e.first : e.second;
        out.push_back({complement ? 1.0 - one.upper : one.lower, complement ? 1.0 - other.lower : other.upper,
                       e.threshold, complement, second});
      }
  return out;
}

/// Values of ε at which a side is checked against the profile: its own threshold and some others.
std::vector<double> epsilons_of(const Side& side) {
  std::vector<double> all = {0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0, std::abs(side.threshold)};
  std::vector<double> out;
  for (const double e : all)
    if (side.low > std::exp(e) * side.high) out.push_back(e);
  return out;
}

/// The side and ε that contradict `pair`, if any.
std::optional<std::pair<Side, double>> contradiction(const privacy::DominatingPair& pair,
                                                     const std::vector<Side>& sides) {
  for (const auto& side : sides)
    for (const double e : epsilons_of(side))
      if (side.low > std::exp(e) * side.high + pair.profile_bracket(e).upper) return std::pair{side, e};
  return std::nullopt;
}

/// inf of the noise multipliers whose profile is contradicted, rounded up; infinity if none below 1e6 is.
double least_contradicted(const Claim& claim, const std::vector<Side>& sides) {
  const auto contradicted = [&](double sigma) { return contradiction(claim.pair_at(sigma), sides).has_value(); };
  double high = claim.noise_multiplier;
  while (high < 1e6 && !contradicted(high)) high = std::min(1e6, 2.0 * high);
  if (high >= 1e6 && !contradicted(high)) return infinity;
  double low = high;
  while (low > 0.01 && contradicted(low)) low = std::max(0.01, 0.5 * low);
  if (low <= 0.01 && contradicted(low)) return low;
  while (high > 1.0005 * low) {
    const double middle = std::sqrt(low * high);
    (contradicted(middle) ? high : low) = middle;
  }
  return high;
}

/// The noise multipliers at which every event's law lies in its brackets; {1, 0} if none.
privacy::Interval allowed_by_law(const Attack& attack, const std::vector<Attack::Event>& events,
                                 const std::vector<Measured>& measured) {
  // By how many half widths the law leaves the brackets, for the worst of them; at most 1 inside.
  const auto departure = [&](double sigma) {
    double worst = 0.0;
    for (std::size_t i = 0; i < events.size(); ++i)
      for (const bool second : {false, true}) {
        const auto& bracket = second ? measured[i].second : measured[i].first;
        const double p = attack.probability(events[i], second, sigma);
        const double middle = 0.5 * (bracket.lower + bracket.upper);
        worst = std::max(worst, std::abs(p - middle) / (0.5 * (bracket.upper - bracket.lower)));
      }
    return worst;
  };
  constexpr double ratio = 1.05;
  const double range = Attack::fit_range;
  std::vector<double> grid;
  for (double s = attack.sigma() / range; s < attack.sigma() * range; s *= ratio) grid.push_back(s);
  grid.push_back(attack.sigma() * range);
  std::vector<double> value;
  for (const double s : grid) value.push_back(departure(s));
  const auto place = static_cast<std::size_t>(std::min_element(value.begin(), value.end()) - value.begin());
  // The best fit between the neighbours of the best grid point, by golden-section search.
  double low = grid[place == 0 ? 0 : place - 1];
  double high = grid[std::min(place + 1, grid.size() - 1)];
  const double golden = 0.5 * (std::sqrt(5.0) - 1.0);
  for (int i = 0; i < 25; ++i) {
    const double a = high - golden * (high - low);
    const double b = low + golden * (high - low);
    if (departure(a) < departure(b)) {
      high = b;
    } else {
      low = a;
    }
  }
  double best = 0.5 * (low + high);
  if (departure(best) > value[place]) best = grid[place];
  if (departure(best) > 1.0) return {1.0, 0.0};
  const auto last_allowed = [&](bool upwards) {
    double inside = best;
    double outside = upwards ? infinity : 0.0;
    for (std::size_t i = 0; i < grid.size(); ++i) {
      const double s = upwards ? grid[i] : grid[grid.size() - 1 - i];
      if (upwards ? s <= best : s >= best) continue;
      if (value[upwards ? i : grid.size() - 1 - i] <= 1.0) {
        inside = s;  // also beyond a gap
        outside = upwards ? infinity : 0.0;
      } else if (upwards ? outside == infinity : outside == 0.0) {
        outside = s;
      }
    }
    if (std::isinf(outside) || outside == 0.0) return outside;
    for (int i = 0; i < 30; ++i) {
      const double middle = 0.5 * (inside + outside);
      (departure(middle) <= 1.0 ? inside : outside) = middle;
    }
    return outside;
  };
  return {last_allowed(false), last_allowed(true)};
}

/// The largest noise multiplier at which blank coordinates keep as close to 0 as they do, from the lower end of a share
/// 2 Φ(h/σ′) − 1 = erf(h/(σ′ √2)) at three widths h around the certified deviation.
double allowed_by_concentration(double certified, const Observations& seen, double error) {
  double out = infinity;
  for (const double width : {0.5, 1.0, 1.5}) {
    const double h = width * certified;
    std::uint64_t within = 0;
    for (const auto* uses : {&seen.first, &seen.second})
      for (const auto& use : *uses) within += std::abs(static_cast<double>(use.blank)) <= h ? 1 : 0;
    const double share = share_bracket(within, seen.first.size() + seen.second.size(), error).lower;
    if (share > 0.0)
      out = std::min(out, h / (std::numbers::sqrt2 * boost::math::erf_inv(std::min(share, 1.0 - 1e-15))));
  }
  return out;
}

std::string text(const privacy::Interval& bracket) {
  return cat("[", rounded(bracket.lower), ", ", rounded(bracket.upper), "]");
}

/// For each event, the number of releases in it.
std::vector<std::uint64_t> hits_of(const Attack& attack, const std::vector<Attack::Event>& events,
                                   const std::vector<Release>& releases) {
  std::vector<std::uint64_t> out(events.size(), 0);
  for (const auto& release : releases) {
    const double score = attack.score(release.along, release.across);
    for (std::size_t i = 0; i < events.size(); ++i) out[i] += score > events[i].threshold ? 1 : 0;
  }
  return out;
}

std::vector<Measured> measured_of(const Claim& claim, const Attack& attack, const std::vector<Attack::Event>& events,
                                  const Observations& seen, double error) {
  const auto first = hits_of(attack, events, seen.first);
  const auto second = hits_of(attack, events, seen.second);
  std::vector<Measured> out;
  for (std::size_t i = 0; i < events.size(); ++i) {
    Measured m;
    m.threshold = events[i].threshold;
    m.first = share_bracket(first[i], seen.first.size(), error);
    m.second = share_bracket(second[i], seen.second.size(), error);
    if (claim.shape_is_exact) {
      m.law_first = attack.probability(events[i], false, claim.noise_multiplier);
      m.law_second = attack.probability(events[i], true, claim.noise_multiplier);
    }
    out.push_back(m);
  }
  return out;
}

/// The certificate of a single use.
void judge_one_use(const Claim& claim, const privacy::DominatingPair& pair, const std::vector<Side>& sides,
                   Verdict& out) {
  if (const auto found = contradiction(pair, sides)) {
    const auto& [side, e] = *found;
    out.contradictions.push_back(cat(
        "Theorem ", claim.theorem, " at noise multiplier ", claim.noise_multiplier, " allows P(A | one) - e^",
        rounded(e), " P(A | other) of at most ", rounded_up(pair.profile_bracket(e).upper),
        " a use; measured: at least ", rounded_down(side.low - std::exp(e) * side.high), " (A: log-likelihood ratio ",
        side.complement ? "<= " : "> ", rounded(side.threshold), ", one: ", side.second ? "D'" : "D", ")"));
  }
  for (const auto& side : sides)
    if (side.low > claim.delta && side.high > 0.0)
      out.direct_epsilon = std::max(out.direct_epsilon, std::log((side.low - claim.delta) / side.high));
  out.direct_upper = claim.one_use ? *claim.one_use : privacy::Accountant(pair).epsilon(claim.delta, 1).upper;
}

/// `concentrated`: allowed_by_concentration.
void judge_concentration(const Claim& claim, double concentrated, Verdict& out) {
  out.noise_multiplier.upper = std::min(out.noise_multiplier.upper, concentrated);
  if (concentrated < claim.noise_multiplier)
    out.contradictions.push_back(cat("noise multiplier: certified ", claim.noise_multiplier, ", measured at most ",
                                     rounded_up(concentrated), " along a blank direction"));
}

/// `allowed`: allowed_by_law.
void judge_law(const Claim& claim, const privacy::Interval& allowed, Verdict& out) {
  if (allowed.lower > allowed.upper) {
    out.contradictions.push_back(cat("the releases do not have the law of Theorem ", claim.theorem,
                                     "'s scheme at any noise multiplier within a factor ", Attack::fit_range, " of ",
                                     claim.noise_multiplier));
  } else {
    out.noise_multiplier.lower = allowed.lower;
    out.noise_multiplier.upper = std::min(out.noise_multiplier.upper, allowed.upper);
    if (allowed.upper < claim.noise_multiplier)
      out.contradictions.push_back(cat("noise multiplier: certified ", claim.noise_multiplier, ", measured at most ",
                                       rounded_up(allowed.upper)));
    if (allowed.lower > claim.noise_multiplier)
      out.remarks.push_back(cat("noise multiplier: certified ", claim.noise_multiplier, ", measured at least ",
                                rounded_down(allowed.lower), ": there is more noise than is accounted for"));
  }
}

/// The whole run at the largest noise multiplier that the measurement allows.
void judge_epsilon(const Claim& claim, Verdict& out) {
  out.epsilon.upper = claim.epsilon.upper;
  if (!std::isfinite(out.noise_multiplier.upper)) return;
  const double sigma = std::clamp(out.noise_multiplier.upper, 0.01, 1e6);
  // This is about the mechanism, however its cost is composed: a run whose neighbours differ in the same direction in
  // every step reaches the composition of that direction, while no run reaches the symmetrised profile
  // (docs/proofs/adaptive-composition.md). Pairs of several windows per series have no direction of their own; their
  // steps are never composed adaptively, so the symmetrised composition is at most what is certified. A whole series is
  // there in all steps or in none, so what is certified is the larger of its two directions.
  const auto loosest = claim.pair_at(sigma);
  const auto directions = claim.one_direction || privacy::AdaptiveCurve::serves(loosest)
                              ? std::vector{privacy::Direction::remove, privacy::Direction::add}
                              : std::vector{privacy::Direction::symmetrised};
  for (const auto direction : directions)
    out.epsilon.lower =
        std::max(out.epsilon.lower, privacy::Accountant(loosest, direction).epsilon(claim.delta, claim.uses).lower);
  if (out.epsilon.lower > out.epsilon.upper)
    out.contradictions.push_back(cat("epsilon: certified at most ", rounded_up(out.epsilon.upper),
                                     ", measured at least ", rounded_down(out.epsilon.lower)));
}

/// Uses with a known number of touched windows, and pairs of consecutive uses, of both data sets.
struct Counts {
  std::uint64_t counted = 0, touched = 0;
  std::uint64_t pairs = 0, agree = 0;  ///< agree: in the sign of the blank coordinate
  std::uint64_t touched_pairs = 0, touched_agree = 0;  ///< agree: in having touched windows
};

Counts counts_of(const Observations& seen) {
  Counts out;
  for (const auto* uses : {&seen.first, &seen.second}) {
    for (std::size_t i = 0; i < uses->size(); ++i) {
      const auto& use = (*uses)[i];
      if (use.touched >= 0) {
        ++out.counted;
        out.touched += use.touched > 0 ? 1 : 0;
      }
      if (i % 2 == 0) continue;
      const auto& before = (*uses)[i - 1];
      ++out.pairs;
      out.agree += (use.blank > 0.0F) == (before.blank > 0.0F) ? 1 : 0;
      if (use.touched >= 0 && before.touched >= 0) {
        ++out.touched_pairs;
        out.touched_agree += (use.touched > 0) == (before.touched > 0) ? 1 : 0;
      }
    }
  }
  return out;
}

/// Whether uses are independent, and drawn as often as they should be.
void judge_draws(const Claim& claim, const Observations& seen, double error, Verdict& out) {
  const auto c = counts_of(seen);
  if (seen.repeats > 0)
    out.contradictions.push_back(
        cat("noise: ", seen.repeats, " releases equal the one before them in every coordinate"));
  if (seen.strays > 0)
    out.contradictions.push_back(
        cat("sampling: the changed series was drawn in ", seen.strays, " batches of an epoch that are not its own"));
  if (claim.shape_is_exact && c.pairs > 0) {
    const auto bracket = share_bracket(c.agree, c.pairs, error);
    if (bracket.lower > 0.5 || bracket.upper < 0.5)
      out.contradictions.push_back(cat("noise: that of consecutive uses agrees in sign in a share ", text(bracket),
                                       " of them; independent noise does in 0.5"));
  }
  if (claim.touched_share && c.counted > 0) {
    const double share = *claim.touched_share;
    out.touched = share_bracket(c.touched, c.counted, error);
    if (out.touched->lower > share || out.touched->upper < share)
      out.contradictions.push_back(cat("sampling: the changed windows were drawn in a share ", text(*out.touched),
                                       " of the uses; the scheme draws them in ", rounded(share)));
    if (c.touched_pairs > 0) {
      const auto bracket = share_bracket(c.touched_agree, c.touched_pairs, error);
      const double independent = share * share + (1.0 - share) * (1.0 - share);
      if (bracket.lower > independent || bracket.upper < independent)
        out.contradictions.push_back(cat("sampling: consecutive uses agree in drawing the changed windows in a share ",
                                         text(bracket), " of them; independent draws do in ", rounded(independent)));
    }
  }
}

}  // namespace

Verdict judge(const Claim& claim, const Observations& seen, double confidence) {
  if (seen.first.empty() || seen.second.empty())
    throw UsageError("audit: found no uses on one of the data sets; expected at least one on each");
  const auto pair = claim.pair_at(claim.noise_multiplier);
  const Attack attack(claim.shape, claim.noise_multiplier);
  const auto thresholds = telling_thresholds(attack, pair);
  const double error = (1.0 - confidence) / (4.0 * static_cast<double>(thresholds.size()) + 9.0);
  std::vector<Attack::Event> events;
  for (const double threshold : thresholds) events.push_back(attack.event(threshold));

  Verdict out;
  out.events = measured_of(claim, attack, events, seen, error);
  const auto sides = sides_of(out.events);
  judge_one_use(claim, pair, sides, out);
  out.noise_multiplier.upper = least_contradicted(claim, sides);
  judge_concentration(claim, allowed_by_concentration(claim.noise_multiplier, seen, error), out);
  if (claim.shape_is_exact) judge_law(claim, allowed_by_law(attack, events, out.events), out);
  judge_epsilon(claim, out);
  judge_draws(claim, seen, error, out);
  return out;
}

}  // namespace tsdp::audit
