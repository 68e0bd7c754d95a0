#include "export/mixture_reference.h"

#include <torch/csrc/jit/runtime/graph_executor.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/mixture.h"
#include "tsdp/evaluation/backtest.h"

namespace tsdp::exporting::test {

Input input_of(const std::vector<std::vector<float>>& series) {
  std::vector<at::Tensor> rows;
  for (const auto& one : series) rows.push_back(at::tensor(one).to(at::kDouble));
  const auto values = at::stack(rows);
  return {values.nan_to_num(0.0), values.eq(values).to(at::kDouble)};
}

Output run(torch::jit::Module& module, const Input& input, const at::Tensor& draws, std::vector<double> levels,
           const at::IValue& features) {
  const torch::jit::GraphOptimizerEnabledGuard as_written(false);  // which takes longer than it saves
  const auto found =
      module.forward({input.target, input.observed, at::tensor(levels, at::kDouble), features, draws}).toTuple();
  return {found->elements()[0].toTensor(), found->elements()[1].toTensor(), found->elements()[2].toTensor()};
}

namespace {

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

}  // namespace

Reference reference(torch::jit::Module& network, torch::jit::Module& start, const Mixture& mixture,
                    std::int64_t horizon, const std::vector<float>& past, const std::vector<double>& asked,
                    std::vector<torch::jit::Module> others, const at::Tensor& features,
                    const std::vector<std::int64_t>& every) {
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
    // Of a longer step: each series of every so many values, up to the last of its kind, gives its steps of the
    // horizon.
    const auto by_each = [&](torch::jit::Module& module, std::int64_t apart) {
      const auto length = module.attr("past_length").toInt();
      evaluation::BaselineForecast whole{std::vector<double>(at.size() * h), std::vector<double>(h)};
      for (std::int64_t first = 0; first < apart; ++first) {
        std::vector<float> own;
        for (auto i = static_cast<std::int64_t>(end) - length * apart + first; i < static_cast<std::int64_t>(end);
             i += apart)
          own.push_back(read[static_cast<std::size_t>(i)]);
        const auto theirs = module.attr("prediction_length").toInt();
        const auto found = run(module, input_of({own}), at::ones({1, 1, theirs, 2}, at::kDouble), at);
        for (std::int64_t k = 0; k < theirs && first + k * apart < horizon; ++k) {
          const auto step = static_cast<std::size_t>(first + k * apart);
          whole.mean[step] = found.mean[0][k].item<double>();
          for (std::size_t q = 0; q < at.size(); ++q)
            whole.quantiles[q * h + step] = found.quantiles[0][static_cast<std::int64_t>(q)][k].item<double>();
        }
      }
      out.push_back(std::move(whole));
    };
    for (std::size_t i = 0; i < others.size(); ++i)
      if (every.empty() || every[i] == 1) by(others[i]);
      else by_each(others[i], every[i]);
    return out;
  };
  const auto loss = [&](const std::vector<double>& quantiles, std::size_t end, const std::vector<double>& at) {
    double sum = 0.0;
    for (std::size_t q = 0; q < at.size(); ++q)
      for (std::size_t k = 0; k < h; ++k)
        if (!std::isnan(past[end + k])) {
          const double error = past[end + k] - quantiles[q * h + k];
          sum += std::max(at[q] * error, (at[q] - 1.0) * error);
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
      losses[i] += record.back().weight * loss(record.back().candidates[i].quantiles, end, deciles);
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
  const auto spread_by = [&](double s, const std::vector<double>& quantiles, const double* medians) {
    auto wide = quantiles;
    for (std::size_t i = 0; i < wide.size(); ++i) wide[i] = medians[i % h] + s * (quantiles[i] - medians[i % h]);
    return wide;
  };
  // Of each window that counts, its mixture at the deciles, and at 0.05 and 0.95, as far on as 0.1 and 0.9 are from 0.2
  // and 0.8 in the logit.
  const auto logit = [](double level) { return std::log(level / (1.0 - level)); };
  const double on = (logit(0.95) - logit(0.9)) / (logit(0.9) - logit(0.8));
  std::vector<std::vector<double>> mixtures, ends;
  for (const auto& window : record) {
    const auto q = mixtures.emplace_back(mixed(window.candidates).quantiles);
    auto& end = ends.emplace_back(2 * h);
    for (std::size_t k = 0; k < h; ++k) {
      end[k] = q[k] + on * (q[k] - q[h + k]);
      end[h + k] = q[8 * h + k] + on * (q[8 * h + k] - q[7 * h + k]);
    }
  }
  const auto best = [&](double by, const std::vector<std::vector<double>>& quantiles, const std::vector<double>& at) {
    double least = std::numeric_limits<double>::infinity(), found = 1.0;
    for (const double s : models::mixture_spreads()) {
      double sum = 0.0;
      for (std::size_t w = 0; w < record.size(); ++w)
        sum += record[w].weight * loss(spread_by(by * s, quantiles[w], &mixtures[w][4 * h]), record[w].end, at);
      if (sum < least) {
        least = sum;
        found = s;
      }
    }
    return std::pow(found, n / (n + 3.0));
  };
  out.spread = record.empty() ? 1.0 : best(1.0, mixtures, deciles);
  double outer = 1.0;
  if (mixture.widens_tails)
    outer =
        std::max(1.0, (record.empty() ? 1.0 : best(out.spread, ends, {0.05, 0.95})) * std::pow(1.2, 3.0 / (n + 3.0)));
  const auto coming = mixed(all(past.size(), levels));
  out.quantiles = coming.quantiles;
  for (std::size_t q = 0; q < levels.size(); ++q) {
    const double far = std::clamp((std::abs(logit(levels[q])) - logit(0.75)) / (logit(0.95) - logit(0.75)), 0.0, 1.0);
    for (std::size_t k = 0; k < h; ++k) {
      const double middle = coming.quantiles[asked.size() * h + k];
      out.quantiles[q * h + k] = middle + out.spread * std::pow(outer, far) * (coming.quantiles[q * h + k] - middle);
    }
  }
  out.mean = coming.mean;
  for (std::size_t k = 0; k < h; ++k)
    out.mean[k] =
        coming.quantiles[asked.size() * h + k] + out.spread * (coming.mean[k] - coming.quantiles[asked.size() * h + k]);
  out.quantiles.resize(asked.size() * h);
  return out;
}

}  // namespace tsdp::exporting::test
