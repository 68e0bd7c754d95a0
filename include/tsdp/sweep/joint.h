// What the private models of a sweep cost together.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tsdp/privacy/interval.h"
#include "tsdp/sweep/plan.h"

namespace tsdp::sweep {

/// The composition of all private runs of a sweep on one data set, whose settings the sweep file fixed before the first of
/// them began.
struct JointStatement {
  std::string data;           ///< dataset.path of the first of them; other names of the same file count as this one
  std::size_t models = 0;     ///< private ones that have begun
  double delta = 0.0;         ///< the largest of theirs
  privacy::Interval epsilon;  ///< of all of them together; where none can be stated, `why` says why
  std::string why;
  bool reproducible = false;  ///< some run is, so that this is no guarantee for its model
};

/// One statement a data set on which several private models were trained, or one from weights that rest on data, from their ledgers; the runs behind
/// those weights are counted. Takes seconds where mechanisms are many.
[[nodiscard]] std::vector<JointStatement> joint_statements(const SweepPlan& plan);

}  // namespace tsdp::sweep
