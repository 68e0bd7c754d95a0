#include "data/generate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/random/random.h"

namespace tsdp::data {
namespace {

constexpr std::size_t week_hours = 168;
constexpr std::int64_t most_values = 4'000'000'000;

/// A smooth hump of height 1 around `centre`, zero `width` away from it. Hours go round the clock. Arithmetic only, so
/// that it is the same on every machine.
double hump(double hour, double centre, double width) {
  double distance = std::abs(hour - centre);
  distance = std::min(distance, 24 - distance) / width;
  if (distance >= 1) return 0;
  const double rest = 1 - distance * distance;
  return rest * rest;
}

/// One week from Monday 00:00: two rush hours on working days, one wide hump on weekends.
std::array<double, week_hours> week_profile(RandomStream& stream) {
  const auto between = [&](double low, double high) { return low + (high - low) * stream.uniform(); };
  const double level = between(0.02, 0.09);
  const double night = between(0.05, 0.2);
  const double morning = between(0.2, 1.0);
  const double evening = between(0.3, 1.2);
  const double morning_peak = between(7.0, 8.5);
  const double evening_peak = between(16.5, 18.0);
  const double midday = between(0.4, 0.7);
  const double weekend = between(0.4, 0.9);
  const double friday = between(1.0, 1.2);
  const double sunday = between(0.7, 0.95);
  std::array<double, week_hours> profile{};
  for (std::size_t i = 0; i < week_hours; ++i) {
    const std::size_t day = i / 24;
    const auto hour = static_cast<double>(i % 24);
    double shape = night;
    if (day < 5) {
      shape += midday * hump(hour, 13, 9) + morning * hump(hour, morning_peak, 2.5);
      shape += evening * (day == 4 ? friday : 1) * hump(hour, evening_peak, 3.5);
    } else {
      shape += weekend * (day == 6 ? sunday : 1) * hump(hour, 14.5, 9);
    }
    profile[i] = level * shape;
  }
  return profile;
}

}  // namespace

void check_sizes(const GenerateOptions& options, std::int64_t most_values) {
  if (options.series < 1 || options.length < 1 || options.series > most_values / options.length)
    throw UsageError(cat("found ", options.series, " series of length ", options.length,
                         "; expected at least 1 of each and at most ", most_values, " values in all"));
}

Dataset generate_traffic_like(const GenerateOptions& options) {
  check_sizes(options, most_values);
  Dataset dataset;
  dataset.name = "traffic_like";
  dataset.frequency = {1, Frequency::Unit::hour};
  Moment start = 0;
  if (!parse_moment("2015-01-01", start)) throw Error(ExitCode::failure, "the start of generated series is no date");
  constexpr std::size_t start_hour = 72;  // a Thursday
  const auto length = static_cast<std::size_t>(options.length);
  const auto key = SecretKey::from_seed(options.seed);
  std::vector<double> noise(length);
  dataset.series.resize(static_cast<std::size_t>(options.series));
  for (std::size_t i = 0; i < dataset.series.size(); ++i) {
    RandomStream stream(key, "generate", i);
    const auto profile = week_profile(stream);
    const double spread = 0.06 + 0.12 * stream.uniform();
    const double memory = 0.5 + 0.35 * stream.uniform();
    const double yearly = 0.15 * stream.uniform();
    const double phase = stream.uniform();
    // Far from the blocks that uniform() and below() consume.
    stream.normals(std::uint64_t{1} << 40, noise);
    auto& series = dataset.series[i];
    series.id = std::to_string(i);
    series.start = start;
    series.values.resize(length);
    double deviation = 0;
    for (std::size_t t = 0; t < length; ++t) {
      deviation = memory * deviation + spread * noise[t];
      double year = static_cast<double>(t) / 8766 + phase;
      year -= std::floor(year);
      const double season =
          1 + yearly * (16 * year * (1 - year) - 8.0 / 3);  // a parabola of mean zero in place of a sine
      const double value = profile[(t + start_hour) % week_hours] * season * (1 + deviation);
      // Four decimals, as occupancies are published.
      series.values[t] = static_cast<float>(std::floor(std::clamp(value, 0.0, 1.0) * 1e4 + 0.5) / 1e4);
    }
    for (std::uint64_t t = stream.below(6000); t < length;) {
      const std::uint64_t end = std::min<std::uint64_t>(length, t + 1 + stream.below(36));
      std::fill(series.values.begin() + static_cast<std::ptrdiff_t>(t),
                series.values.begin() + static_cast<std::ptrdiff_t>(end), 0.0F);
      t = end + stream.below(6000);
    }
  }
  return dataset;
}

}  // namespace tsdp::data
