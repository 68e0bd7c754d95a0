// How private is a training run whose batches are drawn by structured subsampling?
//
// A step draws 256 of 862 series without replacement and one window of each (Theorem 4.4 of Schuchardt et al., 2025);
// neighbours differ in one value of one series. Units: the clipping norm is 1, so `sigma` is the noise multiplier.
#include <cstdint>
#include <exception>
#include <iostream>

#include "tsdp/base/text.h"
#include "tsdp/privacy/theorems/theorems.h"

int main() {
  using namespace tsdp::privacy;
  constexpr double sigma = 4.0, delta = 1e-7, target = 1.0;
  constexpr std::uint64_t steps = 10'000;

  try {
    SubsamplingScheme::Parameters law;
    law.lengths = SeriesLengths::equal(/*count=*/862, /*length=*/13916);
    law.context_length = 96;
    law.forecast_length = 24;
    law.batch_size = 256;
    law.top_level = TopLevel::without_replacement;
    const auto theorem = apply_theorem(SubsamplingScheme(law), {Relation::event, /*w=*/1, /*v=*/{}}, sigma, "4.4");
    const auto curve = theorem.curve();

    // A certified bracket: any release must quote the upper end. It is printed rounded outwards.
    const auto epsilon = curve->epsilon(delta, theorem.uses_of_steps(steps), /*precision=*/1e-4);
    std::cout << "after " << steps << " steps: epsilon in [" << tsdp::rounded_down(epsilon.lower, 5) << ", "
              << tsdp::rounded_up(epsilon.upper, 5) << "] at delta " << delta << "\n";

    std::cout << "within epsilon " << target << ": " << theorem.steps_of_uses(curve->max_uses(target, delta))
              << " steps\n";
  } catch (const std::exception& error) {  // tsdp::PrivacyError: parameters outside what the theorem covers
    std::cerr << "accountant: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
