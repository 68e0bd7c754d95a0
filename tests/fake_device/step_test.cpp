// Steps on the fake device against the CPU's: every model, every kind of private step.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
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
using test::DeviceModels;
using test::Kind;
using test::kinds_of_steps;

class FakeSteps : public DeviceModels, public testing::WithParamInterface<std::string> {};

/// What three steps of a kind leave on a device.
struct Left {
  at::Tensor sum;  // of the first step, without what rounding is allowed for
  std::vector<at::Tensor> releases;
  at::Tensor weights;
};

// The CPU's steps up to rounding, of every kind; and no step makes the host wait.
TEST_P(FakeSteps, OfEveryKindAreTheCpus) {
  const Threads one(1);
  for (const auto& kind : kinds_of_steps(GetParam())) {
    SCOPED_TRACE(kind.name);
    std::vector<Left> left;
    for (const auto& device : {at::Device(at::kCPU), fake::device()}) {
      auto& out = left.emplace_back();
      const auto model = made(GetParam(), kind.options, device);
      StepEngine engine(*model, kind.method(), {{}, kind.gradient_norm_bound});
      const auto windows = batch_on(*model, device);
      out.sum = engine.sum(windows, kind.places).cpu() /
                (kind.is_private ? dp::rounding_guard(at::kFloat, engine.clipping().summed, engine.clipping().joined)
                                 : 1.0);
      for (std::uint64_t step = 0; step < 3; ++step) {
        StepEngine::Result result;
        {
          const fake::Forbidden waits({});
          result = engine.step(windows, kind.places, SecretKey::from_seed(2), step);
        }
        EXPECT_TRUE(result.losses.isfinite().all().item<bool>());
        out.releases.push_back(model->parameters().gradients().cpu());
      }
      out.weights = model->parameters().values().cpu();
    }
    fake::expect_copies_undisturbed();
    const auto apart = [](const at::Tensor& a, const at::Tensor& b) {
      return ((a - b).norm() / a.norm()).item<double>();
    };
    EXPECT_GT(left[0].sum.norm().item<double>(), 0.0);
    EXPECT_LT(apart(left[0].sum, left[1].sum), 3e-5);
    EXPECT_LT(apart(left[0].releases[0], left[1].releases[0]), 3e-5);
    // A step moves a weight by about 1e-3; where a gradient nearly cancels, rounding decides its direction.
    EXPECT_LT((left[0].weights - left[1].weights).abs().mean().item<double>(), kind.is_private ? 1e-6 : 2e-5);
  }
}

// A step without windows releases its noise alone, bit by bit the CPU's.
TEST_P(FakeSteps, HaveTheCpusNoiseBitByBit) {
  const Threads one(1);
  for (const auto& kind : kinds_of_steps(GetParam())) {
    if (!kind.is_private) continue;
    SCOPED_TRACE(kind.name);
    std::vector<std::vector<at::Tensor>> releases;
    for (const auto& device : {at::Device(at::kCPU), fake::device()}) {
      auto& out = releases.emplace_back();
      const auto model = made(GetParam(), kind.options, device);
      StepEngine engine(*model, kind.method(), {});
      const auto none = batch_on(*model, device).rows(0, 0);
      for (std::uint64_t step = 0; step < 4; ++step) {
        engine.step(none, {}, SecretKey::from_seed(2), step);
        out.push_back(model->parameters().gradients().narrow(0, 0, model->parameters().trained_count()).cpu());
      }
    }
    for (std::size_t step = 0; step < 4; ++step) {
      EXPECT_TRUE(at::equal(releases[0][step], releases[1][step])) << "step " << step;
      EXPECT_GT(releases[0][step].ne(0.0).to(at::kFloat).mean().item<float>(), 0.9F);
    }
  }
}

TEST_P(FakeSteps, ABrokenWindowAddsNothing) {
  const auto of = made(GetParam(), {}, fake::device());
  auto windows = batch_on(*of, fake::device());
  const auto sum = [&](const models::WindowBatch& part) {
    const c10::NoGradGuard no_autograd;
    test::clipped_sum(*of, part, {0.05});
    return of->parameters().gradients().cpu();
  };
  const auto without = sum(windows.rows(1, windows.size() - 1));
  windows.past_target[0].fill_(std::numeric_limits<float>::infinity());
  windows.future_target[0].fill_(std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(at::allclose(sum(windows), without, 1e-4, 1e-6));
}

// The same steps launched one by one, and recorded and replayed; a replayed step neither waits nor allocates.
TEST_P(FakeSteps, ReplayedAreTheSameBits) {
  const Threads one(1);
  dp::settle_device(fake::device());
  for (const auto& kind : kinds_of_steps(GetParam())) {
    if (kind.joins) continue;
    SCOPED_TRACE(kind.name);
    std::vector<at::Tensor> weights;
    for (const bool replays : {false, true}) {
      const auto model = made(GetParam(), kind.options, fake::device());
      StepEngine engine(*model, kind.method(), {{}, kind.gradient_norm_bound});
      WindowSource source(store_of(*model), features_of(*model), options_on(fake::device()));
      const auto replayed = replays ? ReplayedStep::of(engine, *model, source) : nullptr;
      ASSERT_EQ(replayed != nullptr, replays);
      EXPECT_TRUE(!replays || replayed->repeats());
      for (std::uint64_t step = 0; step < 3; ++step) {
        const sampling::Draw drawn{windows_of(step), kind.places};
        // Finish is recorded in the first step.
        const fake::Forbidden all({.waits = true, .allocations = replays && step > 0});
        fake::reset();
        if (replays) replayed->step(drawn, SecretKey::from_seed(2), step);
        else engine.step(source.gather(drawn.windows), drawn.places, SecretKey::from_seed(2), step);
        EXPECT_LE(fake::counts().to_device, 2);
        EXPECT_EQ(fake::counts().to_host, 0);
      }
      weights.push_back(model->parameters().values().cpu());
    }
    EXPECT_TRUE(at::equal(weights[0], weights[1]));
    fake::expect_copies_undisturbed();
  }
}

INSTANTIATE_TEST_SUITE_P(, FakeSteps, testing::ValuesIn(models::model_names()),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace tsdp::training
