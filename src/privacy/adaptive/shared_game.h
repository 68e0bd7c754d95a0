// Games that are played once: for all that ask in this process, and, in files of the user's cache folder, in later ones.
#pragma once

#include <cstddef>
#include <memory>

#include "game_profiles.h"

namespace tsdp::privacy {

/// The profiles of the game for q and σ, of at least `rounds` rounds: what another answer left, what a file holds, or played now. Thread-safe; the last few games are
/// kept. Throws as AdaptiveGame does.
[[nodiscard]] std::shared_ptr<const GameProfiles> game_profiles(double q, double sigma, std::size_t rounds);

}  // namespace tsdp::privacy
