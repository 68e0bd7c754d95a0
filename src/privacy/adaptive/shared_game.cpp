#include "shared_game.h"

#include <algorithm>
#include <list>
#include <mutex>
#include <utility>

#include "adaptive_game.h"
#include "game_file.h"

namespace tsdp::privacy {
namespace {

constexpr std::size_t most_games = 4;

struct Held {
  double q, sigma;
  std::unique_ptr<AdaptiveGame> game;             ///< none where a file had what was asked for
  std::shared_ptr<const GameProfiles> profiles;
};

}  // namespace

std::shared_ptr<const GameProfiles> game_profiles(double q, double sigma, std::size_t rounds) {
  static std::mutex mutex;
  static std::list<Held> games;  // most recently used first
  const std::scoped_lock lock(mutex);
  const auto known =
      std::find_if(games.begin(), games.end(), [&](const Held& held) { return held.q == q && held.sigma == sigma; });
  if (known == games.end()) games.push_front({q, sigma, nullptr, read_game(q, sigma)});
  else games.splice(games.begin(), games, known);
  auto& held = games.front();
  if (held.profiles && held.profiles->rounds() >= rounds) return held.profiles;
  try {
    if (!held.game) held.game = std::make_unique<AdaptiveGame>(q, sigma);
    held.game->play(rounds);
  } catch (...) {
    games.pop_front();
    throw;
  }
  held.profiles = std::make_shared<const GameProfiles>(held.game->profiles());
  keep_game(q, sigma, *held.profiles);
  while (games.size() > most_games) games.pop_back();
  return held.profiles;
}

}  // namespace tsdp::privacy
