// Training how forecasts are mixed: its loss is that of the exported mixture, and its gradient the loss's derivative.
#include "models/mixture_weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "models/script_module.h"
#include "tsdp/base/error.h"

namespace tsdp::models {
namespace {

constexpr std::int64_t horizon = 5;

ModelOptions options() {
  ModelOptions out;
  out.context_length = 8;
  out.prediction_length = horizon;
  out.prior = {PriorKind::last_value, 4};
  out.mixture.members = {
      {Candidate::seasonal_quantiles, 4, 3}, {Candidate::moved_quantiles, 4, 2}, {Candidate::last_value_bands, 1, 10}};
  out.mixture.windows = 3;
  out.mixture.stride = horizon;
  out.mixture.skips_outliers = out.mixture.widens_tails = true;
  return out;
}

std::unique_ptr<MixtureWeights> mixture(at::ScalarType type, const ModelOptions& of = options()) {
  auto out = std::make_unique<MixtureWeights>(make_model("dlinear", of, at::TensorOptions(type)));
  RandomStream stream(SecretKey::from_seed(3), "initial weights", 0);
  out->initialise(stream);
  return out;
}

/// Waves of different sizes with noise; some values missing, and the first series begins late.
WindowBatch windows(const Forecaster& model, std::int64_t rows, at::ScalarType type) {
  at::manual_seed(5);
  const auto past = model.past_length();
  const auto steps = at::arange(past + horizon, type);
  const auto size = at::arange(1, rows + 1, type).unsqueeze(1);
  const auto values =
      size * ((steps * 1.5707963).sin() + 0.3 * at::randn({rows, past + horizon}, type) + 4.0 + 0.02 * steps);
  auto observed = at::rand({rows, past + horizon}, type).gt(0.1).to(type);
  observed[0].narrow(0, 0, past - 14).zero_();
  observed[1].narrow(0, 0, past - 3).zero_();  // no window counts
  return {(values * observed).narrow(1, 0, past),
          observed.narrow(1, 0, past),
          (values * observed).narrow(1, past, horizon),
          observed.narrow(1, past, horizon),
          {}};
}

void set_random(MixtureWeights& model, std::uint64_t seed) {
  at::manual_seed(seed);
  model.parameters().values().copy_(at::randn({model.parameters().count()}, at::kDouble) * 0.5);
}

TEST(MixtureWeights, GradientIsTheDerivativeOfTheLoss) {
  const auto model = mixture(at::kDouble);
  const auto batch = windows(*model, 6, at::kDouble);
  set_random(*model, 1);
  const auto values = model->parameters().values();
  for (std::int64_t row = 0; row < batch.size(); ++row) {
    const auto one = batch.rows(row, 1);
    model->parameters().gradients().zero_();
    const auto loss = model->losses(one).item<double>();
    EXPECT_EQ(loss > 0.0, row != 1) << "row " << row;
    model->backward();
    for (auto* layer : model->layers()) layer->add_gradient({});
    const auto gradient = model->parameters().gradients().clone();
    for (std::int64_t i = 0; i < values.numel(); ++i) {
      const double before = values[i].item<double>();
      const double step = 1e-6;
      values[i] = before + step;
      const double above = model->losses(one).item<double>();
      values[i] = before - step;
      const double below = model->losses(one).item<double>();
      values[i] = before;
      EXPECT_NEAR(gradient[i].item<double>(), (above - below) / (2.0 * step), 1e-8) << "row " << row << ", " << i;
    }
  }
}

// Up to its scale, which the weights do not change.
TEST(MixtureWeights, LossIsThatOfTheExportedForecasts) {
  const auto model = mixture(at::kDouble);
  const auto batch = windows(*model, 6, at::kDouble);
  const auto levels = at::arange(1, 10, at::kDouble).div(10.0);
  const auto loss_of_forecasts = [&] {
    auto module = script_module(model->network());
    const auto found =
        module.forward({batch.past_target, batch.past_observed, levels}).toTupleRef().elements()[0].toTensor();
    const auto error = batch.future_target.unsqueeze(1) - found;
    const auto level = levels.view({1, 9, 1});
    const auto loss = at::maximum(level * error, (level - 1.0) * error) * batch.future_observed.unsqueeze(1);
    return loss.sum({1, 2}) / batch.future_observed.sum(1);
  };
  const auto before = model->losses(batch) / loss_of_forecasts();
  for (const auto seed : {1, 2, 3}) {
    set_random(*model, static_cast<std::uint64_t>(seed));
    const auto after = model->losses(batch) / loss_of_forecasts();
    for (std::int64_t row = 0; row < batch.size(); ++row) {
      if (row == 1) continue;
      EXPECT_GT(before[row].item<double>(), 0.0);
      EXPECT_NEAR(after[row].item<double>() / before[row].item<double>(), 1.0, 1e-9) << "row " << row;
    }
  }
}

// By a quarter of its distance, as far as the best candidate errs in the mean.
TEST(MixtureWeights, NoCandidateMovesAForecastFar) {
  const auto model = mixture(at::kDouble);
  auto batch = windows(*model, 6, at::kDouble);
  const std::vector<double> level{0.2, 0.5};
  const auto forecast = [&] {
    return script_module(model->network())
        .forward({batch.past_target, batch.past_observed, at::tensor(level, at::kDouble)})
        .toTupleRef()
        .elements()[0]
        .toTensor();
  };
  const auto before = forecast();
  const auto found =
      script_module(model->network())
          .run_method("to_train_on", batch.past_target, batch.past_observed, at::zeros({6, model->past_length(), 0}))
          .toTupleRef()
          .elements()
          .vec();
  const auto least = found[4].toTensor(), medians = found[5].toTensor().select(2, 4);
  std::int64_t cut = 0;
  for (std::int64_t k = 0; k < medians.size(1); ++k) {
    model->parameters().values().zero_();
    model->parameters().value(2)[k] = 1.0;
    const auto moved = forecast() - before;
    const auto quarter = 0.25 * (medians.select(1, k) - before.select(1, 1));
    const auto expected = at::minimum(at::maximum(quarter, -least), least);
    cut += quarter.abs().gt(least).sum().item<std::int64_t>();
    for (const std::int64_t i : {0, 1})
      EXPECT_LT((moved.select(1, i) - expected).abs().max().item<double>(), 1e-9) << "candidate " << k;
  }
  EXPECT_GT(cut, 5);
}

TEST(MixtureWeights, NoWindowDependsOnAnother) {
  const auto model = mixture(at::kFloat);
  const auto batch = windows(*model, 45, at::kFloat);  // more past windows than are worked on at a time
  set_random(*model, 4);
  const auto together = model->losses(batch).clone();
  auto others = batch;
  others.past_target = batch.past_target.clone();
  others.past_target.narrow(0, 0, 3).mul_(1000.0);
  const auto beside_others = model->losses(others).clone();
  // Others that begin later: fewer windows count.
  others.past_observed = batch.past_observed.clone();
  others.past_observed.narrow(0, 0, 3).narrow(1, 0, model->past_length() - 4).zero_();
  others.past_target = batch.past_target * others.past_observed;
  const auto beside_late_ones = model->losses(others);
  for (std::int64_t row = 3; row < batch.size(); ++row) {
    EXPECT_EQ(beside_others[row].item<float>(), together[row].item<float>());
    EXPECT_EQ(beside_late_ones[row].item<float>(), together[row].item<float>());
  }
  for (std::int64_t row = 3; row < 8; ++row)
    EXPECT_NEAR(model->losses(batch.rows(row, 1)).item<float>() / together[row].item<float>(), 1.0, 1e-5);
}

TEST(MixtureWeights, BeginsWithTheMixtureAsItIs) {
  const auto model = mixture(at::kFloat);
  const auto batch = windows(*model, 5, at::kFloat);
  auto plain = make_model("dlinear", options(), at::TensorOptions(at::kFloat));
  plain->parameters().values().copy_(model->network().parameters().values());
  const auto forecast = [&](const Forecaster& of) {
    return script_module(of).forward({batch.past_target, batch.past_observed}).toTupleRef().elements()[0].toTensor();
  };
  EXPECT_TRUE(forecast(*plain).equal(forecast(model->network())));
  set_random(*model, 1);
  EXPECT_FALSE(forecast(*plain).allclose(forecast(model->network())));
}

// Nothing can be said of what comes after a past of zeros.
TEST(MixtureWeights, APastOfZerosCountsForNothing) {
  const auto model = mixture(at::kFloat);
  auto batch = windows(*model, 3, at::kFloat);
  batch.past_target.zero_();
  EXPECT_EQ(model->losses(batch).abs().max().item<float>(), 0.0F);
  model->parameters().gradients().zero_();
  for (auto* layer : model->layers()) layer->add_gradient({});
  EXPECT_EQ(model->parameters().gradients().abs().max().item<float>(), 0.0F);
}

TEST(MixtureWeights, ReadsAllThatTheMixtureReads) {
  const auto model = mixture(at::kFloat);
  EXPECT_EQ(model->past_length(), options().mixture.past_length(8, horizon));
  EXPECT_GT(model->past_length(), model->network().past_length());
  EXPECT_EQ(model->parameters().trained_count(), 3 * 4 + 1);
}

TEST(MixtureWeights, NeedsCandidatesOfItsOwn) {
  auto of = options();
  of.mixture = {};
  EXPECT_THROW(mixture(at::kFloat, of), UsageError);
  of = options();
  of.mixture.external = {"chronos"};
  EXPECT_THROW(mixture(at::kFloat, of), UsageError);
}

}  // namespace
}  // namespace tsdp::models
