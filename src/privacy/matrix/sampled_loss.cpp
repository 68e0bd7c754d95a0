#include "privacy/matrix/sampled_loss.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "privacy/adaptive/in_parallel.h"
#include "privacy/terms/numbers.h"
#include "privacy/terms/out_of_reach.h"
#include "tsdp/base/text.h"

namespace tsdp::privacy {
namespace {

constexpr std::uint64_t draws_of_chunk = 1U << 16;  // a stream of its own
constexpr Eigen::Index draws_of_block = 256;
constexpr Eigen::Index rows_of_panel = 16;

}  // namespace

/// Of the logarithms of dN(m_i, σ²I)/dN(0, σ²I) under Q: factor · factorᵀ + common² 11ᵀ.
struct SampledLoss::Covariance {
  /// Rows of the factor, with the first column in which one of them has an entry.
  struct Panel {
    Eigen::Index row, first;
    Eigen::MatrixXd factor;
  };
  std::vector<Panel> panels;
  Eigen::MatrixXd all;
  double common;
};

SampledLoss::~SampledLoss() = default;

SampledLoss::SampledLoss(const Gram& gram, double noise_multiplier) : of_(std::make_unique<Covariance>()) {
  const auto b = gram.bins();
  if (b > most_bins)
    throw OutOfReach(cat("batches: found ", b, "; noise is found by sampling for at most ", most_bins));
  const double scale = 1.0 / (noise_multiplier * noise_multiplier) * (1.0 + 4.0 * roundoff);
  const double most = gram.largest_diagonal() * scale;
  if (!(most <= most_mu * most_mu))
    throw OutOfReach(cat("noise multiplier: found ", noise_multiplier, ", for which nothing is found by sampling"));
  const auto size = static_cast<Eigen::Index>(b);
  // The factor L of H + sI, H ≥ G/σ², has L Lᵀ = H + sI + Δ with |Δ_ij| ≤ 2(b + 1)u √(H_ii H_jj) < s (Higham, Accuracy
  // and Stability of Numerical Algorithms, 2002, Theorem 10.3). A part of variance s that all bins share, added to
  // every entry, makes up for Δ.
  const double spare = 1e-9 * most;
  Eigen::MatrixXd h(size, size);
  for (Eigen::Index i = 0; i < size; ++i)
    for (Eigen::Index j = 0; j < size; ++j) h(i, j) = gram.at(i, j) * scale;
  h.diagonal().array() += spare;
  const Eigen::LLT<Eigen::MatrixXd> parts(h);
  if (parts.info() != Eigen::Success) throw OutOfReach("noise by sampling: the Gram matrix is too near a singular one");
  const Eigen::MatrixXd factor = parts.matrixL();
  of_->all = factor * factor.transpose();
  of_->all.array() += spare;
  of_->common = std::sqrt(spare);
  for (Eigen::Index row = 0; row < size; row += rows_of_panel) {
    const auto rows = std::min(rows_of_panel, size - row);
    Eigen::Index first = row;
    for (Eigen::Index i = row; i < row + rows; ++i)
      for (Eigen::Index j = 0; j < first; ++j)
        if (factor(i, j) != 0.0) first = j;
    of_->panels.push_back({row, first, factor.block(row, first, rows, row + rows - first)});
    work_ += static_cast<double>(of_->panels.back().factor.size());
  }
  // Exponentials of both directions, the draws of the normals, and the shift of a removal.
  constexpr double work_of_bin = 20.0;
  work_ += work_of_bin * static_cast<double>(b);
  // A drawn normal lies within 2⁻²⁵ of an exact one while the radius of its pair is below 10.75 (random.h), beyond
  // which some pair of a test lies with a chance below 5e-15; Σ_j |L_ij| ≤ √(b H_ii). Sums of b products with normals
  // of at most 12.07 are off by less than 13 b u √(b H_ii).
  const double size_of_sums = std::sqrt(static_cast<double>(b) * (most + 2.0 * spare));
  rounding_ = size_of_sums * (0x1p-25 + 26.0 * static_cast<double>(b) * roundoff) + 1e-9 + 1e-12 * most;
}

void SampledLoss::draw(double gamma, std::uint64_t chunk, std::uint64_t count, const SecretKey& key,
                       Means& sums) const {
  const auto bins = of_->all.rows();
  const RandomStream normals(key, "noise by sampling: normals", chunk);
  RandomStream places(key, "noise by sampling: bins", chunk);
  Eigen::MatrixXd z(bins + 1, draws_of_block), a(bins, draws_of_block);
  const auto per_block = static_cast<std::uint64_t>(z.size());
  const double share = 1.0 / static_cast<double>(bins);
  for (std::uint64_t done = 0, block = 0; done < count; done += draws_of_block, ++block) {
    normals.normals(block * per_block, {z.data(), static_cast<std::size_t>(per_block)});
    for (const auto& panel : of_->panels)
      a.middleRows(panel.row, panel.factor.rows()).noalias() =
          panel.factor * z.middleRows(panel.first, panel.factor.cols());
    const auto draws = static_cast<Eigen::Index>(std::min<std::uint64_t>(draws_of_block, count - done));
    for (Eigen::Index k = 0; k < draws; ++k) {
      // log dN(m_i, σ²I)/dN(0, σ²I) at a draw from Q; from P, with m_I added to the draw, it is cov_iI more.
      auto column = a.col(k);
      column.array() += of_->common * z(bins, k) - 0.5 * of_->all.diagonal().array();
      const auto place = static_cast<Eigen::Index>(places.below(static_cast<std::uint64_t>(bins)));
      const double of_q = share * column.array().exp().sum();
      const double of_p = share * (column.array() + of_->all.col(place).array()).exp().sum();
      sums.add += std::max(0.0, 1.0 - gamma * of_q);
      sums.remove += std::max(0.0, 1.0 - gamma / of_p);
    }
  }
}

void SampledLoss::check_work(std::uint64_t samples) const {
  if (work_ * static_cast<double>(samples) > most_work)
    throw OutOfReach(cat("noise by sampling: found ", samples, " draws of ", of_->all.rows(),
                         " batches, which take too long; expected a larger delta or fewer batches"));
}

SampledLoss::Means SampledLoss::means(double epsilon, std::uint64_t samples, const SecretKey& key) const {
  check_work(samples);
  const double gamma = std::exp(epsilon - rounding_);
  const auto chunks = (samples + draws_of_chunk - 1) / draws_of_chunk;
  std::vector<Means> sums(chunks);
  in_parallel(chunks, [&](std::size_t chunk) {
    draw(gamma, chunk, std::min(draws_of_chunk, samples - chunk * draws_of_chunk), key, sums[chunk]);
  });
  Means out;
  for (const auto& of_chunk : sums) {
    out.remove += of_chunk.remove;
    out.add += of_chunk.add;
  }
  // Sums of values in [0, 1], each off by a few units of rounding.
  const double over = 1.0 / static_cast<double>(samples);
  out.remove = (out.remove * (1.0 + 1e-9) + 1e-6) * over;
  out.add = (out.add * (1.0 + 1e-9) + 1e-6) * over;
  return out;
}

SamplingPlan sampling_plan(double delta) {
  // With these a thousand tests are covered (docs/proofs/sampled-noise.md; the test
  // SampledLoss.ItsPlanPaysForAThousandTests goes through every true δ).
  if (!(delta >= 2e-9))
    throw OutOfReach(cat("noise by sampling: found delta ", delta, "; expected a larger delta, of at least 2e-9"));
  constexpr double draws_in_delta = 100.0;
  constexpr double most_share = 0.63;
  return {static_cast<std::uint64_t>(std::ceil(draws_in_delta / delta)), most_share * delta};
}

bool passes(const SampledClaim& claim, const Strategy& strategy, std::int64_t bins, std::int64_t epochs,
            double noise_multiplier) {
  static std::mutex mutex;
  static std::map<std::string, bool> answers;
  const auto plan = sampling_plan(claim.delta);
  const auto& r = strategy.recursion();
  std::string name = cat(exact(claim.epsilon), " ", exact(claim.delta), " ", claim.key.hex(), " ", bins, " ", epochs,
                         " ", exact(noise_multiplier), " ", static_cast<int>(r.form));
  for (const auto* const numbers : {&r.coefficients, &r.decays, &r.weights})
    for (const double number : *numbers) name += cat(" ", exact(number));
  const std::scoped_lock lock(mutex);
  auto found = answers.find(name);
  if (found == answers.end()) {
    const auto means = SampledLoss(Gram(strategy, bins, epochs, Gram::Side::upper), noise_multiplier)
                           .means(claim.epsilon, plan.samples, claim.key);
    found = answers.emplace(name, std::max(means.remove, means.add) <= plan.most_mean).first;
  }
  return found->second;
}

}  // namespace tsdp::privacy
