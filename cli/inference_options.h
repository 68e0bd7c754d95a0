// The options of inference-time privacy, which several programs share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "evaluation/private_inference.h"

namespace tsdp::cli {

struct InferenceOptions {
  bool privately = false;
  std::optional<double> epsilon, delta, v, keep;
  std::optional<std::int64_t> w;
  std::optional<std::uint64_t> seed;
};

/// Adds --private, --epsilon, --delta, --v, --w, --keep-probability; and --seed, described by `seed_help`.
void add_inference_options(CLI::App& app, InferenceOptions& options, const std::string& seed_help);

/// None without --private. Throws UsageError naming the option that is missing, out of range, or given without
/// --private (there, --seed is left to the caller), and PrivacyError as sampling::PrivateContext does.
[[nodiscard]] std::optional<evaluation::PrivateInference> inference_of(const InferenceOptions& options);

}  // namespace tsdp::cli
