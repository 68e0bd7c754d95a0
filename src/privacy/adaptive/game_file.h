// Files of games in the user's cache folder.
//
// A game depends on q and σ alone, which are public, and on this program: a file names both, holds a digest of its bytes, and is left aside where anything in
// it is not as it should be. Whoever may write to the folder could make the program state a wrong epsilon, so it is neither read nor written unless it
// belongs to the user and nobody else may write to it; the same for a file.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "game_profiles.h"

namespace tsdp::privacy {

/// TSDP_CACHE_DIR, else tsdp in XDG_CACHE_HOME, else .cache/tsdp in HOME; none where none of these is an absolute path, or the first is empty.
[[nodiscard]] std::optional<std::filesystem::path> cache_folder();

/// The profiles kept for this q and σ; null where there are none that this program wrote. Throws nothing but for want of memory.
[[nodiscard]] std::shared_ptr<const GameProfiles> read_game(double q, double sigma);

/// Keeps them for later, in the place of what is there; where that cannot be done nothing happens. Beyond 16 files the oldest are removed.
void keep_game(double q, double sigma, const GameProfiles& profiles);

}  // namespace tsdp::privacy
