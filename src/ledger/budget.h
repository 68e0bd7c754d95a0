// A project's budget: what runs that are chosen one after the other may cost together (docs/proofs/budget.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tsdp/ledger/ledger.h"
#include "tsdp/mechanism/training_method.h"

namespace tsdp::mechanism {

/// What a run was charged, all of it before its first step.
struct BudgetCharge {
  std::string run;  ///< RunIdentity::id
  std::string theorem;
  std::uint64_t uses = 0;
  std::vector<double> renyi;  ///< of all uses together, one per order; +∞ where it is of no use
  std::vector<std::string> public_covariates;  ///< that the run was told of
};

/// (ε, δ) and what of it is charged: a Rényi filter over privacy::renyi_orders() (Theorem 1 of budget.md).
struct Budget {
  double epsilon = 0.0;
  double delta = 0.0;
  std::optional<privacy::PrivacyUnit> unit;  ///< what neighbours are; none until the first run is charged
  std::vector<BudgetCharge> charges;

  /// The covariates that some run counts as public; if there are any, the budget protects no covariates.
  [[nodiscard]] std::vector<std::string> public_covariates() const;
  /// Whether at least one order still pays for all charges and for `renyi`.
  [[nodiscard]] bool admits(const std::vector<double>& renyi) const;
  /// The share spent, 0 to 1, of the order that has most left.
  [[nodiscard]] double spent() const;
  /// The least ε found at which a budget at this δ pays for all charges, rounded up; at most `epsilon`.
  [[nodiscard]] double spent_epsilon() const;
};

/// Writes a new budget file. Throws UsageError if the file exists, or for ε not in (0, 1e6], δ not in [1e-25, 1).
void create_budget(const std::filesystem::path& file, double epsilon, double delta,
                   const std::optional<privacy::PrivacyUnit>& unit = std::nullopt);

/// Throws DataError if it is not a budget file.
[[nodiscard]] Budget read_budget(const std::filesystem::path& file);

/// Charges `uses` uses of a run's mechanism, under a lock (FILE.lock), so that runs that begin at once see each other's
/// charges. The charge is durable when this returns. Throws PrivacyError if the run would pass the budget, if its
/// relation does not contain the budget's, or if its start rests on data by a run that is not private or not among the
/// charges; DataError if it is not a budget file; UsageError for a run that is charged already. `public_covariates`:
/// those that the run is told of and does not protect.
void charge_budget(const std::filesystem::path& file, const std::string& run, const PrivateMechanism& mechanism,
                   const Start& start, std::uint64_t uses, const std::vector<std::string>& public_covariates = {});

/// What the budget would be after that charge, which is not made: nothing is written or locked. Throws as charge_budget
/// does.
[[nodiscard]] Budget budget_after(const std::filesystem::path& file, const std::string& run,
                                  const PrivateMechanism& mechanism, const Start& start, std::uint64_t uses,
                                  const std::vector<std::string>& public_covariates = {});

}  // namespace tsdp::mechanism
