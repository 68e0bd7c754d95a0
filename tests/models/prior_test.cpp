// Forecasters that begin as a naive forecast: what they forecast before training, in any units, and what their loss and
// gradient are of.
#include "models/prior.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "models/forecaster.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/dp/layer.h"

namespace tsdp::models {
namespace {

constexpr std::int64_t context = 9;
constexpr std::int64_t horizon = 5;
constexpr std::int64_t season = 4;

struct Case {
  std::string model;
  PriorKind kind;

  [[nodiscard]] std::unique_ptr<Forecaster> made(at::ScalarType type = at::kDouble) const {
    ModelOptions options{context, horizon, {}, 2, 0.0, 1};
    if (model == "deepar") options.lags = {1, 2, 4};
    options.prior = {kind, kind == PriorKind::seasonal_naive ? season : 1};
    auto out = make_model(model, options, at::TensorOptions(type));
    RandomStream stream(SecretKey::from_seed(3), "initial weights", 0);
    out->initialise(stream);
    return out;
  }
  [[nodiscard]] std::string text() const { return model + ", " + tsdp::name(kind); }
};

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const auto& name : model_names())
    for (const auto kind : {PriorKind::seasonal_naive, PriorKind::last_value}) out.push_back({name, kind});
  return out;
}

/// Weights that say something.
void disturb(const Forecaster& model) {
  at::manual_seed(4);
  model.parameters().values().add_(at::rand_like(model.parameters().values()) - 0.5, 0.3);
}

WindowBatch batch_of(const Forecaster& model, std::int64_t rows, double factor = 1.0, double shift = 0.0) {
  at::manual_seed(5);
  const auto past = model.past_length();
  const auto double_type = at::TensorOptions(at::kDouble);
  auto seen = at::rand({rows, past}, double_type).gt(0.2).to(at::kDouble);
  auto future_seen = at::rand({rows, horizon}, double_type).gt(0.2).to(at::kDouble);
  seen.select(1, past - 1).fill_(1.0);
  const auto values = at::randn({rows, past}, double_type) * 3.0 + 20.0;
  const auto future = at::randn({rows, horizon}, double_type) * 3.0 + 20.0;
  const auto type = model.parameters().values().scalar_type();
  return {((values * factor + shift) * seen).to(type), seen.to(type),
          ((future * factor + shift) * future_seen).to(type), future_seen.to(type),
          (at::rand({rows, past + horizon, 2}, double_type) - 0.5).to(type)};
}

TEST(Prior, IsForecastBeforeAnyTraining) {
  for (const auto& c : cases()) {
    SCOPED_TRACE(c.text());
    const auto model = c.made();
    const auto batch = batch_of(*model, 6);
    const auto found = model->distribution(batch);
    const auto location = found.affine_scale * found.loc;
    const auto deviation = found.affine_scale * found.scale;
    const auto past = model->past_length();
    EXPECT_LT((found.df - 5.0).abs().max().item<double>(), 1e-9);
    for (std::int64_t i = 0; i < 6; ++i) {
      // By loops, over the model's context.
      std::vector<double> y;
      double sum = 0.0;
      double count = 0.0;
      for (std::int64_t t = past - context; t < past; ++t)
        if (batch.past_observed[i][t].item<double>() > 0.0) sum += batch.past_target[i][t].item<double>(), count += 1.0;
      const double mean = sum / count;
      for (std::int64_t t = 0; t < past; ++t)
        y.push_back(batch.past_observed[i][t].item<double>() > 0.0 ? batch.past_target[i][t].item<double>() : mean);
      for (std::int64_t k = 0; k < horizon; ++k)
        y.push_back(batch.future_observed[i][k].item<double>() > 0.0 ? batch.future_target[i][k].item<double>() : mean);
      double spread = 0.0;
      const bool walks = c.kind == PriorKind::last_value;
      for (auto t = past - context + (walks ? 1 : 0); t < past; ++t)
        spread += std::abs(walks ? y[static_cast<std::size_t>(t)] - y[static_cast<std::size_t>(t - 1)]
                                 : y[static_cast<std::size_t>(t)] - mean);
      spread /= static_cast<double>(walks ? context - 1 : context);
      const auto steps = location.size(1);
      for (std::int64_t k = 0; k < steps; ++k) {
        const bool one_step = model->samples_paths();
        const auto place = one_step ? past - context + 1 + k : past + k;
        const auto from = one_step ? place - (walks ? 1 : season) : walks ? past - 1 : past - season + k % season;
        const double growth = walks && !one_step ? std::sqrt(static_cast<double>(k + 1)) : 1.0;
        EXPECT_NEAR(location[i][k].item<double>(), y[static_cast<std::size_t>(from)], 1e-9) << "step " << k;
        EXPECT_NEAR(deviation[i][k].item<double>(), spread * growth * (walks ? 1.0 : 0.45), 1e-9) << "step " << k;
      }
    }
  }
}

// One pass over each window in float gives what tensor operations give: all lengths round a vector's, missing values,
// strided rows.
TEST(Prior, KernelIsThePlainOperations) {
  at::manual_seed(6);
  for (const auto kind : {PriorKind::seasonal_naive, PriorKind::last_value})
    for (const std::int64_t length : {1, 2, 5, 15, 16, 17, 33, 96, 131})
      for (const std::int64_t windows : {1, 3, 200}) {
        SCOPED_TRACE(cat(tsdp::name(kind), ", length ", length, ", windows ", windows));
        const Prior prior{kind, kind == PriorKind::seasonal_naive ? std::min<std::int64_t>(length, 7) : 1};
        const auto padded = at::randn({windows, length + 3}) * 3.0 + 20.0;
        const auto observed = at::rand({windows, length}).gt(0.2).to(at::kFloat);
        observed.select(0, 0).zero_();
        const auto past = padded.narrow(1, 2, length);
        const auto scale = at::rand({windows, 1}) * 1e4;
        const auto by_kernel = frame_of(prior, past, observed, 9, scale);
        const dp::PlainOperations plain;
        const auto expected = frame_of(prior, past, observed, 9, scale);
        const auto near = [](const at::Tensor& a, const at::Tensor& b) { return at::allclose(a, b, 2e-5, 2e-5); };
        EXPECT_TRUE(near(by_kernel.scale, expected.scale));
        EXPECT_TRUE(near(by_kernel.input, expected.input));
        EXPECT_TRUE(near(by_kernel.naive, expected.naive));
        ASSERT_EQ(by_kernel.growth.defined(), kind == PriorKind::last_value);
        ASSERT_EQ(expected.growth.defined(), by_kernel.growth.defined());
        if (expected.growth.defined()) { EXPECT_TRUE(at::equal(by_kernel.growth, expected.growth)); }
      }
}

// In other units the forecast is the same forecast: level and scale of the data tell the network nothing.
TEST(Prior, ForecastsAreTheSameInAnyUnits) {
  for (const auto& c : cases()) {
    SCOPED_TRACE(c.text());
    const auto model = c.made();
    disturb(*model);
    const auto one = model->distribution(batch_of(*model, 5));
    const auto other = model->distribution(batch_of(*model, 5, 3.0, -7.0));
    EXPECT_TRUE(at::allclose(other.affine_scale * other.loc, 3.0 * one.affine_scale * one.loc - 7.0, 1e-9, 1e-9));
    EXPECT_TRUE(at::allclose(other.affine_scale * other.scale, 3.0 * one.affine_scale * one.scale, 1e-9, 1e-9));
    EXPECT_TRUE(at::allclose(other.df, one.df, 1e-9, 1e-9));
  }
}

// The loss is that of the distribution that is forecast, in units of the data.
TEST(Prior, LossesAreThoseOfTheForecast) {
  for (const auto& c : cases()) {
    SCOPED_TRACE(c.text());
    const auto model = c.made();
    disturb(*model);
    const auto batch = batch_of(*model, 5);
    const auto d = model->distribution(batch);
    const auto past = model->past_length();
    const auto K = d.loc.size(1);
    const auto all = at::cat({batch.past_target, batch.future_target}, 1);
    const auto seen = at::cat({batch.past_observed, batch.future_observed}, 1);
    const auto target = all.narrow(1, past + horizon - K, K);
    auto weights = seen.narrow(1, past + horizon - K, K);
    weights = c.model == "deepar" || c.model == "itransformer" ? weights / static_cast<double>(K)
                                                               : weights / weights.sum(1, true).clamp_min(1.0);
    const auto scale = d.scale * d.affine_scale;
    const auto z = (target - d.loc * d.affine_scale) / scale;
    const auto nll = scale.log() + 0.5 * d.df.log() + 0.5 * std::log(std::numbers::pi) + at::lgamma(d.df / 2) -
                     at::lgamma((d.df + 1) / 2) + (d.df + 1) / 2 * at::log1p(z * z / d.df);
    EXPECT_TRUE(at::allclose(model->losses(batch), (weights * nll).sum(1), 1e-9, 1e-9));
  }
}

TEST(Prior, GradientsAreThoseOfTheLoss) {
  for (const auto& c : cases()) {
    SCOPED_TRACE(c.text());
    const auto model = c.made();
    disturb(*model);
    const auto batch = batch_of(*model, 4);
    const auto& values = model->parameters().values();
    at::manual_seed(6);
    const auto direction = at::randn_like(values);
    static_cast<void>(model->losses(batch));
    model->backward();
    model->parameters().gradients().zero_();
    for (auto* layer : model->layers()) layer->add_gradient({});
    const double slope = model->parameters().gradients().dot(direction).item<double>();
    constexpr double step = 1e-6;
    values.add_(direction, step);
    const double above = model->losses(batch).sum().item<double>();
    values.add_(direction, -2.0 * step);
    const double below = model->losses(batch).sum().item<double>();
    EXPECT_NEAR((above - below) / (2.0 * step), slope, 1e-4 * (1.0 + std::abs(slope)));
  }
}

TEST(Prior, WindowsDoNotTouchEachOther) {
  for (const auto& c : cases()) {
    SCOPED_TRACE(c.text());
    const auto model = c.made();
    disturb(*model);
    const auto batch = batch_of(*model, 6);
    const auto together = model->losses(batch).clone();
    for (std::int64_t i = 0; i < 6; ++i)
      EXPECT_NEAR(model->losses(batch.rows(i, 1))[0].item<double>(), together[i].item<double>(), 1e-12);
    // Nor is a window's forecast moved by what it does not see, or by what comes after it.
    auto other = batch;
    other.past_target = batch.past_target + 1e3 * (1.0 - batch.past_observed);
    if (model->samples_paths()) continue;
    other.future_target = batch.future_target + 1.0;
    EXPECT_TRUE(at::equal(model->distribution(other).loc, model->distribution(batch).loc));
  }
}

// Windows of one value, constant ones and ones without any value have finite losses and gradients.
TEST(Prior, DegenerateWindowsAreFinite) {
  for (const auto& c : cases()) {
    SCOPED_TRACE(c.text());
    const auto model = c.made(at::kFloat);
    disturb(*model);
    for (const double value : {0.0, 5.0, -1e8, 1e-12}) {
      for (const double seen : {0.0, 1.0}) {
        auto batch = batch_of(*model, 2);
        batch.past_observed.fill_(seen);
        batch.past_target.fill_(seen * value);
        batch.future_observed.fill_(1.0);
        batch.future_target.fill_(value);
        EXPECT_TRUE(model->losses(batch).isfinite().all().item<bool>()) << value << ", " << seen;
        model->backward();
        model->parameters().gradients().zero_();
        for (auto* layer : model->layers()) layer->add_gradient({});
        EXPECT_TRUE(model->parameters().gradients().isfinite().all().item<bool>()) << value << ", " << seen;
      }
    }
  }
}

TEST(Prior, ASeasonLongerThanWhatIsSeenIsRefused) {
  for (const auto& name : model_names()) {
    ModelOptions options{context, horizon, {}, 2, 0.0, 1};
    if (name == "deepar") options.lags = {1, 2, 4};
    options.prior = {PriorKind::seasonal_naive, name == "deepar" ? 5 : context + 1};
    EXPECT_THROW(static_cast<void>(make_model(name, options, at::TensorOptions(at::kFloat))), UsageError) << name;
  }
}

}  // namespace
}  // namespace tsdp::models
