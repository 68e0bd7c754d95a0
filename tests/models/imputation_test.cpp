// Values that are not observed, of models without a prior: with ModelOptions::imputes the mean of the window's observed
// context takes their place, and nothing else changes.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "models/forecaster.h"
#include "tsdp/base/text.h"
#include "tsdp/dp/layer.h"

namespace tsdp::models {
namespace {

constexpr std::int64_t context = 9;
constexpr std::int64_t horizon = 5;

std::unique_ptr<Forecaster> made(const std::string& name, bool imputes) {
  ModelOptions options{context, horizon, {}, 2, 0.0, 1};
  if (name == "deepar") options.lags = {1, 2, 4};
  options.imputes = imputes;
  auto out = make_model(name, options, at::TensorOptions(at::kDouble));
  RandomStream stream(SecretKey::from_seed(3), "initial weights", 0);
  out->initialise(stream);
  return out;
}

/// Values around 20; the first window is complete, the last has nothing before its forecast.
WindowBatch batch_of(const Forecaster& model, std::int64_t rows) {
  at::manual_seed(5);
  const auto past = model.past_length();
  const auto type = at::TensorOptions(at::kDouble);
  const auto seen = at::rand({rows, past}, type).gt(0.3).to(at::kDouble);
  const auto future_seen = at::rand({rows, horizon}, type).gt(0.3).to(at::kDouble);
  seen[0].fill_(1.0);
  future_seen[0].fill_(1.0);
  seen[rows - 1].zero_();
  return {(at::randn({rows, past}, type) * 3.0 + 20.0) * seen, seen,
          (at::randn({rows, horizon}, type) * 3.0 + 20.0) * future_seen, future_seen,
          at::rand({rows, past + horizon, 2}, type) - 0.5};
}

/// What is missing, by loops, as the mean of what is not.
WindowBatch filled(const WindowBatch& batch) {
  auto out = batch;
  out.past_target = batch.past_target.clone();
  out.future_target = batch.future_target.clone();
  const auto past = batch.past_target.size(1);
  for (std::int64_t i = 0; i < batch.size(); ++i) {
    double sum = 0.0;
    double count = 0.0;
    for (auto t = past - context; t < past; ++t)
      if (batch.past_observed[i][t].item<double>() > 0.0) sum += batch.past_target[i][t].item<double>(), count += 1.0;
    const double mean = count > 0.0 ? sum / count : 0.0;
    for (std::int64_t t = 0; t < past; ++t)
      if (batch.past_observed[i][t].item<double>() == 0.0) out.past_target[i][t] = mean;
    for (std::int64_t k = 0; k < horizon; ++k)
      if (batch.future_observed[i][k].item<double>() == 0.0) out.future_target[i][k] = mean;
  }
  return out;
}

at::Tensor squared_norms(Forecaster& model, const WindowBatch& batch) {
  (void)model.losses(batch);
  model.backward();
  std::vector<at::Tensor> parts;
  for (auto* layer : model.layers()) {
    auto squares = at::zeros({batch.size()}, at::kDouble);
    layer->add_squared_norms(squares);
    parts.push_back(squares);
  }
  return at::stack(parts);
}

TEST(Imputation, ReadsTheMeanOfTheContext) {
  for (const auto& name : model_names()) {
    SCOPED_TRACE(name);
    const auto model = made(name, true);
    const auto plain = made(name, false);
    const auto batch = batch_of(*model, 6);
    const auto expected = filled(batch);
    EXPECT_TRUE(at::allclose(model->losses(batch), plain->losses(expected), 1e-12, 1e-12));
    EXPECT_TRUE(at::allclose(model->distribution(batch).loc, plain->distribution(expected).loc, 1e-12, 1e-12));
    EXPECT_TRUE(at::allclose(squared_norms(*model, batch), squared_norms(*plain, expected), 1e-10, 1e-12));
    // Without it missing values are zeros, as in GluonTS, which is another forecast.
    EXPECT_GT((plain->distribution(batch).loc - plain->distribution(expected).loc).abs().max().item<double>(), 1e-3);
  }
}

TEST(Imputation, ChangesNoWindowThatIsComplete) {
  for (const auto& name : model_names()) {
    SCOPED_TRACE(name);
    const auto batch = batch_of(*made(name, true), 6);
    const auto with = made(name, true)->losses(batch);
    EXPECT_TRUE(at::equal(with[0], made(name, false)->losses(batch)[0]));
    // Each window is read by itself.
    for (std::int64_t i = 0; i < 6; ++i)
      EXPECT_NEAR(made(name, true)->losses(batch.rows(i, 1))[0].item<double>(), with[i].item<double>(), 1e-10)
          << "window " << i;
  }
}

/// A window of one of the kinds of gaps, in its past and in its future: none, some, all.
enum class Gaps {
  none,
  some,
  all
};
at::Tensor observed(Gaps gaps, std::int64_t count, RandomStream& stream) {
  auto out = at::ones({count}, at::kDouble);
  for (std::int64_t i = 0; i < count; ++i)
    if (gaps == Gaps::all || (gaps == Gaps::some && stream.below(3) == 0)) out[i] = 0.0;
  return out;
}

// Nothing couples two windows of a batch, whatever is missing in which: loss and gradient of a window among others of
// every kind are what they are alone.
TEST(Imputation, AWindowIsReadByItselfWhateverIsMissingInOthers) {
  RandomStream stream(SecretKey::from_seed(21), "test", 0);
  constexpr std::int64_t steps_ahead = 3;
  constexpr Gaps kinds[] = {Gaps::none, Gaps::some, Gaps::all};
  for (const auto& name : model_names())
    for (const bool imputes : {false, true})
      for (const auto prior : {PriorKind::none, PriorKind::seasonal_naive, PriorKind::last_value}) {
        ModelOptions options{context, steps_ahead, {}, 2, 0.0, 1};
        if (name == "deepar") options.lags = {1, 2, 4};
        options.imputes = imputes;
        options.prior = {prior, prior == PriorKind::seasonal_naive ? 3 : 1};
        const auto model = make_model(name, options, at::TensorOptions(at::kDouble));
        RandomStream weights(SecretKey::from_seed(3), "initial weights", 0);
        model->initialise(weights);
        const auto past = model->past_length();
        const auto window = [&](Gaps in_past, const at::Tensor& in_future) {
          const auto seen = observed(in_past, past, stream).unsqueeze(0);
          const auto future_seen = in_future.unsqueeze(0);
          const auto values = [&](std::int64_t count) {
            auto out = at::empty({1, count}, at::kDouble);
            for (std::int64_t i = 0; i < count; ++i) out[0][i] = 20.0 + 6.0 * (stream.uniform() - 0.5);
            return out;
          };
          return WindowBatch{values(past) * seen, seen, values(steps_ahead) * future_seen, future_seen,
                             at::zeros({1, past + steps_ahead, 2}, at::kDouble)};
        };
        // Every pattern of gaps in the future behind every kind of past, beside windows of every kind.
        std::vector<WindowBatch> windows, neighbours;
        for (const auto in_past : kinds) {
          for (std::int64_t pattern = 0; pattern < 1 << steps_ahead; ++pattern) {
            auto in_future = at::ones({steps_ahead}, at::kDouble);
            for (std::int64_t i = 0; i < steps_ahead; ++i)
              if ((pattern >> i & 1) != 0) in_future[i] = 0.0;
            windows.push_back(window(in_past, in_future));
          }
          neighbours.push_back(window(in_past, observed(in_past, steps_ahead, stream)));
        }
        for (std::size_t i = 0; i < windows.size(); ++i) {
          const auto alone = model->losses(windows[i])[0].item<double>();
          const auto norms = squared_norms(*model, windows[i]).select(1, 0).clone();
          auto together = windows[i];
          for (const auto& b : neighbours)
            together = {at::cat({together.past_target, b.past_target}),
                        at::cat({together.past_observed, b.past_observed}),
                        at::cat({together.future_target, b.future_target}),
                        at::cat({together.future_observed, b.future_observed}),
                        at::cat({together.time_features, b.time_features})};
          SCOPED_TRACE(cat(name, imputes ? ", imputed" : "", ", prior ", static_cast<int>(prior), ", window ", i));
          EXPECT_NEAR(model->losses(together)[0].item<double>(), alone, 1e-10 * (1.0 + std::abs(alone)));
          EXPECT_TRUE(at::allclose(squared_norms(*model, together).select(1, 0), norms, 1e-9, 1e-12));
        }
      }
}

// A constant series with gaps is forecast as one without.
TEST(Imputation, GapsDoNotPullForecastsToZero) {
  for (const auto& name : model_names()) {
    SCOPED_TRACE(name);
    const auto model = made(name, true);
    auto batch = batch_of(*model, 2);
    batch.past_target.fill_(20.0);
    batch.past_observed.fill_(1.0);
    batch.future_target.fill_(20.0);
    batch.future_observed.fill_(1.0);
    batch.time_features[1].copy_(batch.time_features[0]);
    batch.past_target[1].slice(0, 2, 6).zero_();
    batch.past_observed[1].slice(0, 2, 6).zero_();
    const auto found = model->distribution(batch);
    const auto forecast = found.affine_scale * found.loc;
    EXPECT_TRUE(at::allclose(forecast[0], forecast[1], 1e-12, 1e-12));
    const auto plain = made(name, false)->distribution(batch);
    EXPECT_FALSE(at::allclose((plain.affine_scale * plain.loc)[0], (plain.affine_scale * plain.loc)[1], 1e-3, 1e-3));
  }
}

}  // namespace
}  // namespace tsdp::models
