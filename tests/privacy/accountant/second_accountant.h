// A second accountant, for tests only: long double, rounding to a grid and direct convolution.
//
// It shares no code and no method with the product: mixtures and their weights are evaluated by their definitions, the
// pessimistic side connects the dots of profile values (Prop. D.16), the optimistic side merges outputs
// (post-processing) so that every merged loss lies on the grid, and k uses are composed by repeated squaring of the
// masses, term by term. All terms are positive, so double precision keeps its relative accuracy.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>

#include "tsdp/privacy/terms/curve.h"

namespace tsdp::privacy::second {

using Real = long double;

inline Real upper_normal(Real z) { return std::erfc(z / std::numbers::sqrt2_v<Real>) / 2; }

/// The root in [low, high] of a rising function, to `tolerance` of `high`: false position with halving (Illinois), and
/// bisection where that is slow.
template <class Function>
Real root(Function f, Real low, Real high, Real tolerance) {
  Real at_low = f(low);
  Real at_high = f(high);
  int kept = 0;  // times in a row that one end stayed
  for (int i = 0; i < 200 && high - low > tolerance * std::abs(high); ++i) {
    Real x = high - at_high * (high - low) / (at_high - at_low);
    if (i % 8 == 7 || !(x > low && x < high)) x = (low + high) / 2;
    if (x <= low || x >= high) break;
    const Real value = f(x);
    if (value == 0) return x;
    if (value > 0) {
      high = x;
      at_high = value;
      kept = kept > 0 ? kept + 1 : 1;
      if (kept > 1) at_low /= 2;
    } else {
      low = x;
      at_low = value;
      kept = kept < 0 ? kept - 1 : -1;
      if (kept < -1) at_high /= 2;
    }
    if (std::abs(value) < 1e-18L) return x;
  }
  return high;
}

struct Atom {
  Real mean;
  Real weight;
};

/// Binomial(i; trials, probability) at spacing · i, by factorials: for few trials.
inline std::vector<Atom> binomial(int trials, Real probability, Real spacing) {
  std::vector<Atom> out;
  Real choose = 1;
  for (int i = 0; i <= trials; ++i) {
    const Real weight =
        choose * std::pow(probability, static_cast<Real>(i)) * std::pow(1 - probability, static_cast<Real>(trials - i));
    if (weight > 0) out.push_back({spacing * static_cast<Real>(i), weight});
    choose = choose * static_cast<Real>(trials - i) / static_cast<Real>(i + 1);
  }
  return out;
}

/// (1 − use) at mean 0 and `use` times the atoms.
inline std::vector<Atom> diluted(std::vector<Atom> atoms, Real use) {
  for (auto& a : atoms) a.weight *= use;
  if (use < 1) atoms.push_back({0, 1 - use});
  return atoms;
}

/// P with means ≥ 0 against N(0, σ²) or against its mirror image, used with probability `use`.
class Mixture {
 public:
  Mixture(std::vector<Atom> p, Real sigma, bool mirror, Real use = 1)
      : p_(std::move(p)), q_{{0, 1}}, sigma_(sigma), use_(use) {
    if (!mirror) return;
    q_ = p_;
    for (auto& a : q_) a.mean = -a.mean;
  }

  [[nodiscard]] Real use() const { return use_; }
  [[nodiscard]] Real p_beyond(Real x) const { return beyond(p_, x); }
  [[nodiscard]] Real q_beyond(Real x) const { return beyond(q_, x); }
  [[nodiscard]] Real loss(Real x) const { return log_relative(p_, x) - log_relative(q_, x); }

  /// The x ≥ from with loss(x) = value. Requires loss(from) ≤ value.
  [[nodiscard]] Real at_loss(Real value, Real from = 0) const {
    Real reach = sigma_ * 1e-3L;
    while (loss(from + reach) < value) {
      from += reach;
      reach *= 2;
    }
    return root([&](Real x) { return loss(x) - value; }, from, from + reach, 1e-18L);
  }

  /// The symmetrised profile at α = e^ε: by its definition for ε ≥ 0, by (3.1) below.
  [[nodiscard]] Real profile(Real epsilon) const {
    if (epsilon < 0) return -std::expm1(epsilon) + std::exp(epsilon) * profile(-epsilon);
    const Real x = at_loss(epsilon);
    return use_ * (p_beyond(x) - std::exp(epsilon) * q_beyond(x));
  }

  /// The x beyond which P has mass below 1e-17.
  [[nodiscard]] Real end() const {
    Real largest = 0;
    for (const auto& a : p_) largest = std::max(largest, a.mean);
    return largest + 8.6L * sigma_;
  }

  /// Standard deviation of the loss of one use, roughly: it only sets the step of the grid.
  [[nodiscard]] Real spread() const {
    const Real from = at_loss(0);
    const Real width = (end() - from) / 600;
    Real sum = 0;
    for (int i = 0; i < 600; ++i) {
      const Real x = from + width * static_cast<Real>(i);
      const Real mass = p_beyond(x) - p_beyond(x + width) + q_beyond(x) - q_beyond(x + width);
      const Real l = loss(x + width / 2);
      sum += mass * l * l;
    }
    return std::sqrt(use_ * sum);
  }

 private:
  [[nodiscard]] Real beyond(const std::vector<Atom>& atoms, Real x) const {
    Real sum = 0;
    for (const auto& a : atoms) sum += a.weight * upper_normal((x - a.mean) / sigma_);
    return sum;
  }
  /// log of the density relative to that of N(0, σ²).
  [[nodiscard]] Real log_relative(const std::vector<Atom>& atoms, Real x) const {
    if (atoms.size() == 1 && atoms[0].mean == 0) return 0;
    Real sum = 0;
    Real largest = -std::numeric_limits<Real>::infinity();
    const auto exponent = [&](const Atom& a) { return a.mean * (x - a.mean / 2) / (sigma_ * sigma_); };
    for (const auto& a : atoms) largest = std::max(largest, exponent(a));
    for (const auto& a : atoms) sum += a.weight * std::exp(exponent(a) - largest);
    return largest + std::log(sum);
  }

  std::vector<Atom> p_;
  std::vector<Atom> q_;
  Real sigma_;
  Real use_;
};

/// Masses at losses (first + i) step, and at infinite loss.
struct Masses {
  Real step = 0;
  std::int64_t first = 0;
  std::vector<double> at;
  double infinite = 0;

  /// E (1 − e^{ε − loss})+.
  [[nodiscard]] Real delta(Real epsilon) const {
    Real sum = infinite;
    for (std::size_t i = at.size(); i-- > 0;) {
      const Real loss = step * static_cast<Real>(first + static_cast<std::int64_t>(i));
      if (loss <= epsilon) break;
      sum -= static_cast<Real>(at[i]) * std::expm1(epsilon - loss);
    }
    return sum;
  }
};

enum class Side {
  upper,
  lower
};

/// Certified bounds of δ of k uses. Meant for δ ≥ 1e-9, k ≤ 64 and mixtures of a few means.
class Accountant {
 public:
  explicit Accountant(Mixture mixture, Real cells_per_spread = 25, std::int64_t most_cells = 2000)
      : mixture_(std::move(mixture)) {
    const Real largest = mixture_.loss(mixture_.end());
    step_ = std::max(std::min(mixture_.spread() / cells_per_spread, 0.05L), largest / static_cast<Real>(most_cells));
    cells_ = static_cast<std::int64_t>(std::ceil(largest / step_));
    upper_ = pessimistic();
    lower_ = optimistic();
  }

  /// Composes `uses` uses; delta() then answers for them.
  void compose(std::uint64_t uses) {
    uses_ = static_cast<Real>(uses);
    upper_composed_ = power(upper_, uses, Side::upper);
    lower_composed_ = power(lower_, uses, Side::lower);
  }

  [[nodiscard]] Interval delta(Real epsilon) const {
    // A product of k masses has a relative error of k times (cells summed + 1) units in the last place of double;
    // masses from second differences, and losses merged up to a residual, an absolute one per use.
    const Real relative = uses_ * static_cast<Real>(upper_composed_.at.size() + lower_composed_.at.size()) * 2.3e-16L;
    const Real above = upper_composed_.delta(epsilon) * (1 + relative) + uses_ * second_difference_error_;
    const Real below = lower_composed_.delta(epsilon + uses_ * residual_) * (1 - relative);
    return {static_cast<double>(std::max<Real>(0, below)), static_cast<double>(std::min<Real>(1, above))};
  }

  /// The ε ≥ 0 at which the upper bound is `target`, to about 1e-9; 0 if it is below at 0.
  [[nodiscard]] double epsilon_of_upper(double target) const {
    Real low = 0;
    Real high = step_ * static_cast<Real>(upper_composed_.first + static_cast<std::int64_t>(upper_composed_.at.size()));
    for (int i = 0; i < 40 && high - low > 1e-9L * high; ++i) {
      const Real middle = (low + high) / 2;
      (delta(middle).upper > target ? low : high) = middle;
    }
    return delta(0).upper <= target ? 0.0 : static_cast<double>(high);
  }

 private:
  /// Masses p_i at +i step (i ≥ 1), hence p_i e^{−i step} at −i step: the symmetrised profile maps α to 1/α by (3.1),
  /// under which a polygon stays a polygon. The rest lies at 0.
  [[nodiscard]] Masses symmetric(const std::vector<Real>& p, Real infinite) const {
    Masses out{step_, -cells_, std::vector<double>(static_cast<std::size_t>(2 * cells_ + 1), 0.0),
               static_cast<double>(infinite)};
    Real rest = 1 - infinite;
    for (std::int64_t i = 1; i <= cells_; ++i) {
      const Real plus = p[static_cast<std::size_t>(i)];
      const Real minus = plus * std::exp(-step_ * static_cast<Real>(i));
      out.at[static_cast<std::size_t>(cells_ + i)] = static_cast<double>(plus);
      out.at[static_cast<std::size_t>(cells_ - i)] = static_cast<double>(minus);
      rest -= plus + minus;
    }
    out.at[static_cast<std::size_t>(cells_)] = static_cast<double>(std::max<Real>(0, rest));
    return out;
  }

  /// The polygon through the profile at α = e^{i step}, constant beyond the last place.
  [[nodiscard]] Masses pessimistic() {
    std::vector<Real> h(static_cast<std::size_t>(cells_ + 2));
    Real x = 0;
    for (std::int64_t i = 0; i <= cells_; ++i) {
      const Real loss = step_ * static_cast<Real>(i);
      x = mixture_.at_loss(loss, x * (1 - 1e-15L));
      h[static_cast<std::size_t>(i)] =
          mixture_.use() * std::max<Real>(0, mixture_.p_beyond(x) - std::exp(loss) * mixture_.q_beyond(x));
    }
    h[static_cast<std::size_t>(cells_ + 1)] = h[static_cast<std::size_t>(cells_)];
    const Real growth = std::expm1(step_);
    std::vector<Real> p(static_cast<std::size_t>(cells_ + 1), 0);
    for (std::size_t i = 1; i <= static_cast<std::size_t>(cells_); ++i)
      p[i] = std::max<Real>(0, ((h[i + 1] - h[i]) + (1 + growth) * (h[i - 1] - h[i])) / growth);
    second_difference_error_ = static_cast<Real>(cells_) * (1e-18L * h[0] / step_ + 1e-18L);
    return symmetric(p, h[static_cast<std::size_t>(cells_)]);
  }

  /// Outputs right of x0 merged into cells whose loss log(P(cell)/Q(cell)) is i step, those near x0 (and their mirror)
  /// into the atom at 0; what lies beyond the last cell is left out.
  [[nodiscard]] Masses optimistic() {
    std::vector<Real> p(static_cast<std::size_t>(cells_ + 1), 0);
    Real left = mixture_.at_loss(step_ / 2);
    Real width = left - mixture_.at_loss(0);
    for (std::int64_t i = 1; i <= cells_; ++i) {
      const Real loss = step_ * static_cast<Real>(i);
      if (mixture_.loss(left) >= loss) continue;  // nothing merged with what lies right of here has this loss
      const Real p_left = mixture_.p_beyond(left);
      const Real q_left = mixture_.q_beyond(left);
      const auto merged = [&](Real right) {
        return std::log((p_left - mixture_.p_beyond(right)) / (q_left - mixture_.q_beyond(right)));
      };
      Real high = left + 2 * width;
      while (high < mixture_.end() && merged(high) < loss) high += width;
      if (high >= mixture_.end()) break;
      const Real low = std::max(left + (high - left) * 1e-3L, high - 2 * width);
      if (merged(low) > loss) continue;  // too thin a cell: leave this place of the grid empty
      high = root([&](Real x) { return merged(x) - loss; }, low, high, 1e-13L);
      residual_ = std::max(residual_, std::abs(merged(high) - loss));
      p[static_cast<std::size_t>(i)] = mixture_.use() * (p_left - mixture_.p_beyond(high));
      width = high - left;
      left = high;
    }
    return symmetric(p, 0);
  }

  /// Takes off what weighs less than 1e-17 at either end: up, and up to the next place; or away.
  static void trim(Masses& m, Side side) {
    constexpr double little = 1e-17;
    double sum = 0;
    while (m.at.size() > 1 && sum + m.at.back() <= little) {
      sum += m.at.back();
      m.at.pop_back();
    }
    if (side == Side::upper) m.infinite += sum;
    sum = 0;
    std::size_t from = 0;
    while (from + 1 < m.at.size() && sum + m.at[from] <= little) sum += m.at[from++];
    if (side == Side::upper) m.at[from] += sum;
    m.at.erase(m.at.begin(), m.at.begin() + static_cast<std::ptrdiff_t>(from));
    m.first += static_cast<std::int64_t>(from);
  }

  static Masses product(const Masses& a, const Masses& b, Side side) {
    Masses out{a.step, a.first + b.first, std::vector<double>(a.at.size() + b.at.size() - 1, 0.0),
               a.infinite + b.infinite - a.infinite * b.infinite};
    for (std::size_t i = 0; i < a.at.size(); ++i) {
      const double weight = a.at[i];
      double* to = out.at.data() + i;
      const double* from = b.at.data();
      const std::size_t size = b.at.size();
      for (std::size_t j = 0; j < size; ++j) to[j] += weight * from[j];
    }
    trim(out, side);
    return out;
  }

  static Masses power(Masses base, std::uint64_t uses, Side side) {
    trim(base, side);
    Masses out;
    for (bool begun = false;; base = product(base, base, side)) {
      if ((uses & 1U) != 0) {
        out = begun ? product(out, base, side) : base;
        begun = true;
      }
      uses >>= 1U;
      if (uses == 0) return out;
    }
  }

  Mixture mixture_;
  Real step_ = 0;
  std::int64_t cells_ = 0;
  Real residual_ = 0;
  Real second_difference_error_ = 0;
  Real uses_ = 1;
  Masses upper_;
  Masses lower_;
  Masses upper_composed_;
  Masses lower_composed_;
};

}  // namespace tsdp::privacy::second
