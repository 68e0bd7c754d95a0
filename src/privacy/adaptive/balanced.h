// Profiles in balanced units, f(n) e^{−nh/2}: the measures behind them, and the convex functions below points.
#pragma once

#include <cstdint>
#include <vector>

#include <cmath>

namespace tsdp::privacy {

/// μ̃(n) = [n = 0] + (D̃(n + 1) + D̃(n − 1) − 2 cosh(h/2) D̃(n)) / (2 sinh(h/2)): the signed measure whose balanced profile
/// is D̃, a function of n.
class SecondDifference {
 public:
  explicit SecondDifference(double step)
      : scale_(1.0 / (2.0 * std::sinh(0.5 * step))), twice_(2.0 * std::cosh(0.5 * step)) {}

  template <typename Function>
  [[nodiscard]] double operator()(const Function& d, std::int64_t n) const {
    return (n == 0 ? 1.0 : 0.0) + (d(n + 1) + d(n - 1) - twice_ * d(n)) * scale_;
  }
  /// The sum of the terms' absolute values, for d ≥ 0, without the 1: rounding is relative to it.
  template <typename Function>
  [[nodiscard]] double magnitude(const Function& d, std::int64_t n) const {
    return (d(n + 1) + d(n - 1) + twice_ * d(n)) * scale_;
  }
  [[nodiscard]] double scale() const noexcept { return scale_; }

 private:
  double scale_, twice_;
};

/// Replaces f, given at z[0] < z[1] < …, by its lower convex hull. A convex function below the points is below their
/// hull.
void convex_from_below(const std::vector<double>& z, std::vector<double>& f);

/// An upper bound of a(z) − (z − 1) at 1 = z[0] < z[1] < …, which is convex and falls: the largest such function below
/// the points.
void falling_hull(const std::vector<double>& z, std::vector<double>& f);

}  // namespace tsdp::privacy
