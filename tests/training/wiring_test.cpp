// What a trainer releases, made again from the parts that the theorems are about: sampler, clipping, normals,
// accountant. The parts have tests of their own; here it is tested that they are put together as the accountant
// believes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <boost/math/distributions/normal.hpp>

#include "dp/device_kind.h"
#include "privacy/adaptive/adaptive_curve.h"
#include "run/charge.h"
#include "run/checkpoint.h"
#include "sampling/augmentation.h"
#include "sampling/structured_sampler.h"
#include "settings/setup.h"
#include "support/clipped_sum.h"
#include "support/series_sum.h"
#include "training/model_setup.h"
#include "training/shared_facts.h"
#include "training/start_weights.h"
#include "training/step_engine.h"
#include "training/window_source.h"
#include "training_fixture.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/json.h"
#include "tsdp/privacy/accountant/accountant.h"
#include "tsdp/privacy/matrix/strategy_search.h"

namespace tsdp::training {
namespace {

constexpr std::uint64_t seed = 7;
constexpr std::array of_networks = {Trainable::all, Trainable::head};

/// One way of putting the parts together.
struct Case {
  std::string name;
  std::function<void(Config&)> set;
  double divisor = 3.0;  ///< of the steps' sums
};

/// Six whole series as records, two windows of each that is drawn.
std::function<void(Config&)> whole_series(privacy::TopLevel sampler, std::function<void(Config&)> more = nullptr) {
  return [=](Config& c) {
    c.privacy.relation = privacy::Relation::series;
    c.sampling.top_level = sampler;
    c.sampling.subsequences_per_sequence = 2;
    c.sampling.batch_size = 8;
    if (more) more(c);
  };
}

/// Three batches an epoch, with noise that later steps take back in part.
std::function<void(Config&)> correlated(privacy::TopLevel sampler, privacy::StrategyKind mechanism) {
  return whole_series(sampler, [=](Config& c) {
    c.sampling.batch_size.reset();
    c.sampling.batches = 3;
    if (sampler == privacy::TopLevel::shuffled) c.sampling.reshuffle = privacy::Reshuffle::once;
    const bool cyclic = sampler == privacy::TopLevel::cyclic_poisson;
    c.privacy.noise_multiplier = cyclic ? 5.0 : 20.0;
    c.privacy.noise_mechanism = mechanism;
    c.privacy.noise_bands = cyclic ? 2 : 3;  // coins that do not always show heads
    if (mechanism == privacy::StrategyKind::file) {
      c.privacy.noise_coefficients = "coefficients.json";
      c.privacy.noise_recursion = {privacy::NoiseRecursion::Form::banded, {2.0, 0.75, 0.25}, {}, {}};
    }
    c.training.max_epochs = 4;
  });
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"wor, wr", [](Config&) {}},
      {"wor, poisson", [](Config& c) { c.sampling.bottom_level = privacy::BottomLevel::poisson; }},
      {"wor, wr, two windows a series",
       [](Config& c) {
         c.sampling.batch_size = 6;
         c.sampling.subsequences_per_sequence = 2;
       },
       6.0},
      {"wor, poisson, three windows a series",
       [](Config& c) {
         c.sampling.bottom_level = privacy::BottomLevel::poisson;
         c.sampling.batch_size = 9;
         c.sampling.subsequences_per_sequence = 3;
       },
       9.0},
      {"deterministic, wr", [](Config& c) { c.sampling.top_level = privacy::TopLevel::deterministic; }},
      {"deterministic, poisson",
       [](Config& c) {
         c.sampling.top_level = privacy::TopLevel::deterministic;
         c.sampling.bottom_level = privacy::BottomLevel::poisson;
       }},
      {"shuffled, wr", [](Config& c) { c.sampling.top_level = privacy::TopLevel::shuffled; }},
      {"shuffled, poisson, two windows a series",
       [](Config& c) {
         c.sampling.top_level = privacy::TopLevel::shuffled;
         c.sampling.bottom_level = privacy::BottomLevel::poisson;
         c.sampling.subsequences_per_sequence = 2;
         c.sampling.batch_size = 4;
       },
       4.0},
      {"poisson, wr", [](Config& c) { c.sampling.top_level = privacy::TopLevel::poisson; }},
      {"poisson, poisson, two windows a series",
       [](Config& c) {
         c.sampling.top_level = privacy::TopLevel::poisson;
         c.sampling.bottom_level = privacy::BottomLevel::poisson;
         c.sampling.subsequences_per_sequence = 2;
         c.sampling.batch_size = 4;
       },
       4.0},
      {"a batch size that the series do not fill",  // N′ = 6 < 16: the divisor stays 16
       [](Config& c) { c.sampling.batch_size = 16; }, 16.0},
      {"noise on data",
       [](Config& c) {
         c.privacy.v = 0.5;
         c.augmentation.context_noise = c.augmentation.forecast_noise = 2.0;
       }},
      {"unequal noise on data",
       [](Config& c) {
         c.privacy.v = 0.25;
         c.augmentation.context_noise = 1.0;
         c.augmentation.forecast_noise = 3.0;
       }},
      {"per layer", [](Config& c) { c.privacy.clipping = privacy::ClippingKind::per_layer; }},
      {"automatic", [](Config& c) { c.privacy.clipping = privacy::ClippingKind::automatic; }},
      // Batches of four: two series and two ghosts in the last one, and four is what is divided by.
      {"series, deterministic", whole_series(privacy::TopLevel::deterministic), 4.0},
      {"series, shuffled", whole_series(privacy::TopLevel::shuffled), 4.0},
      {"series, shuffled once, per layer",
       whole_series(privacy::TopLevel::shuffled,
                    [](Config& c) {
                      c.sampling.reshuffle = privacy::Reshuffle::once;
                      c.privacy.clipping = privacy::ClippingKind::per_layer;
                    }),
       4.0},
      {"series, poisson", whole_series(privacy::TopLevel::poisson), 4.0},
      {"series, poisson at a rate, windows by coins, automatic",
       whole_series(privacy::TopLevel::poisson,
                    [](Config& c) {
                      c.sampling.batch_size.reset();
                      c.sampling.rate = 0.25;
                      c.sampling.bottom_level = privacy::BottomLevel::poisson;
                      c.privacy.clipping = privacy::ClippingKind::automatic;
                    }),
       1.5},
      {"series, wor", whole_series(privacy::TopLevel::without_replacement), 4.0},
      {"series, three bins",
       whole_series(privacy::TopLevel::balls_in_bins,
                    [](Config& c) {
                      c.sampling.batch_size.reset();
                      c.sampling.batches = 3;
                      c.privacy.noise_multiplier = 8.0;  // of which the exact profile is quickly made
                    }),
       2.0},
      {"series, three bins, redrawn",
       whole_series(privacy::TopLevel::balls_in_bins,
                    [](Config& c) {
                      c.sampling.batch_size.reset();
                      c.sampling.batches = 3;
                      c.sampling.redraw = privacy::Redraw::every_epoch;
                      c.privacy.noise_multiplier = 8.0;
                    }),
       2.0},
      {"series, cyclic coins, bsr", correlated(privacy::TopLevel::cyclic_poisson, privacy::StrategyKind::bsr), 2.0},
      {"series, cyclic coins, band_mf", correlated(privacy::TopLevel::cyclic_poisson, privacy::StrategyKind::band_mf),
       2.0},
      {"series, three bins, bsr", correlated(privacy::TopLevel::balls_in_bins, privacy::StrategyKind::bsr), 2.0},
      {"series, three bins, bisr", correlated(privacy::TopLevel::balls_in_bins, privacy::StrategyKind::bisr), 2.0},
      {"series, three bins, band_mf", correlated(privacy::TopLevel::balls_in_bins, privacy::StrategyKind::band_mf),
       2.0},
      {"series, three bins, band_inv_mf",
       correlated(privacy::TopLevel::balls_in_bins, privacy::StrategyKind::band_inv_mf), 2.0},
      {"series, three bins, blt", correlated(privacy::TopLevel::balls_in_bins, privacy::StrategyKind::blt), 2.0},
      {"series, three bins, file", correlated(privacy::TopLevel::balls_in_bins, privacy::StrategyKind::file), 2.0},
      {"series, deterministic, bisr", correlated(privacy::TopLevel::deterministic, privacy::StrategyKind::bisr), 2.0},
      {"series, shuffled once, blt", correlated(privacy::TopLevel::shuffled, privacy::StrategyKind::blt), 2.0},
      {"series, shuffled, bsr",
       [](Config& c) {
         correlated(privacy::TopLevel::shuffled, privacy::StrategyKind::bsr)(c);
         c.sampling.reshuffle = privacy::Reshuffle::every_epoch;
       },
       2.0},
      {"series, three bins, redrawn, bsr",
       [](Config& c) {
         correlated(privacy::TopLevel::balls_in_bins, privacy::StrategyKind::bsr)(c);
         c.sampling.redraw = privacy::Redraw::every_epoch;
       },
       2.0},
  };
  return all;
}

class Wiring : public TrainingFixture {
 protected:
  /// Whether steps of this run may be replayed in another process.
  [[nodiscard]] bool says_that_it_repeats(const std::string& name) const {
    return load_checkpoint(folder(name).last())->environment.find(", process ") == std::string::npos;
  }

  /// Takes `steps` steps and expects each release to be (Σ clipped + σ C x_t) / divisor of the records of step t, x the
  /// t-th row of C⁻¹Z; of independent noise it is z_t. Steps are taken by 1 to `in_turn` threads in
  /// turn, or always by as many as before.
  void expect_releases(const Config& given, const std::string& name, std::uint64_t steps, double divisor = 3.0,
                       int in_turn = 0) {
    auto config = given;
    config.training.reproducible = true;
    config.training.seed = seed;
    const auto t = trainer(name, config);
    t->begin();
    const auto key = SecretKey::from_seed(seed);
    const auto key_of_windows = data_.shards ? sampling_key_of(key, key_print(key)) : key;
    const auto type = at::TensorOptions(at::kFloat);
    const auto model = model_of(config, type);
    initialise(*model, config.training.seed, std::nullopt);  // what a step leaves as it is
    const data::WindowStore store(data_.dataset, model->past_length(), config.dataset.prediction_length);
    WindowSource source(store, features_of(*model, data_.dataset), type);
    const auto law = mechanism::scheme_of(config, data_.training_lengths());
    sampling::StructuredSampler sampler(law);
    const dp::Clipping clipping{
        config.privacy.clip_norm,
        config.privacy.clipping == privacy::ClippingKind::automatic ? dp::ClipFactor::automatic : dp::ClipFactor::exact,
        config.privacy.clipping == privacy::ClippingKind::per_layer};
    const double deviation = *config.privacy.noise_multiplier * config.privacy.clip_norm;
    const bool noisy = config.augmentation.context_noise > 0.0 || config.augmentation.forecast_noise > 0.0;
    std::vector<double> inverse;  // first column of C⁻¹
    if (config.privacy.noise_mechanism != privacy::StrategyKind::identity)
      inverse = privacy::planned_strategy(config.privacy.wanted_strategy(*config.privacy.noise_mechanism),
                                          law.steps_per_epoch(), *config.training.max_epochs)
                    .inverse();
    bool any = false;
    for (std::uint64_t step = 0; step < steps; ++step) {
      std::optional<Threads> some;
      if (in_turn > 0) some.emplace(1 + static_cast<int>(step) % in_turn);
      model->parameters().values().copy_(t->model().parameters().values());
      const auto [windows, places] = sampler.draw(key_of_windows, step);
      any = any || !windows.empty();
      const auto drawn = windows.size();  // lambdas of some compilers take no structured binding
      model->parameters().gradients().zero_();
      WindowSource::Augment augment;
      if (noisy)
        augment = [&](const double* exact, float* values, const float* observed) {
          const RandomStream draws_of_data(key, sampling::augmentation_purpose, step);
          const auto count = static_cast<std::int64_t>(drawn);
          if (exact != nullptr)
            sampling::augment(law, *config.privacy.v, draws_of_data, count, store.past_length(), exact, values,
                              observed);
          else sampling::augment(law, *config.privacy.v, draws_of_data, count, store.past_length(), values, observed);
        };
      auto sum = at::zeros_like(model->parameters().gradients(), at::kDouble);
      const bool of_series = config.privacy.relation == privacy::Relation::series;
      const auto variables = data_.dataset.variable_count();
      if (of_series || variables > 1) {
        auto records = places;  // of a series; else the variables' windows of the same steps, which are side by side
        for (std::size_t w = 0; w < drawn && !of_series; ++w) records[w] = static_cast<std::int64_t>(w) / variables;
        std::vector<double> norms;
        if (!windows.empty())
          sum = test::clipped_series_sum(
              *model, source.gather(windows, augment), records, {config.privacy.clipping, config.privacy.clip_norm},
              variables * (of_series ? config.sampling.subsequences_per_sequence : 1), norms);
      } else if (!windows.empty()) {
        test::clipped_sum(*model, source.gather(windows, augment), clipping);
        sum = model->parameters().gradients().to(at::kDouble);
      }
      auto noise = at::zeros({model->parameters().trained_count()}, at::kDouble);
      for (std::uint64_t earlier = 0; earlier <= step; ++earlier) {
        const double share = inverse.empty() ? (earlier == step ? 1.0 : 0.0) : inverse[step - earlier];
        if (share == 0.0) continue;
        std::vector<double> z(static_cast<std::size_t>(model->parameters().trained_count()));
        RandomStream(key, dp::noise_purpose, earlier).normals(0, z);
        noise += at::tensor(z, at::kDouble) * (share * deviation);
      }
      const auto expected = (sum + noise) / divisor;
      t->run({.most_steps = 1});
      const auto found = t->model().parameters().gradients().to(at::kDouble);
      // The guard takes 0.3 % of C at most; every planted error moves a release by more than 2 % of a deviation.
      const double off = (found - expected).norm().item<double>() * divisor;
      EXPECT_LT(off, 0.004 * config.privacy.clip_norm * static_cast<double>(windows.size()) + 1e-4 * deviation)
          << "step " << step << " of " << windows.size() << " windows";
    }
    EXPECT_TRUE(any);
  }
};

TEST_F(Wiring, EveryReleaseIsTheMechanismsOwn) {
  for (const auto& c : cases()) {
    SCOPED_TRACE(c.name);
    auto config = small_training();
    c.set(config);
    expect_releases(config, c.name, 5, c.divisor, 3);
  }
}

// Where the series lie in several files, the windows of a step are summed file by file, in whole numbers.
TEST_F(Wiring, EveryReleaseOfSeveralFilesIsTheMechanismsOwn) {
  data_ = in_files(waves(), {2, 1, 3});
  for (const auto& c : cases()) {
    auto config = small_training();
    c.set(config);
    if (config.augmentation.context_noise > 0.0) continue;
    if (config.privacy.noise_mechanism != privacy::StrategyKind::identity && c.name != "series, three bins, blt")
      continue;
    SCOPED_TRACE(c.name);
    expect_releases(config, "files, " + c.name, 5, c.divisor, 3);
  }
}

// All series of an owner are one record: their windows are clipped together, wherever they come from.
TEST_F(Wiring, OwnersAreTheRecordsWhereSeriesHaveThem) {
  data_.dataset.owner = {0, 0, 1, 2, 1, 0};
  for (const auto sampler : {privacy::TopLevel::without_replacement, privacy::TopLevel::poisson,
                             privacy::TopLevel::balls_in_bins, privacy::TopLevel::deterministic}) {
    const std::string name = tsdp::name(sampler);
    SCOPED_TRACE(name);
    auto config = small_training();
    whole_series(sampler)(config);
    expect_releases(config, name, 5, 3.0);
    const auto ledger =
        mechanism::read_ledger(nlohmann::ordered_json::parse(read_file(folder(name).ledger())), "ledger");
    EXPECT_EQ(ledger.method.scheme().sequences(), 3);
    EXPECT_EQ(ledger.method.privacy()->unit(), mechanism::unit_of(config, data_.training_lengths()));
    EXPECT_NE(mechanism::statement(ledger).find("whether all series of one owner are in the data"), std::string::npos);
  }
}

// What a series has at one step is one record, whatever the model makes of its variables.
TEST_F(Wiring, TheVariablesOfASeriesAreOneRecord) {
  data_.dataset.variables = {"first", "second"};
  // Of three series, of which all are in each batch; and whole ones, of which two are.
  std::vector<Case> all;
  for (const auto& c : cases())
    if (c.name == "wor, wr" || c.name == "wor, poisson, three windows a series") all.push_back(c);
  ASSERT_EQ(all.size(), 2U);
  all.push_back({"poisson, wr, per layer", [](Config& c) {
                   c.sampling.top_level = privacy::TopLevel::poisson;
                   c.privacy.clipping = privacy::ClippingKind::per_layer;
                 }});
  all.push_back({"series, wor, three windows a series",
                 whole_series(privacy::TopLevel::without_replacement,
                              [](Config& c) {
                                c.sampling.batch_size = 6;
                                c.sampling.subsequences_per_sequence = 3;
                                c.privacy.noise_multiplier = 8.0;
                              }),
                 2.0});
  int threads = 1;
  for (const auto& model : models::model_names())
    for (const auto& c : all) {
      const Threads some(threads = 3 - threads);
      const auto called = cat(model, ", ", c.name);
      SCOPED_TRACE(called);
      auto config = small_training_of(model);
      config.dataset.value_columns = data_.dataset.variables;
      c.set(config);
      expect_releases(config, called, 3, c.divisor);
      const auto ledger =
          mechanism::read_ledger(nlohmann::ordered_json::parse(read_file(folder(called).ledger())), "ledger");
      EXPECT_EQ(ledger.method.scheme().sequences(), 3);
      EXPECT_EQ(ledger.method.scheme().variables(), 2);
      EXPECT_EQ(ledger.method.privacy()->unit(), mechanism::unit_of(config, data_.training_lengths()));
      EXPECT_NE(mechanism::statement(ledger).find("all 2 variables"), std::string::npos);
    }
  // A model that couples rows of which a record has others would spread a value over several records.
  auto config = small_training_of("itransformer");
  config.dataset.value_columns = {"first", "second", "third"};
  EXPECT_THROW(trainer("others", config), PrivacyError);
}

TEST_F(Wiring, EveryModelReleasesTheMechanismsOwn) {
  for (const auto& model : models::model_names())
    for (const auto trainable : of_networks)
      for (const auto& clipping : all_names<privacy::ClippingKind>())
        for (const auto& bottom : all_names<privacy::BottomLevel>()) {
          SCOPED_TRACE(cat(model, ", ", name(trainable), ", ", clipping, ", ", bottom));
          auto config = small_training_of(model);
          config.training.trainable = trainable;
          config.privacy.clipping = named<privacy::ClippingKind>(clipping, "a case");
          config.sampling.bottom_level = named<privacy::BottomLevel>(bottom, "a case");
          expect_releases(config, cat(model, name(trainable), clipping, bottom), 3);
        }
}

TEST_F(Wiring, AMixtureReleasesTheMechanismsOwn) {
  int threads = 1;
  for (const auto relation : {privacy::Relation::event, privacy::Relation::series})
    for (const auto& clipping : all_names<privacy::ClippingKind>()) {
      const Threads some(threads = 3 - threads);
      const auto called = cat(name(relation), ", ", clipping, ", threads ", threads);
      SCOPED_TRACE(called);
      auto config = small_training();
      if (relation == privacy::Relation::series) whole_series(privacy::TopLevel::poisson)(config);
      config.dataset.season_length = 6;
      config.model.prior = PriorKind::last_value;
      config.model.candidates = {"seasonal_quantiles", "last_value_bands"};
      config.training.trainable = Trainable::mixture;
      config.privacy.clipping = named<privacy::ClippingKind>(clipping, "a case");
      config.privacy.clip_norm = 2e-4;
      expect_releases(config, called, 3, relation == privacy::Relation::series ? 4.0 : 3.0);
      // What is accounted is all that a window reads: 57 seasons before 20 windows, each 6 steps before the next.
      const auto ledger =
          mechanism::read_ledger(nlohmann::ordered_json::parse(read_file(folder(called).ledger())), "ledger");
      EXPECT_EQ(ledger.method.scheme().parameters().context_length, 57 * 6 + 20 * 6);
    }
}

// Weights after a step are Adam's of the rate that this step should have: of a mixture one that ends at 0.
TEST_F(Wiring, OnlyAMixturesRateFalls) {
  for (const auto trainable : {Trainable::all, Trainable::mixture}) {
    const auto called = name(trainable);
    SCOPED_TRACE(called);
    auto config = small_training();
    config.dataset.season_length = 6;
    config.model.prior = PriorKind::last_value;
    config.model.candidates = {"seasonal_quantiles", "last_value_bands"};
    config.training.trainable = trainable;
    config.training.max_epochs = 10;
    config.optimizer.learning_rate = 0.02;
    config.optimizer.weight_decay = 0.0;
    const auto t = trainer(called, config);
    t->begin();
    const auto steps = t->plan().steps;
    ASSERT_GE(steps, 10U);
    const auto values = [&] { return t->model().parameters().values().to(at::kDouble).clone(); };
    auto first = at::zeros_like(values()), second = first.clone();
    for (std::uint64_t step = 0; step < steps; ++step) {
      const auto before = values();
      t->run({.most_steps = 1});
      const auto gradient = t->model().parameters().gradients().to(at::kDouble);
      first = 0.9 * first + 0.1 * gradient;
      second = 0.999 * second + 0.001 * gradient * gradient;
      const double taken = static_cast<double>(step) + 1.0,
                   left = 1.0 - static_cast<double>(step) / static_cast<double>(steps);
      const auto direction =
          first / (1.0 - std::pow(0.9, taken)) / ((second / (1.0 - std::pow(0.999, taken))).sqrt() + 1e-8);
      const double rate = 0.02 * (trainable == Trainable::mixture ? std::min(1.0, 2.0 * left) : 1.0);
      const auto moved = before - values();
      EXPECT_LT((moved - rate * direction).norm().item<double>(), 1e-3 * moved.norm().item<double>() + 1e-6)
          << "step " << step;
    }
  }
}

// A covariate of a step reaches the loss of no window but those that its value reaches, which are what is accounted,
// and of no other series. So it is protected with its value.
TEST_F(Wiring, ACovariateReachesTheWindowsOfItsStepAlone) {
  auto config = small_training_of("deepar");
  config.dataset.covariate_columns = {"first", "second"};
  auto& known = data_.dataset.covariates;
  known.names = config.dataset.covariate_columns;
  RandomStream draws(SecretKey::from_seed(3), "covariates", 0);
  for (std::size_t s = 0; s < data_.dataset.series.size(); ++s) {
    data::Covariates::Table table{data_.dataset.series[s].start, {}};
    for (std::size_t i = 0; i < 2 * data_.dataset.series[s].values.size(); ++i)
      table.values.push_back(static_cast<float>(draws.uniform()));
    known.tables.push_back(std::move(table));
    known.table_of.push_back(s);
  }
  const auto type = at::TensorOptions(at::kFloat);
  const auto model = model_of(config, type);
  initialise(*model, 1, std::nullopt);
  const data::WindowStore store(data_.dataset, model->past_length(), config.dataset.prediction_length);
  std::vector<data::WindowIndex> windows;
  for (std::size_t s = 0; s < data_.dataset.series.size(); ++s) {
    const auto length = static_cast<std::int64_t>(data_.dataset.series[s].values.size());
    for (std::int64_t start = 0; start + 4 <= length; ++start) windows.push_back({static_cast<std::int64_t>(s), start});
  }
  const auto losses = [&] {
    WindowSource source(store, features_of(*model, data_.dataset), type);
    return model->losses(source.gather(windows)).clone();
  };
  const auto before = losses();
  const auto context = mechanism::accounted_context(config);
  constexpr std::int64_t place = 60;
  for (const std::size_t column : {0U, 1U}) {
    auto& changed = known.tables[2].values[2 * static_cast<std::size_t>(place) + column];
    changed += 3.0F;
    const auto differ = (losses() != before);
    changed -= 3.0F;
    std::int64_t count = 0;
    for (std::size_t i = 0; i < windows.size(); ++i) {
      if (!differ[static_cast<std::int64_t>(i)].item<bool>()) continue;
      ++count;
      EXPECT_EQ(windows[i].series, 2);
      EXPECT_GE(place, windows[i].start - context);
      EXPECT_LT(place, windows[i].start + 4);
    }
    EXPECT_EQ(count, 4 + config.model.context_length.value() - 1);  // the context's first step is not read
  }
}

/// While it lives, the CPU is a device that records: it keeps the work and does it again.
class RecordingCpu {
 public:
  RecordingCpu() {
    dp::register_device_kind(at::kCPU, {[this] { return std::make_unique<Kept>(*this); }, {}});
  }
  ~RecordingCpu() { dp::register_device_kind(at::kCPU, {}); }
  RecordingCpu(const RecordingCpu&) = delete;
  RecordingCpu& operator=(const RecordingCpu&) = delete;

  std::function<void()> last;  ///< what was replayed last
  int replays = 0;
  bool varies = false;  ///< every other replay does its work twice

 private:
  class Kept final : public dp::DeviceGraph {
   public:
    explicit Kept(RecordingCpu& of) : of_(of) {}
    void record(const std::function<void()>& work) override { work_ = work; }
    void replay() override {
      of_.last = work_;
      work_();
      if (++of_.replays % 2 == 0 && of_.varies) work_();
    }

   private:
    RecordingCpu& of_;
    std::function<void()> work_;
  };
};

TEST_F(Wiring, ReplayedStepsReleaseTheMechanismsOwn) {
  const Threads one(1);
  RecordingCpu recording;
  for (const auto& c : cases()) {
    SCOPED_TRACE(c.name);
    auto config = small_training();
    c.set(config);
    if (!config.privacy.noise_mechanism || *config.privacy.noise_mechanism != privacy::StrategyKind::identity) continue;
    const auto before = recording.replays;
    expect_releases(config, c.name, 5, c.divisor);
    // Not replayed: records of several windows, and noise on the data, which the host adds.
    const bool is_replayed = config.privacy.relation != privacy::Relation::series && !config.privacy.v;
    EXPECT_EQ(recording.replays > before, is_replayed);
  }
}

TEST_F(Wiring, ReplayedStepsOfEveryModelReleaseTheMechanismsOwn) {
  const Threads one(1);
  const RecordingCpu recording;
  for (const auto& model : models::model_names())
    for (const auto& clipping : all_names<privacy::ClippingKind>()) {
      SCOPED_TRACE(model + ", " + clipping);
      auto config = small_training_of(model);
      config.privacy.clipping = named<privacy::ClippingKind>(clipping, "a case");
      config.sampling.bottom_level = privacy::BottomLevel::poisson;
      for (const auto trainable : of_networks) {
        config.training.trainable = trainable;
        expect_releases(config, cat(model, clipping, name(trainable)), 3);
      }
    }
}

TEST_F(Wiring, ReplayedStepsAreTheEnginesBits) {
  const Threads one(1);
  const auto weights = [&](const std::string& name, Config config) {
    config.training.reproducible = true;
    const auto t = trainer(name, config);
    t->begin();
    t->run({.most_steps = 6});
    return t->model().parameters().values().clone();
  };
  const std::vector<std::pair<std::string, std::function<void(Config&)>>> kinds = {
      {"one piece", [](Config&) {}},
      {"many pieces",
       [](Config& c) {
         c.sampling.batch_size = 900;
         c.sampling.subsequences_per_sequence = 150;
         c.privacy.noise_multiplier = 600.0;
       }},
      {"not private", [](Config& c) { c.privacy.enabled = false; }},
      {"bounded",
       [](Config& c) {
         c.privacy.enabled = false;
         c.optimizer.gradient_norm_bound = 0.01;
         c.optimizer.plateau_looks = 1;  // the learning rate changes
       }},
  };
  for (const auto& model : models::model_names())
    for (const auto& [name, set] : kinds) {
      SCOPED_TRACE(model + ", " + name);
      auto config = small_training_of(model);
      config.training.validate_every = 1;
      set(config);
      const auto expected = weights(model + name, config);
      const RecordingCpu recording;
      const auto found = weights(model + name + "-replayed", config);
      // Pieces that are filled up are rounded otherwise; a step moves a weight by about 1e-3.
      if (name == "many pieces") EXPECT_LT((found - expected).abs().mean().item<double>(), 1e-6);
      else EXPECT_TRUE(at::equal(found, expected));
      EXPECT_GT(recording.replays, 6);
      EXPECT_TRUE(says_that_it_repeats(model + name + "-replayed"));
    }
}

TEST_F(Wiring, ADeviceThatVariesDoesNotSayThatItRepeats) {
  const Threads one(1);
  RecordingCpu recording;
  recording.varies = true;
  trainer("run", small_training())->begin();
  EXPECT_FALSE(says_that_it_repeats("run"));
}

TEST_F(Wiring, AStepReplayedWithoutNoiseOfItsOwnReleasesNothing) {
  const Threads one(1);
  RecordingCpu recording;
  const auto t = trainer("run", small_training());
  t->begin();
  t->run({.most_steps = 2});
  EXPECT_TRUE(t->model().parameters().values().isfinite().all().item<bool>());
  recording.last();
  EXPECT_FALSE(t->model().parameters().gradients().isfinite().any().item<bool>());
  EXPECT_FALSE(t->model().parameters().values().isfinite().any().item<bool>());
}

TEST_F(Wiring, EveryModelReleasesTheSumOfClippedSeries) {
  for (const int threads : {1, 3})
    for (const auto& model : models::model_names())
      for (const auto& clipping : all_names<privacy::ClippingKind>())
        for (const auto& bottom : all_names<privacy::BottomLevel>()) {
          const Threads some(threads);
          const auto name = model + ", " + clipping + ", " + bottom + ", threads " + std::to_string(threads);
          SCOPED_TRACE(name);
          auto config = small_training_of(model);
          config.privacy.relation = privacy::Relation::series;
          config.privacy.clipping = named<privacy::ClippingKind>(clipping, "a case");
          config.sampling.bottom_level = named<privacy::BottomLevel>(bottom, "a case");
          config.sampling.top_level = privacy::TopLevel::shuffled;
          config.sampling.batch_size = 16;
          config.sampling.subsequences_per_sequence = 4;
          for (const auto trainable : of_networks) {
            config.training.trainable = trainable;
            expect_releases(config, cat(name, ", ", tsdp::name(trainable)), 2, 4.0);
          }
        }
}

TEST_F(Wiring, AResumedRunReleasesTheSame) {
  for (const std::string top : {"wor", "deterministic", "shuffled"}) {
    SCOPED_TRACE(top);
    auto config = small_training();
    config.sampling.top_level = named<privacy::TopLevel>(top, "a case");
    config.training.reproducible = true;
    // One process takes all five steps; or each takes one and the next goes on.
    const auto weights = [&](const std::string& name, bool resumed) {
      auto t = trainer(name, config);
      t->begin();
      for (int step = 0; step < (resumed ? 5 : 1); ++step) {
        if (step > 0) {
          t.reset();
          t = trainer(name, config);
          t->resume();
        }
        t->run({.most_steps = resumed ? 1U : 5U});
      }
      EXPECT_EQ(t->step(), 5U);
      return t->model().parameters().values().clone();
    };
    EXPECT_TRUE(at::equal(weights(top + " whole", false), weights(top + " parts", true)));
  }
}

// Noise of earlier steps is part of what goes on.
TEST_F(Wiring, AResumedRunWithCorrelatedNoiseReleasesTheSame) {
  for (const auto mechanism : {privacy::StrategyKind::bsr, privacy::StrategyKind::bisr, privacy::StrategyKind::blt}) {
    SCOPED_TRACE(name(mechanism));
    auto config = small_training();
    correlated(privacy::TopLevel::deterministic, mechanism)(config);
    config.training.reproducible = true;
    const auto weights = [&](const std::string& run, int parts) {
      auto t = trainer(run, config);
      t->begin();
      for (int part = 0; part < parts; ++part) {
        if (part > 0) {
          t.reset();
          t = trainer(run, config);
          t->resume();
        }
        t->run({.most_steps = 6U / static_cast<unsigned>(parts)});
      }
      EXPECT_EQ(t->step(), 6U);
      return t->model().parameters().values().clone();
    };
    const std::string word = name(mechanism);
    EXPECT_TRUE(at::equal(weights(word + " whole", 1), weights(word + " parts", 6)));
  }
}

// The same for runs without privacy, whose shuffled order also depends on the epoch.
TEST_F(Wiring, ShuffledRunsTakeTheirEpochsInTurn) {
  auto config = small_training();
  config.privacy.enabled = false;
  config.sampling.top_level = privacy::TopLevel::shuffled;
  config.training.reproducible = true;
  config.training.seed = seed;
  auto t = trainer("run", config);
  t->begin();
  const auto key = SecretKey::from_seed(seed);
  const auto type = at::TensorOptions(at::kFloat);
  const auto model = model_of(config, type);
  const data::WindowStore store(data_.dataset, model->past_length(), 4);
  WindowSource source(store, features_of(*model, data_.dataset), type);
  sampling::StructuredSampler sampler(t->method().scheme());
  for (std::uint64_t step = 0; step < 7; ++step) {
    if (step == 3) {  // the place in the epoch is resumed, too
      t.reset();
      t = trainer("run", config);
      t->resume();
    }
    model->parameters().values().copy_(t->model().parameters().values());
    const auto windows = sampler.draw(key, step).windows;
    model->parameters().gradients().zero_();
    model->losses(source.gather(windows));
    model->backward();
    for (auto* layer : model->layers()) layer->add_gradient({});
    t->run({.most_steps = 1});
    EXPECT_TRUE(at::allclose(t->model().parameters().gradients(), model->parameters().gradients() / 3.0, 1e-4, 1e-5))
        << "step " << step;
  }
}

// Independent of the streams' names: releases of a run with a key of the system's have noise of the stated deviation,
// fresh in every step. Gradients are made negligible by a tiny clip norm against 1.5 C of noise in 4,000 coordinates.
TEST_F(Wiring, NoiseHasItsDeviationAndIsFresh) {
  auto config = small_training();
  config.sampling.batch_size = 6;
  auto t = trainer("run", config);
  t->begin();
  const double deviation = 1.5 * 0.1 / 6.0;
  std::vector<at::Tensor> releases;
  for (int step = 0; step < 6; ++step) {
    t->run({.most_steps = 1});
    releases.push_back(t->model().parameters().gradients().to(at::kDouble) / deviation);
  }
  const auto count = static_cast<double>(releases.front().numel());
  ASSERT_GT(count, 4000.0);
  // Gradients add at most 6 C = 4 deviations in norm: squared, 16 of more than 4,000. Bounds at 6 standard deviations.
  for (const auto& release : releases)
    EXPECT_NEAR(release.square().sum().item<double>() / count, 1.0, 6.0 * std::sqrt(2.0 / count) + 0.01);
  for (std::size_t i = 0; i < releases.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      EXPECT_LT(std::abs(releases[i].dot(releases[j]).item<double>()) / count, 6.0 / std::sqrt(count) + 0.01)
          << i << ", " << j;
}

// Where the charge cannot be written, no step is taken.
TEST_F(Wiring, NoStepWithoutItsCharge) {
  const auto t = trainer("run", small_training());
  t->begin();
  const auto before = t->model().parameters().values().clone();
  std::filesystem::remove(folder("run").charged());
  std::filesystem::create_directories(folder("run").charged() / "in the way");
  EXPECT_THROW(t->run({}), Error);
  EXPECT_EQ(t->step(), 0U);
  EXPECT_TRUE(at::equal(t->model().parameters().values(), before));
}

// At every step that is taken, the files on disk already state it as charged: in the count and in the ledger.
TEST_F(Wiring, StepsAreChargedBeforeTheyAreTaken) {
  auto config = small_training();
  const auto t = trainer("run", config);
  t->begin();
  std::uint64_t seen = 0;
  const auto expect_charged = [&](std::uint64_t steps) {
    EXPECT_GE(Charge(folder("run").charged()).steps(), steps);
    const auto ledger = nlohmann::json::parse(read_file(folder("run").ledger()));
    EXPECT_GE(ledger["steps_charged"].get<std::uint64_t>(), steps);
  };
  // Right after every release, before the end of a run tidies up; and between runs.
  TrainOptions options;
  options.most_steps = 1;
  options.after_step = [&](std::uint64_t steps) {
    EXPECT_EQ(steps, ++seen);
    expect_charged(steps);
  };
  while (t->step() < t->plan().steps) {
    const auto before = t->step();
    t->run(options);
    EXPECT_EQ(t->step(), before + 1);
    expect_charged(t->step());
  }
  EXPECT_EQ(seen, t->plan().steps);
}

// The step engine, the plan and the ledger speak of one mechanism, and it is the configured one.
TEST_F(Wiring, TheLedgerStatesWhatWasConfiguredAndAccounted) {
  for (const auto& c : cases()) {
    SCOPED_TRACE(c.name);
    auto config = small_training();
    c.set(config);
    const auto t = trainer(c.name, config);
    t->begin();
    EXPECT_TRUE(t->run({}));
    const auto ledger =
        mechanism::read_ledger(nlohmann::ordered_json::parse(read_file(folder(c.name).ledger())), "ledger");
    ASSERT_TRUE(ledger.is_private());
    const auto& p = *ledger.cost;
    const auto& m = *ledger.method.privacy();
    EXPECT_EQ(p.delta, config.privacy.delta);
    EXPECT_EQ(m.noise().multiplier, *config.privacy.noise_multiplier);
    EXPECT_EQ(m.clipping(), (privacy::Clipping{config.privacy.clipping, config.privacy.clip_norm}));
    EXPECT_EQ(m.unit().v, config.privacy.v);
    EXPECT_EQ(m.divisor(), c.divisor);
    EXPECT_EQ(ledger.steps_charged, t->plan().steps);
    EXPECT_EQ(ledger.steps_taken, t->plan().steps);
    // Accounted for again from the configuration alone.
    const auto scheme = mechanism::scheme_of(config, data_.training_lengths());
    privacy::Noise noise{privacy::NoiseKind::independent, *config.privacy.noise_multiplier};
    if (config.privacy.noise_mechanism != privacy::StrategyKind::identity) {
      noise.kind = privacy::NoiseKind::correlated;
      noise.strategy = std::make_shared<const privacy::Strategy>(
          privacy::planned_strategy(config.privacy.wanted_strategy(*config.privacy.noise_mechanism),
                                    scheme.steps_per_epoch(), *config.training.max_epochs));
      ASSERT_NE(m.noise().strategy, nullptr);
      EXPECT_EQ(m.noise().strategy->recursion(), noise.strategy->recursion());
      EXPECT_EQ(m.noise().strategy->steps(), noise.strategy->steps());
    }
    const auto theorem = privacy::apply_theorem(scheme, mechanism::unit_of(config, data_.training_lengths()), noise);
    const auto expected = theorem.curve()->epsilon(config.privacy.delta, theorem.uses_of_steps(t->plan().steps), 1e-4);
    EXPECT_GE(p.epsilon.upper, expected.lower);
    EXPECT_LE(p.epsilon.upper, expected.upper * 1.002);
    EXPECT_LE(p.epsilon.lower, expected.upper);
  }
}

}  // namespace
}  // namespace tsdp::training
