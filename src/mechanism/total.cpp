#include "tsdp/mechanism/total.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/privacy/adaptive_curve.h"

namespace tsdp::mechanism {
namespace {

using privacy::PrivacyUnit;
using privacy::Relation;

bool places_contain(const PrivacyUnit& outer, const PrivacyUnit& inner) {
  if (outer.relation == Relation::series || inner.relation == Relation::series) return outer.relation == inner.relation;
  if (outer.w < inner.w) return false;
  switch (outer.relation) {
    case Relation::series:
    case Relation::user: return true;
    case Relation::event: return inner.relation == Relation::event || inner.w == 1;
  }
  throw Error(ExitCode::failure, "a relation that contains nothing");
}

std::string shown(const PrivacyUnit& unit) {
  if (unit.relation == Relation::series) return "one whole series, present or absent";
  return cat(name(unit.relation), " with w = ", unit.w, unit.v ? cat(", v = ", *unit.v) : std::string(", any change of a value"));
}

}  // namespace

bool contains(const PrivacyUnit& outer, const PrivacyUnit& inner) {
  const bool sizes = !outer.v || (inner.v && *inner.v <= *outer.v);
  return sizes && places_contain(outer, inner);
}

PrivacyUnit guaranteed_unit(const PrivateMechanism& mechanism) {
  auto unit = mechanism.unit();
  if (!mechanism.law().has_noise_on_data()) unit.v.reset();
  return unit;
}

namespace {

/// These runs and those that their weights come from, each once: a start that several share, or that is among the runs, was released once. (A
/// copy of a run that went on differently has another key.)
std::vector<Ledger> with_earlier_runs(const std::vector<Ledger>& ledgers) {
  auto out = ledgers;
  for (const auto& ledger : ledgers)
    for (auto& earlier : earlier_runs(ledger, cat("run ", ledger.run.id))) {
      const bool known = std::any_of(out.begin(), out.end(), [&](const Ledger& one) {
        return one.run == earlier.run && one.steps_charged == earlier.steps_charged;
      });
      if (!known) out.push_back(std::move(earlier));
    }
  return out;
}

}  // namespace

privacy::Interval Total::epsilon(double delta, double precision) const {
  if (mechanisms.empty()) return {0.0, 0.0};
  const auto composed = [&](const std::vector<privacy::MechanismUse>& uses) {
    if (uses.empty()) return privacy::Interval{0.0, 0.0};
    return composed_adaptively ? privacy::AdaptiveCurve(uses.front().pair).epsilon(delta, uses.front().uses, precision)
                               : privacy::Accountant(uses).epsilon(delta, 1, precision);
  };
  auto out = composed(mechanisms);
  std::vector<privacy::MechanismUse> complete;
  bool all_are = true;
  for (std::size_t i = 0; i < mechanisms.size(); ++i) {
    all_are = all_are && complete_uses[i] == mechanisms[i].uses;
    if (complete_uses[i] > 0) complete.push_back({mechanisms[i].pair, complete_uses[i], mechanisms[i].direction});
  }
  if (!known_from_below) {
    out.lower = 0.0;
  } else if (!all_are) {
    out.lower = composed(complete).lower;
  }
  out.upper = std::nextafter(out.upper + pure_releases, std::numeric_limits<double>::infinity());
  return out;
}

privacy::Certificate Total::certificate() const {
  auto out = composed_adaptively ? privacy::AdaptiveCurve(mechanisms.front().pair).certificate()
                                 : privacy::Certificate{"composition of dominating pairs (Schuchardt et al. 2025, Props. D.10 and D.13)",
                                                        "the composition of the pairs itself, which adaptive runs need not reach",
                                                        {}};
  if (pure_releases > 0.0) out.upper += "; the choices by tsdp.7";
  if (!known_from_below) out.lower.clear();
  out.assumptions.emplace_back("settings fixed beforehand");
  return out;
}

Total total_of(const std::vector<Ledger>& given) {
  if (given.empty()) throw UsageError("total: found no run; at least one is expected");
  const auto ledgers = with_earlier_runs(given);
  Total out;
  std::set<std::string> runs;
  std::vector<std::string> seen;  // terms of out.mechanisms
  std::vector<PrivacyUnit> units;
  bool adaptive = false;
  for (const auto& ledger : ledgers) {
    if (!ledger.is_private())
      throw PrivacyError(cat("total: run ", ledger.run.id,
                             " was trained without privacy, so no epsilon covers it with the others; "
                             "expected private runs"));
    if (!runs.insert(ledger.run.id).second)
      throw UsageError(cat("total: run ", ledger.run.id, " is given twice; expected every run once"));
    const auto& mechanism = *ledger.method.privacy();
    const auto unit = guaranteed_unit(mechanism);
    if (out.mechanisms.empty() || contains(out.unit, unit)) {
      out.unit = unit;
    } else if (!contains(unit, out.unit)) {
      throw PrivacyError(cat("total: found the relations '", shown(out.unit), "' and '", shown(unit),
                             "', neither of which contains the "
                             "other; expected runs whose relations do"));
    }
    if (ledger.accounted_uses() > privacy::max_uses_ever)
      throw PrivacyError(cat("total: run ", ledger.run.id, " states ", ledger.accounted_uses(), " uses; at most ", privacy::max_uses_ever,
                             " are accounted for"));
    if (ledger.accounted_uses() > 0) out.pure_releases = std::nextafter(out.pure_releases + mechanism.choice_epsilon(), std::numeric_limits<double>::infinity());
    // Runs of one mechanism are one with more uses, as with several seeds. (By their pair, too: of tsdp.1 and tsdp.2 it hangs on every length, of which terms
    // have the shortest and the longest.)
    auto own = mechanism.theorem().theorem + terms(ledger.method).dump() + exact(mechanism.theorem().pair.sigma());
    for (const auto& part : mechanism.theorem().pair.components()) own += cat(" ", exact(part.mean), " ", exact(part.weight));
    const auto complete = mechanism.theorem().complete_uses(ledger.accounted_steps());
    const auto same = std::find(seen.begin(), seen.end(), own) - seen.begin();
    if (static_cast<std::size_t>(same) < seen.size()) {
      out.mechanisms[static_cast<std::size_t>(same)].uses += ledger.accounted_uses();
      out.complete_uses[static_cast<std::size_t>(same)] += complete;
    } else if (const auto uses = ledger.accounted_uses(); uses > 0) {
      seen.push_back(own);
      const bool by_game = mechanism.composition() == privacy::StepComposition::adaptive;
      const bool has_own_curve = mechanism.theorem().own_curve && !by_game && !(mechanism.choice_epsilon() > 0.0);
      if (has_own_curve && mechanism.theorem().theorem != "series.deterministic") out.known_from_below = false;
      adaptive = adaptive || by_game;
      out.mechanisms.push_back({mechanism.theorem().pair, uses});
      out.complete_uses.push_back(complete);
      units.push_back(unit);
    }
  }
  // A pair for more changes than the total is about bounds it from above alone.
  for (const auto& unit : units) out.known_from_below = out.known_from_below && unit == out.unit;
  // Theorem tsdp.6 asks for one pair in every round, not whose run a round belongs to. Of several pairs the symmetrised ones bound the steps; they are
  // not attained.
  out.composed_adaptively = adaptive && out.mechanisms.size() == 1;
  if (adaptive && !out.composed_adaptively) out.known_from_below = false;
  return out;
}

}  // namespace tsdp::mechanism
