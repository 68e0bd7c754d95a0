// The forecasts of a mixture and of its candidates by their definitions, one series at a time and in plain loops.
#pragma once

#include <torch/script.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "tsdp/settings/mixture.h"

namespace tsdp::exporting::test {

inline constexpr float missing = std::numeric_limits<float>::quiet_NaN();
inline const std::vector<double> deciles = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9};

struct Input {
  at::Tensor target, observed;
};
[[nodiscard]] Input input_of(const std::vector<std::vector<float>>& series);

struct Output {
  at::Tensor quantiles, mean, samples;
};
/// What the exported model `module` forecasts.
[[nodiscard]] Output run(torch::jit::Module& module, const Input& input, const at::Tensor& draws,
                         std::vector<double> levels = deciles, const at::IValue& features = {});

/// The definition at Mixture.
struct Reference {
  std::vector<double> quantiles, mean, weights;
  double spread = 1.0;
};
/// `features`: (n + H, F) of a past of n values, for a network that is told of covariates. `every`: how many steps one
/// of each of `others` takes; none: 1.
[[nodiscard]] Reference reference(torch::jit::Module& network, torch::jit::Module& start, const Mixture& mixture,
                                  std::int64_t horizon, const std::vector<float>& past,
                                  const std::vector<double>& asked, std::vector<torch::jit::Module> others = {},
                                  const at::Tensor& features = {}, const std::vector<std::int64_t>& every = {});

}  // namespace tsdp::exporting::test
