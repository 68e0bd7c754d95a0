// SimpleFF against a plain loop over windows with autograd, and the independence of windows.
#include "models/simple_ff.h"

#include <gtest/gtest.h>

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include <cmath>
#include <numbers>

#include "tsdp/dp/private_step.h"

namespace tsdp::models {
namespace {

struct Setting {
  std::int64_t windows, context, horizon;
};

WindowBatch random_batch(const Setting& s, RandomStream& stream) {
  const auto fill = [&](std::int64_t columns, bool mask) {
    auto t = at::empty({s.windows, columns}, at::kDouble);
    for (std::int64_t i = 0; i < t.numel(); ++i)
      t.data_ptr<double>()[i] = mask ? (stream.below(4) == 0 ? 0.0 : 1.0) : 10.0 * stream.uniform() - 3.0;
    return t;
  };
  WindowBatch b{fill(s.context, false), fill(s.context, true), fill(s.horizon, false), fill(s.horizon, true)};
  b.past_target.mul_(b.past_observed);
  b.future_target.mul_(b.future_observed);
  return b;
}

/// Loss of one window by autograd operations, as the formulas of GluonTS read.
at::Tensor oracle_loss(const std::vector<at::Tensor>& w, const WindowBatch& b, std::int64_t i, std::int64_t horizon) {
  const auto past = b.past_target[i];
  const auto a = past.abs().mean().clamp_min(1e-5);
  const auto hidden = at::relu(at::linear(past / a, w[0], w[1]));
  const auto h = at::linear(hidden, w[2], w[3]).view({horizon, 64});
  const auto df = at::softplus(at::linear(h, w[4], w[5]).squeeze(-1)) + 2.0;
  const auto loc = at::linear(h, w[6], w[7]).squeeze(-1);
  const auto scale = at::softplus(at::linear(h, w[8], w[9]).squeeze(-1)).clamp_min(2.220446049250313e-16);
  const auto z = (b.future_target[i] / a - loc) / scale;
  const auto nll = a.log() + scale.log() + 0.5 * df.log() + 0.5 * std::log(std::numbers::pi) + at::lgamma(df / 2) -
                   at::lgamma((df + 1) / 2) + (df + 1) / 2 * at::log1p(z * z / df);
  const auto o = b.future_observed[i];
  return (o * nll).sum() / o.sum().clamp_min(1.0);
}

std::unique_ptr<SimpleFeedForward> make(const Setting& s, std::uint64_t seed) {
  auto model = std::make_unique<SimpleFeedForward>(ModelOptions{s.context, s.horizon}, at::TensorOptions(at::kDouble));
  RandomStream stream(SecretKey::from_seed(seed), "initial weights", 0);
  model->initialise(stream);
  return model;
}

TEST(SimpleFeedForward, AgreesWithALoopOverWindows) {
  std::uint64_t seed = 1;
  for (const auto& s : {Setting{5, 7, 3}, Setting{1, 1, 1}, Setting{3, 30, 12}, Setting{4, 5, 40}}) {
    const auto model = make(s, seed);
    RandomStream stream(SecretKey::from_seed(seed++), "test", 0);
    const auto batch = random_batch(s, stream);
    std::vector<at::Tensor> leaves;
    for (std::size_t i = 0; i < model->parameters().entries().size(); ++i)
      leaves.push_back(model->parameters().value(i).detach().clone().requires_grad_(true));
    const double clip = 0.5;
    const auto losses = model->losses(batch);
    model->backward(1.0);
    const auto norms =
        dp::write_clipped_sum(model->layers(), s.windows, model->parameters(), clip, dp::ClipFactor::exact);
    auto expected = at::zeros_like(model->parameters().gradients());
    for (std::int64_t i = 0; i < s.windows; ++i) {
      const auto loss = oracle_loss(leaves, batch, i, s.horizon);
      EXPECT_NEAR(losses[i].item<double>(), loss.item<double>(), 1e-10);
      std::vector<at::Tensor> flat;
      for (const auto& g : torch::autograd::grad({loss}, leaves)) flat.push_back(g.reshape({-1}));
      const auto gradient = at::cat(flat);
      const double norm = gradient.norm().item<double>();
      EXPECT_NEAR(norms[i].item<double>(), norm, 1e-9 * (1.0 + norm));
      expected += gradient * std::min(1.0, clip / norm);
    }
    EXPECT_TRUE(at::allclose(model->parameters().gradients(), expected, 1e-8, 1e-10));
  }
}

TEST(SimpleFeedForward, WindowsDoNotTouchEachOther) {
  const Setting s{6, 9, 4};
  const auto model = make(s, 3);
  RandomStream stream(SecretKey::from_seed(8), "test", 0);
  auto batch = random_batch(s, stream);
  const auto before = model->losses(batch).clone();
  batch.past_target[2].mul_(1000.0);
  batch.future_target[2].fill_(std::numeric_limits<double>::infinity());
  const auto after = model->losses(batch);
  for (const std::int64_t i : {0, 1, 3, 4, 5}) EXPECT_EQ(before[i].item<double>(), after[i].item<double>());
}

TEST(SimpleFeedForward, AnUnobservedFutureHasNoLossAndNoGradient) {
  const Setting s{2, 6, 3};
  const auto model = make(s, 4);
  RandomStream stream(SecretKey::from_seed(9), "test", 0);
  auto batch = random_batch(s, stream);
  batch.future_observed.zero_();
  EXPECT_EQ(model->losses(batch).abs().sum().item<double>(), 0.0);
  model->backward(1.0);
  const auto norms = dp::write_clipped_sum(model->layers(), 2, model->parameters(), 1.0, dp::ClipFactor::exact);
  EXPECT_EQ(norms.sum().item<double>(), 0.0);
  EXPECT_EQ(model->parameters().gradients().abs().sum().item<double>(), 0.0);
}

TEST(Registry, NamesTheModelsItKnows) {
  EXPECT_THROW(static_cast<void>(make_model("nonsense", {1, 1}, at::TensorOptions(at::kFloat))), std::exception);
  for (const auto& name : model_names()) EXPECT_EQ(make_model(name, {8, 3}, at::TensorOptions(at::kFloat))->name(), name);
}

}  // namespace
}  // namespace tsdp::models
