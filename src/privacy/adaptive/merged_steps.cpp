#include "merged_steps.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "privacy/accountant/normal_tail.h"

namespace tsdp::privacy {
namespace {

constexpr double unit = std::numeric_limits<double>::epsilon() / 2;
/// Mass beyond the ends, left out and counted.
constexpr double cut = 1e-17;
constexpr std::size_t longest = std::size_t{1} << 15;
constexpr std::size_t longest_composed = std::size_t{1} << 13;  // composing takes its square

/// Outputs whose ratios lie between neighbouring grid points, as masses under P and Q.
struct Cell {
  double p = 0.0;
  double q = 0.0;
};

/// Cell i lies below point first + i, cell i + 1 above it, i < cells.size() − 1. Each cell is shared among the two points at its ends so that the ratio of
/// what comes to a point is the point's: from both ends inwards, where masses rise, so that no error grows. Any shares of [0, 1] are a kernel; what
/// does not balance is counted.
MergedSteps merged(const std::vector<Cell>& cells, std::int64_t first, double step, double mismatch) {
  const auto points = cells.size() - 1;
  std::vector<double> z(points);
  for (std::size_t i = 0; i < points; ++i) z[i] = std::exp(step * static_cast<double>(first + static_cast<std::int64_t>(i)));
  const auto deficit = [&](std::size_t i) { return std::max(0.0, z[i] * cells[i].q - cells[i].p); };               // of cell i at the point above it
  const auto surplus = [&](std::size_t i) { return std::max(0.0, cells[i].p - z[i - 1] * cells[i].q); };           // at the point below
  std::size_t middle = 0;
  for (std::size_t i = 0; i < points; ++i)
    if (cells[i].q > cells[middle].q) middle = i;
  std::vector<double> below(cells.size(), 0.0);  // share of a cell that goes to the point below it
  for (std::size_t i = 1; i <= middle; ++i) {
    const double wanted = (1.0 - below[i - 1]) * deficit(i - 1);
    below[i] = wanted > 0.0 ? std::min(1.0, wanted / surplus(i)) : 0.0;
  }
  below.back() = 1.0;
  for (std::size_t i = points - 1; i > middle; --i) {
    const double wanted = below[i + 1] * surplus(i + 1);
    below[i] = 1.0 - (wanted > 0.0 ? std::min(1.0, wanted / deficit(i)) : 0.0);
  }
  std::vector<Cell> at(points);
  for (std::size_t i = 0; i < points; ++i) {
    at[i].p = (1.0 - below[i]) * cells[i].p + below[i + 1] * cells[i + 1].p;
    at[i].q = (1.0 - below[i]) * cells[i].q + below[i + 1] * cells[i + 1].q;
  }
  // Where both ways meet, and where masses rise and fall, a point does not balance: outputs of its neighbours join it until it does.
  const auto take = [&](std::size_t to, std::size_t from) {
    const double missing = z[to] * at[to].q - at[to].p;
    const double brought = at[from].p - z[to] * at[from].q;  // by all of it
    if (!(brought * missing > 0.0)) return true;
    const double share = std::min(1.0, missing / brought);
    at[to].p += share * at[from].p;
    at[to].q += share * at[from].q;
    at[from].p *= 1.0 - share;
    at[from].q *= 1.0 - share;
    return share == 1.0;
  };
  for (std::size_t i = 0; i < points; ++i) {
    const double missing = z[i] * at[i].q - at[i].p;
    if (std::abs(missing) <= 4.0 * unit * at[i].p) continue;
    if (missing > 0.0)
      for (auto from = i + 1; from < points && take(i, from);) ++from;
    else
      for (auto from = i; from-- > 0 && take(i, from);) {
      }
  }
  MergedSteps out{first, std::vector<double>(points), mismatch};
  for (std::size_t i = 0; i < points; ++i) {
    out.q[i] = at[i].q;
    out.mismatch += std::abs(at[i].p - z[i] * at[i].q);
  }
  // Shares, sums and e^{nh}.
  const double largest = step * static_cast<double>(std::max(std::abs(first), std::abs(first + static_cast<std::int64_t>(points))));
  out.mismatch += (32.0 + 4.0 * largest) * unit;
  return out;
}

/// Leaves out masses below `cut` at both ends.
void trim(MergedSteps& k, double step) {
  std::size_t low = 0;
  std::size_t high = k.q.size();
  const auto mass = [&](std::size_t i) { return k.q[i] * std::max(1.0, std::exp(step * static_cast<double>(k.first + static_cast<std::int64_t>(i)))); };
  double gone = 0.0;
  while (low + 1 < high && gone + mass(low) < cut) gone += mass(low++);
  double gone_above = 0.0;
  while (low + 1 < high && gone_above + mass(high - 1) < cut) gone_above += mass(--high);
  k.q.resize(high);
  k.q.erase(k.q.begin(), k.q.begin() + static_cast<std::ptrdiff_t>(low));
  k.first += static_cast<std::int64_t>(low);
  k.mismatch += (gone + gone_above) * (1.0 + 1e-6);
}

std::optional<MergedSteps> composed(const MergedSteps& a, const MergedSteps& b, double step) {
  const auto size = a.q.size() + b.q.size() - 1;
  if (size > 2 * longest_composed) return std::nullopt;
  const auto& shorter = a.q.size() < b.q.size() ? a.q : b.q;
  const auto& longer = a.q.size() < b.q.size() ? b.q : a.q;
  // In a wider type: what its sums lose, of products of one sign and of mass 1 in all, is far below what a step's masses lose.
  std::vector<long double> sums(size, 0.0L);
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    const long double weight = shorter[i];
    if (weight > 0.0L)
      for (std::size_t j = 0; j < longer.size(); ++j) sums[i + j] += weight * static_cast<long double>(longer[j]);
  }
  constexpr auto wide_unit = static_cast<double>(std::numeric_limits<long double>::epsilon() / 2);
  MergedSteps out{a.first + b.first, {sums.begin(), sums.end()}, 0.0};
  out.mismatch = (a.mismatch + b.mismatch) * (1.0 + 1e-6) + (static_cast<double>(shorter.size()) + 4.0) * wide_unit + 2.0 * unit;
  trim(out, step);
  if (out.q.size() > longest_composed) return std::nullopt;
  return out;
}

}  // namespace

/// One step. The ratio P/Q = 1 − q + q e^{(2x − 2)/σ²} rises with the output x. Cells end where the computed tails of Q are exact; those of N(2, σ²) are then off by
/// their own error and, relative to their density, by that of Q's.
std::optional<MergedSteps> MergedSteps::one(double q, double sigma, double step) {
  const auto place = [&](std::int64_t n) {  // of ratio e^{nh}; −∞ where there is none
    const double excess = std::expm1(step * static_cast<double>(n)) + q;
    return excess > 0.0 ? 0.5 * sigma * (std::log(excess / q) * sigma + 2.0 / sigma) / sigma : -std::numeric_limits<double>::infinity();
  };
  // In units of σ: outputs below −12 are one cell, and beyond 12 of N(2, σ²), too.
  const double lowest = std::log1p(q * std::expm1(-24.0 / sigma - 2.0 / (sigma * sigma))) / step;
  if (!(lowest > -1e15)) return std::nullopt;
  auto first = static_cast<std::int64_t>(std::floor(lowest));
  while (!(place(first) > -12.0)) ++first;
  std::vector<double> ends;
  const double shift = 2.0 / sigma;
  for (auto n = first;; ++n) {
    ends.push_back(place(n));
    if (q * normal_tail(ends.back() - shift) < cut) break;
    if (ends.size() > longest) return std::nullopt;
  }
  if (ends.size() < 3) return std::nullopt;
  // Tails on the side where they are small; masses of cells are differences.
  struct Tails {
    double q, shifted;
    bool upper;
  };
  const auto tails = [&](double x, bool upper) -> Tails { return {normal_tail(upper ? x : -x), normal_tail(upper ? x - shift : shift - x), upper}; };
  double mismatch = 0.0;
  std::vector<Cell> cells(ends.size() + 1);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const bool upper = i > 0 && ends[i - 1] > 0.0;
    const Tails low = i == 0 ? (upper ? Tails{1.0, 1.0, true} : Tails{0.0, 0.0, false}) : tails(ends[i - 1], upper);
    const Tails high = i == ends.size() ? (upper ? Tails{0.0, 0.0, true} : Tails{1.0, 1.0, false}) : tails(ends[i], upper);
    const double sign = upper ? -1.0 : 1.0;
    cells[i].q = std::max(0.0, sign * (high.q - low.q));
    cells[i].p = (1.0 - q) * cells[i].q + q * std::max(0.0, sign * (high.shifted - low.shifted));
  }
  for (const double x : ends) {
    const auto t = tails(x, x > 0.0);
    // Relative errors of tails at z: 8u + 4 z² u. Those of Q move the end of a cell, and with it U times as much of N(2, σ²).
    const double ratio = std::exp(shift * x - 0.5 * shift * shift);
    mismatch += 4.0 * q * unit * ((2.0 + x * x) * t.q * ratio + (2.0 + (x - shift) * (x - shift)) * t.shifted) * 2.0;
  }
  // (Where cells turn from lower to upper tails, these do not add up to 1.)
  return merged(cells, first, step, mismatch + 32.0 * unit);
}

std::optional<MergedSteps> MergedSteps::repeated(std::uint64_t times, double step) const {
  std::optional<MergedSteps> out;
  auto square = *this;
  for (;; times /= 2) {
    if (times % 2 == 1) {
      out = out ? composed(*out, square, step) : square;
      if (!out) return std::nullopt;
    }
    if (times <= 1) return out;
    auto next = composed(square, square, step);
    if (!next) return std::nullopt;
    square = std::move(*next);
  }
}

MergedSteps MergedSteps::coarser(std::int64_t factor, double step) const {
  if (factor == 1) return *this;
  const auto divided = [&](std::int64_t n) { return n >= 0 ? n / factor : -((-n + factor - 1) / factor); };
  const auto from = divided(first);  // the cell from it to the next is the first with mass
  const auto last = divided(first + static_cast<std::int64_t>(q.size()) - 1);
  std::vector<Cell> cells(static_cast<std::size_t>(last - from) + 3);
  for (std::size_t i = 0; i < q.size(); ++i) {
    const auto n = first + static_cast<std::int64_t>(i);
    auto& cell = cells[static_cast<std::size_t>(divided(n) - from) + 1];
    cell.q += q[i];
    cell.p += q[i] * std::exp(step * static_cast<double>(n));
  }
  return merged(cells, from, step * static_cast<double>(factor), mismatch + (static_cast<double>(factor) + 8.0) * unit);
}

}  // namespace tsdp::privacy
