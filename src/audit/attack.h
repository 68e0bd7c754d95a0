// The best attack on one use of a mechanism whose laws are known. No LibTorch.
//
// Units: clip norm C = 1; σ is the noise multiplier. D and D′ are two neighbouring data sets, "first" and "second".
#pragma once

#include <vector>

#include "tsdp/privacy/accountant/dominating_pair.h"

namespace tsdp::audit {

/// One value that a release may have before noise, and its weight.
using Component = privacy::DominatingPair::Component;

/// The laws of a release on D and on D′: two coordinates, `along` (in which they differ) and `across` (which tells
/// whether the changed series was drawn), each with noise N(0, σ²) of its own.
struct Shape {
  /// Law of `along` if the changed series is drawn, on D and on D′; `across` is independent of it.
  std::vector<Component> first, second;
  double drawn = 1.0;  ///< chance that it is; otherwise both coordinates are only noise
  /// Law of `across` if the changed series is drawn; none: `across` says nothing and is not looked at.
  std::vector<Component> trace = {};
};

/// The best test of D′ against D for one shape and one σ, and how often it errs at another σ.
class Attack {
 public:
  /// Throws PrivacyError for σ that is not positive, and for weights that are not probabilities.
  Attack(Shape shape, double sigma);

  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
  [[nodiscard]] double sigma() const noexcept { return sigma_; }

  /// log of the density of a release on D′ over that on D; nondecreasing in `along`.
  [[nodiscard]] double score(double along, double across) const;

  /// S = {score > threshold}, as the half lines along > edges[i] at across = nodes[i] (one node, if `across` is not
  /// looked at). An edge is infinite where S has nothing, or all.
  struct Event {
    double threshold = 0.0;
    std::vector<double> nodes, edges;
  };
  [[nodiscard]] Event event(double threshold) const;
  /// P(S) on D or (second) D′, if the noise has deviation `sigma` instead of the attack's own; sigma in
  /// [σ/fit_range, σ fit_range]. Absolute error below 1e-9.
  [[nodiscard]] double probability(const Event& event, bool second, double sigma) const;

  /// How far from σ other noise multipliers are searched.
  static constexpr double fit_range = 4.0;

 private:
  [[nodiscard]] double log_trace_ratio(double across) const;
  [[nodiscard]] double score_given(double along, double log_odds) const;

  Shape shape_;
  double sigma_;
};

/// Thresholds of a few events, chosen only from the laws: those that would tell most about noise that is a tenth too
/// small, by themselves on either data set and against `pair`'s profile in either direction; and 0.
[[nodiscard]] std::vector<double> telling_thresholds(const Attack& attack, const privacy::DominatingPair& pair);

}  // namespace tsdp::audit
