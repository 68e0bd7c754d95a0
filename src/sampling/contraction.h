// What lies between a value as it stands in the file and the number that noise is added to.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::sampling {

/// Values further from 0 than this many times v are cut.
inline constexpr double cut_over_v = 0x1p32;
/// By how much of v two values may lie further apart after they were read and cut.
inline constexpr double reading_share = 0x1p-19;

/// Neighbours are defined by decimals: two values in the file that differ by at most v. Readers give the nearest double
/// (data::Series::exact), ties either way; this cuts it to |x| ≤ B = 2³² v, which depends on v alone and no other data.
///
/// **Claim.** Let x, x′ be real numbers with |x − x′| ≤ u, fl(x) a double nearest to x (a monotone choice), v the
/// double nearest to u, at least 2⁻¹⁰²² and finite, cut(y) = min(max(y, −B), B). Then |cut(fl(x)) − cut(fl(x′))| ≤ (1 +
/// 2⁻¹⁹) v = `reach()`. *Proof.* B is a double or infinite: a product by a power of 2. Let z = cut(x), z′ = cut(x′) on
/// the real line, where cutting moves nothing further apart: |z − z′| ≤ u ≤ (1 + 2⁻⁵³) v.
/// 1. cut(fl(x)) = fl(z). If |x| ≤ B then z = x, and |fl(x)| ≤ fl(B) = B, as fl is monotone and fl(±B) = ±B. If x > B
/// then
///    fl(x) ≥ B, so cut(fl(x)) = B = fl(z); likewise for x < −B.
/// 2. |fl(z) − z| ≤ 2⁻²¹ v. Let 2^e ≤ B < 2^(e+1). Doubles up to B in magnitude lie within 2^(e−52) ≤ 2⁻⁵² B = 2⁻²⁰ v
/// of
///    each other (subnormal ones, too: B ≥ 2⁻⁹⁹⁰, so 2⁻¹⁰⁷⁴ is less), and the nearest is off by at most half of that.
///    Where B would be infinite, v > 2⁹⁹¹ and half the distance of the largest doubles is 2⁹⁷⁰.
/// 3. So |fl(z) − fl(z′)| ≤ (1 + 2⁻⁵³) v + 2 · 2⁻²¹ v < (1 + 2⁻¹⁹) v. ∎
/// What is left of 2⁻¹⁹, almost 2⁻²⁰, also pays for rounding in the products that turn `reach()` into a deviation: each
/// is off by 2⁻⁵³ of itself.
///
/// Reading in single precision would not do: its numbers at 1e9 lie 64 apart, whatever v is.
class Contraction {
 public:
  /// v: the most by which a value changes, in units of the data. Throws UsageError unless it is finite and at least
  /// 2⁻¹⁰²²; the message begins with "v: found".
  explicit Contraction(double v) : cut_(cut_over_v * v), reach_(std::nextafter(v * (1.0 + reading_share), infinity)) {
    if (!(v >= std::numeric_limits<double>::min()) || !std::isfinite(v))
      throw UsageError(cat("v: found ", v, "; expected a finite number of at least 2^-1022"));
  }

  /// The double of a value, cut. Not for NaN.
  [[nodiscard]] double operator()(double value) const noexcept { return std::clamp(value, -cut_, cut_); }
  /// The most by which two values that may be exchanged differ after the cut: (1 + 2⁻¹⁹) v, rounded up.
  [[nodiscard]] double reach() const noexcept { return reach_; }

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();
  double cut_, reach_;
};

}  // namespace tsdp::sampling
