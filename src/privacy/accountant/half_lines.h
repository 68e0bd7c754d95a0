// The two half lines of a dominating pair, seen alike from the point of loss 0 outwards.
#pragma once

#include <cmath>

#include "tsdp/privacy/accountant/dominating_pair.h"

namespace tsdp::privacy {

/// The half line on which P is the heavier measure, seen from the point of loss 0 outwards.
class Above {
 public:
  explicit Above(const DominatingPair& pair) : pair_(pair) {}
  [[nodiscard]] double sigma() const { return pair_.sigma(); }
  [[nodiscard]] double largest_mean() const { return pair_.largest_mean(); }
  /// log of the heavier over the lighter measure, increasing in x; and its exponential less 1.
  [[nodiscard]] double loss(double x) const { return pair_.loss(x); }
  [[nodiscard]] double excess(double x) const { return pair_.excess(x); }
  [[nodiscard]] double inverse_loss(double loss, double guess) const { return pair_.inverse_loss(loss, guess); }
  /// Density of the lighter measure.
  [[nodiscard]] double scaled_density_q(double x, double log_scale) const {
    return pair_.scaled_density_q(x, log_scale);
  }
  /// Masses beyond x of the heavier and the lighter measure.
  [[nodiscard]] double log_tail_p(double x) const { return pair_.log_tail_p(x); }
  [[nodiscard]] double log_tail_q(double x) const { return pair_.log_tail_q(x); }

 private:
  const DominatingPair& pair_;
};

/// The other half line, on which Q is the heavier measure: reflected, so that its losses increase as well.
class Below {
 public:
  explicit Below(const DominatingPair& pair) : pair_(pair) {}
  [[nodiscard]] double sigma() const { return pair_.sigma(); }
  [[nodiscard]] double largest_mean() const { return pair_.largest_mean(); }
  [[nodiscard]] double loss(double y) const { return -pair_.loss(-y); }
  /// Q/P − 1 = −(P/Q − 1) Q/P: no cancellation, as neither factor has any.
  [[nodiscard]] double excess(double y) const { return -pair_.excess(-y) * std::exp(-pair_.loss(-y)); }
  [[nodiscard]] double inverse_loss(double loss, double) const { return -pair_.inverse_loss(-loss); }
  [[nodiscard]] double scaled_density_q(double y, double log_scale) const {
    return pair_.scaled_density_p(-y, log_scale);
  }
  [[nodiscard]] double log_tail_p(double y) const { return pair_.log_head_q(-y); }
  [[nodiscard]] double log_tail_q(double y) const { return pair_.log_head_p(-y); }

 private:
  const DominatingPair& pair_;
};

}  // namespace tsdp::privacy
