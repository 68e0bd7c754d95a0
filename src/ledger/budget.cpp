#include "ledger/budget.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/file_lock.h"
#include "fields.h"
#include "ledger/total.h"
#include "privacy/accountant/renyi.h"
#include "privacy/terms/numbers.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/json.h"
#include "tsdp/base/text.h"

namespace tsdp::mechanism {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* format_name = "tsdp-budget-1";
using privacy::infinity;

/// Sums of charges, one per order, rounded up; 0 where nothing is charged.
std::vector<double> charged(const Budget& budget) {
  std::vector<double> out(privacy::renyi_orders().size(), 0.0);
  for (const auto& charge : budget.charges)
    for (std::size_t i = 0; i < out.size(); ++i)
      if (charge.renyi[i] > 0.0) out[i] = std::nextafter(out[i] + charge.renyi[i], infinity);
  return out;
}

bool is_nothing(const std::vector<double>& sums) {
  return std::all_of(sums.begin(), sums.end(), [](double sum) { return sum == 0.0; });
}

double pays(const Budget& budget, std::size_t i) {
  const auto& orders = privacy::renyi_orders();
  return privacy::renyi_budget(orders[i], budget.epsilon, budget.delta, orders.size());
}

void check(double epsilon, double delta) {
  if (!(epsilon > 0.0) || !(epsilon <= 1e6))
    throw UsageError(cat("--epsilon: found ", epsilon, "; expected a number above 0 and at most 1e6"));
  if (!(delta >= 1e-25) || !(delta < 1.0))
    throw UsageError(cat("--delta: found ", delta, "; expected a number from 1e-25 to below 1"));
}

Json json_of(const Budget& budget) {
  Json out;
  out["format"] = format_name;
  out["epsilon"] = budget.epsilon;
  out["delta"] = budget.delta;
  out["relation"] = nullptr;
  if (budget.unit) out["relation"] = unit_json(*budget.unit);
  out["orders"] = privacy::renyi_orders();
  out["charges"] = Json::array();
  for (const auto& charge : budget.charges) {
    auto renyi = Json::array();
    for (const double value : charge.renyi) renyi.push_back(std::isfinite(value) ? Json(value) : Json(nullptr));
    out["charges"].push_back(
        {{"run", charge.run}, {"theorem", charge.theorem}, {"compositions", charge.uses}, {"renyi", renyi}});
    if (!charge.public_covariates.empty()) out["charges"].back()["public_covariates"] = charge.public_covariates;
  }
  out["meaning"] =
      "all releases of the runs in `charges` together are (epsilon, delta)-differentially private for data sets that "
      "are neighbours under `relation`, also where settings were chosen after looking at earlier models (a Renyi "
      "filter); not covered: choices by scores, losses or logs, which are computed from true values, a second run from "
      "a copy of a run's folder, and whatever a copy of this file was charged for";
  if (const auto names = budget.public_covariates(); !names.empty() && budget.unit)
    out["covariates"] = cat("not protected:", covariates_text(names, false, budget.unit->relation));
  return out;
}

/// One lock per file, whatever links it is named by.
std::filesystem::path lock_of(const std::filesystem::path& file) {
  std::error_code error;
  const auto real = std::filesystem::weakly_canonical(file, error);
  return (error ? file : real).string() + ".lock";
}

void write(const std::filesystem::path& file, const Budget& budget) {
  write_file_atomically(file, json_text(json_of(budget), 2) + "\n");
}

/// The premise of Theorem 1 of budget.md: what comes next depends on releases that are charged, and on nothing else of
/// the data.
void require_charged(const Budget& budget, const Start& start, const std::string& where) {
  for (const auto& earlier : earlier_runs(start, where)) {
    if (!earlier.protects())
      throw PrivacyError(cat(where, ": the run starts from weights that run ", earlier.run.id, " trained on data ",
                             earlier.is_private() ? "with noise that follows from a seed" : "without privacy",
                             ", which no budget covers; expected model.start fresh, shipped weights, or those of a run "
                             "that is charged here"));
    const auto charge = std::find_if(budget.charges.begin(), budget.charges.end(),
                                     [&](const auto& c) { return c.run == earlier.run.id; });
    if (charge == budget.charges.end())
      throw PrivacyError(cat(where, ": the run starts from weights of run ", earlier.run.id,
                             ", which is not among the charges of this budget; expected model.start fresh, shipped "
                             "weights, or those of a run that is charged here"));
    const auto uses = earlier.accounted_uses();
    const auto renyi = earlier.method.privacy()->theorem().renyi(uses, privacy::renyi_orders());
    bool is_paid = charge->uses >= uses;
    for (std::size_t i = 0; i < renyi.size(); ++i) is_paid = is_paid && renyi[i] <= charge->renyi[i] * (1.0 + 1e-9);
    if (!is_paid)
      throw PrivacyError(cat(where, ": the run starts from weights of run ", earlier.run.id,
                             ", whose ledger states more than the ", charge->uses,
                             " uses that it was charged for: they are not that run's"));
  }
}

}  // namespace

std::vector<std::string> Budget::public_covariates() const {
  std::vector<std::string> out;
  for (const auto& charge : charges)
    for (const auto& name : charge.public_covariates)
      if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
  return out;
}

bool Budget::admits(const std::vector<double>& renyi) const {
  const auto sums = charged(*this);
  for (std::size_t i = 0; i < sums.size(); ++i)
    if (std::nextafter(sums[i] + renyi[i], infinity) <= pays(*this, i)) return true;
  return false;
}

double Budget::spent() const {
  double least = 1.0;
  const auto sums = charged(*this);
  if (is_nothing(sums)) return 0.0;
  for (std::size_t i = 0; i < sums.size(); ++i)
    if (const double most = pays(*this, i); most > 0.0) least = std::min(least, sums[i] / most);
  return least;
}

double Budget::spent_epsilon() const {
  if (is_nothing(charged(*this))) return 0.0;
  const std::vector<double> nothing(privacy::renyi_orders().size(), 0.0);
  auto other = *this;
  double low = 0.0;
  double high = epsilon;  // every charge was admitted
  for (int i = 0; i < 60 && high - low > 1e-9 * high; ++i) {
    other.epsilon = 0.5 * (low + high);
    (other.admits(nothing) ? high : low) = other.epsilon;
  }
  return high;
}

void create_budget(const std::filesystem::path& file, double epsilon, double delta,
                   const std::optional<privacy::PrivacyUnit>& unit) {
  check(epsilon, delta);
  if (std::filesystem::is_symlink(file))
    throw UsageError(cat(file.string(), ": is a link; expected the name of a new file, as one budget has one lock"));
  const FileLock lock(lock_of(file));
  if (is_there(file))
    throw UsageError(cat(file.string(), ": is there already; expected a new file, as a budget is not begun again"));
  Budget budget;
  budget.epsilon = epsilon;
  budget.delta = delta;
  budget.unit = unit;
  write(file, budget);
}

Budget read_budget(const std::filesystem::path& file) {
  const auto where = file.string();
  const auto json = parse_json(read_file(file), where);
  const Fields top(json, where, "a budget that tsdp-account made");
  if (const auto found = top.text("format"); found != format_name)
    throw DataError(
        cat(where, ": format: found '", found, "'; expected ", format_name, ", as `tsdp-account budget` writes it"));
  Budget out;
  out.epsilon = top.number("epsilon", std::numeric_limits<double>::min(), 1e6);
  out.delta = top.number("delta", 1e-25, std::nextafter(1.0, 0.0));
  if (!top.at("relation").is_null()) out.unit = read_unit(top.section("relation"));
  const auto& orders = privacy::renyi_orders();
  if (top.at("orders") != Json(orders))
    throw DataError(cat(where, ": orders: found others than this version of tsdp counts with"));
  const auto& charges = top.at("charges");
  if (!charges.is_array()) throw DataError(cat(where, ": charges: found no list; expected what runs were charged"));
  for (const auto& item : charges) {
    const Fields fields(item, cat(where, ": charges"), "a budget that tsdp-account made");
    BudgetCharge charge{
        fields.text("run"), fields.text("theorem"), fields.count("compositions", 0, privacy::max_uses_ever), {}, {}};
    const auto& renyi = fields.at("renyi");
    if (!renyi.is_array() || renyi.size() != orders.size())
      throw DataError(cat(where, ": charges: renyi: expected ", orders.size(), " numbers or nulls"));
    for (const auto& value : renyi) {
      if (!value.is_null() && (!value.is_number() || !(value.get<double>() >= 0.0)))
        throw DataError(
            cat(where, ": charges: renyi: found ", json_text(value), "; expected a number of at least 0, or null"));
      charge.renyi.push_back(value.is_null() ? infinity : value.get<double>());
    }
    if (fields.has("public_covariates")) charge.public_covariates = fields.texts("public_covariates");
    out.charges.push_back(std::move(charge));
  }
  return out;
}

namespace {

/// The charge of a run whose mechanism a budget counts.
BudgetCharge charge_of(const std::filesystem::path& file, const std::string& run, const PrivateMechanism& mechanism,
                       std::uint64_t uses, const std::vector<std::string>& public_covariates) {
  if (!is_there(file))
    throw UsageError(cat("--budget: no file '", file.string(), "'; make one with: tsdp-account budget ", file.string(),
                         " --epsilon E --delta D"));
  if (mechanism.choice_epsilon() > 0.0)
    throw PrivacyError("--budget: found a mechanism that ends with a private choice, which no budget counts");
  if (mechanism.theorem().cut.chance)
    throw PrivacyError(
        "--budget: found sampling.largest_batch, whose cuts cost a share of delta that no budget counts; expected "
        "null");
  return {run, mechanism.theorem().theorem, uses, mechanism.theorem().renyi(uses, privacy::renyi_orders()),
          public_covariates};
}

/// The budget in `file` with a charge of a mechanism that has the guarantee `unit`.
Budget charged_with(BudgetCharge charge, const std::filesystem::path& file, const privacy::PrivacyUnit& unit,
                    const Start& start) {
  if (std::filesystem::hard_link_count(file) > 1)
    throw UsageError(cat(file.string(),
                         ": has another name (a hard link), under which the same budget would be spent again; expected "
                         "one name, or symbolic links to it"));
  auto budget = read_budget(file);
  if (std::any_of(budget.charges.begin(), budget.charges.end(), [&](const auto& c) { return c.run == charge.run; }))
    throw UsageError(cat(file.string(), ": run ", charge.run, " is charged already"));
  require_charged(budget, start, file.string());
  if (charge.uses > 0) {  // a run without steps costs nothing, whatever the change
    if (!budget.unit) budget.unit = unit;
    if (!contains(unit, *budget.unit))
      throw PrivacyError(cat(file.string(), ": the budget is for changes of relation ", unit_text(*budget.unit),
                             ", which this run's relation ", unit_text(unit),
                             " does not contain; expected one that does, or a budget made without --relation, which "
                             "takes that of its first run"));
    if (!budget.admits(charge.renyi))
      throw PrivacyError(
          cat(file.string(), ": the run would pass the budget of epsilon ", budget.epsilon, " at delta ", budget.delta,
              ", of which ", rounded_up(100.0 * budget.spent(), 3), " % is spent by ", budget.charges.size(),
              " runs; expected a run that costs less: more noise, fewer epochs or a smaller privacy.target_epsilon"));
  }
  budget.charges.push_back(std::move(charge));
  return budget;
}

}  // namespace

void charge_budget(const std::filesystem::path& file, const std::string& run, const PrivateMechanism& mechanism,
                   const Start& start, std::uint64_t uses, const std::vector<std::string>& public_covariates) {
  auto charge = charge_of(file, run, mechanism, uses, public_covariates);  // takes a moment, and needs no lock
  const FileLock lock(lock_of(file));
  write(file, charged_with(std::move(charge), file, guaranteed_unit(mechanism), start));
}

Budget budget_after(const std::filesystem::path& file, const std::string& run, const PrivateMechanism& mechanism,
                    const Start& start, std::uint64_t uses, const std::vector<std::string>& public_covariates) {
  return charged_with(charge_of(file, run, mechanism, uses, public_covariates), file, guaranteed_unit(mechanism),
                      start);
}

}  // namespace tsdp::mechanism
