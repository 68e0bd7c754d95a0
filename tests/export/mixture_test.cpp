// What an exported model makes of its candidates, computed again from the network alone and from the baselines.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "data/oddities.h"
#include "models/mixture.h"
#include "tsdp/base/error.h"
#include "tsdp/evaluation/backtest.h"
#include "tsdp/export/torchscript.h"
#include "tsdp/random/random.h"

namespace tsdp::exporting {
namespace {

constexpr float missing = std::numeric_limits<float>::quiet_NaN();
const std::vector<double> deciles = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9};

models::ModelOptions options_with(Mixture mixture, std::int64_t horizon, const std::string& name = "dlinear") {
  models::ModelOptions options{8, horizon, {}, 3, 0.0};
  if (name == "deepar") options.lags = {1, 2, 4};
  options.prior = {PriorKind::seasonal_naive, 4};
  options.mixture = std::move(mixture);
  return options;
}

enum class Weights {
  trained,
  start
};
std::unique_ptr<models::Forecaster> make(const models::ModelOptions& options, const std::string& name = "dlinear",
                                         Weights weights = Weights::trained, at::ScalarType type = at::kDouble) {
  auto model = models::make_model(name, options, at::TensorOptions(type));
  RandomStream stream(SecretKey::from_seed(5), "initial weights", 0);
  model->initialise(stream);
  if (weights == Weights::start) return model;
  model->keep_start();
  // As if it had been trained.
  for (std::int64_t i = 0; i < model->parameters().count(); ++i)
    model->parameters().values()[i] += 0.02 * stream.uniform();
  return model;
}

Mixture mixture_of(std::int64_t horizon) {
  return {{{Candidate::start, 1, 1},
           {Candidate::seasonal_quantiles, 4, 3},
           {Candidate::moved_quantiles, 4, 3},
           {Candidate::seasonal_naive_bands, 4, 5},
           {Candidate::last_value_bands, 1, 20},
           {Candidate::seasonal_regression, 4, 6}},
          {},
          6,
          std::max<std::int64_t>(horizon, 4)};
}

/// A series with a season of 4 and missing values, of which all before `begin` are missing.
std::vector<float> series(std::size_t length, std::size_t begin, std::uint64_t number) {
  RandomStream draws(SecretKey::from_seed(9), "series", number);
  std::vector<float> out;
  for (std::size_t t = 0; t < length; ++t) {
    const double value = 10.0 + 3.0 * static_cast<double>(t % 4) + draws.uniform() + 0.02 * static_cast<double>(t);
    out.push_back(t < begin || draws.uniform() < 0.1 ? missing : static_cast<float>(value));
  }
  return out;
}

struct Input {
  at::Tensor target, observed;
};
Input input_of(const std::vector<std::vector<float>>& series) {
  std::vector<at::Tensor> rows;
  for (const auto& one : series) rows.push_back(at::tensor(one).to(at::kDouble));
  const auto values = at::stack(rows);
  return {values.nan_to_num(0.0), values.eq(values).to(at::kDouble)};
}

struct Output {
  at::Tensor quantiles, mean, samples;
};
Output run(torch::jit::Module& module, const Input& input, const at::Tensor& draws,
           std::vector<double> levels = deciles, const at::IValue& features = {}) {
  const auto found =
      module.forward({input.target, input.observed, at::tensor(levels, at::kDouble), features, draws}).toTuple();
  return {found->elements()[0].toTensor(), found->elements()[1].toTensor(), found->elements()[2].toTensor()};
}

/// The last S seasons, each moved to the mean of the last one: quantiles of the same place.
evaluation::BaselineForecast moved_quantiles(std::vector<float> past, const evaluation::Seasons& seasons,
                                             std::int64_t horizon, const std::vector<double>& levels) {
  const auto m = static_cast<std::size_t>(seasons.length);
  std::vector<double> level;
  for (std::size_t s = 0; s < static_cast<std::size_t>(seasons.count) && (s + 1) * m <= past.size(); ++s) {
    double sum = 0.0;
    double count = 0.0;
    for (std::size_t i = 0; i < m; ++i)
      if (const float value = past[past.size() - (s + 1) * m + i]; !std::isnan(value)) {
        sum += value;
        ++count;
      }
    level.push_back(sum / count);
    for (std::size_t i = 0; i < m; ++i)
      past[past.size() - (s + 1) * m + i] += static_cast<float>(level.front() - level.back());
  }
  return evaluation::baseline_forecast(evaluation::Baseline::seasonal_quantiles, past, seasons, horizon, levels);
}

/// The definition at Candidate::seasonal_regression, a value at a time.
evaluation::BaselineForecast regression(const std::vector<float>& past, std::int64_t season, std::int64_t count,
                                        std::int64_t horizon, const std::vector<double>& levels) {
  const auto h = static_cast<std::size_t>(horizon);
  const auto ahead = (horizon - 1) / season + 1;
  const auto read = (count + 6 + ahead) * season;
  const auto n = static_cast<std::int64_t>(past.size());
  // Value t of the part that is read, from 0; NaN where missing or before the series.
  const auto raw = [&](std::int64_t t) {
    const auto at = n - read + t;
    return at < 0 ? std::nan("") : static_cast<double>(past[static_cast<std::size_t>(at)]);
  };
  std::vector<double> filled;
  for (std::int64_t t = 0; t < read; ++t) {
    double sums[2] = {0.0, 0.0};
    double counts[2] = {0.0, 0.0};
    for (std::int64_t u = 0; u < read; ++u)
      if (!std::isnan(raw(u)))
        for (const int which : {0, 1})
          if (which == 1 || u % season == t % season) {
            sums[which] += raw(u);
            ++counts[which];
          }
    const double filler = counts[0] > 0.0 ? sums[0] / counts[0] : counts[1] > 0.0 ? sums[1] / counts[1] : 0.0;
    filled.push_back(std::isnan(raw(t)) ? filler : raw(t));
  }
  double centre = 0.0;
  for (const double x : filled) centre += x / static_cast<double>(filled.size());
  double variance = 0.0;
  for (const double x : filled) variance += (x - centre) * (x - centre) / static_cast<double>(filled.size());
  const double scale = variance > 0.0 ? std::sqrt(variance) : 1.0;
  for (auto& x : filled) x = (x - centre) / scale;
  // What the value at place `place` is regressed on, where season `last` is the last one known.
  const auto inputs = [&](std::int64_t last, std::int64_t place) {
    const auto z = [&](std::int64_t s, std::int64_t p) { return filled[static_cast<std::size_t>(s * season + p)]; };
    double week = 0.0;
    for (std::int64_t s = last - 6; s <= last; ++s) week += z(s, place) / 7.0;
    double level = 0.0;
    double end = 0.0;
    const auto eighth = std::max<std::int64_t>(1, season / 8);
    for (std::int64_t p = 0; p < season; ++p) level += z(last, p) / static_cast<double>(season);
    for (std::int64_t p = season - eighth; p < season; ++p) end += z(last, p) / static_cast<double>(eighth);
    return std::vector<double>{
        z(last, place), z(last - 1, place), z(last - 2, place), z(last - 6, place), week, level, end, 1.0};
  };
  evaluation::BaselineForecast out{std::vector<double>(levels.size() * h), std::vector<double>(h)};
  const std::vector<double> towards = {0.3, 0.0, 0.0, 0.0, 0.7, 0.0, 0.0, 0.0};
  const auto times = [](const std::vector<double>& x, const double* weights) {
    double sum = 0.0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * weights[i];
    return sum;
  };
  for (std::int64_t j = 1; j <= ahead; ++j) {
    auto normal = at::zeros({8, 8}, at::kDouble);
    auto right = at::zeros({8, 1}, at::kDouble);
    double fitted = 0.0;
    const auto each = [&](const auto& use) {
      for (std::int64_t s = 6 + ahead; s < count + 6 + ahead; ++s)
        for (std::int64_t p = 0; p < season; ++p)
          if (!std::isnan(raw(s * season + p)))
            use(inputs(s - j, p), filled[static_cast<std::size_t>(s * season + p)], p);
    };
    each([&](const std::vector<double>& x, double y, std::int64_t) {
      const auto row = at::tensor(x, at::kDouble).view({8, 1});
      normal += row.mm(row.t());
      right += row * (y - times(x, towards.data()));
      ++fitted;
    });
    const auto solved = at::linalg_solve(normal / std::max(1.0, fitted) + 0.01 * at::eye(8, at::kDouble),
                                         right / std::max(1.0, fitted));
    std::vector<double> weights = towards;
    for (std::size_t i = 0; i < 8; ++i) weights[i] += solved[static_cast<std::int64_t>(i)][0].item<double>();
    std::vector<std::vector<float>> errors(static_cast<std::size_t>(season));
    each([&](const std::vector<double>& x, double y, std::int64_t p) {
      errors[static_cast<std::size_t>(p)].push_back(static_cast<float>(y - times(x, weights.data())));
    });
    for (std::int64_t k = (j - 1) * season; k < std::min(horizon, j * season); ++k) {
      const double point = times(inputs(count + 5 + ahead, k % season), weights.data());
      // (The quantiles of a sample are those of the seasonal baseline with a season of one step.)
      const auto& sample = errors[static_cast<std::size_t>(k % season)];
      const auto own = evaluation::baseline_forecast(
          evaluation::Baseline::seasonal_quantiles, sample,
          {1, std::max<std::int64_t>(1, static_cast<std::int64_t>(sample.size()))}, 1, levels);
      for (std::size_t q = 0; q < levels.size(); ++q)
        out.quantiles[q * h + static_cast<std::size_t>(k)] = (point + own.quantiles[q]) * scale + centre;
      out.mean[static_cast<std::size_t>(k)] = (point + own.mean[0]) * scale + centre;
    }
  }
  return out;
}

/// The definition at Candidate::covariate_quantiles, a step at a time. `told` is (n + H, K) for a past of n values.
evaluation::BaselineForecast covariate_quantiles(const std::vector<float>& past, const at::Tensor& told,
                                                 const evaluation::Seasons& seasons, std::int64_t horizon,
                                                 const std::vector<double>& levels) {
  const auto n = static_cast<std::int64_t>(past.size());
  const auto m = seasons.length;
  std::vector<std::vector<std::int64_t>> at_place(static_cast<std::size_t>(m));
  for (std::int64_t t = std::max<std::int64_t>(0, n - seasons.count * m); t < n; ++t)
    if (!std::isnan(past[static_cast<std::size_t>(t)]))
      at_place[static_cast<std::size_t>((t - n + seasons.count * m) % m)].push_back(t);
  std::vector<at::Tensor> x;
  std::vector<at::Tensor> mean_at(static_cast<std::size_t>(m));
  std::vector<double> y, values;
  bool is_signed = false;
  double sum = 0.0;
  for (const auto& steps : at_place)
    for (const auto t : steps) {
      values.push_back(past[static_cast<std::size_t>(t)]);
      is_signed = is_signed || values.back() < 0.0;
      sum += values.back();
    }
  const double tenth = sum > 0.0 ? 0.1 * sum / static_cast<double>(values.size()) : 1.0;
  const auto taken = [&](double value) { return is_signed ? value : std::log(value + tenth); };
  double least = std::numeric_limits<double>::infinity();
  double most = -least;
  for (const double value : values) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
  for (std::size_t place = 0; place < at_place.size(); ++place) {
    const auto& steps = at_place[place];
    at::Tensor mean_x = at::zeros({told.size(1)}, at::kDouble);
    double mean_y = 0.0;
    for (const auto t : steps) {
      mean_x += told[t] / static_cast<double>(steps.size());
      mean_y += taken(past[static_cast<std::size_t>(t)]) / static_cast<double>(steps.size());
    }
    mean_at[place] = mean_x;
    for (const auto t : steps) {
      x.push_back(told[t] - mean_x);
      y.push_back(taken(past[static_cast<std::size_t>(t)]) - mean_y);
    }
  }
  at::Tensor weights = at::zeros({told.size(1)}, at::kDouble);
  at::Tensor low = weights;
  at::Tensor high = weights;
  if (!x.empty()) {
    auto units = at::sqrt(at::stack(x).square().mean(0));
    units = at::where(units > 0.0, units, at::ones_like(units));
    const auto scaled = at::stack(x) / units;
    const auto ridge = 0.01 * static_cast<double>(x.size()) * at::eye(told.size(1), at::kDouble);
    weights = at::linalg_solve(scaled.t().mm(scaled) + ridge, scaled.t().mv(at::tensor(y, at::kDouble))) / units;
    const auto differences = at::stack(x);
    const auto range = differences.amax(0) - differences.amin(0);
    low = differences.amin(0) - 0.5 * range;
    high = differences.amax(0) + 0.5 * range;
  }
  evaluation::BaselineForecast out{std::vector<double>(levels.size() * static_cast<std::size_t>(horizon)),
                                   std::vector<double>(static_cast<std::size_t>(horizon))};
  for (std::int64_t k = 0; k < horizon; ++k) {
    auto moved = past;
    const auto& mean_x = mean_at[static_cast<std::size_t>(k % m)];
    const auto now = mean_x + at::minimum(at::maximum(told[n + k] - mean_x, low), high);
    // Where nothing is known of the place, values of other places stand in as they are.
    for (const auto t : at_place[static_cast<std::size_t>(k % m)]) {
      auto& value = moved[static_cast<std::size_t>(t)];
      const double further = taken(value) + (now - told[t]).dot(weights).item<double>();
      const double first = least - 0.5 * (most - least);
      value = static_cast<float>(std::clamp(is_signed ? further : std::exp(further) - tenth,
                                            is_signed ? first : std::max(first, 0.0), most + 0.5 * (most - least)));
    }
    const auto found = baseline_forecast(evaluation::Baseline::seasonal_quantiles, moved, seasons, horizon, levels);
    const auto h = static_cast<std::size_t>(horizon);
    for (std::size_t i = static_cast<std::size_t>(k); i < out.quantiles.size(); i += h)
      out.quantiles[i] = found.quantiles[i];
    out.mean[static_cast<std::size_t>(k)] = found.mean[static_cast<std::size_t>(k)];
  }
  return out;
}

/// The definition at Mixture, one series at a time and in plain loops.
struct Reference {
  std::vector<double> quantiles, mean, weights;
  double spread = 1.0;
};
Reference reference(torch::jit::Module& network, torch::jit::Module& start, const Mixture& mixture,
                    std::int64_t horizon, const std::vector<float>& past, const std::vector<double>& asked,
                    std::vector<torch::jit::Module> others = {}, const at::Tensor& features = {}) {
  const auto h = static_cast<std::size_t>(horizon);
  auto levels = asked;
  levels.push_back(0.5);
  const auto all = [&](std::size_t end, const std::vector<double>& at) {
    std::vector<evaluation::BaselineForecast> out;
    std::vector<float> read(past.begin(), past.begin() + static_cast<std::ptrdiff_t>(end));
    const auto values = [](const at::Tensor& t) {
      const auto flat = t.contiguous().to(at::kDouble);
      return std::vector<double>(flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel());
    };
    const auto by = [&](torch::jit::Module& module) {
      const auto length = module.attr("past_length").toInt();
      const auto own = input_of({std::vector<float>(read.end() - length, read.end())});
      const auto first = static_cast<std::int64_t>(end) - length;
      const auto found =
          run(module, own, at::ones({1, 1, horizon, 2}, at::kDouble), at,
              features.defined() ? at::IValue(features.narrow(0, first, length + horizon).unsqueeze(0)) : at::IValue());
      out.push_back({values(found.quantiles), values(found.mean)});
    };
    by(network);
    for (const auto& member : mixture.members) {
      const evaluation::Seasons seasons{member.season, member.seasons};
      const auto bands = evaluation::Baseline::seasonal_naive_bands;
      switch (member.method) {
        case Candidate::start: by(start); break;
        case Candidate::seasonal_quantiles:
          out.push_back(baseline_forecast(evaluation::Baseline::seasonal_quantiles, read, seasons, horizon, at));
          break;
        case Candidate::moved_quantiles: out.push_back(moved_quantiles(read, seasons, horizon, at)); break;
        case Candidate::seasonal_naive_bands:
        case Candidate::last_value_bands: out.push_back(baseline_forecast(bands, read, seasons, horizon, at)); break;
        case Candidate::seasonal_regression:
          out.push_back(regression(read, member.season, member.seasons, horizon, at));
          break;
        case Candidate::covariate_quantiles: {
          const auto age = features.size(1) - 1;
          const auto told = features.narrow(1, age - mixture.covariates, mixture.covariates);
          out.push_back(covariate_quantiles(read, told.narrow(0, 0, static_cast<std::int64_t>(end) + horizon), seasons,
                                            horizon, at));
          break;
        }
      }
    }
    for (auto& other : others) by(other);
    return out;
  };
  const auto loss = [&](const std::vector<double>& quantiles, std::size_t end) {
    double sum = 0.0;
    for (std::size_t q = 0; q < deciles.size(); ++q)
      for (std::size_t k = 0; k < h; ++k)
        if (!std::isnan(past[end + k])) {
          const double error = past[end + k] - quantiles[q * h + k];
          sum += std::max(deciles[q] * error, (deciles[q] - 1.0) * error);
        }
    return sum;
  };
  Reference out;
  std::vector<double> losses(mixture.members.size() + 1 + others.size(), 0.0);
  struct Window {
    std::size_t end;
    double weight;
    std::vector<evaluation::BaselineForecast> candidates;
  };
  std::vector<Window> record;
  for (std::int64_t j = 1; j <= mixture.windows; ++j) {
    const auto end = past.size() - static_cast<std::size_t>(j * mixture.stride);
    const auto before = end - static_cast<std::size_t>(std::max(mixture.longest_season(), horizon));
    const auto is_known = [](float x) { return !std::isnan(x); };
    if (!std::any_of(past.begin(), past.begin() + static_cast<std::ptrdiff_t>(before), is_known) ||
        !std::any_of(past.begin() + static_cast<std::ptrdiff_t>(end),
                     past.begin() + static_cast<std::ptrdiff_t>(end + h), is_known))
      continue;
    record.push_back({end, std::exp(-static_cast<double>(j) / 14.0), all(end, deciles)});
    for (std::size_t i = 0; i < losses.size(); ++i)
      losses[i] += record.back().weight * loss(record.back().candidates[i].quantiles, end);
  }
  const auto n = static_cast<double>(record.size());
  double total = 0.0;
  for (const double x : losses) {
    const bool is_network = out.weights.empty() || out.weights.size() > mixture.members.size();
    out.weights.push_back((is_network ? 2.0 : 1.0) * std::pow(x > 0.0 ? x : 1.0, -std::min(n, 8.0)));
    total += out.weights.back();
  }
  for (auto& weight : out.weights) weight /= total;
  const auto mixed = [&](const std::vector<evaluation::BaselineForecast>& candidates) {
    evaluation::BaselineForecast sum{std::vector<double>(candidates[0].quantiles.size()), std::vector<double>(h)};
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      for (std::size_t q = 0; q < sum.quantiles.size(); ++q)
        sum.quantiles[q] += out.weights[i] * candidates[i].quantiles[q];
      for (std::size_t k = 0; k < h; ++k) sum.mean[k] += out.weights[i] * candidates[i].mean[k];
    }
    return sum;
  };
  const auto spread_by = [&](double s, const std::vector<double>& quantiles, std::size_t median) {
    auto wide = quantiles;
    for (std::size_t i = 0; i < wide.size(); ++i) {
      const double middle = quantiles[median * h + i % h];
      wide[i] = middle + s * (quantiles[i] - middle);
    }
    return wide;
  };
  double least = std::numeric_limits<double>::infinity();
  for (const double s : models::mixture_spreads()) {
    double sum = 0.0;
    for (const auto& window : record)
      sum += window.weight * loss(spread_by(s, mixed(window.candidates).quantiles, 4), window.end);
    if (!record.empty() && sum < least) {
      least = sum;
      out.spread = std::pow(s, n / (n + 3.0));
    }
  }
  const auto coming = mixed(all(past.size(), levels));
  out.quantiles = spread_by(out.spread, coming.quantiles, asked.size());
  out.mean = coming.mean;
  for (std::size_t k = 0; k < h; ++k)
    out.mean[k] =
        coming.quantiles[asked.size() * h + k] + out.spread * (coming.mean[k] - coming.quantiles[asked.size() * h + k]);
  out.quantiles.resize(asked.size() * h);
  return out;
}

/// Row `i` of `found`, at the levels `asked`, is the forecast that the reference has.
void expect_forecast(const Output& found, std::size_t i, const Reference& expected, const std::vector<double>& asked) {
  const auto row = static_cast<std::int64_t>(i);
  const auto horizon = static_cast<std::int64_t>(expected.mean.size());
  for (std::int64_t k = 0; k < horizon; ++k) {
    for (std::size_t q = 0; q < asked.size(); ++q)
      EXPECT_NEAR(found.quantiles[row][static_cast<std::int64_t>(q)][k].item<double>(),
                  expected.quantiles[q * expected.mean.size() + static_cast<std::size_t>(k)], 1e-5)
          << "series " << i << ", level " << asked[q] << ", step " << k;
    EXPECT_NEAR(found.mean[row][k].item<double>(), expected.mean[static_cast<std::size_t>(k)], 1e-5);
  }
}

TEST(Mixture, IsWhatItsDefinitionSays) {
  for (const std::int64_t horizon : {3, 4, 9}) {
    const auto mixture = mixture_of(horizon);
    const auto model = make(options_with(mixture, horizon));
    auto alone = options_with({}, horizon);
    auto network = make_module(*make(alone));
    auto start = make_module(*make(alone, "dlinear", Weights::start));
    auto module = make_module(*model);
    const auto length = static_cast<std::size_t>(forecast_past_length(*model));
    ASSERT_EQ(module.attr("past_length").toInt(), static_cast<std::int64_t>(length));
    EXPECT_EQ(network.attr("past_length").toInt(), 8);
    std::vector<std::vector<float>> rows;
    // The third begins so late that two windows count, the fourth that none does.
    const auto stride = static_cast<std::size_t>(mixture.stride);
    const auto lead = static_cast<std::size_t>(std::max<std::int64_t>(horizon, 4));
    for (const std::size_t begin : {std::size_t{0}, std::size_t{3}, length - 2 * stride - lead - 1, length - lead})
      rows.push_back(series(length, begin, rows.size()));
    const std::vector<double> asked = {0.05, 0.5, 0.77};
    const auto draws = at::rand({4, 2, horizon, 2}, at::kDouble);
    const auto found = run(module, input_of(rows), draws, asked);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto expected = reference(network, start, mixture, horizon, rows[i], asked);
      expect_forecast(found, i, expected, asked);
      if (i == 3) {
        EXPECT_NEAR(expected.weights[0], 2.0 / 8.0, 1e-15);
        EXPECT_NEAR(expected.weights[6], 1.0 / 8.0, 1e-15);
        EXPECT_EQ(expected.spread, 1.0);
      }
    }
  }
}

/// (length + H, F): calendar features, two covariates, of which the second is mostly 0, and an age.
at::Tensor features_of(std::int64_t length, std::int64_t count, std::uint64_t number) {
  RandomStream draws(SecretKey::from_seed(10), "features", number);
  auto out = at::zeros({length, count}, at::kDouble);
  for (std::int64_t t = 0; t < length; ++t)
    for (std::int64_t k = 0; k < count; ++k)
      out[t][k] = k + 1 == count ? 1.0 : k + 2 == count ? (draws.uniform() < 0.1 ? 1.0 : 0.0) : draws.uniform();
  return out;
}

TEST(Mixture, MovesValuesByWhatCovariatesTell) {
  for (const std::string name : {"dlinear", "deepar"})
    for (const std::int64_t horizon : {3, 4, 9}) {
      auto mixture = mixture_of(horizon);
      mixture.members = {{Candidate::seasonal_quantiles, 4, 3},
                         {Candidate::covariate_quantiles, 4, 8},
                         {Candidate::covariate_quantiles, 1, 12}};
      mixture.covariates = 2;
      auto options = options_with(mixture, horizon, name);
      options.time_features = 5;  // a calendar of two
      options.covariates = 2;
      const auto model = make(options, name);
      options.mixture = {};
      auto network = make_module(*make(options, name));
      auto module = make_module(*model);
      const auto length = static_cast<std::size_t>(forecast_past_length(*model));
      const std::vector<double> asked = {0.05, 0.5, 0.77};
      std::vector<std::vector<float>> rows;
      std::vector<at::Tensor> features;
      for (const std::size_t begin : {std::size_t{0}, std::size_t{3}, length - 14, length - 2}) {
        features.push_back(features_of(static_cast<std::int64_t>(length) + horizon, 5, rows.size()));
        // The fourth is 0 before its series, as padding is.
        if (rows.size() == 1) features.back()[static_cast<std::int64_t>(length)][2] = 30.0;  // far from all before
        if (begin + 2 == length) features.back().narrow(0, 0, static_cast<std::int64_t>(begin)).zero_();
        rows.push_back(series(length, begin, rows.size()));
        for (std::size_t t = 0; t < length; ++t) {
          const auto at = features.back()[static_cast<std::int64_t>(t)];
          rows.back()[t] += static_cast<float>(4.0 * at[2].item<double>() + 9.0 * at[3].item<double>());
          if (begin == 3) rows.back()[t] -= 15.0F;  // of which some are negative
        }
      }
      const auto draws = at::ones({4, 1, horizon, 2}, at::kDouble);
      const auto found = run(module, input_of(rows), draws, asked, at::stack(features));
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto expected = reference(network, network, mixture, horizon, rows[i], asked, {}, features[i]);
        expect_forecast(found, i, expected, asked);
      }
    }
}

TEST(Mixture, CovariatesExplainWhatTheyCause) {
  // A value that is 10 and 9 more where a covariate is 1: the candidate alone forecasts that from what it has seen.
  auto mixture = mixture_of(4);
  mixture.members = {{Candidate::covariate_quantiles, 4, 8}};
  mixture.covariates = 1;
  auto options = options_with(mixture, 4);
  options.time_features = 2;
  options.covariates = 1;
  const auto model = make(options);
  auto module = make_module(*model);
  const auto length = forecast_past_length(*model);
  auto features = features_of(length + 4, 2, 3);
  std::vector<float> past;
  for (std::int64_t t = 0; t < length + 4; ++t) {
    features[t][0] = t % 7 == 3 || t == length + 1 ? 1.0 : 0.0;
    if (t < length) past.push_back(10.0F + 9.0F * features[t][0].item<float>());
  }
  const auto found = run(module, input_of({past}), at::ones({1, 1, 4, 2}, at::kDouble), deciles, features.unsqueeze(0));
  for (std::int64_t k = 0; k < 4; ++k)
    EXPECT_NEAR(found.mean[0][k].item<double>(), 10.0 + 9.0 * features[length + k][0].item<double>(), 0.3) << k;
}

TEST(Mixture, CovariatesMoveValuesNoFurtherThanTheyHave) {
  // One that is the same at each place but for rounding, and a promotion of a depth that was never seen.
  auto mixture = mixture_of(4);
  mixture.members = {{Candidate::covariate_quantiles, 4, 30}};
  mixture.covariates = 1;
  auto options = options_with(mixture, 4);
  options.time_features = 2;
  options.covariates = 1;
  const auto model = make(options);
  auto module = make_module(*model);
  const auto length = forecast_past_length(*model);
  for (const bool bursts : {false, true}) {
    auto features = features_of(length + 4, 2, 4);
    auto past = series(static_cast<std::size_t>(length), 0, 5);
    for (std::int64_t t = 0; t < length + 4; ++t) {
      const bool promoted = bursts && t % 9 == 0;
      const double same = std::sin(1.5707963 * static_cast<double>(t % 4)) + (t == length + 2 ? 0.3 : 1e-7 * (t % 11));
      features[t][0] = bursts ? (promoted ? 0.5 : t >= length ? 0.75 : 0.0) : same;
      if (t < length) past[static_cast<std::size_t>(t)] -= 0.02F * static_cast<float>(t);
      if (bursts && t < length)
        past[static_cast<std::size_t>(t)] = promoted ? 1000.0F + static_cast<float>(t % 50) : 0.0F;
    }
    const auto found =
        run(module, input_of({past}), at::ones({1, 1, 4, 2}, at::kDouble), deciles, features.unsqueeze(0));
    if (bursts) {
      EXPECT_LE(found.quantiles.max().item<double>(), 1.6 * 1049.0);
    } else {
      for (std::int64_t k = 0; k < 4; ++k)
        EXPECT_NEAR(found.mean[0][k].item<double>(), 10.5 + 3.0 * static_cast<double>(k), 0.5) << k;
    }
    EXPECT_GE(found.quantiles.min().item<double>(), 0.0);
  }
}

Output run_with(torch::jit::Module& module, const Input& input, const at::Tensor& draws, const at::Tensor& external,
                std::vector<double> levels = deciles) {
  const auto found =
      module.forward({input.target, input.observed, at::tensor(levels, at::kDouble), at::IValue(), draws, 2, external})
          .toTuple();
  return {found->elements()[0].toTensor(), found->elements()[1].toTensor(), found->elements()[2].toTensor()};
}

/// A `simple_ff` and a `dlinear` of other contexts, beside a model with the candidates of `mixture`.
std::vector<std::shared_ptr<const models::Forecaster>> other_networks(std::int64_t horizon) {
  std::vector<std::shared_ptr<const models::Forecaster>> out;
  for (const auto& [name, context] : {std::pair{"simple_ff", 13}, {"dlinear", 6}}) {
    auto options = options_with({}, horizon);
    options.context_length = context;
    auto network = models::make_model(name, options, at::TensorOptions(at::kDouble));
    RandomStream stream(SecretKey::from_seed(17), "initial weights", static_cast<std::uint64_t>(context));
    network->initialise(stream);
    for (std::int64_t i = 0; i < network->parameters().count(); ++i)
      network->parameters().values()[i] += 0.02 * stream.uniform();
    out.push_back(std::move(network));
  }
  return out;
}

TEST(Mixture, HoldsOtherNetworks) {
  for (const std::int64_t horizon : {3, 9})
    for (const bool alone : {false, true}) {
      auto mixture = mixture_of(horizon);
      if (alone) mixture.members.clear();
      mixture.networks = {"first", "second"};
      const auto model = make(options_with(mixture, horizon));
      EXPECT_THROW(static_cast<void>(make_module(*model)), Error);  // without them
      const auto others = other_networks(horizon);
      model->keep_networks(others);
      auto module = make_module(*model);
      auto network = make_module(*make(options_with({}, horizon)));
      auto start = make_module(*make(options_with({}, horizon), "dlinear", Weights::start));
      const auto length = static_cast<std::size_t>(forecast_past_length(*model));
      ASSERT_GE(length, static_cast<std::size_t>(13 + mixture.windows * mixture.stride));
      const std::vector<std::vector<float>> rows = {series(length, 0, 0), series(length, 3, 1),
                                                    series(length, length - 14, 2)};
      const std::vector<double> asked = {0.05, 0.5, 0.77};
      const auto found = run(module, input_of(rows), at::rand({3, 2, horizon, 2}, at::kDouble), asked);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto expected = reference(network, start, mixture, horizon, rows[i], asked,
                                        {make_module(*others[0]), make_module(*others[1])});
        expect_forecast(found, i, expected, asked);
      }
    }
}

/// What a baseline forecasts of the coming window and of those before it: (1, J + 1, 1, 10, H).
at::Tensor external_of(const std::vector<float>& past, const Mixture& mixture, std::int64_t horizon) {
  std::vector<at::Tensor> windows;
  for (std::int64_t j = 0; j <= mixture.windows; ++j) {
    const auto end = past.size() - static_cast<std::size_t>(j * mixture.stride);
    const auto made = evaluation::baseline_forecast(evaluation::Baseline::seasonal_quantiles,
                                                    std::span(past).first(end), {4, 3}, horizon, deciles);
    auto values = made.quantiles;
    values.insert(values.end(), made.mean.begin(), made.mean.end());
    windows.push_back(at::tensor(values, at::kDouble).view({1, 10, horizon}));
  }
  return at::stack(windows).unsqueeze(0);
}

// Forecasts of another program that are those of a candidate have its weight and its place.
TEST(Mixture, TreatsForecastsOfOtherProgramsAlike) {
  for (const std::int64_t horizon : {3, 9}) {
    const auto stride = std::max<std::int64_t>(horizon, 4);
    const Mixture::Member longest{Candidate::last_value_bands, 1, 40};
    const Mixture inside{{longest, {Candidate::seasonal_quantiles, 4, 3}}, {}, 6, stride};
    const Mixture outside{{longest}, {"chronos"}, 6, stride};
    auto expected = make_module(*make(options_with(inside, horizon)));
    auto module = make_module(*make(options_with(outside, horizon)));
    const auto length = static_cast<std::size_t>(module.attr("past_length").toInt());
    ASSERT_EQ(expected.attr("past_length").toInt(), static_cast<std::int64_t>(length));
    // With a longest season of 1 fewer values must lie before a window that counts: the same windows count of both.
    const auto past = series(length, 0, 0);
    const auto draws = at::rand({1, 2, horizon, 2}, at::kDouble);
    const auto found = run_with(module, input_of({past}), draws, external_of(past, outside, horizon));
    const auto wanted = run(expected, input_of({past}), draws);
    EXPECT_TRUE(found.quantiles.allclose(wanted.quantiles, 1e-6, 1e-6));
    EXPECT_TRUE(found.mean.allclose(wanted.mean, 1e-6, 1e-6));
  }
}

// It takes part where it has the coming window and all that count. Else the forecast is that of a mixture without it.
TEST(Mixture, LeavesOutForecastsWithoutARecord) {
  constexpr std::int64_t horizon = 4;
  const auto without = mixture_of(horizon);
  auto with = without;
  with.external = {"chronos"};
  auto expected = make_module(*make(options_with(without, horizon)));
  auto module = make_module(*make(options_with(with, horizon)));
  const auto length = static_cast<std::size_t>(module.attr("past_length").toInt());
  const auto draws = at::rand({1, 2, horizon, 2}, at::kDouble);
  const auto past = series(length, 0, 0);
  const auto input = input_of({past});
  const auto wanted = run(expected, input, draws);
  const auto same = [&](const Output& found) {
    return found.quantiles.allclose(wanted.quantiles, 1e-13, 1e-13) && found.mean.allclose(wanted.mean, 1e-13, 1e-13) &&
           found.samples.allclose(wanted.samples, 1e-13, 1e-13);
  };
  EXPECT_TRUE(same(run(module, input, draws)));
  const auto whole = external_of(past, with, horizon);
  EXPECT_FALSE(same(run_with(module, input, draws, whole)));
  for (std::int64_t window = 0; window <= with.windows; ++window) {
    auto part = whole.clone();
    part[0][window][0][3][1] = missing;
    EXPECT_TRUE(same(run_with(module, input, draws, part))) << window;
  }
  // Of windows that do not count nothing is asked: here the series begins after all but two.
  const auto late = series(length, length - 2 * 4 - 4 - 1, 3);
  auto part = external_of(late, with, horizon);
  const auto all = run_with(module, input_of({late}), draws, part);
  part.narrow(1, 3, with.windows - 2).fill_(missing);
  EXPECT_TRUE(run_with(module, input_of({late}), draws, part).quantiles.equal(all.quantiles));
  part.narrow(1, 2, 1).fill_(missing);
  EXPECT_FALSE(run_with(module, input_of({late}), draws, part).quantiles.equal(all.quantiles));
  EXPECT_THROW(static_cast<void>(run_with(module, input, draws, whole.narrow(1, 0, 2))), std::exception);
}

// Values far from all others of the past count as missing; nothing else does.
TEST(Mixture, SkipsOutliers) {
  constexpr std::int64_t horizon = 4;
  auto mixture = mixture_of(horizon);
  mixture.members.push_back({Candidate::seasonal_naive_bands, 4, 60});  // so that it reads more than 200 values
  auto module = make_module(*make(options_with(mixture, horizon)));
  mixture.skips_outliers = true;
  auto skipping = make_module(*make(options_with(mixture, horizon)));
  const auto length = static_cast<std::size_t>(module.attr("past_length").toInt());
  ASSERT_GT(length, 240U);
  const auto draws = at::rand({1, 3, horizon, 2}, at::kDouble);
  const auto same = [](const Output& a, const Output& b) {
    return a.quantiles.equal(b.quantiles) && a.mean.equal(b.mean) && a.samples.equal(b.samples);
  };
  auto past = series(length, 0, 0);
  past[length - 30] = 15.0F;
  past[length - 2] = 15.0F;
  EXPECT_TRUE(same(run(skipping, input_of({past}), draws), run(module, input_of({past}), draws)));
  auto without = past;
  without[length - 30] = without[length - 2] = missing;
  past[length - 30] = 1e6F;
  past[length - 2] = -400.0F;
  data::Series one{"a", 0, past};
  ASSERT_EQ(data::outliers_of(one),
            (std::vector<std::int64_t>{static_cast<std::int64_t>(length) - 30, static_cast<std::int64_t>(length) - 2}));
  const auto found = run(skipping, input_of({past}), draws);
  EXPECT_TRUE(same(found, run(module, input_of({without}), draws)));
  EXPECT_FALSE(same(found, run(module, input_of({past}), draws)));
  // Of fewer than 100 known values none is far, nor where most are the same.
  auto few = series(length, length - 95, 1);
  few[length - 3] = 1e6F;
  EXPECT_TRUE(same(run(skipping, input_of({few}), draws), run(module, input_of({few}), draws)));
  std::vector<float> rare(length, 0.0F);
  rare[length - 3] = 7.0F;
  EXPECT_TRUE(same(run(skipping, input_of({rare}), draws), run(module, input_of({rare}), draws)));
}

// Between the levels that it has, and beyond them, its quantiles are linear in the logit of the level.
TEST(Mixture, ReadsOtherLevelsOffTheDeciles) {
  constexpr std::int64_t horizon = 2;
  const Mixture mixture{{}, {"chronos"}, 6, 4};
  auto module = make_module(*make(options_with(mixture, horizon)));
  const auto length = module.attr("past_length").toInt();
  // Its quantiles are right to 1e-3 where the network knows nothing, so that it has all the weight.
  RandomStream stream(SecretKey::from_seed(3), "walk", 0);
  std::vector<float> past;
  for (std::int64_t t = 0; t < length; ++t) past.push_back(static_cast<float>(100.0 * stream.uniform()));
  auto external = at::empty({1, 7, 1, 10, horizon}, at::kDouble);
  for (std::int64_t j = 0; j <= 6; ++j)
    for (std::int64_t k = 0; k < horizon; ++k)
      for (std::int64_t q = 0; q < 10; ++q)
        external[0][j][0][q][k] = (j == 0 ? 50.0 : past[static_cast<std::size_t>(length - 4 * j + k)]) +
                                  (q == 9 ? 0.0 : 1e-3 * std::pow(q - 4.0, 3));
  const std::vector<double> asked = {0.02, 0.1, 0.25, 0.5, 0.62, 0.9, 0.97};
  const auto found =
      run_with(module, input_of({past}), at::rand({1, 2, horizon, 2}, at::kDouble), external, asked).quantiles[0];
  const auto quantile = [](double level) {
    const auto logit = [](double p) { return std::log(p / (1.0 - p)); };
    const int below = std::clamp(static_cast<int>(level * 10.0 + 1e-9) - 1, 0, 7);
    const double share =
        (logit(level) - logit((below + 1) / 10.0)) / (logit((below + 2) / 10.0) - logit((below + 1) / 10.0));
    return 1e-3 * (std::pow(below - 4.0, 3) + share * (std::pow(below - 3.0, 3) - std::pow(below - 4.0, 3)));
  };
  // Up to the spread, which is the same at every level.
  const double spread = (found[1][0].item<double>() - 50.0) / quantile(0.1);
  EXPECT_GT(spread, 0.3);
  for (std::size_t i = 0; i < asked.size(); ++i)
    for (std::int64_t k = 0; k < horizon; ++k)
      EXPECT_NEAR(found[static_cast<std::int64_t>(i)][k].item<double>() - 50.0, spread * quantile(asked[i]), 1e-7)
          << asked[i];
}

// Sorted, the samples of a step are the mixture's quantiles at (i + ½)/S; each keeps the rank of the network's sample,
// so that paths stay paths.
TEST(Mixture, SamplesKeepTheirRanks) {
  for (const auto& name : models::model_names()) {
    SCOPED_TRACE(name);
    constexpr std::int64_t horizon = 6;
    constexpr std::int64_t paths = 8;
    const auto mixture = mixture_of(horizon);
    const auto model = make(options_with(mixture, horizon, name), name);
    auto module = make_module(*model);
    auto network = make_module(*make(options_with({}, horizon, name), name));
    const auto length = forecast_past_length(*model);
    const auto own = network.attr("past_length").toInt();
    const auto input =
        input_of({series(static_cast<std::size_t>(length), 0, 0), series(static_cast<std::size_t>(length), 2, 1)});
    const auto draws = 1.0 - at::rand({2, paths, horizon, 2}, at::kDouble);
    at::IValue features;
    at::IValue own_features;
    if (model->reads_time_features()) {
      const auto all = at::rand({2, length + horizon, 3}, at::kDouble) - 0.5;
      features = all;
      own_features = all.narrow(1, length - own, own + horizon);
    }
    std::vector<double> ranks;
    for (std::int64_t i = 0; i < paths; ++i) ranks.push_back((static_cast<double>(i) + 0.5) / paths);
    const auto mixed = run(module, input, draws, ranks, features);
    const auto free =
        run(network, {input.target.narrow(1, length - own, own), input.observed.narrow(1, length - own, own)}, draws,
            ranks, own_features);
    EXPECT_TRUE(mixed.samples.argsort(std::int64_t{1}).equal(free.samples.argsort(std::int64_t{1})));
    if (model->samples_paths()) {
      EXPECT_TRUE(std::get<0>(mixed.samples.sort(1)).allclose(mixed.quantiles, 1e-9, 1e-9));
    }
  }
}

// A forecast depends on its own past alone; a longer past is cut, and a shorter one is one that begins later.
TEST(Mixture, RowsAreApart) {
  constexpr std::int64_t horizon = 4;
  const auto model = make(options_with(mixture_of(horizon), horizon));
  auto module = make_module(*model);
  const auto length = static_cast<std::size_t>(forecast_past_length(*model));
  const auto draws = at::rand({1, 3, horizon, 2}, at::kDouble);
  const auto one = series(length, 0, 0);
  const auto late = series(length, length / 2, 1);
  const auto alone = run(module, input_of({one}), draws);
  const auto beside = run(module, input_of({one, late}), draws.expand({2, -1, -1, -1}));
  EXPECT_TRUE(alone.quantiles[0].allclose(beside.quantiles[0], 1e-12, 1e-12));
  EXPECT_TRUE(alone.samples[0].allclose(beside.samples[0], 1e-12, 1e-12));
  auto longer = series(7, 0, 2);
  longer.insert(longer.end(), one.begin(), one.end());
  EXPECT_TRUE(run(module, input_of({longer}), draws).quantiles.allclose(alone.quantiles, 1e-12, 1e-12));
  const std::vector<float> shorter(late.begin() + static_cast<std::ptrdiff_t>(length / 2), late.end());
  EXPECT_TRUE(run(module, input_of({shorter}), draws).quantiles[0].allclose(beside.quantiles[1], 1e-12, 1e-12));
  const auto nothing = run(module, input_of({std::vector<float>(length, missing)}), draws);
  EXPECT_TRUE(nothing.quantiles.isfinite().all().item<bool>());
}

// Every candidate may leave the bounds that its past stays within; the mixture, its mean and its samples do not.
TEST(Mixture, StaysWithinTheBounds) {
  constexpr std::int64_t horizon = 4;
  auto options = options_with(mixture_of(horizon), horizon);
  options.lower_bound = 13.0;
  options.upper_bound = 17.5;
  const auto model = make(options);
  auto module = make_module(*model);
  const auto length = static_cast<std::size_t>(forecast_past_length(*model));
  const auto found =
      run(module, input_of({series(length, 0, 0)}), at::rand({1, 50, horizon, 2}, at::kDouble), {0.001, 0.5, 0.999});
  for (const auto& part : {found.quantiles, found.mean, found.samples}) {
    EXPECT_GE(part.min().item<double>(), 13.0);
    EXPECT_LE(part.max().item<double>(), 17.5);
  }
  EXPECT_EQ(found.quantiles.min().item<double>(), 13.0);
  EXPECT_EQ(found.quantiles.max().item<double>(), 17.5);
}

}  // namespace
}  // namespace tsdp::exporting
