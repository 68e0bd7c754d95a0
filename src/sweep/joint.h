// What the private models of a sweep cost together.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sweep/plan.h"
#include "tsdp/privacy/terms/interval.h"

namespace tsdp::sweep {

/// The composition of all private runs of a sweep on one data set, whose settings the sweep file fixed before the first of
/// them began.
struct JointStatement {
  std::string data;           ///< every dataset.path of theirs
  std::size_t models = 0;     ///< private ones that have begun
  std::size_t without_privacy = 0;  ///< models on the same data that are not private, of which nothing is stated
  double delta = 0.0;         ///< the largest of theirs
  privacy::Interval epsilon;  ///< of all of them together, from below 0 where nothing is known; where none can be stated, `why` says why
  std::string why;
  bool reproducible = false;  ///< some run is: then none can be stated
};

/// One statement a data set on which several private models were trained, from their ledgers. Where some model started from weights that rest on data, the runs behind
/// them are counted, and all models are put together, since a ledger does not tell which data its start was trained on; so are they where a run's own data are not known. A single model has a statement
/// where its ledger does not say all. Takes seconds where mechanisms are many.
[[nodiscard]] std::vector<JointStatement> joint_statements(const SweepPlan& plan);

}  // namespace tsdp::sweep
