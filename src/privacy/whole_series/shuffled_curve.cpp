#include "privacy/whole_series/shuffled_curve.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "epoch_bounds.h"
#include "largest_coordinate.h"
#include "privacy/accountant/composition.h"
#include "privacy/accountant/root_finding.h"
#include "privacy/terms/out_of_reach.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::privacy {

/// The loss of the largest coordinate of one epoch, composed.
struct ShuffledCurve::Composed {
  explicit Composed(LossDistribution loss) : composer(ProductLoss(std::move(loss))) {}
  Composer composer;
};

ShuffledCurve::ShuffledCurve(std::int64_t batches, double noise_multiplier, Reshuffle reshuffle)
    : batches_(batches), noise_multiplier_(noise_multiplier), reshuffle_(reshuffle), upper_(noise_multiplier) {
  if (batches < 1 || batches > largest_count)
    throw PrivacyError(cat("batches: found ", batches, "; expected an integer from 1 to ", largest_count));
}

ShuffledCurve::~ShuffledCurve() = default;

double ShuffledCurve::composed(double epsilon, std::uint64_t uses) {
  try {
    if (!composed_) {
      const LargestCoordinate one(batches_, 2.0, 1.0, noise_multiplier_);
      composed_ = std::make_unique<Composed>(one.loss(one.step_for(4000.0)));
    }
    auto& composer = composed_->composer;
    return composer.compose(uses, best_tilt_for_epsilon(composer.loss(), uses, epsilon)).delta(epsilon);
  } catch (const OutOfReach&) { return 0.0; }
}

double ShuffledCurve::counted(double epsilon, std::uint64_t uses) const {
  const LargestCoordinate one(batches_, 2.0, 1.0, noise_multiplier_);
  // A count of k events takes a sum of k terms for every C.
  return uses <= 1000 ? one.best_count(epsilon, uses) : one.best_event(epsilon);
}

double ShuffledCurve::lower(double epsilon, std::uint64_t uses) {
  if (uses == 1 || reshuffle_ == Reshuffle::once)
    return LargestCoordinate(batches_, 2.0, 1.0, of_one_epoch(noise_multiplier_, uses)).best_event(epsilon);
  return std::max(counted(epsilon, uses), composed(epsilon, uses));
}

Interval ShuffledCurve::find_delta(double epsilon, std::uint64_t uses, double precision, Certificate&) {
  const auto upper = upper_.delta(epsilon, uses, precision).upper;
  return in_order({uses == 0 ? 0.0 : lower(epsilon, uses), upper});
}

Interval ShuffledCurve::find_epsilon(double delta, std::uint64_t uses, double precision, Certificate&) {
  const auto upper = upper_.epsilon(delta, uses, precision).upper;
  if (uses == 0 || upper == 0.0) return {0.0, upper};
  if (uses == 1 || reshuffle_ == Reshuffle::once)
    return {std::min(LargestCoordinate(batches_, 2.0, 1.0, of_one_epoch(noise_multiplier_, uses)).best_epsilon(delta),
                     upper),
            upper};
  const auto largest = [&](double low, auto delta_at) {
    const auto over = [&](double e) { return std::log(std::max(delta_at(e), 1e-320)) - std::log(delta); };
    const double at_low = over(low);
    const double at_upper = over(upper);
    return at_low > 0.0 && at_upper <= 0.0 ? bracket_root(over, low, at_low, upper, at_upper, 0.1 * precision).first
                                           : low;
  };
  // Counts of events cost more to compute and hardly ever give more.
  const double by_composition = largest(0.0, [&](double e) { return composed(e, uses); });
  return {largest(by_composition, [&](double e) { return counted(e, uses); }), upper};
}

std::uint64_t ShuffledCurve::search_uses(double epsilon, double delta, std::uint64_t limit, double precision) {
  return upper_.max_uses(epsilon, delta, limit, precision);
}

Certificate ShuffledCurve::methods() const {
  return {"deterministic batches (Chua et al. 2024, Theorem 4.1)",
          reshuffle_ == Reshuffle::once
              ? "events of the largest coordinate (Chua et al. 2024, section 2.3), epochs summed up"
              : "events of the largest coordinate (Chua et al. 2024, section 2.3), composed over epochs",
          {}};
}

}  // namespace tsdp::privacy
