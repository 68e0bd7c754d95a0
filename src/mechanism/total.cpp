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
  auto out = composed_adaptively ? privacy::AdaptiveCurve(mechanisms.front().pair).epsilon(delta, mechanisms.front().uses, precision)
                                 : privacy::Accountant(mechanisms).epsilon(delta, 1, precision);
  if (!known_from_below) out.lower = 0.0;
  out.upper = std::nextafter(out.upper + pure_releases, std::numeric_limits<double>::infinity());
  return out;
}

Total total_of(const std::vector<Ledger>& given) {
  if (given.empty()) throw UsageError("total: found no run; at least one is expected");
  const auto ledgers = with_earlier_runs(given);
  Total out;
  std::set<std::string> runs;
  std::vector<std::string> seen;  // terms of out.mechanisms
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
    // Runs of one mechanism are one with more uses, as with several seeds.
    const auto own = mechanism.theorem().theorem + terms(ledger.method).dump();
    const auto same = std::find(seen.begin(), seen.end(), own) - seen.begin();
    if (static_cast<std::size_t>(same) < seen.size()) {
      out.mechanisms[static_cast<std::size_t>(same)].uses += ledger.accounted_uses();
    } else if (const auto uses = ledger.accounted_uses(); uses > 0) {
      seen.push_back(own);
      const bool by_game = mechanism.composition() == privacy::StepComposition::adaptive;
      const bool has_own_curve = mechanism.theorem().own_curve && !by_game && !(mechanism.choice_epsilon() > 0.0);
      if (has_own_curve && mechanism.theorem().theorem != "series.deterministic") out.known_from_below = false;
      adaptive = adaptive || by_game;
      out.mechanisms.push_back({mechanism.theorem().pair, uses});
    }
  }
  // Theorem tsdp.6 asks for one pair in every round, not whose run a round belongs to. Of several pairs the symmetrised ones bound the steps; they are
  // not attained.
  out.composed_adaptively = adaptive && out.mechanisms.size() == 1;
  if (adaptive && !out.composed_adaptively) out.known_from_below = false;
  return out;
}

}  // namespace tsdp::mechanism
