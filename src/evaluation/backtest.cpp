#include "tsdp/evaluation/backtest.h"

#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <initializer_list>
#include <limits>
#include <new>
#include <set>

#include "base/floor_divide.h"
#include "data/oddities.h"
#include "evaluation/private_inference.h"
#include "evaluation/truth.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::evaluation {
namespace {

constexpr std::int64_t batch_rows = 256;
constexpr std::int64_t rows_of_a_part = 32;

/// All levels that are forecast, in the order of Metrics.
const std::vector<double>& forecast_levels() {
  static const std::vector<double> levels = [] {
    auto all = default_levels();
    all.insert(all.end(), interval_levels().begin(), interval_levels().end());
    return all;
  }();
  return levels;
}

/// Scores a baseline's forecast of one window, cut at the bounds of `shape`.
void add_baseline(Baseline baseline, std::span<const float> past, const Seasons& seasons, const Truth& truth,
                  const ModelShape& shape, std::initializer_list<Metrics*> to) {
  auto made =
      baseline_forecast(baseline, past, seasons, static_cast<std::int64_t>(truth.target.size()), forecast_levels());
  for (auto* values : {&made.quantiles, &made.mean})
    for (auto& value : *values) value = std::clamp(value, shape.lower_bound, shape.upper_bound);
  for (auto* metrics : to) metrics->add({truth.target, made.quantiles, made.mean, truth.seasonal_error});
}

}  // namespace

ModelShape shape_of(const torch::jit::Module& model) {
  const auto refuse = [](const char* name, const char* expected) {
    throw DataError(cat("the model's ", name, ": expected ", expected, ", as models that tsdp-export wrote have it"));
  };
  const auto number = [&](const char* name, std::int64_t least) {
    if (!model.hasattr(name) || !model.attr(name).isInt()) refuse(name, "an integer");
    const auto found = model.attr(name).toInt();
    if (found < least || found > 1'000'000) refuse(name, "an integer from 1 (0 for features) to 1000000");
    return found;
  };
  if (!model.hasattr("from_samples") || !model.attr("from_samples").isBool()) refuse("from_samples", "true or false");
  ModelShape out{number("past_length", 1), number("prediction_length", 1), number("time_feature_count", 0),
                 model.attr("from_samples").toBool()};
  // Models from before they had bounds have none.
  for (auto [name, bound] : {std::pair{"lower_bound", &out.lower_bound}, {"upper_bound", &out.upper_bound}}) {
    if (!model.hasattr(name)) continue;
    if (!model.attr(name).isDouble()) refuse(name, "a number");
    *bound = model.attr(name).toDouble();
  }
  if (!(out.lower_bound < out.upper_bound)) refuse("lower_bound", "a number below upper_bound");
  if (model.hasattr("variables")) out.variables = number("variables", 1);
  return out;
}

std::int64_t ModelShape::rows(std::int64_t most) const { return whole_groups(most, variables); }

void ModelShape::require_variables(const data::Dataset& dataset, std::span<const data::WindowIndex> indices) const {
  if (variables == 1) return;
  if (dataset.variable_count() != variables)
    throw UsageError(cat(dataset.name, ": found ", data::counted_series(dataset), "; the model forecasts ", variables,
                         " variables of each series together: expected as many columns of values "
                         "(dataset.columns.value, or --columns value=NAME,value=NAME)"));
  const auto of = static_cast<std::size_t>(variables);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const auto& first = indices[i / of * of];
    if (indices.size() % of != 0 || first.series % variables != 0 || indices[i].start != first.start ||
        indices[i].series != first.series + static_cast<std::int64_t>(i % of))
      throw Error(ExitCode::failure, "the variables of a series are to be forecast side by side");
  }
}

namespace {

/// Quantiles (B, levels, H), means (B, H) and samples (B, paths, H) as the model's code gives them. Throws DataError
/// for anything else.
std::array<at::Tensor, 3> run(torch::jit::Module& model, std::vector<at::IValue> given,
                              const std::array<std::vector<std::int64_t>, 3>& sizes) {
  const c10::NoGradGuard no_autograd;
  // The optimizer spends as long as 30 forecasts on a model, and its code is no faster after that.
  const torch::jit::GraphOptimizerEnabledGuard as_written(false);
  const auto result = model.forward(std::move(given));
  const auto refuse = [] {
    throw DataError(
        "the model's own code gave no quantiles (B, levels, H), means (B, H) and samples (B, paths, H); expected a "
        "model that tsdp-export or tsdp-train wrote");
  };
  // Whatever the code is, nothing beyond its output is read.
  if (!result.isTuple() || result.toTuple()->elements().size() != 3) refuse();
  std::array<at::Tensor, 3> out;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& value = result.toTuple()->elements()[i];
    if (!value.isTensor() || !value.toTensor().defined() || value.toTensor().sizes() != at::IntArrayRef(sizes[i]) ||
        !at::isFloatingType(value.toTensor().scalar_type()))
      refuse();
    out[i] = value.toTensor().to(at::kCPU, at::kDouble).contiguous();
  }
  return out;
}

}  // namespace

BatchForecast forecast(torch::jit::Module& model, const at::Tensor& past_target, const at::Tensor& past_observed,
                       const at::Tensor& time_features, const std::vector<double>& levels, RandomStream& draws,
                       std::optional<std::int64_t> asked_paths, const at::Tensor& external) {
  const auto device = past_target.device();
  const auto shape = shape_of(model);
  // Models that know the distribution at each step need no paths here.
  const auto paths = asked_paths.value_or(shape.from_samples ? sample_paths : 0);
  const auto rows = past_target.size(0);
  if (rows % shape.variables != 0)
    throw Error(ExitCode::failure, "the variables of a series are to be forecast side by side");
  const auto horizon = shape.prediction_length;
  auto uniform = at::empty({rows, paths, horizon, 2}, at::kFloat);
  for (auto* at = uniform.data_ptr<float>(); at != uniform.data_ptr<float>() + uniform.numel(); ++at)
    *at = static_cast<float>(1.0 - draws.uniform());
  const auto asked = at::tensor(levels, at::TensorOptions(device).dtype(at::kDouble));
  const auto on_device = uniform.to(device);
  // Windows do not depend on each other. Parts of one size, whatever the number of threads, which work on a part each:
  // thousands of small operations are not worth sharing out one by one.
  const auto part_rows = device.is_cpu() ? shape.rows(rows_of_a_part) : std::max<std::int64_t>(1, rows);
  std::vector<std::array<at::Tensor, 3>> parts(
      static_cast<std::size_t>(std::max<std::int64_t>(1, (rows + part_rows - 1) / part_rows)));
  const auto forecast_part = [&](std::int64_t part) {
    const auto begin = part * part_rows;
    const auto count = std::min(part_rows, rows - begin);
    const auto of = [&](const at::Tensor& all) { return all.narrow(0, begin, count); };
    std::vector<at::IValue> given = {of(past_target), of(past_observed), asked,
                                     time_features.defined() ? at::IValue(of(time_features)) : at::IValue(),
                                     of(on_device)};
    if (external.defined()) given.insert(given.end(), {paths, of(external)});
    parts[static_cast<std::size_t>(part)] =
        run(model, std::move(given),
            {{{count, static_cast<std::int64_t>(levels.size()), horizon}, {count, horizon}, {count, paths, horizon}}});
  };
  try {
    at::parallel_for(0, std::ssize(parts), 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto part = begin; part < end; ++part) forecast_part(part);
    });
  } catch (const std::bad_alloc&) { throw; } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    const std::string why = error.what();
    if (why.find("DefaultCPUAllocator") != std::string::npos || why.find("out of memory") != std::string::npos) throw;
    throw DataError(cat("the model's own code failed: ", why.substr(0, why.find('\n'))));
  }
  const auto joined = [&](std::size_t i) {
    std::vector<at::Tensor> of_parts;
    for (const auto& part : parts) of_parts.push_back(part[i]);
    return at::cat(of_parts);
  };
  return {joined(0), joined(1), joined(2)};
}

KnownFeatures::KnownFeatures(const torch::jit::Module& model, const data::Dataset& dataset) {
  const auto shape = shape_of(model);
  if (shape.time_features == 0) return;
  store_.emplace(dataset, shape.past_length, shape.prediction_length);
  if (store_->feature_count() != shape.time_features)
    throw DataError(cat("the model reads ", shape.time_features, " time features; series of ", dataset.frequency.text(),
                        " have ", store_->feature_count()));
}

at::Tensor KnownFeatures::gather(std::span<const data::WindowIndex> indices, const at::Device& device) const {
  if (!store_) return {};
  const auto windows = static_cast<std::int64_t>(indices.size());
  auto out = at::empty({windows, store_->window_length(), store_->feature_count()}, at::kFloat);
  store_->gather(indices, out.data_ptr<float>());
  return out.to(device);
}

ExternalWindows::ExternalWindows(const torch::jit::Module& model, const data::Dataset& dataset,
                                 const PrivateInference* privacy)
    : dataset_(dataset), privately_(privacy != nullptr), horizon_(shape_of(model).prediction_length) {
  if (model.hasattr("external") && model.attr("external").isList())
    for (const at::IValue& name : model.attr("external").toListRef()) names_.push_back(name.toStringRef());
  std::set<std::string> given;
  for (const auto& one : dataset.external) {
    if (!given.insert(one->name).second)
      throw UsageError(cat("candidates: found two files named ", one->name, "; expected one"));
    if (std::find(names_.begin(), names_.end(), one->name) == names_.end())
      throw UsageError(cat("candidates: found forecasts named ", one->name, "; the model is mixed with ",
                           names_.empty() ? std::string("none of other programs") : join(names_, ", ")));
  }
  for (const auto& name : names_) {
    const auto found = std::find_if(dataset.external.begin(), dataset.external.end(),
                                    [&](const auto& one) { return one->name == name; });
    forecasts_.push_back(found == dataset.external.end() || privacy != nullptr ? nullptr : found->get());
  }
  if (names_.empty()) return;
  const auto number = [&](const char* name) {
    return std::clamp<std::int64_t>(model.attr(name).toInt(), 1, 1'000'000);
  };
  windows_ = number("mixture_windows");
  stride_ = number("mixture_stride");
  reach_ = std::max(number("longest_season"), horizon_);
}

at::Tensor ExternalWindows::gather(std::span<const data::WindowIndex> indices, const at::Device& device) const {
  if (std::all_of(forecasts_.begin(), forecasts_.end(), [](const auto* one) { return one == nullptr; })) return {};
  const auto values = 10 * horizon_;  // of a window: quantiles and the mean
  const auto candidates = static_cast<std::int64_t>(forecasts_.size());
  auto out = at::full({static_cast<std::int64_t>(indices.size()), windows_ + 1, candidates, 10, horizon_},
                      std::numeric_limits<float>::quiet_NaN());
  auto* to = out.data_ptr<float>();
  for (const auto& index : indices)
    for (std::int64_t window = 0; window <= windows_; ++window)
      for (const auto* one : forecasts_) {
        if (one != nullptr)
          if (const auto found = one->windows.find({index.series, index.start - window * stride_});
              found != one->windows.end())
            std::copy(found->second.begin(), found->second.end(), to);
        to += values;
      }
  return out.to(device);
}

std::vector<std::vector<data::WindowIndex>> ExternalWindows::judged(std::span<const data::WindowIndex> indices) const {
  std::vector<std::vector<data::WindowIndex>> out(static_cast<std::size_t>(windows_ + 1));
  for (std::int64_t window = 0; window <= windows_; ++window)
    for (const auto& index : indices)
      if (const auto place = index.start - window * stride_; place >= 1)
        out[static_cast<std::size_t>(window)].push_back({index.series, place});
  return out;
}

std::string ExternalWindows::taking_part(std::span<const data::WindowIndex> indices) const {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const auto takes_part = [&](const data::WindowIndex& index) {
      if (forecasts_[i] == nullptr) return false;
      const auto& values = dataset_.series[static_cast<std::size_t>(index.series)].values;
      const auto known = [&](std::int64_t from, std::int64_t to) {
        return std::any_of(values.begin() + std::max<std::int64_t>(0, from),
                           values.begin() + std::max<std::int64_t>(0, to), [](float x) { return !std::isnan(x); });
      };
      for (std::int64_t window = 0; window <= windows_; ++window) {
        const auto place = index.start - window * stride_;
        const bool counts = window == 0 || (known(0, place - reach_) && known(place, place + horizon_));
        if (counts && !forecasts_[i]->windows.contains({index.series, place})) return false;
      }
      return true;
    };
    const auto count = std::count_if(indices.begin(), indices.end(), takes_part);
    out.push_back(cat(names_[i], " takes part in ", count, " of ", indices.size(), " forecasts"));
    if (forecasts_[i] == nullptr)
      out.back() += privately_ ? ": no private forecast is mixed with those of other programs"
                               : " (no forecasts by that name are given)";
    else if (static_cast<std::size_t>(count) < indices.size() && !forecasts_[i]->is_model())
      out.back() +=
          cat(" (those where ", names_[i], ".jsonl has the coming window and, as far as the series goes back, the ",
              windows_, " that begin ", stride_, ", ", 2 * stride_, ", … steps earlier)");
  }
  return join(out, ", ");
}

namespace {

/// Metrics of what another program forecast, cut at the bounds of `shape`; none unless it forecast all of `ranges`.
std::optional<Metrics> score_external(const data::ExternalForecasts& external, const data::Dataset& dataset,
                                      std::span<const data::ForecastRange> ranges, std::int64_t season_length,
                                      const ModelShape& shape) {
  Metrics out(default_levels(), {});
  for (const auto& range : ranges) {
    const auto found = external.windows.find({range.series, range.forecast_start});
    if (found == external.windows.end()) return std::nullopt;
    std::vector<double> values(found->second.begin(), found->second.end());
    for (auto& value : values) value = std::clamp(value, shape.lower_bound, shape.upper_bound);
    const auto truth = truth_of(dataset, range, shape.prediction_length, season_length);
    const auto all = std::span<const double>(values);
    const auto quantiles = all.size() - truth.target.size();
    out.add({truth.target, all.first(quantiles), all.subspan(quantiles), truth.seasonal_error});
  }
  return out;
}

/// How many of the true values of `ranges` lie far from all others of their series; empty if none does.
std::string scored_outliers(const data::Dataset& dataset, std::span<const data::ForecastRange> ranges,
                            std::int64_t prediction_length) {
  std::set<std::pair<std::int64_t, std::int64_t>> places;
  for (const auto& range : ranges)
    for (std::int64_t k = 0; k < prediction_length; ++k) places.insert({range.series, range.forecast_start + k});
  std::int64_t count = 0;
  std::set<std::int64_t> series;
  for (std::size_t i = 0; i < dataset.series.size(); ++i)
    for (const auto place : data::outliers_of(dataset.series[i]))
      if (places.contains({static_cast<std::int64_t>(i), place})) {
        ++count;
        series.insert(static_cast<std::int64_t>(i));
      }
  if (count == 0) return {};
  return cat(count, " of the true values scored, in ", series.size(), " series such as '",
             dataset.series[static_cast<std::size_t>(*series.begin())].id, "', ", count == 1 ? "lies" : "lie",
             " far from all others there; a few such values can decide a score (tsdp-data describe names them)");
}

}  // namespace

BacktestResult backtest(torch::jit::Module& model, const data::Dataset& dataset,
                        std::span<const data::ForecastRange> ranges, std::int64_t season_length,
                        const at::Device& device, const PrivateInference* privacy) {
  const auto shape = shape_of(model);
  const auto prediction_length = shape.prediction_length;
  PastSource pasts(dataset, shape.past_length, season_length, privacy);
  const KnownFeatures features(model, dataset);
  const ExternalWindows external(model, dataset, privacy);
  RandomStream draws(SecretKey::from_seed(0), "evaluation", 0);
  const Metrics empty(default_levels(), interval_levels());
  const std::vector<Metrics> empty_by_series(dataset.series.size(), empty);
  const auto seasons = seasons_of(dataset.frequency, season_length);
  BacktestResult out{empty, empty_by_series, {}, std::ssize(dataset.series) / dataset.variable_count()};
  for (const auto& [baseline, unused] : names_of(Baseline{}))
    out.baselines.push_back({baseline, empty, empty_by_series});
  const auto horizon = static_cast<std::size_t>(prediction_length);
  const auto levels = forecast_levels().size();
  // Windows of one series side by side: a mixture works out what their records share once. Draws and noise keep the
  // order that is documented.
  std::vector<data::ForecastRange> in_order(ranges.begin(), ranges.end());
  if (privacy == nullptr && !shape.from_samples)
    std::stable_sort(in_order.begin(), in_order.end(), [&](const auto& a, const auto& b) {
      return a.series / shape.variables < b.series / shape.variables;
    });
  const auto all = data::windows_of(in_order);
  for (auto text : {external.taking_part(all), scored_outliers(dataset, ranges, prediction_length)})
    if (!text.empty()) out.remarks.push_back(std::move(text));
  if (privacy == nullptr)
    for (const auto& one : dataset.external) {
      if (one->is_free() && !one->is_model())
        out.remarks.push_back(
            cat(one->name, " counts as free here, and so does a start that is mixed with it; that is true only if ",
                one->name, " was made without these data, which no program can tell"));
      if (const auto scores = score_external(*one, dataset, ranges, season_length, shape)) {
        if (one->is_free()) out.others[one->name] = scores->json();
        else
          out.remarks.push_back(cat(one->name, " alone: CRPS ", rounded(scores->mean_weighted_quantile_loss(), 4),
                                    ", not free: it was trained on data, which no statement of this model covers (",
                                    one->statement, ")"));
      }
    }
  shape.require_variables(dataset, all);
  const auto rows = static_cast<std::size_t>(shape.rows(batch_rows));
  for (std::size_t begin = 0; begin < ranges.size(); begin += rows) {
    const auto part = std::span(in_order).subspan(begin, std::min(rows, ranges.size() - begin));
    const auto indices = std::span<const data::WindowIndex>(all).subspan(begin, part.size());
    pasts.gather(indices, begin);
    const auto result =
        forecast(model, pasts.target().to(device), pasts.observed().to(device), features.gather(indices, device),
                 forecast_levels(), draws, std::nullopt, external.gather(indices, device));
    const auto* quantiles = result.quantiles.data_ptr<double>();
    const auto* means = result.mean.data_ptr<double>();
    for (std::size_t i = 0; i < part.size(); ++i) {
      const auto truth = truth_of(dataset, part[i], prediction_length, season_length);
      const WindowForecast window{truth.target, std::span(quantiles + i * levels * horizon, levels * horizon),
                                  std::span(means + i * horizon, horizon), truth.seasonal_error};
      out.model.add(window);
      const auto series = static_cast<std::size_t>(part[i].series);
      out.by_series[series].add(window);
      for (auto& scores : out.baselines)
        add_baseline(scores.baseline, pasts.naive_past(i), seasons, truth, shape,
                     {&scores.all, &scores.by_series[series]});
    }
  }
  return out;
}

nlohmann::ordered_json scored_beside(const BacktestResult& result) {
  auto out = nlohmann::ordered_json::object();
  for (const auto& scores : result.baselines) out[name(scores.baseline)] = scores.all.json();
  if (result.start) out["start"] = result.start->json();
  out.update(result.others);
  return out;
}

std::optional<BestFree> best_free(const nlohmann::ordered_json& scores, mechanism::StartOrigin origin) {
  std::optional<BestFree> best;
  for (const auto& [name, metrics] : scores.items()) {
    if (name == "start" && mechanism::rests_on_data(origin)) continue;
    const auto& crps = metrics.at("mean_weighted_quantile_loss");
    if (crps.is_number() && (!best || crps.get<double>() < best->crps)) best = {name, crps.get<double>()};
  }
  return best;
}

Metrics backtest_baseline(Baseline baseline, const data::Dataset& dataset, std::span<const data::ForecastRange> ranges,
                          std::int64_t prediction_length, std::int64_t season_length) {
  Metrics metrics(default_levels(), interval_levels());
  const auto seasons = seasons_of(dataset.frequency, season_length);
  for (const auto& range : ranges)
    add_baseline(baseline, past_of(dataset, range), seasons, truth_of(dataset, range, prediction_length, season_length),
                 ModelShape{}, {&metrics});
  return metrics;
}

}  // namespace tsdp::evaluation
