// Products of a few long rows with many columns.
#pragma once

#include <cstddef>
#include <vector>

namespace tsdp::privacy {

/// Columns side by side, `stride` doubles a row: entry (l, j) at [l stride + j]. `stride` is a multiple of
/// `column_group`; columns beyond `count` are 0.
struct Columns {
  std::size_t count = 0;
  std::size_t stride = 0;
  std::vector<double> entries;
};
inline constexpr std::size_t column_group = 16;

/// `length` × `count` of them, all 0.
[[nodiscard]] Columns columns_of(std::size_t length, std::size_t count);

/// Products of rows with every column: that of row k, at [k length] … of `rows`, with column j goes to [k stride + j]
/// of `out`. Each is a sum of `length` products in some order.
void multiply(const double* rows, std::size_t row_count, std::size_t length, const Columns& columns, double* out);

/// out[i] = a[i] b[i] for all i; all three have the same length.
void multiply_entries(const std::vector<double>& a, const std::vector<double>& b, std::vector<double>& out);

}  // namespace tsdp::privacy
