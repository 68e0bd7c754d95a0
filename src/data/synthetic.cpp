#include "data/synthetic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/random/random.h"

namespace tsdp::data {
namespace {

constexpr std::int64_t most_values = 1'000'000'000;

struct Calendar {
  Frequency frequency;
  std::vector<double> seasons;  // in steps, the shortest first
};

Calendar calendar_of(SyntheticKind kind) {
  using enum SyntheticKind;
  using Unit = Frequency::Unit;
  switch (kind) {
    case ten_minutes: return {{10, Unit::minute}, {144.0, 1008.0}};
    case hourly: return {{1, Unit::hour}, {24.0, 168.0, 8766.0}};
    case daily: return {{1, Unit::day}, {7.0, 365.25}};
    case business_daily: return {{1, Unit::business_day}, {5.0, 261.0}};
    case weekly: return {{1, Unit::week}, {52.18}};
    case monthly: return {{1, Unit::month}, {12.0}};
  }
  throw Error(ExitCode::failure, "a kind of synthetic series that is none");
}

using Values = std::vector<double>;

/// Draws of one series: numbers that shape it, and noise by the piece.
class Draws {
 public:
  Draws(const SecretKey& key, std::uint64_t series) : stream_(key, "synthetic series", series) {}

  double between(double low, double high) { return low + (high - low) * stream_.uniform(); }
  bool chance(double p) { return stream_.uniform() < p; }
  std::int64_t whole(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(stream_.below(static_cast<std::uint64_t>(high - low + 1)));
  }
  /// e^N(log median, spread²).
  double lognormal(double median, double spread) {
    double z = 0.0;
    fill({&z, 1});
    return median * std::exp(spread * z);
  }
  /// Independent Student-t with `degrees` > 2, of variance 1.
  Values noise(std::size_t length, std::int64_t degrees) {
    Values out(length), other(length), squares(length, 0.0);
    fill(out);
    for (std::int64_t k = 0; k < degrees; ++k) {
      fill(other);
      for (std::size_t t = 0; t < length; ++t) squares[t] += other[t] * other[t];
    }
    const auto n = static_cast<double>(degrees);
    for (std::size_t t = 0; t < length; ++t) out[t] *= std::sqrt((n - 2.0) / squares[t]);
    return out;
  }
  Values noise(std::size_t length) { return noise(length, whole(4, 12)); }

 private:
  void fill(std::span<double> out) {
    // Far from the blocks that uniform() consumes.
    stream_.normals((std::uint64_t{1} << 40) + used_, out);
    used_ += (out.size() + 31) / 32 * 32;
  }

  RandomStream stream_;
  std::uint64_t used_ = 0;
};

/// x_t = φ x_{t−1} + noise, of variance 1.
Values autoregressive(Draws& draws, std::size_t length, double memory) {
  auto out = draws.noise(length);
  const double fresh = std::sqrt(1.0 - memory * memory);
  for (std::size_t t = 1; t < length; ++t) out[t] = memory * out[t - 1] + fresh * out[t];
  return out;
}

/// Harmonics with falling amplitudes and phases of their own, of variance 1 over a season.
Values seasonal(Draws& draws, std::size_t length, double season, std::int64_t harmonics) {
  Values out(length, 0.0);
  const double fall = draws.between(0.3, 1.5);
  double variance = 0.0;
  const auto most = std::max<std::int64_t>(1, std::min(harmonics, static_cast<std::int64_t>(season / 2.0)));
  for (std::int64_t h = 1; h <= most; ++h) {
    const double amplitude = draws.between(-1.0, 1.0) / std::pow(static_cast<double>(h), fall);
    const double phase = draws.between(0.0, 2.0 * std::numbers::pi);
    const double turn = 2.0 * std::numbers::pi * static_cast<double>(h) / season;
    for (std::size_t t = 0; t < length; ++t) out[t] += amplitude * std::sin(turn * static_cast<double>(t) + phase);
    variance += 0.5 * amplitude * amplitude;
  }
  const double scale = 1.0 / std::sqrt(std::max(variance, 1e-6));
  for (double& x : out) x *= scale;
  return out;
}

/// How the days of a week differ, as factors of about 1: weekends, or every day by itself, with soft edges. All ones if
/// a week is not a season, or a day not a shorter one.
Values week(Draws& draws, std::size_t length, const Calendar& calendar) {
  Values out(length, 1.0);
  if (calendar.seasons.size() < 2 || calendar.seasons[1] != 7.0 * calendar.seasons[0]) return out;
  std::array<double, 7> days{};
  const bool weekends_alone = draws.chance(0.7);
  for (std::size_t d = 0; d < days.size(); ++d)
    days[d] = d >= 5 ? draws.between(0.3, 1.1) : weekends_alone ? 1.0 : draws.between(0.8, 1.2);
  const auto day = static_cast<std::int64_t>(calendar.seasons[0]);
  const auto week_length = 7 * day;
  const auto first = draws.whole(0, week_length - 1);
  const auto edge = std::max<std::int64_t>(1, day / 5);
  // One week, smoothed over `edge` steps.
  Values shape(static_cast<std::size_t>(week_length), 0.0);
  double mean = 0.0;
  for (std::int64_t t = 0; t < week_length; ++t) {
    for (std::int64_t k = 0; k < edge; ++k)
      shape[static_cast<std::size_t>(t)] +=
          days[static_cast<std::size_t>((t + k) % week_length / day)] / static_cast<double>(edge);
    mean += shape[static_cast<std::size_t>(t)] / static_cast<double>(week_length);
  }
  for (std::size_t t = 0; t < length; ++t) out[t] = shape[(t + static_cast<std::size_t>(first)) % shape.size()] / mean;
  return out;
}

/// A memory whose noise fades in between `low` and `high` steps.
double memory_of(Draws& draws, double low, double high) {
  return std::exp(-1.0 / (low * std::pow(high / low, draws.between(0.0, 1.0))));
}

Values load(Draws& draws, std::size_t length, const Calendar& calendar) {
  const double amplitude = draws.lognormal(0.25, 0.6);
  const auto shape = seasonal(draws, length, calendar.seasons.front(), draws.whole(1, 6));
  const auto days = week(draws, length, calendar);
  const double of_days = draws.chance(0.8) ? draws.between(0.0, 2.0) : 0.0;
  const double level_of_days = draws.between(0.0, 1.0);
  Values long_shape(length, 0.0);
  for (std::size_t s = 1; s < calendar.seasons.size(); ++s) {
    const double strength = draws.between(0.0, s == 1 ? 0.4 : 0.5);
    const auto one = seasonal(draws, length, calendar.seasons[s], draws.whole(1, 4));
    for (std::size_t t = 0; t < length; ++t) long_shape[t] += strength * one[t];
  }
  const auto weather = autoregressive(draws, length, memory_of(draws, 3.0, 6.0 * calendar.seasons.front()));
  const auto noise = autoregressive(draws, length, draws.between(0.0, 0.9));
  const double of_weather = amplitude * draws.between(0.1, 0.8);
  const double of_noise = amplitude * draws.lognormal(0.15, 0.7);
  const double modulation = draws.between(0.0, 0.6);
  Values out(length);
  for (std::size_t t = 0; t < length; ++t)
    out[t] =
        std::max(0.02, 1.0 +
                           amplitude * (shape[t] * (1.0 + modulation * long_shape[t]) * std::pow(days[t], of_days) +
                                        level_of_days * (days[t] - 1.0) + long_shape[t]) +
                           of_weather * weather[t] + of_noise * noise[t]);
  return out;
}

Values with_sign(Draws& draws, std::size_t length, const Calendar& calendar) {
  Values out(length, draws.between(-3.0, 3.0));
  for (const double season : calendar.seasons) {
    const double strength = draws.chance(0.8) ? draws.lognormal(0.8, 0.7) : 0.0;
    const auto one = seasonal(draws, length, season, draws.whole(1, 5));
    for (std::size_t t = 0; t < length; ++t) out[t] += strength * one[t];
  }
  const auto slow = autoregressive(draws, length, memory_of(draws, 5.0, 20.0 * calendar.seasons.front()));
  const auto fast = autoregressive(draws, length, draws.between(-0.2, 0.9));
  const double of_slow = draws.lognormal(0.6, 0.6);
  const double of_fast = draws.lognormal(0.3, 0.7);
  for (std::size_t t = 0; t < length; ++t) out[t] += of_slow * slow[t] + of_fast * fast[t];
  return out;
}

Values walk(Draws& draws, std::size_t length, const Calendar& calendar) {
  const auto steps = draws.noise(length);
  const auto volatility = autoregressive(draws, length, 0.98);
  const double wild = draws.between(0.0, 0.6);
  const double reverting = draws.chance(0.5) ? draws.between(0.0, 0.05) : 0.0;
  const double drift = draws.chance(0.3) ? draws.between(-0.05, 0.05) : 0.0;
  const bool of_logarithms = draws.chance(0.5);
  const double size = of_logarithms ? draws.lognormal(0.01, 0.7) : 1.0;
  const double season = draws.chance(0.3) ? draws.lognormal(1.0, 0.5) : 0.0;
  const auto shape = seasonal(draws, length, calendar.seasons.front(), 3);
  Values out(length);
  double place = 0.0;
  for (std::size_t t = 0; t < length; ++t) {
    place = (1.0 - reverting) * place + drift + std::exp(wild * volatility[t]) * steps[t];
    out[t] = of_logarithms ? std::exp(std::clamp(size * (place + season * shape[t]), -20.0, 20.0))
                           : place + season * shape[t];
  }
  return out;
}

Values counts(Draws& draws, std::size_t length, const Calendar& calendar) {
  const double rate = draws.lognormal(1.5, 1.2);
  const auto shape = seasonal(draws, length, calendar.seasons.front(), draws.whole(1, 4));
  const auto slow = autoregressive(draws, length, memory_of(draws, 5.0, 10.0 * calendar.seasons.front()));
  const auto noise = draws.noise(length, 6);
  const double of_shape = draws.between(0.0, 1.2);
  const double of_slow = draws.between(0.0, 0.8);
  const double zeros = draws.chance(0.5) ? draws.between(0.0, 0.8) : 0.0;
  const double bursts = draws.chance(0.3) ? draws.between(0.0, 0.02) : 0.0;
  Values out(length);
  for (std::size_t t = 0; t < length; ++t) {
    double mean = rate * std::exp(std::clamp(of_shape * shape[t] + of_slow * slow[t], -8.0, 8.0));
    if (draws.chance(bursts)) mean *= 10.0;
    // Rounded from a normal: whole numbers with the spread of a Poisson variable.
    out[t] = draws.chance(zeros) ? 0.0 : std::floor(std::max(0.0, mean + std::sqrt(mean) * noise[t]) + 0.5);
  }
  return out;
}

Values shifting(Draws& draws, std::size_t length, const Calendar& calendar) {
  const auto shape = seasonal(draws, length, calendar.seasons.front(), draws.whole(1, 4));
  const auto noise = autoregressive(draws, length, draws.between(0.0, 0.8));
  const double of_shape = draws.lognormal(0.7, 0.6);
  const double of_noise = draws.lognormal(0.3, 0.6);
  const double jumps = 1.0 / (draws.between(3.0, 40.0) * calendar.seasons.front());
  Values out(length);
  double level = draws.between(-2.0, 6.0);
  double trend = 0.0;
  for (std::size_t t = 0; t < length; ++t) {
    if (draws.chance(jumps)) level += draws.between(-3.0, 3.0);
    if (draws.chance(jumps)) trend = draws.chance(0.5) ? 0.0 : draws.between(-1.0, 1.0) / calendar.seasons.front();
    level += 0.1 * trend;
    out[t] = level + of_shape * shape[t] + of_noise * noise[t];
  }
  return out;
}

}  // namespace

Dataset generate_synthetic(SyntheticKind kind, const GenerateOptions& options) {
  check_sizes(options, most_values);
  const auto calendar = calendar_of(kind);
  Dataset dataset;
  dataset.name = cat("synthetic_", name(kind));
  dataset.frequency = calendar.frequency;
  Moment start = 0;
  if (!parse_moment("2015-01-05", start))
    throw Error(ExitCode::failure, "the start of generated series is no date");  // a Monday
  if (kind == SyntheticKind::monthly && !parse_moment("1990-01-01", start))
    throw Error(ExitCode::failure, "the start of generated series is no date");
  const auto key = SecretKey::from_seed(options.seed);
  const auto length = static_cast<std::size_t>(options.length);
  dataset.series.resize(static_cast<std::size_t>(options.series));
  for (std::size_t i = 0; i < dataset.series.size(); ++i) {
    Draws draws(key, i);
    const double family = draws.between(0.0, 1.0);
    const auto values = family < 0.60   ? load(draws, length, calendar)
                        : family < 0.80 ? with_sign(draws, length, calendar)
                        : family < 0.85 ? walk(draws, length, calendar)
                        : family < 0.93 ? counts(draws, length, calendar)
                                        : shifting(draws, length, calendar);
    // Counts stay whole.
    const bool whole = family >= 0.85 && family < 0.93;
    const double level = whole ? 1.0 : std::pow(10.0, draws.between(-2.0, 4.0));
    auto& series = dataset.series[i];
    series.id = std::to_string(i);
    series.start = start;
    series.values.resize(length);
    for (std::size_t t = 0; t < length; ++t) series.values[t] = static_cast<float>(level * values[t]);
  }
  return dataset;
}

}  // namespace tsdp::data
