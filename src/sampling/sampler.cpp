#include "tsdp/sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "tsdp/core/error.h"
#include "tsdp/sampling/contraction.h"

namespace tsdp::sampling {
namespace {

/// place ← noised(place, deviation · normal) for every observed place, deviations being σ times `unit`.
template <class Noised>
void add_noise(const SubsamplingScheme& scheme, double unit, const RandomStream& stream, std::int64_t windows,
               std::int64_t past_length, float* values, const float* observed, const Noised& noised) {
  const auto& p = scheme.parameters();
  const auto width = static_cast<std::uint64_t>(past_length + p.forecast_length);
  stream.normals(0, static_cast<std::uint64_t>(windows) * width, [&](std::uint64_t place, std::span<double> noise) {
    auto column = static_cast<std::int64_t>(place % width);
    for (std::size_t i = 0; i < noise.size(); ++i) {
      const double scale = unit * (column < past_length ? p.context_noise : p.forecast_noise);
      if (observed[place + i] != 0.0F) values[place + i] = noised(place + i, scale * noise[i]);
      if (++column == static_cast<std::int64_t>(width)) column = 0;
    }
  });
}

}  // namespace

Sampler::Sampler(SubsamplingScheme scheme)
    : scheme_(std::move(scheme)), order_(static_cast<std::size_t>(scheme_.sequences())) {
  std::iota(order_.begin(), order_.end(), std::int64_t{0});
}

Draw Sampler::draw_places(std::uint64_t step, RandomStream& stream, const OrderOf& order) {
  const auto& p = scheme_.parameters();
  const auto chosen = static_cast<std::size_t>(scheme_.sequences_per_batch());
  std::vector<std::int64_t> series(chosen);
  const auto steps = static_cast<std::uint64_t>(scheme_.steps_per_epoch());
  const auto batch = static_cast<std::size_t>(step % steps);
  if (p.top_level == TopLevel::deterministic) {
    std::iota(series.begin(), series.end(), static_cast<std::int64_t>(batch * chosen));
  } else {
    // The first places of a Fisher–Yates shuffle are a uniform subset in uniform order. The swaps are undone, so that the
    // draw depends on the streams alone.
    const bool shuffled = p.top_level == TopLevel::shuffled;
    if (shuffled && !order) throw Error(ExitCode::failure, "a shuffled scheme draws from its epoch's stream");
    std::optional<RandomStream> of_epoch;
    if (shuffled) of_epoch = order(step / steps);
    auto& choices = shuffled ? *of_epoch : stream;
    const auto first = shuffled ? batch * chosen : 0;
    std::vector<std::size_t> swaps(first + chosen);
    for (std::size_t i = 0; i < swaps.size(); ++i) {
      swaps[i] = i + static_cast<std::size_t>(choices.below(order_.size() - i));
      std::swap(order_[i], order_[swaps[i]]);
    }
    std::copy_n(order_.begin() + static_cast<std::ptrdiff_t>(first), chosen, series.begin());
    for (std::size_t i = swaps.size(); i-- > 0;) std::swap(order_[i], order_[swaps[i]]);
  }

  Draw out;
  auto& windows = out.windows;
  windows.reserve(static_cast<std::size_t>(p.batch_size) + 16);
  const auto parts = parts_of_a_series();
  for (std::size_t place = 0; place < chosen; ++place) {
    const auto s = series[place];
    const auto count = scheme_.windows_of(s);
    // Window `number` of `of`, in one of the parts of its series.
    const auto add = [&](std::int64_t start, std::int64_t number, std::int64_t of) {
      windows.push_back({s, start});
      out.places.push_back(static_cast<std::int64_t>(place) * parts + number * parts / of);
    };
    if (p.bottom_level == BottomLevel::with_replacement) {
      for (std::int64_t i = 0; i < p.subsequences_per_sequence; ++i)
        add(static_cast<std::int64_t>(stream.below(static_cast<std::uint64_t>(count))), i, p.subsequences_per_sequence);
    } else if (p.subsequences_per_sequence >= count) {
      for (std::int64_t t = 0; t < count; ++t) add(t, t, count);
    } else {
      // Independent coins by geometric skips: the gap to the next head is ⌊log U / log(1 − r)⌋, U uniform on (0, 1].
      const double log_miss = std::log1p(-static_cast<double>(p.subsequences_per_sequence) / static_cast<double>(count));
      for (double t = -1.0;;) {
        t += 1.0 + std::floor(std::log(1.0 - stream.uniform()) / log_miss);
        if (!(t < static_cast<double>(count))) break;
        add(static_cast<std::int64_t>(t), static_cast<std::int64_t>(t), count);
      }
    }
  }
  return out;
}

void augment(const SubsamplingScheme& scheme, double v, const RandomStream& stream, std::int64_t windows,
             std::int64_t past_length, float* values, const float* observed) {
  if (scheme.parameters().context_noise == 0.0 && scheme.parameters().forecast_noise == 0.0) return;
  add_noise(scheme, v, stream, windows, past_length, values, observed, [&](std::size_t place, double noise) {
    return static_cast<float>(static_cast<double>(values[place]) + noise);
  });
}

void augment(const SubsamplingScheme& scheme, double v, const RandomStream& stream, std::int64_t windows,
             std::int64_t past_length, const double* exact, float* values, const float* observed) {
  const Contraction contraction(v);
  const auto count = static_cast<std::size_t>(windows * (past_length + scheme.parameters().forecast_length));
  std::fill_n(values, count, 0.0F);
  constexpr auto largest = static_cast<double>(std::numeric_limits<float>::max());
  add_noise(scheme, contraction.reach(), stream, windows, past_length, values, observed,
            [&](std::size_t place, double noise) {
              return static_cast<float>(std::clamp(contraction(exact[place]) + noise, -largest, largest));
            });
}

}  // namespace tsdp::sampling
