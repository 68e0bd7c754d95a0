// The same step on a GPU: skipped where there is none.
#include <gtest/gtest.h>

#include <torch/cuda.h>

#include "device_runs.h"
#include "dp/device_kind.h"
#include "run/charge.h"
#include "support/clipped_sum.h"
#include "training/step_engine.h"
#include "training_fixture.h"
#include "tsdp/base/file.h"
#include "tsdp/export/torchscript.h"

namespace tsdp::training {
namespace {

class Cuda : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!torch::cuda::is_available()) GTEST_SKIP() << "no GPU here";
  }

  static std::unique_ptr<models::Forecaster> model(const at::Device& device) {
    models::ModelOptions options{24, 6, {}, 5, 0.0, 1};
    if (GetParam() == "deepar") options.lags = {1, 2, 3, 24};
    auto out = models::make_model(GetParam(), options, at::TensorOptions(device).dtype(at::kFloat));
    RandomStream weights(SecretKey::from_seed(1), "initial weights", 0);
    out->initialise(weights);
    return out;
  }

  static models::WindowBatch batch(const models::Forecaster& of, const at::Device& device) {
    at::manual_seed(5);
    const auto past = of.past_length();
    const auto observed = at::rand({37, past}).gt(0.2).to(at::kFloat);
    models::WindowBatch out{at::rand({37, past}) * 9.0 * observed, observed, at::rand({37, 6}) * 9.0, at::ones({37, 6}),
                            at::rand({37, past + 6, 5}) - 0.5};
    for (auto* t : {&out.past_target, &out.past_observed, &out.future_target, &out.future_observed, &out.time_features})
      *t = t->to(device);
    return out;
  }
};

TEST_P(Cuda, TakesTheStepsOfTheCpu) {
  for (const bool is_private : {true, false}) {
    std::vector<at::Tensor> weights;
    for (const auto& device : {at::Device(at::kCPU), at::Device(at::kCUDA, 0)}) {
      const auto trained = model(device);
      StepEngine engine(*trained, method_of_batch(37, is_private, {privacy::ClippingKind::flat, 0.05}), {});
      const auto windows = batch(*trained, device);
      for (std::uint64_t step = 0; step < 3; ++step) {
        const auto result = engine.step(windows, places_of_batch(37), SecretKey::from_seed(2), step);
        EXPECT_TRUE(result.losses.isfinite().all().item<bool>());
      }
      weights.push_back(trained->parameters().values().cpu());
    }
    // A step moves a weight by about 1e-3; where a gradient nearly cancels, rounding decides its direction.
    EXPECT_LT((weights[0] - weights[1]).abs().mean().item<double>(), is_private ? 1e-6 : 2e-5);
  }
}

TEST_P(Cuda, ABrokenWindowAddsNothing) {
  const auto device = at::Device(at::kCUDA, 0);
  const auto of = model(device);
  auto windows = batch(*of, device);
  const auto sum = [&](const models::WindowBatch& part) {
    const c10::NoGradGuard no_autograd;
    test::clipped_sum(*of, part, {0.05});
    return of->parameters().gradients().clone();
  };
  const auto without = sum(windows.rows(1, 36));
  windows.past_target[0].fill_(std::numeric_limits<float>::infinity());
  windows.future_target[0].fill_(std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(at::allclose(sum(windows), without, 1e-4, 1e-6));
}

TEST_P(Cuda, ExportsToTheCpu) {
  const auto on_gpu = model(at::Device(at::kCUDA, 0));
  const auto on_cpu = model(at::kCPU);
  const auto windows = batch(*on_cpu, at::kCPU);
  auto module = exporting::make_module(*on_gpu);
  module.to(at::kCPU);
  auto expected = exporting::make_module(*on_cpu);
  const auto draws = 1.0 - at::rand({37, 4, 6, 2});
  const std::vector<at::IValue> inputs = {windows.past_target, windows.past_observed,
                                          at::tensor({0.1, 0.9}, at::kDouble), windows.time_features, draws};
  const auto found = module.forward(inputs).toTuple();
  const auto wanted = expected.forward(inputs).toTuple();
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_TRUE(at::allclose(found->elements()[i].toTensor(), wanted->elements()[i].toTensor(), 1e-4, 1e-4));
}

/// Whole runs on the GPU.
class CudaRuns : public DeviceRuns, public testing::WithParamInterface<KindOfRun> {
 protected:
  void SetUp() override {
    if (!torch::cuda::is_available()) GTEST_SKIP() << "no GPU here";
    DeviceRuns::SetUp();
    dp::settle_device(gpu);
  }

  const at::Device gpu = at::Device(at::kCUDA, 0);
};

TEST_P(CudaRuns, TrainLikeTheCpu) {
  const auto& [name, config] = GetParam();
  const auto expected = weights_of_run(at::kCPU, "cpu", config);
  const auto found = weights_of_run(gpu, "gpu", config);
  EXPECT_LT((found - expected).abs().mean().item<double>(), config.privacy.enabled ? 1e-5 : 1e-4);
}

// Stopped twice, with a crash in between, after which the checkpoint is older than what is charged.
TEST_P(CudaRuns, ResumeToTheSameBits) {
  const auto& [name, config] = GetParam();
  const auto expected = weights_of_run(gpu, "whole", config);
  const auto resumed = [&] {
    auto t = on(gpu, "parts", config);
    t->resume();
    return t;
  };
  on(gpu, "parts", config)->begin();
  bool done = false;
  for (int part = 0; !done; ++part) {
    auto t = resumed();
    const auto before = read_file(folder("parts").last());
    done = t->run({.most_steps = t->plan().steps / 3 + 1});
    t.reset();
    if (!done && part == 1) write_file_atomically(folder("parts").last(), before, FileAccess::owner);
  }
  const auto t = resumed();
  EXPECT_TRUE(at::equal(t->model().parameters().values().cpu(), expected));
  EXPECT_EQ(t->current_ledger(mechanism::RunState::finished).steps_taken, t->plan().steps);
}

INSTANTIATE_TEST_SUITE_P(, CudaRuns, testing::ValuesIn(kinds_of_runs()), name_of_kind);
INSTANTIATE_TEST_SUITE_P(, Cuda, testing::ValuesIn(models::model_names()), [](const auto& name) { return name.param; });

}  // namespace
}  // namespace tsdp::training
