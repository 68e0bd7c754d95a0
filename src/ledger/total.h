// What several runs on the same data cost together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ledger/unit.h"
#include "tsdp/ledger/ledger.h"
#include "tsdp/privacy/accountant/accountant.h"
#include "tsdp/privacy/terms/curve.h"

namespace tsdp::mechanism {

/// An ε and what its ends rest on.
struct Stated {
  privacy::Interval epsilon;
  privacy::Certificate certificate;  ///< without a lower theorem nothing is known from below, and the lower end is 0
};

/// Mechanisms that are used together on the same data.
struct Total {
  privacy::PrivacyUnit unit;                      ///< the smallest of all, which the others contain
  /// With the uses that the ledgers account for. Direction remove: a pair that is exact in each direction (Poisson
  /// batches of whole series); the two directions are composed separately, and the larger result counts.
  std::vector<privacy::MechanismUse> mechanisms;
  /// Every run by itself, with the steps that its ledger accounts for; those with 0 steps are left out.
  struct Run {
    PrivateMechanism mechanism;
    std::uint64_t steps;
  };
  std::vector<Run> runs;
  /// Those that these runs were told of; protected only if no run counts its own as public: who may see them is a
  /// property of the data, whatever a run calls its columns.
  std::vector<std::string> covariates;
  bool protects_covariates = false;
  std::vector<std::string> earlier;  ///< ids of runs that were not given but count, since weights started from theirs
  std::vector<std::uint64_t> complete_uses;  ///< for each mechanism, the uses that took every one of their steps: an
                                             ///< unfinished epoch may have left out the changed series

  double pure_releases = 0.0;  ///< Σ ε₂ of the runs' private choices
  /// Whether all steps are those of one mechanism, composed by Theorem tsdp.6.
  bool composed_adaptively = false;
  /// Whether the lower end is one for these runs' composed profiles, and not for pairs that only lie above: for whole
  /// series, that holds for deterministic batches with independent noise and for Poisson batches; it never holds if a
  /// run's own pair is for more changes than `unit` has.
  bool known_from_below = true;
  /// The chance that some batch of some run was cut, at most (privacy::AppliedTheorem::cut).
  double cuts = 0.0;
  /// ε(δ) of all of them together, and why. For one run: the run's own. For several, the upper end is the least of:
  ///   the composition of their pairs, and what the choices add (Theorem tsdp.7);
  ///   where some run is cheaper than its pair says (whole series in bins, correlated noise, adaptive composition):
  ///   basic composition, Σ ε_i at δ_i = δ/n, of those runs by themselves and of all others as one composition; for
  ///   whole series also: the sum of all Rényi divergences, at the best order (Canonne, Kamath and Steinke 2020, Prop.
  ///   12).
  /// All three hold for releases that depend on earlier ones, the mechanisms being fixed beforehand. Cuts take a share
  /// of δ from all of them.
  [[nodiscard]] Stated cost(double delta, double precision = privacy::default_precision) const;
  [[nodiscard]] privacy::Interval epsilon(double delta, double precision = privacy::default_precision) const {
    return cost(delta, precision).epsilon;
  }

 private:
  [[nodiscard]] privacy::Interval composed(const std::vector<privacy::MechanismUse>& uses, double delta,
                                           double precision) const;
  [[nodiscard]] double added_up(double delta, double precision) const;
  /// cost() of several runs, were no batch ever cut.
  [[nodiscard]] Stated cost_without_cuts(double delta, double precision) const;
  [[nodiscard]] double by_renyi(double delta) const;
};

/// The composition of the runs' mechanisms and of those of the runs whose weights they started from, not of their
/// epsilons. It holds for runs whose settings were fixed before the first of them released anything (Props. D.10, D.13:
/// every release may depend on earlier ones, the mechanisms may not). Throws PrivacyError for a run that protects
/// nobody (Ledger::protects), for one whose start does not, and if neither of two relations contains the other;
/// UsageError for a run that is given twice, or for none.
[[nodiscard]] Total total_of(const std::vector<Ledger>& given);

}  // namespace tsdp::mechanism
