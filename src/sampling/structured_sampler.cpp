#include "tsdp/sampling/structured_sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "tsdp/base/error.h"

namespace tsdp::sampling {
namespace {

using privacy::BottomLevel;
using privacy::TopLevel;

/// Starts of the windows of one series with `count` windows, of which λ are expected, and the number of each: fn(start, number,
/// of).
template <class Function>
void draw_windows(BottomLevel level, std::int64_t lambda, std::int64_t count, RandomStream& stream, const Function& fn) {
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

}  // namespace

std::unique_ptr<BatchSampler> sampler_of(const privacy::SubsamplingScheme& law) {
  return std::make_unique<StructuredSampler>(law);
}

StructuredSampler::StructuredSampler(privacy::SubsamplingScheme law)
    : law_(std::move(law)), order_(static_cast<std::size_t>(law_.sequences())) {
  std::iota(order_.begin(), order_.end(), std::int64_t{0});
}

std::vector<std::int64_t> StructuredSampler::shuffled_places(std::size_t first, std::size_t count, RandomStream& choices) {
  // The first places of a Fisher–Yates shuffle are a uniform subset in uniform order. The swaps are undone, so that the
  // draw depends on the streams alone.
  std::vector<std::size_t> swaps(first + count);
  for (std::size_t i = 0; i < swaps.size(); ++i) {
    swaps[i] = i + static_cast<std::size_t>(choices.below(order_.size() - i));
    std::swap(order_[i], order_[swaps[i]]);
  }
  const auto begin = order_.begin() + static_cast<std::ptrdiff_t>(first);
  std::vector<std::int64_t> out(begin, begin + static_cast<std::ptrdiff_t>(count));
  for (std::size_t i = swaps.size(); i-- > 0;) std::swap(order_[i], order_[swaps[i]]);
  return out;
}

std::vector<std::int64_t> StructuredSampler::series_of(std::uint64_t step, RandomStream& stream, const SecretKey& key) {
  const auto chosen = static_cast<std::size_t>(law_.sequences_per_batch());
  const auto steps = static_cast<std::uint64_t>(law_.steps_per_epoch());
  const auto first = static_cast<std::size_t>(step % steps) * chosen;
  switch (law_.parameters().top_level) {
    case TopLevel::deterministic: {
      std::vector<std::int64_t> out(chosen);
      std::iota(out.begin(), out.end(), static_cast<std::int64_t>(first));
      return out;
    }
    case TopLevel::shuffled: {
      RandomStream of_epoch(key, order_purpose, step / steps);
      return shuffled_places(first, chosen, of_epoch);
    }
    case TopLevel::without_replacement: return shuffled_places(0, chosen, stream);
    case TopLevel::poisson:
    case TopLevel::balls_in_bins: break;  // no scheme has them
  }
  throw Error(ExitCode::failure, "a top level that no sampler draws");
}

Draw StructuredSampler::draw(const SecretKey& key, std::uint64_t step) {
  const auto& p = law_.parameters();
  RandomStream stream(key, sampling_purpose, step);
  const auto series = series_of(step, stream, key);
  const auto parts = law_.parts_of_a_series();
  Draw out;
  out.windows.reserve(static_cast<std::size_t>(law_.expected_windows()) + 16);
  for (std::size_t place = 0; place < series.size(); ++place) {
    const auto s = series[place];
    draw_windows(p.bottom_level, p.subsequences_per_sequence, law_.windows_of(s), stream,
                 [&](std::int64_t start, std::int64_t number, std::int64_t of) {
                   out.windows.push_back({s, start});
                   out.places.push_back(static_cast<std::int64_t>(place) * parts + number * parts / of);
                 });
  }
  return out;
}

}  // namespace tsdp::sampling
