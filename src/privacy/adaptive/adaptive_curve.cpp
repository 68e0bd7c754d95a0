#include "privacy/adaptive/adaptive_curve.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "game_profiles.h"
#include "privacy/accountant/composition.h"
#include "privacy/accountant/root_finding.h"
#include "privacy/terms/out_of_reach.h"
#include "shared_game.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/privacy/accountant/accountant.h"

namespace tsdp::privacy {
namespace {

/// The best tilt lies close to where windows grow.
constexpr double modest_tilt = 0.8;

double log_or_floor(double value) { return std::log(std::max(value, 1e-320)); }

}  // namespace

struct AdaptiveCurve::State {
  State(const DominatingPair& pair, std::size_t longest)
      : symmetrised(pair),
        remove(pair, Direction::remove),
        add(pair, Direction::add),
        q(pair.components().back().weight),
        sigma(pair.sigma()),
        block(longest) {}

  Accountant symmetrised, remove, add;
  double q, sigma;
  std::size_t block;
  std::shared_ptr<const GameProfiles> game;
  bool out_of_reach = false;

  double lower_delta(double epsilon, std::uint64_t uses, double precision) {
    return std::max(remove.delta(epsilon, uses, precision).lower, add.delta(epsilon, uses, precision).lower);
  }

  double lower_epsilon(double delta, std::uint64_t uses, double precision) {
    return std::max(remove.epsilon(delta, uses, precision).lower, add.epsilon(delta, uses, precision).lower);
  }

  /// The game up to `rounds`; null where its losses are out of reach.
  const GameProfiles* played(std::size_t rounds) {
    if (out_of_reach) return nullptr;
    try {
      if (!game || game->rounds() < rounds) game = game_profiles(q, sigma, rounds);
      return game.get();
    } catch (const OutOfReach&) {
      out_of_reach = true;
      return nullptr;
    }
  }

  /// The composition of blocks of `block` steps and one block of the remaining steps.
  class Blocks {
   public:
    Blocks(const GameProfiles& game, std::uint64_t uses, std::size_t block, double tail)
        : composer_(ProductLoss(parts(game, uses, block, tail))) {}

    /// An upper bound of δ(ε), with a tilt near the best one for this ε.
    [[nodiscard]] double delta(double epsilon) {
      const double best = best_tilt_for_epsilon(composer_.loss(), 1, epsilon);
      double out = 1.0;
      for (const double tilt : {modest_tilt, 1.0}) {
        try {
          const auto composition = composer_.compose(1, tilt * best);
          out = std::min(out, composition.delta(epsilon));
          if (composition.charge(epsilon) < 1e-3 * out) break;
        } catch (const OutOfReach&) { break; }
      }
      return out;
    }

   private:
    static std::vector<ProductLoss::Part> parts(const GameProfiles& game, std::uint64_t uses, std::size_t block,
                                                double tail) {
      const auto every = game.stride(block);
      std::vector<ProductLoss::Part> out{{game.loss(block, every, tail), uses / block}};
      if (const auto rest = uses % block) out.push_back({game.loss(rest, every, tail), 1});
      return out;
    }

    Composer composer_;
  };

  /// An upper bound of δ(ε) by the game; 1 where it gives none.
  double upper_delta(double epsilon, std::uint64_t uses) {
    const auto* const played_game = played(static_cast<std::size_t>(std::min<std::uint64_t>(uses, block)));
    if (played_game == nullptr) return 1.0;
    if (uses <= block) return played_game->profile(static_cast<std::size_t>(uses), epsilon);
    double out = 1.0;
    try {
      // The tail that is cut off is charged: a thousandth of δ.
      for (double tail = 1e-12; tail > 1e-22;) {
        const double found = Blocks(*played_game, uses, block, tail).delta(epsilon);
        out = std::min(out, found);
        const double wanted = 1e-3 * out * static_cast<double>(block) / static_cast<double>(uses);
        if (tail <= wanted) break;
        tail = std::min(0.1 * tail, wanted);
      }
    } catch (const OutOfReach&) { return out; }
    return out;
  }

  /// The least ε that the game certifies for δ; infinite where it certifies none.
  double upper_epsilon(double delta, std::uint64_t uses, double start, double tolerance) {
    const auto* const played_game = played(static_cast<std::size_t>(std::min<std::uint64_t>(uses, block)));
    if (played_game == nullptr) return std::numeric_limits<double>::infinity();
    std::optional<Blocks> blocks;
    if (uses > block)
      blocks.emplace(*played_game, uses, block, 1e-4 * delta * static_cast<double>(block) / static_cast<double>(uses));
    const auto excess = [&](double epsilon) {
      return log_or_floor(blocks ? blocks->delta(epsilon)
                                 : played_game->profile(static_cast<std::size_t>(uses), epsilon)) -
             std::log(delta);
    };
    double high = start;
    double at_high = excess(high);
    for (int i = 0; at_high > 0.0; ++i) {
      if (i == 40) return std::numeric_limits<double>::infinity();
      high *= 1.25;
      at_high = excess(high);
    }
    double low = 0.8 * high;
    double at_low = excess(low);
    while (at_low <= 0.0) {
      if (low < 1e-9 * start) return low;
      high = low;
      at_high = at_low;
      low *= 0.8;
      at_low = excess(low);
    }
    return bracket_root(excess, low, at_low, high, at_high, tolerance).second;
  }
};

bool AdaptiveCurve::serves(const DominatingPair& pair) {
  const auto& p = pair.components();
  return pair.against() == DominatingPair::Against::noise && pair.use_probability() == 1.0 && p.size() == 2 &&
         p.front().mean == 0.0 && p.back().mean == 2.0;
}

AdaptiveCurve::AdaptiveCurve(const DominatingPair& pair, std::size_t block) {
  if (!serves(pair))
    throw PrivacyError(
        "adaptive composition: found a pair that is not (1 - q) N(0) + q N(2) against N(0) with q < 1, of which alone "
        "it is proven");
  if (block < 1 || block > longest_block)
    throw PrivacyError(cat("adaptive composition: found blocks of ", block, "; expected from 1 to ", longest_block));
  state_ = std::make_unique<State>(pair, block);
}

AdaptiveCurve::~AdaptiveCurve() = default;
AdaptiveCurve::AdaptiveCurve(AdaptiveCurve&&) noexcept = default;
AdaptiveCurve& AdaptiveCurve::operator=(AdaptiveCurve&&) noexcept = default;

Certificate AdaptiveCurve::methods() const {
  return {
      "tsdp.6, or composition of dominating pairs (Schuchardt et al. 2025, Props. D.10 and D.13) where that is less",
      "the better direction of the pair in every step",
      {"lower end: gradients may depend arbitrarily on earlier releases; series are drawn without replacement, or in a "
       "known order, and no noise is on the data; other runs may cost less"}};
}

namespace {

/// Two certified ends cannot lie the wrong way round; if they do, a stored game is not the one that was played.
Interval checked(Interval ends) {
  if (ends.upper < ends.lower)
    throw Error(ExitCode::failure,
                "adaptive composition: an upper end lies below a lower one, so a stored game is damaged; remove the "
                "folder of games (TSDP_CACHE_DIR, XDG_CACHE_HOME/tsdp or ~/.cache/tsdp) and run again");
  return ends;
}

}  // namespace

Interval AdaptiveCurve::find_delta(double epsilon, std::uint64_t uses, double precision, Certificate&) {
  auto out = state_->symmetrised.delta(epsilon, uses, precision);
  if (uses <= 1) return out;
  out.upper = std::min(out.upper, state_->upper_delta(epsilon, uses));
  out.lower = state_->lower_delta(epsilon, uses, precision);
  return checked(out);
}

double AdaptiveCurve::upper_delta(double epsilon, std::uint64_t uses, double precision) {
  const double symmetrised = state_->symmetrised.upper_delta(epsilon, uses, precision);
  return uses <= 1 ? symmetrised : std::min(symmetrised, state_->upper_delta(epsilon, uses));
}

double AdaptiveCurve::upper_epsilon(double delta, std::uint64_t uses, double precision) {
  const double symmetrised = state_->symmetrised.epsilon(delta, uses, precision).upper;
  if (uses <= 1 || symmetrised == 0.0) return symmetrised;
  return std::min(symmetrised, state_->upper_epsilon(delta, uses, symmetrised, std::min(1e-2 * precision, 1e-6)));
}

Interval AdaptiveCurve::find_epsilon(double delta, std::uint64_t uses, double precision, Certificate&) {
  auto out = state_->symmetrised.epsilon(delta, uses, precision);
  if (uses <= 1 || out.upper == 0.0) return out;
  out.upper = upper_epsilon(delta, uses, precision);
  out.lower = state_->lower_epsilon(delta, uses, precision);
  return checked(out);
}

bool AdaptiveCurve::certifies(double epsilon, double delta, std::uint64_t uses, double precision) {
  if (state_->symmetrised.certifies(epsilon, delta, uses, precision)) return true;
  return uses > 1 && state_->upper_delta(epsilon, uses) <= delta;
}

std::uint64_t AdaptiveCurve::search_uses(double epsilon, double delta, std::uint64_t limit, double precision) {
  const auto least = state_->symmetrised.max_uses(epsilon, delta, limit, precision);
  if (least == 0 || least >= limit) return least;
  const auto excess = [&](std::uint64_t k) {
    if (k <= least) return -1e-12 * static_cast<double>(1 + least - k);
    return log_or_floor(state_->upper_delta(epsilon, k)) - std::log(delta);
  };
  return most_within(excess, least + std::max<std::uint64_t>(1, least / 5), limit, 0.0);
}

}  // namespace tsdp::privacy
