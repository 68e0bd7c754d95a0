// What the private models of a sweep cost together.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sweep/plan.h"
#include "tsdp/privacy/terms/curve.h"

namespace tsdp::sweep {

/// The composition of all private runs of a sweep on one data set. The sweep file fixed their settings before the first
/// of them began.
struct JointStatement {
  std::string data;  ///< every dataset.path of the runs
  std::size_t models = 0;  ///< begun models that a privacy cost is counted for
  std::size_t without_privacy = 0;  ///< models on the same data that are not private, about which nothing is stated
  double delta = 0.0;  ///< the largest of the runs'
  privacy::Interval
      epsilon;  ///< of all runs together, from below 0 if nothing is known; if none can be stated, `why` says why
  std::string relation;  ///< the neighbours that epsilon is about (mechanism::unit_text); empty if none is stated
  std::string covariates;  ///< a sentence on those of the runs (mechanism::covariates_text); empty if there are none
  std::string why;
  bool reproducible = false;  ///< some run is: then none can be stated
};

/// One statement per data set on which several private models were trained, from their ledgers. If some model started
/// from weights that rest on data, the runs behind those weights are counted and all models are put together, since a
/// ledger does not tell which data its start was trained on. They are also put together if a run's own data are not
/// known. A single model has a statement if its ledger does not say everything. Takes seconds if mechanisms are many.
[[nodiscard]] std::vector<JointStatement> joint_statements(const SweepPlan& plan);

}  // namespace tsdp::sweep
