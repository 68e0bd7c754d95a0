#include "row_products.h"

#include "base/clones.h"

namespace tsdp::privacy {
namespace {

/// As many doubles as a processor register holds: 32 bytes (AVX2) or 64 (AVX-512). Longer vectors are kept in memory,
/// which is eight times as slow (AVX2), so each kind of processor has its own version. Every sum is the same in both. A
/// bare type as a template argument would lose its alignment.
template <std::size_t bytes>
struct Doubles {
  typedef double type __attribute__((vector_size(bytes), aligned(sizeof(double)), may_alias));
};
constexpr std::size_t row_group = 4;

/// Four rows with the columns of two vectors. Written out: sums in an array would go to memory and back for every
/// product.
template <std::size_t bytes>
[[gnu::always_inline]] inline void multiply_group(const double* row, std::size_t length, const double* column,
                                                  std::size_t stride, double* out) {
  using Vector = typename Doubles<bytes>::type;
  const double* const r1 = row + length;
  const double* const r2 = r1 + length;
  const double* const r3 = r2 + length;
  Vector a0 = {}, a1 = {}, b0 = {}, b1 = {}, c0 = {}, c1 = {}, d0 = {}, d1 = {};
  for (std::size_t l = 0; l < length; ++l) {
    const Vector* const at = reinterpret_cast<const Vector*>(column + l * stride);
    const Vector e0 = at[0];
    const Vector e1 = at[1];
    a0 += row[l] * e0;
    a1 += row[l] * e1;
    b0 += r1[l] * e0;
    b1 += r1[l] * e1;
    c0 += r2[l] * e0;
    c1 += r2[l] * e1;
    d0 += r3[l] * e0;
    d1 += r3[l] * e1;
  }
  const auto put = [](double* place, const Vector& first, const Vector& second) {
    reinterpret_cast<Vector*>(place)[0] = first;
    reinterpret_cast<Vector*>(place)[1] = second;
  };
  put(out, a0, a1);
  put(out + stride, b0, b1);
  put(out + 2 * stride, c0, c1);
  put(out + 3 * stride, d0, d1);
}

template <std::size_t bytes>
[[gnu::always_inline]] inline void multiply_one(const double* row, std::size_t length, const double* column,
                                                std::size_t stride, double* out) {
  using Vector = typename Doubles<bytes>::type;
  Vector a0 = {}, a1 = {};
  for (std::size_t l = 0; l < length; ++l) {
    const Vector* const at = reinterpret_cast<const Vector*>(column + l * stride);
    a0 += row[l] * at[0];
    a1 += row[l] * at[1];
  }
  reinterpret_cast<Vector*>(out)[0] = a0;
  reinterpret_cast<Vector*>(out)[1] = a1;
}

template <std::size_t bytes>
[[gnu::always_inline]] inline void multiply_all(const double* rows, std::size_t row_count, std::size_t length,
                                                const Columns& columns, double* out) {
  constexpr std::size_t width = 2 * bytes / sizeof(double);
  static_assert(column_group % width == 0);
  for (std::size_t j = 0; j < columns.stride; j += width) {
    std::size_t k = 0;
    for (; k + row_group <= row_count; k += row_group)
      multiply_group<bytes>(rows + k * length, length, columns.entries.data() + j, columns.stride,
                            out + k * columns.stride + j);
    for (; k < row_count; ++k)
      multiply_one<bytes>(rows + k * length, length, columns.entries.data() + j, columns.stride,
                          out + k * columns.stride + j);
  }
}

TSDP_CLONES void multiply_narrow(const double* rows, std::size_t row_count, std::size_t length, const Columns& columns,
                                 double* out) {
  multiply_all<32>(rows, row_count, length, columns, out);
}

#ifdef TSDP_HAS_CLONES
__attribute__((target("arch=x86-64-v4"))) void multiply_wide(const double* rows, std::size_t row_count,
                                                             std::size_t length, const Columns& columns, double* out) {
  multiply_all<64>(rows, row_count, length, columns, out);
}
#endif

}  // namespace

Columns columns_of(std::size_t length, std::size_t count) {
  const auto stride = (count + column_group - 1) / column_group * column_group;
  return {count, stride, std::vector<double>(length * stride)};
}

void multiply(const double* rows, std::size_t row_count, std::size_t length, const Columns& columns, double* out) {
#ifdef TSDP_HAS_CLONES
  static const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
  if (wide) return multiply_wide(rows, row_count, length, columns, out);
#endif
  multiply_narrow(rows, row_count, length, columns, out);
}

TSDP_CLONES void multiply_entries(const std::vector<double>& a, const std::vector<double>& b,
                                  std::vector<double>& out) {
  const double* const first = a.data();
  const double* const second = b.data();
  double* const to = out.data();
  for (std::size_t i = 0; i < out.size(); ++i) to[i] = first[i] * second[i];
}

}  // namespace tsdp::privacy
