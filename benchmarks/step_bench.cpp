#include "step_bench.h"

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <cmath>

#include "dp/device_kind.h"
#include "settings/setup.h"
#include "training/model_setup.h"
#include "training/replayed_step.h"
#include "training/step_engine.h"
#include "tsdp/privacy/matrix/strategy_search.h"
#include "tsdp/training/trainer.h"

namespace tsdp::bench {
namespace {

models::ModelOptions sizes_of(const StepSetting& s) {
  // DeepAR as for hourly data: the paper's long list of lags, four calendar features and the age.
  models::ModelOptions sizes{s.context, s.forecast, {}, 5, 0.0, s.width_factor};
  if (s.model == "deepar")
    for (const std::int64_t day : {0, 24, 48, 72, 96, 120, 144, 168})
      for (std::int64_t lag = day == 0 ? 1 : day - 1; lag <= (day == 0 ? 7 : day + 1); ++lag) sizes.lags.push_back(lag);
  return sizes;
}

models::WindowBatch random_windows(const StepSetting& s) {
  const auto options = at::TensorOptions(s.device).dtype(at::kFloat);
  const auto sizes = sizes_of(s);
  const auto past = models::make_model(s.model, sizes, options)->past_length();
  return {at::rand({s.batch, past}, options), at::ones({s.batch, past}, options),
          at::rand({s.batch, s.forecast}, options), at::ones({s.batch, s.forecast}, options),
          at::rand({s.batch, past + s.forecast, sizes.time_features}, options) - 0.5};
}

/// A model with its engine, and its steps.
class Candidate {
 public:
  Candidate(const StepSetting& s, std::string mode) : setting_(s), mode_(std::move(mode)) {
    auto sizes = sizes_of(s);
    // With the same width, so that only the prior is timed.
    if (mode_ == "private-prior") sizes.prior = {PriorKind::seasonal_naive, 24};
    model_ = models::make_model(s.model, sizes, at::TensorOptions(s.device).dtype(at::kFloat));
    RandomStream weights(key_, "initial weights", 0);
    model_->initialise(weights);
    // With whole series, a record has four windows.
    const bool of_series = mode_.starts_with("private-series");
    for (std::int64_t i = 0; i < s.batch; ++i) places_.push_back(of_series ? i / series_windows : i);
    engine_ = std::make_unique<training::StepEngine>(
        *model_, of_series ? method_of_series(s.batch, mode_) : method_of(s.batch, !mode_.starts_with("nonprivate")),
        training::StepEngine::Options());
    if (mode_.ends_with("-replayed")) replay();
  }

  void step(const models::WindowBatch& windows) {
    if (replayed_) {
      replayed_->step(drawn_, key_, steps_++);
    } else if (mode_ == "loop") {
      loop(windows, RandomStream(key_, dp::noise_purpose, steps_++));
    } else {
      engine_->step(windows, places_, key_, steps_++);
    }
    if (setting_.device.is_cuda()) model_->parameters().values()[0].item<float>();  // wait for the device
  }

 private:
  /// Steps are replayed from now on, with a window of every series of random values.
  void replay() {
    RandomStream random(key_, "values", 0);
    const auto length = model_->past_length() + setting_.forecast;
    dataset_.frequency = data::Frequency::parse("1h");
    for (std::int64_t i = 0; i < setting_.batch; ++i) {
      data::Series series{std::to_string(i), 0, {}, {}};
      for (std::int64_t t = 0; t < length; ++t) series.values.push_back(static_cast<float>(random.uniform()));
      dataset_.series.push_back(std::move(series));
      drawn_.windows.push_back({i, model_->past_length()});
    }
    drawn_.places = places_;
    store_ = std::make_unique<data::WindowStore>(dataset_, model_->past_length(), setting_.forecast);
    source_ = std::make_unique<training::WindowSource>(*store_, training::features_of(*model_, dataset_),
                                                       model_->parameters().values().options());
    replayed_ = training::ReplayedStep::of(*engine_, *model_, *source_);
  }

  /// One window of every series, in turn; clipped to 1e-4 with noise multiplier 4.
  static mechanism::TrainingMethod method_of(std::int64_t batch, bool is_private) {
    privacy::SubsamplingScheme::Parameters p;
    p.lengths = privacy::SeriesLengths::equal(batch, 1000);
    p.batch_size = batch;
    p.top_level = privacy::TopLevel::deterministic;
    privacy::SubsamplingScheme law(p);
    if (!is_private) return mechanism::TrainingMethod(std::move(law));
    return mechanism::PrivateMechanism({}, std::move(law), {privacy::ClippingKind::flat, 1e-4},
                                       {privacy::NoiseKind::independent, 4.0});
  }

  static constexpr std::int64_t series_windows = 4;
  /// The same windows, four from every series, clipped as one.
  static mechanism::TrainingMethod method_of_series(std::int64_t batch, const std::string& mode) {
    privacy::SubsamplingScheme::Parameters p;
    p.record = privacy::Record::series;
    p.lengths = privacy::SeriesLengths::equal((batch + series_windows - 1) / series_windows, 1000);
    p.batch_size = std::max(batch, series_windows);
    p.subsequences_per_sequence = series_windows;
    p.top_level = privacy::TopLevel::deterministic;
    privacy::Noise noise{privacy::NoiseKind::independent, 4.0};
    if (mode != "private-series") {
      noise.kind = privacy::NoiseKind::correlated;
      const auto kind = mode == "private-series-bsr" ? privacy::StrategyKind::bsr : privacy::StrategyKind::blt;
      // Here an epoch is a step; there are as many as are ever timed.
      auto recursion = privacy::planned_strategy({kind, 4, 2}, 1000, 1).recursion();
      noise.strategy = std::make_shared<const privacy::Strategy>(kind, std::move(recursion), 1'000'000);
    }
    return mechanism::PrivateMechanism({privacy::Relation::series, 1, {}}, privacy::SubsamplingScheme(p),
                                       {privacy::ClippingKind::flat, 1e-4}, std::move(noise));
  }

  /// One backward pass per window, clipped and added, as one would write it without recording layers.
  void loop(const models::WindowBatch& windows, const RandomStream& noise) {
    const c10::InferenceMode no_autograd;
    const auto& parameters = model_->parameters();
    auto sum = at::zeros_like(parameters.values());
    for (std::int64_t i = 0; i < windows.size(); ++i) {
      parameters.gradients().zero_();
      model_->losses(windows.rows(i, 1));
      model_->backward();
      for (auto* layer : model_->layers()) layer->add_gradient({});
      const double norm = parameters.gradients().norm().item<double>();
      sum.add_(parameters.gradients(), std::min(1.0, 1e-4 / norm));
    }
    parameters.gradients().copy_(sum);
    dp::add_noise(parameters.gradients(), 4e-4, noise);
    parameters.gradients().mul_(1.0 / static_cast<double>(windows.size()));
    engine_->optimizer().step(parameters.values(), parameters.gradients());
  }

  StepSetting setting_;
  std::string mode_;
  SecretKey key_ = SecretKey::from_seed(1);
  std::unique_ptr<models::Forecaster> model_;
  std::unique_ptr<training::StepEngine> engine_;
  std::vector<std::int64_t> places_;
  std::uint64_t steps_ = 0;
  data::Dataset dataset_;
  sampling::Draw drawn_;
  std::unique_ptr<data::WindowStore> store_;
  std::unique_ptr<training::WindowSource> source_;
  std::unique_ptr<training::ReplayedStep> replayed_;
};

/// Rows of `modes`, without their "bench".
std::vector<Json> measured(const StepSetting& s, const std::vector<std::string>& modes, double seconds) {
  const auto windows = random_windows(s);
  // What libraries keep for themselves (buffers of matrix products, stacks) must not be counted towards whichever mode
  // comes first.
  for (const auto& mode : modes) Candidate(s, mode).step(windows);
  std::vector<double> memory;
  for (const auto& mode : modes)
    memory.push_back(memory_of([&] {
      Candidate alone(s, mode);
      for (int i = 0; i < 3; ++i) alone.step(windows);
    }));
  std::vector<Timing> timings;
  for (const auto& mode : modes) {
    auto candidate = std::make_shared<Candidate>(s, mode);
    timings.push_back({mode, [&windows, candidate] { candidate->step(windows); }});
  }
  time_together(timings, seconds);
  std::vector<Json> rows;
  for (std::size_t i = 0; i < modes.size(); ++i) {
    Json row = {
        {"model", s.model}, {"mode", modes[i]},     {"device", s.device.str()}, {"threads", at::get_num_threads()},
        {"batch", s.batch}, {"context", s.context}, {"forecast", s.forecast},   {"width_factor", s.width_factor}};
    put_times(row, timings[i]);
    row["step_mb"] = memory[i];
    rows.push_back(row);
  }
  return rows;
}

Json named(const char* bench, const Json& row) {
  Json out = {{"bench", bench}};
  out.update(row);
  return out;
}

/// Slope of log y over log x by least squares.
double exponent(const std::vector<std::pair<double, double>>& points) {
  double x = 0.0, y = 0.0, xx = 0.0, xy = 0.0;
  for (const auto& [a, b] : points) {
    x += std::log(a);
    y += std::log(b);
    xx += std::log(a) * std::log(a);
    xy += std::log(a) * std::log(b);
  }
  const auto n = static_cast<double>(points.size());
  return (n * xy - x * y) / (n * xx - x * x);
}

}  // namespace

void bench_step(Json& rows, const StepSetting& setting, double seconds) {
  // Off the CPU, the loop over windows starts thousands of kernels per step, so it tells nothing there.
  std::vector<std::string> modes = {
      "private", "private-prior", "private-series", "private-series-bsr", "private-series-blt", "nonprivate"};
  if (setting.device.is_cpu()) modes.emplace_back("loop");
  if (dp::can_record(setting.device)) {
    modes.emplace_back("private-replayed");
    modes.emplace_back("nonprivate-replayed");
  }
  for (const auto& row : measured(setting, modes, seconds)) rows.push_back(named("step", row));
}

void bench_scaling(Json& rows, const std::string& model, const at::Device& device, double seconds) {
  struct Axis {
    const char* name;
    std::vector<std::int64_t> values;
  };
  const std::vector<Axis> axes = {{"batch", {32, 64, 128, 256, 512, 1024, 2048, 4096}},
                                  {"context", {24, 48, 96, 192, 384, 768}},
                                  {"width_factor", {1, 2, 4, 8}}};
  for (const auto& axis : axes) {
    std::map<std::string, std::vector<std::pair<double, double>>> points;
    for (const auto value : axis.values) {
      StepSetting s{model, device, 256, 96, 24, 1};
      const std::string name = axis.name;
      (name == "batch" ? s.batch : name == "context" ? s.context : s.width_factor) = value;
      for (const auto& row : measured(s, {"private", "nonprivate"}, seconds)) {
        auto shown = named("scaling", row);
        shown["axis"] = name;
        rows.push_back(shown);
        points[row["mode"]].emplace_back(static_cast<double>(value), row["min_ms"].get<double>());
      }
    }
    for (const auto& [mode, of_mode] : points)
      rows.push_back({{"bench", "exponent"},
                      {"model", model},
                      {"mode", mode},
                      {"axis", axis.name},
                      {"exponent", exponent(of_mode)}});
  }
}

}  // namespace tsdp::bench
