// What `auto` becomes: from public facts alone, and within the target.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "settings/setup.h"
#include "tsdp/base/error.h"
#include "tsdp/settings/auto_settings.h"

namespace tsdp::mechanism {
namespace {

/// All that can be `auto` is.
Config all_auto() {
  Config c;
  c.dataset.frequency = "1h";
  c.dataset.prediction_length = 30;
  c.dataset.season_length = 24;
  c.model.name = "dlinear";
  c.model.prior = PriorKind::seasonal_naive;
  c.model.start = "fresh";
  c.model.context_length = std::nullopt;
  c.sampling.auto_batch_size = true;
  c.training.max_epochs = std::nullopt;
  c.optimizer.learning_rate = std::nullopt;
  c.privacy.noise_multiplier = std::nullopt;
  return c;
}

const privacy::SeriesLengths lengths = privacy::SeriesLengths::equal(40, 5000);

TEST(AutoSettings, AreAllSettled) {
  const auto settled = settle(all_auto(), lengths, "config.yaml");
  const auto& c = settled.config;
  EXPECT_FALSE(settled.start);
  EXPECT_EQ(c.model.context_length, 48);  // two days hold 30 hours
  EXPECT_EQ(c.sampling.batch_size, 40);
  ASSERT_TRUE(c.training.max_epochs && c.privacy.noise_multiplier && c.privacy.composition &&
              c.optimizer.learning_rate);
  EXPECT_EQ(settled.chosen.size(), 7u);
  EXPECT_FALSE(c.model.auto_candidates);
  EXPECT_EQ(std::count(c.model.candidates.begin(), c.model.candidates.end(), other_starts), 0);
  EXPECT_EQ(settled.networks.size(), mixture_of(c).networks.size());
  EXPECT_EQ(settled.networks.size(), 2u);
  for (const auto& setting : settled.chosen) EXPECT_FALSE(setting.why.empty()) << setting.key;
  const auto method = method_of(c, lengths);
  const auto curve = method.privacy()->curve();
  const auto uses = uses_of_epochs(method.privacy()->theorem(), *c.training.max_epochs);
  EXPECT_TRUE(curve->certifies(c.privacy.target_epsilon, c.privacy.delta, uses));
}

// They were settled with the configuration; here they are told.
TEST(AutoSettings, TellChosenLags) {
  auto c = all_auto();
  c.model.name = "deepar";
  c.model.lags = {1, 2, 24};
  c.privacy.noise_multiplier = 3.0;  // not calibrated: that is no matter of lags
  c.privacy.composition = privacy::StepComposition::symmetrised;
  EXPECT_EQ(settle(c, lengths, "config.yaml").chosen.front().key, "model.context_length");
  c.model.chosen_lags = true;
  const auto told = settle(c, lengths, "config.yaml").chosen.front();
  EXPECT_EQ(told.key, "model.lags");
  EXPECT_EQ(told.value, "[1, 2, 24]");
}

// P = C + max(lag) − 1, whoever chose the lags: read from a file, settled, accounted.
TEST(AutoSettings, ChosenLagsAreAccountedWhole) {
  const auto file = std::filesystem::path(testing::TempDir()) / "chosen_lags.yaml";
  const auto law_with = [&](const char* lags) {
    std::ofstream(file)
        << "dataset: {path: none.csv, format: csv, frequency: 1h, prediction_length: 30, season_length: 24}\n"
           "model: {name: deepar, context_length: 48, lags: "
        << lags << "}\nsampling: {batch_size: 8}\ntraining: {max_epochs: 10}\nprivacy: {noise_multiplier: 4.0}\n";
    return scheme_of(settle(read_config(file), lengths, file).config, lengths);
  };
  const auto automatic = law_with("auto");
  EXPECT_EQ(automatic.parameters().context_length, 48 + 169 - 1);  // the last of the lags is an hour beyond a week
  EXPECT_EQ(automatic.parameters().context_length, law_with("[1, 169]").parameters().context_length);
  EXPECT_EQ(law_with("[1]").parameters().context_length, 48);
  std::filesystem::remove(file);
}

// The least size whose cuts cost a hundredth of delta, for the batches that are chosen with it; the noise pays for it.
TEST(AutoSettings, ALargestBatchFollowsTheCoins) {
  const auto many = privacy::SeriesLengths::equal(4000, 500);
  auto c = all_auto();
  c.privacy.relation = privacy::Relation::series;
  c.privacy.composition = privacy::StepComposition::symmetrised;
  c.training.max_epochs = 20;
  c.sampling.auto_batch_size = false;
  c.sampling.batch_size = 200;
  c.sampling.top_level = privacy::TopLevel::poisson;
  const auto without = settle(c, many, "config.yaml");
  c.sampling.auto_largest_batch = true;
  const auto settled = settle(c, many, "config.yaml");
  ASSERT_TRUE(settled.config.sampling.largest_batch);
  EXPECT_FALSE(settled.config.sampling.auto_largest_batch);
  const auto largest = *settled.config.sampling.largest_batch;
  EXPECT_GT(largest, 260);
  EXPECT_LT(largest, 340);
  const auto& theorem = settled.method.privacy()->theorem();
  EXPECT_GT(theorem.cut.chance(400), 0.0);
  EXPECT_LE((1.0 + std::exp(c.privacy.target_epsilon)) * theorem.cut.chance(400), 0.0101 * c.privacy.delta);
  EXPECT_GE(*settled.config.privacy.noise_multiplier, *without.config.privacy.noise_multiplier);
  EXPECT_LT(*settled.config.privacy.noise_multiplier, 1.005 * *without.config.privacy.noise_multiplier);
  EXPECT_TRUE(theorem.curve()->certifies(c.privacy.target_epsilon, c.privacy.delta, 400));
  EXPECT_EQ(settled.method.scheme().most_windows(), largest);
  require_settled(settled, many);
  // With batches of `auto`, whatever they are.
  c.sampling.auto_top_level = true;
  c.privacy.noise_mechanism = privacy::StrategyKind::identity;
  const auto chosen = settle(c, many, "config.yaml");
  ASSERT_TRUE(chosen.config.sampling.largest_batch);
  EXPECT_EQ(chosen.method.scheme().parameters().largest_batch, chosen.config.sampling.largest_batch);
  const auto uses = uses_of_epochs(chosen.method.privacy()->theorem(), 20);
  EXPECT_TRUE(chosen.method.privacy()->curve()->certifies(c.privacy.target_epsilon, c.privacy.delta, uses));
  // Two bins of 450 series where coins draw 400 on average: each law has a size of its own, and a given one that is too
  // small for bins leaves coins.
  c.sampling.batch_size = 400;
  const auto uneven = privacy::SeriesLengths::equal(900, 500);
  const auto own = settle(c, uneven, "config.yaml");
  EXPECT_GE(*own.config.sampling.largest_batch, 450);
  c.sampling.auto_largest_batch = false;
  c.sampling.largest_batch = 520;
  c.privacy.delta = 1e-3;
  EXPECT_EQ(settle(c, uneven, "config.yaml").config.sampling.largest_batch, 520);
  c.sampling.batch_size = 200;
  c.sampling.largest_batch.reset();
  c.sampling.auto_largest_batch = true;
  c.privacy.enabled = false;  // batches of one size
  EXPECT_EQ(settle(c, many, "config.yaml").config.sampling.largest_batch, std::nullopt);
}

TEST(AutoSettings, LeaveWhatIsGiven) {
  auto c = all_auto();
  c.model.context_length = 24;
  c.model.auto_candidates = false;
  c.model.candidates = {"seasonal_quantiles"};
  c.sampling.auto_batch_size = false;
  c.sampling.batch_size = 7;
  c.training.max_epochs = 11;
  c.optimizer.learning_rate = 0.5;
  c.privacy.noise_multiplier = 3.0;
  c.privacy.composition = privacy::StepComposition::symmetrised;
  c.training.trainable = Trainable::head;
  const auto settled = settle(c, lengths, "config.yaml");
  EXPECT_TRUE(settled.chosen.empty());
  EXPECT_EQ(config_text(settled.config), config_text(c));
}

TEST(AutoSettings, AreTheSameTwice) {
  EXPECT_EQ(config_text(settle(all_auto(), lengths, "a").config), config_text(settle(all_auto(), lengths, "b").config));
}

TEST(AutoSettings, ContextsFitTheSeries) {
  auto c = all_auto();
  c.privacy.enabled = false;
  c.model.prior = PriorKind::last_value;
  EXPECT_EQ(settle(c, lengths, "").config.model.context_length, 30);
  EXPECT_EQ(settle(c, privacy::SeriesLengths::equal(40, 45), "").config.model.context_length, 15);
  c.model.prior = PriorKind::seasonal_naive;
  EXPECT_EQ(settle(c, privacy::SeriesLengths::equal(40, 60), "").config.model.context_length, 30);
  EXPECT_EQ(settle(c, lengths, "").config.model.context_length, 48);
}

TEST(AutoSettings, BatchesStayBounded) {
  auto c = all_auto();
  c.privacy.enabled = false;
  c.sampling.subsequences_per_sequence = 2;
  const auto settled = settle(c, privacy::SeriesLengths::equal(1'000'000, 5000), "");
  EXPECT_EQ(settled.config.sampling.batch_size, 2 * 4096);
  EXPECT_GE(*settled.config.training.max_epochs, 1);
}

TEST(AutoSettings, FollowTheNoise) {
  auto c = all_auto();
  c.training.max_epochs = 100;
  c.privacy.noise_multiplier = 4.0;
  const double rate = *settle(c, lengths, "").config.optimizer.learning_rate;
  c.privacy.noise_multiplier = 8.0;
  EXPECT_LT(*settle(c, lengths, "").config.optimizer.learning_rate, rate);
}

// What a run is expected to learn is what its rate goes by, also where the rate is given.
TEST(AutoSettings, SayWhatTrainingIsExpectedToAdd) {
  auto c = all_auto();
  c.training.max_epochs = 100;
  c.privacy.noise_multiplier = 40.0;
  const auto quiet = settle(c, lengths, "");
  c.privacy.noise_multiplier = 80.0;
  const auto loud = settle(c, lengths, "");
  ASSERT_TRUE(quiet.expected && loud.expected);
  EXPECT_DOUBLE_EQ(quiet.expected->signal, 10.0 * 40.0 / 40.0);  // root of 100 steps, 40 windows
  EXPECT_DOUBLE_EQ(loud.expected->signal, quiet.expected->signal / 2.0);
  EXPECT_NEAR(loud.expected->share, quiet.expected->share / 4.0, 1e-15);
  EXPECT_NEAR(*loud.config.optimizer.learning_rate, *quiet.config.optimizer.learning_rate / 4.0, 1e-15);
  c.optimizer.learning_rate = 1e-3;
  EXPECT_EQ(settle(c, lengths, "").expected->share, loud.expected->share);
  c.privacy.noise_multiplier = 1e-2;
  EXPECT_LE(settle(c, lengths, "").expected->share, 1.0);
  c.privacy.target_epsilon = 0.0;
  EXPECT_FALSE(settle(c, lengths, "").expected);
  c.privacy.enabled = false;
  EXPECT_GT(settle(c, lengths, "").expected->share, loud.expected->share);
  c.model.prior = PriorKind::none;
  EXPECT_FALSE(settle(c, lengths, "").expected);
}

// A step of 40 series has 40 windows, whatever it is divided by.
TEST(AutoSettings, TheSignalIsOfTheWindowsThatAStepHas) {
  auto c = all_auto();
  c.training.max_epochs = 100;
  c.privacy.noise_multiplier = 40.0;
  c.sampling.auto_batch_size = false;
  c.sampling.batch_size = 40;
  const auto all = settle(c, lengths, "");
  c.sampling.batch_size = 4000;
  const auto more = settle(c, lengths, "");
  ASSERT_TRUE(all.expected && more.expected);
  EXPECT_DOUBLE_EQ(all.expected->signal, more.expected->signal);
  EXPECT_EQ(all.config.optimizer.learning_rate, more.config.optimizer.learning_rate);
}

// All weights of a start are trained where noise is small, else the head; within a mixture all.
TEST(AutoSettings, TrainTheHeadOfAStartWhereThereIsMuchNoise) {
  auto c = all_auto();
  c.dataset.prediction_length = 24;
  c.model.start = "auto";
  c.model.candidates = {};
  c.model.auto_candidates = false;
  c.training.max_epochs = 10'000;
  c.privacy.target_epsilon = 1e5;  // which ends no run
  const auto settled = [&](double noise) {
    c.privacy.noise_multiplier = noise;
    return settle(c, lengths, "");
  };
  constexpr double signal = 40.0 * 100.0;  // at noise 1
  const auto quiet = settled(signal / 2600.0);
  ASSERT_TRUE(quiet.start);
  EXPECT_EQ(quiet.config.training.trainable, Trainable::all);
  const auto loud = settled(signal / 1000.0);
  EXPECT_EQ(loud.config.training.trainable, Trainable::head);
  EXPECT_EQ(loud.expected->enough, 100.0);
  // The signal carries weights a thousand times as far as noise does here: by 2 at most.
  EXPECT_NEAR(*loud.config.optimizer.learning_rate, 2.0 / 1000.0 * loud.expected->share / 100.0, 1e-12);
  const auto louder = settled(signal / 50.0);
  EXPECT_NEAR(louder.expected->share / loud.expected->share, 0.25, 1e-12);
  EXPECT_NEAR(*louder.config.optimizer.learning_rate, 0.03 * louder.expected->share / 100.0, 1e-12);
  c.model.auto_candidates = true;  // a mixture
  EXPECT_EQ(settled(signal / 1000.0).config.training.trainable, Trainable::all);
  c.model.auto_candidates = false;
  c.optimizer.learning_rate = 1e-3;  // which was chosen for all weights
  EXPECT_EQ(settled(signal / 1000.0).config.training.trainable, Trainable::all);
  c.training.trainable = Trainable::head;
  EXPECT_EQ(settled(signal / 2600.0).config.training.trainable, Trainable::head);
  // Without a start, and without privacy, all is trained.
  c = all_auto();
  c.privacy.noise_multiplier = 1000.0;
  EXPECT_EQ(settle(c, lengths, "").config.training.trainable, Trainable::all);
  c.model.start = "auto";
  c.dataset.prediction_length = 24;
  c.privacy.enabled = false;
  EXPECT_EQ(settle(c, lengths, "").config.training.trainable, Trainable::all);
}

// Its windows read far more of the past than its network, and that is accounted for.
TEST(AutoSettings, AMixtureIsTrainedInFewStepsOnAllThatItReads) {
  auto c = all_auto();
  c.training.trainable = Trainable::mixture;
  const auto many = privacy::SeriesLengths::equal(500, 5000);
  const auto settled = settle(c, many, "config.yaml");
  EXPECT_EQ(settled.config.sampling.batch_size, 128);
  EXPECT_EQ(std::llround(static_cast<double>(*settled.config.training.max_epochs) *
                         static_cast<double>(settled.method.scheme().steps_per_epoch())),
            99);  // the whole epochs nearest to 100 steps: 33 of 3
  const auto mixture = mixture_of(settled.config);
  EXPECT_FALSE(mixture.has(Candidate::start));  // which is the network itself
  EXPECT_EQ(settled.method.scheme().parameters().context_length, mixture.past_length(48, 30));
  EXPECT_GT(mixture.past_length(48, 30), 56 * 24);
}

// Where nothing was chosen for weights, and where a mixture can be trained.
TEST(AutoSettings, TrainTheMixtureOfManySeries) {
  const auto quiet = [] {
    auto c = all_auto();
    c.privacy.noise_multiplier = 2.0;
    return c;
  };
  const auto of = [](std::int64_t series, std::int64_t length = 5000) {
    return privacy::SeriesLengths::equal(series, length);
  };
  const auto chosen = [](const Config& c, const privacy::SeriesLengths& series, SettleLimits limits = {}) {
    return settle(c, series, "config.yaml", limits).config.training.trainable;
  };
  const auto settled = settle(quiet(), of(200), "config.yaml");
  EXPECT_EQ(settled.config.training.trainable, Trainable::mixture);
  // The run is that of whoever asks for it.
  auto asked = quiet();
  asked.training.trainable = Trainable::mixture;
  const auto same = settle(asked, of(200), "config.yaml");
  EXPECT_EQ(config_text(same.config), config_text(settled.config));
  EXPECT_EQ(same.method.scheme().parameters().context_length, settled.method.scheme().parameters().context_length);

  EXPECT_EQ(chosen(quiet(), of(199)), Trainable::all);
  EXPECT_EQ(chosen(quiet(), of(200, 100)), Trainable::all);  // too short for a forecast of the past to be judged
  SettleLimits on_a_gpu;
  on_a_gpu.trains_mixtures = false;
  EXPECT_EQ(chosen(quiet(), of(200), on_a_gpu), Trainable::all);
  const auto with = [&](const std::function<void(Config&)>& set) {
    auto c = quiet();
    set(c);
    return chosen(c, of(200));
  };
  EXPECT_EQ(with([](Config& c) { c.privacy.enabled = false; }), Trainable::all);
  EXPECT_EQ(with([](Config& c) { c.privacy.target_epsilon = 0.5; }), Trainable::all);
  EXPECT_EQ(chosen(quiet(), of(400, 600)), Trainable::mixture);  // no two windows of a series lie apart
  EXPECT_EQ(chosen(quiet(), of(399, 600)), Trainable::all);
  EXPECT_EQ(with([](Config& c) { c.training.max_epochs = 10; }), Trainable::all);
  EXPECT_EQ(with([](Config& c) { c.optimizer.learning_rate = 1e-3; }), Trainable::all);
  EXPECT_EQ(with([](Config& c) { c.training.trainable = Trainable::all; }), Trainable::all);
  EXPECT_EQ(with([](Config& c) { c.dataset.covariates = "weather.csv"; }), Trainable::all);
  EXPECT_EQ(with([](Config& c) { c.model.sampled_forecasts = true; }), Trainable::all);
  EXPECT_EQ(with([](Config& c) { c.model.prior = PriorKind::none; }), Trainable::all);
  EXPECT_EQ(with([](Config& c) {
              c.model.candidates = {};
              c.model.auto_candidates = false;
            }),
            Trainable::all);
  EXPECT_EQ(with([](Config& c) {
              c.model.name = "itransformer";
              c.dataset.value_columns = {"pulse", "pressure"};
            }),
            Trainable::all);
}

TEST(AutoSettings, AMixtureThatCannotBeTrainedIsRefused) {
  const auto expect_refused = [](const std::string& part, const std::function<void(Config&)>& set) {
    auto c = all_auto();
    c.training.trainable = Trainable::mixture;
    set(c);
    try {
      static_cast<void>(settle(c, lengths, "config.yaml"));
      FAIL() << "not refused: " << part;
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  const auto given = [](Config& c, std::vector<std::string> candidates) {
    c.model.candidates = std::move(candidates);
    c.model.auto_candidates = false;
  };
  expect_refused("random weights", [&](Config& c) {
    c.model.prior = PriorKind::none;
    given(c, {"seasonal_quantiles"});
  });
  expect_refused("no candidates that a series' own past gives", [&](Config& c) { given(c, {"start"}); });
  const auto named = (project_root() / "starts" / "hourly_itransformer.safetensors").string();
  expect_refused("reads 168 values where the others read 130",
                 [&](Config& c) { given(c, {"last_value_bands", named}); });
  // Those that nobody named are left out.
  auto c = all_auto();
  c.training.trainable = Trainable::mixture;
  given(c, {"last_value_bands", "other_starts"});
  EXPECT_TRUE(settle(c, lengths, "config.yaml").networks.empty());
}

// Where no window of any series can be judged by one before it, all losses are 0: training would spend epsilon on
// nothing.
TEST(AutoSettings, AMixtureIsNotTrainedOnSeriesTooShortToJudge) {
  auto c = all_auto();
  c.training.trainable = Trainable::mixture;
  c.model.candidates = {"seasonal_quantiles"};
  c.model.auto_candidates = false;
  const auto mixture = mixture_of(c);
  // A window with its horizon, one stride after another that has the longest season and a value before it.
  const auto least = mixture.stride + std::max<std::int64_t>(mixture.longest_season(), 30) + 1 + 30;
  EXPECT_NO_THROW(static_cast<void>(settle(c, privacy::SeriesLengths({50, least}), "config.yaml")));
  try {
    static_cast<void>(settle(c, privacy::SeriesLengths({50, least - 1}), "config.yaml"));
    FAIL() << "not refused";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find(cat("at most ", least - 1, " values to train on")), std::string::npos)
        << error.what();
  }
}

// One series that begins late sets the noise of all; the others are as if it were not there.
TEST(AutoSettings, TellWhatWouldChangeTheNoise) {
  auto c = all_auto();
  c.training.max_epochs = 200;
  std::vector<std::int64_t> with_one_short(40, 5000);
  with_one_short[7] = 600;
  const privacy::SeriesLengths uneven(with_one_short);
  const auto settled = settle(c, uneven, "");
  const auto told = alternatives(c, uneven, "", settled);
  ASSERT_EQ(told.size(), 3u);
  EXPECT_EQ(told[0].what, "without the 1 series of fewer than 5000 training values");
  const auto rest = settle(c, privacy::SeriesLengths::equal(39, 5000), "");
  EXPECT_EQ(told[0].noise_multiplier, *rest.config.privacy.noise_multiplier);
  EXPECT_EQ(told[0].signal, rest.expected->signal);
  EXPECT_GT(told[0].signal, 1.5 * settled.expected->signal);
  EXPECT_GT(told[1].signal, settled.expected->signal);  // twice the epsilon
  EXPECT_LT(told[2].signal, settled.expected->signal);  // a season of values
  EXPECT_NE(told[2].what.find("privacy.w=24"), std::string::npos);
  EXPECT_EQ(alternatives(c, lengths, "", settle(c, lengths, "")).size(), 2u);  // all have one length
  c.privacy.noise_multiplier = 4.0;
  EXPECT_TRUE(alternatives(c, uneven, "", settle(c, uneven, "")).empty());
  c.privacy.enabled = false;
  EXPECT_TRUE(alternatives(c, uneven, "", settle(c, uneven, "")).empty());
}

TEST(AutoSettings, FewWindowsStayNearTheirStart) {
  auto c = all_auto();
  c.training.max_epochs = 1000;
  c.privacy.noise_multiplier = 4.0;
  c.privacy.target_epsilon = 1e5;  // which ends no run
  const auto rate = [&](const privacy::SeriesLengths& of) { return *settle(c, of, "").config.optimizer.learning_rate; };
  // 40 series tell as much as 40 / (1 + 39 / 10) = 8.16: with 78 values a window, 400 windows are 3,823 values of each.
  EXPECT_EQ(rate(privacy::SeriesLengths::equal(40, 5000)), rate(privacy::SeriesLengths::equal(40, 10000)));
  EXPECT_NEAR(rate(privacy::SeriesLengths::equal(40, 1000)) / rate(privacy::SeriesLengths::equal(40, 2000)), 0.25,
              1e-12);
  // A walk needs ten times as many.
  const double seasonal = rate(privacy::SeriesLengths::equal(40, 1000));
  c.model.context_length = 48;
  c.model.prior = PriorKind::last_value;
  EXPECT_NEAR(rate(privacy::SeriesLengths::equal(40, 1000)) / seasonal, 0.01, 1e-12);
  // It holds without privacy, too: what is learnt from few windows is no noise, but it does not last.
  c.privacy.enabled = false;
  EXPECT_NEAR(rate(privacy::SeriesLengths::equal(40, 1000)) / rate(privacy::SeriesLengths::equal(40, 2000)), 0.25,
              1e-12);
  // More series hardly help, as they share their days: 1,000 tell as much as 9.9, not 25 times as much as 40. (One step
  // an epoch, both.)
  EXPECT_NEAR(rate(privacy::SeriesLengths::equal(1000, 1000)) / rate(privacy::SeriesLengths::equal(40, 1000)),
              std::pow((1000 / 100.9) / (40 / 4.9), 2.0), 1e-9);
}

TEST(AutoSettings, ShippedWeightsAreTakenWhereTheyFit) {
  auto c = all_auto();
  c.privacy.enabled = false;
  c.model.start = "auto";
  c.dataset.prediction_length = 24;
  const auto settled = settle(c, lengths, "");
  ASSERT_TRUE(settled.start);
  EXPECT_EQ(settled.config.model.context_length, 168);
  EXPECT_EQ(settled.start->origin, StartOrigin::synthetic);
  // Not where the series are shorter than what they read, nor for longer forecasts, other seasons or without the prior.
  EXPECT_FALSE(settle(c, privacy::SeriesLengths::equal(40, 150), "").start);
  const auto none = [&](auto change) {
    auto other = c;
    change(other);
    return !settle(other, lengths, "").start;
  };
  EXPECT_TRUE(none([](Config& o) { o.dataset.prediction_length = 49; }));
  EXPECT_TRUE(none([](Config& o) { o.dataset.season_length = 12; }));
  EXPECT_TRUE(none([](Config& o) { o.model.prior = PriorKind::none; }));
  EXPECT_TRUE(none([](Config& o) { o.model.context_length = 24; }));
}

TEST(AutoSettings, NoSuchStart) {
  auto c = all_auto();
  c.model.start = "pretrained";
  c.dataset.frequency = "7min";
  try {
    static_cast<void>(settle(c, lengths, "config.yaml"));
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("model.start: found pretrained"), std::string::npos) << error.what();
  }
  c.model.start = "auto";
  EXPECT_EQ(settle(c, lengths, "config.yaml").config.model.start, "fresh");
}

}  // namespace
}  // namespace tsdp::mechanism
