// The sum of a batch's clipped gradients, as a step takes it: what one record moves it by, and that it is the sum of a
// loop over records.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/series_sum.h"
#include "training/model_setup.h"
#include "training/step_engine.h"
#include "training/window_source.h"
#include "training_fixture.h"

namespace tsdp::training {
namespace {

class ClippedSums : public TrainingFixture {
 protected:
  /// A model with weights that are the same every time, and the windows of the data.
  struct Setup {
    Setup(const Config& config, const data::Dataset& dataset)
        : model(model_of(config, at::kFloat)),
          store(dataset, model->past_length(), 4),
          source(store, features_of(*model, dataset), at::kFloat) {
      RandomStream weights(SecretKey::from_seed(4), "initial weights", 0);
      model->initialise(weights);
    }
    std::unique_ptr<models::Forecaster> model;
    data::WindowStore store;
    WindowSource source;
  };
};

// Inserting windows moves the sum of gradients by at most C for each, whatever the others, the number of threads and
// the sizes of blocks are; nothing that scales all windows depends on how many were drawn.
TEST_F(ClippedSums, InsertedWindowsMoveTheSumByTheClipNorm) {
  const double clip = 0.1;
  std::map<std::int64_t, at::Tensor> alone;  // what inserted windows add where there are no others
  for (const int threads : {1, 2, 8}) {
    const Threads some(threads);
    for (const std::int64_t others : {0, 1, 7, 63, 127, 150, 400, 700}) {
      SCOPED_TRACE(std::to_string(threads) + " threads, " + std::to_string(others) + " other windows");
      const auto config = small_training();
      Setup made(config, data_.dataset);
      const auto& model = made.model;
      auto& source = made.source;
      const auto initial = model->parameters().values().clone();
      // 200 places, in each of which coins draw one window on average.
      privacy::SubsamplingScheme::Parameters law;
      law.lengths = privacy::SeriesLengths::equal(200, 190);
      law.context_length = 8;
      law.forecast_length = 4;
      law.batch_size = 200;
      law.top_level = privacy::TopLevel::deterministic;
      law.bottom_level = privacy::BottomLevel::poisson;
      StepEngine engine(
          *model,
          mechanism::PrivateMechanism({}, privacy::SubsamplingScheme(law), {privacy::ClippingKind::flat, clip}, {}),
          {});
      // Place 50 gains a window; the others are spread over all places, most of them behind it, in its block and in
      // others.
      const auto sum = [&](std::int64_t inserted) {
        std::vector<data::WindowIndex> windows;
        std::vector<std::int64_t> places;
        for (std::int64_t place = 0; place < 200; ++place) {
          const auto count = others * (place + 1) / 200 - others * place / 200;
          for (std::int64_t i = 0; i < count; ++i) {
            windows.push_back({place % 6, (37 * place + 11 * i) % 180});
            places.push_back(place);
          }
          for (std::int64_t i = 0; place == 50 && i < inserted; ++i) {
            windows.push_back({3, 90 + i});
            places.push_back(place);
          }
        }
        model->parameters().values().copy_(initial);
        return engine.sum(source.gather(windows), places);
      };
      const auto without = sum(0);
      for (const std::int64_t inserted : {1, 2}) {
        const auto change = (sum(inserted) - without).clone();
        const double moved = change.norm().item<double>();
        EXPECT_LE(moved, static_cast<double>(inserted) * clip);
        EXPECT_GT(moved, 0.9 * clip);
        // Nothing that scales the others depends on them: they add the same as alone, up to what rounding leaves of 700
        // windows.
        if (!alone.contains(inserted)) alone.emplace(inserted, change);
        EXPECT_LE((change - alone.at(inserted)).norm().item<double>(), 2e-4 * clip);
      }
    }
  }
}

// A window of all variables counts as one window of one variable does, also where all of them say the same.
TEST_F(ClippedSums, AWindowOfAllVariablesMovesTheSumByTheClipNorm) {
  constexpr std::int64_t variables = 3;
  const double clip = 0.1;
  for (std::size_t s = 0; s < data_.dataset.series.size(); ++s)
    data_.dataset.series[s].values = data_.dataset.series[s / variables * variables].values;
  for (const std::string name : {"simple_ff", "itransformer"})
    for (const auto bottom : {privacy::BottomLevel::with_replacement, privacy::BottomLevel::poisson})
      for (const int threads : {1, 2}) {
        const Threads some(threads);
        auto config = small_training_of(name);
        config.dataset.value_columns = {"a", "b", "c"};
        Setup made(config, data_.dataset);
        const auto& model = made.model;
        auto& source = made.source;
        privacy::SubsamplingScheme::Parameters law;
        law.lengths = privacy::SeriesLengths::equal(100, 190).of_variables(variables);
        law.context_length = 8;
        law.forecast_length = 4;
        law.batch_size = 100;
        law.top_level = privacy::TopLevel::deterministic;
        law.bottom_level = bottom;
        privacy::PrivacyUnit unit;
        unit.variables = variables;
        StepEngine engine(
            *model,
            mechanism::PrivateMechanism(unit, privacy::SubsamplingScheme(law), {privacy::ClippingKind::flat, clip}, {}),
            {});
        const auto sum = [&](std::int64_t others, bool with_it) {
          std::vector<data::WindowIndex> windows;
          std::vector<std::int64_t> places;
          for (std::int64_t place = 0; place < 100; ++place) {
            const bool drawn = others * (place + 1) / 100 > others * place / 100;
            if (place == 50 ? !with_it : !drawn) continue;
            for (std::int64_t v = 0; v < variables; ++v) {
              windows.push_back({place % 2 * variables + v, (37 * place) % 180});
              places.push_back(place);
            }
          }
          return engine.sum(source.gather(windows), places).clone();
        };
        for (const std::int64_t others : {0, 9, 80}) {
          SCOPED_TRACE(cat(name, ", ", threads, " threads, ", others, " other windows"));
          const double moved = (sum(others, true) - sum(others, false)).norm().item<double>();
          EXPECT_LE(moved, clip);
          EXPECT_GT(moved, 0.9 * clip);
        }
      }
}

// Joined windows against a loop over windows and series: missing values, windows before the beginning of a series,
// series of differing numbers of windows, whole batches and single windows at a time, and the layers' plain operations.
TEST_F(ClippedSums, JoinedWindowsAreTheSumOfALoopOverSeries) {
  for (auto& series : data_.dataset.series) series.exact.clear();
  auto& values = data_.dataset.series;
  for (int t = 0; t < 200; ++t) {
    if (t % 7 == 3) values[1].values[static_cast<std::size_t>(t)] = std::nanf("");
    if (t >= 20 && t < 80) values[4].values[static_cast<std::size_t>(t)] = std::nanf("");
  }
  for (const auto& name : models::model_names())
    for (const bool plain : {false, true})
      for (const auto& [threads, memory] : {std::pair{1, 0}, std::pair{1, 1}, std::pair{3, 0}}) {
        SCOPED_TRACE(name + (plain ? ", plain" : "") + ", threads " + std::to_string(threads) + ", memory " +
                     std::to_string(memory));
        const Threads some(threads);
        std::optional<dp::PlainOperations> without_kernels;
        if (plain) without_kernels.emplace();
        const auto config = small_training_of(name);
        Setup made(config, data_.dataset);
        const auto& model = made.model;
        auto& source = made.source;
        privacy::SubsamplingScheme::Parameters law;
        law.record = privacy::Record::series;
        law.lengths = privacy::SeriesLengths::equal(60, 190);
        law.context_length = model->past_length();
        law.forecast_length = 4;
        law.subsequences_per_sequence = 3;
        law.top_level = privacy::TopLevel::poisson;
        law.bottom_level = privacy::BottomLevel::poisson;
        law.rate = 0.5;
        std::vector<data::WindowIndex> windows;
        std::vector<std::int64_t> places;
        for (std::int64_t place = 0; place < 60; place += 2)
          for (std::int64_t i = 0; i < 1 + place % 5; ++i) {
            windows.push_back({place % 6 + (i == 2 ? 1 : 0), i == 0 ? place / 2 : (37 * place + 11 * i) % 180});
            places.push_back(place);
          }
        for (const double clip : {0.1, 30.0}) {
          StepEngine engine(
              *model,
              mechanism::PrivateMechanism({privacy::Relation::series, 1, {}}, privacy::SubsamplingScheme(law),
                                          {privacy::ClippingKind::flat, clip}, {}),
              {{}, 0.0, memory});
          const auto sum = engine.sum(source.gather(windows), places).clone();
          std::vector<double> norms;
          const auto expected = test::clipped_series_sum(*model, source.gather(windows), places,
                                                         {privacy::ClippingKind::flat, clip}, 3, norms) *
                                dp::rounding_guard(at::kFloat, engine.clipping().summed, true);
          EXPECT_LT((sum - expected).norm().item<double>(), 2e-5 * expected.norm().item<double>()) << "clip " << clip;
        }
      }
}

// The same for whole series: a series that is there moves the sum by at most C, whatever the number of its windows.
TEST_F(ClippedSums, InsertedSeriesMoveTheSumByTheClipNorm) {
  const double clip = 0.1;
  std::map<std::int64_t, at::Tensor> alone;
  for (const int threads : {1, 2, 8}) {
    const Threads some(threads);
    for (const std::int64_t others : {0, 3, 31, 60, 200}) {
      SCOPED_TRACE(std::to_string(threads) + " threads, " + std::to_string(others) + " other series");
      const auto config = small_training();
      Setup made(config, data_.dataset);
      const auto& model = made.model;
      auto& source = made.source;
      privacy::SubsamplingScheme::Parameters law;
      law.record = privacy::Record::series;
      law.lengths = privacy::SeriesLengths::equal(400, 190);
      law.context_length = 8;
      law.forecast_length = 4;
      law.subsequences_per_sequence = 4;
      law.top_level = privacy::TopLevel::poisson;
      law.rate = 0.5;
      StepEngine engine(*model,
                        mechanism::PrivateMechanism({privacy::Relation::series, 1, {}}, privacy::SubsamplingScheme(law),
                                                    {privacy::ClippingKind::flat, clip}, {}),
                        {});
      const auto sum = [&](std::int64_t inserted) {
        std::vector<data::WindowIndex> windows;
        std::vector<std::int64_t> places;
        for (std::int64_t place = 0; place < 400; ++place) {
          const bool drawn = others * (place + 1) / 400 > others * place / 400;
          const auto count = place == 150 ? inserted : drawn ? 1 + 3 * place % 7 : 0;
          for (std::int64_t i = 0; i < count; ++i) {
            windows.push_back({place == 150 ? 3 : place % 6, (37 * place + 11 * i) % 180});
            places.push_back(place);
          }
        }
        return engine.sum(source.gather(windows), places);
      };
      const auto without = sum(0);
      for (const std::int64_t inserted : {1, 4, 50, 300}) {
        const auto change = (sum(inserted) - without).clone();
        const double moved = change.norm().item<double>();
        EXPECT_LE(moved, clip);
        // One window counts by a quarter of its gradient.
        EXPECT_GT(moved, inserted == 1 ? 0.0 : 0.9 * clip);
        if (!alone.contains(inserted)) alone.emplace(inserted, change);
        EXPECT_LE((change - alone.at(inserted)).norm().item<double>(), 2e-4 * clip) << inserted;
      }
    }
  }
}

}  // namespace
}  // namespace tsdp::training
