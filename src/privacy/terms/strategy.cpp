#include "tsdp/privacy/terms/strategy.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::privacy {
namespace {

constexpr long double unit = std::numeric_limits<long double>::epsilon();

/// First column of the inverse of a lower-triangular Toeplitz matrix whose first column is a, 0 from its end on:
/// y_0 = 1/a_0, y_t = −Σ_{j ≥ 1} a_j y_{t−j} / a_0. `error`: an upper bound on how far each is off.
///
/// Rounding: an entry inherits Σ |a_j/a_0| times the errors of earlier ones, and adds p + 3 units of
/// Σ |a_j y_{t−j} / a_0|.
std::vector<long double> inverse_column(const std::vector<double>& a, std::int64_t n,
                                        std::vector<long double>* error = nullptr) {
  const auto size = static_cast<std::size_t>(n);
  const auto bands = std::min(a.size(), size);
  std::vector<long double> y(size);
  if (error != nullptr) error->assign(size, 0.0L);
  const auto first = static_cast<long double>(a.front());
  const auto units = static_cast<long double>(bands + 3) * unit;
  for (std::size_t t = 0; t < size; ++t) {
    long double sum = t == 0 ? 1.0L : 0.0L;
    long double inherited = 0.0L;
    long double sizes = std::abs(sum);
    for (std::size_t j = 1; j < bands && j <= t; ++j) {
      const auto term = static_cast<long double>(a[j]) * y[t - j];
      sum -= term;
      sizes += std::abs(term);
      if (error != nullptr) inherited += std::abs(static_cast<long double>(a[j])) * (*error)[t - j];
    }
    y[t] = sum / first;
    if (error != nullptr) (*error)[t] = (inherited + units * sizes) / first * (1.0L + 1e-6L);
  }
  return y;
}

/// First column of a buffered matrix, c_0 = 1, c_t = Σ ω_j θ_j^{t−1}: powers are off by t units of themselves.
std::vector<long double> buffered_column(const NoiseRecursion& r, std::int64_t n) {
  std::vector<long double> column(static_cast<std::size_t>(n), 0.0L);
  column[0] = 1.0L;
  for (std::size_t j = 0; j < r.decays.size(); ++j) {
    auto term = static_cast<long double>(r.weights[j]);
    for (std::size_t t = 1; t < column.size(); ++t, term *= static_cast<long double>(r.decays[j])) column[t] += term;
  }
  return column;
}

double up(long double x) { return std::nextafter(static_cast<double>(x), std::numeric_limits<double>::infinity()); }
double down(long double x) { return std::max(0.0, std::nextafter(static_cast<double>(x), -1.0)); }

std::vector<double> rounded(const std::vector<long double>& values) { return {values.begin(), values.end()}; }

/// s = m_0: the first `steps` entries of Σ_{j ≥ 0} c_{n − jb}, that is s_n = c_n + s_{n−b}.
std::vector<double> summed_over_epochs(const std::vector<double>& column, std::int64_t bins, std::int64_t steps) {
  std::vector<double> s(column.begin(), column.begin() + static_cast<std::ptrdiff_t>(steps));
  for (std::int64_t n = bins; n < steps; ++n) s[static_cast<std::size_t>(n)] += s[static_cast<std::size_t>(n - bins)];
  return s;
}

}  // namespace

Strategy::Strategy(StrategyKind kind, NoiseRecursion recursion, std::int64_t steps)
    : kind_(kind), recursion_(std::move(recursion)), steps_(steps) {
  if (steps < 1 || steps > most_steps)
    throw UsageError(cat("correlated noise: found ", steps, " steps; from 1 to ", most_steps, " can be planned"));
  const auto& r = recursion_;
  const bool buffered = r.form == NoiseRecursion::Form::buffered;
  if (buffered ? !r.coefficients.empty() || r.decays.empty() || r.decays.size() != r.weights.size()
               : r.coefficients.empty() || !r.decays.empty() || !r.weights.empty())
    throw UsageError("correlated noise: coefficients of another form");
  for (const double a : r.coefficients)
    if (!std::isfinite(a)) throw UsageError("coefficients: found a number that is not finite");
  if (!buffered && !(r.coefficients.front() > 0.0))
    throw UsageError(
        cat("coefficients: found ", r.coefficients.front(), " as the first one; expected a positive number"));
  const auto rows = static_cast<double>(std::max(r.coefficients.size(), r.decays.size()));
  if (rows * static_cast<double>(steps) > most_work)
    throw UsageError(cat("correlated noise: found ", rows, " coefficients for ", steps, " steps; at most ", most_work,
                         " for their product: take fewer of either"));
  for (std::size_t j = 0; j < r.decays.size(); ++j)
    if (!(r.decays[j] > 0.0) || !(r.decays[j] < 1.0) || !(r.weights[j] > 0.0) || !std::isfinite(r.weights[j]))
      throw UsageError("buffers: a decay lies in (0, 1), and a weight is positive");

  std::vector<long double> error;
  std::vector<long double> column;
  switch (r.form) {
    case NoiseRecursion::Form::banded:
      column.assign(static_cast<std::size_t>(steps), 0.0L);
      std::copy_n(r.coefficients.begin(), std::min(r.coefficients.size(), column.size()), column.begin());
      error.assign(column.size(), 0.0L);
      break;
    case NoiseRecursion::Form::banded_inverse: column = inverse_column(r.coefficients, steps, &error); break;
    case NoiseRecursion::Form::buffered:
      column = buffered_column(r, steps);
      for (const auto c : column) error.push_back(c * unit * static_cast<long double>(steps + 16));
      break;
  }
  for (std::size_t t = 0; t < column.size(); ++t) {
    if (!std::isfinite(column[t]) || !std::isfinite(error[t]))
      throw UsageError("coefficients: the matrix that they give is too large for numbers: take others");
    if (column[t] != 0.0L) bands_ = static_cast<std::int64_t>(t) + 1;
    non_negative_ = non_negative_ && column[t] - error[t] >= 0.0L;
    const auto size = std::abs(column[t]);
    const bool exact = error[t] == 0.0L;
    lower_.push_back(exact ? static_cast<double>(size) : down(size - error[t]));
    upper_.push_back(exact ? static_cast<double>(size) : up(size + error[t]));
  }
  // Of the other kinds C⁻¹ is bounded by how they are made.
  if (kind_ == StrategyKind::file) check_inverse();
}

void Strategy::check_inverse() const {
  const auto q = inverse();
  // False for what is no number.
  const auto is_held = [&](double one) { return std::abs(one) <= most_growth * q.front(); };
  if (std::all_of(q.begin(), q.end(), is_held)) return;
  throw UsageError(cat("coefficients: within ", steps_, " steps their noise grows to more than ", most_growth,
                       " times that of the first step, where rounding would hide what is accounted for; expected a "
                       "matrix whose inverse stays small, such as one whose coefficients fall"));
}

bool Strategy::is_identity() const noexcept {
  return recursion_.form != NoiseRecursion::Form::buffered && recursion_.coefficients.size() == 1 &&
         recursion_.coefficients.front() == 1.0;
}

std::vector<double> Strategy::column() const {
  switch (recursion_.form) {
    case NoiseRecursion::Form::banded: {
      auto out = recursion_.coefficients;
      out.resize(static_cast<std::size_t>(steps_), 0.0);
      return out;
    }
    case NoiseRecursion::Form::banded_inverse: return rounded(inverse_column(recursion_.coefficients, steps_));
    case NoiseRecursion::Form::buffered: return rounded(buffered_column(recursion_, steps_));
  }
  throw Error(ExitCode::failure, "a form of noise that is not known");
}

std::vector<double> Strategy::inverse() const {
  switch (recursion_.form) {
    case NoiseRecursion::Form::banded: return rounded(inverse_column(recursion_.coefficients, steps_));
    case NoiseRecursion::Form::banded_inverse: {
      auto out = recursion_.coefficients;
      out.resize(static_cast<std::size_t>(steps_), 0.0);
      return out;
    }
    case NoiseRecursion::Form::buffered: {
      // The recursion itself, on z = e_0.
      std::vector<long double> buffers(recursion_.decays.size(), 0.0L);
      std::vector<double> out;
      for (std::int64_t t = 0; t < steps_; ++t) {
        long double x = t == 0 ? 1.0L : 0.0L;
        for (std::size_t j = 0; j < buffers.size(); ++j)
          x -= static_cast<long double>(recursion_.weights[j]) * buffers[j];
        for (std::size_t j = 0; j < buffers.size(); ++j)
          buffers[j] = static_cast<long double>(recursion_.decays[j]) * buffers[j] + x;
        out.push_back(static_cast<double>(x));
      }
      return out;
    }
  }
  throw Error(ExitCode::failure, "a form of noise that is not known");
}

double Strategy::mean_error() const {
  // Row t of E C⁻¹ holds the prefix sums B_0 … B_t of q.
  long double prefix = 0.0L, row = 0.0L, all = 0.0L;
  for (const double q : inverse()) {
    prefix += static_cast<long double>(q);
    row += prefix * prefix;
    all += row;
  }
  return static_cast<double>(all / static_cast<long double>(steps_));
}

double Strategy::max_error() const {
  long double prefix = 0.0L, row = 0.0L;
  for (const double q : inverse()) {
    prefix += static_cast<long double>(q);
    row += prefix * prefix;
  }
  return static_cast<double>(row);
}

NoiseRecursion square_root_bands(std::int64_t bands) {
  if (bands < 1) throw UsageError(cat("bands: found ", bands, "; expected an integer of at least 1"));
  NoiseRecursion out;
  for (std::int64_t j = 1; j < bands; ++j)
    out.coefficients.push_back(out.coefficients.back() * (2.0 * static_cast<double>(j) - 1.0) /
                               (2.0 * static_cast<double>(j)));
  return out;
}

NoiseRecursion inverse_square_root_bands(std::int64_t bands) {
  if (bands < 1) throw UsageError(cat("bands: found ", bands, "; expected an integer of at least 1"));
  NoiseRecursion out{NoiseRecursion::Form::banded_inverse};
  for (std::int64_t j = 1; j < bands; ++j)
    out.coefficients.push_back(out.coefficients.back() * (2.0 * static_cast<double>(j) - 3.0) /
                               (2.0 * static_cast<double>(j)));
  return out;
}

namespace {
void check_pattern(const Strategy& strategy, std::int64_t bins, std::int64_t epochs) {
  if (bins < 1 || epochs < 1 || bins > strategy.steps() || epochs > strategy.steps() / bins)
    throw UsageError(cat("correlated noise: found ", epochs, " epochs of ", bins, " steps; ", strategy.steps(),
                         " steps were planned"));
}
/// Sums of n products of numbers of one sign are off by this share of themselves.
double of_sums(std::int64_t n) { return (static_cast<double>(n) + 16.0) * std::numeric_limits<double>::epsilon(); }
}  // namespace

Gram::Gram(const Strategy& strategy, std::int64_t bins, std::int64_t epochs, Side side) : bins_(bins) {
  check_pattern(strategy, bins, epochs);
  const auto b = static_cast<double>(bins);
  if (bins > most_bins || static_cast<double>(epochs) * b * b > most_work)
    throw PrivacyError(cat("correlated noise: found ", bins, " batches and ", epochs, " epochs; at most ", most_bins,
                           " batches and ", most_work,
                           " for epochs × batches² are accounted for: take larger batches or fewer epochs"));
  const auto steps = bins * epochs;
  const auto& column = side == Side::upper ? strategy.column_upper() : strategy.column_lower();
  const auto s = summed_over_epochs(column, bins, steps);
  // Places i < j = i + d: Σ_{l < N − j} s_{l+d} s_l.
  entries_.assign(static_cast<std::size_t>(bins * bins), 0.0);
  const double factor = side == Side::upper ? 1.0 + 2.0 * of_sums(steps + epochs) : 1.0 - 2.0 * of_sums(steps + epochs);
  for (std::int64_t d = 0; d < bins; ++d) {
    double sum = 0.0;
    std::int64_t l = 0;
    for (std::int64_t j = bins - 1; j >= d; --j) {
      for (; l < steps - j; ++l) sum += s[static_cast<std::size_t>(l + d)] * s[static_cast<std::size_t>(l)];
      const auto i = j - d;
      entries_[static_cast<std::size_t>(i * bins + j)] = entries_[static_cast<std::size_t>(j * bins + i)] =
          sum * factor;
    }
  }
  look();
}

Gram::Gram(std::vector<double> entries, std::int64_t bins) : bins_(bins), entries_(std::move(entries)) {
  if (bins < 1 || entries_.size() != static_cast<std::size_t>(bins * bins))
    throw UsageError("a Gram matrix has b × b entries");
  look();
}

void Gram::look() {
  least_diagonal_ = std::numeric_limits<double>::infinity();
  least_beside_ = bins_ > 1 ? std::numeric_limits<double>::infinity() : 0.0;
  for (std::int64_t i = 0; i < bins_; ++i)
    for (std::int64_t j = 0; j < bins_; ++j) {
      auto& largest = i == j ? largest_diagonal_ : largest_beside_;
      auto& least = i == j ? least_diagonal_ : least_beside_;
      largest = std::max(largest, at(i, j));
      least = std::min(least, at(i, j));
    }
}

double Gram::largest_beyond(std::int64_t bands) const {
  double largest = 0.0;
  for (std::int64_t i = 0; i < bins_; ++i)
    for (std::int64_t j = i + bands; j < bins_ && j - i <= bins_ - bands; ++j) largest = std::max(largest, at(i, j));
  return largest;
}

double squared_sensitivity(const Strategy& strategy, std::int64_t bins, std::int64_t epochs, Gram::Side side) {
  check_pattern(strategy, bins, epochs);
  // The first place meets the most steps, and the same sums as the others.
  const auto steps = bins * epochs;
  double sum = 0.0;
  const bool up_to = side == Gram::Side::upper;
  for (const double s : summed_over_epochs(up_to ? strategy.column_upper() : strategy.column_lower(), bins, steps))
    sum += s * s;
  return sum * (up_to ? 1.0 + 2.0 * of_sums(steps + epochs) : 1.0 - 2.0 * of_sums(steps + epochs));
}

double squared_sensitivity_of_own_orders(const Strategy& strategy, std::int64_t bins, std::int64_t epochs) {
  check_pattern(strategy, bins, epochs);
  const auto steps = bins * epochs;
  const auto& column = strategy.column_upper();
  std::vector<double> d(column.begin(), column.begin() + steps);
  double largest = 0.0;
  for (auto t = steps; t-- > 0;) {
    auto& value = d[static_cast<std::size_t>(t)];
    value = largest = std::max(largest, std::abs(value));
  }
  // Σ_x (k − x) ḡ((x − 1)b + 1) = Σ_t d_t w_{t+1} with w_s = Σ_y (k − 1 − y) d_{s+yb}. With q the largest y that there
  // is, k − 1 − y = (k − 1 − q) + (q − y): sums u_s of d_{s+yb} and r_s of (q − y) d_{s+yb}, each from that of s + b.
  double alone = 0.0;
  double together = 0.0;
  std::vector<double> u(static_cast<std::size_t>(steps), 0.0), r(u);
  for (auto s = steps; s-- > 0;) {
    const auto at = static_cast<std::size_t>(s);
    const auto beyond = at + static_cast<std::size_t>(bins);
    const auto q = static_cast<double>((steps - 1 - s) / bins);
    u[at] = d[at] + (beyond < u.size() ? u[beyond] : 0.0);
    r[at] = q * d[at] + (beyond < r.size() ? r[beyond] : 0.0);
    alone += d[at] * d[at];
    if (s > 0) together += d[at - 1] * ((static_cast<double>(epochs - 1) - q) * u[at] + r[at]);
  }
  return (static_cast<double>(epochs) * alone + 2.0 * together) * (1.0 + 2.0 * of_sums(steps + 4 * epochs));
}

}  // namespace tsdp::privacy
