#include "tsdp/privacy/matrix/strategy_search.h"

#include <nlopt.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <numbers>
#include <utility>
#include <vector>

#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/json.h"
#include "tsdp/base/text.h"

namespace tsdp::privacy {
namespace {

using Numbers = std::vector<double>;

/// The value of an evaluation that is not finite: above the logarithm of every double.
constexpr double beyond = 1e3;

/// Numbers below this add nothing to a sum that starts at 1. Still smaller ones lose digits, which costs processors a
/// hundred times the work.
constexpr double nothing = 1e-290;

/// The two factors of the objective, and their slopes. All slopes here are those of the logarithms.
class Pattern {
 public:
  Pattern(std::int64_t bins, std::int64_t epochs)
      : bins_(static_cast<std::size_t>(bins)), steps_(static_cast<std::size_t>(bins * epochs)) {}

  [[nodiscard]] std::size_t steps() const { return steps_; }

  /// log of Σ_s (N − s)/N B_s², B_s = Σ_{t ≤ s} q_t.
  double log_error(const Numbers& prefix, Numbers& slope) const {
    const auto n = static_cast<double>(steps_);
    double sum = 0.0;
    slope.resize(steps_);
    for (std::size_t s = 0; s < steps_; ++s) {
      const double weighted = (1.0 - static_cast<double>(s) / n) * prefix[s];
      sum += weighted * prefix[s];
      slope[s] = 2.0 * weighted;
    }
    for (auto& g : slope) g /= sum;
    return std::log(sum);
  }

  /// log of Σ_n s_n²: s_n = c_n + s_{n − b}, as k b = N.
  double log_sensitivity(const Numbers& column, Numbers& slope) const {
    double sum = 0.0;
    slope = column;
    for (std::size_t n = 0; n < steps_; ++n) {
      if (n >= bins_) slope[n] += slope[n - bins_];
      sum += slope[n] * slope[n];
    }
    for (auto& g : slope) g *= 2.0 / sum;
    for (std::size_t n = steps_; n-- > bins_;) slope[n - bins_] += slope[n];
    return std::log(sum);
  }

 private:
  std::size_t bins_;
  std::size_t steps_;
};

/// y ← A⁻¹y for the lower-triangular Toeplitz A with first column a, a_0 = 1. The inner loop runs over places of y, not
/// over a sum, so that the compiler may take several at once.
void solve(const Numbers& a, Numbers& y) {
  for (std::size_t t = 0; t < y.size(); ++t) {
    const double value = y[t];
    if (std::abs(value) < nothing) continue;
    const auto last = std::min(a.size(), y.size() - t);
    for (std::size_t j = 1; j < last; ++j) y[t + j] -= a[j] * value;
  }
}

/// y ← A⁻ᵀy.
void solve_transposed(const Numbers& a, Numbers& y) {
  for (std::size_t t = y.size(); t-- > 0;) {
    const double value = y[t];
    if (std::abs(value) < nothing) continue;
    const auto last = std::min(a.size(), t + 1);
    for (std::size_t j = 1; j < last; ++j) y[t - j] -= a[j] * value;
  }
}

/// The slope in a_1, a_2, … of a function of y = A⁻¹z, whose slope in y is g: −Σ_t (A⁻ᵀg)_t y_{t − j}. Destroys g.
void add_slope_of_inverse(const Numbers& a, const Numbers& y, Numbers& g, double* slope) {
  solve_transposed(a, g);
  for (std::size_t t = 1; t < y.size(); ++t) {
    const auto last = std::min(a.size(), t + 1);
    for (std::size_t j = 1; j < last; ++j) slope[j - 1] -= g[t] * y[t - j];
  }
}

/// The objective's logarithm and its slope, in terms of c_1 … c_{p−1}.
class Bands {
 public:
  Bands(Pattern pattern, std::size_t bands) : pattern_(pattern), a_(bands, 1.0) {}

  double operator()(const double* x, double* slope) {
    std::copy_n(x, a_.size() - 1, a_.begin() + 1);
    prefix_.assign(pattern_.steps(), 1.0);
    solve(a_, prefix_);
    double value = pattern_.log_error(prefix_, g_);
    std::fill_n(slope, a_.size() - 1, 0.0);
    add_slope_of_inverse(a_, prefix_, g_, slope);
    column_ = a_;
    column_.resize(pattern_.steps(), 0.0);
    value += pattern_.log_sensitivity(column_, g_);
    for (std::size_t j = 1; j < a_.size(); ++j) slope[j - 1] += g_[j];
    return value;
  }

 private:
  Pattern pattern_;
  Numbers a_, prefix_, column_, g_;
};

/// The same in terms of q_1 … q_{p−1}.
class InverseBands {
 public:
  InverseBands(Pattern pattern, std::size_t bands) : pattern_(pattern), a_(bands, 1.0) {}

  double operator()(const double* x, double* slope) {
    std::copy_n(x, a_.size() - 1, a_.begin() + 1);
    column_.assign(pattern_.steps(), 0.0);
    column_[0] = 1.0;
    solve(a_, column_);
    double value = pattern_.log_sensitivity(column_, g_);
    std::fill_n(slope, a_.size() - 1, 0.0);
    add_slope_of_inverse(a_, column_, g_, slope);
    prefix_.resize(pattern_.steps());
    double sum = 0.0;
    for (std::size_t t = 0; t < prefix_.size(); ++t) prefix_[t] = sum += t < a_.size() ? a_[t] : 0.0;
    value += pattern_.log_error(prefix_, g_);
    sum = 0.0;
    for (std::size_t t = pattern_.steps(); t-- > 1;) {
      sum += g_[t];
      if (t < a_.size()) slope[t - 1] += sum;
    }
    return value;
  }

 private:
  Pattern pattern_;
  Numbers a_, prefix_, column_, g_;
};

/// The same in terms of numbers u_1 … u_d, v_1 … v_d whose only constraints are bounds that keep the decays apart from
/// 0, 1 and each other:
///   θ_j = exp(−e^{u_1} − … − e^{u_j}),   ω_j/θ_j = e^{v_j} / (1 + Σ_i e^{v_i}).
class Buffers {
 public:
  Buffers(Pattern pattern, std::size_t buffers)
      : pattern_(pattern), size_(buffers), r_(empty(buffers)), share_(buffers) {}

  static NoiseRecursion empty(std::size_t buffers) {
    return {NoiseRecursion::Form::buffered, {}, Numbers(buffers), Numbers(buffers)};
  }

  const NoiseRecursion& recursion(const double* x) {
    double rate = 0.0, all = 1.0;
    for (std::size_t j = 0; j < size_; ++j) all += std::exp(x[size_ + j]);
    for (std::size_t j = 0; j < size_; ++j) {
      rate += std::exp(x[j]);
      share_[j] = std::exp(x[size_ + j]) / all;
      r_.decays[j] = std::exp(-rate);
      r_.weights[j] = share_[j] * r_.decays[j];
    }
    return r_;
  }

  double operator()(const double* x, double* slope) {
    recursion(x);
    const auto& theta = r_.decays;
    const auto& omega = r_.weights;
    const auto n = pattern_.steps();
    of_theta_.assign(size_, 0.0);
    of_omega_.assign(size_, 0.0);

    column_.assign(n, 0.0);
    column_[0] = 1.0;
    for (std::size_t j = 0; j < size_; ++j) {
      double power = omega[j];
      for (std::size_t t = 1; t < n && power > nothing; ++t, power *= theta[j]) column_[t] += power;
    }
    double value = pattern_.log_sensitivity(column_, g_);
    for (std::size_t j = 0; j < size_; ++j) {
      // θ^{t−1} and its slope.
      double power = 1.0, change = 0.0;
      for (std::size_t t = 1; t < n && power > nothing; ++t) {
        of_omega_[j] += g_[t] * power;
        of_theta_[j] += g_[t] * omega[j] * change;
        change = theta[j] * change + power;
        power *= theta[j];
      }
    }

    // B = C⁻¹1 by the recursion, then λ = C⁻ᵀg by the same one backwards.
    Numbers& prefix = column_;
    state_.assign(size_, 0.0);
    for (std::size_t t = 0; t < n; ++t) {
      double now = 1.0;
      for (std::size_t j = 0; j < size_; ++j) now -= omega[j] * state_[j];
      for (std::size_t j = 0; j < size_; ++j) state_[j] = theta[j] * state_[j] + now;
      prefix[t] = now;
    }
    value += pattern_.log_error(prefix, g_);
    state_.assign(size_, 0.0);
    for (std::size_t t = n; t-- > 0;) {
      for (std::size_t j = 0; j < size_; ++j) g_[t] -= omega[j] * state_[j];
      for (std::size_t j = 0; j < size_; ++j) state_[j] = theta[j] * state_[j] + g_[t];
    }
    for (std::size_t j = 0; j < size_; ++j) {
      // The buffer before step t, and its slope in θ_j for given B.
      double buffer = 0.0, change = 0.0;
      for (std::size_t t = 0; t < n; ++t) {
        of_omega_[j] -= g_[t] * buffer;
        of_theta_[j] -= g_[t] * omega[j] * change;
        change = theta[j] * change + buffer;
        buffer = theta[j] * buffer + prefix[t];
      }
    }

    // Through the shares ω/θ and the rates −log θ to u and v.
    double mean = 0.0, rates = 0.0;
    for (std::size_t j = 0; j < size_; ++j) mean += share_[j] * theta[j] * of_omega_[j];
    for (std::size_t j = size_; j-- > 0;) {
      slope[size_ + j] = share_[j] * (theta[j] * of_omega_[j] - mean);
      rates -= theta[j] * (of_theta_[j] + share_[j] * of_omega_[j]);
      slope[j] = std::exp(x[j]) * rates;
    }
    return value;
  }

 private:
  Pattern pattern_;
  std::size_t size_;
  NoiseRecursion r_;
  Numbers share_, of_theta_, of_omega_, column_, state_, g_;
};

/// The best point that was evaluated, whatever the library thinks of it.
template <class Objective>
class Search {
 public:
  /// Evaluates `start`, so that nothing has to be allocated while called from the library's own functions, which know
  /// no exceptions.
  Search(Objective& objective, const Numbers& start) : objective_(objective), slope_(start.size()), best_(start) {
    least_ = objective_(start.data(), slope_.data());
    if (!finite(least_)) least_ = beyond;
  }

  [[nodiscard]] const Numbers& best() const { return best_; }
  [[nodiscard]] double least() const { return least_; }

  /// Runs from the best point until a run gains nothing: a new one forgets curvatures that bounds have made useless.
  /// How they end does not matter: line searches usually fail in the last digits.
  void run(const Numbers& lower, const Numbers& upper) {
    for (int i = 0; i < 4; ++i) {
      const double before = least_;
      run_once(lower, upper);
      if (!(least_ < before - 10.0 * tolerance)) return;
    }
  }

 private:
  /// For the logarithm: between what is asked for (1e-6) and what rounding leaves (1e-15).
  static constexpr double tolerance = 1e-14;

  void run_once(const Numbers& lower, const Numbers& upper) {
    const std::unique_ptr<nlopt_opt_s, decltype(&nlopt_destroy)> opt(
        nlopt_create(NLOPT_LD_LBFGS, static_cast<unsigned>(best_.size())), nlopt_destroy);
    if (opt == nullptr) throw Error(ExitCode::failure, "best coefficients: the optimiser could not be started");
    nlopt_set_min_objective(opt.get(), &Search::evaluate, this);
    nlopt_set_lower_bounds(opt.get(), lower.data());
    nlopt_set_upper_bounds(opt.get(), upper.data());
    nlopt_set_ftol_abs(opt.get(), tolerance);
    nlopt_set_maxeval(opt.get(), 2000);
    Numbers x = best_;
    double value = 0.0;
    nlopt_optimize(opt.get(), x.data(), &value);
  }

  [[nodiscard]] bool finite(double value) const {
    return std::isfinite(value) && std::all_of(slope_.begin(), slope_.end(), [](double g) { return std::isfinite(g); });
  }

  static double evaluate(unsigned size, const double* x, double* gradient, void* data) noexcept {
    auto& self = *static_cast<Search*>(data);
    const double value = self.objective_(x, self.slope_.data());
    const bool usable = self.finite(value);
    if (gradient != nullptr)
      for (unsigned j = 0; j < size; ++j) gradient[j] = usable ? self.slope_[j] : 0.0;
    if (!usable) return beyond;
    if (value < self.least_) {
      self.least_ = value;
      std::copy_n(x, size, self.best_.begin());
    }
    return value;
  }

  Objective& objective_;
  Numbers slope_, best_;
  double least_ = beyond;
};

std::int64_t checked_steps(std::int64_t bins, std::int64_t epochs) {
  if (bins < 1 || epochs < 1 || bins > Strategy::most_steps / epochs)
    throw UsageError(cat("best coefficients: found ", epochs, " epochs of ", bins, " steps; from 1 to ",
                         Strategy::most_steps, " steps in all are accepted"));
  return bins * epochs;
}

/// For the two forms with bands: coefficients from 1 on between `lower` and `upper`.
template <class Objective>
NoiseRecursion best_coefficients(NoiseRecursion start, std::int64_t bins, std::int64_t epochs, double lower,
                                 double upper) {
  auto& a = start.coefficients;
  if (a.size() == 1) return start;
  Objective objective(Pattern(bins, epochs), a.size());
  Search search(objective, Numbers(a.begin() + 1, a.end()));
  search.run(Numbers(a.size() - 1, lower), Numbers(a.size() - 1, upper));
  std::copy(search.best().begin(), search.best().end(), a.begin() + 1);
  return start;
}

void check_bands(std::int64_t bands, std::int64_t bins, std::int64_t epochs) {
  const auto steps = checked_steps(bins, epochs);
  if (bands < 1 || bands > steps)
    throw UsageError(cat("bands: found ", bands, "; from 1 to ", steps, ", the steps, are accepted"));
}

/// The square root with d buffers: r_t = (1/π) ∫ θ^{t−1/2} (1 − θ)^{−1/2} dθ = (1/π) ∫ θ^{t−1} θ √(θ(1 − θ)) dy for θ =
/// 1/(1 + e^{−y}), by the midpoints of d intervals from −4 to a little beyond log N. Slower decays cannot be told from
/// 1 within N steps.
Numbers square_root_buffers(std::size_t size, std::int64_t steps) {
  constexpr double lowest = -4.0;
  constexpr double most_share = 0.95;
  const double highest = std::log(static_cast<double>(steps)) + 0.5;
  const double width = (highest - lowest) / static_cast<double>(size);
  Numbers x(2 * size);
  double rate = 0.0, sum = 0.0;
  for (std::size_t j = 0; j < size; ++j) {
    const double y = highest - (static_cast<double>(j) + 0.5) * width;
    const double next = std::log1p(std::exp(-y));
    x[j] = std::log(next - rate);
    rate = next;
    x[size + j] = width / std::numbers::pi * std::exp(-0.5 * rate) / std::sqrt(1.0 + std::exp(y));
    sum += x[size + j];
  }
  // The integral of the shares ω/θ is 1.
  const double shares = std::min(sum, most_share);
  for (std::size_t j = 0; j < size; ++j) x[size + j] = std::log(x[size + j] / sum * shares / (1.0 - shares));
  return x;
}

/// The best with fewer buffers plus one more, of little weight, that forgets quickly.
Numbers one_more(const Numbers& x) {
  const auto size = static_cast<std::ptrdiff_t>(x.size() / 2);
  Numbers out(x.begin(), x.begin() + size);
  out.push_back(std::log(2.0));
  out.insert(out.end(), x.begin() + size, x.end());
  out.push_back(std::log(0.01));
  return out;
}

}  // namespace

NoiseRecursion best_bands(std::int64_t bands, std::int64_t bins, std::int64_t epochs) {
  check_bands(bands, bins, epochs);
  return best_coefficients<Bands>(square_root_bands(bands), bins, epochs, 0.0, std::numeric_limits<double>::infinity());
}

NoiseRecursion best_inverse_bands(std::int64_t bands, std::int64_t bins, std::int64_t epochs) {
  check_bands(bands, bins, epochs);
  return best_coefficients<InverseBands>(inverse_square_root_bands(bands), bins, epochs,
                                         -std::numeric_limits<double>::infinity(), 0.0);
}

NoiseRecursion best_buffers(std::int64_t buffers, std::int64_t bins, std::int64_t epochs) {
  const auto steps = checked_steps(bins, epochs);
  if (buffers < 1 || buffers > most_buffers)
    throw UsageError(cat("buffers: found ", buffers, "; from 1 to ", most_buffers, " are accepted"));
  const auto n = static_cast<double>(steps);
  Numbers best;
  // There are several minima where a buffer that forgets at once is worth having, so the search runs from two starts,
  // one of them the best so far.
  for (std::size_t size = 1;; ++size) {
    Numbers lower(2 * size, -25.0), upper(2 * size, 25.0);
    std::fill_n(lower.begin(), size, std::log(std::max(1e-3 / n, 1e-9)));
    std::fill_n(upper.begin(), size, std::log(5.0));
    lower[0] = std::log(std::max(1e-9 / n, 1e-15));
    Buffers objective(Pattern(bins, epochs), size);
    const auto search_from = [&](Numbers start) {
      for (std::size_t i = 0; i < start.size(); ++i) start[i] = std::clamp(start[i], lower[i], upper[i]);
      Search search(objective, start);
      search.run(lower, upper);
      return std::pair(search.least(), search.best());
    };
    auto found = search_from(square_root_buffers(size, steps));
    if (size > 1) found = std::min(found, search_from(one_more(best)));
    best = std::move(found.second);
    if (size == static_cast<std::size_t>(buffers)) return objective.recursion(best.data());
  }
}

NoiseRecursion read_coefficients(const std::filesystem::path& file) {
  constexpr auto expected =
      "a JSON list of finite numbers, the first column of C, as [1, 0.5, 0.25], or {\"inverse\": [1, -0.5]}, that of "
      "its inverse";
  auto json = parse_json(read_file(file), file.string(), expected);
  NoiseRecursion recursion;
  if (json.is_object() && json.size() == 1 && json.contains("inverse")) {
    recursion.form = NoiseRecursion::Form::banded_inverse;
    json = nlohmann::ordered_json(json["inverse"]);
  }
  if (!json.is_array() || json.empty() ||
      !std::all_of(json.begin(), json.end(), [](const auto& x) { return x.is_number(); }))
    throw DataError(cat(file.string(), ": no list of numbers; expected ", expected));
  recursion.coefficients = json.get<std::vector<double>>();
  try {
    static_cast<void>(Strategy(StrategyKind::file, recursion, 1));
  } catch (const UsageError& error) { throw DataError(cat(file.string(), ": ", error.what())); }
  return recursion;
}

std::string coefficients_text(const NoiseRecursion& recursion) {
  nlohmann::ordered_json json = recursion.coefficients;
  if (recursion.form == NoiseRecursion::Form::banded_inverse) json = {{"inverse", recursion.coefficients}};
  return json_text(json, 2) + "\n";
}

Strategy planned_strategy(const WantedStrategy& wanted, std::int64_t bins, std::int64_t epochs) {
  if (bins < 1 || epochs < 1 || epochs > Strategy::most_steps / bins)
    throw UsageError(cat("correlated noise: found ", epochs, " epochs of ", bins, " steps; at most ",
                         Strategy::most_steps, " steps can be planned"));
  const auto steps = bins * epochs;
  if (wanted.bands < 1) throw UsageError(cat("bands: found ", wanted.bands, "; expected an integer of at least 1"));
  const auto bands = std::min(wanted.bands, steps);
  switch (wanted.kind) {
    case StrategyKind::identity: return {wanted.kind, {}, steps};
    case StrategyKind::bsr: return {wanted.kind, square_root_bands(bands), steps};
    case StrategyKind::bisr: return {wanted.kind, inverse_square_root_bands(bands), steps};
    case StrategyKind::band_mf: return {wanted.kind, best_bands(bands, bins, epochs), steps};
    case StrategyKind::band_inv_mf: return {wanted.kind, best_inverse_bands(bands, bins, epochs), steps};
    case StrategyKind::blt: return {wanted.kind, best_buffers(wanted.buffers, bins, epochs), steps};
    case StrategyKind::file:
      if (!wanted.coefficients) break;
      try {
        return {wanted.kind, *wanted.coefficients, steps};
      } catch (const UsageError& error) { throw DataError(cat(wanted.coefficients_file, ": ", error.what())); }
  }
  throw UsageError("mechanism: found file without coefficients");
}

}  // namespace tsdp::privacy
