// Steps on the fake device against the CPU's: every model, every kind of private step.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <c10/core/GradMode.h>

#include "device_models.h"
#include "fake_device.h"
#include "support/clipped_sum.h"
#include "training/replayed_step.h"
#include "training/step_engine.h"

namespace tsdp::training {
namespace {

namespace fake = test::fake;
using test::kinds_of_steps;
using test::OnDevice;

class FakeSteps : public testing::TestWithParam<std::string> {
 protected:
  const Threads one_{1};
};

/// What three steps of a kind leave on a device.
struct Left {
  at::Tensor sum;  // of the first step
  double guard = 1.0;  // what its gradients are scaled by against rounding: devices sum more of them at a time
  std::vector<at::Tensor> releases;
  at::Tensor weights;
};

// The CPU's steps up to rounding, of every kind; and no step makes the host wait.
TEST_P(FakeSteps, OfEveryKindAreTheCpus) {
  for (const auto& kind : kinds_of_steps(GetParam())) {
    SCOPED_TRACE(kind.name);
    std::vector<Left> left;
    for (const auto& device : {at::Device(at::kCPU), fake::device()}) {
      auto& out = left.emplace_back();
      OnDevice on(GetParam(), kind, device);
      auto engine = on.engine(kind);
      out.sum = engine.sum(on.source.gather(OnDevice::windows(kind, 0)), kind.places).cpu().clone();
      if (kind.is_private)
        out.guard = dp::rounding_guard(at::kFloat, engine.clipping().summed, engine.clipping().joined);
      for (std::uint64_t step = 0; step < 3; ++step) {
        StepEngine::Result result;
        {
          const fake::Forbidden waits({});
          result =
              engine.step(on.source.gather(OnDevice::windows(kind, step)), kind.places, SecretKey::from_seed(2), step);
        }
        EXPECT_TRUE(result.losses.isfinite().all().item<bool>());
        out.releases.push_back(
            on.model->parameters().gradients().to(at::kCPU, at::kFloat, /*non_blocking=*/false, /*copy=*/true));
      }
      out.weights = on.model->parameters().values().cpu();
    }
    fake::expect_copies_undisturbed();
    const auto expect_near = [](const at::Tensor& found, const at::Tensor& expected) {
      EXPECT_GT(expected.norm().item<double>(), 0.0);
      EXPECT_LT((found - expected).norm().item<double>(), 3e-5 * expected.norm().item<double>());
    };
    const auto& [of_cpu, of_device] = std::tie(left[0], left[1]);
    expect_near(of_device.sum / of_device.guard, of_cpu.sum / of_cpu.guard);
    // Both have the same noise.
    auto release = of_cpu.releases[0].to(at::kDouble);
    if (kind.is_private) release += (of_device.sum - of_cpu.sum) / kind.method().divisor();
    expect_near(of_device.releases[0], release);
    // A step moves a weight by about 1e-3; where a gradient nearly cancels, rounding decides its direction.
    EXPECT_LT((left[0].weights - left[1].weights).abs().mean().item<double>(), kind.is_private ? 1e-6 : 2e-5);
  }
}

// A step without windows releases its noise alone, bit by bit the CPU's.
TEST_P(FakeSteps, HaveTheCpusNoiseBitByBit) {
  for (const auto& kind : kinds_of_steps(GetParam())) {
    if (!kind.is_private) continue;
    SCOPED_TRACE(kind.name);
    std::vector<std::vector<at::Tensor>> releases;
    for (const auto& device : {at::Device(at::kCPU), fake::device()}) {
      auto& out = releases.emplace_back();
      OnDevice on(GetParam(), kind, device);
      auto engine = on.engine(kind);
      const auto none = on.source.gather(OnDevice::windows(kind, 0)).rows(0, 0);
      for (std::uint64_t step = 0; step < 4; ++step) {
        engine.step(none, {}, SecretKey::from_seed(2), step);
        out.push_back(
            on.model->parameters().gradients().to(at::kCPU, at::kFloat, /*non_blocking=*/false, /*copy=*/true));
      }
    }
    for (std::size_t step = 0; step < 4; ++step) {
      EXPECT_TRUE(at::equal(releases[0][step], releases[1][step])) << "step " << step;
      EXPECT_GT(releases[0][step].ne(0.0).to(at::kFloat).mean().item<float>(), 0.9F);
    }
  }
}

TEST_P(FakeSteps, ABrokenWindowAddsNothing) {
  const auto kind = kinds_of_steps(GetParam()).front();
  OnDevice on(GetParam(), kind, fake::device());
  auto windows = on.source.gather(OnDevice::windows(kind, 0));
  const auto sum = [&](const models::WindowBatch& part) {
    const c10::NoGradGuard no_autograd;
    test::clipped_sum(*on.model, part, {0.05});
    return on.model->parameters().gradients().cpu();
  };
  const auto without = sum(windows.rows(1, windows.size() - 1));
  windows.past_target[0].fill_(std::numeric_limits<float>::infinity());
  windows.future_target[0].fill_(std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(at::allclose(sum(windows), without, 1e-4, 1e-6));
}

// The same steps launched one by one, and recorded and replayed; a replayed step neither waits nor allocates.
TEST_P(FakeSteps, ReplayedAreTheSameBits) {
  dp::settle_device(fake::device());
  for (const auto& kind : kinds_of_steps(GetParam())) {
    if (kind.joins) continue;
    SCOPED_TRACE(kind.name);
    std::vector<at::Tensor> weights;
    for (const bool replays : {false, true}) {
      OnDevice on(GetParam(), kind, fake::device());
      auto engine = on.engine(kind);
      const auto replayed = replays ? ReplayedStep::of(engine, *on.model, on.source) : nullptr;
      ASSERT_EQ(replayed != nullptr, replays);
      EXPECT_TRUE(!replays || replayed->repeats());
      for (std::uint64_t step = 0; step < 3; ++step) {
        const sampling::Draw drawn{OnDevice::windows(kind, step), kind.places};
        // What is used for the first time is tried, and finish is recorded.
        const bool is_first = step == 0 && !replays;
        const fake::Forbidden all({.waits = !is_first, .allocations = replays && step > 0});
        fake::reset();
        if (replays) replayed->step(drawn, SecretKey::from_seed(2), step);
        else engine.step(on.source.gather(drawn.windows), drawn.places, SecretKey::from_seed(2), step);
        EXPECT_LE(fake::counts().to_device, 2);
        EXPECT_TRUE(is_first || fake::counts().to_host == 0);
      }
      weights.push_back(on.model->parameters().values().cpu());
    }
    // A batch that is filled up is summed in another shape.
    if (kind.most_at_a_time > 0) EXPECT_LT((weights[0] - weights[1]).abs().mean().item<double>(), 1e-6);
    else EXPECT_TRUE(at::equal(weights[0], weights[1]));
    fake::expect_copies_undisturbed();
  }
}

INSTANTIATE_TEST_SUITE_P(, FakeSteps, testing::ValuesIn(models::model_names()),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace tsdp::training
