#include "privacy/theorems/structured_pairs.h"

#include "privacy/accountant/components.h"
#include "privacy/terms/checks.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::privacy {

// A window that is exchanged for another moves the clipped sum by up to 2 C, one that is only taken away or added by C:
// the spacings 2 (with replacement) and 1 (Poisson).

DominatingPair one_window_pair(double q, double sigma) {
  check_sampling_probability(q);
  if (q == 1.0) return DominatingPair({{2.0, 1.0}}, sigma);
  return DominatingPair({{0.0, 1.0 - q}, {2.0, q}}, sigma);
}

DominatingPair with_replacement_upper(std::int64_t lambda, double r, double rho, double sigma) {
  return {binomial_components(lambda, r, 2.0), sigma, DominatingPair::Against::mirror, rho};
}

DominatingPair with_replacement_optimistic(std::int64_t lambda, double r, double rho, double sigma) {
  return {diluted(binomial_components(lambda, r, 2.0), rho), sigma};
}

DominatingPair poisson_upper(std::int64_t m, double rate, double rho, double sigma) {
  return {binomial_components(m, rate, 1.0), sigma, DominatingPair::Against::mirror, rho};
}

DominatingPair poisson_optimistic_printed(std::int64_t m, double rate, double rho, double sigma) {
  return {diluted(binomial_components(m, rate, 1.0), rho), sigma};
}

DominatingPair poisson_optimistic_mirrored(std::int64_t m, double rate, double rho, double sigma) {
  return {diluted(binomial_components(m, rate, 1.0), rho), sigma, DominatingPair::Against::mirror};
}

DominatingPair flat_optimistic(std::int64_t records, std::int64_t window_length, std::int64_t batch_size,
                               double sigma) {
  return {hypergeometric_components(records, window_length, batch_size, 2.0), sigma};
}

}  // namespace tsdp::privacy
