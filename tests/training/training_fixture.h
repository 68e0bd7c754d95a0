// A small data set and configuration that trainings in tests share, in a folder of the test's own.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <unistd.h>

#include "base/log.h"
#include "tsdp/training/trainer.h"

namespace tsdp::training {

/// Six series of different waves, 200 values each.
inline data::PreparedData waves() {
  data::PreparedData data;
  data.dataset.name = "waves";
  data.dataset.frequency = data::Frequency::parse("1h");
  for (int s = 0; s < 6; ++s) {
    data::Series series{std::to_string(s), 0, {}, {}};
    for (int t = 0; t < 200; ++t) {
      series.exact.push_back(5.0 + s + std::sin(0.26 * t + s));
      series.values.push_back(static_cast<float>(series.exact.back()));
    }
    data.dataset.series.push_back(series);
  }
  data.split = data::split_dataset(data.dataset, {data::SplitKind::last, 4, 1, 8});
  return data;
}

/// The same series in files of as many series as `counts` says, of which this process reads `own` from the `first` on.
inline data::PreparedData in_files(data::PreparedData data, const std::vector<std::size_t>& counts,
                                   std::int64_t first = 0, std::int64_t own = -1) {
  auto& shards = data.shards.emplace();
  shards.first = first;
  shards.own = own < 0 ? static_cast<std::int64_t>(counts.size()) : own;
  auto next = data.split.training_length.begin();
  for (const auto count : counts) {
    shards.files.push_back(
        {{next, next + static_cast<std::ptrdiff_t>(count)}, "file " + std::to_string(shards.files.size())});
    next += static_cast<std::ptrdiff_t>(count);
  }
  const auto begins = shards.begins();
  const auto from = begins[static_cast<std::size_t>(shards.first)];
  const auto to = begins[static_cast<std::size_t>(shards.first + shards.own)];
  auto& series = data.dataset.series;
  series = std::vector(series.begin() + from, series.begin() + to);
  data.split = data::split_dataset(data.dataset, {data::SplitKind::last, 4, 1, 8});
  return data;
}

/// 40 epochs of 2 steps on them, within the target.
inline Config small_training() {
  Config c;
  c.dataset.frequency = "1h";
  c.dataset.prediction_length = 4;
  c.model.context_length = 8;
  c.sampling.batch_size = 3;
  c.privacy.noise_multiplier = 1.5;
  c.privacy.composition = privacy::StepComposition::symmetrised;  // (nothing to wait for)
  c.privacy.clip_norm = 0.1;
  c.privacy.delta = 1e-5;
  c.privacy.target_epsilon = 50.0;
  c.training.max_epochs = 40;
  c.training.validate_every = 5;
  c.training.trainable = Trainable::all;
  c.training.checkpoint_seconds = 1e6;  // only what a test asks for
  return c;
}

inline Config small_training_of(const std::string& model) {
  auto config = small_training();
  config.model.name = model;
  if (model == "deepar") config.model.lags = {1, 2, 24};
  return config;
}

/// A method whose batches are `windows` windows, one of every series; and the places of such a batch.
inline mechanism::TrainingMethod method_of_batch(std::int64_t windows, bool is_private, privacy::Clipping clipping) {
  privacy::SubsamplingScheme::Parameters p;
  p.lengths = privacy::SeriesLengths::equal(windows, 100);
  p.batch_size = windows;
  p.top_level = privacy::TopLevel::deterministic;
  privacy::SubsamplingScheme law(p);
  if (!is_private) return mechanism::TrainingMethod(std::move(law));
  return mechanism::PrivateMechanism({}, std::move(law), clipping, {});
}
inline std::vector<std::int64_t> places_of_batch(std::int64_t windows) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(windows));
  std::iota(out.begin(), out.end(), std::int64_t{0});
  return out;
}

/// Sets the thread count, on which rounding may hang, for as long as it lives.
class Threads {
 public:
  explicit Threads(int count) : before_(at::get_num_threads()) { at::set_num_threads(count); }
  ~Threads() { at::set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

/// What a run of `config`, whose sampling scheme is settled, does with `data`.
inline mechanism::Settled settled(const Config& config, const data::PreparedData& data,
                                  const std::optional<mechanism::StartWeights>& start = std::nullopt) {
  return mechanism::settle_noise({config, start}, data.training_lengths());
}

class TrainingFixture : public testing::Test {
 protected:
  void SetUp() override {
    log::set_level(log::Level::quiet);
    root_ = std::filesystem::temp_directory_path() / ("tsdp_training_" + std::to_string(::getpid()));
    std::filesystem::remove_all(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  [[nodiscard]] RunFolder folder(const std::string& name) const { return {root_ / name}; }
  std::unique_ptr<Trainer> trainer(const std::string& name, const Config& config) const {
    return std::make_unique<Trainer>(settled(config, data_), data_, at::Device(at::kCPU), folder(name));
  }

  std::filesystem::path root_;
  data::PreparedData data_ = waves();
};

}  // namespace tsdp::training
