// Games that are played once: for all callers in this process and, through files in the user's cache folder, for later
// processes.
#pragma once

#include <cstddef>
#include <memory>

#include "game_profiles.h"

namespace tsdp::privacy {

/// The profiles of the game for q and σ, of at least `rounds` rounds: left by another answer, read from a file, or
/// played now. Thread-safe; the last few games are kept. Throws as AdaptiveGame does.
[[nodiscard]] std::shared_ptr<const GameProfiles> game_profiles(double q, double sigma, std::size_t rounds);

}  // namespace tsdp::privacy
