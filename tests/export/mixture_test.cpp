// What an exported model makes of its candidates, computed again from the network alone and from the baselines.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "data/oddities.h"
#include "export/mixture_reference.h"
#include "models/mixture.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/evaluation/backtest.h"
#include "tsdp/export/torchscript.h"
#include "tsdp/random/random.h"

namespace tsdp::exporting {
namespace {

using test::deciles;
using test::Input;
using test::input_of;
using test::missing;
using test::Output;
using test::reference;
using test::Reference;
using test::run;

models::ModelOptions options_with(Mixture mixture, std::int64_t horizon, const std::string& name = "dlinear") {
  models::ModelOptions options{8, horizon, {}, 3, 0.0};
  if (name == "deepar") options.lags = {1, 2, 4};
  options.prior = {PriorKind::seasonal_naive, 4};
  options.mixture = std::move(mixture);
  return options;
}

enum class Weights {
  trained,
  start
};
std::unique_ptr<models::Forecaster> make(const models::ModelOptions& options, const std::string& name = "dlinear",
                                         Weights weights = Weights::trained, at::ScalarType type = at::kDouble) {
  auto model = models::make_model(name, options, at::TensorOptions(type));
  RandomStream stream(SecretKey::from_seed(5), "initial weights", 0);
  model->initialise(stream);
  if (weights == Weights::start) return model;
  model->keep_start();
  // As if it had been trained.
  for (std::int64_t i = 0; i < model->parameters().count(); ++i)
    model->parameters().values()[i] += 0.02 * stream.uniform();
  return model;
}

Mixture mixture_of(std::int64_t horizon) {
  Mixture out{{{Candidate::start, 1, 1},
               {Candidate::seasonal_quantiles, 4, 3},
               {Candidate::moved_quantiles, 4, 3},
               {Candidate::seasonal_naive_bands, 4, 5},
               {Candidate::last_value_bands, 1, 20},
               {Candidate::seasonal_regression, 4, 6}},
              {},
              6,
              std::max<std::int64_t>(horizon, 4)};
  out.widens_tails = true;
  return out;
}

/// A series with a season of 4 and missing values, of which all before `begin` are missing.
std::vector<float> series(std::size_t length, std::size_t begin, std::uint64_t number) {
  RandomStream draws(SecretKey::from_seed(9), "series", number);
  std::vector<float> out;
  for (std::size_t t = 0; t < length; ++t) {
    const double value = 10.0 + 3.0 * static_cast<double>(t % 4) + draws.uniform() + 0.02 * static_cast<double>(t);
    out.push_back(t < begin || draws.uniform() < 0.1 ? missing : static_cast<float>(value));
  }
  return out;
}

/// Row `i` of `found`, at the levels `asked`, is the forecast that the reference has.
void expect_forecast(const Output& found, std::size_t i, const Reference& expected, const std::vector<double>& asked) {
  const auto row = static_cast<std::int64_t>(i);
  const auto horizon = static_cast<std::int64_t>(expected.mean.size());
  for (std::int64_t k = 0; k < horizon; ++k) {
    for (std::size_t q = 0; q < asked.size(); ++q)
      EXPECT_NEAR(found.quantiles[row][static_cast<std::int64_t>(q)][k].item<double>(),
                  expected.quantiles[q * expected.mean.size() + static_cast<std::size_t>(k)], 1e-5)
          << "series " << i << ", level " << asked[q] << ", step " << k;
    EXPECT_NEAR(found.mean[row][k].item<double>(), expected.mean[static_cast<std::size_t>(k)], 1e-5);
  }
}

TEST(Mixture, IsWhatItsDefinitionSays) {
  for (const std::int64_t horizon : {3, 4, 9}) {
    auto mixture = mixture_of(horizon);
    mixture.widens_tails = horizon != 3;  // older models do not
    const auto model = make(options_with(mixture, horizon));
    auto alone = options_with({}, horizon);
    auto network = make_module(*make(alone));
    auto start = make_module(*make(alone, "dlinear", Weights::start));
    auto module = make_module(*model);
    const auto length = static_cast<std::size_t>(forecast_past_length(*model));
    ASSERT_EQ(module.attr("past_length").toInt(), static_cast<std::int64_t>(length));
    EXPECT_EQ(network.attr("past_length").toInt(), 8);
    std::vector<std::vector<float>> rows;
    // The third begins so late that two windows count, the fourth that none does.
    const auto stride = static_cast<std::size_t>(mixture.stride);
    const auto lead = static_cast<std::size_t>(std::max<std::int64_t>(horizon, 4));
    for (const std::size_t begin : {std::size_t{0}, std::size_t{3}, length - 2 * stride - lead - 1, length - lead})
      rows.push_back(series(length, begin, rows.size()));
    const std::vector<double> asked = {0.02, 0.5, 0.77, 0.9};
    const auto draws = at::rand({4, 2, horizon, 2}, at::kDouble);
    const auto found = run(module, input_of(rows), draws, asked);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto expected = reference(network, start, mixture, horizon, rows[i], asked);
      expect_forecast(found, i, expected, asked);
      if (i == 3) {
        EXPECT_NEAR(expected.weights[0], 2.0 / 8.0, 1e-15);
        EXPECT_NEAR(expected.weights[6], 1.0 / 8.0, 1e-15);
        EXPECT_EQ(expected.spread, 1.0);
      }
    }
  }
}

/// (length + H, F): calendar features, two covariates, of which the second is mostly 0, and an age.
at::Tensor features_of(std::int64_t length, std::int64_t count, std::uint64_t number) {
  RandomStream draws(SecretKey::from_seed(10), "features", number);
  auto out = at::zeros({length, count}, at::kDouble);
  for (std::int64_t t = 0; t < length; ++t)
    for (std::int64_t k = 0; k < count; ++k)
      out[t][k] = k + 1 == count ? 1.0 : k + 2 == count ? (draws.uniform() < 0.1 ? 1.0 : 0.0) : draws.uniform();
  return out;
}

TEST(Mixture, MovesValuesByWhatCovariatesTell) {
  for (const std::string name : {"dlinear", "deepar"})
    for (const std::int64_t horizon : {3, 4, 9}) {
      auto mixture = mixture_of(horizon);
      mixture.members = {{Candidate::seasonal_quantiles, 4, 3},
                         {Candidate::covariate_quantiles, 4, 8},
                         {Candidate::covariate_quantiles, 1, 12}};
      mixture.covariates = 2;
      auto options = options_with(mixture, horizon, name);
      options.time_features = 5;  // a calendar of two
      options.covariates = 2;
      const auto model = make(options, name);
      options.mixture = {};
      auto network = make_module(*make(options, name));
      auto module = make_module(*model);
      const auto length = static_cast<std::size_t>(forecast_past_length(*model));
      const std::vector<double> asked = {0.02, 0.5, 0.77, 0.9};
      std::vector<std::vector<float>> rows;
      std::vector<at::Tensor> features;
      for (const std::size_t begin : {std::size_t{0}, std::size_t{3}, length - 14, length - 2}) {
        features.push_back(features_of(static_cast<std::int64_t>(length) + horizon, 5, rows.size()));
        if (rows.size() == 1) features.back()[static_cast<std::int64_t>(length)][2] = 30.0;  // far from all before
        // The fourth is 0 before its series, as padding is.
        if (begin + 2 == length) features.back().narrow(0, 0, static_cast<std::int64_t>(begin)).zero_();
        rows.push_back(series(length, begin, rows.size()));
        for (std::size_t t = 0; t < length; ++t) {
          const auto at = features.back()[static_cast<std::int64_t>(t)];
          rows.back()[t] += static_cast<float>(4.0 * at[2].item<double>() + 9.0 * at[3].item<double>());
          if (begin == 3) rows.back()[t] -= 15.0F;  // of which some are negative
        }
      }
      const auto draws = at::ones({4, 1, horizon, 2}, at::kDouble);
      const auto found = run(module, input_of(rows), draws, asked, at::stack(features));
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto expected = reference(network, network, mixture, horizon, rows[i], asked, {}, features[i]);
        expect_forecast(found, i, expected, asked);
      }
    }
}

/// Of 4 steps, by a network and covariate_quantiles of so many seasons of 4, with one covariate.
torch::jit::Module told_of_one(std::int64_t seasons) {
  auto mixture = mixture_of(4);
  mixture.members = {{Candidate::covariate_quantiles, 4, seasons}};
  mixture.covariates = 1;
  auto options = options_with(mixture, 4);
  options.time_features = 2;
  options.covariates = 1;
  return make_module(*make(options));
}

TEST(Mixture, CovariatesExplainWhatTheyCause) {
  // A value that is 10 and 9 more where a covariate is 1: the candidate alone forecasts that from what it has seen.
  auto module = told_of_one(8);
  const auto length = module.attr("past_length").toInt();
  auto features = features_of(length + 4, 2, 3);
  std::vector<float> past;
  for (std::int64_t t = 0; t < length + 4; ++t) {
    features[t][0] = t % 7 == 3 || t == length + 1 ? 1.0 : 0.0;
    if (t < length) past.push_back(10.0F + 9.0F * features[t][0].item<float>());
  }
  const auto found = run(module, input_of({past}), at::ones({1, 1, 4, 2}, at::kDouble), deciles, features.unsqueeze(0));
  for (std::int64_t k = 0; k < 4; ++k)
    EXPECT_NEAR(found.mean[0][k].item<double>(), 10.0 + 9.0 * features[length + k][0].item<double>(), 0.3) << k;
}

TEST(Mixture, CovariatesMoveValuesNoFurtherThanTheyHave) {
  // One that is the same at each place but for rounding, and a promotion of a depth that was never seen.
  auto module = told_of_one(30);
  const auto length = module.attr("past_length").toInt();
  for (const bool bursts : {false, true}) {
    auto features = features_of(length + 4, 2, 4);
    auto past = series(static_cast<std::size_t>(length), 0, 5);
    for (std::int64_t t = 0; t < length + 4; ++t) {
      const bool promoted = bursts && t % 9 == 0;
      const double same = std::sin(1.5707963 * static_cast<double>(t % 4)) + (t == length + 2 ? 0.3 : 1e-7 * (t % 11));
      features[t][0] = bursts ? (promoted ? 0.5 : t >= length ? 0.75 : 0.0) : same;
      if (t < length) past[static_cast<std::size_t>(t)] -= 0.02F * static_cast<float>(t);
      if (bursts && t < length)
        past[static_cast<std::size_t>(t)] = promoted ? 1000.0F + static_cast<float>(t % 50) : 0.0F;
    }
    const auto found =
        run(module, input_of({past}), at::ones({1, 1, 4, 2}, at::kDouble), deciles, features.unsqueeze(0));
    if (bursts) {
      EXPECT_LE(found.quantiles.max().item<double>(), 1.6 * 1049.0);
    } else {
      for (std::int64_t k = 0; k < 4; ++k)
        EXPECT_NEAR(found.mean[0][k].item<double>(), 10.5 + 3.0 * static_cast<double>(k), 0.5) << k;
    }
    EXPECT_GE(found.quantiles.min().item<double>(), 0.0);
  }
}

Output run_with(torch::jit::Module& module, const Input& input, const at::Tensor& draws, const at::Tensor& external,
                std::vector<double> levels = deciles) {
  const auto found =
      module.forward({input.target, input.observed, at::tensor(levels, at::kDouble), at::IValue(), draws, 2, external})
          .toTuple();
  return {found->elements()[0].toTensor(), found->elements()[1].toTensor(), found->elements()[2].toTensor()};
}

/// A `simple_ff` and a `dlinear` of other contexts, beside a model with the candidates of `mixture`.
std::vector<std::shared_ptr<const models::Forecaster>> other_networks(std::int64_t horizon) {
  std::vector<std::shared_ptr<const models::Forecaster>> out;
  for (const auto& [name, context] : {std::pair{"simple_ff", 13}, {"dlinear", 6}}) {
    auto options = options_with({}, horizon);
    options.context_length = context;
    auto network = models::make_model(name, options, at::TensorOptions(at::kDouble));
    RandomStream stream(SecretKey::from_seed(17), "initial weights", static_cast<std::uint64_t>(context));
    network->initialise(stream);
    for (std::int64_t i = 0; i < network->parameters().count(); ++i)
      network->parameters().values()[i] += 0.02 * stream.uniform();
    out.push_back(std::move(network));
  }
  return out;
}

TEST(Mixture, HoldsOtherNetworks) {
  for (const std::int64_t horizon : {3, 9})
    for (const bool alone : {false, true}) {
      auto mixture = mixture_of(horizon);
      if (alone) mixture.members.clear();
      mixture.networks = {"first", "second"};
      const auto model = make(options_with(mixture, horizon));
      EXPECT_THROW(static_cast<void>(make_module(*model)), Error);  // without them
      const auto others = other_networks(horizon);
      model->keep_networks(others);
      auto module = make_module(*model);
      auto network = make_module(*make(options_with({}, horizon)));
      auto start = make_module(*make(options_with({}, horizon), "dlinear", Weights::start));
      const auto length = static_cast<std::size_t>(forecast_past_length(*model));
      ASSERT_GE(length, static_cast<std::size_t>(13 + mixture.windows * mixture.stride));
      const std::vector<std::vector<float>> rows = {series(length, 0, 0), series(length, 3, 1),
                                                    series(length, length - 14, 2)};
      const std::vector<double> asked = {0.02, 0.5, 0.77, 0.9};
      const auto found = run(module, input_of(rows), at::rand({3, 2, horizon, 2}, at::kDouble), asked);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto expected = reference(network, start, mixture, horizon, rows[i], asked,
                                        {make_module(*others[0]), make_module(*others[1])});
        expect_forecast(found, i, expected, asked);
      }
    }
}

// A network of a longer step forecasts every so many values, beginning at each.
TEST(Mixture, HoldsNetworksOfLongerSteps) {
  for (const std::int64_t horizon : {3, 9})
    for (const std::int64_t every : {2, 5}) {
      auto mixture = mixture_of(horizon);
      mixture.networks = {"own", "longer"};
      const auto model = make(options_with(mixture, horizon));
      auto others = other_networks(horizon);
      auto options = options_with({}, (horizon + every - 1) / every);
      options.context_length = 7;
      options.every = every;
      auto longer = models::make_model("dlinear", options, at::TensorOptions(at::kDouble));
      RandomStream stream(SecretKey::from_seed(23), "initial weights", 0);
      longer->initialise(stream);
      others[1] = std::move(longer);
      model->keep_networks(others);
      auto module = make_module(*model);
      auto network = make_module(*make(options_with({}, horizon)));
      auto start = make_module(*make(options_with({}, horizon), "dlinear", Weights::start));
      const auto length = static_cast<std::size_t>(forecast_past_length(*model));
      ASSERT_GE(length, static_cast<std::size_t>(7 * every + mixture.windows * mixture.stride));
      const std::vector<std::vector<float>> rows = {series(length, 0, 0), series(length, 3, 1)};
      const std::vector<double> asked = {0.02, 0.5, 0.77, 0.9};
      const auto found = run(module, input_of(rows), at::rand({2, 2, horizon, 2}, at::kDouble), asked);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto expected = reference(network, start, mixture, horizon, rows[i], asked,
                                        {make_module(*others[0]), make_module(*others[1])}, {}, {1, every});
        expect_forecast(found, i, expected, asked);
      }
    }
}

/// What a baseline forecasts of the coming window and of those before it: (1, J + 1, 1, 10, H).
at::Tensor external_of(const std::vector<float>& past, const Mixture& mixture, std::int64_t horizon) {
  std::vector<at::Tensor> windows;
  for (std::int64_t j = 0; j <= mixture.windows; ++j) {
    const auto end = past.size() - static_cast<std::size_t>(j * mixture.stride);
    const auto made = evaluation::baseline_forecast(evaluation::Baseline::seasonal_quantiles,
                                                    std::span(past).first(end), {4, 3}, horizon, deciles);
    auto values = made.quantiles;
    values.insert(values.end(), made.mean.begin(), made.mean.end());
    windows.push_back(at::tensor(values, at::kDouble).view({1, 10, horizon}));
  }
  return at::stack(windows).unsqueeze(0);
}

// Forecasts of another program that are those of a candidate have its weight and its place.
TEST(Mixture, TreatsForecastsOfOtherProgramsAlike) {
  for (const std::int64_t horizon : {3, 9}) {
    const auto stride = std::max<std::int64_t>(horizon, 4);
    const Mixture::Member longest{Candidate::last_value_bands, 1, 40};
    const Mixture inside{{longest, {Candidate::seasonal_quantiles, 4, 3}}, {}, 6, stride};
    const Mixture outside{{longest}, {"chronos"}, 6, stride};
    auto expected = make_module(*make(options_with(inside, horizon)));
    auto module = make_module(*make(options_with(outside, horizon)));
    const auto length = static_cast<std::size_t>(module.attr("past_length").toInt());
    ASSERT_EQ(expected.attr("past_length").toInt(), static_cast<std::int64_t>(length));
    // With a longest season of 1 fewer values must lie before a window that counts: the same windows count of both.
    const auto past = series(length, 0, 0);
    const auto draws = at::rand({1, 2, horizon, 2}, at::kDouble);
    const auto found = run_with(module, input_of({past}), draws, external_of(past, outside, horizon));
    const auto wanted = run(expected, input_of({past}), draws);
    EXPECT_TRUE(found.quantiles.allclose(wanted.quantiles, 1e-6, 1e-6));
    EXPECT_TRUE(found.mean.allclose(wanted.mean, 1e-6, 1e-6));
  }
}

// It takes part where it has the coming window and all that count. Else the forecast is that of a mixture without it.
TEST(Mixture, LeavesOutForecastsWithoutARecord) {
  constexpr std::int64_t horizon = 4;
  const auto without = mixture_of(horizon);
  auto with = without;
  with.external = {"chronos"};
  auto expected = make_module(*make(options_with(without, horizon)));
  auto module = make_module(*make(options_with(with, horizon)));
  const auto length = static_cast<std::size_t>(module.attr("past_length").toInt());
  const auto draws = at::rand({1, 2, horizon, 2}, at::kDouble);
  const auto past = series(length, 0, 0);
  const auto input = input_of({past});
  const auto wanted = run(expected, input, draws);
  const auto same = [&](const Output& found) {
    return found.quantiles.allclose(wanted.quantiles, 1e-13, 1e-13) && found.mean.allclose(wanted.mean, 1e-13, 1e-13) &&
           found.samples.allclose(wanted.samples, 1e-13, 1e-13);
  };
  EXPECT_TRUE(same(run(module, input, draws)));
  const auto whole = external_of(past, with, horizon);
  EXPECT_FALSE(same(run_with(module, input, draws, whole)));
  for (std::int64_t window = 0; window <= with.windows; ++window) {
    auto part = whole.clone();
    part[0][window][0][3][1] = missing;
    EXPECT_TRUE(same(run_with(module, input, draws, part))) << window;
  }
  // Of windows that do not count nothing is asked: here the series begins after all but two.
  const auto late = series(length, length - 2 * 4 - 4 - 1, 3);
  auto part = external_of(late, with, horizon);
  const auto all = run_with(module, input_of({late}), draws, part);
  part.narrow(1, 3, with.windows - 2).fill_(missing);
  EXPECT_TRUE(run_with(module, input_of({late}), draws, part).quantiles.equal(all.quantiles));
  part.narrow(1, 2, 1).fill_(missing);
  EXPECT_FALSE(run_with(module, input_of({late}), draws, part).quantiles.equal(all.quantiles));
  EXPECT_THROW(static_cast<void>(run_with(module, input, draws, whole.narrow(1, 0, 2))), std::exception);
}

// Of a few paths all may lie on one side of the median, where outer levels are moved further than inner ones.
TEST(Mixture, PathsKeepTheirRank) {
  constexpr std::int64_t horizon = 4;
  Mixture mixture{{{Candidate::last_value_bands, 1, 20}}, {}, 6, horizon};
  mixture.widens_tails = true;
  auto module = make_module(*make(options_with(mixture, horizon)));
  auto network = make_module(*make(options_with({}, horizon)));
  const auto length = static_cast<std::size_t>(module.attr("past_length").toInt());
  for (std::uint64_t row = 0; row < 20; ++row) {
    auto past = series(length, 0, row);
    for (std::size_t t = row; t < length; t += 7) past[t] *= 5.0F;  // heavy tails
    const auto draws = at::rand({1, 3, horizon, 2}, at::kDouble);
    const at::Tensor mixed = run(module, input_of({past}), draws).samples;
    const at::Tensor alone = run(network, input_of({past}), draws).samples;
    EXPECT_TRUE(mixed.gather(1, at::argsort(alone, std::int64_t{1})).diff(1, 1).ge(0.0).all().item<bool>()) << row;
  }
}

// Values far from all others of the past count as missing; nothing else does.
TEST(Mixture, SkipsOutliers) {
  constexpr std::int64_t horizon = 4;
  auto mixture = mixture_of(horizon);
  mixture.members.push_back({Candidate::seasonal_naive_bands, 4, 60});  // so that it reads more than 200 values
  auto module = make_module(*make(options_with(mixture, horizon)));
  mixture.skips_outliers = true;
  auto skipping = make_module(*make(options_with(mixture, horizon)));
  const auto length = static_cast<std::size_t>(module.attr("past_length").toInt());
  ASSERT_GT(length, 240U);
  const auto draws = at::rand({1, 3, horizon, 2}, at::kDouble);
  const auto same = [](const Output& a, const Output& b) {
    return a.quantiles.equal(b.quantiles) && a.mean.equal(b.mean) && a.samples.equal(b.samples);
  };
  auto past = series(length, 0, 0);
  past[length - 30] = 15.0F;
  past[length - 2] = 15.0F;
  EXPECT_TRUE(same(run(skipping, input_of({past}), draws), run(module, input_of({past}), draws)));
  auto without = past;
  without[length - 30] = without[length - 2] = missing;
  past[length - 30] = 1e6F;
  past[length - 2] = -400.0F;
  data::Series one{"a", 0, past};
  ASSERT_EQ(data::outliers_of(one),
            (std::vector<std::int64_t>{static_cast<std::int64_t>(length) - 30, static_cast<std::int64_t>(length) - 2}));
  const auto found = run(skipping, input_of({past}), draws);
  EXPECT_TRUE(same(found, run(module, input_of({without}), draws)));
  EXPECT_FALSE(same(found, run(module, input_of({past}), draws)));
  // Of fewer than 100 known values none is far, nor where most are the same.
  auto few = series(length, length - 95, 1);
  few[length - 3] = 1e6F;
  EXPECT_TRUE(same(run(skipping, input_of({few}), draws), run(module, input_of({few}), draws)));
  std::vector<float> rare(length, 0.0F);
  rare[length - 3] = 7.0F;
  EXPECT_TRUE(same(run(skipping, input_of({rare}), draws), run(module, input_of({rare}), draws)));
}

// Between the levels that it has, and beyond them, its quantiles are linear in the logit of the level.
TEST(Mixture, ReadsOtherLevelsOffTheDeciles) {
  constexpr std::int64_t horizon = 2;
  const Mixture mixture{{}, {"chronos"}, 6, 4};
  auto module = make_module(*make(options_with(mixture, horizon)));
  const auto length = module.attr("past_length").toInt();
  // Its quantiles are right to 1e-3 where the network knows nothing, so that it has all the weight.
  RandomStream stream(SecretKey::from_seed(3), "walk", 0);
  std::vector<float> past;
  for (std::int64_t t = 0; t < length; ++t) past.push_back(static_cast<float>(100.0 * stream.uniform()));
  auto external = at::empty({1, 7, 1, 10, horizon}, at::kDouble);
  for (std::int64_t j = 0; j <= 6; ++j)
    for (std::int64_t k = 0; k < horizon; ++k)
      for (std::int64_t q = 0; q < 10; ++q)
        external[0][j][0][q][k] = (j == 0 ? 50.0 : past[static_cast<std::size_t>(length - 4 * j + k)]) +
                                  (q == 9 ? 0.0 : 1e-3 * std::pow(q - 4.0, 3));
  const std::vector<double> asked = {0.02, 0.1, 0.25, 0.5, 0.62, 0.9, 0.97};
  const auto found =
      run_with(module, input_of({past}), at::rand({1, 2, horizon, 2}, at::kDouble), external, asked).quantiles[0];
  const auto quantile = [](double level) {
    const auto logit = [](double p) { return std::log(p / (1.0 - p)); };
    const int below = std::clamp(static_cast<int>(level * 10.0 + 1e-9) - 1, 0, 7);
    const double share =
        (logit(level) - logit((below + 1) / 10.0)) / (logit((below + 2) / 10.0) - logit((below + 1) / 10.0));
    return 1e-3 * (std::pow(below - 4.0, 3) + share * (std::pow(below - 3.0, 3) - std::pow(below - 4.0, 3)));
  };
  // Up to the spread, which is the same at every level.
  const double spread = (found[1][0].item<double>() - 50.0) / quantile(0.1);
  EXPECT_GT(spread, 0.3);
  for (std::size_t i = 0; i < asked.size(); ++i)
    for (std::int64_t k = 0; k < horizon; ++k)
      EXPECT_NEAR(found[static_cast<std::int64_t>(i)][k].item<double>() - 50.0, spread * quantile(asked[i]), 1e-7)
          << asked[i];
}

// Sorted, the samples of a step are the mixture's quantiles at (i + ½)/S; each keeps the rank of the network's sample,
// so that paths stay paths.
TEST(Mixture, SamplesKeepTheirRanks) {
  for (const auto& name : models::model_names()) {
    SCOPED_TRACE(name);
    constexpr std::int64_t horizon = 6;
    constexpr std::int64_t paths = 8;
    const auto mixture = mixture_of(horizon);
    const auto model = make(options_with(mixture, horizon, name), name);
    auto module = make_module(*model);
    auto network = make_module(*make(options_with({}, horizon, name), name));
    const auto length = forecast_past_length(*model);
    const auto own = network.attr("past_length").toInt();
    const auto input =
        input_of({series(static_cast<std::size_t>(length), 0, 0), series(static_cast<std::size_t>(length), 2, 1)});
    const auto draws = 1.0 - at::rand({2, paths, horizon, 2}, at::kDouble);
    at::IValue features;
    at::IValue own_features;
    if (model->reads_time_features()) {
      const auto all = at::rand({2, length + horizon, 3}, at::kDouble) - 0.5;
      features = all;
      own_features = all.narrow(1, length - own, own + horizon);
    }
    std::vector<double> ranks;
    for (std::int64_t i = 0; i < paths; ++i) ranks.push_back((static_cast<double>(i) + 0.5) / paths);
    const auto mixed = run(module, input, draws, ranks, features);
    const auto free =
        run(network, {input.target.narrow(1, length - own, own), input.observed.narrow(1, length - own, own)}, draws,
            ranks, own_features);
    EXPECT_TRUE(mixed.samples.argsort(std::int64_t{1}).equal(free.samples.argsort(std::int64_t{1})));
    if (model->samples_paths()) {
      EXPECT_TRUE(std::get<0>(mixed.samples.sort(1)).allclose(mixed.quantiles, 1e-9, 1e-9));
    }
  }
}

// A forecast depends on its own past alone; a longer past is cut, and a shorter one is one that begins later.
TEST(Mixture, RowsAreApart) {
  constexpr std::int64_t horizon = 4;
  const auto model = make(options_with(mixture_of(horizon), horizon));
  auto module = make_module(*model);
  const auto length = static_cast<std::size_t>(forecast_past_length(*model));
  const auto draws = at::rand({1, 3, horizon, 2}, at::kDouble);
  const auto one = series(length, 0, 0);
  const auto late = series(length, length / 2, 1);
  const auto alone = run(module, input_of({one}), draws);
  const auto beside = run(module, input_of({one, late}), draws.expand({2, -1, -1, -1}));
  EXPECT_TRUE(alone.quantiles[0].allclose(beside.quantiles[0], 1e-12, 1e-12));
  EXPECT_TRUE(alone.samples[0].allclose(beside.samples[0], 1e-12, 1e-12));
  auto longer = series(7, 0, 2);
  longer.insert(longer.end(), one.begin(), one.end());
  EXPECT_TRUE(run(module, input_of({longer}), draws).quantiles.allclose(alone.quantiles, 1e-12, 1e-12));
  const std::vector<float> shorter(late.begin() + static_cast<std::ptrdiff_t>(length / 2), late.end());
  EXPECT_TRUE(run(module, input_of({shorter}), draws).quantiles[0].allclose(beside.quantiles[1], 1e-12, 1e-12));
  const auto nothing = run(module, input_of({std::vector<float>(length, missing)}), draws);
  EXPECT_TRUE(nothing.quantiles.isfinite().all().item<bool>());
}

/// How many rows of `input` have the record of a row before them.
std::int64_t moved_on(torch::jit::Module& module, const Input& input, std::int64_t horizon) {
  const auto rows = input.target.size(0), length = input.target.size(1);
  const auto values = input.target.masked_fill(input.observed.eq(0.0), missing);
  return module
      .run_method("moved_on", values, input.target, input.observed, at::zeros({rows, length + horizon, 0}, at::kDouble),
                  at::zeros({rows, 0, horizon, 2}, at::kDouble))
      .toTensor()
      .sum()
      .item<std::int64_t>();
}

// Windows of one series side by side share what their records have in common. They are forecast as each alone, also
// where so much is missing that a candidate reads further back than its seasons.
TEST(Mixture, WindowsOfOneSeriesAreForecastAsEachAlone) {
  struct Case {
    std::int64_t horizon;
    std::size_t gap;  // missing values in the middle of the past
    std::size_t begin;  // of the series in the first past
    std::int64_t shared;  // of 7 windows
  };
  // Two windows of a horizon of 2 lie in a stride of 4, so the first two have none before them. Seasons of a horizon of
  // 3 do not begin with a window.
  for (const auto& [horizon, gap, begin, shared] :
       {Case{4, 0, 0, 6}, Case{9, 0, 0, 6}, Case{2, 0, 0, 5}, Case{3, 0, 0, 0}, Case{4, 0, 70, 6}, Case{4, 9, 0, 6},
        Case{4, 30, 0, 0}, Case{9, 40, 0, 0}}) {
    SCOPED_TRACE(cat("horizon ", horizon, ", gap ", gap, ", begin ", begin));
    const auto mixture = mixture_of(horizon);
    const auto model = make(options_with(mixture, horizon));
    auto module = make_module(*model);
    const auto length = static_cast<std::size_t>(forecast_past_length(*model));
    const auto ahead = static_cast<std::size_t>(horizon);
    auto all = series(length + 6 * ahead, begin, 3);
    for (auto t = length - 25 - gap; t < length - 25; ++t) all[t] = missing;
    std::vector<std::vector<float>> rows;
    for (std::size_t window = 0; window < 7; ++window) {
      const auto from = all.begin() + static_cast<std::ptrdiff_t>(window * ahead);
      rows.emplace_back(from, from + static_cast<std::ptrdiff_t>(length));
    }
    const auto draws = at::rand({7, 3, horizon, 2}, at::kDouble);
    EXPECT_EQ(moved_on(module, input_of(rows), horizon), shared);
    const auto together = run(module, input_of(rows), draws);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto row = static_cast<std::int64_t>(i);
      const auto alone = run(module, input_of({rows[i]}), draws.narrow(0, row, 1));
      EXPECT_TRUE(alone.quantiles[0].allclose(together.quantiles[row], 1e-11, 1e-11)) << "window " << i;
      EXPECT_TRUE(alone.mean[0].allclose(together.mean[row], 1e-11, 1e-11)) << "window " << i;
    }
  }
}

// The same of the variables of a series, whose rows stay side by side.
TEST(Mixture, VariablesShareARecordTogether) {
  constexpr std::int64_t horizon = 4, variables = 2;
  auto options = options_with(mixture_of(horizon), horizon, "itransformer");
  options.variables = variables;
  const auto model = make(options, "itransformer");
  auto module = make_module(*model);
  const auto length = static_cast<std::size_t>(forecast_past_length(*model));
  const std::vector<std::vector<float>> both = {series(length + 8, 0, 4), series(length + 8, 0, 5)};
  std::vector<std::vector<float>> rows;
  for (std::ptrdiff_t window = 0; window < 3; ++window)
    for (const auto& one : both)
      rows.emplace_back(one.begin() + horizon * window,
                        one.begin() + horizon * window + static_cast<std::ptrdiff_t>(length));
  const auto draws = at::rand({6, 1, horizon, 2}, at::kDouble);
  EXPECT_EQ(moved_on(module, input_of(rows), horizon), 2);
  const auto together = run(module, input_of(rows), draws);
  for (std::size_t i = 0; i < rows.size(); i += variables) {
    const auto row = static_cast<std::int64_t>(i);
    const auto alone = run(module, input_of({rows[i], rows[i + 1]}), draws.narrow(0, row, variables));
    EXPECT_TRUE(alone.quantiles.allclose(together.quantiles.narrow(0, row, variables), 1e-11, 1e-11)) << i;
  }
  // Where one variable's past is another, none is shared.
  rows[3][length / 2] = 99.0F;
  EXPECT_EQ(moved_on(module, input_of(rows), horizon), 0);
}

// Every candidate may leave the bounds that its past stays within; the mixture, its mean and its samples do not.
TEST(Mixture, StaysWithinTheBounds) {
  constexpr std::int64_t horizon = 4;
  auto options = options_with(mixture_of(horizon), horizon);
  options.lower_bound = 13.0;
  options.upper_bound = 17.5;
  const auto model = make(options);
  auto module = make_module(*model);
  const auto length = static_cast<std::size_t>(forecast_past_length(*model));
  const auto found =
      run(module, input_of({series(length, 0, 0)}), at::rand({1, 50, horizon, 2}, at::kDouble), {0.001, 0.5, 0.999});
  for (const auto& part : {found.quantiles, found.mean, found.samples}) {
    EXPECT_GE(part.min().item<double>(), 13.0);
    EXPECT_LE(part.max().item<double>(), 17.5);
  }
  EXPECT_EQ(found.quantiles.min().item<double>(), 13.0);
  EXPECT_EQ(found.quantiles.max().item<double>(), 17.5);
}

}  // namespace
}  // namespace tsdp::exporting
