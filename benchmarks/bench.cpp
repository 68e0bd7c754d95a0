// Benchmarks, side by side in one run: a training step (private, not private, plain loop), the data path, the
// accountant.
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <regex>
#include <thread>

#include <ATen/Parallel.h>

#include "cli/device.h"
#include "cli/program.h"
#include "data/generate.h"
#include "dp/device_kind.h"
#include "dp/private_step.h"
#include "privacy/theorems/structured_pairs.h"
#include "run/charge.h"
#include "run/checkpoint.h"
#include "sampling/structured_sampler.h"
#include "step_bench.h"
#include "timing.h"
#include "training/ranks.h"
#include "training/window_source.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/privacy/accountant/accountant.h"
#include "tsdp/training/trainer.h"

namespace {

using namespace tsdp::bench;

void bench_sample(Json& rows, double seconds) {
  using namespace tsdp;
  const std::int64_t past = 96;
  const std::int64_t future = 24;
  const std::int64_t batch = 256;
  const auto dataset = data::generate_traffic_like({862, 17544, 1});
  const data::WindowStore store(dataset, past, future);
  privacy::SubsamplingScheme::Parameters p;
  p.lengths = tsdp::privacy::SeriesLengths::equal(862, 13916);
  p.context_length = past;
  p.forecast_length = future;
  p.batch_size = batch;
  sampling::StructuredSampler sampler{privacy::SubsamplingScheme(p)};
  training::WindowSource source(store, std::nullopt, at::TensorOptions(at::kFloat));
  const auto key = SecretKey::from_seed(1);
  std::uint64_t step = 0;
  const auto indices = sampler.draw(key, 0).windows;
  // The cost of a plain tensor index of the same size: rows of a ready matrix of windows, gathered by a tensor of
  // places.
  const auto table = at::rand({100'000, past + future});
  const auto table_observed = at::ones_like(table);
  const auto places = at::randint(100'000, {batch}, at::kLong);
  std::vector<Timing> timings = {{"draw and gather", [&] { source.gather(sampler.draw(key, step++).windows); }},
                                 {"gather", [&] { source.gather(indices); }},
                                 {"tensor index", [&] { table.index({places}), table_observed.index({places}); }}};
  time_together(timings, seconds);
  for (auto& t : timings) {
    Json row = {{"bench", "sample"}, {"mode", t.name},  {"threads", at::get_num_threads()},
                {"batch", batch},    {"context", past}, {"forecast", future}};
    put_times(row, t);
    row["windows_per_s"] = 1e3 * static_cast<double>(batch) / row["median_ms"].get<double>();
    rows.push_back(row);
  }
}

void bench_account(Json& rows, double seconds) {
  using namespace tsdp::privacy;
  const double q = 256.0 / 862.0 * 120.0 / 13893.0;
  std::vector<Timing> timings = {{"epsilon after 10000 steps, width 1e-3",
                                  [&] { static_cast<void>(Accountant(one_window_pair(q, 4.0)).epsilon(1e-7, 10000)); }},
                                 {"most steps within epsilon 1",
                                  [&] { static_cast<void>(Accountant(one_window_pair(q, 4.0)).max_uses(1.0, 1e-7)); }}};
  time_together(timings, seconds);
  for (auto& t : timings) {
    Json row = {{"bench", "account"}, {"mode", t.name}, {"threads", 1}};
    put_times(row, t);
    rows.push_back(row);
  }
}

/// The cost of durability: a checkpoint at least every `checkpoint_seconds` (10 s), a charge about every 5 s.
void bench_durability(Json& rows, double seconds) {
  using namespace tsdp;
  const auto folder = std::filesystem::temp_directory_path() / cat("tsdp_bench_", ::getpid());
  std::filesystem::create_directories(folder);
  auto model = models::make_model("simple_ff", {96, 24}, at::TensorOptions(at::kFloat));
  dp::Adam adam({}, model->parameters().values());
  training::Charge::create(folder / "charged", SecretKey::from_seed(1), "bench", 1000);
  training::Charge charge(folder / "charged");
  std::vector<Timing> timings = {{"checkpoint",
                                  [&] {
                                    training::save_checkpoint(folder / "last.pt", {"bench",
                                                                                   1,
                                                                                   0,
                                                                                   SecretKey::from_seed(1),
                                                                                   "bench",
                                                                                   1,
                                                                                   0.0,
                                                                                   at::zeros({2}, at::kDouble),
                                                                                   {},
                                                                                   model->parameters().values(),
                                                                                   adam.state()});
                                  }},
                                 {"charge", [&] { charge.raise_to(charge.steps() + 1); }}};
  time_together(timings, seconds);
  for (auto& t : timings) {
    Json row = {{"bench", "durability"}, {"mode", t.name}, {"threads", at::get_num_threads()}};
    put_times(row, t);
    row["share_of_training"] = 1e-3 * row["median_ms"].get<double>() / (t.name == "charge" ? 5.0 : 10.0);
    rows.push_back(row);
  }
  std::filesystem::remove_all(folder);
}

/// What ranks exchange in a step: its number, weights from rank 0, sums to rank 0. Ranks on this machine, a thread
/// each.
void bench_reduce(Json& rows, double seconds) {
  using namespace tsdp;
  using training::Ranks;
  constexpr std::uint16_t port = 29'517;
  for (const std::int64_t count : {2, 3, 4}) {
    const auto here = [&](std::int64_t number) {
      return Ranks::meet({number, count}, {"127.0.0.1", port},
                         {std::chrono::seconds(60), false, std::nullopt, std::nullopt});
    };
    std::vector<std::thread> others;
    for (std::int64_t r = 1; r < count; ++r)
      others.emplace_back([&, r] {
        auto ranks = here(r);
        for (;;) {
          auto parameters = at::zeros({1}, at::kLong);
          ranks.take_from_first(parameters);
          const auto d = parameters.item<std::int64_t>();
          if (d == 0) return;
          ranks.take_from_first(at::empty({d}));
          ranks.add_up_at_first(at::ones({d}, at::kLong));
        }
      });
    auto first = here(0);
    std::vector<Timing> timings;
    for (const std::int64_t d : {20'000, 100'000, 1'000'000})
      timings.push_back({cat(d, " parameters"), [&, d] {
                           first.take_from_first(at::full({1}, d, at::kLong));
                           first.take_from_first(at::zeros({d}));
                           first.add_up_at_first(at::ones({d}, at::kLong));
                         }});
    time_together(timings, seconds);
    first.take_from_first(at::zeros({1}, at::kLong));
    for (auto& other : others) other.join();
    for (auto& t : timings) {
      Json row = {{"bench", "reduce"}, {"mode", t.name}, {"ranks", count}};
      put_times(row, t);
      rows.push_back(row);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  tsdp::cli::spin_briefly(argv);
  CLI::App app("Times a training step, the data path and the accountant.", "tsdp-bench");
  tsdp::cli::CommonOptions common;
  tsdp::cli::add_common_options(app, common, /*with_json=*/false);
  std::string json;
  std::string only = "^(step|sample|account|durability)$";
  std::string models = ".*";
  std::string device_name = "auto";
  int threads = 0;
  double seconds = 3.0;
  app.add_option("--json", json, "File for the results");
  app.add_option("--only", only, "Regular expression over: step, scaling, sample, account, durability, reduce")
      ->capture_default_str();
  app.add_option("--models", models, "Regular expression over the forecasters, for step and scaling");
  app.add_option("--device", device_name, "auto, cpu, cuda or cuda:i")->capture_default_str();
  app.add_option("--threads", threads, "CPU threads; 0: all cores")->capture_default_str();
  app.add_option("--seconds", seconds, "Measured time of each group")->capture_default_str();
  return tsdp::cli::run(app, argc, argv, common, [&] {
    tsdp::cli::set_threads(threads);
    const auto device = tsdp::cli::device_of(device_name);
    tsdp::dp::settle_device(device);
    const std::regex wanted(only);
    Json rows = Json::array();
    const std::regex chosen(models);
    for (const auto& model : tsdp::models::model_names()) {
      if (!std::regex_search(model, chosen)) continue;
      if (std::regex_search("step", wanted))
        for (const std::int64_t batch : {32, 256, 1024}) bench_step(rows, {model, device, batch, 96, 24, 1}, seconds);
      if (std::regex_search("scaling", wanted)) bench_scaling(rows, model, device, seconds);
    }
    if (std::regex_search("sample", wanted)) bench_sample(rows, seconds);
    if (std::regex_search("account", wanted)) bench_account(rows, seconds);
    if (std::regex_search("durability", wanted)) bench_durability(rows, seconds);
    if (std::regex_search("reduce", wanted)) bench_reduce(rows, seconds);
    for (const auto& row : rows) {
      const auto number = [&](const char* key) { return tsdp::rounded(row[key].get<double>(), 4); };
      std::cout << row["bench"].get<std::string>() << " " << row.value("model", "") << " "
                << row["mode"].get<std::string>();
      if (row.contains("exponent")) {
        std::cout << ": time grows as " << row["axis"].get<std::string>() << "^" << number("exponent") << "\n";
        continue;
      }
      for (const char* key : {"batch", "context", "width_factor", "ranks"})
        if (row.contains(key)) std::cout << ", " << key << " " << row[key].get<std::int64_t>();
      std::cout << ": " << number("median_ms") << " ms (min " << number("min_ms") << ", cpu " << number("cpu_ms")
                << ")";
      if (row.contains("step_mb")) std::cout << ", " << number("step_mb") << " MB";
      std::cout << "\n";
    }
    if (!json.empty()) {
      std::ofstream out(json);
      out << rows.dump(2) << "\n";
      if (!out) throw tsdp::UsageError(tsdp::cat("--json: cannot write ", json));
    }
    return 0;
  });
}
