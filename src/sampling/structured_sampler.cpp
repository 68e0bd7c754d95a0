#include "sampling/structured_sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "tsdp/base/error.h"

namespace tsdp::sampling {
namespace {

using privacy::BottomLevel;
using privacy::TopLevel;

/// Calls fn(start, number, of) for the windows drawn from one series with `count` windows, of which λ are expected:
/// each with its start, and its number out of `of`.
template <class Function>
void draw_windows(BottomLevel level, std::int64_t lambda, std::int64_t count, RandomStream& stream,
                  const Function& fn) {
  switch (level) {
    case BottomLevel::with_replacement:
      for (std::int64_t i = 0; i < lambda; ++i)
        fn(static_cast<std::int64_t>(stream.below(static_cast<std::uint64_t>(count))), i, lambda);
      return;
    case BottomLevel::poisson:
      if (lambda >= count) {
        for (std::int64_t t = 0; t < count; ++t) fn(t, t, count);
        return;
      }
      // Independent coins by geometric skips: the gap to the next head is ⌊log U / log(1 − r)⌋, U uniform on (0, 1].
      const double log_miss = std::log1p(-static_cast<double>(lambda) / static_cast<double>(count));
      for (double t = -1.0;;) {
        t += 1.0 + std::floor(std::log(1.0 - stream.uniform()) / log_miss);
        if (!(t < static_cast<double>(count))) return;
        fn(static_cast<std::int64_t>(t), static_cast<std::int64_t>(t), count);
      }
  }
  throw Error(ExitCode::failure, "a bottom level that no sampler draws");
}

/// The series, of `count`, whose coin shows heads, which it does with probability exactly `rate`, a multiple of 2⁻⁵³: a
/// uniform number of 53 bits is below rate · 2⁵³. Its first 16 bits almost always decide; the others are drawn only if
/// they do not.
std::vector<std::int64_t> tossed_series(std::int64_t count, double rate, RandomStream& stream) {
  constexpr int rest = 37;
  const auto below = static_cast<std::uint64_t>(rate * 0x1p53);
  const auto first = below >> rest;
  std::vector<std::int64_t> out;
  out.reserve(static_cast<std::size_t>(rate * static_cast<double>(count)) + 16);
  std::uint64_t word = 0;
  for (std::int64_t s = 0; s < count; ++s) {
    if (s % 4 == 0) word = stream.next();
    const auto bits = word & 0xffff;
    word >>= 16;
    if (bits < first || (bits == first && (stream.next() >> (64 - rest)) < (below & ((std::uint64_t{1} << rest) - 1))))
      out.push_back(s);
  }
  return out;
}

}  // namespace

StructuredSampler::StructuredSampler(privacy::SubsamplingScheme scheme)
    : scheme_(std::move(scheme)), identity_(static_cast<std::size_t>(scheme_.sequences())) {
  std::iota(identity_.begin(), identity_.end(), std::int64_t{0});
}

std::vector<std::int64_t> StructuredSampler::fresh_subset(std::size_t count, RandomStream& choices) {
  // The first places of a Fisher–Yates shuffle are a uniform subset in uniform order. The swaps are undone, so that the
  // draw depends on the stream alone.
  std::vector<std::size_t> swaps(count);
  for (std::size_t i = 0; i < count; ++i) {
    swaps[i] = i + static_cast<std::size_t>(choices.below(identity_.size() - i));
    std::swap(identity_[i], identity_[swaps[i]]);
  }
  std::vector<std::int64_t> out(identity_.begin(), identity_.begin() + static_cast<std::ptrdiff_t>(count));
  for (std::size_t i = count; i-- > 0;) std::swap(identity_[i], identity_[swaps[i]]);
  return out;
}

void StructuredSampler::arrange(const SecretKey& key, std::uint64_t epoch) {
  const auto& p = scheme_.parameters();
  const bool one_draw = p.top_level == TopLevel::balls_in_bins ? p.redraw == privacy::Redraw::once
                                                               : p.reshuffle == privacy::Reshuffle::once;
  if (one_draw) epoch = 0;
  if (arranged_by_ == key && arranged_epoch_ == epoch) return;
  const auto batches = static_cast<std::size_t>(scheme_.steps_per_epoch());
  begins_.assign(batches + 1, 0);
  if (p.top_level == TopLevel::balls_in_bins) {
    RandomStream of_bins(key, bins_purpose, epoch);
    std::vector<std::size_t> bins(identity_.size());
    for (auto& bin : bins) ++begins_[(bin = static_cast<std::size_t>(of_bins.below(batches))) + 1];
    std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
    auto next = begins_;
    order_.resize(bins.size());
    for (std::size_t s = 0; s < bins.size(); ++s) order_[next[bins[s]]++] = static_cast<std::int64_t>(s);
  } else {
    RandomStream of_epoch(key, order_purpose, epoch);
    order_ = fresh_subset(identity_.size(), of_epoch);
    for (std::size_t b = 1; b <= batches; ++b)
      begins_[b] = std::min(order_.size(), b * static_cast<std::size_t>(scheme_.sequences_per_batch()));
  }
  arranged_by_ = key;
  arranged_epoch_ = epoch;
}

std::vector<std::int64_t> StructuredSampler::series_of(std::uint64_t step, RandomStream& stream, const SecretKey& key) {
  const auto chosen = static_cast<std::size_t>(scheme_.sequences_per_batch());
  const auto steps = static_cast<std::uint64_t>(scheme_.steps_per_epoch());
  const auto batch = static_cast<std::size_t>(step % steps);
  const auto from = [](const std::vector<std::int64_t>& all, std::size_t begin, std::size_t end) {
    return std::vector<std::int64_t>(all.begin() + static_cast<std::ptrdiff_t>(begin),
                                     all.begin() + static_cast<std::ptrdiff_t>(end));
  };
  switch (scheme_.parameters().top_level) {
    case TopLevel::deterministic:
      return from(identity_, batch * chosen, std::min(identity_.size(), (batch + 1) * chosen));
    case TopLevel::shuffled:
    case TopLevel::balls_in_bins: arrange(key, step / steps); return from(order_, begins_[batch], begins_[batch + 1]);
    case TopLevel::without_replacement: return fresh_subset(chosen, stream);
    case TopLevel::poisson: return tossed_series(scheme_.sequences(), scheme_.coin(), stream);
    case TopLevel::cyclic_poisson: {
      const auto groups = scheme_.parameters().groups;
      const auto first = static_cast<std::int64_t>(step % static_cast<std::uint64_t>(groups));
      auto out = tossed_series((scheme_.sequences() - first + groups - 1) / groups, scheme_.coin(), stream);
      for (auto& series : out) series = first + groups * series;
      return out;
    }
  }
  throw Error(ExitCode::failure, "a top level that no sampler draws");
}

Draw StructuredSampler::draw(const SecretKey& key, std::uint64_t step) {
  const auto& p = scheme_.parameters();
  RandomStream stream(key, sampling_purpose, step);
  auto series = series_of(step, stream, key);
  if (p.largest_batch && static_cast<std::int64_t>(series.size()) > *p.largest_batch)
    series.resize(static_cast<std::size_t>(*p.largest_batch));
  const auto parts = scheme_.parts_of_a_series();
  const auto variables = scheme_.variables();
  Draw out;
  out.windows.reserve(static_cast<std::size_t>(scheme_.expected_windows()) + 16);
  for (std::size_t place = 0; place < series.size(); ++place) {
    const auto s = series[place];
    const auto first = (scheme_.draws_each_series() ? s : static_cast<std::int64_t>(place)) * parts;
    draw_windows(p.bottom_level, p.subsequences_per_sequence, scheme_.windows_of(s), stream,
                 [&](std::int64_t start, std::int64_t number, std::int64_t of) {
                   const auto window = scheme_.window_of(s, start);
                   for (std::int64_t v = 0; v < variables; ++v) {
                     out.windows.push_back({window.series * variables + v, window.place});
                     out.places.push_back(first + number * parts / of);
                   }
                 });
  }
  return out;
}

}  // namespace tsdp::sampling
