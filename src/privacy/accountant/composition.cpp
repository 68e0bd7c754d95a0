#include "composition.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "fourier.h"
#include "privacy/terms/numbers.h"
#include "privacy/terms/out_of_reach.h"

namespace tsdp::privacy {
namespace {

// The most coefficients that are kept for the next composition (2 MB).
constexpr std::size_t max_kept = std::size_t{1} << 17;

/// All draws of all factors.
struct Draws {
  double count = 0.0;            // k
  double error = 0.0;            // Σ draws · error
  double euclidean_error = 0.0;  // with several factors Σ k_i times their own, as |F_i| ≤ 1
};

/// k, and the errors of the transforms summed up over all draws; sums to nearest, as what follows has room for them.
Draws draws_of(const std::vector<Composition::Factor>& factors) {
  Draws out;
  for (const auto& [transform, draws] : factors) {
    const auto times = static_cast<double>(draws);
    out.count += times;
    out.error += times * transform->error();
    out.euclidean_error += times * transform->euclidean_error();
  }
  return out;
}

/// How many coefficients of F^k, from the lowest on, do not vanish, from above: |F|^k > e^{log_vanishing}, with the
/// error counted in, for every factor; the others are at most 1, as transforms of probabilities are.
std::int64_t count_of_coefficients(const std::vector<Composition::Factor>& factors) {
  auto end = factors.front().transform->size() / 2 + 1;
  for (const auto& [transform, draws] : factors) {
    const auto& f = transform->coefficients();
    const double least = std::exp(TiltedTransform::log_vanishing / static_cast<double>(draws)) - transform->error();
    auto own_end = std::min(end, static_cast<std::int64_t>(f.size()));
    while (own_end > 0 && least > 0.0 && std::norm(f[static_cast<std::size_t>(own_end - 1)]) <= least * least)
      --own_end;
    end = own_end;
  }
  return end;
}

/// (1 − z)(1 − z′) at the frequencies of a circle, to nearest.
class Divisor {
 public:
  explicit Divisor(const TiltedTransform& f)
      : angle_(2.0 * std::numbers::pi / static_cast<double>(f.size())),
        near_fall_(std::exp(-f.theta() * f.distribution().step)),
        far_fall_(std::exp(-(f.theta() + 1.0) * f.distribution().step)),
        near_gap_(-std::expm1(-f.theta() * f.distribution().step)),
        far_gap_(-std::expm1(-(f.theta() + 1.0) * f.distribution().step)) {}

  [[nodiscard]] std::complex<double> at(std::int64_t m) const {
    // 1 − z = (1 − e^{−θh}) + e^{−θh} (1 − y), 1 − y = 2 sin²(φ/2) − i sin φ: nothing cancels.
    const double sin_half = std::sin(0.5 * angle_ * static_cast<double>(m));
    const double cos_half = std::cos(0.5 * angle_ * static_cast<double>(m));
    const std::complex<double> turn{2.0 * sin_half * sin_half, -2.0 * sin_half * cos_half};
    return (near_gap_ + near_fall_ * turn) * (far_gap_ + far_fall_ * turn);
  }

 private:
  double angle_, near_fall_, far_fall_, near_gap_, far_gap_;
};

/// A factor, ready for the loop over frequencies.
struct Term {
  const std::complex<double>* coefficients;
  double times, error;
  std::uint64_t draws;
  double log_power = 0.0;  // of the present coefficient
};

/// Π_i F_i^{k_i} at frequency m, at which every `log_power` is set; to nearest, off by at most (16 k + 16) u of itself.
std::complex<double> power_at(const std::vector<Term>& terms, std::int64_t m) {
  std::complex<double> power = 1.0;
  for (const auto& t : terms) {
    if (t.draws <= 1024) {
      // Repeated squaring: at most 2(k − 1) rounded products.
      auto base = t.coefficients[m];
      for (auto left = t.draws;; base *= base) {
        if (left % 2 == 1) power *= base;
        left /= 2;
        if (left == 0) break;
      }
    } else {
      power *= std::polar(std::exp(t.log_power), t.times * std::arg(t.coefficients[m]));
    }
  }
  return power;
}

/// Sums over all frequencies.
struct PowerSums {
  double error;  // Σ|ΔF^k|, from above
  double square = 0.0;  // ‖F^k‖₂²
  double twice = 0.0;  // Σ |D's coefficients|
};

/// F^k / ((1 − z)(1 − z′)) / N, to nearest, goes to `out` at the frequencies below `end`; the others vanish.
///
/// F ↦ F^k through logarithms. With a_i = |F_i| and e_i its error, by the mean value theorem (the derivative along a +
/// t e grows in t) the product is off by at most
///   Σ_i k_i e_i/(a_i + e_i) · Π_j (a_j + e_j)^{k_j} ≤ S e^S Π_j a_j^{k_j},   S = Σ_i k_i e_i/a_i,
/// and 16 k u relative for logarithm, angle (up to π) and k-fold products.
PowerSums divided_powers(const std::vector<Composition::Factor>& factors, double k, std::int64_t end,
                         std::complex<double>* out) {
  constexpr double log_vanishing = TiltedTransform::log_vanishing;
  const auto size = factors.front().transform->size();
  const auto n = static_cast<double>(size);
  PowerSums sums{std::exp(log_vanishing) * n};  // of the coefficients left out
  const Divisor divisor_of(*factors.front().transform);
  std::vector<Term> terms;
  for (const auto& [transform, draws] : factors)
    terms.push_back({transform->coefficients().data(), static_cast<double>(draws), transform->error(), draws});
  for (std::int64_t m = 0; m < end; ++m) {
    const double both = (m == 0 || 2 * m == size) ? 1.0 : 2.0;
    double log_power = 0.0;
    double relative = 0.0;  // S
    for (auto& t : terms) {
      const double magnitude = std::sqrt(std::norm(t.coefficients[m]));
      t.log_power = t.times * std::log(magnitude);
      log_power += t.log_power;
      relative += t.times * t.error / magnitude;
    }
    if (!(log_power > 2.0 * log_vanishing)) {
      double share = 0.0;
      double log_raised = 0.0;
      for (const auto& t : terms) {
        const double raised = std::sqrt(std::norm(t.coefficients[m])) + t.error;
        share += t.times * t.error / raised;
        log_raised += t.times * std::log(raised);
      }
      sums.error += both * share * std::exp(log_raised);
      out[m] = 0.0;
      continue;
    }
    const auto power = power_at(terms, m);
    const double magnitude = std::sqrt(std::norm(power));
    sums.square += both * magnitude * magnitude;
    sums.error += both * magnitude * (relative * std::exp(relative) + (16.0 * k + 16.0) * roundoff);
    const auto divisor = divisor_of.at(m);
    // Division written out: std::complex guards against overflow that cannot occur here.
    const double scale = 1.0 / (std::norm(divisor) * n);
    out[m] = {(power.real() * divisor.real() + power.imag() * divisor.imag()) * scale,
              (power.imag() * divisor.real() - power.real() * divisor.imag()) * scale};
    sums.twice += both * magnitude * std::sqrt(std::norm(divisor)) * scale;
  }
  return sums;
}

}  // namespace

Composition::Composition(const std::vector<Factor>& factors, std::int64_t first)
    : rounding_(factors.front().transform->distribution().rounding),
      step_(factors.front().transform->distribution().step),
      theta_(factors.front().transform->theta()),
      size_(factors.front().transform->size()),
      first_(first) {
  const auto n = static_cast<double>(size_);
  const auto draws = draws_of(factors);
  const auto end = count_of_coefficients(factors);
  const bool direct = end <= std::min(most_direct, size_ / 4);
  if (direct) {
    low_.resize(static_cast<std::size_t>(end));
  } else {
    all_.assign(static_cast<std::size_t>(size_) + 2, 0.0);
  }
  auto* out = direct ? low_.data() : reinterpret_cast<std::complex<double>*>(all_.data());
  const auto powers = divided_powers(factors, draws.count, end, out);
  double sum_rounding = 0.0;  // of D_j, relative to Σ |coefficients|
  if (direct) {
    // 64 turns of an angle of up to π (8 units) with 3 roundings each, and the sum.
    sum_rounding = roundoff * (static_cast<double>(end) + 64.0 * 11.0 + 60.0);
  } else {
    fourier::backward(all_.data(), size_);
    sum_rounding = roundoff * (8.0 * std::log2(n) + 60.0);
  }
  twice_error_ = sum_rounding * powers.twice;

  // Window: the missing mass and its alias, at weights of at most c. Coefficients: an error of Σ|ΔF^k|/N on every t_j,
  // and Σ_j w(u_j) ≤ max w + ∫w/h, as w rises once and falls.
  const double c = std::exp(log_c(theta_));
  const double absolute = powers.error / n * (c + 1.0 / (step_ * theta_ * (1.0 + theta_)));
  // The same by Cauchy and Schwarz, better where no frequency vanishes: the fast transform's error in ℓ₂ is relative to
  // ‖F‖₂ = √N ‖p^θ‖₂ (Higham 2002, Thm. 24.2), a k-th power multiplies it by at most k, and Σ_j w(u_j)² is at most
  // max w² + ∫w²/h, ∫w² = 1 / (2θ(2θ+1)(θ+1)).
  const double square = std::sqrt(c * c + 1.0 / (step_ * 2.0 * theta_ * (2.0 * theta_ + 1.0) * (theta_ + 1.0)));
  const double euclidean =
      square * (draws.euclidean_error + (16.0 * draws.count + 16.0) * roundoff * std::sqrt(powers.square / n) +
                std::exp(TiltedTransform::log_vanishing));
  sum_error_ = c * 4.0 * std::exp(log_outside) + std::min(absolute, euclidean * std::exp(draws.error));
  add_losses(factors);
}

void Composition::add_losses(const std::vector<Factor>& factors) {
  // Relative errors of single masses multiply δ by at most (1 + η)^k, since δ is linear with non-negative coefficients
  // in the product of masses; tilting adds the rounding of its exponent.
  double relative_errors = 0.0;
  for (const auto& [transform, draws] : factors) {
    const auto& d = transform->distribution();
    const auto times = static_cast<double>(draws);
    const double log_mass = transform->at_theta().value;
    log_scale_ += times * log_mass;
    // For masses at losses below 0, tilting loses u θ|L| e^{−θ|L|} ≤ u of their weight at most.
    relative_errors +=
        times * (d.relative_error + roundoff * (12.0 + 4.0 * (theta_ * d.largest_plus() + std::abs(log_mass))));
    infinite_mass_ += times * d.infinite_mass;  // ≥ 1 − (1 − p_∞)^k
    loss_error_ += times * (d.loss_error + roundoff * std::abs(d.offset));
    offset_ += times * d.offset;
  }
  relative_error_ = std::expm1(relative_errors) + 1e-12;
}

double Composition::twice_summed(std::int64_t j) const {
  const std::int64_t place = ((j % size_) + size_) % size_;
  if (!all_.empty()) return all_[static_cast<std::size_t>(place)];
  // Re Σ (1 or 2) low_m e^{2πi m place/N}; the factor advances by multiplication and is set anew every 64 terms.
  const double angle = 2.0 * std::numbers::pi / static_cast<double>(size_);
  const auto at = [&](std::int64_t m) {
    return std::polar(1.0, angle * static_cast<double>(centred(m * place, size_)));
  };
  const auto turn = at(1);
  double sum = 0.0;
  const auto count = static_cast<std::int64_t>(low_.size());
  for (std::int64_t begin = 0; begin < count; begin += 64) {
    double re = 0.0;
    auto factor = at(begin);
    double fr = factor.real();
    double fi = factor.imag();
    for (std::int64_t m = begin; m < std::min(count, begin + 64); ++m) {
      const auto& v = low_[static_cast<std::size_t>(m)];
      const double term = v.real() * fr - v.imag() * fi;
      re += m == 0 ? term : 2.0 * term;
      const double next = fr * turn.real() - fi * turn.imag();
      fi = fr * turn.imag() + fi * turn.real();
      fr = next;
    }
    sum += re;
  }
  return sum;
}

Composition::Part Composition::suffix(std::int64_t j, double u) const {
  const double front = std::exp(-theta_ * u);
  const double a = -std::expm1(-u);
  const double b = std::exp(-(theta_ + 1.0) * step_) * std::expm1(step_ - u);  // e^{−θh} (e^{−u} − e^{−h})
  const double one = a * twice_summed(j);
  const double two = b * twice_summed(j + 1);
  return {front * (one + two),
          front * ((std::abs(a) + std::abs(b)) * twice_error_ + 16.0 * roundoff * (std::abs(one) + std::abs(two)))};
}

Composition::Part Composition::sum_beyond(double epsilon) const {
  const std::int64_t end = first_ + size_;
  const double place = std::floor(epsilon / step_) + 1.0;
  if (place >= static_cast<double>(end)) return {0.0, 0.0};
  const std::int64_t j = std::max(first_, static_cast<std::int64_t>(place));
  const auto from = suffix(j, static_cast<double>(j) * step_ - epsilon);
  const auto past = suffix(end, static_cast<double>(end) * step_ - epsilon);
  return {from.value - past.value, from.error + past.error};
}

double Composition::charge(double epsilon) const {
  const double error = sum_error_ + sum_beyond(epsilon).error;
  return std::exp(std::min(log_scale_ - theta_ * epsilon + std::log(error), 1.0));
}

double Composition::delta(double epsilon) const {
  const bool up = rounding_ == Rounding::pessimistic;
  // Positions on the grid are rounded by a unit of ε or a cell.
  const double shift = loss_error_ + 8.0 * roundoff * (epsilon + step_ + std::abs(offset_));
  const double at = std::max(0.0, up ? epsilon - shift : epsilon + shift - offset_);
  const auto sum = sum_beyond(at);
  const double log_front = log_scale_ - theta_ * at;
  const double error = sum_error_ + sum.error;
  if (up) {
    const double inner = std::max(sum.value, 0.0) + error;
    // δ̂ falls by at most its argument's rise: below the shift its value at 0 is raised by what is missing.
    const double missing = std::max(0.0, shift - epsilon);
    const double value = std::exp(std::min(log_front + std::log(inner), 1.0)) * (1.0 + relative_error_) +
                         infinite_mass_ + missing * (1.0 + relative_error_);
    return std::min(1.0, std::isnan(value) ? 1.0 : value * (1.0 + 1e-13));
  }
  const double inner = sum.value - error;
  if (!(inner > 0.0)) return 0.0;
  const double value = std::exp(log_front + std::log(inner)) * std::max(0.0, 1.0 - relative_error_);
  return std::clamp(value * (1.0 - 1e-13), 0.0, 1.0);
}

Composer::Transforms Composer::transforms(const Window& window, std::uint64_t uses) const {
  // Room for some more uses and some less.
  const auto size = fourier::good_size(window.cells + window.cells / 16);
  const auto least_uses = uses - uses / 8;
  // Parts with the least left at high frequencies come first: the others need no more frequencies than they do.
  std::vector<std::size_t> order(loss_.parts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto spread = [&](std::size_t i) {
    const auto& part = loss_.parts[i];
    return static_cast<double>(part.count) * cumulants(part.distribution, window.theta).variance;
  };
  if (order.size() > 1)
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return spread(a) > spread(b); });
  Transforms out(loss_.parts.size());
  auto wanted = std::numeric_limits<std::int64_t>::max();
  for (const auto i : order) {
    const auto& part = loss_.parts[i];
    out[i] = std::make_unique<TiltedTransform>(part.distribution, window.theta, size, least_uses * part.count, wanted);
    wanted = std::min(wanted, static_cast<std::int64_t>(out[i]->coefficients().size()));
  }
  return out;
}

Composition Composer::composed(const Transforms& transforms, std::uint64_t uses, std::int64_t first) const {
  std::vector<Composition::Factor> factors;
  for (std::size_t i = 0; i < transforms.size(); ++i)
    factors.push_back({transforms[i].get(), uses * loss_.parts[i].count});
  return {factors, first};
}

Composition Composer::compose(std::uint64_t uses, double theta) {
  if (!kept_.empty()) {
    const auto& kept = *kept_.front();
    if (uses * loss_.parts.front().count >= kept.least_uses() && std::abs(kept.theta() - theta) <= 0.2 * theta) {
      try {
        const auto window = window_of(loss_, uses, kept.theta(), static_cast<double>(kept.size()));
        if (window.theta == kept.theta() && window.cells > kept.size() / 8) return composed(kept_, uses, window.first);
      } catch (const OutOfReach&) {
        // Does not fit: it gets its own transforms.
      }
    }
  }
  auto window = window_of(loss_, uses, theta, static_cast<double>(most_cells_));
  kept_.clear();
  Transforms made;
  try {
    made = transforms(window, uses);
  } catch (const OutOfReach&) {
    window =
        window_of(loss_, uses, theta, 0.9 * static_cast<double>(std::min(most_cells_, TiltedTransform::max_transform)));
    made = transforms(window, uses);
  }
  auto out = composed(made, uses, window.first);
  std::size_t coefficients = 0;
  for (const auto& transform : made) coefficients += transform->coefficients().size();
  if (coefficients <= max_kept) kept_ = std::move(made);
  return out;
}

}  // namespace tsdp::privacy
