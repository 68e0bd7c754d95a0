// How many draws a statistical test makes.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace tsdp::test {

/// Whether TSDP_TRIALS=full (scripts/long.sh) asks for as many draws as find errors of a tenth. Otherwise an eighth of
/// them are made: what is claimed is held against brackets of the same confidence, and only coarse planted errors are
/// looked for.
inline bool full_trials() {
  const auto* asked = std::getenv("TSDP_TRIALS");
  return asked != nullptr && std::string_view(asked) == "full";
}

/// `full`, or an eighth of it.
inline std::uint64_t trials(std::uint64_t full) { return full_trials() ? full : full / 8; }

}  // namespace tsdp::test
