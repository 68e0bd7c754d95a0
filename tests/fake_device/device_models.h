// Models, data and kinds of steps that tests of the fake device share.
#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/forecaster.h"
#include "training/model_setup.h"
#include "training/step_engine.h"
#include "training/training_fixture.h"
#include "training/window_source.h"
#include "tsdp/data/feature_store.h"
#include "tsdp/privacy/matrix/strategy_search.h"

namespace tsdp::test {

/// One kind of step. A batch has one window for each of its places, of the series of that number.
struct Kind {
  std::string name;
  std::function<mechanism::TrainingMethod()> method;
  std::vector<std::int64_t> places;
  models::ModelOptions options{12, 6, {}, 0, 0.0, 1};
  std::int64_t most_at_a_time = 0;  ///< windows; 0: no bound
  bool is_private = true;
  bool joins = false;  ///< several windows a record
  bool covariates = false;
  double gradient_norm_bound = 0.0;
};

/// A batch of five series as records, about four windows of each.
inline mechanism::TrainingMethod method_of_series(privacy::BottomLevel windows, privacy::StrategyKind noise) {
  privacy::SubsamplingScheme::Parameters p;
  p.record = privacy::Record::series;
  p.lengths = privacy::SeriesLengths::equal(5, 1000);
  p.batch_size = 20;
  p.subsequences_per_sequence = 4;
  p.top_level = privacy::TopLevel::deterministic;
  p.bottom_level = windows;
  std::shared_ptr<const privacy::Strategy> strategy;
  if (noise != privacy::StrategyKind::identity)
    strategy = std::make_shared<const privacy::Strategy>(privacy::planned_strategy({noise, 3, 2, {}, {}}, 10, 2));
  return mechanism::PrivateMechanism({privacy::Relation::series, 1, {}}, privacy::SubsamplingScheme(std::move(p)),
                                     {privacy::ClippingKind::flat, 0.05}, privacy::noise_by(std::move(strategy), 1.0));
}

/// A batch of windows of five series of four variables each.
inline mechanism::TrainingMethod method_of_variables() {
  privacy::SubsamplingScheme::Parameters p;
  p.lengths = privacy::SeriesLengths::equal(5, 100).of_variables(4);
  p.batch_size = 5;
  p.top_level = privacy::TopLevel::deterministic;
  privacy::PrivacyUnit unit;
  unit.variables = 4;
  return mechanism::PrivateMechanism(unit, privacy::SubsamplingScheme(std::move(p)),
                                     {privacy::ClippingKind::flat, 0.05}, {});
}

/// A batch of windows of those of 20 series that coins draw.
inline mechanism::TrainingMethod method_of_coins() {
  privacy::SubsamplingScheme::Parameters p;
  p.lengths = privacy::SeriesLengths::equal(20, 100);
  p.batch_size = 10;
  p.top_level = privacy::TopLevel::poisson;
  return mechanism::PrivateMechanism({}, privacy::SubsamplingScheme(std::move(p)), {privacy::ClippingKind::flat, 0.05},
                                     {});
}

/// Every kind of step that `model` can take.
inline std::vector<Kind> kinds_of_steps(const std::string& model) {
  using privacy::BottomLevel;
  using privacy::ClippingKind;
  using privacy::StrategyKind;
  using training::method_of_batch;
  using training::places_of_batch;
  const auto clipped = [](ClippingKind kind) { return [=] { return method_of_batch(20, true, {kind, 0.05}); }; };
  const auto flat = clipped(ClippingKind::flat);
  const auto not_private = [] { return method_of_batch(20, false, {ClippingKind::flat, 0.05}); };
  const auto of_series = [](BottomLevel windows, StrategyKind noise) {
    return [=] { return method_of_series(windows, noise); };
  };
  const auto all = places_of_batch(20);
  std::vector<std::int64_t> some, fours, uneven;
  for (std::int64_t place = 0; place < 20; place += 2) some.push_back(place);
  for (std::int64_t w = 0; w < 20; ++w) {
    fours.push_back(w / 4);
    uneven.push_back(w < 7 ? 0 : w < 8 ? 1 : 2 + (w - 8) / 4);
  }
  Kind of_all;
  of_all.places = all;
  if (model == "deepar") {
    of_all.options.lags = {1, 2, 3, 12};
    of_all.options.width = 10;
  }
  std::vector<Kind> out;
  const auto add = [&](const std::string& name, const std::function<mechanism::TrainingMethod()>& method,
                       auto&&... changes) {
    auto kind = of_all;
    kind.name = name;
    kind.method = method;
    (changes(kind), ...);
    out.push_back(std::move(kind));
  };
  add("flat", flat);
  add("per layer", clipped(ClippingKind::per_layer));
  add("automatic", clipped(ClippingKind::automatic));
  add("coins", method_of_coins, [&](Kind& k) {
    k.places = some;
    k.most_at_a_time = 24;  // what a replay fills batches up to
  });
  add("seasonal prior", flat, [](Kind& k) { k.options.prior = {PriorKind::seasonal_naive, 6}; });
  add("last value", flat, [](Kind& k) { k.options.prior = {PriorKind::last_value, 1}; });
  add("imputed", flat, [](Kind& k) { k.options.imputes = true; });
  add("head", flat, [](Kind& k) { k.options.trainable = Trainable::head; });
  add("not private", not_private, [](Kind& k) { k.is_private = false; });
  add("not private, bounded", not_private, [](Kind& k) {
    k.is_private = false;
    k.gradient_norm_bound = 0.01;
  });
  const auto joined = [](const std::vector<std::int64_t>& places) {
    return [&places](Kind& k) {
      k.joins = true;
      k.places = places;
    };
  };
  add("series", of_series(BottomLevel::with_replacement, StrategyKind::identity), joined(fours));
  add("uneven series", of_series(BottomLevel::poisson, StrategyKind::identity), joined(uneven));
  add("series, head", of_series(BottomLevel::poisson, StrategyKind::identity), joined(uneven),
      [](Kind& k) { k.options.trainable = Trainable::head; });
  for (const auto& [name, noise] : {std::pair{"bsr", StrategyKind::bsr}, std::pair{"bisr", StrategyKind::bisr},
                                    std::pair{"blt", StrategyKind::blt}})
    add(std::string("series, ") + name, of_series(BottomLevel::with_replacement, noise), joined(fours));
  add("variables", method_of_variables, joined(fours), [&](Kind& k) {
    if (model == "itransformer") k.options.variables = 4;
  });
  add("covariates", flat, [](Kind& k) { k.covariates = true; });
  if (model == "deepar") {
    // Too wide for the kernels: LibTorch's cells.
    add("cells", flat, [](Kind& k) { k.options.width = 64; });
    add("uneven series, cells", of_series(BottomLevel::poisson, StrategyKind::identity), joined(uneven),
        [](Kind& k) { k.options.width = 64; });
  }
  return out;
}

/// 20 series of 120 hours, with missing values; two covariates if asked for.
inline data::Dataset series_with_gaps(bool covariates) {
  data::Dataset out;
  out.name = "waves";
  out.frequency = data::Frequency::parse("1h");
  for (int s = 0; s < 20; ++s) {
    data::Series series{std::to_string(s), 0, {}, {}};
    for (int t = 0; t < 120; ++t)
      series.values.push_back((5 * s + 3 * t) % 11 == 0 ? std::numeric_limits<float>::quiet_NaN()
                                                        : static_cast<float>(5.0 + 0.2 * s + std::sin(0.26 * t + s)));
    out.series.push_back(std::move(series));
  }
  if (!covariates) return out;
  out.covariates = {"covariates.csv", {"first", "second"}, {{}}};
  for (int t = 0; t < 200; ++t) {
    out.covariates.tables.front().values.push_back(static_cast<float>(std::cos(0.1 * t)));
    out.covariates.tables.front().values.push_back(static_cast<float>(t % 3));
  }
  return out;
}

/// A model of a kind of step, and windows for it, on a device.
struct OnDevice {
  OnDevice(const std::string& name, const Kind& kind, const at::Device& device)
      : dataset(series_with_gaps(kind.covariates)),
        model(made(name, kind, dataset, device)),
        store(dataset, model->past_length(), kind.options.prediction_length),
        source(store, training::features_of(*model, dataset), at::TensorOptions(device).dtype(at::kFloat)) {}

  [[nodiscard]] static std::unique_ptr<models::Forecaster> made(const std::string& name, const Kind& kind,
                                                                const data::Dataset& dataset,
                                                                const at::Device& device) {
    auto options = kind.options;
    options.covariates = std::ssize(dataset.covariates.names);
    options.time_features =
        static_cast<std::int64_t>(data::window_feature_names(dataset.frequency, dataset.covariates.names).size());
    auto out = models::make_model(name, options, at::TensorOptions(device).dtype(at::kFloat));
    RandomStream weights(SecretKey::from_seed(1), "initial weights", 0);
    out->initialise(weights);
    return out;
  }
  [[nodiscard]] training::StepEngine engine(const Kind& kind) const {
    return {*model, kind.method(), {{}, kind.gradient_norm_bound, kind.most_at_a_time * model->bytes_per_window()}};
  }
  /// Others in every step; the first ones begin before their series.
  [[nodiscard]] static std::vector<data::WindowIndex> windows(const Kind& kind, std::uint64_t step) {
    std::vector<data::WindowIndex> out;
    for (std::size_t i = 0; i < kind.places.size(); ++i)
      out.push_back({kind.places[i], static_cast<std::int64_t>((11 * i + 7 * step) % 100)});
    return out;
  }

  data::Dataset dataset;
  std::unique_ptr<models::Forecaster> model;
  data::WindowStore store;
  training::WindowSource source;
};

}  // namespace tsdp::test
