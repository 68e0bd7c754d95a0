#include "row_products.h"

#include "tsdp/base/clones.h"

namespace tsdp::privacy {
namespace {

/// Half of a group of columns: what a register of the widest kind holds.
typedef double Half __attribute__((vector_size(column_group / 2 * sizeof(double)), aligned(sizeof(double)), may_alias));
constexpr std::size_t row_group = 4;

/// Four rows with a group of columns. Written out: sums in an array would go to memory and back for every product.
[[gnu::always_inline]] inline void multiply_group(const double* row, std::size_t length, const double* column, std::size_t stride, double* out) {
  const double* const r1 = row + length;
  const double* const r2 = r1 + length;
  const double* const r3 = r2 + length;
  Half a0 = {}, a1 = {}, b0 = {}, b1 = {}, c0 = {}, c1 = {}, d0 = {}, d1 = {};
  for (std::size_t l = 0; l < length; ++l) {
    const Half* const at = reinterpret_cast<const Half*>(column + l * stride);
    const Half e0 = at[0];
    const Half e1 = at[1];
    a0 += row[l] * e0;
    a1 += row[l] * e1;
    b0 += r1[l] * e0;
    b1 += r1[l] * e1;
    c0 += r2[l] * e0;
    c1 += r2[l] * e1;
    d0 += r3[l] * e0;
    d1 += r3[l] * e1;
  }
  const auto put = [](double* place, const Half& first, const Half& second) {
    reinterpret_cast<Half*>(place)[0] = first;
    reinterpret_cast<Half*>(place)[1] = second;
  };
  put(out, a0, a1);
  put(out + stride, b0, b1);
  put(out + 2 * stride, c0, c1);
  put(out + 3 * stride, d0, d1);
}

[[gnu::always_inline]] inline void multiply_one(const double* row, std::size_t length, const double* column, std::size_t stride, double* out) {
  Half a0 = {}, a1 = {};
  for (std::size_t l = 0; l < length; ++l) {
    const Half* const at = reinterpret_cast<const Half*>(column + l * stride);
    a0 += row[l] * at[0];
    a1 += row[l] * at[1];
  }
  reinterpret_cast<Half*>(out)[0] = a0;
  reinterpret_cast<Half*>(out)[1] = a1;
}

}  // namespace

Columns columns_of(std::size_t length, std::size_t count) {
  const auto stride = (count + column_group - 1) / column_group * column_group;
  return {count, stride, std::vector<double>(length * stride)};
}

TSDP_CLONES void multiply(const double* rows, std::size_t row_count, std::size_t length, const Columns& columns, double* out) {
  for (std::size_t j = 0; j < columns.stride; j += column_group) {
    std::size_t k = 0;
    for (; k + row_group <= row_count; k += row_group)
      multiply_group(rows + k * length, length, columns.entries.data() + j, columns.stride, out + k * columns.stride + j);
    for (; k < row_count; ++k) multiply_one(rows + k * length, length, columns.entries.data() + j, columns.stride, out + k * columns.stride + j);
  }
}

TSDP_CLONES void multiply_entries(const std::vector<double>& a, const std::vector<double>& b, std::vector<double>& out) {
  const double* const first = a.data();
  const double* const second = b.data();
  double* const to = out.data();
  for (std::size_t i = 0; i < out.size(); ++i) to[i] = first[i] * second[i];
}

}  // namespace tsdp::privacy
