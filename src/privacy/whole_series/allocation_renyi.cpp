#include "allocation_renyi.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <utility>

#include "privacy/terms/numbers.h"

namespace tsdp::privacy {
namespace {

/// n over k.
double binomial(double n, double k) {
  return std::exp(std::lgamma(n + 1.0) - std::lgamma(k + 1.0) - std::lgamma(n - k + 1.0));
}

/// H = G^{(p)}/σ² inside the cyclic band, rounded up, and τ/σ².
class Band {
 public:
  Band(const Gram& gram, double sigma, std::int64_t bands)
      : gram_(gram),
        bands_(bands),
        beyond_(gram.largest_beyond(bands)),
        inverse_(1.0 / (sigma * sigma) * (1.0 + 8.0 * roundoff)) {
    for (std::int64_t i = 0; i < gram.bins(); ++i)
      for (std::int64_t d = 0; d < std::min(bands, gram.bins()); ++d)
        largest_ = std::max(largest_, at(i, (i + d) % gram.bins()));
  }
  [[nodiscard]] double at(std::int64_t i, std::int64_t j) const {
    const auto distance = std::abs(i - j);
    if (std::min(distance, gram_.bins() - distance) >= bands_) return 0.0;
    const double entry = gram_.at(i, j);
    return (std::max(entry - beyond_, 0.0) + (beyond_ > 0.0 ? 2.0 * roundoff * entry : 0.0)) * inverse_;
  }
  [[nodiscard]] double beyond() const { return beyond_ * inverse_; }
  [[nodiscard]] double largest() const { return largest_; }
  /// Whether the first bins meet the last ones around the cycle.
  [[nodiscard]] bool is_cyclic() const {
    for (std::int64_t i = 0; i + 1 < bands_; ++i)
      for (std::int64_t j = std::max(gram_.bins() - bands_ + 1 + i, i + bands_); j < gram_.bins(); ++j)
        if (at(i, j) > 0.0) return true;
    return false;
  }

 private:
  const Gram& gram_;
  std::int64_t bands_;
  double beyond_, inverse_, largest_ = 0.0;
};

/// Bins grouped by the diagonal entries of H: how many, and the largest of those that count as one.
using Classes = std::map<std::int64_t, std::pair<double, std::uint64_t>>;

/// W_α b^{−α} for one band: a product of b polynomials, those of equal bins by squaring. Long double: terms reach
/// e^{α²H/2}.
std::vector<long double> independent_sums(const Classes& classes, std::int64_t bins, std::int64_t most) {
  using Polynomial = std::vector<long double>;
  const auto size = static_cast<std::size_t>(most) + 1;
  const auto product = [&](const Polynomial& a, const Polynomial& b) {
    Polynomial out(size, 0.0L);
    for (std::size_t i = 0; i < size; ++i)
      for (std::size_t j = 0; i + j < size; ++j) out[i + j] += a[i] * b[j];
    return out;
  };
  Polynomial all(size, 0.0L);
  all[0] = 1.0L;
  for (const auto& [unused, member] : classes) {
    Polynomial power(size);
    long double falling = 1.0L;  // 1/(t! b^t)
    for (std::size_t t = 0; t < size; ++t) {
      const auto n = static_cast<long double>(t);
      if (t > 0) falling /= n * static_cast<long double>(bins);
      power[t] = falling * std::exp(static_cast<long double>(member.first) * n * (n - 1.0L) / 2.0L);
    }
    for (auto left = member.second; left > 0; left >>= 1) {
      if ((left & 1) != 0) all = product(all, power);
      if (left > 1) power = product(power, power);
    }
  }
  return all;
}

/// Classes of a band's diagonal. Entries that hardly differ count as the largest of them: those within a rounding, or,
/// where there are many, within 1e-4.
Classes classes_of(const Band& band, std::int64_t bins, std::int64_t most) {
  const double grain = static_cast<double>(bins) * static_cast<double>(most * most) < 3e7 ? 1e12 : 1e4;
  Classes classes;
  for (std::int64_t i = 0; i < bins; ++i) {
    const double h = band.at(i, i);
    auto& [largest, count] = classes[static_cast<std::int64_t>(std::ceil(std::log(std::max(h, 1e-300)) * grain))];
    largest = std::max(largest, h);
    ++count;
  }
  return classes;
}

/// R_α from such sums; `h`: the largest entry of H.
/// Rounding that affects a term: that of at most α bins with balls, each a few exponentials of exponents up to h α²,
/// and that of sums.
std::vector<double> divergences_of(const std::vector<long double>& sums, double h, std::int64_t bins, double beyond) {
  std::vector<double> out(sums.size(), infinity);
  const auto order = static_cast<double>(sums.size() - 1);
  const auto b = static_cast<double>(bins);
  const double relative =
      2.0 * roundoff *
      (order * 4.0 * (h * order * order + 64.0 + order * std::log(b)) + 8.0 * b * (order + 2.0) + 4.0 * (order + 2.0));
  for (std::size_t a = 2; a < sums.size(); ++a) {
    if (!std::isfinite(sums[a]) || !(sums[a] > 1e-4000L)) continue;
    const auto alpha = static_cast<double>(a);
    const double log_moment =
        static_cast<double>(std::log(sums[a])) + std::lgamma(alpha + 1.0) * (1.0 + 16.0 * roundoff);
    const double value = (log_moment + relative) / (alpha - 1.0) + 0.5 * beyond * alpha;
    if (std::isfinite(value)) out[a] = std::max(0.0, value) * (1.0 + 16.0 * roundoff);
  }
  return out;
}

/// The dynamic program on bins first … b − 1, with windows of w ≥ 1 counts.
///
/// State: window s = (s_1 … s_w), the oldest first, and m, the sum of what came before it. With n = m + |s| balls put
/// it holds
///   U = n! W b^{−n} e^{−h n(n−1)/2},   h the largest entry of H,
/// at most 1 up to fields, so that no number leaves the range of doubles where the answer does not. Putting t balls
/// into the next bin,
///   U′ += U · (n + t over t) e^{(H_κκ − h) t(t−1)/2 − t log b} Π_i e^{t (H_i − h) s_i} e^{−h t m} e^{t field}.
class Windows {
 public:
  Windows(const Band& band, std::int64_t bins, std::int64_t w, std::int64_t most)
      : band_(band), bins_(bins), w_(w), most_(most), side_(static_cast<std::size_t>(most) + 1) {
    std::vector<std::int64_t> tuple(static_cast<std::size_t>(w), 0);
    enumerate(tuple, 0, most);
    for (const auto& [key, rank] : ranks_) {
      auto rest = key;
      const auto first = rest.front();
      rest.erase(rest.begin());
      if (first == 0) rests_.push_back({rest, {}, {}, 0});
      static_cast<void>(rank);
    }
    for (auto& r : rests_)
      for (const auto x : r.counts) r.sum += x;
    std::stable_sort(rests_.begin(), rests_.end(), [](const Rest& a, const Rest& b) { return a.sum < b.sum; });
    for (auto& r : rests_) {
      for (std::int64_t t = 0; t <= most - r.sum; ++t) {
        auto with = r.counts;
        with.insert(with.begin(), t);
        r.source.push_back(offset_[ranks_.at(with)]);
        with.erase(with.begin());
        with.push_back(t);
        r.target.push_back(offset_[ranks_.at(with)]);
      }
    }
    const double h = band.largest();
    const double log_bins = std::log(static_cast<double>(bins));
    fades_.resize(side_ * side_);
    choose_.resize(side_ * side_);
    for (std::int64_t t = 0; t <= most; ++t)
      for (std::int64_t m = 0; m <= most; ++m) {
        fades_[at(t, m)] = std::exp(-h * static_cast<double>(t) * static_cast<double>(m));
        choose_[at(t, m)] = binomial(static_cast<double>(m), static_cast<double>(t));
      }
    // For every bin κ and distance d: e^{t (H_{κ,κ−d} − h) s}; and the weight of t balls by themselves.
    own_.resize(static_cast<std::size_t>(bins) * side_);
    pulls_.resize(static_cast<std::size_t>(bins * w) * side_ * side_);
    for (std::int64_t k = 0; k < bins; ++k) {
      for (std::int64_t t = 0; t <= most; ++t) {
        const auto n = static_cast<double>(t);
        own_[static_cast<std::size_t>(k) * side_ + static_cast<std::size_t>(t)] =
            std::exp((band.at(k, k) - h) * n * (n - 1.0) / 2.0 - n * log_bins);
      }
      for (std::int64_t d = 1; d <= std::min(w, k); ++d) {
        const double less = band.at(k, k - d) - h;
        for (std::int64_t t = 0; t <= most; ++t)
          for (std::int64_t s = 0; t + s <= most; ++s)
            pulls_[pull(k, d) + at(t, s)] = std::exp(less * static_cast<double>(t) * static_cast<double>(s));
      }
    }
  }

  /// U by the number of balls, up to `most`, for bins first … b − 1, with the window empty at first. `fields`: one per
  /// bin, for all b.
  std::vector<double> sums(std::int64_t first, std::int64_t most, const std::vector<double>& fields) {
    now_.resize(cells_);
    next_.resize(cells_);
    for (const auto& rest : rests_) {
      if (rest.sum > most) break;
      for (std::int64_t s = 0; s + rest.sum <= most; ++s)
        std::fill_n(now_.data() + rest.source[static_cast<std::size_t>(s)], most - s - rest.sum + 1, 0.0);
    }
    now_[0] = 1.0;  // the empty window has rank 0
    std::vector<double> total(static_cast<std::size_t>(most) + 1);
    std::vector<double> weights(total.size());
    for (std::int64_t k = first; k < bins_; ++k) {
      const double field = fields[static_cast<std::size_t>(k)];
      for (std::int64_t t = 0; t <= most; ++t)
        weights[static_cast<std::size_t>(t)] = own_[static_cast<std::size_t>(k) * side_ + static_cast<std::size_t>(t)] *
                                               (field > 0.0 ? std::exp(field * static_cast<double>(t)) : 1.0);
      // Nothing of the bins before `first` is in the window; its counts there are 0, and so are the pulls' exponents.
      for (const auto& rest : rests_) {
        if (rest.sum > most) break;
        for (std::int64_t t = 0; t + rest.sum <= most; ++t) {
          const auto room = most - rest.sum - t;  // for the oldest count and m together
          double* to = next_.data() + rest.target[static_cast<std::size_t>(t)];
          std::fill_n(to, room + 1, 0.0);
          const auto* fade = fades_.data() + at(t, 0);
          const double* oldest = k - first >= w_ ? pulls_.data() + pull(k, w_) + at(t, 0) : nullptr;
          const auto reach = oldest != nullptr ? room : 0;
          for (std::int64_t s = 0; s <= reach; ++s) {
            const double* __restrict from = now_.data() + rest.source[static_cast<std::size_t>(s)];
            const double factor = oldest != nullptr ? oldest[s] : 1.0;
            double* __restrict sum = to + s;
            for (std::int64_t m = 0; m <= room - s; ++m) sum[m] += factor * from[m] * fade[m];
          }
          double others = weights[static_cast<std::size_t>(t)];
          for (std::int64_t d = 1; d < w_ && d <= k - first; ++d)
            others *= pulls_[pull(k, d) + at(t, rest.counts[static_cast<std::size_t>(w_ - 1 - d)])];
          // What has underflowed counts as `least`, which is more.
          const auto* ways = choose_.data() + at(t, rest.sum + t);
          for (std::int64_t m = 0; m <= room; ++m) to[m] = to[m] * others * ways[m] + least;
        }
      }
      std::swap(now_, next_);
    }
    std::fill(total.begin(), total.end(), 0.0);
    for (const auto& rest : rests_)  // (those of larger sums have no s)
      for (std::int64_t s = 0; s + rest.sum <= most; ++s)
        for (std::int64_t m = 0; m + s + rest.sum <= most; ++m)
          total[static_cast<std::size_t>(m + s + rest.sum)] +=
              now_[rest.source[static_cast<std::size_t>(s)] + static_cast<std::size_t>(m)];
    return total;
  }

  static constexpr double least = 1e-290;

 private:
  /// Windows that agree except for the oldest count, and those that come next.
  struct Rest {
    std::vector<std::int64_t> counts;  // s_2 … s_w
    std::vector<std::size_t> source;  // by s_1: where (s_1, s_2 …) begins
    std::vector<std::size_t> target;  // by t: where (s_2 …, t) begins
    std::int64_t sum;
  };
  void enumerate(std::vector<std::int64_t>& tuple, std::size_t place, std::int64_t left) {
    if (place == tuple.size()) {
      ranks_.emplace(tuple, offset_.size());
      offset_.push_back(cells_);
      cells_ += static_cast<std::size_t>(left) + 1;
      return;
    }
    for (std::int64_t x = 0; x <= left; ++x) {
      tuple[place] = x;
      enumerate(tuple, place + 1, left - x);
    }
    tuple[place] = 0;
  }
  [[nodiscard]] std::size_t at(std::int64_t t, std::int64_t m) const {
    return static_cast<std::size_t>(t) * side_ + static_cast<std::size_t>(m);
  }
  [[nodiscard]] std::size_t pull(std::int64_t k, std::int64_t d) const {
    return static_cast<std::size_t>(k * w_ + d - 1) * side_ * side_;
  }

  const Band& band_;
  std::int64_t bins_, w_, most_;
  std::size_t side_, cells_ = 0;
  std::map<std::vector<std::int64_t>, std::size_t> ranks_;
  std::vector<std::size_t> offset_;
  std::vector<Rest> rests_;
  std::vector<double> fades_, choose_, own_, pulls_, now_, next_;
};

/// log of |l|! w_l b^{−|l|} e^{−h |l|(|l|−1)/2} for one filling l of the first bins, to nearest; |l| = `used`.
double log_weight_of(const Band& band, const std::vector<std::int64_t>& l, std::int64_t used, std::int64_t bins) {
  double log_weight = std::lgamma(static_cast<double>(used) + 1.0) -
                      static_cast<double>(used) * std::log(static_cast<double>(bins)) -
                      0.5 * band.largest() * static_cast<double>(used) * static_cast<double>(used - 1);
  const auto w = static_cast<std::int64_t>(l.size());
  for (std::int64_t i = 0; i < w; ++i) {
    const auto n = static_cast<double>(l[static_cast<std::size_t>(i)]);
    log_weight += 0.5 * band.at(i, i) * n * (n - 1.0) - std::lgamma(n + 1.0);
    for (std::int64_t j = 0; j < i; ++j)
      log_weight += band.at(j, i) * n * static_cast<double>(l[static_cast<std::size_t>(j)]);
  }
  return log_weight;
}

/// The pull of such a filling on the bins within the band to either side, each pair once; to nearest. `fields`: one per
/// bin.
void set_fields(const Band& band, const std::vector<std::int64_t>& l, std::int64_t bands, std::vector<double>& fields) {
  std::fill(fields.begin(), fields.end(), 0.0);
  const auto w = static_cast<std::int64_t>(l.size());
  const auto b = static_cast<std::int64_t>(fields.size());
  for (std::int64_t i = 0; i < w; ++i)
    for (std::int64_t k = w; k < b; ++k)
      if (k - i < bands || b - (k - i) < bands)
        fields[static_cast<std::size_t>(k)] += band.at(i, k) * static_cast<double>(l[static_cast<std::size_t>(i)]);
}

/// U by the number of balls, where the first bins meet the last ones around the cycle: every filling of the first w
/// bins by itself. What has underflowed counts as `Windows::least`, which is more; otherwise to nearest.
std::vector<double> cyclic_sums(const Band& band, Windows& windows, std::int64_t bins, std::int64_t bands,
                                std::int64_t most_order) {
  const double h = band.largest();
  const auto w = std::min(bands, bins) - 1;
  std::vector<double> total(static_cast<std::size_t>(most_order) + 1, 0.0);
  std::vector<double> fields(static_cast<std::size_t>(bins), 0.0);
  std::vector<std::int64_t> l(static_cast<std::size_t>(w), 0);
  const auto visit = [&](auto&& self, std::size_t place, std::int64_t used) -> void {
    if (place < l.size()) {
      for (std::int64_t x = 0; x + used <= most_order; ++x) {
        l[place] = x;
        self(self, place + 1, used + x);
      }
      l[place] = 0;
      return;
    }
    const double log_weight = log_weight_of(band, l, used, bins);
    set_fields(band, l, bands, fields);
    const auto sums = windows.sums(w, most_order - used, fields);
    for (std::int64_t n = 0; n + used <= most_order; ++n) {
      // Long double: the sum may be as large as fields make it, and this factor as small.
      const auto factor =
          std::exp(static_cast<long double>(log_weight - h * static_cast<double>(used) * static_cast<double>(n))) *
          static_cast<long double>(binomial(static_cast<double>(n + used), static_cast<double>(used)));
      total[static_cast<std::size_t>(n + used)] +=
          static_cast<double>(static_cast<long double>(sums[static_cast<std::size_t>(n)]) * factor) + Windows::least;
    }
  };
  visit(visit, 0, 0);
  return total;
}

}  // namespace

std::vector<double> renyi_remove(const Gram& gram, double noise_multiplier, std::int64_t bands,
                                 std::int64_t most_order) {
  const auto b = gram.bins();
  const auto w = std::min(bands, b) - 1;
  std::vector<double> out(static_cast<std::size_t>(most_order) + 1, infinity);
  if (bands < 1 || most_order < 2 || (w > 0 && 2 * w > b)) return out;
  const Band band(gram, noise_multiplier, bands);
  const double h = band.largest();
  // Roundings that affect a term: those of at most α bins with balls, each a few exponentials of exponents up to h α²,
  // and those of sums.
  const auto order = static_cast<double>(most_order);
  const double relative =
      2.0 * roundoff *
      (order * static_cast<double>(w + 4) * (h * order * order + 64.0 + order * std::log(static_cast<double>(b))) +
       8.0 * static_cast<double>(b) * (order + 2.0) +
       // Windows and fillings of the first bins, one after the other.
       4.0 * binomial(order + static_cast<double>(w), static_cast<double>(w)) * (order + 2.0));
  const auto put = [&](std::int64_t a, double log_moment) {
    const double value =
        (log_moment + relative) / static_cast<double>(a - 1) + 0.5 * band.beyond() * static_cast<double>(a);
    if (std::isfinite(value)) out[static_cast<std::size_t>(a)] = std::max(0.0, value) * (1.0 + 16.0 * roundoff);
  };
  if (w == 0)
    return divergences_of(independent_sums(classes_of(band, b, most_order), b, most_order), h, b, band.beyond());
  Windows windows(band, b, w, most_order);
  const auto total = band.is_cyclic()
                         ? cyclic_sums(band, windows, b, bands, most_order)
                         : windows.sums(0, most_order, std::vector<double>(static_cast<std::size_t>(b), 0.0));
  for (std::int64_t a = 2; a <= most_order; ++a) {
    const double sum = total[static_cast<std::size_t>(a)];
    if (std::isfinite(sum) && sum > 0.0)
      put(a, std::log(sum) + 0.5 * h * static_cast<double>(a) * static_cast<double>(a - 1));
  }
  return out;
}

std::vector<double> renyi_remove_independent(std::int64_t bins, double noise_multiplier, std::uint64_t uses,
                                             std::int64_t most_order) {
  const double h = static_cast<double>(uses) / (noise_multiplier * noise_multiplier) * (1.0 + 8.0 * roundoff);
  // No term may underflow. The least is 1/(α! b^α), and the least long double is e^{−11355}.
  auto order = most_order;
  while (order > 2 &&
         static_cast<double>(order) * (std::log(static_cast<double>(bins)) + std::log(static_cast<double>(order))) >
             11000.0)
    --order;
  auto out = divergences_of(independent_sums({{0, {h, static_cast<std::uint64_t>(bins)}}}, bins, order), h, bins, 0.0);
  out.resize(static_cast<std::size_t>(most_order) + 1, infinity);
  return out;
}

double renyi_add_independent(std::int64_t bins, double noise_multiplier, std::uint64_t uses, double order) {
  const double h = static_cast<double>(uses) / (noise_multiplier * noise_multiplier);
  return 0.5 * h * (1.0 + (order - 1.0) / static_cast<double>(bins)) * (1.0 + 32.0 * roundoff);
}

double delta_add_independent(std::int64_t bins, double noise_multiplier, std::uint64_t uses, double epsilon) {
  double least = 1.0;
  for (double order = 1.0625; order < 1e5; order = 1.0 + 1.0625 * (order - 1.0))
    least = std::min(least, delta_of_renyi(renyi_add_independent(bins, noise_multiplier, uses, order), order, epsilon));
  return least;
}

double renyi_remove_work(const Gram& gram, std::int64_t bands, std::int64_t most_order) {
  const auto a = static_cast<double>(most_order);
  const auto p = static_cast<double>(bands);
  const auto b = static_cast<double>(gram.bins());
  if (bands == 1) return a * a * 64.0 * std::log2(b + 2.0);
  const bool cyclic = Band(gram, 1.0, bands).is_cyclic();
  // Numbers that sums run over, their windows, and what windows cost by themselves.
  const double w = (cyclic ? 2.0 : 1.0) * (p - 1.0);
  const double outside = cyclic ? 2.0 : 1.0;
  return b * (binomial(a + w + 2.0, w + 2.0) + 4.0 * binomial(a + w + 1.0, w + 1.0) +
              10.0 * outside * binomial(a + w, w)) +
         // Tables.
         b * p * a * a * 16.0;
}

std::int64_t affordable_order(const Gram& gram, std::int64_t bands, double work, std::int64_t limit) {
  if (bands > 1 && 2 * (bands - 1) > gram.bins()) return 0;
  std::int64_t order = 1;
  while (order < limit && renyi_remove_work(gram, bands, order + 1) <= work) ++order;
  return order >= 2 ? order : 0;
}

RenyiAdd::RenyiAdd(const Gram& gram, double noise_multiplier)
    : bins_(static_cast<long double>(gram.bins())), sigma_(static_cast<long double>(noise_multiplier)) {
  for (std::int64_t i = 0; i < gram.bins(); ++i) {
    diagonal_ += static_cast<long double>(gram.at(i, i));
    for (std::int64_t j = 0; j < gram.bins(); ++j) all_ += static_cast<long double>(gram.at(i, j));
  }
}

double RenyiAdd::operator()(double order) const {
  const auto bound = (diagonal_ / bins_ + (static_cast<long double>(order) - 1.0L) * all_ / (bins_ * bins_)) /
                     (2.0L * sigma_ * sigma_);
  return static_cast<double>(bound) * (1.0 + 32.0 * roundoff);
}

double delta_of_renyi(double divergence, double order, double epsilon) {
  if (!std::isfinite(divergence)) return 1.0;
  const double exponent =
      (order - 1.0) * (divergence - epsilon) + order * std::log1p(-1.0 / order) - std::log(order - 1.0);
  const double error = 16.0 * roundoff * (4.0 + order * (divergence + epsilon + 1.0));
  return std::min(1.0, std::exp(exponent + error) * (1.0 + 8.0 * roundoff));
}

}  // namespace tsdp::privacy
