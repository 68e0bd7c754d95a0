// Training that begins with the weights of another model: what is kept, cut, stated and refused.
#include "training_fixture.h"

#include <filesystem>
#include <functional>
#include <string>

#include "settings/setup.h"
#include "training/model_setup.h"
#include "training/start_weights.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/json.h"
#include "tsdp/data/windows.h"
#include "tsdp/export/torchscript.h"
#include "tsdp/settings/start.h"

namespace tsdp::training {
namespace {

class StartFixture : public TrainingFixture {
 protected:
  void SetUp() override {
    TrainingFixture::SetUp();
    std::filesystem::create_directories(root_);
  }

  Config config_of(const std::string& model, std::int64_t horizon = 4) const {
    auto c = small_training_of(model);
    c.dataset.prediction_length = horizon;
    c.dataset.season_length = 8;
    c.model.prior = PriorKind::seasonal_naive;
    if (model == "deepar") c.model.lags = {1, 2, 8};
    return c;
  }

  /// A saved model of `config` with weights all of its own, that was trained on synthetic series or on data.
  mechanism::StartWeights start_of(const Config& config, bool synthetic = true) const {
    auto model = model_of(config, at::TensorOptions(at::kFloat));
    RandomStream stream(SecretKey::from_seed(5), "weights of a start", 0);
    model->initialise(stream);
    model->keep_start();
    model->parameters().values().add_(0.01 * at::randn_like(model->parameters().values()));
    auto ledger = mechanism::Ledger(mechanism::TrainingMethod(mechanism::scheme_of(config, data_.training_lengths())));
    ledger.program = "tsdp test";
    ledger.state = mechanism::RunState::finished;
    ledger.run = {"0123456789abcdef0123456789abcdef", "0123456789abcdef", std::string(64, '0')};
    ledger.start.prior = prior_of(config);
    if (synthetic) ledger.synthetic = mechanism::SyntheticData{"hourly", 6, 200, 1};
    nlohmann::ordered_json about = {{"format", "tsdp-model-2"},
                                    {"program", "tsdp test"},
                                    {"name", model->name()},
                                    {"past_length", model->past_length()},
                                    {"prediction_length", config.dataset.prediction_length},
                                    {"frequency", config.dataset.frequency}};
    if (!config.dataset.covariate_columns.empty()) about["covariates"] = config.dataset.covariate_columns;
    const auto file =
        root_ / (model->name() + std::to_string(config.dataset.prediction_length) + (synthetic ? "s" : "d") + ".pt");
    exporting::save_model(*model, false, {about, mechanism::document(ledger)}, file);
    return mechanism::read_start(file);
  }

  models::WindowBatch windows_of(const models::Forecaster& model) const {
    at::manual_seed(3);
    const auto past = model.past_length();
    const auto horizon = model.options().prediction_length;
    return {at::rand({5, past}) + 1.0, at::ones({5, past}), at::rand({5, horizon}) + 1.0, at::ones({5, horizon}),
            at::rand({5, past + horizon, model.options().time_features}) - 0.5};
  }
};

const std::vector<std::string> all_models = {"simple_ff", "dlinear", "itransformer", "deepar"};

// What a start is not told of changes nothing until it is trained on.
TEST_F(StartFixture, CovariatesThatAStartKnowsNothingOfBeginWithoutEffect) {
  for (const std::string name : {"simple_ff", "dlinear", "itransformer"})
    for (const std::int64_t horizon : {4, 1}) {
      SCOPED_TRACE(name + " " + std::to_string(horizon));
      const auto start = start_of(config_of(name, 4));
      auto told_config = config_of(name, horizon);
      told_config.dataset.covariate_columns = {"holiday", "price"};
      EXPECT_EQ(mechanism::misfit(told_config, start), std::nullopt);
      auto told = model_of(told_config, at::TensorOptions(at::kFloat));
      auto untold = model_of(config_of(name, horizon), at::TensorOptions(at::kFloat));
      for (auto* model : {told.get(), untold.get()}) initialise(*model, 3, start);
      auto batch = windows_of(*told);
      const auto with = told->distribution(batch);
      const auto without = untold->distribution(batch);
      EXPECT_TRUE(at::allclose(with.loc, without.loc, 1e-6, 1e-7));
      EXPECT_TRUE(at::allclose(with.scale, without.scale, 1e-6, 1e-7));
      EXPECT_TRUE(at::allclose(with.df, without.df, 1e-6, 1e-7));
      const auto reader = start_of(told_config);  // which does not fit where they are not there
      EXPECT_NE(mechanism::misfit(config_of(name, horizon), reader), std::nullopt);
    }
}

// The first steps of a longer forecast are the shorter one.
TEST_F(StartFixture, ShorterForecastsAreTheFirstSteps) {
  for (const auto& name : all_models) {
    SCOPED_TRACE(name);
    const auto longer = config_of(name, 7);
    const auto start = start_of(longer);
    auto whole = model_of(longer, at::TensorOptions(at::kFloat));
    auto cut = model_of(config_of(name, 4), at::TensorOptions(at::kFloat));
    EXPECT_FALSE(mechanism::misfit(config_of(name, 4), start));
    initialise(*whole, 1, start);
    initialise(*cut, 1, start);
    auto batch = windows_of(*whole);
    const auto far = whole->distribution(batch);
    batch.future_target = batch.future_target.narrow(1, 0, 4);
    batch.future_observed = batch.future_observed.narrow(1, 0, 4);
    if (batch.time_features.defined()) batch.time_features = batch.time_features.narrow(1, 0, cut->past_length() + 4);
    const auto near = cut->distribution(batch);
    const auto steps = near.loc.size(1);
    EXPECT_TRUE(at::allclose(near.loc, far.loc.narrow(1, 0, steps), 1e-5, 1e-6));
    EXPECT_TRUE(at::allclose(near.scale, far.scale.narrow(1, 0, steps), 1e-5, 1e-6));
    EXPECT_TRUE(at::allclose(near.df, far.df.narrow(1, 0, steps), 1e-5, 1e-6));
    // And they are the start's, not fresh ones.
    auto fresh = model_of(config_of(name, 4), at::TensorOptions(at::kFloat));
    initialise(*fresh, 1, std::nullopt);
    EXPECT_FALSE(at::equal(fresh->parameters().values(), cut->parameters().values()));
  }
}

TEST_F(StartFixture, WhatDoesNotFitIsNamed) {
  const auto start = start_of(config_of("dlinear"));
  const auto expect_misfit = [&](auto change, const std::string& text) {
    auto c = config_of("dlinear");
    change(c);
    const auto why = mechanism::misfit(c, start);
    ASSERT_TRUE(why) << text;
    EXPECT_NE(why->find(text), std::string::npos) << *why;
  };
  EXPECT_FALSE(mechanism::misfit(config_of("dlinear"), start));
  expect_misfit([](Config& c) { c.model.name = "simple_ff"; },
                "model.name: found simple_ff; the weights are of dlinear");
  expect_misfit([](Config& c) { c.dataset.frequency = "1D"; }, "dataset.frequency: found 1D");
  expect_misfit([](Config& c) { c.model.context_length = 9; }, "model.context_length: found 9; the weights are of 8");
  expect_misfit([](Config& c) { c.dataset.prediction_length = 5; }, "at most 4 steps");
  expect_misfit([](Config& c) { c.model.prior = PriorKind::last_value; },
                "model.prior: found last_value; the weights are of seasonal_naive of season 8");
  expect_misfit([](Config& c) { c.dataset.season_length = 4; }, "model.prior: found seasonal_naive of season 4");
  expect_misfit([](Config& c) { c.model.width = 20; }, "model.width: found 20");
  auto open = config_of("dlinear");
  open.model.context_length = std::nullopt;
  EXPECT_FALSE(mechanism::misfit(open, start));
}

// What the run begins with is what its ledger names, its folder keeps, and a resumed run has.
TEST_F(StartFixture, RunsStateAndKeepTheirStart) {
  for (const bool synthetic : {true, false}) {
    auto config = config_of("simple_ff");
    const auto start = start_of(config, synthetic);
    config.model.start = start.file.string();
    config.training.max_epochs = 4;
    const std::string name = synthetic ? "synthetic" : "trained";
    Config begun;
    {
      Trainer made(settled(config, data_, start), data_, at::Device(at::kCPU), folder(name));
      made.begin();
      auto expected = model_of(config, at::TensorOptions(at::kFloat));
      initialise(*expected, 1, start);
      EXPECT_TRUE(at::equal(made.model().parameters().values(), expected->parameters().values()));
      EXPECT_EQ(made.config().model.start, "start.safetensors");
      EXPECT_EQ(read_file(root_ / name / "start.safetensors"), start.bytes);
      static_cast<void>(made.run({}));
      begun = made.config();
    }
    const auto ledger = parse_json(read_file(folder(name).ledger()), "ledger");
    EXPECT_EQ(ledger["start"]["origin"], synthetic ? "synthetic" : "trained_without_privacy");
    EXPECT_EQ(ledger["start"]["weights_sha256"], start.sha256);
    EXPECT_EQ(ledger["statement"].get<std::string>().find("NOT COVERED") != std::string::npos, !synthetic);
    EXPECT_TRUE(mechanism::verify(ledger, "ledger").agrees());

    const auto kept = mechanism::read_start(root_ / name / "start.safetensors");
    EXPECT_EQ(kept.sha256, start.sha256);
    EXPECT_EQ(kept.origin, start.origin);
    Trainer again(settled(begun, data_, kept), data_, at::Device(at::kCPU), folder(name));
    EXPECT_NO_THROW(again.resume());
  }
}

TEST_F(StartFixture, AnotherStartIsNoResume) {
  auto config = config_of("simple_ff");
  const auto start = start_of(config, true);
  config.model.start = start.file.string();
  Config begun;
  {
    Trainer made(settled(config, data_, start), data_, at::Device(at::kCPU), folder("run"));
    made.begin();
    begun = made.config();
  }
  const auto other = start_of(config_of("simple_ff"), false);
  Trainer again(settled(begun, data_, other), data_, at::Device(at::kCPU), folder("run"));
  EXPECT_THROW(again.resume(), DataError);
}

TEST_F(StartFixture, AStartWithoutItsWeightsIsRefused) {
  auto config = config_of("simple_ff");
  config.model.start = "somewhere.pt";
  EXPECT_THROW(Trainer(settled(config, data_), data_, at::Device(at::kCPU), folder("run")), UsageError);
}

// What is shipped was trained on synthetic series alone, fits what it says it fits, and begins a model.
TEST_F(StartFixture, ShippedWeightsAreNobodysAndServe) {
  const auto shipped = mechanism::shipped_starts();
  ASSERT_FALSE(shipped.empty());
  for (const auto& [weights, did_no_worse] : shipped) {
    SCOPED_TRACE(weights.file.string());
    EXPECT_EQ(weights.origin, mechanism::StartOrigin::synthetic);
    const auto& about = weights.content.model;
    const auto& sizes = about.at("sizes");
    Config c;
    c.dataset.frequency = about.at("frequency").get<std::string>();
    c.dataset.prediction_length = 12;
    c.dataset.season_length = sizes.at("season").get<std::int64_t>();
    c.model.name = about.at("name").get<std::string>();
    c.model.prior = PriorKind::seasonal_naive;
    c.model.lags = sizes.at("lags").get<std::vector<std::int64_t>>();
    c.model.context_length = std::nullopt;
    c.model.start = did_no_worse ? "auto" : "pretrained";
    const auto found = mechanism::find_start(c, "config.yaml");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->sha256, weights.sha256);
    c.model.context_length = mechanism::context_length_of(*found);
    auto model = model_of(c, at::TensorOptions(at::kFloat));
    EXPECT_NO_THROW(initialise(*model, 1, found));
    c.model.context_length = *c.model.context_length + 1;
    EXPECT_THROW(static_cast<void>(mechanism::find_start((c.model.start = "pretrained", c), "config.yaml")),
                 UsageError);
  }
}

TEST_F(StartFixture, OtherNetworksAreKeptAndStated) {
  const auto file = root_ / "other.safetensors";
  write_file_atomically(file, start_of(config_of("dlinear", 6)).bytes);
  auto config = config_of("simple_ff");
  config.model.auto_candidates = false;
  config.model.candidates = {"seasonal_quantiles", file.string()};
  config.training.max_epochs = 4;
  auto run = settled(config, data_);
  run.networks = mechanism::find_networks(config, "config.yaml");
  ASSERT_EQ(run.networks.size(), 1U);
  const auto sha256 = run.networks.front().sha256;
  auto expected = model_of(config_of("dlinear"), at::TensorOptions(at::kFloat));
  initialise(*expected, 0, run.networks.front());
  Config begun;
  {
    Trainer made(run, data_, at::Device(at::kCPU), folder("run"));
    ASSERT_EQ(made.model().networks().size(), 1U);
    EXPECT_TRUE(at::equal(made.model().networks().front()->parameters().values(), expected->parameters().values()));
    made.begin();
    EXPECT_EQ(made.config().model.candidates, (std::vector<std::string>{"seasonal_quantiles", "other.safetensors"}));
    EXPECT_EQ(read_file(root_ / "run" / "other.safetensors"), run.networks.front().bytes);
    static_cast<void>(made.run({}));
    begun = made.config();
  }
  const auto ledger = parse_json(read_file(folder("run").ledger()), "ledger");
  EXPECT_EQ(ledger["start"]["networks"], (nlohmann::ordered_json{{"other", sha256}}));
  EXPECT_EQ(ledger["start"]["origin"], "fresh");
  EXPECT_TRUE(mechanism::verify(ledger, "ledger").agrees());

  const auto again = [&] {
    auto taken_up = settled(begun, data_);
    taken_up.networks = mechanism::find_networks(begun, folder("run").config());
    Trainer(taken_up, data_, at::Device(at::kCPU), folder("run")).resume();
  };
  EXPECT_NO_THROW(again());
  // Other weights under the same name are another model.
  write_file_atomically(root_ / "run" / "other.safetensors", start_of(config_of("itransformer")).bytes);
  EXPECT_THROW(again(), DataError);
}

TEST_F(StartFixture, NetworksThatDoNotFitAreRefused) {
  const auto networks_with = [&](const mechanism::StartWeights& weights, const std::function<void(Config&)>& change) {
    const auto file = root_ / "other.safetensors";
    write_file_atomically(file, weights.bytes);
    auto config = config_of("simple_ff");
    config.model.auto_candidates = false;
    config.model.candidates = {file.string()};
    change(config);
    return mechanism::find_networks(config, "config.yaml").size();
  };
  const auto same = [](Config&) {};
  const auto dlinear = start_of(config_of("dlinear"));
  EXPECT_EQ(networks_with(dlinear, same), 1U);
  EXPECT_THROW(networks_with(dlinear, [](Config& c) { c.dataset.season_length = 4; }), UsageError);
  EXPECT_THROW(networks_with(dlinear, [](Config& c) { c.dataset.prediction_length = 5; }), UsageError);
  EXPECT_THROW(networks_with(dlinear, [](Config& c) { c.dataset.frequency = "2h"; }), UsageError);
  // A network reads no covariates of the model beside it, and has none of its own.
  const auto told = [](Config& c) { c.dataset.covariate_columns = {"holiday"}; };
  EXPECT_EQ(networks_with(dlinear, told), 1U);
  auto with_holidays = config_of("dlinear");
  told(with_holidays);
  const auto reader = start_of(with_holidays);
  EXPECT_THROW(networks_with(reader, told), UsageError);
  EXPECT_THROW(networks_with(reader, same), UsageError);
  EXPECT_THROW(networks_with(dlinear, [](Config& c) { c.model.candidates = {"nowhere.safetensors"}; }), DataError);
  EXPECT_THROW(networks_with(start_of(config_of("deepar")), same), UsageError);
  // The exported model would hold them as they are.
  const auto trained = start_of(config_of("dlinear"), false);
  EXPECT_THROW(networks_with(trained, same), PrivacyError);
  EXPECT_THROW(networks_with(trained, [](Config& c) { c.privacy.enabled = false; }), PrivacyError);
}

TEST_F(StartFixture, OtherStartsAreTheShippedNetworksOfOtherKinds) {
  Config c;
  c.dataset.frequency = "1h";
  c.dataset.prediction_length = 24;
  c.dataset.season_length = 24;
  c.model.name = "dlinear";
  c.model.prior = PriorKind::seasonal_naive;
  c.model.context_length = std::nullopt;
  c.model.auto_candidates = false;
  c.model.candidates = {"start", std::string(other_starts)};
  const auto names = [&](std::int64_t most_context) {
    auto asked = c;
    std::vector<std::string> out;
    for (const auto& network : mechanism::find_networks(asked, "config.yaml", most_context)) {
      EXPECT_EQ(network.origin, mechanism::StartOrigin::synthetic);
      out.push_back(network.file.stem().string());
    }
    EXPECT_EQ(asked.model.candidates.size(), 1 + out.size());
    return out;
  };
  EXPECT_EQ(names(10'000), (std::vector<std::string>{"hourly_itransformer", "hourly_simple_ff"}));
  EXPECT_EQ(names(20), std::vector<std::string>{});
  // What stands in its place is checked as what was written.
  const auto refusal = [&](std::vector<std::string> candidates) -> std::string {
    auto asked = c;
    asked.model.candidates = std::move(candidates);
    try {
      static_cast<void>(mechanism::find_networks(asked, "config.yaml"));
    } catch (const UsageError& error) { return error.what(); }
    return {};
  };
  EXPECT_NE(refusal({"starts/hourly_simple_ff.safetensors", "other_starts"}).find("two files named hourly_simple_ff"),
            std::string::npos);
  std::vector<std::string> many(15, "seasonal_quantiles");
  many.emplace_back(other_starts);
  EXPECT_NE(refusal(many).find("found a list of 17; expected at most 16"), std::string::npos);
  c.model.name = "deepar";
  EXPECT_EQ(names(10'000), (std::vector<std::string>{"hourly_dlinear", "hourly_itransformer", "hourly_simple_ff"}));
  // For a step that none are shipped for, networks of hours and of days forecast every so many values.
  auto quarters = c;
  std::swap(c, quarters);
  c.model.name = "dlinear";
  c.dataset.frequency = "15min";
  c.dataset.prediction_length = 90;
  c.dataset.season_length = 96;
  const std::vector<std::string> hours = {"hourly_dlinear", "hourly_itransformer", "hourly_simple_ff"};
  EXPECT_EQ(names(4 * 168 - 1), std::vector<std::string>{});
  EXPECT_EQ(names(4 * 168), hours);
  auto both = hours;
  both.insert(both.end(), {"daily_dlinear", "daily_itransformer", "daily_simple_ff"});
  EXPECT_EQ(names(96 * 56), both);
  auto asked = c;
  for (const auto& network : mechanism::find_networks(asked, "config.yaml", 96 * 56)) {
    const bool of_hours = network.file.stem().string().starts_with("hourly");
    EXPECT_EQ(mechanism::steps_of_network(c, network), of_hours ? 4 : 96);
    const auto own = mechanism::config_of_network(c, network);
    EXPECT_EQ(own.dataset.prediction_length, of_hours ? 23 : 1);
    EXPECT_EQ(own.dataset.season_length, of_hours ? 24 : 7);
  }
  c.dataset.frequency = "1min";  // days would read too much
  EXPECT_EQ(names(1'000'000), hours);
  EXPECT_NE(refusal({(project_root() / "starts" / "daily_dlinear.safetensors").string()})
                .find("which read 80640 values of steps of 1min; expected at most 20000"),
            std::string::npos);
  c.dataset.frequency = "4s";
  EXPECT_EQ(names(10'000'000), std::vector<std::string>{});
  c.dataset.frequency = "25min";  // no whole part of an hour or a day
  EXPECT_EQ(names(1'000'000), std::vector<std::string>{});
  c.dataset.frequency = "1B";
  EXPECT_EQ(names(1'000'000), std::vector<std::string>{});
  std::swap(c, quarters);
  c.dataset.season_length = 12;
  EXPECT_EQ(names(10'000), std::vector<std::string>{});
}

// Weights before the first step depend on no value of the data.
TEST_F(StartFixture, IsTheSameForOtherData) {
  auto config = config_of("dlinear");
  const auto start = start_of(config);
  for (const bool fresh : {true, false}) {
    config.model.start = fresh ? "fresh" : start.file.string();
    const auto weights_on = [&](const data::PreparedData& data, const std::string& name) {
      Trainer made(settled(config, data, fresh ? std::nullopt : std::optional(start)), data, at::Device(at::kCPU),
                   folder(name + (fresh ? "f" : "s")));
      made.begin();
      return made.model().parameters().values().clone();
    };
    auto other = data_;
    for (auto& series : other.dataset.series)
      for (auto& value : series.values) value = -3.0f * value + 100.0f;
    EXPECT_TRUE(at::equal(weights_on(data_, "one"), weights_on(other, "other")));
  }
}

TEST_F(StartFixture, TheModelReadsMissingValuesAsTheConfigurationSays) {
  auto c = small_training_of("simple_ff");
  EXPECT_TRUE(model_of(c, at::TensorOptions(at::kFloat))->options().imputes);
  c.model.missing_values = "zero";
  EXPECT_FALSE(model_of(c, at::TensorOptions(at::kFloat))->options().imputes);
}

// Zero padding (Algorithms 4 and 6 of the paper) is model.missing_values: zero: a window that begins before its series
// is the window with zeros written there. By default it is the window with the mean of what is known.
TEST_F(StartFixture, ZeroPaddingIsOneSettingAway) {
  constexpr std::int64_t known = 3;  // of the context of 8
  for (const auto* name : {"simple_ff", "dlinear", "itransformer"}) {
    SCOPED_TRACE(name);
    auto c = small_training_of(name);
    const data::WindowStore store(data_.dataset, *c.model.context_length, c.dataset.prediction_length);
    const std::vector<data::WindowIndex> first = {{0, known}};
    auto values = at::empty({1, store.window_length()}, at::kFloat), observed = at::empty_like(values);
    store.gather(first, values.data_ptr<float>(), observed.data_ptr<float>());
    const auto past = *c.model.context_length, padded = past - known;
    models::WindowBatch batch{values.narrow(1, 0, past),
                              observed.narrow(1, 0, past),
                              values.narrow(1, past, 4),
                              observed.narrow(1, past, 4),
                              {}};
    EXPECT_EQ(batch.past_observed.sum().item<float>(), static_cast<float>(known));
    EXPECT_EQ(batch.past_target.narrow(1, 0, padded).abs().max().item<float>(), 0.0F);
    const auto forecast = [&](const std::string& missing_values, const at::Tensor& pads) {
      c.model.missing_values = missing_values;
      const auto model = model_of(c, at::TensorOptions(at::kFloat));
      RandomStream stream(SecretKey::from_seed(5), "initial weights", 0);
      model->initialise(stream);
      auto window = batch;
      window.past_target = at::cat({pads, batch.past_target.narrow(1, padded, known)}, 1);
      return model->distribution(window).loc.clone();
    };
    const auto zeros = at::zeros({1, padded}, at::kFloat);
    const auto means =
        at::full({1, padded}, batch.past_target.narrow(1, padded, known).mean().item<float>(), at::kFloat);
    EXPECT_TRUE(at::allclose(forecast("mean", zeros), forecast("zero", means), 1e-5, 1e-6));
    EXPECT_FALSE(at::allclose(forecast("zero", zeros), forecast("mean", zeros), 1e-3, 1e-3));
  }
}

}  // namespace
}  // namespace tsdp::training
