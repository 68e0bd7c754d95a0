#include "means.h"

#include <cmath>
#include <utility>

#include "privacy/terms/numbers.h"
#include "privacy/terms/out_of_reach.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::privacy {

Means::Means(std::int64_t b, std::int64_t n, std::vector<double> all) : bins(b), steps(n), values(std::move(all)) {
  if (b < 1 || n < 1 || static_cast<double>(values.size()) != static_cast<double>(b) * static_cast<double>(n))
    throw UsageError("means of bins: expected a number for every bin and step");
  for (const double m : values)
    if (!(m >= 0.0) || !std::isfinite(m))
      throw UsageError(cat("means of bins: found ", m, "; expected finite numbers of at least 0"));
}

Means::Means(const Strategy& strategy, std::int64_t b, std::int64_t epochs) : bins(b) {
  if (b < 1 || epochs < 1 || b > strategy.steps() || epochs > strategy.steps() / b)
    throw UsageError(
        cat("correlated noise: found ", epochs, " epochs of ", b, " steps; ", strategy.steps(), " steps were planned"));
  if (!strategy.non_negative())
    throw PrivacyError(
        "correlated noise: the strategy matrix may have negative entries, for which balls in bins are not accounted "
        "for");
  steps = b * epochs;
  if (static_cast<double>(b) * static_cast<double>(steps) > most_values)
    throw OutOfReach(cat("correlated noise: found ", b, " batches and ", steps, " steps; at most ", most_values,
                         " for their product can be composed"));
  const auto& column = strategy.column_upper();
  // m_i(n) is a function of n − i.
  std::vector<double> lag(static_cast<std::size_t>(steps), 0.0);
  for (std::int64_t d = 0; d < steps; ++d) {
    double sum = 0.0;
    int terms = 0;
    for (std::int64_t at = d; at >= 0 && d - at < epochs * b; at -= b) {
      const double c = column[static_cast<std::size_t>(at)];
      sum = terms > 0 && c > 0.0 ? up(sum + c) : sum + c;
      terms += c > 0.0 ? 1 : 0;
    }
    lag[static_cast<std::size_t>(d)] = sum;
  }
  values.resize(static_cast<std::size_t>(b * steps));
  for (std::int64_t n = 0; n < steps; ++n)
    for (std::int64_t i = 0; i < b; ++i)
      values[static_cast<std::size_t>(n * b + i)] = n >= i ? lag[static_cast<std::size_t>(n - i)] : 0.0;
}

std::optional<Means> one_epoch(const Gram& gram, double excess) {
  const auto b = gram.bins();
  const auto size = static_cast<std::size_t>(b);
  // Two factors of b³/6 products each.
  if (std::pow(static_cast<double>(b), 3.0) / 3.0 > Means::most_work) return std::nullopt;
  // A sum of n products of non-negative numbers is at least this share of its computed value.
  const double down = 1.0 - 2.0 * (static_cast<double>(b) + 8.0) * roundoff;
  const double rise = 1.0 + 8.0 * roundoff;
  const double allowed = excess * gram.largest_diagonal();
  for (const bool reversed : {false, true}) {
    const auto place = [&](std::int64_t i) { return reversed ? b - 1 - i : i; };
    std::vector<double> l(size * size, 0.0);
    bool fits = true;
    for (std::int64_t i = 0; i < b && fits; ++i)
      for (std::int64_t j = 0; j <= i && fits; ++j) {
        const double* row_i = l.data() + static_cast<std::size_t>(i) * size;
        const double* row_j = l.data() + static_cast<std::size_t>(j) * size;
        double sum = 0.0;
        for (std::int64_t k = 0; k < j; ++k) sum += row_i[k] * row_j[k];
        const double left = gram.at(place(i), place(j)) - sum * down;
        double& entry = l[static_cast<std::size_t>(i) * size + static_cast<std::size_t>(j)];
        if (!(left >= -allowed)) fits = false;
        if (i == j) {
          // Rows below would be divided by a remainder that is next to nothing.
          if (!(left > 1e-12 * gram.largest_diagonal())) fits = false;
          else entry = std::sqrt(left * rise) * rise;
        } else {
          entry = left > 0.0 ? left * rise / row_j[j] * rise : 0.0;
        }
      }
    if (!fits) continue;
    // Row i ends at place i of the order. Time runs so that bins join one after the other, as they do in training.
    std::vector<double> values(size * size, 0.0);
    for (std::int64_t i = 0; i < b; ++i)
      for (std::int64_t n = 0; n <= i; ++n) {
        const auto step = b - 1 - n;
        values[static_cast<std::size_t>(step * b + place(i))] =
            l[static_cast<std::size_t>(i) * size + static_cast<std::size_t>(n)];
      }
    return Means(b, b, std::move(values));
  }
  return std::nullopt;
}

}  // namespace tsdp::privacy
