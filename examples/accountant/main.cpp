// How private is a training run whose batches are drawn by structured subsampling?
//
// A step draws `batch` of the series without replacement and one window of each (Theorem 4.4 of Schuchardt et al., 2025);
// neighbours differ in one value of one series. Units: the clipping norm is 1, so `sigma` is the noise multiplier.
#include <cstdint>
#include <exception>
#include <iostream>

#include "tsdp/core/text.h"
#include "tsdp/privacy/accountant.h"
#include "tsdp/privacy/structured_pairs.h"

int main() {
  constexpr double series = 862, length = 13916, context = 96, forecast = 24, batch = 256;
  constexpr double sigma = 4.0, delta = 1e-7, target = 1.0;
  constexpr std::uint64_t steps = 10'000;

  // Of the series' windows, so many read the value; and the series itself must be drawn.
  constexpr double window_share = (context + forecast) / (length - forecast + 1);
  constexpr double drawn = batch / series;

  try {
    tsdp::privacy::Accountant accountant(tsdp::privacy::one_window_pair(drawn * window_share, sigma));

    // A certified bracket: what is released must quote the upper end. It is printed rounded outwards.
    const auto epsilon = accountant.epsilon(delta, steps, /*precision=*/1e-4);
    std::cout << "after " << steps << " steps: epsilon in [" << tsdp::rounded_down(epsilon.lower, 5) << ", "
              << tsdp::rounded_up(epsilon.upper, 5) << "] at delta " << delta << "\n";

    std::cout << "within epsilon " << target << ": " << accountant.max_uses(target, delta) << " steps\n";
  } catch (const std::exception& error) {  // tsdp::PrivacyError: parameters outside of what the theorem covers
    std::cerr << "accountant: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
