// Which grids losses are discretised on: as coarse as the wanted bracket allows. Nothing here is certified: every grid
// is charged for what it is.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "composition.h"
#include "tsdp/privacy/accountant/accountant.h"

namespace tsdp::privacy {

/// Scales of the losses of one joint use.
struct UseScale {
  double draws = 1.0;         ///< of all mechanisms together
  double deviation = 0.0;     ///< of one draw, as a root of the mean square over draws
  double largest_loss = 0.0;  ///< of any draw
};
[[nodiscard]] UseScale scale_of(const std::vector<MechanismUse>& mechanisms);

/// Everything made for one cut of the tail: jumps of the loss that at most `tail` of P's mass exceeds are kept. The
/// lower the cut, the narrower the composed sums; what is cut off is charged k times.
class Cut {
 public:
  /// Both sides on one grid, each made when it is asked for.
  class Grid {
   public:
    Grid(const Cut& cut, double step, double fine) : cut_(&cut), step_(step), fine_(fine) {}
    [[nodiscard]] Composer& upper() { return made(upper_, Rounding::pessimistic); }
    [[nodiscard]] Composer& lower() { return made(lower_, Rounding::optimistic); }

   private:
    Composer& made(std::unique_ptr<Composer>& side, Rounding rounding) const {
      if (!side) side = std::make_unique<Composer>(cut_->discretised(step_, fine_, rounding));
      return *side;
    }

    const Cut* cut_;  ///< outlives its grids
    double step_, fine_;
    std::unique_ptr<Composer> upper_, lower_;
  };

  Cut(const std::vector<MechanismUse>& mechanisms, const UseScale& scale, double tail);

  /// A coarse upper side, on which tilts are chosen.
  [[nodiscard]] Composer& scout() { return scout_; }
  [[nodiscard]] double tilt_for_epsilon(std::uint64_t uses, double epsilon) const {
    return best_tilt_for_epsilon(scout_.loss(), uses, epsilon);
  }
  /// An upper bound of δ(ε) from the scout: certified, coarse; 1 where it is out of the scout's reach.
  [[nodiscard]] double rough_delta(double epsilon, std::uint64_t uses);
  /// The grid on which k uses, with tilt θ, give brackets of ε of about `precision` times `per_epsilon`; cells of the
  /// tail have at most the relative width `share`.
  ///
  /// Cells of width h add kh²/6 to the variance of the k-fold loss on the pessimistic side and take kh²/12 away on the
  /// other, which moves log δ by ½θ(1+θ) times as much and ε by ½(1+θ) times: the bracket of ε is k(1+θ)h²/8 wide.
  /// Cells of the tail have relative width η: one jump of size l, where the profile falls at rate κ, has its δ off by
  /// (κηl)²/8. Steps of 2^¼ let nearby queries share grids.
  std::shared_ptr<Grid> grid_for(std::uint64_t uses, double theta, double per_epsilon, double share, double precision);

 private:
  [[nodiscard]] ProductLoss discretised(double step, double fine, Rounding rounding) const;

  const std::vector<MechanismUse>& mechanisms_;
  const UseScale& scale_;
  double tail_;
  Composer scout_;
  std::map<std::pair<int, int>, std::shared_ptr<Grid>> grids_;
};

/// Chooses precisions of grids until a bracket is as narrow as wanted: widths scale with the precision asked of the
/// grid, so a first bracket, cheap and never far off, gives the next grid; a bracket that a finer grid no longer
/// narrows is held open by rounding.
class Narrowing {
 public:
  explicit Narrowing(double wanted) : wanted_(0.6 * wanted), precision_(std::max(wanted_, 5e-4)) {}
  [[nodiscard]] double precision() const { return precision_; }
  /// Whether to go on after a bracket of this relative width.
  [[nodiscard]] bool goes_on(double width) {
    if (width <= wanted_ || ++rounds_ >= 10) return false;
    if (coarser_ || !(width <= 0.9 * before_) || precision_ < 1e-12) {
      // Held open by rounding, which costs less on coarser grids.
      if (!coarser_) precision_ = 5e-4;
      coarser_ = true;
      precision_ *= 16.0;
      return precision_ < 0.5;
    }
    before_ = width;
    reached_ = precision_;
    precision_ *= std::clamp(0.6 * wanted_ / width, 1.0 / 256.0, 0.5);
    return true;
  }
  /// Whether to make another bracket at the same precision.
  [[nodiscard]] bool tries_again() { return ++rounds_ < 8; }
  /// Whether to go on after a grid that was out of reach.
  [[nodiscard]] bool goes_on_milder() {
    if (++rounds_ >= 10) return false;
    if (coarser_) {
      precision_ *= 16.0;
      return precision_ < 0.5;
    }
    precision_ = reached_ > 0.0 ? std::sqrt(reached_ * precision_) : 16.0 * precision_;
    return true;
  }

 private:
  double wanted_;
  double precision_;
  double reached_ = 0.0;
  double before_ = std::numeric_limits<double>::infinity();
  int rounds_ = 0;
  bool coarser_ = false;
};

}  // namespace tsdp::privacy
