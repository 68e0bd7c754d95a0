#include "mechanism/private_choice.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::mechanism {
namespace {

constexpr double most_log_odds = 20.0;
constexpr double slack = 1e-6;

}  // namespace

std::int64_t choice_score(double trained_loss, double start_loss) {
  const bool trained = std::isfinite(trained_loss);
  const bool start = std::isfinite(start_loss);
  if (!trained || !start) return trained == start ? 0 : trained ? -choice_unit : choice_unit;
  const double clipped = std::clamp((trained_loss - start_loss) / choice_bound, -1.0, 1.0);
  return std::llround(clipped * static_cast<double>(choice_unit));
}

double log_odds_of_trained(std::int64_t sum, double epsilon) {
  const double odds = -(epsilon - slack) * (static_cast<double>(sum) / (2.0 * static_cast<double>(choice_unit)));
  return std::clamp(odds, -most_log_odds, most_log_odds);
}

privacy::AppliedTheorem followed_by_choice(privacy::AppliedTheorem theorem, privacy::Relation relation,
                                           double epsilon) {
  if (relation == privacy::Relation::series)
    throw PrivacyError(cat("private choice: found epsilon ", epsilon,
                           " with relation series; it is proven for event and user: set privacy.choice_share to 0"));
  if (!(epsilon >= least_choice_epsilon) || !std::isfinite(epsilon))
    throw UsageError(cat("private choice: found epsilon ", epsilon, "; expected at least ", least_choice_epsilon,
                         ": raise privacy.choice_share, or set it to 0"));
  return privacy::followed_by_pure_release(std::move(theorem), epsilon);
}

std::string choice_cited(double epsilon) {
  return epsilon > 0.0 ? cat(" and tsdp.7 for a private choice of epsilon ", epsilon) : std::string();
}

bool keeps_trained(std::int64_t sum, double epsilon, const SecretKey& key) {
  const double probability = 1.0 / (1.0 + std::exp(-log_odds_of_trained(sum, epsilon)));
  return RandomStream(key, choice_purpose, 0).uniform() < probability;
}

}  // namespace tsdp::mechanism
