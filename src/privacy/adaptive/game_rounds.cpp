// The rounds of the adaptive game.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include <Eigen/Dense>

#include "adaptive_game.h"
#include "balanced.h"
#include "in_parallel.h"
#include "privacy/accountant/fourier.h"
#include "privacy/terms/numbers.h"
#include "privacy/terms/out_of_reach.h"
#include "row_products.h"
#include "tsdp/base/text.h"

namespace tsdp::privacy {
namespace {

/// Terms up to this are left out, and charged in every round.
constexpr double left_out = 3e-15;
/// Rows that share a list of the pairs that may be the maximum.
constexpr Eigen::Index block_rows = 64;

}  // namespace

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
        heights_(game.ranks_),
        norms_(game.ranks_),
        bands_(game.ranks_),
        convolved_(Eigen::MatrixXd::Zero(static_cast<Eigen::Index>(window + 1), ranks_)),
        all_columns_(columns_of(game.ranks_, game.kernels_)),
        squared_columns_(columns_of(game.ranks_, game.kernels_)) {
    for (Eigen::Index l = 0; l < ranks_; ++l)
      for (Eigen::Index j = 0; j < kernels_; ++j) {
        const auto place = static_cast<std::size_t>(l) * all_columns_.stride + static_cast<std::size_t>(j);
        all_columns_.entries[place] = coefficients_(j, l);
        squared_columns_.entries[place] = coefficients_(j, l) * coefficients_(j, l);
      }
    const auto reach = game.reach_;
    in_parallel(game.ranks_, [&](std::size_t l) {
      auto& buffer = spectra_[l];
      buffer.assign(static_cast<std::size_t>(size_) + 2, 0.0);
      const auto* b = game_.basis_.data() + l * static_cast<std::size_t>(2 * reach + 1) + reach;
      double squares = 0.0;
      for (auto n = -reach; n <= reach; ++n) {
        buffer[static_cast<std::size_t>((n + size_) % size_)] = b[n];
        squares += b[n] * b[n];
      }
      norms_[l] = std::sqrt(squares) * (1.0 + 1e-9);
      fourier::forward(buffer.data(), size_);
      auto& bands = bands_[l];
      bands.assign(band_of(buffer.size() - 2) + 1, 0.0);
      for (std::size_t f = 0; f + 1 < buffer.size(); f += 2) {
        auto& band = bands[band_of(f)];
        band = std::max(band, std::hypot(buffer[f], buffer[f + 1]));
      }
      heights_[l] = *std::max_element(bands.begin(), bands.end());
    });
  }

  /// D̃ of one more round from `before` (n ≥ 0), for 0 ≤ n ≤ last; and e_t.
  std::pair<std::vector<double>, double> next(const std::vector<double>& before, std::int64_t last) {
    const auto n = static_cast<double>(size_);
    const double transform_error = 8.0 * std::log2(n) * roundoff;  // relative, in the Euclidean norm
    const auto measure = transform_measure(before);
    const double dropped = drop_small();
    double transforms = 0.0;
    for (std::size_t l = 0; l < game_.ranks_; ++l)
      transforms += most_(static_cast<Eigen::Index>(l)) * transform_error *
                    (3.0 * heights_[l] * std::sqrt(measure.squares) + 2.0 * norms_[l] * measure.mass);
    const auto rows = static_cast<Eigen::Index>(last + 1);
    convolve(rows);

    std::vector<double> out(static_cast<std::size_t>(rows));
    for (std::size_t k = 0; k < out.size(); ++k) out[k] = k < before.size() ? before[k] : 0.0;
    const auto blocks = static_cast<std::size_t>((rows + block_rows - 1) / block_rows);
    if (lists_.size() < blocks) lists_.resize(blocks);
    std::vector<double> terms_of(blocks, 0.0);
    in_parallel(blocks, [&](std::size_t b) { terms_of[b] = add_maxima(b, rows, out); });
    const double terms = *std::max_element(terms_of.begin(), terms_of.end());
    // The rounding of each product's sum, also where a list of candidates rests on one, and of each addition to D̃.
    const double sums =
        3.0 * (static_cast<double>(ranks_) + 8.0) * roundoff * terms + 2.0 * roundoff * (measure.largest + terms);
    const double error = game_.kernel_error_ * (measure.mass + 1.0) + game_.kernel_excess_ * measure.negative +
                         measure.error * game_.kernel_mass_ + transforms + dropped + left_out + sums;
    return {std::move(out), error};
  }

 private:
  /// The pairs of a block of rows, sorted by how far g may turn before they may be the maximum, as of the round in
  /// which all were evaluated.
  struct List {
    Eigen::MatrixXd then;  ///< g of that round
    Eigen::RowVectorXd scale;  ///< of g's entries
    std::vector<std::pair<double, Eigen::Index>> turn;  ///< rising
  };

  /// Sums of μ̃, to nearest, which e_t is made of.
  struct Measure {
    double mass = 0.0;  ///< Σ|μ̃|
    double negative = 0.0;  ///< Σ μ̃⁻
    double squares = 0.0;
    double largest = 0.0;  ///< D̃ of the round before
    double error = 0.0;  ///< of each μ̃(n), from above
  };

  /// Frequencies that share a bound of a spectrum; `f` is a place in it.
  static std::size_t band_of(std::size_t f) { return f / 32; }

  /// Makes `measure_` the transform of μ̃, of the round before, to nearest.
  Measure transform_measure(const std::vector<double>& before) {
    const auto at = [&](std::int64_t k) {
      const auto i = static_cast<std::size_t>(std::abs(k));
      return i < before.size() ? before[i] : 0.0;
    };
    const SecondDifference difference(game_.step_);
    measure_.assign(static_cast<std::size_t>(size_) + 2, 0.0);
    Measure sums;
    const auto end = static_cast<std::int64_t>(before.size());
    for (std::int64_t k = -end; k <= end; ++k) {
      const double m = difference(at, k);
      measure_[static_cast<std::size_t>((k + size_) % size_)] = m;
      sums.mass += std::abs(m);
      sums.negative += std::max(0.0, -m);
      sums.squares += m * m;
      sums.largest = std::max(sums.largest, at(k));
    }
    sums.error = 8.0 * roundoff * (sums.largest * difference.scale() * 2.0 + 1.0);
    fourier::forward(measure_.data(), size_);
    // μ̃ is even, so its transform is real, and any imaginary part is rounding. Each real part is stored twice, for
    // products with both parts of a spectrum.
    for (std::size_t f = 0; f + 1 < measure_.size(); f += 2) measure_[f + 1] = measure_[f];
    return sums;
  }

  /// Leaves out basis functions that add next to nothing in this round; returns the most that they add, from above
  /// (e_drop, Section 6).
  double drop_small() {
    const auto n = static_cast<double>(size_);
    // By |g_l| ≤ (1/N) Σ |b̂_l| |μ̂|, where b̂_l is at most its largest value in a band.
    std::vector<double> band_sums(bands_.front().size(), 0.0);
    for (std::size_t f = 0; f + 1 < measure_.size(); f += 2)
      band_sums[band_of(f)] += (f == 0 || f + 2 == measure_.size() ? 1.0 : 2.0) * std::abs(measure_[f]);
    std::vector<double> bounds(game_.ranks_);
    for (std::size_t l = 0; l < game_.ranks_; ++l)
      bounds[l] = most_(static_cast<Eigen::Index>(l)) *
                  std::inner_product(band_sums.begin(), band_sums.end(), bands_[l].begin(), 0.0) / n * (1.0 + 1e-10);
    std::vector<std::size_t> order(game_.ranks_);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return bounds[a] < bounds[b]; });
    double dropped = 0.0;
    std::size_t drops = 0;
    while (drops < order.size() && dropped + bounds[order[drops]] <= left_out) dropped += bounds[order[drops++]];
    std::vector<std::size_t> active(order.begin() + static_cast<std::ptrdiff_t>(drops), order.end());
    std::sort(active.begin(), active.end());
    use(std::move(active));
    return dropped;
  }

  /// g_l = b_l * μ̃ of the active basis functions, in the first `rows` rows, to nearest: it is off by at most e_l
  /// (Section 6).
  void convolve(Eigen::Index rows) {
    const auto n = static_cast<double>(size_);
    in_parallel(active_.size(), [&](std::size_t i) {
      const auto l = active_[i];
      thread_local std::vector<double> buffer;
      buffer.resize(static_cast<std::size_t>(size_) + 2);
      multiply_entries(spectra_[l], measure_, buffer);
      fourier::backward(buffer.data(), size_);
      double* const out = convolved_.col(static_cast<Eigen::Index>(l)).data();
      for (Eigen::Index k = 0; k < rows; ++k) out[k] = buffer[static_cast<std::size_t>(k)] / n;
    });
  }

  /// Makes `active` the basis functions of a round. The convolutions of the others are 0.
  void use(std::vector<std::size_t> active) {
    if (active == active_) return;
    for (const auto l : active_)
      if (!std::binary_search(active.begin(), active.end(), l)) convolved_.col(static_cast<Eigen::Index>(l)).setZero();
    active_ = std::move(active);
    active_coefficients_ = columns_of(active_.size(), game_.kernels_);
    const auto stride = static_cast<std::ptrdiff_t>(active_coefficients_.stride);
    for (std::size_t i = 0; i < active_.size(); ++i)
      std::copy_n(all_columns_.entries.begin() + static_cast<std::ptrdiff_t>(active_[i]) * stride, stride,
                  active_coefficients_.entries.begin() + static_cast<std::ptrdiff_t>(i) * stride);
  }

  /// out(n) += max_j c_j · g(n) for the block's rows. Returns the largest Σ_l c_l |g_l(n)| of them.
  double add_maxima(std::size_t block, Eigen::Index all_rows, std::vector<double>& out) {
    const auto first = static_cast<Eigen::Index>(block) * block_rows;
    const auto rows = std::min(block_rows, all_rows - first);
    const auto now = convolved_.middleRows(first, rows);
    Eigen::VectorXd terms = Eigen::VectorXd::Zero(rows);
    for (const auto l : active_)
      terms += most_(static_cast<Eigen::Index>(l)) * now.col(static_cast<Eigen::Index>(l)).cwiseAbs();
    const double most_terms = terms.maxCoeff();
    // Next to nothing: charged as left out instead of being computed.
    if (most_terms <= left_out) return most_terms;
    auto& list = lists_[block];
    std::size_t count = 0;
    if (list.then.rows() == rows) {
      const double turned = turned_since(list, now) * (1.0 + 1e-6) + 1e-9;
      count = static_cast<std::size_t>(std::upper_bound(list.turn.begin(), list.turn.end(), turned,
                                                        [](double t, const auto& e) { return t < e.first; }) -
                                       list.turn.begin());
      if (3 * count > list.turn.size()) count = 0;
    }
    if (count == 0) {
      evaluate_all(list, now, terms, first, out);
      return most_terms;
    }
    thread_local std::vector<double> mine, values;
    rows_of_active(now, mine);
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
    return most_terms;
  }

  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Rows = Eigen::Ref<const Eigen::MatrixXd, 0, Eigen::OuterStride<>>;

  /// g(n) of the block's rows, row after row, active entries only.
  void rows_of_active(const Rows& now, std::vector<double>& out) const {
    out.resize(static_cast<std::size_t>(now.rows()) * active_.size());
    Eigen::Map<RowMajor> rows(out.data(), now.rows(), static_cast<Eigen::Index>(active_.size()));
    for (std::size_t i = 0; i < active_.size(); ++i)
      rows.col(static_cast<Eigen::Index>(i)) = now.col(static_cast<Eigen::Index>(active_[i]));
  }

  /// How far g has turned since the list's round: the largest |g − λ g_then| / λ of the rows in scaled entries, for λ >
  /// 0.
  static double turned_since(const List& list, const Rows& now) {
    const auto rows = now.rows();
    Eigen::ArrayXd squares = Eigen::ArrayXd::Zero(rows);
    Eigen::ArrayXd products = squares;
    Eigen::ArrayXd rest = squares;
    for (Eigen::Index l = 0; l < now.cols(); ++l) {
      const double weight = 1.0 / (list.scale(l) * list.scale(l));
      squares += weight * list.then.col(l).array().square();
      products += weight * list.then.col(l).array() * now.col(l).array();
    }
    const Eigen::ArrayXd factor = products / squares;
    if (!(factor > 0.0).all()) return std::numeric_limits<double>::infinity();  // also if NaN
    for (Eigen::Index l = 0; l < now.cols(); ++l)
      rest += ((now.col(l).array() - factor * list.then.col(l).array()) / list.scale(l)).square();
    return (rest.sqrt() / factor).maxCoeff();
  }

  /// `terms`: Σ_l c_l |g_l(n)| of each row.
  void evaluate_all(List& list, const Rows& now, const Eigen::VectorXd& terms, Eigen::Index first,
                    std::vector<double>& out) {
    const auto rows = now.rows();
    thread_local std::vector<double> mine, products;
    rows_of_active(now, mine);
    products.resize(static_cast<std::size_t>(rows) * active_coefficients_.stride);
    multiply(mine.data(), static_cast<std::size_t>(rows), active_.size(), active_coefficients_, products.data());
    const auto values =
        Eigen::Map<const RowMajor>(products.data(), rows, static_cast<Eigen::Index>(active_coefficients_.stride))
            .leftCols(kernels_);
    std::vector<Eigen::Index> winners(static_cast<std::size_t>(rows));
    double highest = 0.0;
    for (Eigen::Index k = 0; k < rows; ++k) {
      const double most = values.row(k).maxCoeff(&winners[static_cast<std::size_t>(k)]);
      out[static_cast<std::size_t>(first + k)] += std::max(0.0, most);
      highest = std::max(highest, most);
    }
    list.then = now;
    // Entries that hardly count are not distinguished from 0.
    list.scale = now.cwiseAbs().colwise().maxCoeff();
    for (Eigen::Index l = 0; l < ranks_; ++l)
      list.scale(l) = std::max({list.scale(l), 1e-4 * highest / std::max(most_(l), 1e-300), 1e-300});
    Eigen::RowVectorXd turn = Eigen::RowVectorXd::Constant(kernels_, std::numeric_limits<double>::infinity());
    std::vector<Eigen::Index> distinct = winners;
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    const auto inverse_distances = inverse_distances_to(distinct, list.scale);
    for (std::size_t i = 0; i < distinct.size(); ++i)
      for (Eigen::Index k = 0; k < rows; ++k) {
        const auto w = winners[static_cast<std::size_t>(k)];
        if (w != distinct[i]) continue;
        // Gaps from below: both products are off by a unit or so of `terms` for each rank. A row of zeros makes every
        // turn 0.
        const double rounding = 4.0 * (static_cast<double>(ranks_) + 8.0) * roundoff * terms(k);
        turn = turn.cwiseMin((values(k, w) - values.row(k).array() - rounding)
                                 .max(0.0)
                                 .matrix()
                                 .cwiseProduct(inverse_distances.row(static_cast<Eigen::Index>(i))));
      }
    for (const auto w : distinct) turn(w) = 0.0;
    list.turn.clear();
    for (Eigen::Index j = 0; j < kernels_; ++j) list.turn.emplace_back(turn(j), j);
    std::sort(list.turn.begin(), list.turn.end());
  }

  /// Lower bounds of 1/|c_w − c_j| in entries times `scale`, one row for each w.
  [[nodiscard]] RowMajor inverse_distances_to(const std::vector<Eigen::Index>& pairs,
                                              const Eigen::RowVectorXd& scale) const {
    const Eigen::RowVectorXd squared_scale = scale.cwiseAbs2();
    const auto count = static_cast<Eigen::Index>(pairs.size());
    const auto stride = static_cast<Eigen::Index>(all_columns_.stride);
    RowMajor left(count, ranks_), products(count, stride), squares(1, stride);
    for (Eigen::Index i = 0; i < count; ++i)
      left.row(i) = coefficients_.row(pairs[static_cast<std::size_t>(i)]).cwiseProduct(squared_scale);
    multiply(left.data(), pairs.size(), game_.ranks_, all_columns_, products.data());
    multiply(squared_scale.data(), 1, game_.ranks_, squared_columns_, squares.data());
    RowMajor out(count, kernels_);
    // |a − b|² = |a|² + |b|² − 2ab, off by some units of the first two for each term.
    const double rounding = 8.0 * (static_cast<double>(ranks_) + 8.0) * roundoff;
    for (Eigen::Index i = 0; i < count; ++i) {
      const double own = squares(pairs[static_cast<std::size_t>(i)]);
      const auto both = own + squares.leftCols(kernels_).array();
      out.row(i) = (((both - 2.0 * products.row(i).leftCols(kernels_).array()).max(0.0) + rounding * both)
                        .max(1e-300)
                        .sqrt()
                        .inverse() *
                    (1.0 - 1e-12))
                       .matrix();
    }
    return out;
  }

  const AdaptiveGame& game_;
  std::int64_t size_;
  Eigen::Index ranks_, kernels_;
  Eigen::Map<const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>> coefficients_;
  Eigen::RowVectorXd most_;  ///< max_j |c_jl|
  std::vector<std::vector<double>> spectra_;
  std::vector<double> heights_;  ///< max |b̂_l|
  std::vector<double> norms_;  ///< ‖b_l‖₂
  std::vector<std::vector<double>> bands_;  ///< max |b̂_l| in every band of frequencies
  std::vector<double> measure_;
  Eigen::MatrixXd convolved_;  ///< g, a column for each member; as many rows as the circle serves
  Columns all_columns_, squared_columns_;  ///< c and its squares, ranks × kernels
  std::vector<std::size_t> active_;  ///< basis functions that count in this round
  Columns active_coefficients_;  ///< of these: active × kernels
  std::vector<List> lists_;
};

void AdaptiveGame::play(std::size_t rounds) {
  const auto window_at = [&](std::size_t t) {
    const double width = static_cast<double>(reach_) + 9.5 * deviation_ * std::sqrt(static_cast<double>(t)) / step_;
    if (width > static_cast<double>(most_points))
      throw OutOfReach(
          cat("the privacy loss of ", t, " steps spans ", width * step_, ", too far for a grid of distance ", step_));
    return static_cast<std::int64_t>(std::ceil(width));
  };
  while (profiles_->rounds() < rounds) {
    // Circles grow fourfold in rounds, so that early ones are cheap. They depend on the round alone, not on how the
    // game is asked.
    std::size_t end = 16;
    while (end <= profiles_->rounds()) end *= 4;
    Rounds stage(*this, window_at(end));
    for (end = std::min(end, rounds); profiles_->rounds() < end;) {
      auto [values, error] = stage.next(last_, window_at(profiles_->rounds() + 1));
      const double edge = last_.back();
      last_ = std::move(values);
      error_ = (error_ + error + edge) * (1.0 + 4.0 * roundoff);
      profiles_->add(last_, error_);
    }
  }
}

}  // namespace tsdp::privacy
