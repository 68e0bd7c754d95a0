// The parity test of the worked example of models/README.md: a loop over windows with autograd, and the export.
#include <gtest/gtest.h>

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <numbers>
#include <string>

#include "dp/private_step.h"
#include "examples/forecaster/autoregression.h"
#include "tsdp/base/error.h"
#include "tsdp/export/torchscript.h"
#include "tsdp/settings/config.h"

namespace tsdp::models {
namespace {

/// Loss of one window, as the formulas read; w: map and head, weight and bias each.
at::Tensor oracle_loss(const std::vector<at::Tensor>& w, const WindowBatch& b, std::int64_t i, std::int64_t horizon) {
  const auto past = b.past_target[i];
  const auto a = past.abs().sum() / b.past_observed[i].sum();
  const auto h = at::linear(past / a, w[0], w[1]).view({horizon, 4});
  const auto raw = [&](std::size_t k) { return at::linear(h, w[2 + 2 * k], w[3 + 2 * k]).squeeze(-1); };
  const auto df = at::softplus(raw(0)) + 2.0;
  const auto scale = at::softplus(raw(2));
  const auto z = (b.future_target[i] / a - raw(1)) / scale;
  return (a.log() + scale.log() + 0.5 * df.log() + 0.5 * std::log(std::numbers::pi) + at::lgamma(df / 2) -
          at::lgamma((df + 1) / 2) + (df + 1) / 2 * at::log1p(z * z / df))
      .mean();
}

TEST(ExampleForecaster, AgreesWithALoopOverWindowsAndWithItsExport) {
  const std::int64_t windows = 5;
  const std::int64_t horizon = 3;
  Autoregression model({7, horizon}, at::TensorOptions(at::kDouble));
  RandomStream stream(SecretKey::from_seed(1), "initial weights", 0);
  model.initialise(stream);
  const auto ones = [&](std::int64_t columns) { return at::ones({windows, columns}, at::kDouble); };
  const WindowBatch batch{
      at::rand({windows, 7}, at::kDouble) + 1.0, ones(7), at::rand({windows, horizon}, at::kDouble), ones(horizon), {}};

  const auto losses = model.losses(batch);
  model.backward();
  const double clip = 0.3;
  const auto norms = dp::add_clipped_sum(model.layers(), dp::Records::each_window(windows),
                                         {clip, dp::ClipFactor::exact, false, windows}, at::kDouble);
  std::vector<at::Tensor> leaves;
  for (std::size_t i = 0; i < model.parameters().entries().size(); ++i)
    leaves.push_back(model.parameters().value(i).detach().clone().requires_grad_(true));
  auto expected = at::zeros_like(model.parameters().gradients());
  for (std::int64_t i = 0; i < windows; ++i) {
    const auto loss = oracle_loss(leaves, batch, i, horizon);
    EXPECT_NEAR(losses[i].item<double>(), loss.item<double>(), 1e-10);
    std::vector<at::Tensor> flat;
    for (const auto& g : torch::autograd::grad({loss}, leaves)) flat.push_back(g.reshape({-1}));
    const auto gradient = at::cat(flat);
    const double norm = gradient.norm().item<double>();
    EXPECT_NEAR(norms[i].item<double>(), norm, 1e-9 * (1.0 + norm));
    expected += gradient * std::min(1.0, clip / norm);
  }
  EXPECT_TRUE(at::allclose(model.parameters().gradients(), expected, 1e-8, 1e-10));

  auto module = exporting::make_module(model);
  const auto forecast = model.distribution(batch);
  const auto outputs = module.forward({batch.past_target, batch.past_observed}).toTuple();
  EXPECT_TRUE(at::allclose(outputs->elements()[1].toTensor(), forecast.affine_scale * forecast.loc, 1e-10, 1e-12));
}

// A model from outside of the tree: linked in, it is one that configurations name.
TEST(ExampleForecaster, IsKnownWhereItIsLinked) {
  ASSERT_NE(find_model("autoregression"), nullptr);
  EXPECT_EQ(make_model("autoregression", {7, 3}, at::TensorOptions(at::kFloat))->name(), "autoregression");
  const auto file = std::filesystem::temp_directory_path() / ("tsdp_example_" + std::to_string(::getpid()) + ".yaml");
  std::ofstream(file)
      << ("dataset: {path: x.csv, format: csv, frequency: 1h, prediction_length: 3, season_length: 24}\n"
          "model: {name: autoregression, context_length: 7}\nsampling: {batch_size: 2}\n");
  EXPECT_EQ(read_config(file).model.name, "autoregression");
  EXPECT_THROW(static_cast<void>(read_config(file, {"model.lags=[1]"})), UsageError);
  std::filesystem::remove(file);
  EXPECT_THROW(register_model({"autoregression"}, factory_of<Autoregression>()), Error);
}

}  // namespace
}  // namespace tsdp::models
