// Whole runs on the fake device: trained, killed, resumed there and elsewhere, exported, scored.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "fake_device.h"
#include "training/device_runs.h"
#include "training/model_setup.h"
#include "training/training_fixture.h"
#include "tsdp/base/file.h"
#include "tsdp/evaluation/backtest.h"
#include "tsdp/export/torchscript.h"

namespace tsdp::training {
namespace {

namespace fake = test::fake;

class FakeRuns : public DeviceRuns {
 protected:
  /// 10 steps on one device, the rest on another.
  at::Tensor weights_of_two(const at::Device& first, const at::Device& second, const std::string& name,
                            const Config& config) const {
    on(first, name, config)->begin();
    auto t = on(first, name, config);
    t->resume();
    EXPECT_FALSE(t->run({.most_steps = 10}));
    t = on(second, name, config);
    t->resume();
    EXPECT_EQ(t->step(), 10U);
    EXPECT_TRUE(t->run({}));
    return t->model().parameters().values().cpu();
  }

  const Threads one_{1};
  const at::Device there_ = fake::device();
};

class FakeRunsOfAKind : public FakeRuns, public testing::WithParamInterface<KindOfRun> {};

// Between two looks at losses the host runs ahead of the device: it sends the places of windows and the noise.
TEST_P(FakeRunsOfAKind, TrainLikeTheCpuAndWaitOnlyToLookAtLosses) {
  const auto& config = GetParam().second;
  const auto expected = weights_of_run(at::kCPU, "cpu", config);
  const auto t = on(there_, "there", config);
  t->begin();
  const auto looks = static_cast<std::uint64_t>(config.training.validate_every) * t->plan().steps_per_epoch;
  int steps = 0;
  TrainOptions options;
  options.after_step = [&](std::uint64_t step) {
    const auto counts = fake::counts();
    // A look comes after its step, so that the next one's counts have it.
    if ((step - 1) % looks != 0) {
      ++steps;
      EXPECT_EQ(counts.waits, 0) << "step " << step << ": " << testing::PrintToString(fake::events());
      EXPECT_EQ(counts.to_host, 0);
      EXPECT_EQ(counts.pageable, 0);
    }
    fake::reset();
  };
  EXPECT_TRUE(t->run(options));
  EXPECT_GT(steps, 0);
  const auto found = t->model().parameters().values().cpu();
  EXPECT_LT((found - expected).abs().mean().item<double>(), config.privacy.enabled ? 1e-5 : 1e-4);
  fake::expect_copies_undisturbed();
}

INSTANTIATE_TEST_SUITE_P(, FakeRunsOfAKind, testing::ValuesIn(kinds_of_runs()), name_of_kind);

// Of one kind each: what a step keeps for the next ones.
TEST_F(FakeRuns, ResumeToTheSameBits) {
  const std::set<std::string> kinds = {"simple_ff",   "itransformer",      "poisson",
                                       "not private", "head of simple_ff", "blt"};
  std::size_t resumed = 0;
  for (const auto& [name, config] : kinds_of_runs()) {
    if (!kinds.contains(name)) continue;
    ++resumed;
    SCOPED_TRACE(name);
    const auto expected = weights_of_run(there_, name + "-whole", config);
    on(there_, name, config)->begin();
    // Every other time a crash: the checkpoint is then older than what is charged.
    bool done = false;
    for (int part = 0; !done; ++part) {
      auto t = on(there_, name, config);
      t->resume();
      const auto before = read_file(folder(name).last());
      done = t->run({.most_steps = part % 2 == 0 ? 7U : 8U});
      t.reset();
      if (!done && part % 2 == 0) write_file_atomically(folder(name).last(), before, FileAccess::owner);
    }
    const auto t = on(there_, name, config);
    t->resume();
    EXPECT_TRUE(at::equal(t->model().parameters().values().cpu(), expected));
    EXPECT_EQ(t->current_ledger(mechanism::RunState::finished).steps_taken, t->plan().steps);
  }
  EXPECT_EQ(resumed, kinds.size());
}

TEST_F(FakeRuns, GoOnOnAnotherDevice) {
  for (const auto& model : models::model_names()) {
    SCOPED_TRACE(model);
    auto config = small_training_of(model);
    config.training.reproducible = true;
    config.training.max_epochs = 10;
    config.model.prior = PriorKind::last_value;
    const auto expected = weights_of_run(at::kCPU, model + "-cpu", config);
    for (const auto& [name, first, second] : {std::tuple{"to the CPU", there_, at::Device(at::kCPU)},
                                              std::tuple{"from the CPU", at::Device(at::kCPU), there_}})
      EXPECT_LT((weights_of_two(first, second, model + name, config) - expected).abs().mean().item<double>(), 1e-5)
          << name;
  }
}

class FakeExports : public FakeRuns, public testing::WithParamInterface<std::string> {
 protected:
  [[nodiscard]] std::unique_ptr<models::Forecaster> model(const at::Device& device) const {
    auto out = model_of(config_, at::TensorOptions(device).dtype(at::kFloat));
    RandomStream weights(SecretKey::from_seed(1), "initial weights", 0);
    out->initialise(weights);
    return out;
  }
  [[nodiscard]] evaluation::Metrics scores(torch::jit::Module& module, const at::Device& device) const {
    return evaluation::backtest(module, data_.dataset, data_.split.test, 24, device).model;
  }

  const Config config_ = small_training_of(GetParam());
};

TEST_P(FakeExports, ForecastThere) {
  auto on_cpu = exporting::make_module(*model(at::kCPU));
  const auto wanted = scores(on_cpu, at::kCPU).mean_weighted_quantile_loss();
  // Module::to gives a tensor another device's data, which LibTorch allows for its own devices alone.
  auto module = exporting::make_module(*model(there_));
  for (const auto& buffer : module.named_buffers(/*recurse=*/false))
    module.setattr(buffer.name, buffer.value.to(there_));
  EXPECT_NEAR(scores(module, there_).mean_weighted_quantile_loss(), wanted, 1e-4 * wanted);
}

INSTANTIATE_TEST_SUITE_P(, FakeExports, testing::ValuesIn(models::model_names()),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace tsdp::training
