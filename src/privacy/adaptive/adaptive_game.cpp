#include "adaptive_game.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include <Eigen/Dense>

#include "balanced.h"
#include "in_parallel.h"
#include "privacy/accountant/point_indices.h"
#include "privacy/terms/checks.h"
#include "privacy/terms/numbers.h"
#include "privacy/terms/out_of_reach.h"
#include "triangle_pairs.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::privacy {
namespace {

/// Thresholds at which a profile ends and a common basis is close enough. Both are charged in every round.
constexpr double tail = 1e-17;
constexpr double basis_tolerance = 3e-5;  // relative
constexpr std::size_t most_ranks = 400;
constexpr auto most_points = AdaptiveGame::most_points;

/// An upper bound of a(1/z) at 1 = z[0] < z[1] < …, where a is convex with a(0) = 0, so that a(1/z) z falls: the
/// largest such function.
void hull_through_origin(const std::vector<double>& z, std::vector<double>& f) {
  std::vector<double> place;  // −1/z rises, and ends at 0
  std::vector<double> value;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < z.size(); ++i) {
    least = std::min(least, f[i] * z[i]);
    place.push_back(-1.0 / z[i]);
    value.push_back(least / z[i]);
  }
  place.push_back(0.0);
  value.push_back(0.0);
  convex_from_below(place, value);
  std::copy_n(value.begin(), f.size(), f.begin());
}

/// The points at which profiles are evaluated, and the rows n = −reach … reach of their tables.
struct ProfileGrid {
  double step;                       ///< h
  double fine;                       ///< of point_indices, in points
  std::vector<std::int64_t> points;  ///< n ≥ 0, rising

  [[nodiscard]] std::size_t half() const { return points.size(); }
  [[nodiscard]] Eigen::Index rows() const { return static_cast<Eigen::Index>(2 * half() - 1); }
  [[nodiscard]] Eigen::Index row(int side, std::size_t i) const {
    return static_cast<Eigen::Index>(half() - 1) + side * static_cast<Eigen::Index>(i);
  }
};

/// The grid as far as profiles reach, as far as the corner's. The others have no heavier tails than it, except for the
/// cover's excess. No bound rests on it: what lies beyond the last point is charged.
ProfileGrid grid_of(double q, double sigma, double step, const GameSettings& settings) {
  const TriangleGram corner{4.0 / (sigma * sigma), 0.0, 0.0};
  const TriangleProfile first(corner, q, settings.spacing);
  const TriangleProfile second(corner.swapped(), q, settings.spacing);
  const double fine = 4.0 / settings.step;
  const auto points_to = [&](std::int64_t n) {
    return point_indices(step, fine * step, step * static_cast<double>(n), most_points);
  };
  auto points = points_to(1);
  while (true) {
    const double loss = step * static_cast<double>(points.back());
    if (std::max(first.upper(loss), second.upper(loss)) * std::exp(-0.5 * loss) < tail) break;
    if (points.back() > most_points)
      throw OutOfReach(cat("the privacy loss of one step reaches ", loss, ", too far for a grid of distance ", step));
    points = points_to(points.back() + std::max<std::int64_t>(1, points.back() / 8));
  }
  return {step, fine, std::move(points)};
}

/// h̃_j of all pairs of the cover, in both orders, from above, each raised to a convex function (Section 6): rows n =
/// −reach … reach at the points, columns pairs, in balanced units.
Eigen::MatrixXd convex_profiles(const ProfileGrid& grid, const std::vector<TriangleGram>& cover, double q,
                                double spacing) {
  const auto half = grid.half();
  Eigen::MatrixXd profiles(grid.rows(), static_cast<Eigen::Index>(2 * cover.size()));
  std::vector<double> z(half);
  for (std::size_t i = 0; i < half; ++i) z[i] = std::exp(grid.step * static_cast<double>(grid.points[i]));
  in_parallel(cover.size(), [&](std::size_t c) {
    const TriangleProfile one(cover[c], q, spacing);
    const TriangleProfile other(cover[c].swapped(), q, spacing);
    // In units of W: at z < 1 H_{1/z}(A‖B) z, at z > 1 H_z(B‖A).
    std::vector<double> below(half), above(half);
    for (std::size_t i = 0; i < half; ++i) {
      const double loss = grid.step * static_cast<double>(grid.points[i]);
      below[i] = one.upper(loss) / z[i];
      above[i] = other.upper(loss);
    }
    below[0] = above[0] = std::max(below[0], above[0]);
    falling_hull(z, above);
    hull_through_origin(z, below);
    const auto j = static_cast<Eigen::Index>(2 * c);
    for (std::size_t i = 0; i < half; ++i) {
      const double balance = std::exp(-0.5 * grid.step * static_cast<double>(grid.points[i]));
      profiles(grid.row(1, i), j) = profiles(grid.row(-1, i), j + 1) = above[i] * balance;
      profiles(grid.row(-1, i), j) = profiles(grid.row(1, i), j + 1) = below[i] / balance;
    }
  });
  return profiles;
}

/// Throws OutOfReach unless all profiles are convex at z = 1 too; otherwise the pair would have no mass at loss 0.
void check_convex_at_one(const ProfileGrid& grid, const Eigen::MatrixXd& profiles) {
  const double step = grid.step;
  for (Eigen::Index j = 0; j < profiles.cols(); ++j) {
    const double left =
        (profiles(grid.row(0, 0), j) - profiles(grid.row(-1, 1), j) * std::exp(-0.5 * step)) / -std::expm1(-step);
    const double right =
        (profiles(grid.row(1, 1), j) * std::exp(0.5 * step) - profiles(grid.row(0, 0), j)) / std::expm1(step);
    if (!(left <= right + 1.0)) throw OutOfReach("a step's privacy loss has no mass at 0 on so wide a grid");
  }
}

/// An orthonormal basis of the profiles relative to the largest at each point, to nearest: what it leaves is charged.
/// Each step adds the profile furthest from the basis.
Eigen::MatrixXd basis_of(const Eigen::MatrixXd& relative) {
  Eigen::MatrixXd rest = relative;
  Eigen::MatrixXd all(relative.rows(), 0);
  while (all.cols() < static_cast<Eigen::Index>(most_ranks)) {
    Eigen::Index j = 0;
    if (!(rest.cwiseAbs().colwise().maxCoeff().maxCoeff(&j) > basis_tolerance)) break;
    Eigen::VectorXd one = rest.col(j);
    one -= all * (all.transpose() * one);
    one.normalize();
    all.conservativeResize(Eigen::NoChange, all.cols() + 1);
    all.rightCols(1) = one;
    rest.noalias() -= one * (one.transpose() * rest);
  }
  return all;
}

/// Rotates a basis so that the first members are those of which most is left after many rounds, which smooth; the
/// others then need not be evaluated. To nearest: any basis will do.
void put_smoothest_first(const ProfileGrid& grid, const Eigen::VectorXd& envelope, Eigen::MatrixXd& all) {
  constexpr int smooth = 121;
  const auto& points = grid.points;
  const auto half = grid.half();
  Eigen::MatrixXd smoothed(smooth, grid.rows());
  for (int t = 0; t < smooth; ++t)
    for (std::size_t i = 0; i < half; ++i)
      for (const int side : {-1, 1}) {
        const double width = 0.5 * static_cast<double>(points[std::min(i + 1, half - 1)] - points[i == 0 ? 0 : i - 1]);
        const double place = (side * static_cast<double>(points[i]) - grid.fine * (t - smooth / 2)) / (2.0 * grid.fine);
        smoothed(t, grid.row(side, i)) = width * std::exp(-0.5 * place * place);
      }
  const Eigen::MatrixXd seen = smoothed * envelope.asDiagonal() * all;
  all *= Eigen::BDCSVD<Eigen::MatrixXd>(seen, Eigen::ComputeFullV).matrixV();
}

/// b_l on every n of the grid, from −reach to reach around `out`, to nearest: straight lines in z, in the units of W.
/// `all`: values of all members at the rows of the tables.
void put_on_grid(const ProfileGrid& grid, const Eigen::MatrixXd& all, std::size_t l, double* out) {
  const auto& points = grid.points;
  const double step = grid.step;
  const auto at = [&](int side, std::size_t i) {
    return all(grid.row(side, i), static_cast<Eigen::Index>(l)) *
           std::exp(side * 0.5 * step * static_cast<double>(points[i]));
  };
  for (const int side : {-1, 1})
    for (std::size_t i = 0; i + 1 < points.size(); ++i) {
      const double near = at(side, i);
      const double far = at(side, i + 1);
      const double all_of_it = std::expm1(side * step * static_cast<double>(points[i + 1] - points[i]));
      for (auto n = points[i]; n <= points[i + 1]; ++n) {
        const double share = std::expm1(side * step * static_cast<double>(n - points[i])) / all_of_it;
        out[side * n] = (near + share * (far - near)) * std::exp(-side * 0.5 * step * static_cast<double>(n));
      }
    }
}

/// max_j Σ_n h̃_j(n), from above, where h̃ between two points is at most the larger end's value times e^{width/2}.
/// In the basis it exceeds the convex one by at most twice the residual times the envelope.
double largest_mass(const ProfileGrid& grid, const Eigen::MatrixXd& profiles, const Eigen::VectorXd& envelope,
                    double residual, double widest) {
  const auto& points = grid.points;
  const auto half = grid.half();
  double largest = 0.0;
  for (Eigen::Index j = 0; j < profiles.cols(); ++j) {
    double sum = 0.0;
    for (std::size_t i = 0; i < half; ++i)
      for (const int side : {-1, 1})
        sum += (profiles(grid.row(side, i), j) + 2.0 * residual * envelope(grid.row(side, i))) *
               static_cast<double>(points[std::min(i + 1, half - 1)] - points[i] + 1);
    largest = std::max(largest, sum * std::exp(0.5 * widest) * (1.0 + 1e-6));
  }
  return largest;
}

}  // namespace

AdaptiveGame::AdaptiveGame(double q, double sigma, GameSettings settings) {
  if (!(q > 0.0) || !(q < 1.0))
    throw PrivacyError(cat("sampling probability: found ", q, "; expected a number in (0, 1)"));
  check_noise_multiplier(sigma);
  make_kernels(q, sigma, settings);
  profiles_.emplace(step_, deviation_);
}

/// The profiles h̃_j of all pairs of the cover, in both orders, each raised to a convex function and written in a common
/// basis (Section 6).
void AdaptiveGame::make_kernels(double q, double sigma, const GameSettings& settings) {
  deviation_ = q * std::sqrt(std::expm1(4.0 / (sigma * sigma)));
  // A Gaussian loss of that deviation has the total variation of Theorem 4.4's pair: large losses, of which there are
  // few, do not widen the grid.
  const double bulk = std::sqrt(0.5 * std::numbers::pi) * 2.0 * q * std::erf(1.0 / (sigma * std::numbers::sqrt2));
  step_ = std::min(settings.step * std::min(bulk, deviation_), 0.05);
  const auto cover = triangle_cover(sigma, settings.cover);
  const auto grid = grid_of(q, sigma, step_, settings);
  const auto& points = grid.points;
  reach_ = points.back();
  kernels_ = 2 * cover.size();
  const Eigen::MatrixXd profiles = convex_profiles(grid, cover, q, settings.spacing);
  check_convex_at_one(grid, profiles);

  const Eigen::VectorXd envelope = profiles.rowwise().maxCoeff();
  const Eigen::MatrixXd relative = envelope.cwiseInverse().asDiagonal() * profiles;
  Eigen::MatrixXd all = basis_of(relative);
  put_smoothest_first(grid, envelope, all);
  // One more basis function, the envelope times the residual, is added to every profile, so that they are bounds again.
  const auto ranks = all.cols() + 1;
  ranks_ = static_cast<std::size_t>(ranks);
  coefficients_.resize(kernels_ * ranks_);
  Eigen::Map<Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>> table(
      coefficients_.data(), static_cast<Eigen::Index>(kernels_), ranks);
  table.leftCols(ranks - 1) = relative.transpose() * all;
  table.rightCols(1).setOnes();
  const auto of_others = table.leftCols(ranks - 1);
  const double magnitude = (of_others.cwiseAbs() * all.cwiseAbs().colwise().maxCoeff().transpose()).maxCoeff();
  const double residual = (relative - all * of_others.transpose()).cwiseAbs().maxCoeff() +
                          static_cast<double>(ranks + 8) * 8.0 * roundoff * (magnitude + 1.0);
  all.conservativeResize(Eigen::NoChange, ranks);
  all.rightCols(1).setConstant(residual);
  all = (envelope.asDiagonal() * all).eval();
  const auto length = static_cast<std::size_t>(2 * reach_ + 1);
  basis_.assign(ranks_ * length, 0.0);
  in_parallel(ranks_, [&](std::size_t l) { put_on_grid(grid, all, l, basis_.data() + l * length + reach_); });

  double widest = 0.0;  // of a cell, in loss
  for (std::size_t i = 0; i + 1 < points.size(); ++i)
    widest = std::max(widest, step_ * static_cast<double>(points[i + 1] - points[i]));
  // A profile at a rounded loss: its slope in the loss is at most 1 in these units.
  kernel_error_ = std::max(profiles.row(0).maxCoeff(), profiles.row(profiles.rows() - 1).maxCoeff()) + 8.0 * roundoff;
  // Twice the residual; between points at most the larger end's value times e^{width/2}.
  kernel_excess_ = 2.0 * residual * envelope.maxCoeff() * std::exp(0.5 * widest) * (1.0 + 1e-12);
  kernel_mass_ = largest_mass(grid, profiles, envelope, residual, widest);
}

}  // namespace tsdp::privacy
