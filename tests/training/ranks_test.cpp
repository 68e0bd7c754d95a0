// Several ranks in one process, one thread each, that meet on this machine: what they send and what comes of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "run/charge.h"
#include "settings/setup.h"
#include "support/trials.h"
#include "training/model_setup.h"
#include "training/shared_facts.h"
#include "training/step_share.h"
#include "training_fixture.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/json.h"

namespace tsdp::training {
namespace {

/// A port that nobody listens on just now.
std::uint16_t free_port() {
  const int socket_here = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(::bind(socket_here, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(::getsockname(socket_here, reinterpret_cast<sockaddr*>(&address), &size), 0);
  ::close(socket_here);
  return ntohs(address.sin_port);
}

const SecretKey shared = SecretKey::from_seed(11);
const SecretKey of_masks = SecretKey::from_seed(12);

/// Runs `work` for every rank in a thread of its own. Returns what each threw; "" for nothing.
std::vector<std::string> together(std::int64_t count, const std::function<void(Ranks&)>& work,
                                  const std::function<void(data::Rank, Ranks::Options&)>& set = nullptr) {
  const auto port = free_port();
  std::vector<std::string> said(static_cast<std::size_t>(count));
  std::vector<std::thread> threads;
  for (std::int64_t r = 0; r < count; ++r)
    threads.emplace_back([&, r] {
      try {
        Ranks::Options options{std::chrono::seconds(30), false, shared, std::nullopt};
        if (set) set({r, count}, options);
        auto ranks = Ranks::meet({r, count}, {"127.0.0.1", port}, std::move(options));
        work(ranks);
      } catch (const std::exception& error) { said[static_cast<std::size_t>(r)] = error.what(); }
    });
  for (auto& thread : threads) thread.join();
  return said;
}

/// Of the files of `waves`, those that a rank reads.
data::PreparedData files_of(const data::Rank& rank, const std::vector<std::size_t>& counts) {
  const auto files = static_cast<std::int64_t>(counts.size());
  const auto first = files * rank.number / rank.of;
  return in_files(waves(), counts, first, files * (rank.number + 1) / rank.of - first);
}

const std::vector<std::size_t> counts = {2, 1, 2, 1};

class RanksOfARun : public TrainingFixture {
 protected:
  /// The weights after `steps` steps of as many ranks; those of rank 0.
  at::Tensor weights(const Config& config, std::int64_t ranks, std::uint64_t steps) {
    at::Tensor out;
    std::function<void(Ranks&)> work = [&](Ranks& here) {
      const auto data = files_of(here.rank(), counts);
      const auto run = settled(config, data);
      if (!here.is_first()) {
        take_part(run, data, here);
        return;
      }
      Trainer trainer(run, data, at::kCPU, folder(std::to_string(number_++)), nullptr, &here);
      trainer.begin();
      trainer.run({.most_steps = steps});
      out = trainer.model().parameters().values().clone();
    };
    const auto said = together(ranks, work);
    EXPECT_EQ(said.front(), "");
    for (std::size_t r = 1; r < said.size(); ++r)
      EXPECT_EQ(said[r], "rank 0 was interrupted after step " + std::to_string(steps) +
                             "; go on with rank 0's --resume, and here as before");
    return out;
  }

  int number_ = 0;
};

Config reproducible() {
  auto config = small_training();
  config.training.reproducible = true;
  config.dataset.files = 4;
  return config;
}

TEST_F(RanksOfARun, AsManyAsThereAreGiveTheSameBits) {
  for (const auto& [name, set] : std::vector<std::pair<std::string, std::function<void(Config&)>>>{
           {"without replacement", [](Config&) {}},
           {"coins, three windows a series",
            [](Config& c) {
              c.sampling.top_level = privacy::TopLevel::poisson;
              c.sampling.subsequences_per_sequence = 3;
              c.sampling.batch_size = 9;
            }},
           {"whole series in bins, noise that is taken back", [](Config& c) {
              c.privacy.relation = privacy::Relation::series;
              c.sampling.top_level = privacy::TopLevel::balls_in_bins;
              c.sampling.subsequences_per_sequence = 2;
              c.sampling.batch_size.reset();
              c.sampling.batches = 3;
              c.privacy.noise_multiplier = 20.0;
              c.privacy.noise_mechanism = privacy::StrategyKind::blt;
              c.training.max_epochs = 4;
            }}}) {
    SCOPED_TRACE(name);
    auto config = reproducible();
    set(config);
    const auto alone = weights(config, 1, 6);
    for (const int threads : {1, 3}) {
      const Threads some(threads);
      for (const std::int64_t ranks : {1, 2, 3, 4}) EXPECT_TRUE(at::equal(weights(config, ranks, 6), alone)) << ranks;
    }
  }
}

// A rank other than 0 gets the print of a key, the numbers of steps, and weights, which are releases: this one does the
// whole of its part by hand.
TEST_F(RanksOfARun, OthersAreToldOfReleasesAlone) {
  auto config = reproducible();
  config.training.reproducible = false;
  std::vector<at::Tensor> released;
  std::vector<at::Tensor> told;
  std::string print, run_of_ledger;
  std::function<void(Ranks&)> work = [&](Ranks& here) {
    const auto data = files_of(here.rank(), counts);
    const auto run = settled(config, data);
    if (here.is_first()) {
      Trainer trainer(run, data, at::kCPU, folder("told"), nullptr, &here);
      trainer.begin();
      released.push_back(trainer.model().parameters().values().clone());
      trainer.run({.most_steps = 5, .after_step = [&](std::uint64_t) {
                     released.push_back(trainer.model().parameters().values().clone());
                   }});
      const auto of = trainer.current_ledger(mechanism::RunState::running).run;
      run_of_ledger = of.key_print + " " + of.id;
      return;
    }
    print = here.from_first("");
    const auto model = model_of(config, at::kFloat);
    for (;;) {
      const auto order = at::zeros({2}, at::kLong);
      here.take_from_first(order);
      if (order[0].item<std::int64_t>() != 0) break;
      EXPECT_EQ(order[1].item<std::int64_t>(), static_cast<std::int64_t>(told.size()));
      told.push_back(at::empty_like(model->parameters().values()));
      here.take_from_first(told.back());
      here.add_up_at_first(at::zeros({model->parameters().trained_count()}, at::kLong));
    }
  };
  EXPECT_EQ(together(2, work), std::vector<std::string>(2));
  EXPECT_EQ(print, run_of_ledger);
  ASSERT_EQ(told.size(), 5U);
  for (std::size_t i = 0; i < told.size(); ++i) EXPECT_TRUE(at::equal(told[i], released[i])) << i;
}

/// What rank 1 sends of step 0 to a rank 0 by hand, where all other ranks send nothing but zeros.
at::Tensor sent_by_rank_1(const Config& config, std::int64_t count, const at::Tensor& weights) {
  at::Tensor sent;
  std::function<void(Ranks&)> work = [&](Ranks& here) {
    const auto data = files_of(here.rank(), counts);
    if (here.rank().number == 1) {
      take_part(settled(config, data), data, here);
      return;
    }
    static_cast<void>(here.from_first("print run"));
    auto order = at::zeros({2}, at::kLong);
    here.take_from_first(order);
    auto values = weights.clone();
    here.take_from_first(values);
    const auto model = model_of(config, at::kFloat);
    const auto sum = at::zeros({model->parameters().trained_count()}, at::kLong);
    here.add_up_at_first(sum);
    order = at::tensor({1, 0}, at::kLong);
    here.take_from_first(order);
    if (here.is_first()) sent = sum;
  };
  const auto said = together(count, work, [&](data::Rank rank, Ranks::Options& options) {
    if (config.training.mask_sums && rank.number > 0) options.mask_key = of_masks;
  });
  EXPECT_EQ(said, std::vector<std::string>(static_cast<std::size_t>(count)));
  return sent;
}

TEST_F(RanksOfARun, ASumIsThatOfItsOwnWindowsAndHiddenByMasks) {
  auto config = small_training();
  config.dataset.files = 4;
  config.sampling.batch_size = 6;
  const auto data = files_of({1, 3}, counts);
  const auto run = settled(config, data);
  const auto type = at::TensorOptions(at::kFloat);
  const auto model = model_of(config, type);
  RandomStream initial(SecretKey::from_seed(1), "weights", 0);
  model->initialise(initial);
  const auto plain = sent_by_rank_1(config, 3, model->parameters().values());
  // Its windows, drawn among all series, as a sum that one thread makes.
  const data::WindowStore store(data.dataset, model->past_length(), 4);
  WindowSource source(store, features_of(*model, data.dataset), type);
  sampling::StructuredSampler sampler(run.method.scheme());
  const auto drawn = sampler.draw(sampling_key_of(shared, "print"), 0);
  const auto begins = data.shards->begins();
  std::vector<data::WindowIndex> windows;
  std::vector<std::int64_t> places;
  for (std::size_t w = 0; w < drawn.windows.size(); ++w) {
    const auto file = std::upper_bound(begins.begin(), begins.end(), drawn.windows[w].series) - begins.begin() - 1;
    if (file < data.shards->first || file >= data.shards->first + data.shards->own) continue;
    windows.push_back(
        {drawn.windows[w].series - begins[static_cast<std::size_t>(data.shards->first)], drawn.windows[w].start});
    places.push_back(drawn.places[w]);
  }
  ASSERT_FALSE(windows.empty());
  StepEngine engine(*model, run.method, {});
  const auto expected = engine.sum(source.gather(windows), places);
  const auto found = plain.to(at::kDouble) * engine.exact_unit();
  EXPECT_LT((found - expected).norm().item<double>(), 1e-3 * config.privacy.clip_norm);
  EXPECT_GT(expected.norm().item<double>(), 0.1 * config.privacy.clip_norm);

  config.training.mask_sums = true;
  const auto masked = sent_by_rank_1(config, 3, model->parameters().values());
  // 64 uniform bits: about half of all signs differ, and numbers are far from what sums can be.
  EXPECT_GT(masked.abs().to(at::kDouble).median().item<double>(), 0x1p60);
  const auto taken_off = masked.clone();
  const auto mask_of_2 = at::zeros_like(masked);
  add_masks(mask_of_2, of_masks, {2, 3}, "print run", 0);
  add_modulo(taken_off, mask_of_2);
  EXPECT_TRUE(at::equal(taken_off, plain));
}

// A window's place decides what it is summed with, in batches of fixed size, too: one more window in a file, where
// another file had it, changes how the windows of its own range of places are rounded, and of no others.
TEST(ExactSums, WindowsOfOtherPlacesAreRoundedAlike) {
  constexpr std::int64_t windows = 300;  // in three ranges of places
  constexpr std::int64_t range = 100;
  const auto data = waves();
  const auto model = model_of(small_training(), at::kFloat);
  RandomStream initial(SecretKey::from_seed(1), "weights", 0);
  model->initialise(initial);
  const data::WindowStore store(data.dataset, model->past_length(), 4);
  WindowSource source(store, features_of(*model, data.dataset), at::kFloat);
  StepEngine::Options exactly;
  exactly.exact = true;
  StepEngine engine(*model, method_of_batch(windows, true, {privacy::ClippingKind::flat, 0.1}), exactly);
  const StepEngine::Shard all{0, windows, windows};
  const auto sum = [&](std::int64_t begin, std::int64_t end, std::int64_t without) {
    std::vector<data::WindowIndex> drawn;
    std::vector<std::int64_t> places;
    for (auto p = begin; p < end; ++p) {
      if (p == without) continue;
      drawn.push_back({p % 6, 20 + (7 * p) % 150});
      places.push_back(p);
    }
    StepEngine::Result result;
    const std::vector<std::int64_t> count = {static_cast<std::int64_t>(drawn.size())};
    return engine.exact_sum(source.gather(drawn), places, {&all, 1}, count, result);
  };
  for (const std::int64_t place : {0, 55, 99}) {
    const auto in_all = sum(0, windows, -1) - sum(0, windows, place);
    EXPECT_TRUE(at::equal(in_all, sum(0, range, -1) - sum(0, range, place))) << place;
    EXPECT_GT(in_all.abs().sum().item<std::int64_t>(), 0);
  }
}

TEST(Masks, AddUpToNothingAndAreAnotherForEveryStepRunAndPair) {
  for (const std::int64_t ranks : {3, 4, 7}) {
    const auto sum = at::zeros({1001}, at::kLong);
    for (std::int64_t r = 1; r < ranks; ++r) {
      const auto mask = at::zeros({1001}, at::kLong);
      add_masks(mask, of_masks, {r, ranks}, "run", 5);
      EXPECT_FALSE(mask.eq(0).any().item<bool>());
      add_modulo(sum, mask);
    }
    EXPECT_FALSE(sum.ne(0).any().item<bool>());
  }
  std::vector<at::Tensor> all;
  const auto add = [&](const data::Rank& rank, const std::string& run, std::uint64_t step) {
    all.push_back(at::zeros({1001}, at::kLong));
    add_masks(all.back(), of_masks, rank, run, step);
  };
  add({1, 3}, "run", 5);
  add({1, 3}, "run", 6);
  add({1, 3}, "other", 5);
  add({1, 4}, "run", 5);
  add({2, 4}, "run", 5);
  add({3, 4}, "run", 5);
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) EXPECT_LT(all[i].eq(all[j]).sum().item<std::int64_t>(), 3) << i << " " << j;
}

// The loss of the validation part is that of all ranks; with masks, each keeps its own to itself.
TEST_F(RanksOfARun, LossesOfValidationAreToldUnlessSumsAreMasked) {
  for (const bool masks : {false, true}) {
    SCOPED_TRACE(masks);
    auto config = small_training();
    config.dataset.files = 4;
    config.training.mask_sums = masks;
    std::vector<std::vector<double>> told;
    std::function<void(Ranks&)> work = [&](Ranks& here) {
      const auto data = files_of(here.rank(), counts);
      if (!here.is_first()) {
        take_part(settled(config, data), data, here);
        return;
      }
      auto values = model_of(config, at::kFloat)->parameters().values();
      values.fill_(0.01);
      static_cast<void>(here.from_first("print run"));
      here.take_from_first(at::tensor({3, 0}, at::kLong));  // the loss of the validation part
      here.take_from_first(values);
      told = here.gathered(std::span<const double>());
      here.take_from_first(at::tensor({1, 0}, at::kLong));
    };
    EXPECT_EQ(together(3, work,
                       [&](data::Rank rank, Ranks::Options& options) {
                         if (masks && rank.number > 0) options.mask_key = of_masks;
                       }),
              std::vector<std::string>(3));
    ASSERT_EQ(told.size(), 3U);
    for (std::int64_t r = 1; r < 3; ++r) {
      const auto& found = told[static_cast<std::size_t>(r)];
      if (masks) {
        EXPECT_TRUE(found.empty());
        continue;
      }
      const auto data = files_of({r, 3}, counts);
      const auto model = model_of(config, at::kFloat);
      model->parameters().values().fill_(0.01);
      const data::WindowStore store(data.dataset, model->past_length(), 4);
      WindowSource source(store, features_of(*model, data.dataset), at::kFloat);
      const auto expected = source.losses(*model, data::windows_of(data.split.validation));
      EXPECT_GT(expected.windows, 0);
      EXPECT_EQ(found, (std::vector<double>{expected.sum, static_cast<double>(expected.windows)}));
    }
  }
}

TEST_F(RanksOfARun, NoStepIsSummedTwice) {
  auto config = small_training();
  config.dataset.files = 4;
  const auto weights = model_of(config, at::kFloat)->parameters().values();
  std::function<void(Ranks&)> work = [&](Ranks& here) {
    const auto data = files_of(here.rank(), counts);
    if (!here.is_first()) {
      take_part(settled(config, data), data, here);
      return;
    }
    static_cast<void>(here.from_first("print"));
    for (int again = 0; again < 2; ++again) {
      auto order = at::tensor({0, 3}, at::kLong);
      here.take_from_first(order);
      auto values = weights.clone();
      here.take_from_first(values);
      here.add_up_at_first(at::zeros({model_of(config, at::kFloat)->parameters().trained_count()}, at::kLong));
    }
  };
  EXPECT_EQ(together(2, work)[1], "ranks: rank 0 asks for step 3 again");
}

/// What all ranks say of data and options that do not fit together.
std::vector<std::string> facts_of(
    std::int64_t count, const std::function<void(data::Rank, data::PreparedData&)>& set,
    const std::function<void(data::Rank, Ranks::Options&)>& options = nullptr,
    const std::function<std::string(data::Rank)>& purpose_of = [](data::Rank) { return "training"; }) {
  return together(
      count,
      [&](Ranks& here) {
        const auto data = shared_data(
            [&](data::Rank rank) {
              auto out = files_of(rank, counts);
              auto& files = out.shards->files;
              const auto first = files.begin() + out.shards->first;
              files = std::vector(first, first + out.shards->own);
              out.config = small_training();
              out.config.dataset.files = 4;
              set(rank, out);
              return out;
            },
            here);
        auto config = data.config;
        config.sampling.batch_size = 3;
        require_one_run({config}, purpose_of(here.rank()), here);
        EXPECT_EQ(data.training_lengths().count(), 6);
        EXPECT_EQ(data.shards->files.size(), 4U);
        for (const auto& file : data.shards->files) EXPECT_EQ(file.digest.empty(), !here.is_first());
      },
      options);
}

TEST(RanksFacts, AreSharedAndHaveToFit) {
  const std::vector<std::string> nothing(3);
  EXPECT_EQ(facts_of(3, [](data::Rank, data::PreparedData&) {}), nothing);
  const auto all_say = [](const std::vector<std::string>& said, const std::string& what) {
    for (const auto& text : said) EXPECT_EQ(text, what);
  };
  // What is wrong with a rank's own files may quote them, and stays there.
  EXPECT_EQ(
      facts_of(3,
               [](data::Rank rank, data::PreparedData&) {
                 if (rank.number == 2) throw DataError("site2.csv:7: found 3.14 and 3.15");
               }),
      (std::vector<std::string>{"rank 2 has refused its own files or settings; the line that it ended with says why",
                                "rank 2 has refused its own files or settings; the line that it ended with says why",
                                "site2.csv:7: found 3.14 and 3.15"}));
  all_say(facts_of(2,
                   [](data::Rank rank, data::PreparedData& data) {
                     if (rank.number == 1) data.config.dataset.files = 5;
                   }),
          "dataset.files: found 5 on rank 1 and 4 on rank 0; expected the same on all ranks");
  all_say(facts_of(2, [](data::Rank, data::PreparedData& data) { data.config.privacy.enabled = false; }),
          "privacy.enabled: found false with 2 ranks, which add up clipped gradients alone; expected true, or one "
          "process");
  all_say(
      facts_of(2, [](data::Rank, data::PreparedData& data) { data.config.privacy.noise_sampled = "auto"; }),
      "privacy.noise.sampled: found auto with 2 ranks, each of which would look for noise by itself; expected the key "
      "that tsdp-account sigma --sampled finds, with its privacy.noise_multiplier, or null");
  all_say(facts_of(
              2, [](data::Rank, data::PreparedData&) {}, nullptr,
              [](data::Rank rank) { return rank.number == 1 ? "a plan" : "training"; }),
          "the configuration: found 'what is asked for: a plan' on rank 1 and 'what is asked for: training' on rank 0; "
          "expected the same on all ranks");
  all_say(
      facts_of(2, [](data::Rank, data::PreparedData& data) { data.shards->files.back().digest = "the same"; }),
      "dataset.path: found the same series in the files 1 and 3, which would be trained on twice; expected other ones");
  for (const auto& text : facts_of(2, [](data::Rank rank, data::PreparedData& data) {
         if (rank.number == 1) data.dataset.covariates.tables = {{0, {1.0F}}};
       }))
    EXPECT_TRUE(text.starts_with("dataset.covariates.file: found ")) << text;
  const auto other_key = facts_of(
      2, [](data::Rank, data::PreparedData&) {},
      [](data::Rank rank, Ranks::Options& options) {
        if (rank.number == 1) options.sampling_key = SecretKey::from_seed(5);
      });
  for (const auto& text : other_key) EXPECT_TRUE(text.starts_with("--sampling-key: found ")) << text;
  const auto no_key = facts_of(
      2, [](data::Rank, data::PreparedData&) {},
      [](data::Rank, Ranks::Options& options) { options.sampling_key.reset(); });
  for (const auto& text : no_key) EXPECT_NE(text.find("--sampling-key: not given, with 2 ranks"), std::string::npos);
}

// What is scored and released as one model is one: rank 0's weights beside another's start or candidates would be two.
TEST(RanksFacts, StartAndCandidatesAreTheSame) {
  const auto said = [](const std::function<void(mechanism::SettledScheme&)>& change) {
    return together(2, [&](Ranks& here) {
      mechanism::SettledScheme settled{small_training()};
      settled.start = mechanism::StartWeights{"a/model.pt", {}, {}, mechanism::StartOrigin::synthetic, "aa"};
      settled.networks = {{"a/hourly.safetensors", {}, {}, mechanism::StartOrigin::synthetic, "bb"}};
      settled.config.model.candidates = {"start", "a/hourly.safetensors"};
      if (!here.is_first()) change(settled);
      require_one_run(settled, "training", here);
    });
  };
  const std::vector<std::string> nothing(2);
  EXPECT_EQ(said([](mechanism::SettledScheme& here) {
              here.start->file = "b/model.pt";
              here.networks[0].file = "b/hourly.safetensors";
              here.config.model.candidates[1] = "b/hourly.safetensors";
            }),
            nothing);
  const std::vector<std::pair<std::string, std::function<void(mechanism::SettledScheme&)>>> others = {
      {"'model.start: fresh'", [](auto& here) { here.start.reset(); }},
      {"SHA-256 ab", [](auto& here) { here.start->sha256 = "ab"; }},
      {"model.start: trained_without_privacy",
       [](auto& here) { here.start->origin = mechanism::StartOrigin::trained_without_privacy; }},
      {"model.candidates: seasonal_quantiles",
       [](auto& here) { here.config.model.candidates[0] = "seasonal_quantiles"; }},
      {"weights of hourly: SHA-256 bc", [](auto& here) { here.networks[0].sha256 = "bc"; }}};
  for (const auto& [what, change] : others)
    for (const auto& text : said(change)) {
      EXPECT_NE(text.find(what), std::string::npos) << text;
      EXPECT_NE(text.find("expected the same on all ranks"), std::string::npos) << text;
    }
}

// Digests of values leave a rank only under the key that ranks share: known values could be tried otherwise.
TEST(RanksFacts, DigestsAreKeyed) {
  std::vector<std::string> sent;
  for (const auto& key : {SecretKey::from_seed(1), SecretKey::from_seed(2)})
    together(
        2,
        [&](Ranks& here) {
          const auto data = shared_data(
              [&](data::Rank rank) {
                auto out = files_of(rank, {3, 3});
                out.shards->files = {out.shards->files[static_cast<std::size_t>(rank.number)]};
                out.config = small_training();
                out.config.dataset.files = 2;
                return out;
              },
              here);
          if (here.is_first()) sent.push_back(data.shards->files[1].digest);
        },
        [&](data::Rank, Ranks::Options& options) { options.sampling_key = key; });
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_NE(sent[0], sent[1]);
  EXPECT_NE(sent[0], "file 1");
}

TEST(RanksFacts, EnvironmentsOfAllRanksCount) {
  data::Shards shards;
  shards.files = {{{10}, "", "a"}, {{10}, "", "a"}};
  EXPECT_EQ(environment_of_ranks("a", shards), "a");
  shards.files[1].environment = "b";
  EXPECT_EQ(environment_of_ranks("a", shards), "a; file 1: b");
  shards.files[1].environment.clear();  // read here
  EXPECT_EQ(environment_of_ranks("a", shards), "a");
}

TEST(SamplingKey, TellsNothingOfWhatRanksShareAndIsAnotherForEveryKeyOfNoise) {
  const auto key = sampling_key_of(shared, "a print");
  EXPECT_EQ(key, sampling_key_of(shared, "a print"));
  EXPECT_NE(key, shared);
  EXPECT_NE(key, sampling_key_of(shared, "another print"));
  EXPECT_NE(key, sampling_key_of(of_masks, "a print"));
}

TEST(RanksMeet, AtPrivateAddressesAlone) {
  const auto said = [](const std::string& host) -> std::string {
    try {
      static_cast<void>(Ranks::meet({1, 2}, {host, 1}, {std::chrono::seconds(1), false, std::nullopt, std::nullopt}));
    } catch (const UsageError& error) { return error.what(); } catch (const Error&) {
      return "not met";
    }
    return "met";
  };
  EXPECT_NE(said("8.8.8.8").find("a public address; what ranks send is neither encrypted nor authenticated"),
            std::string::npos);
  EXPECT_NE(said("172.32.0.1").find("a public address"), std::string::npos);
  EXPECT_EQ(said("127.0.0.1"), "not met");
  EXPECT_NE(said("nowhere.invalid").find("MASTER_ADDR: found nowhere.invalid, which has no address"),
            std::string::npos);
}

TEST(RanksMeet, EndIfOneOfThemDoes) {
  const auto said = together(2, [](Ranks& here) {
    if (here.is_first()) return;
    here.take_from_first(at::zeros({3}));
  });
  EXPECT_EQ(said[0], "");
  EXPECT_TRUE(said[1].starts_with("ranks: rank 0 has ended (")) << said[1];
}

}  // namespace
}  // namespace tsdp::training
