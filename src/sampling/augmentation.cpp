#include "sampling/augmentation.h"

#include <algorithm>
#include <limits>
#include <span>

#include "sampling/contraction.h"

namespace tsdp::sampling {
namespace {

/// place ← noised(place, deviation · normal) for every observed place, with deviations of σ times `unit`.
template <class Noised>
void add_noise(const privacy::SubsamplingScheme& scheme, double unit, const RandomStream& stream, std::int64_t windows,
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

void augment(const privacy::SubsamplingScheme& scheme, double v, const RandomStream& stream, std::int64_t windows,
             std::int64_t past_length, float* values, const float* observed) {
  if (scheme.parameters().context_noise == 0.0 && scheme.parameters().forecast_noise == 0.0) return;
  add_noise(scheme, v, stream, windows, past_length, values, observed, [&](std::size_t place, double noise) {
    return static_cast<float>(static_cast<double>(values[place]) + noise);
  });
}

void augment(const privacy::SubsamplingScheme& scheme, double v, const RandomStream& stream, std::int64_t windows,
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
