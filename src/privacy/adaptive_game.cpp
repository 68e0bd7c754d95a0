#include "adaptive_game.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <limits>
#include <numbers>
#include <numeric>
#include <thread>
#include <utility>

#include <Eigen/Dense>

#include "balanced.h"
#include "fourier.h"
#include "point_indices.h"
#include "row_products.h"
#include "triangle_pairs.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/privacy/out_of_reach.h"

namespace tsdp::privacy {
namespace {

constexpr double unit = std::numeric_limits<double>::epsilon() / 2;
/// Where a profile ends, a common basis is close enough, terms are left out. All of it is charged in every round.
constexpr double tail = 1e-17;
constexpr double basis_tolerance = 3e-5;  // relative
constexpr double left_out = 3e-15;
constexpr std::size_t most_ranks = 400;
constexpr std::int64_t most_points = std::int64_t{1} << 20;
/// Rows that share a list of the pairs that may be the maximum.
constexpr Eigen::Index block_rows = 64;

/// f(i) for every i < count, on all cores; each i once. Throws what the first f to throw threw.
template <typename Function>
void in_parallel(std::size_t count, const Function& f) {
  const auto threads = std::min<std::size_t>(count, std::max(1U, std::thread::hardware_concurrency()));
  if (threads <= 1) {
    for (std::size_t i = 0; i < count; ++i) f(i);
    return;
  }
  std::atomic<std::size_t> next{0};
  std::vector<std::exception_ptr> failures(threads);
  {
    std::vector<std::jthread> workers;
    for (std::size_t t = 0; t < threads; ++t)
      workers.emplace_back([&, t] {
        try {
          for (auto i = next++; i < count; i = next++) f(i);
        } catch (...) {
          failures[t] = std::current_exception();
        }
      });
  }
  for (const auto& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

/// An upper bound of a(1/z) at 1 = z[0] < z[1] < …, a being convex with a(0) = 0, so that a(1/z) z falls: the largest such function.
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

}  // namespace

AdaptiveGame::AdaptiveGame(double q, double sigma, GameSettings settings) {
  if (!(q > 0.0) || !(q < 1.0)) throw PrivacyError(cat("sampling probability: found ", q, "; a number in (0, 1) is expected"));
  if (!(sigma > 0.0) || !std::isfinite(sigma)) throw PrivacyError(cat("noise multiplier: found ", sigma, "; a positive finite number is expected"));
  make_kernels(q, sigma, settings);
  profiles_.emplace(step_, deviation_);
}

/// The profiles h̃_j of all pairs of the cover, in both orders, each raised to a convex function and written in a common basis (Section 6).
void AdaptiveGame::make_kernels(double q, double sigma, const GameSettings& settings) {
  deviation_ = q * std::sqrt(std::expm1(4.0 / (sigma * sigma)));
  // A Gaussian loss of that deviation has the total variation of Theorem 4.4's pair: large losses, of which there are few, do not widen the grid.
  const double bulk = std::sqrt(0.5 * std::numbers::pi) * 2.0 * q * std::erf(1.0 / (sigma * std::numbers::sqrt2));
  step_ = std::min(settings.step * std::min(bulk, deviation_), 0.05);
  const auto cover = triangle_cover(sigma, settings.cover);

  // How far profiles reach: the corner's, beside which the others have no heavier tails but for the cover's excess.
  const TriangleGram corner{4.0 / (sigma * sigma), 0.0, 0.0};
  const TriangleProfile first(corner, q, settings.spacing);
  const TriangleProfile second(corner.swapped(), q, settings.spacing);
  const double fine = 4.0 / settings.step;  // in points
  const auto points_to = [&](std::int64_t n) { return point_indices(step_, fine * step_, step_ * static_cast<double>(n), most_points); };
  auto points = points_to(1);
  while (true) {
    const double loss = step_ * static_cast<double>(points.back());
    if (std::max(first.upper(loss), second.upper(loss)) * std::exp(-0.5 * loss) < tail) break;
    if (points.back() > most_points) throw OutOfReach(cat("the privacy loss of one step reaches ", loss, ", too far for a grid of distance ", step_));
    points = points_to(points.back() + std::max<std::int64_t>(1, points.back() / 8));
  }
  reach_ = points.back();

  // Rows n = −reach … reach at the points, columns pairs, in balanced units.
  const auto half = points.size();
  const auto rows = static_cast<Eigen::Index>(2 * half - 1);
  kernels_ = 2 * cover.size();
  Eigen::MatrixXd profiles(rows, static_cast<Eigen::Index>(kernels_));
  const auto row = [&](int side, std::size_t i) { return static_cast<Eigen::Index>(half - 1) + side * static_cast<Eigen::Index>(i); };
  std::vector<double> z(half);
  for (std::size_t i = 0; i < half; ++i) z[i] = std::exp(step_ * static_cast<double>(points[i]));
  in_parallel(cover.size(), [&](std::size_t c) {
    const TriangleProfile one(cover[c], q, settings.spacing);
    const TriangleProfile other(cover[c].swapped(), q, settings.spacing);
    // In units of W: at z < 1 H_{1/z}(A‖B) z, at z > 1 H_z(B‖A).
    std::vector<double> below(half), above(half);
    for (std::size_t i = 0; i < half; ++i) {
      const double loss = step_ * static_cast<double>(points[i]);
      below[i] = one.upper(loss) / z[i];
      above[i] = other.upper(loss);
    }
    below[0] = above[0] = std::max(below[0], above[0]);
    falling_hull(z, above);
    hull_through_origin(z, below);
    const auto j = static_cast<Eigen::Index>(2 * c);
    for (std::size_t i = 0; i < half; ++i) {
      const double balance = std::exp(-0.5 * step_ * static_cast<double>(points[i]));
      profiles(row(1, i), j) = profiles(row(-1, i), j + 1) = above[i] * balance;
      profiles(row(-1, i), j) = profiles(row(1, i), j + 1) = below[i] / balance;
    }
  });
  for (Eigen::Index j = 0; j < profiles.cols(); ++j) {
    // Convex at z = 1, too: else the pair would have no mass at loss 0.
    const double left = (profiles(row(0, 0), j) - profiles(row(-1, 1), j) * std::exp(-0.5 * step_)) / -std::expm1(-step_);
    const double right = (profiles(row(1, 1), j) * std::exp(0.5 * step_) - profiles(row(0, 0), j)) / std::expm1(step_);
    if (!(left <= right + 1.0)) throw OutOfReach("a step's privacy loss has no mass at 0 on so wide a grid");
  }

  // An orthonormal basis of the profiles relative to the largest at each point, by the profile that is furthest from it each time.
  const Eigen::VectorXd envelope = profiles.rowwise().maxCoeff();
  Eigen::MatrixXd rest = envelope.cwiseInverse().asDiagonal() * profiles;
  const Eigen::MatrixXd relative = rest;
  Eigen::MatrixXd all(rows, 0);
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
  // Turned so that the first members are those that many rounds, which smooth, leave most of: the others need not be evaluated then.
  constexpr int smooth = 121;
  Eigen::MatrixXd smoothed(smooth, rows);
  for (int t = 0; t < smooth; ++t)
    for (std::size_t i = 0; i < half; ++i)
      for (const int side : {-1, 1}) {
        const double width = 0.5 * static_cast<double>(points[std::min(i + 1, half - 1)] - points[i == 0 ? 0 : i - 1]);
        const double place = (side * static_cast<double>(points[i]) - fine * (t - smooth / 2)) / (2.0 * fine);
        smoothed(t, row(side, i)) = width * std::exp(-0.5 * place * place);
      }
  const Eigen::MatrixXd seen = smoothed * envelope.asDiagonal() * all;
  all *= Eigen::BDCSVD<Eigen::MatrixXd>(seen, Eigen::ComputeFullV).matrixV();
  // One more: the envelope times what is left, which is added to every profile. So they are bounds again.
  const auto ranks = all.cols() + 1;
  ranks_ = static_cast<std::size_t>(ranks);
  coefficients_.resize(kernels_ * ranks_);
  Eigen::Map<Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>> table(coefficients_.data(), static_cast<Eigen::Index>(kernels_), ranks);
  table.leftCols(ranks - 1) = relative.transpose() * all;
  table.rightCols(1).setOnes();
  const auto of_others = table.leftCols(ranks - 1);
  const double magnitude = (of_others.cwiseAbs() * all.cwiseAbs().colwise().maxCoeff().transpose()).maxCoeff();
  const double residual = (relative - all * of_others.transpose()).cwiseAbs().maxCoeff() + static_cast<double>(ranks + 8) * 8.0 * unit * (magnitude + 1.0);
  all.conservativeResize(Eigen::NoChange, ranks);
  all.rightCols(1).setConstant(residual);
  all = (envelope.asDiagonal() * all).eval();

  // On every n of the grid: straight lines in z, in the units of W.
  const auto length = static_cast<std::size_t>(2 * reach_ + 1);
  basis_.assign(ranks_ * length, 0.0);
  double widest = 0.0;  // of a cell, in loss
  in_parallel(ranks_, [&](std::size_t l) {
    auto* out = basis_.data() + l * length + reach_;
    const auto at = [&](int side, std::size_t i) {
      return all(row(side, i), static_cast<Eigen::Index>(l)) * std::exp(side * 0.5 * step_ * static_cast<double>(points[i]));
    };
    for (const int side : {-1, 1})
      for (std::size_t i = 0; i + 1 < half; ++i) {
        const double near = at(side, i);
        const double far = at(side, i + 1);
        const double all_of_it = std::expm1(side * step_ * static_cast<double>(points[i + 1] - points[i]));
        for (auto n = points[i]; n <= points[i + 1]; ++n) {
          const double share = std::expm1(side * step_ * static_cast<double>(n - points[i])) / all_of_it;
          out[side * n] = (near + share * (far - near)) * std::exp(-side * 0.5 * step_ * static_cast<double>(n));
        }
      }
  });
  for (std::size_t i = 0; i + 1 < half; ++i) widest = std::max(widest, step_ * static_cast<double>(points[i + 1] - points[i]));

  // A profile at a loss that is rounded: its slope in the loss is at most 1 in these units.
  kernel_error_ = std::max(profiles.row(0).maxCoeff(), profiles.row(rows - 1).maxCoeff()) + 8.0 * unit;
  // Twice what is left, between points at most the larger end's value times e^{width/2}.
  kernel_excess_ = 2.0 * residual * envelope.maxCoeff() * std::exp(0.5 * widest) * (1.0 + 1e-12);
  // Σ_n h̃(n), h̃ between two points at most the larger end's value times e^{width/2}.
  for (Eigen::Index j = 0; j < profiles.cols(); ++j) {
    double sum = 0.0;
    for (std::size_t i = 0; i < half; ++i)
      for (const int side : {-1, 1}) sum += (profiles(row(side, i), j) + 2.0 * residual * envelope(row(side, i))) * static_cast<double>(points[std::min(i + 1, half - 1)] - points[i] + 1);
    kernel_mass_ = std::max(kernel_mass_, sum * std::exp(0.5 * widest) * (1.0 + 1e-6));
  }
}

/// Rounds on one circle. Lists of the pairs that may be the maximum are kept from round to round.
class AdaptiveGame::Rounds {
 public:
  Rounds(const AdaptiveGame& game, std::int64_t window)
      : game_(game),
        size_(fourier::good_size(2 * window + game.reach_ + 4)),
        ranks_(static_cast<Eigen::Index>(game.ranks_)),
        kernels_(static_cast<Eigen::Index>(game.kernels_)),
        coefficients_(game.coefficients_.data(), kernels_, ranks_),
        most_(coefficients_.cwiseAbs().colwise().maxCoeff()),
        spectra_(game.ranks_),
        heights_(game.ranks_) {
    const auto reach = game.reach_;
    in_parallel(game.ranks_, [&](std::size_t l) {
      auto& buffer = spectra_[l];
      buffer.assign(static_cast<std::size_t>(size_) + 2, 0.0);
      const auto* b = game_.basis_.data() + l * static_cast<std::size_t>(2 * reach + 1) + reach;
      for (auto n = -reach; n <= reach; ++n) buffer[static_cast<std::size_t>((n + size_) % size_)] = b[n];
      fourier::forward(buffer.data(), size_);
      double height = 0.0;
      for (std::size_t f = 0; f + 1 < buffer.size(); f += 2) height = std::max(height, std::hypot(buffer[f], buffer[f + 1]));
      heights_[l] = height;
    });
  }

  /// D̃ of one more round from `before` (n ≥ 0), for 0 ≤ n ≤ last; and e_t.
  std::pair<std::vector<double>, double> next(const std::vector<double>& before, std::int64_t last) {
    const auto n = static_cast<double>(size_);
    const double transform_error = 8.0 * std::log2(n) * unit;  // relative, in the Euclidean norm

    const auto at = [&](std::int64_t k) {
      const auto i = static_cast<std::size_t>(std::abs(k));
      return i < before.size() ? before[i] : 0.0;
    };
    const SecondDifference difference(game_.step_);
    measure_.assign(static_cast<std::size_t>(size_) + 2, 0.0);
    double mass = 0.0;
    double negative = 0.0;  // Σ μ̃⁻
    double squares = 0.0;
    double largest = 0.0;
    const auto end = static_cast<std::int64_t>(before.size());
    for (std::int64_t k = -end; k <= end; ++k) {
      const double m = difference(at, k);
      measure_[static_cast<std::size_t>((k + size_) % size_)] = m;
      mass += std::abs(m);
      negative += std::max(0.0, -m);
      squares += m * m;
      largest = std::max(largest, at(k));
    }
    const double measure_error = 8.0 * unit * (largest * difference.scale() * 2.0 + 1.0);  // of each
    fourier::forward(measure_.data(), size_);

    // Basis functions that add next to nothing in this round, by |g_l| ≤ (1/N) Σ |b̂_l| |μ̂|.
    std::vector<double> bounds(game_.ranks_);
    in_parallel(game_.ranks_, [&](std::size_t l) {
      const auto& b = spectra_[l];
      double sum = 0.0;
      for (std::size_t f = 0; f + 1 < b.size(); f += 2) {
        const double product = std::sqrt((b[f] * b[f] + b[f + 1] * b[f + 1]) * (measure_[f] * measure_[f] + measure_[f + 1] * measure_[f + 1]));
        sum += f == 0 || f + 2 == b.size() ? product : 2.0 * product;
      }
      bounds[l] = most_(static_cast<Eigen::Index>(l)) * sum / n * (1.0 + 1e-10);
    });
    std::vector<std::size_t> order(game_.ranks_);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return bounds[a] < bounds[b]; });
    double dropped = 0.0;
    std::size_t drops = 0;
    while (drops < order.size() && dropped + bounds[order[drops]] <= left_out) dropped += bounds[order[drops++]];
    active_.assign(order.begin() + static_cast<std::ptrdiff_t>(drops), order.end());
    std::sort(active_.begin(), active_.end());
    double transforms = 0.0;
    for (std::size_t l = 0; l < game_.ranks_; ++l)
      transforms += most_(static_cast<Eigen::Index>(l)) * 3.0 * transform_error * heights_[l] * std::sqrt(squares);

    // g_l = b_l * μ̃.
    const auto rows = static_cast<Eigen::Index>(last + 1);
    convolved_.setZero(rows, ranks_);
    in_parallel(active_.size(), [&](std::size_t i) {
      const auto l = active_[i];
      thread_local std::vector<double> buffer;
      buffer.resize(static_cast<std::size_t>(size_) + 2);
      const auto& b = spectra_[l];
      for (std::size_t f = 0; f + 1 < b.size(); f += 2) {
        buffer[f] = b[f] * measure_[f] - b[f + 1] * measure_[f + 1];
        buffer[f + 1] = b[f] * measure_[f + 1] + b[f + 1] * measure_[f];
      }
      fourier::backward(buffer.data(), size_);
      for (Eigen::Index k = 0; k < rows; ++k) convolved_(k, static_cast<Eigen::Index>(l)) = buffer[static_cast<std::size_t>(k)] / n;
    });

    active_coefficients_ = columns_of(active_.size(), static_cast<std::size_t>(kernels_));
    for (std::size_t i = 0; i < active_.size(); ++i)
      for (Eigen::Index j = 0; j < kernels_; ++j)
        active_coefficients_.entries[i * active_coefficients_.stride + static_cast<std::size_t>(j)] = coefficients_(j, static_cast<Eigen::Index>(active_[i]));

    std::vector<double> out(static_cast<std::size_t>(rows));
    for (std::size_t k = 0; k < out.size(); ++k) out[k] = k < before.size() ? before[k] : 0.0;
    const auto blocks = static_cast<std::size_t>((rows + block_rows - 1) / block_rows);
    if (lists_.size() < blocks) lists_.resize(blocks);
    in_parallel(blocks, [&](std::size_t b) { add_maxima(b, rows, out); });
    const double terms = (convolved_.cwiseAbs() * most_.transpose()).maxCoeff();
    // (Of each product's sum, also where a list of candidates rests on one, and of each addition to D̃.)
    const double sums = 3.0 * (static_cast<double>(ranks_) + 8.0) * unit * terms + 2.0 * unit * (largest + terms);
    const double error = game_.kernel_error_ * (mass + 1.0) + game_.kernel_excess_ * negative + measure_error * game_.kernel_mass_ + transforms + dropped + left_out + sums;
    return {std::move(out), error};
  }

 private:
  /// Of a block of rows: the pairs by how far g may turn before they may be the maximum, as of the round in which all were evaluated.
  struct List {
    Eigen::MatrixXd then;                              ///< g of that round
    Eigen::RowVectorXd scale;                          ///< of g's entries
    std::vector<std::pair<double, Eigen::Index>> turn;  ///< rising
  };

  /// out(n) += max_j c_j · g(n) for the block's rows.
  void add_maxima(std::size_t block, Eigen::Index all_rows, std::vector<double>& out) {
    const auto first = static_cast<Eigen::Index>(block) * block_rows;
    const auto rows = std::min(block_rows, all_rows - first);
    const auto now = convolved_.middleRows(first, rows);
    // Next to nothing: charged as left out, in the place of being computed.
    if ((now.cwiseAbs() * most_.transpose()).maxCoeff() <= left_out) return;
    auto& list = lists_[block];
    std::size_t count = 0;
    if (list.then.rows() == rows) {
      // How far g has turned: |g − λ g_then| / λ in scaled entries, λ > 0.
      double turned = 0.0;
      for (Eigen::Index k = 0; k < rows && std::isfinite(turned); ++k) {
        const Eigen::RowVectorXd a = list.then.row(k).cwiseQuotient(list.scale);
        const Eigen::RowVectorXd b = now.row(k).cwiseQuotient(list.scale);
        const double factor = a.dot(b) / a.squaredNorm();
        turned = factor > 0.0 ? std::max(turned, (b - factor * a).norm() / factor) : std::numeric_limits<double>::infinity();
      }
      turned = turned * (1.0 + 1e-6) + 1e-9;
      count = static_cast<std::size_t>(std::upper_bound(list.turn.begin(), list.turn.end(), turned, [](double t, const auto& e) { return t < e.first; }) - list.turn.begin());
      if (3 * count > list.turn.size()) count = 0;
    }
    if (count == 0) {
      evaluate_all(list, now, first, out);
      return;
    }
    thread_local std::vector<double> mine, values;
    mine.resize(static_cast<std::size_t>(rows) * active_.size());
    for (Eigen::Index k = 0; k < rows; ++k)
      for (std::size_t i = 0; i < active_.size(); ++i) mine[static_cast<std::size_t>(k) * active_.size() + i] = now(k, static_cast<Eigen::Index>(active_[i]));
    auto few = columns_of(active_.size(), count);
    for (std::size_t i = 0; i < active_.size(); ++i) {
      const double* const of_rank = active_coefficients_.entries.data() + i * active_coefficients_.stride;
      for (std::size_t c = 0; c < count; ++c) few.entries[i * few.stride + c] = of_rank[list.turn[c].second];
    }
    values.resize(static_cast<std::size_t>(rows) * few.stride);
    multiply(mine.data(), static_cast<std::size_t>(rows), active_.size(), few, values.data());
    for (Eigen::Index k = 0; k < rows; ++k) {
      const double* const row = values.data() + static_cast<std::size_t>(k) * few.stride;
      out[static_cast<std::size_t>(first + k)] += std::max(0.0, *std::max_element(row, row + count));
    }
  }

  void evaluate_all(List& list, const Eigen::Ref<const Eigen::MatrixXd>& now, Eigen::Index first, std::vector<double>& out) {
    const auto rows = now.rows();
    using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    RowMajor mine(rows, static_cast<Eigen::Index>(active_.size()));
    for (std::size_t i = 0; i < active_.size(); ++i) mine.col(static_cast<Eigen::Index>(i)) = now.col(static_cast<Eigen::Index>(active_[i]));
    RowMajor all(rows, static_cast<Eigen::Index>(active_coefficients_.stride));
    multiply(mine.data(), static_cast<std::size_t>(rows), active_.size(), active_coefficients_, all.data());
    const auto values = all.leftCols(kernels_);
    std::vector<Eigen::Index> winners(static_cast<std::size_t>(rows));
    double highest = 0.0;
    for (Eigen::Index k = 0; k < rows; ++k) {
      const double most = values.row(k).maxCoeff(&winners[static_cast<std::size_t>(k)]);
      out[static_cast<std::size_t>(first + k)] += std::max(0.0, most);
      highest = std::max(highest, most);
    }
    list.then = now;
    // Entries that hardly count are not told from 0.
    list.scale = now.cwiseAbs().colwise().maxCoeff();
    for (Eigen::Index l = 0; l < ranks_; ++l) list.scale(l) = std::max({list.scale(l), 1e-4 * highest / std::max(most_(l), 1e-300), 1e-300});
    Eigen::VectorXd turn = Eigen::VectorXd::Constant(kernels_, std::numeric_limits<double>::infinity());
    std::vector<Eigen::Index> distinct = winners;
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    for (const auto w : distinct) {
      Eigen::VectorXd distance(kernels_);
      const Eigen::RowVectorXd winner = coefficients_.row(w);
      for (Eigen::Index j = 0; j < kernels_; ++j) distance(j) = (winner - coefficients_.row(j)).cwiseProduct(list.scale).norm();
      for (Eigen::Index k = 0; k < rows; ++k) {
        if (winners[static_cast<std::size_t>(k)] != w) continue;
        for (Eigen::Index j = 0; j < kernels_; ++j)
          if (distance(j) > 0.0) turn(j) = std::min(turn(j), (values(k, w) - values(k, j)) / distance(j));
      }
      turn(w) = 0.0;
    }
    list.turn.clear();
    for (Eigen::Index j = 0; j < kernels_; ++j) list.turn.emplace_back(turn(j), j);
    std::sort(list.turn.begin(), list.turn.end());
  }

  const AdaptiveGame& game_;
  std::int64_t size_;
  Eigen::Index ranks_, kernels_;
  Eigen::Map<const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>> coefficients_;
  Eigen::RowVectorXd most_;  ///< max_j |c_jl|
  std::vector<std::vector<double>> spectra_;
  std::vector<double> heights_;  ///< max |b̂_l|
  std::vector<double> measure_;
  std::vector<std::size_t> active_;        ///< basis functions that count in this round
  Columns active_coefficients_;            ///< of these: active × kernels
  Eigen::MatrixXd convolved_;
  std::vector<List> lists_;
};

void AdaptiveGame::play(std::size_t rounds) {
  const auto window_at = [&](std::size_t t) {
    const double width = static_cast<double>(reach_) + 9.5 * deviation_ * std::sqrt(static_cast<double>(t)) / step_;
    if (width > static_cast<double>(most_points)) throw OutOfReach(cat("the privacy loss of ", t, " steps spans ", width * step_, ", too far for a grid of distance ", step_));
    return static_cast<std::int64_t>(std::ceil(width));
  };
  while (profiles_->rounds() < rounds) {
    // Circles grow fourfold in rounds, so that early ones are cheap; by the round alone, however the game is asked.
    std::size_t end = 16;
    while (end <= profiles_->rounds()) end *= 4;
    Rounds stage(*this, window_at(end));
    for (end = std::min(end, rounds); profiles_->rounds() < end;) {
      auto [values, error] = stage.next(last_, window_at(profiles_->rounds() + 1));
      const double edge = last_.back();
      last_ = std::move(values);
      error_ = (error_ + error + edge) * (1.0 + 4.0 * unit);
      profiles_->add(last_, error_);
    }
  }
}

}  // namespace tsdp::privacy
