// Benchmarks, side by side in one run: a training step (private, not private, plain loop), the data path, the accountant.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <regex>

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include "cli/device.h"
#include "cli/program.h"
#include "tsdp/core/error.h"
#include "tsdp/core/text.h"
#include "tsdp/data/generate.h"
#include "tsdp/privacy/accountant.h"
#include "tsdp/privacy/structured_pairs.h"
#include "tsdp/sampling/sampler.h"
#include "tsdp/training/trainer.h"

namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

double process_milliseconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& t) { return 1e3 * static_cast<double>(t.tv_sec) + 1e-3 * static_cast<double>(t.tv_usec); };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

double peak_megabytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

struct Timing {
  std::string name;
  std::function<void()> work;
  std::vector<double> milliseconds;
  double cpu = 0.0;
};

/// Runs all candidates in turn, again and again, so that a slow spell of the machine hits all of them.
void time_together(std::vector<Timing>& candidates, double seconds) {
  for (auto& c : candidates)
    for (int i = 0; i < 3; ++i) c.work();
  const auto start = Clock::now();
  while (std::chrono::duration<double>(Clock::now() - start).count() < seconds || candidates.front().milliseconds.size() < 5)
    for (auto& c : candidates) {
      const double cpu = process_milliseconds();
      const auto begin = Clock::now();
      c.work();
      c.milliseconds.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
      c.cpu += process_milliseconds() - cpu;
    }
}

void put_times(Json& row, Timing& t) {
  std::sort(t.milliseconds.begin(), t.milliseconds.end());
  row["median_ms"] = t.milliseconds[t.milliseconds.size() / 2];
  row["min_ms"] = t.milliseconds.front();
  row["cpu_ms"] = t.cpu / static_cast<double>(t.milliseconds.size());
  row["peak_mb"] = peak_megabytes();
}

void bench_step(Json& rows, const std::string& name, const at::Device& device, std::int64_t batch, std::int64_t context,
                std::int64_t forecast, double seconds) {
  using namespace tsdp;
  const auto options = at::TensorOptions(device).dtype(at::kFloat);
  const auto key = SecretKey::from_seed(1);
  const auto random = [&](std::int64_t columns) { return at::rand({batch, columns}, options); };
  // DeepAR as on hourly data: the paper's long list of lags, four calendar features and the age.
  models::ModelOptions sizes{context, forecast, {}, 5, 0.0};
  if (name == "deepar")
    for (const std::int64_t day : {0, 24, 48, 72, 96, 120, 144, 168})
      for (std::int64_t lag = day == 0 ? 1 : day - 1; lag <= (day == 0 ? 7 : day + 1); ++lag) sizes.lags.push_back(lag);
  const auto past = models::make_model(name, sizes, options)->past_length();
  const models::WindowBatch windows{random(past), at::ones({batch, past}, options), random(forecast),
                                    at::ones({batch, forecast}, options),
                                    at::rand({batch, past + forecast, sizes.time_features}, options) - 0.5};
  struct Candidate {
    std::unique_ptr<models::Forecaster> model;
    std::unique_ptr<training::StepEngine> engine;
    std::uint64_t step = 0;
  };
  const auto make = [&](bool is_private) {
    auto c = std::make_shared<Candidate>();
    c->model = models::make_model(name, sizes, options);
    RandomStream weights(key, "initial weights", 0);
    c->model->initialise(weights);
    training::StepEngine::Options o;
    o.is_private = is_private;
    o.noise_multiplier = 4.0;
    o.batch_size = static_cast<double>(batch);
    c->engine = std::make_unique<training::StepEngine>(*c->model, o);
    return c;
  };
  const auto step = [&](const std::shared_ptr<Candidate>& c) {
    return [&windows, &key, c] { c->engine->step(windows, RandomStream(key, dp::noise_purpose, c->step++)); };
  };
  std::vector<Timing> timings = {{"private", step(make(true)), {}, 0.0}, {"nonprivate", step(make(false)), {}, 0.0}};
  // The plain loop: one backward pass a window, clipped and added, as one would write it without recording layers.
  const auto loop = make(true);
  timings.push_back({"loop", [&, loop] {
                       const c10::InferenceMode no_autograd;
                       const auto& parameters = loop->model->parameters();
                       auto sum = at::zeros_like(parameters.values());
                       for (std::int64_t i = 0; i < batch; ++i) {
                         parameters.gradients().zero_();
                         loop->model->losses(windows.rows(i, 1));
                         loop->model->backward();
                         for (auto* layer : loop->model->layers()) layer->add_gradient({});
                         const double norm = parameters.gradients().norm().item<double>();
                         sum.add_(parameters.gradients(), std::min(1.0, 1e-4 / norm));
                       }
                       parameters.gradients().copy_(sum);
                       dp::add_noise(parameters.gradients(), 4e-4, RandomStream(key, dp::noise_purpose, loop->step++));
                       parameters.gradients().mul_(1.0 / static_cast<double>(batch));
                       loop->engine->optimizer().step(parameters.values(), parameters.gradients());
                     }, {}, 0.0});
  time_together(timings, seconds);
  for (auto& t : timings) {
    Json row = {{"bench", "step"}, {"model", name}, {"mode", t.name}, {"device", device.str()},
                {"threads", at::get_num_threads()}, {"batch", batch}, {"context", context}, {"forecast", forecast}};
    put_times(row, t);
    rows.push_back(row);
  }
}

void bench_sample(Json& rows, double seconds) {
  using namespace tsdp;
  const std::int64_t past = 96;
  const std::int64_t future = 24;
  const std::int64_t batch = 256;
  const auto dataset = data::generate_traffic_like({862, 17544, 1});
  const data::WindowStore store(dataset, past, future);
  sampling::SubsamplingScheme::Parameters p;
  p.lengths.assign(862, 13916);
  p.context_length = past;
  p.forecast_length = future;
  p.batch_size = batch;
  sampling::Sampler sampler{sampling::SubsamplingScheme(p)};
  training::WindowSource source(store, std::nullopt, at::TensorOptions(at::kFloat));
  const auto key = SecretKey::from_seed(1);
  std::uint64_t step = 0;
  RandomStream fixed(key, sampling::sampling_purpose, 0);
  const auto indices = sampler.draw(0, fixed);
  // What a plain tensor index of the same size costs: rows of a ready matrix of windows, gathered by a tensor of places.
  const auto table = at::rand({100'000, past + future});
  const auto table_observed = at::ones_like(table);
  const auto places = at::randint(100'000, {batch}, at::kLong);
  std::vector<Timing> timings = {
      {"draw and gather",
       [&] {
         RandomStream stream(key, sampling::sampling_purpose, step);
         source.gather(sampler.draw(step++, stream));
       },
       {},
       0.0},
      {"gather", [&] { source.gather(indices); }, {}, 0.0},
      {"tensor index", [&] { table.index({places}), table_observed.index({places}); }, {}, 0.0}};
  time_together(timings, seconds);
  for (auto& t : timings) {
    Json row = {{"bench", "sample"}, {"mode", t.name}, {"threads", at::get_num_threads()}, {"batch", batch},
                {"context", past}, {"forecast", future}};
    put_times(row, t);
    row["windows_per_s"] = 1e3 * static_cast<double>(batch) / row["median_ms"].get<double>();
    rows.push_back(row);
  }
}

void bench_account(Json& rows, double seconds) {
  using namespace tsdp::privacy;
  const double q = 256.0 / 862.0 * 120.0 / 13893.0;
  std::vector<Timing> timings = {
      {"epsilon after 10000 steps, width 1e-3",
       [&] { static_cast<void>(Accountant(one_window_pair(q, 4.0)).epsilon(1e-7, 10000)); }, {}, 0.0},
      {"most steps within epsilon 1", [&] { static_cast<void>(Accountant(one_window_pair(q, 4.0)).max_uses(1.0, 1e-7)); }, {}, 0.0}};
  time_together(timings, seconds);
  for (auto& t : timings) {
    Json row = {{"bench", "account"}, {"mode", t.name}, {"threads", 1}};
    put_times(row, t);
    rows.push_back(row);
  }
}

/// What durability costs: a checkpoint at least every `checkpoint_seconds` (10 s), a charge about every 5 s.
void bench_durability(Json& rows, double seconds) {
  using namespace tsdp;
  const auto folder = std::filesystem::temp_directory_path() / cat("tsdp_bench_", ::getpid());
  std::filesystem::create_directories(folder);
  auto model = models::make_model("simple_ff", {96, 24}, at::TensorOptions(at::kFloat));
  dp::Adam adam({}, model->parameters().values());
  auto charge = training::Charge::create(folder / "charged");
  std::vector<Timing> timings = {{"checkpoint",
                                  [&] {
                                    training::save_checkpoint(folder / "last.pt",
                                                              {1, SecretKey::from_seed(1), "bench", 0.0, at::zeros({2}),
                                                               model->parameters().values(), adam.state()});
                                  },
                                  {},
                                  0.0},
                                 {"charge", [&] { charge.raise_to(charge.steps() + 1); }, {}, 0.0}};
  time_together(timings, seconds);
  for (auto& t : timings) {
    Json row = {{"bench", "durability"}, {"mode", t.name}, {"threads", at::get_num_threads()}};
    put_times(row, t);
    row["share_of_training"] = 1e-3 * row["median_ms"].get<double>() / (t.name == "charge" ? 5.0 : 10.0);
    rows.push_back(row);
  }
  std::filesystem::remove_all(folder);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Times a training step, the data path and the accountant.", "tsdp-bench");
  tsdp::cli::CommonOptions common;
  tsdp::cli::add_common_options(app, common, /*with_json=*/false);
  std::string json;
  std::string only = ".*";
  std::string device_name = "auto";
  int threads = 0;
  double seconds = 3.0;
  app.add_option("--json", json, "File for the results");
  app.add_option("--only", only, "Regular expression over: step, sample, account, durability");
  app.add_option("--device", device_name, "auto, cpu, cuda or cuda:i")->capture_default_str();
  app.add_option("--threads", threads, "CPU threads; 0: all cores")->capture_default_str();
  app.add_option("--seconds", seconds, "Measured time of each group")->capture_default_str();
  return tsdp::cli::run(app, argc, argv, common, [&] {
    tsdp::cli::set_threads(threads);
    const auto device = tsdp::cli::device_of(device_name);
    const std::regex wanted(only);
    Json rows = Json::array();
    if (std::regex_search("step", wanted))
      for (const auto& model : tsdp::models::model_names())
        for (const std::int64_t batch : {32, 256, 1024}) bench_step(rows, model, device, batch, 96, 24, seconds);
    if (std::regex_search("sample", wanted)) bench_sample(rows, seconds);
    if (std::regex_search("account", wanted)) bench_account(rows, seconds);
    if (std::regex_search("durability", wanted)) bench_durability(rows, seconds);
    for (const auto& row : rows)
      std::cout << row["bench"].get<std::string>() << " " << row.value("model", "") << " " << row["mode"].get<std::string>()
                << (row.contains("batch") ? tsdp::cat(", batch ", row["batch"].get<std::int64_t>()) : std::string()) << ": "
                << tsdp::rounded(row["median_ms"].get<double>(), 4) << " ms (min "
                << tsdp::rounded(row["min_ms"].get<double>(), 4) << ", cpu " << tsdp::rounded(row["cpu_ms"].get<double>(), 4)
                << ")\n";
    if (!json.empty()) {
      std::ofstream out(json);
      out << rows.dump(2) << "\n";
      if (!out) throw tsdp::UsageError(tsdp::cat("--json: cannot write ", json));
    }
    return 0;
  });
}
