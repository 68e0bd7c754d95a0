// What a step of the sizes of benchmarks/RESULTS.md asks of the device; printed as a table of it.
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device_models.h"
#include "fake_device.h"
#include "training/replayed_step.h"
#include "training/step_engine.h"

namespace tsdp::training {
namespace {

namespace fake = test::fake;
using test::Kind;
using test::OnDevice;

// The counts are those of any batch that is added in one piece.
constexpr std::int64_t batch = 2;
constexpr std::int64_t batch_of_series = 8;

Kind kind_of(const std::string& model, bool is_private) {
  Kind out;
  out.name = is_private ? "private" : "not private";
  out.method = [=] { return method_of_batch(batch, is_private, {privacy::ClippingKind::flat, 1e-4}); };
  out.places = places_of_batch(batch);
  out.options.context_length = 96;
  out.options.prediction_length = 24;
  out.is_private = is_private;
  if (model == "deepar")
    for (const std::int64_t day : {0, 24, 48, 72, 96, 120, 144, 168})
      for (auto lag = day == 0 ? std::int64_t{1} : day - 1; lag <= day + (day == 0 ? 7 : 1); ++lag)
        out.options.lags.push_back(lag);
  return out;
}

/// Of two series: four windows each, or seven and one.
Kind kind_of_series(const std::string& model, bool even) {
  auto out = kind_of(model, true);
  out.name = even ? "series, four windows each" : "series, uneven";
  out.joins = true;
  out.method = [=] {
    privacy::SubsamplingScheme::Parameters p;
    p.record = privacy::Record::series;
    p.lengths = privacy::SeriesLengths::equal(2, 1000);
    p.batch_size = batch_of_series;
    p.subsequences_per_sequence = batch_of_series / 2;
    p.top_level = privacy::TopLevel::deterministic;
    if (!even) p.bottom_level = privacy::BottomLevel::poisson;
    return mechanism::PrivateMechanism({privacy::Relation::series, 1, {}}, privacy::SubsamplingScheme(std::move(p)),
                                       {privacy::ClippingKind::flat, 1e-4}, {});
  };
  out.places.clear();
  for (std::int64_t w = 0; w < batch_of_series; ++w) out.places.push_back(w < (even ? 4 : 7) ? 0 : 1);
  return out;
}

/// What the second step asks for; the first one prepares.
fake::Counts counts_of_a_step(const std::string& model, const Kind& kind, bool replays) {
  OnDevice on(model, kind, fake::device());
  auto engine = on.engine(kind);
  const auto replayed = replays ? ReplayedStep::of(engine, *on.model, on.source) : nullptr;
  for (std::uint64_t step = 0; step < 2; ++step) {
    const sampling::Draw drawn{OnDevice::windows(kind, step), kind.places};
    fake::reset();
    if (replays) replayed->step(drawn, SecretKey::from_seed(2), step);
    else engine.step(on.source.gather(drawn.windows), drawn.places, SecretKey::from_seed(2), step);
  }
  const auto out = fake::counts();
  std::printf("| %s | %s%s | %lld | %lld | %lld | %lld | %lld |\n", model.c_str(), kind.name.c_str(),
              replays ? ", replayed" : "", static_cast<long long>(out.launches), static_cast<long long>(out.kernels),
              static_cast<long long>(out.to_device), static_cast<long long>(out.waits),
              static_cast<long long>(out.allocations));
  return out;
}

class FakeCounts : public testing::TestWithParam<std::string> {
 protected:
  const Threads one_{1};
};

TEST_P(FakeCounts, OfAStep) {
  dp::settle_device(fake::device());
  std::printf("| model | step | launches by the host | operators | copies to the device | waits | allocations |\n");
  std::printf("| --- | --- | --- | --- | --- | --- | --- |\n");
  std::int64_t of_private = 0;
  for (const bool is_private : {true, false}) {
    const auto kind = kind_of(GetParam(), is_private);
    const auto eager = counts_of_a_step(GetParam(), kind, false);
    const auto replayed = counts_of_a_step(GetParam(), kind, true);
    EXPECT_EQ(eager.waits, 0);
    EXPECT_EQ(eager.kernels, eager.launches);
    EXPECT_EQ(replayed.waits, 0);
    EXPECT_EQ(replayed.allocations, 0);
    // Clearing the sum, the places and the noise, and the two replays.
    EXPECT_LE(replayed.launches, is_private ? 5 : 4);
    EXPECT_EQ(replayed.to_device, is_private ? 2 : 1);
    EXPECT_GT(replayed.kernels, 50);
    if (is_private) of_private = replayed.kernels;
    else EXPECT_LT(replayed.kernels, of_private);
  }
  for (const bool even : {true, false})
    EXPECT_EQ(counts_of_a_step(GetParam(), kind_of_series(GetParam(), even), false).waits, 0);
}

INSTANTIATE_TEST_SUITE_P(, FakeCounts, testing::ValuesIn(models::model_names()),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace tsdp::training
