// Files of games in the user's cache folder.
//
// A game depends on q and σ alone, which are public, and on this program: a file names both, holds a digest of its
// bytes, and is ignored if anything in it is not as it should be. Anyone who may write to the folder could make the
// program state a wrong epsilon, so it is neither read nor written unless it belongs to the user and nobody else may
// write to it; the same holds for a file.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "game_profiles.h"

namespace tsdp::privacy {

/// TSDP_CACHE_DIR, else tsdp in XDG_CACHE_HOME, else .cache/tsdp in HOME: the first that is set (XDG_CACHE_HOME not to
/// nothing). None if that is no absolute path, or if none is set.
[[nodiscard]] std::optional<std::filesystem::path> cache_folder();

/// The profiles kept for this q and σ; null where there are none that this program wrote. Throws only if memory runs
/// out.
[[nodiscard]] std::shared_ptr<const GameProfiles> read_game(double q, double sigma);

/// Keeps `profiles` for later, replacing what is there. Does nothing if that cannot be done. Of more than
/// 256 MiB the oldest are removed.
void keep_game(double q, double sigma, const GameProfiles& profiles);

}  // namespace tsdp::privacy
