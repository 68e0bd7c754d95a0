#include "ledger/total.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <set>

#include "privacy/adaptive/adaptive_curve.h"
#include "privacy/terms/numbers.h"
#include "privacy/whole_series/bounded_batches.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::mechanism {
namespace {

using privacy::PrivacyUnit;
using privacy::Relation;

using privacy::infinity;
double up(double value) { return std::nextafter(value, infinity); }

/// Runs of one mechanism have one key, as with several seeds. The pair is part of it, too: for tsdp.1 and tsdp.2 it
/// depends on every length, while terms have only the shortest and the longest.
std::string key_of(const PrivateMechanism& mechanism) {
  auto out = cat(mechanism.theorem().theorem, " ", terms(TrainingMethod(mechanism)).dump(), " ",
                 exact(mechanism.theorem().pair.sigma()));
  for (const auto& part : mechanism.theorem().pair.components())
    out += cat(" ", exact(part.mean), " ", exact(part.weight));
  return out;
}

std::string key_of(const Ledger& ledger) {
  return ledger.is_private() ? key_of(*ledger.method.privacy()) : std::string();
}

/// These runs and those that their weights come from, each once: a start that several share, or that is among the runs,
/// was released once. A start that is one of the runs at an earlier step is a part of it: with the same key, its steps
/// are the same releases. A copy of a run that went on differently has another key. Runs on synthetic series cost
/// nothing of their own.
std::vector<Ledger> with_earlier_runs(const std::vector<Ledger>& ledgers) {
  std::vector<Ledger> out;
  std::copy_if(ledgers.begin(), ledgers.end(), std::back_inserter(out),
               [](const Ledger& ledger) { return !ledger.synthetic || ledger.is_private(); });
  for (const auto& ledger : ledgers)
    for (auto& earlier : earlier_runs(ledger.start, cat("run ", ledger.run.id))) {
      const auto known =
          std::find_if(out.begin(), out.end(), [&](const Ledger& one) { return one.run == earlier.run; });
      if (known == out.end()) {
        out.push_back(std::move(earlier));
      } else if (key_of(*known) != key_of(earlier)) {
        throw DataError(cat("run ", earlier.run.id,
                            ": found with two mechanisms; one of its ledgers is not what tsdp-train wrote"));
      } else if (known->accounted_steps() < earlier.accounted_steps()) {
        *known = std::move(earlier);
      }
    }
  return out;
}

/// Whether a run's own curve knows more than its pair composed.
bool knows_more_than_its_pair(const privacy::AppliedTheorem& theorem) {
  return theorem.own_renyi != nullptr || theorem.composition == privacy::StepComposition::adaptive;
}

/// The same, were no batch ever cut: a total counts the cuts of all its runs at once.
privacy::AppliedTheorem without_cuts(privacy::AppliedTheorem theorem) {
  theorem.cut = {};
  return theorem;
}

/// Orders for totals: more than a budget keeps count of.
const std::vector<double>& total_orders() {
  static const std::vector<double> orders = {1.25, 1.5,  1.75, 2.0,   2.5,   3.0,   4.0,   5.0,   6.0,  7.0,  8.0,
                                             10.0, 12.0, 14.0, 16.0,  20.0,  24.0,  28.0,  32.0,  40.0, 48.0, 56.0,
                                             64.0, 80.0, 96.0, 128.0, 160.0, 192.0, 256.0, 384.0, 512.0};
  return orders;
}

}  // namespace

privacy::Interval Total::composed(const std::vector<privacy::MechanismUse>& uses, double delta,
                                  double precision) const {
  if (uses.empty()) return {0.0, 0.0};
  if (composed_adaptively)
    return privacy::AdaptiveCurve(uses.front().pair).epsilon(delta, uses.front().uses, precision);
  const bool apart = std::any_of(uses.begin(), uses.end(),
                                 [](const auto& use) { return use.direction == privacy::Direction::remove; });
  auto out = privacy::Accountant(uses).epsilon(delta, 1, precision);
  if (!apart) return out;
  auto added = uses;
  for (auto& use : added)
    if (use.direction == privacy::Direction::remove) use.direction = privacy::Direction::add;
  const auto other = privacy::Accountant(added).epsilon(delta, 1, precision);
  return {std::max(out.lower, other.lower), std::max(out.upper, other.upper)};
}

double Total::added_up(double delta, double precision) const {
  std::vector<const Run*> alone;
  std::vector<Ledger> others;
  for (const auto& run : runs) {
    if (knows_more_than_its_pair(run.mechanism.theorem())) {
      alone.push_back(&run);
    } else {
      others.emplace_back(TrainingMethod(run.mechanism));
      others.back().state = RunState::finished;
      others.back().run.id = cat(others.size());
      others.back().steps_planned = others.back().steps_charged = others.back().steps_taken = run.steps;
    }
  }
  const auto parts = static_cast<double>(alone.size() + (others.empty() ? 0 : 1));
  const double share = delta / parts * (1.0 - 1e-15);  // their sum is at most delta
  double sum = 0.0;
  if (others.size() == 1) {
    const auto& only = others.front();
    const auto theorem = without_cuts(only.method.privacy()->theorem());
    sum = privacy::epsilon_after(theorem, *theorem.curve(), share, only.accounted_steps(), precision).upper;
  } else if (!others.empty()) {
    sum = total_of(others).cost_without_cuts(share, precision).epsilon.upper;
  }
  // What several runs have in common is computed once.
  std::map<std::string, double> known;
  for (const auto* run : alone) {
    const auto theorem = without_cuts(run->mechanism.theorem());
    const auto key = cat(key_of(run->mechanism), " ", run->steps);
    auto found = known.find(key);
    if (found == known.end())
      found = known.emplace(key, privacy::epsilon_after(theorem, *theorem.curve(), share, run->steps, precision).upper)
                  .first;
    sum = up(sum + found->second);
  }
  return sum;
}

double Total::by_renyi(double delta) const {
  const auto& orders = total_orders();
  std::vector<double> sums(orders.size(), 0.0);
  for (const auto& run : runs) {
    const auto theorem = without_cuts(run.mechanism.theorem());
    const auto one = theorem.renyi(theorem.uses_of_steps(run.steps), orders);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = up(sums[i] + one[i]);
  }
  // δ ≤ e^{(α−1)(ρ−ε)} (1 − 1/α)^α / (α − 1), solved for ε.
  double least = infinity;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const double above = orders[i] - 1.0;
    const double epsilon =
        sums[i] + (orders[i] * std::log1p(-1.0 / orders[i]) - std::log(above) - std::log(delta)) / above;
    least =
        std::min(least, std::max(0.0, epsilon + 1e-12 * (1.0 + std::abs(epsilon) + std::abs(std::log(delta)) / above)));
  }
  return up(least + pure_releases);
}

Stated Total::cost(double delta, double precision) const {
  const std::string fixed = "settings fixed beforehand";
  const auto* no_step = "no step was taken on the data";
  if (runs.empty()) return {{0.0, 0.0}, {no_step, no_step, {fixed}}};
  if (runs.size() == 1) {
    const auto& [mechanism, steps] = runs.front();
    const auto curve = mechanism.curve();
    auto epsilon = privacy::epsilon_after(mechanism.theorem(), *curve, delta, steps, precision);
    epsilon.why.assumptions.push_back(fixed);
    return {epsilon, std::move(epsilon.why)};
  }
  if (cuts == 0.0) return cost_without_cuts(delta, precision);
  Stated out;
  out.epsilon.upper = privacy::epsilon_with_cuts(delta, cuts, precision / 16.0, [&](double left) {
    auto without = cost_without_cuts(left, precision);
    out.certificate = std::move(without.certificate);
    return without.epsilon.upper;
  });
  out.certificate.upper += ", with large batches cut (docs/proofs/bounded-batches.md)";
  return out;
}

Stated Total::cost_without_cuts(double delta, double precision) const {
  const std::string fixed = "settings fixed beforehand";
  Stated out{composed(mechanisms, delta, precision),
             {"composition of dominating pairs (Schuchardt et al. 2025, Props. D.10 and D.13)",
              "the composition of the pairs itself, which adaptive runs need not reach",
              {fixed}}};
  if (composed_adaptively)
    out.certificate = privacy::AdaptiveCurve(mechanisms.front().pair).methods(),
    out.certificate.assumptions.push_back(fixed);
  if (pure_releases > 0.0) {
    out.epsilon.upper = up(out.epsilon.upper + pure_releases);
    out.certificate.upper += "; the choices by tsdp.7";
  }
  std::vector<privacy::MechanismUse> complete;
  bool all_are = true;
  for (std::size_t i = 0; i < mechanisms.size(); ++i) {
    all_are = all_are && complete_uses[i] == mechanisms[i].uses;
    if (complete_uses[i] > 0) complete.push_back({mechanisms[i].pair, complete_uses[i], mechanisms[i].direction});
  }
  if (!known_from_below) {
    out.epsilon.lower = 0.0;
    out.certificate.lower.clear();
  } else if (!all_are) {
    out.epsilon.lower = composed(complete, delta, precision).lower;
  }
  const auto take = [&](const auto& bound, const char* why) {
    try {
      if (const double epsilon = bound(); epsilon < out.epsilon.upper)
        out.epsilon.upper = epsilon, out.certificate.upper = why;
    } catch (const PrivacyError&) {  // out of this bound's reach; another one stands
    }
  };
  const bool some_know_more = std::any_of(
      runs.begin(), runs.end(), [](const Run& run) { return knows_more_than_its_pair(run.mechanism.theorem()); });
  if (some_know_more && !composed_adaptively)
    take([&] { return added_up(delta, precision); },
         "basic composition: the sum of the runs' epsilons at shares of delta");
  if (some_know_more && unit.relation == Relation::series)
    take([&] { return by_renyi(delta); },
         "sum of Renyi divergences (Canonne, Kamath and Steinke 2020, Proposition 12)");
  return out;
}

namespace {

void check_start(const Ledger& ledger) {
  if (ledger.start.origin == StartOrigin::trained_without_privacy)
    throw PrivacyError(cat("total: run ", ledger.run.id,
                           " started from weights that were trained without privacy, or with noise that follows from "
                           "a seed, so no epsilon covers it with its start; ",
                           "expected runs whose starts are private, too"));
}

void check_protects(const Ledger& ledger) {
  if (!ledger.protects())
    throw PrivacyError(cat("total: run ", ledger.run.id,
                           ledger.is_private()
                               ? " has noise that follows from a seed (training.reproducible), which runs of one "
                                 "seed share, so no epsilon covers them together"
                               : " was trained without privacy, so no epsilon covers it with the others",
                           "; expected private runs with noise of their own"));
}

/// The one of two units that the other contains.
PrivacyUnit smaller_of(const PrivacyUnit& so_far, const PrivacyUnit& unit) {
  if (contains(so_far, unit)) return unit;
  if (!contains(unit, so_far))
    throw PrivacyError(cat("total: found the relations '", unit_text(so_far), "' and '", unit_text(unit),
                           "', neither of which contains the other; expected runs whose relations do"));
  return so_far;
}

/// What is known of the mechanisms of a total while runs are added to it.
struct Added {
  std::vector<std::string> keys;  ///< key_of each mechanism
  std::vector<PrivacyUnit> units;
  bool adaptive = false;  ///< whether one of them composes adaptively
};

/// Adds the uses of a run. Runs of one mechanism are one with more uses.
void add_uses(Total& out, const Ledger& ledger, const PrivacyUnit& unit, Added& added) {
  const auto& mechanism = *ledger.method.privacy();
  const auto own = key_of(mechanism);
  const auto complete = mechanism.theorem().complete_uses(ledger.accounted_steps());
  const auto same = static_cast<std::size_t>(std::find(added.keys.begin(), added.keys.end(), own) - added.keys.begin());
  if (same < added.keys.size()) {
    out.mechanisms[same].uses += ledger.accounted_uses();
    out.complete_uses[same] += complete;
  } else {
    const auto uses = ledger.accounted_uses();
    added.keys.push_back(own);
    const bool by_game = mechanism.composition() == privacy::StepComposition::adaptive;
    // For whole series, the pairs of two samplers are exact; those of the others only lie above.
    const bool poisson =
        unit.relation == Relation::series && mechanism.scheme().parameters().top_level == privacy::TopLevel::poisson;
    const bool in_turn = unit.relation == Relation::series &&
                         mechanism.scheme().parameters().top_level == privacy::TopLevel::deterministic &&
                         !mechanism.noise().strategy;
    if (mechanism.theorem().own_curve && !poisson && !in_turn) out.known_from_below = false;
    added.adaptive = added.adaptive || by_game;
    out.mechanisms.push_back(
        {mechanism.theorem().pair, uses, poisson ? privacy::Direction::remove : privacy::Direction::symmetrised});
    out.complete_uses.push_back(complete);
    added.units.push_back(unit);
  }
}

void add_covariates(Total& out, const Ledger& ledger) {
  if (ledger.covariates.empty()) return;
  out.protects_covariates = ledger.protects_covariates && (out.covariates.empty() || out.protects_covariates);
  for (const auto& name : ledger.covariates)
    if (std::find(out.covariates.begin(), out.covariates.end(), name) == out.covariates.end())
      out.covariates.push_back(name);
}

}  // namespace

Total total_of(const std::vector<Ledger>& given) {
  if (given.empty()) throw UsageError("total: found no run; expected at least one");
  for (const auto& ledger : given) check_start(ledger);
  const auto ledgers = with_earlier_runs(given);
  if (ledgers.empty())
    throw UsageError("total: found runs on synthetic series alone, which cost nothing; expected a run on data");
  Total out;
  for (const auto& ledger : ledgers)
    if (std::none_of(given.begin(), given.end(), [&](const Ledger& one) { return one.run == ledger.run; }))
      out.earlier.push_back(ledger.run.id);
  std::set<std::pair<std::string, std::string>> runs;
  Added added;
  for (const auto& ledger : ledgers) {
    check_protects(ledger);
    if (!runs.insert({ledger.run.id, ledger.run.key_print}).second)
      throw UsageError(cat("total: run ", ledger.run.id, " is given twice; expected every run once"));
    // Under two keys a run took steps of its own from somewhere on: both count in full, which bounds them from above.
    if (std::count_if(ledgers.begin(), ledgers.end(), [&](const Ledger& one) { return one.run.id == ledger.run.id; }) >
        1)
      out.known_from_below = false;
    const auto& mechanism = *ledger.method.privacy();
    const auto unit = guaranteed_unit(mechanism);
    if (ledger.accounted_uses() == 0) {  // costs nothing, whatever the change
      if (out.runs.empty()) out.unit = unit;
      continue;
    }
    out.unit = out.runs.empty() ? unit : smaller_of(out.unit, unit);
    if (ledger.accounted_uses() > privacy::max_uses_ever)
      throw PrivacyError(cat("total: run ", ledger.run.id, " states ", ledger.accounted_uses(), " uses; at most ",
                             privacy::max_uses_ever, " are accounted for"));
    out.runs.push_back({mechanism, ledger.accounted_steps()});
    add_covariates(out, ledger);
    if (const auto& chance = mechanism.theorem().cut.chance) {
      out.cuts = up(out.cuts + chance(ledger.accounted_uses()));
      out.known_from_below = false;
    }
    if (mechanism.choice_epsilon() > 0.0) out.pure_releases = up(out.pure_releases + mechanism.choice_epsilon());
    add_uses(out, ledger, unit, added);
  }
  // A pair for more changes than the total is about bounds it only from above.
  for (const auto& unit : added.units) out.known_from_below = out.known_from_below && unit == out.unit;
  // Theorem tsdp.6 requires one pair in every round, no matter whose run a round belongs to. With several pairs, the
  // symmetrised ones bound the steps; they are not attained.
  out.composed_adaptively = added.adaptive && out.mechanisms.size() == 1;
  if (added.adaptive && !out.composed_adaptively) out.known_from_below = false;
  return out;
}

}  // namespace tsdp::mechanism
