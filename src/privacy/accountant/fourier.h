// Real Fourier transforms in place, by FFTW.
#pragma once

#include <cstdint>

namespace tsdp::privacy::fourier {

/// The least 2^a, 3·2^a or 5·2^a that is at least `n` and even.
[[nodiscard]] std::int64_t good_size(std::int64_t n);

/// `size` reals become size/2 + 1 complex numbers in the same place (room for `size` + 2 reals),
/// Σ_j x_j e^{−2πi jm/size}; and back, without a factor. Throws Error if memory runs out.
void forward(double* buffer, std::int64_t size);
void backward(double* buffer, std::int64_t size);

}  // namespace tsdp::privacy::fourier
