#include "tsdp/export/torchscript.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "training/model_setup.h"
#include "tsdp/base/error.h"
#include "tsdp/random/random.h"

namespace tsdp::exporting {
namespace {

std::unique_ptr<models::Forecaster> make(std::int64_t context, std::int64_t horizon,
                                         const std::string& name = "simple_ff", at::ScalarType type = at::kFloat,
                                         PriorKind prior = PriorKind::none, bool imputes = false) {
  models::ModelOptions options{context, horizon, {}, 3, 0.0};
  options.imputes = imputes;
  if (name == "deepar") options.lags = {1, 2, 4};
  options.prior = {prior, prior == PriorKind::seasonal_naive ? 3 : 1};
  auto model = models::make_model(name, options, at::TensorOptions(type));
  RandomStream stream(SecretKey::from_seed(5), "initial weights", 0);
  model->initialise(stream);
  // (A prior's last layers begin as 0.)
  if (prior != PriorKind::none)
    model->parameters().values().add_(at::rand_like(model->parameters().values()) - 0.5, 0.2);
  return model;
}

struct Variant {
  std::string name;
  PriorKind prior;
  bool imputes;

  [[nodiscard]] std::string text() const {
    return name + ", prior " + tsdp::name(prior) + (imputes ? ", missing values imputed" : "");
  }
  [[nodiscard]] std::unique_ptr<models::Forecaster> made(std::int64_t context, std::int64_t horizon,
                                                         at::ScalarType type = at::kFloat) const {
    return make(context, horizon, name, type, prior, imputes);
  }
};

std::vector<Variant> variants() {
  std::vector<Variant> out;
  for (const auto& name : models::model_names()) {
    for (const auto prior : {PriorKind::none, PriorKind::seasonal_naive, PriorKind::last_value})
      out.push_back({name, prior, false});
    out.push_back({name, PriorKind::none, true});
  }
  return out;
}

TEST(StudentTQuantile, AgreesWithBoost) {
  const auto model = make(2, 1);
  auto module = make_module(*model);
  const std::vector<double> levels = {1e-6, 1e-3, 0.025, 0.1, 0.3, 0.4999, 0.5, 0.6, 0.9, 0.99, 0.999999};
  const std::vector<double> freedoms = {2.0000000000001, 2.3, 3, 4, 5.5, 10, 42, 300, 1e4, 1e6};
  const auto df = at::tensor(freedoms, at::kDouble).view({1, -1});
  const auto found =
      module.get_method("student_t_quantiles")({df, at::tensor(levels, at::kDouble)}).toTensor().squeeze(0);
  for (std::size_t i = 0; i < levels.size(); ++i)
    for (std::size_t j = 0; j < freedoms.size(); ++j) {
      const double expected = boost::math::quantile(boost::math::students_t(freedoms[j]), levels[i]);
      EXPECT_NEAR(found[static_cast<std::int64_t>(i)][static_cast<std::int64_t>(j)].item<double>(), expected,
                  1e-9 * std::abs(expected))
          << "level " << levels[i] << ", df " << freedoms[j];
    }
}

// A batch with missing values and a stretch of padding.
models::WindowBatch windows(const models::Forecaster& model, std::int64_t batch) {
  const auto past = model.past_length();
  auto observed = at::rand({batch, past}).gt(0.2).to(at::kFloat);
  observed[0].narrow(0, 0, past / 2).zero_();
  const auto horizon = model.options().prediction_length;
  models::WindowBatch out{at::rand({batch, past}) * 50.0 * observed,
                          observed,
                          at::zeros({batch, horizon}),
                          at::zeros({batch, horizon}),
                          {}};
  if (model.reads_time_features())
    out.time_features = at::rand({batch, past + horizon, model.options().time_features}) - 0.5;
  return out;
}

at::IValue features_of(const models::WindowBatch& batch) {
  return batch.time_features.defined() ? at::IValue(batch.time_features) : at::IValue();
}

// No quantile, mean or sample leaves the bounds, also where these are no numbers of single precision; what lies within
// is left as it is (a mean of samples is that of the cut ones).
TEST(Module, ForecastsStayWithinTheBounds) {
  constexpr double lower = 10.1;
  constexpr double upper = 12.3;
  for (const auto& name : models::model_names())
    for (const bool sampled : {false, true}) {
      SCOPED_TRACE(name);
      const auto unbounded = make(9, 4, name);
      auto options = unbounded->options();
      options.lower_bound = lower;
      options.upper_bound = upper;
      const auto model = models::make_model(name, options, at::TensorOptions(at::kFloat));
      model->parameters().values().copy_(unbounded->parameters().values());
      const auto batch = windows(*model, 3);
      const std::vector<at::IValue> inputs = {batch.past_target, batch.past_observed,
                                              at::tensor({0.01, 0.5, 0.99}, at::kDouble), features_of(batch),
                                              at::rand({3, 20, 4, 2})};
      auto cut_module = make_module(*model, sampled);
      auto free_module = make_module(*unbounded, sampled);
      const auto cut = cut_module.forward(inputs).toTuple();
      const auto free = free_module.forward(inputs).toTuple();
      for (std::size_t i = 0; i < 3; ++i) {
        const auto found = cut->elements()[i].toTensor().to(at::kDouble);
        EXPECT_GE(found.min().item<double>(), lower) << i;
        EXPECT_LE(found.max().item<double>(), upper) << i;
        const auto before = free->elements()[i].toTensor().to(at::kDouble);
        EXPECT_TRUE(before.lt(lower).logical_or(before.gt(upper)).any().item<bool>()) << i << ": nothing to cut";
        if (i == 1) continue;
        const auto inside = before.ge(lower).logical_and(before.le(upper));
        EXPECT_TRUE(at::equal(found.masked_select(inside), before.masked_select(inside))) << i;
      }
    }
}

TEST(Module, GivesTheModelsForecastAtAnyBatchSize) {
  for (const auto& variant : variants()) {
    SCOPED_TRACE(variant.text());
    const auto model = variant.made(9, 4);
    if (model->samples_paths()) continue;
    auto module = make_module(*model);
    for (const std::int64_t rows : {1, 2, 7}) {
      const auto batch = windows(*model, rows);
      const auto expected = model->distribution(batch);
      const auto found =
          module.forward({batch.past_target, batch.past_observed, at::tensor({0.5, 0.9}, at::kDouble)}).toTuple();
      // The median of a symmetric distribution is its mean.
      const auto mean = expected.affine_scale * expected.loc;
      EXPECT_TRUE(at::allclose(found->elements()[1].toTensor(), mean, 1e-5, 1e-4));
      EXPECT_TRUE(at::allclose(found->elements()[0].toTensor().select(1, 0), mean, 1e-5, 1e-4));
      EXPECT_EQ(found->elements()[0].toTensor().sizes(), (at::IntArrayRef{rows, 2, 4}));
      EXPECT_TRUE((found->elements()[0].toTensor().select(1, 1) > mean).all().item<bool>());
      EXPECT_EQ(found->elements()[2].toTensor().sizes(), (at::IntArrayRef{rows, 100, 4}));
    }
  }
}

// Sample paths from injected draws: each value follows from the training program's distribution given the values
// before.
TEST(Module, SamplePathsFollowTheirDraws) {
  for (const auto& variant : variants()) {
    SCOPED_TRACE(variant.text());
    const auto model = variant.made(6, 5);
    auto module = make_module(*model, /*sampled_forecasts=*/true);
    for (const std::int64_t rows : {1, 3}) {
      const std::int64_t paths = 4;
      const auto batch = windows(*model, rows);
      const auto draws = 1.0 - at::rand({rows, paths, 5, 2});
      const auto found = module
                             .forward({batch.past_target, batch.past_observed, at::tensor({0.0, 0.5, 1.0}, at::kDouble),
                                       features_of(batch), draws})
                             .toTuple();
      const auto samples = found->elements()[2].toTensor();
      ASSERT_EQ(samples.sizes(), (at::IntArrayRef{rows, paths, 5}));
      const auto repeated = [&](const at::Tensor& t) { return t.defined() ? t.repeat_interleave(paths, 0) : t; };
      const auto future = samples.reshape({rows * paths, 5});
      const auto forced = model->distribution({repeated(batch.past_target), repeated(batch.past_observed), future,
                                               at::ones_like(future), repeated(batch.time_features)});
      const auto last = [](const at::Tensor& t) { return t.narrow(1, t.size(1) - 5, 5).to(at::kDouble); };
      const auto df = last(forced.df);
      const auto u = draws.to(at::kDouble).reshape({rows * paths, 5, 2});
      const auto t = (df * at::expm1(-2.0 / df * u.select(2, 0).log())).sqrt() * (2.0 * M_PI * u.select(2, 1)).cos();
      const auto expected = forced.affine_scale.to(at::kDouble) * (last(forced.loc) + last(forced.scale) * t);
      EXPECT_TRUE(at::allclose(future.to(at::kDouble), expected, 2e-5, 1e-3));
      // Quantiles are order statistics, 0-based round((S − 1) q) with halves to even: 0, 2, 3 of four; means are
      // theirs.
      const auto sorted = std::get<0>(samples.sort(1));
      EXPECT_TRUE(at::equal(found->elements()[0].toTensor(), sorted.index_select(1, at::tensor({0, 2, 3}))));
      EXPECT_TRUE(at::allclose(found->elements()[1].toTensor(), samples.mean(1)));
    }
  }
}

// Bailey's polar method against the distribution function: 200,000 draws, each decile within 5.3 deviations (1e-7).
TEST(Module, DrawsAreStudentT) {
  auto module = make_module(*make(2, 1));
  const std::int64_t count = 200'000;
  RandomStream stream(SecretKey::from_seed(21), "test", 0);
  auto draws = at::empty({count, 2}, at::kDouble);
  for (std::int64_t i = 0; i < 2 * count; ++i) draws.data_ptr<double>()[i] = 1.0 - stream.uniform();
  for (const double df : {2.1, 4.0, 300.0}) {
    const auto t = module.get_method("student_t_draw")({at::full({count}, df, at::kDouble), draws}).toTensor();
    for (int i = 1; i < 10; ++i) {
      const double level = 0.1 * i;
      const double quantile = boost::math::quantile(boost::math::students_t(df), level);
      const double share = t.lt(quantile).to(at::kDouble).mean().item<double>();
      EXPECT_NEAR(share, level, 5.3 * std::sqrt(level * (1 - level) / count)) << "df " << df;
    }
  }
}

TEST(Module, SaysWhatIsWrongWithTimeFeatures) {
  const auto model = make(4, 3, "deepar");
  auto module = make_module(*model);
  const auto past = at::ones({2, 4});
  const auto level = at::tensor({0.5}, at::kDouble);
  EXPECT_ANY_THROW(module.forward({past, past, level}));
  EXPECT_ANY_THROW(module.forward({past, past, level, at::zeros({2, 4, 3})}));
  EXPECT_ANY_THROW(module.forward({past, past, level, at::zeros({2, 7, 2})}));
  EXPECT_NO_THROW(module.forward({past, past, level, at::zeros({2, 7, 3})}));
}

TEST(Module, CutsPadsAndMasksItsPast) {
  const auto model = make(6, 3);
  auto module = make_module(*model);
  const auto level = at::tensor({0.5}, at::kDouble);
  const auto mean = [&](const at::Tensor& past, const at::Tensor& observed) {
    return module.forward({past, observed, level}).toTuple()->elements()[1].toTensor().clone();
  };
  const auto past = at::tensor({1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F}).view({1, 6});
  const auto ones = at::ones({1, 6});
  const auto longer = at::cat({at::full({1, 4}, 99.0F), past}, 1);
  EXPECT_TRUE(at::equal(mean(longer, at::ones({1, 10})), mean(past, ones)));
  const auto padded = at::cat({at::zeros({1, 4}), past.narrow(1, 4, 2)}, 1);
  EXPECT_TRUE(at::equal(mean(past.narrow(1, 4, 2), ones.narrow(1, 4, 2)), mean(padded, padded.gt(0).to(at::kFloat))));
  auto with_gap = past.clone();
  with_gap[0][2] = std::numeric_limits<float>::quiet_NaN();
  auto zero_there = past.clone();
  zero_there[0][2] = 0.0F;
  EXPECT_TRUE(at::equal(mean(with_gap, ones), mean(zero_there, zero_there.gt(0).to(at::kFloat))));
}

// numpy has double precision, counts are whole numbers, and what was observed is true or false.
TEST(Module, TakesNumbersOfAnyKind) {
  for (const auto& variant : variants()) {
    SCOPED_TRACE(variant.text());
    const auto model = variant.made(6, 3);
    auto module = make_module(*model);
    const auto batch = windows(*model, 2);
    const auto past = batch.past_target.round();
    const auto ones = at::ones_like(past);
    const auto draws = 1.0 - at::rand({2, 5, 3, 2});
    const auto outputs = [&](at::ScalarType kind, at::ScalarType observed) {
      return module
          .forward({past.to(kind), ones.to(observed), at::tensor({0.1, 0.5}, at::kDouble), features_of(batch), draws,
                    std::int64_t{5}})
          .toTuple()
          ->elements()
          .vec();
    };
    const auto expected = outputs(at::kFloat, at::kFloat);
    for (const auto kind : {at::kDouble, at::kLong, at::kInt, at::kHalf})
      for (const auto observed : {kind, at::kBool}) {
        const auto found = outputs(kind, observed);
        for (std::size_t i = 0; i < expected.size(); ++i) {
          EXPECT_EQ(found[i].toTensor().scalar_type(), at::kFloat);
          EXPECT_TRUE(at::equal(found[i].toTensor(), expected[i].toTensor())) << at::toString(kind) << " " << i;
        }
      }
  }
}

// What is missing (NaN) or marked as not observed reaches no forecast, of any model, in either precision, wherever it
// stands: in the lags, at both ends of the context, everywhere. Nor does it reach another row of the batch.
TEST(Module, WhatIsMissingOrNotObservedReachesNoForecast) {
  const auto nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto& name : models::model_names())
    for (const auto type : {at::kFloat, at::kDouble}) {
      SCOPED_TRACE(testing::Message() << name << (type == at::kDouble ? ", double" : ", float"));
      const auto model = make(6, 3, name, type);
      auto module = make_module(*model);
      const auto past_length = model->past_length();
      const auto options = at::TensorOptions(type);
      const auto draws = 1.0 - at::rand({3, 4, 3, 2}, options);
      const auto features =
          model->reads_time_features() ? at::IValue(at::rand({3, past_length + 3, 3}, options)) : at::IValue();
      const auto outputs = [&](const at::Tensor& past, const at::Tensor& observed) {
        const auto all =
            module.forward({past.clone(), observed.clone(), at::tensor({0.1, 0.5, 0.9}, at::kDouble), features, draws})
                .toTuple();
        std::vector<at::Tensor> out;
        for (const auto& one : all->elements()) {
          EXPECT_TRUE(one.toTensor().isfinite().all().item<bool>());
          out.push_back(one.toTensor().clone());
        }
        return out;
      };
      const auto expect_equal = [&](const std::vector<at::Tensor>& found, const std::vector<at::Tensor>& expected,
                                    const char* what) {
        for (std::size_t i = 0; i < 3; ++i)
          EXPECT_TRUE(at::equal(found[i], expected[i])) << what << ", "
                                                        << (i == 0   ? "quantiles"
                                                            : i == 1 ? "mean"
                                                                     : "samples");
      };
      const auto whole = at::arange(1, 3 * past_length + 1, options).view({3, past_length});
      const auto ones = at::ones({3, past_length}, options);
      const auto undisturbed = outputs(whole, ones);
      std::vector<std::vector<std::int64_t>> places = {
          {0}, {past_length - 6}, {past_length - 4, past_length - 2}, {past_length - 1}, {}};
      for (std::int64_t k = 0; k < past_length; ++k) places.back().push_back(k);
      for (const auto& hidden : places) {
        SCOPED_TRACE(testing::Message() << hidden.size() << " from place " << hidden.front());
        auto marks = ones.clone();
        auto zero = whole.clone();
        for (const auto k : hidden) {
          marks[1][k] = 0.0;
          zero[1][k] = 0.0;
        }
        const auto expected = outputs(zero, marks);
        EXPECT_FALSE(at::equal(expected[1][1], undisturbed[1][1])) << "these places do not count at all";
        EXPECT_TRUE(at::equal(expected[1][0], undisturbed[1][0]) && at::equal(expected[1][2], undisturbed[1][2]));
        for (const double garbage : {nan, -7.0, 1e30, std::numeric_limits<double>::infinity()}) {
          auto past = whole.clone();
          for (const auto k : hidden) past[1][k] = garbage;
          expect_equal(outputs(past, marks), expected, "not observed");
          if (std::isnan(garbage)) expect_equal(outputs(past, ones), expected, "NaN that is marked as observed");
        }
      }
    }
}

}  // namespace
}  // namespace tsdp::exporting
