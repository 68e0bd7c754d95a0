// Several runs together: relations, composition, and the budget file.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "ledger/budget.h"
#include "ledger/total.h"
#include "privacy/accountant/renyi.h"
#include "support/temporary_folder.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/json.h"
#include "tsdp/base/text.h"
#include "tsdp/privacy/accountant/accountant.h"
#include "tsdp/privacy/terms/strategy.h"
#include "tsdp/privacy/theorems/attack.h"

namespace tsdp::mechanism {
namespace {

using namespace privacy;

PrivateMechanism mechanism_of(PrivacyUnit unit, double sigma = 4.0, double noise_on_data = 0.0) {
  SubsamplingScheme::Parameters p;
  p.lengths = SeriesLengths::equal(50, 1000);
  p.context_length = 8;
  p.forecast_length = 4;
  p.batch_size = 10;
  p.context_noise = p.forecast_noise = noise_on_data;
  return {unit, SubsamplingScheme(p), {}, {NoiseKind::independent, sigma}};
}

PrivateMechanism mechanism_with_choice(double epsilon) {
  const auto without = mechanism_of({});
  return {without.unit(), without.scheme(), without.clipping(), without.noise(), std::nullopt, epsilon};
}

Ledger ledger_of(const PrivateMechanism& mechanism, const std::string& id, std::uint64_t steps) {
  Ledger out(mechanism);
  out.run.id = id;
  out.state = RunState::finished;
  out.steps_planned = out.steps_charged = out.steps_taken = steps;
  out.cost.emplace().delta = 1e-6;
  return out;
}

TEST(Total, EveryPrivateChoiceCostsItsOwn) {
  const auto without =
      total_of({ledger_of(mechanism_of({}), "a", 120), ledger_of(mechanism_of({}), "b", 80)}).epsilon(1e-6);
  const auto with =
      total_of({ledger_of(mechanism_with_choice(0.25), "a", 120), ledger_of(mechanism_with_choice(0.25), "b", 80)});
  EXPECT_TRUE(with.known_from_below);
  EXPECT_NEAR(with.epsilon(1e-6).upper, without.upper + 0.5, 1e-9);
  EXPECT_EQ(with.epsilon(1e-6).lower, without.lower);
  // Another share is another mechanism; a run without steps has no choice.
  const auto mixed =
      total_of({ledger_of(mechanism_with_choice(0.25), "a", 120), ledger_of(mechanism_with_choice(0.5), "b", 80),
                ledger_of(mechanism_with_choice(0.125), "c", 0)});
  EXPECT_NEAR(mixed.epsilon(1e-6).upper, without.upper + 0.75, 1e-3 * without.upper);
}

PrivateMechanism adaptive_mechanism(double choice = 0.0) {
  const auto plain = mechanism_of({});
  return {plain.unit(), plain.scheme(), plain.clipping(),         plain.noise(),
          std::nullopt, choice,         StepComposition::adaptive};
}

TEST(Total, StepsOfOneMechanismAreComposedAdaptively) {
  const auto adaptive = adaptive_mechanism();
  const auto total = total_of({ledger_of(adaptive, "a", 120), ledger_of(adaptive, "b", 80)});
  const auto expected = adaptive.curve()->epsilon(1e-6, 200);
  EXPECT_TRUE(total.known_from_below);
  EXPECT_EQ(total.epsilon(1e-6).lower, expected.lower);
  EXPECT_NEAR(total.epsilon(1e-6).upper, expected.upper, 1e-15);
  EXPECT_LT(expected.upper, total_of({ledger_of(mechanism_of({}), "a", 200)}).epsilon(1e-6).upper);
  // Each run's choice costs its own, beside the steps of both.
  const auto chosen = adaptive_mechanism(0.25);
  EXPECT_NEAR(total_of({ledger_of(chosen, "a", 120), ledger_of(chosen, "b", 80)}).epsilon(1e-6).upper,
              expected.upper + 0.5, 1e-9);
}

PrivateMechanism in_turn(StepComposition composition = StepComposition::symmetrised) {
  SubsamplingScheme::Parameters p;
  p.lengths = SeriesLengths::equal(40, 1000);
  p.context_length = 8;
  p.forecast_length = 4;
  p.batch_size = 5;  // 8 steps an epoch
  p.top_level = TopLevel::deterministic;
  return {{}, SubsamplingScheme(p), {}, {NoiseKind::independent, 4.0}, std::nullopt, 0.0, composition};
}

// The changed series may be in none of the steps of an unfinished epoch.
TEST(Total, UnfinishedEpochsCountFromAboveAlone) {
  for (const auto composition : {StepComposition::symmetrised, StepComposition::adaptive}) {
    const auto mechanism = in_turn(composition);
    const auto one = total_of({ledger_of(mechanism, "a", 3), ledger_of(mechanism, "b", 1)}).epsilon(1e-6);
    EXPECT_EQ(one.lower, 0.0);
    EXPECT_GE(one.upper, mechanism.curve()->epsilon(1e-6, 2).lower);
    const auto more = total_of({ledger_of(mechanism, "a", 19), ledger_of(mechanism, "b", 8)}).epsilon(1e-6);
    EXPECT_EQ(more.lower, mechanism.curve()->epsilon(1e-6, 3).lower);  // two whole epochs and one
    EXPECT_GE(more.upper, mechanism.curve()->epsilon(1e-6, 4).lower);
  }
}

// A run for more changes than the total is about has a pair that bounds it from above.
TEST(Total, PairsForMoreChangesGiveNoLowerEnd) {
  const auto one = ledger_of(mechanism_of({Relation::event, 1, std::nullopt}), "a", 60);
  const auto seven = ledger_of(mechanism_of({Relation::event, 7, std::nullopt}), "b", 60);
  const auto total = total_of({one, seven});
  EXPECT_EQ(total.unit.w, 1);
  EXPECT_FALSE(total.known_from_below);
  EXPECT_EQ(total.epsilon(1e-6).lower, 0.0);
  EXPECT_TRUE(total.cost(1e-6).certificate.lower.empty());
  EXPECT_TRUE(total_of({seven}).known_from_below);
}

TEST(Total, AdaptivelyComposedStepsAreBoundedByTheirPairs) {
  const auto without = mechanism_of({});
  const auto adaptive = adaptive_mechanism();
  const auto total = total_of({ledger_of(adaptive, "a", 120), ledger_of(without, "b", 80)});
  EXPECT_FALSE(total.known_from_below);
  EXPECT_EQ(total.epsilon(1e-6).lower, 0.0);
  EXPECT_NEAR(total.epsilon(1e-6).upper, total_of({ledger_of(without, "a", 200)}).epsilon(1e-6).upper, 1e-3);
}

PrivateMechanism of_whole_series(TopLevel top_level, double sigma, std::int64_t batches = 20,
                                 std::shared_ptr<const Strategy> strategy = nullptr) {
  SubsamplingScheme::Parameters p;
  p.lengths = SeriesLengths::equal(1000, 100);
  p.context_length = 8;
  p.forecast_length = 4;
  p.record = Record::series;
  p.top_level = top_level;
  p.batches = batches;
  return {{Relation::series, 1, {}}, SubsamplingScheme(p), {}, noise_by(std::move(strategy), sigma)};
}

// A total is never more than adding up, nor than what a single run states of itself: of all rows of whole series.
TEST(Total, OfWholeSeriesKeepsTheirAmplification) {
  const auto matrix = std::make_shared<const Strategy>(StrategyKind::bsr, square_root_bands(4), 20);
  for (const auto& mechanism : {of_whole_series(TopLevel::balls_in_bins, 1.0), of_whole_series(TopLevel::poisson, 1.0),
                                of_whole_series(TopLevel::deterministic, 4.0), of_whole_series(TopLevel::shuffled, 4.0),
                                of_whole_series(TopLevel::without_replacement, 3.0),
                                of_whole_series(TopLevel::balls_in_bins, 2.0, 20, matrix)}) {
    const auto& theorem = mechanism.theorem();
    const auto one = ledger_of(mechanism, "a", 20);
    const auto own = epsilon_after(theorem, *mechanism.curve(), 1e-5, 20);
    const auto alone = total_of({one}).cost(1e-5);
    EXPECT_EQ(alone.epsilon.upper, own.upper) << theorem.theorem;
    EXPECT_EQ(alone.epsilon.lower, own.lower) << theorem.theorem;
    const auto both = total_of({one, ledger_of(mechanism, "b", 20)}).cost(1e-5);
    const auto half = epsilon_after(theorem, *mechanism.curve(), 0.5e-5, 20);
    EXPECT_LE(both.epsilon.upper, 2.0 * half.upper * (1.0 + 2e-3))
        << theorem.theorem;  // (two brackets of this precision)
    EXPECT_GE(both.epsilon.upper, own.lower) << theorem.theorem;
    EXPECT_FALSE(both.certificate.upper.empty());
  }
  // Different samplers together: the bins and the Poisson run of the same cost.
  const auto bins = of_whole_series(TopLevel::balls_in_bins, 1.0);
  const auto poisson = of_whole_series(TopLevel::poisson, 1.0);
  constexpr double delta = 0.05;  // at which divergences say less
  const auto both = total_of({ledger_of(bins, "a", 20), ledger_of(poisson, "b", 20)}).cost(delta);
  const auto at_halves = epsilon_after(bins.theorem(), *bins.curve(), 0.5 * delta, 20).upper +
                         epsilon_after(poisson.theorem(), *poisson.curve(), 0.5 * delta, 20).upper;
  EXPECT_LE(both.epsilon.upper, at_halves + 1e-9);
  // Where they are added up it is at shares of delta that make up delta, and at no more.
  ASSERT_NE(both.certificate.upper.find("basic composition"), std::string::npos) << both.certificate.upper;
  EXPECT_GE(both.epsilon.upper, at_halves - 1e-9);
}

// Poisson batches of whole series leak in one direction at a time: two runs are one with twice the steps.
TEST(Total, OfPoissonRunsComposesEachDirectionByItself) {
  const auto mechanism = of_whole_series(TopLevel::poisson, 0.8);
  const auto total = total_of({ledger_of(mechanism, "a", 20), ledger_of(mechanism, "b", 60)}).cost(1e-2);
  const auto expected = mechanism.curve()->epsilon(1e-2, 80);
  EXPECT_NEAR(total.epsilon.upper, expected.upper, 2e-3 * expected.upper);
  EXPECT_GT(total.epsilon.lower, 0.99 * expected.lower);
  EXPECT_LT(total.epsilon.upper, 0.99 * Accountant(mechanism.theorem().pair).epsilon(1e-2, 80).upper);
}

PrivateMechanism with_largest_batch(std::int64_t largest, double sigma = 4.0) {
  SubsamplingScheme::Parameters p;
  p.lengths = SeriesLengths::equal(1000, 50);
  p.context_length = 8;
  p.forecast_length = 4;
  p.record = Record::series;
  p.top_level = TopLevel::poisson;
  p.batches = 10;
  p.largest_batch = largest;
  return {{Relation::series, 1, {}}, SubsamplingScheme(p), {}, {NoiseKind::independent, sigma}};
}

// Cuts of all runs together take their share of delta once.
TEST(Total, OfRunsWithCutBatchesAddsTheirCuts) {
  const auto cut = with_largest_batch(167);
  const auto bare = with_largest_batch(1000);
  EXPECT_EQ(bare.theorem().cut.chance(500), 0.0);
  const double delta = 1e-5;
  const auto of_both = [&](const PrivateMechanism& one, const PrivateMechanism& other) {
    return total_of({ledger_of(one, "a", 100), ledger_of(other, "b", 300)}).cost(delta);
  };
  const auto total = of_both(cut, cut);
  const double chance = 400.0 * cut.theorem().cut.chance(1);
  const double left = delta - (1.0 + std::exp(total.epsilon.upper)) * chance;
  ASSERT_GT(left, 0.0);
  ASSERT_LT(left, 0.95 * delta);  // they cost something
  const double uncut = bare.curve()->epsilon(left, 400).upper;
  EXPECT_GE(total.epsilon.upper, uncut * (1.0 - 2e-3));
  EXPECT_LE(total.epsilon.upper, uncut * (1.0 + 4e-3));
  EXPECT_GT(total.epsilon.upper, of_both(bare, bare).epsilon.upper * 1.001);
  EXPECT_EQ(total.epsilon.lower, 0.0);
  EXPECT_NE(total.certificate.upper.find("large batches cut"), std::string::npos);
  // One run's own statement, and a run of another mechanism beside it.
  EXPECT_EQ(total_of({ledger_of(cut, "a", 100)}).cost(delta).epsilon.upper, cut.curve()->epsilon(delta, 100).upper);
  const auto mixed = of_both(cut, of_whole_series(TopLevel::balls_in_bins, 8.0));
  EXPECT_GE(mixed.epsilon.upper, cut.curve()->epsilon(delta, 100).upper);
}

// The divergences that bins are charged with bound their own exact profile, and fall below those of fixed batches.
TEST(Total, DivergencesOfBinsAreOfBothDirections) {
  const std::vector<double> orders = {1.5, 2.0, 4.0, 16.0};
  for (const double sigma : {0.6, 1.0, 2.0}) {
    const auto mechanism = of_whole_series(TopLevel::balls_in_bins, sigma);
    const auto found = mechanism.theorem().renyi(1, orders);
    const auto fixed = of_whole_series(TopLevel::deterministic, sigma).theorem().renyi(1, orders);
    for (std::size_t i = 0; i < orders.size(); ++i) {
      EXPECT_LT(found[i], fixed[i]);
      // Any profile is at most what its divergence allows.
      for (const double epsilon : {0.1, 0.5, 1.0, 2.0}) {
        const double most = std::exp((orders[i] - 1.0) * (found[i] - epsilon)) *
                            std::pow(1.0 - 1.0 / orders[i], orders[i]) / (orders[i] - 1.0);
        EXPECT_LE(mechanism.curve()->delta(epsilon, 1).lower, most) << sigma << " " << orders[i] << " " << epsilon;
      }
    }
    // By hand, the second order of a removal: E_Q[(dP/dQ)²] = 1 + (e^{1/σ²} − 1)/b.
    EXPECT_GE(found[1], std::log1p(std::expm1(1.0 / (sigma * sigma)) / 20.0) * (1.0 - 1e-12));
  }
}

// A start that is one of the runs at an earlier step is a part of it; one of the same name under another key is another
// release, which counts in full.
TEST(Total, AStartIsKnownByItsKey) {
  const auto mechanism = mechanism_of({});
  auto earlier = ledger_of(mechanism, "a", 60);
  earlier.cost->epsilon = mechanism.curve()->epsilon(1e-6, 60);
  earlier.run.key_print = "1111111111111111";
  const auto whole = [&] {
    auto out = ledger_of(mechanism, "a", 100);
    out.run = earlier.run;
    return out;
  }();
  auto next = ledger_of(mechanism, "b", 50);
  next.start = {{}, StartOrigin::trained, std::string(64, 'a'), document(earlier)};
  EXPECT_EQ(total_of({whole, next}).mechanisms.front().uses, 150u);
  EXPECT_EQ(total_of({next}).mechanisms.front().uses, 110u);
  EXPECT_EQ(total_of({next, whole}).mechanisms.front().uses, 150u);
  auto copy = whole;
  copy.run.key_print = "2222222222222222";
  const auto both = total_of({copy, next});
  EXPECT_EQ(both.mechanisms.front().uses, 210u);
  EXPECT_FALSE(both.known_from_below);
  EXPECT_EQ(both.earlier, std::vector<std::string>{"a"});
  EXPECT_TRUE(total_of({whole, next}).known_from_below);
  EXPECT_THROW(static_cast<void>(total_of({whole, next, whole})), UsageError);
  // One run has one mechanism: another one under its name would hide what the start cost.
  auto quieter = ledger_of(mechanism_of({}, 100.0), "a", 100);
  quieter.run = earlier.run;
  EXPECT_THROW(static_cast<void>(total_of({quieter, next})), DataError);
}

// A chain of starts is readable to its end, and a run that would make it too long does not begin.
TEST(Total, AChainOfStartsIsReadToItsEnd) {
  const auto mechanism = mechanism_of({});
  auto last = ledger_of(mechanism, "run 1", 60);
  const auto complete = [&](Ledger& of) {
    of.program = "tsdp";
    of.run.configuration = std::string(64, '0');
    const auto curve = mechanism.curve();
    of.cost->epsilon = curve->epsilon(1e-6, 60);
    of.cost->target_epsilon = 8.0;
    of.cost->attack = stated_attack(*curve, 60, of.cost->epsilon.upper, 1e-6);
  };
  complete(last);
  int runs = 1;
  for (;; ++runs) {
    const auto text = document(last).dump();
    const auto document_of_last = parse_json(text, "privacy.json");
    const auto found = read_ledger(document_of_last, "privacy.json");
    EXPECT_EQ(earlier_runs(found.start, "privacy.json").size(), static_cast<std::size_t>(runs - 1));
    try {
      require_room_for_start(found, "privacy.json");
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find("runs one after the other"), std::string::npos) << error.what();
      break;
    }
    ASSERT_LT(runs, 100);
    auto next = ledger_of(mechanism, cat("run ", runs + 1), 60);
    complete(next);
    next.start = {{}, StartOrigin::trained, std::string(64, 'a'), document_of_last};
    last = next;
  }
  EXPECT_EQ(runs, 21);
  // A run among those that it started from contradicts itself.
  auto itself = ledger_of(mechanism, "x", 60);
  complete(itself);
  auto earlier = itself;
  itself.start = {{}, StartOrigin::trained, std::string(64, 'a'), document(earlier)};
  const auto differences = verify(document(itself), "privacy.json").differences;
  EXPECT_NE(
      std::find(differences.begin(), differences.end(), "start: found the run itself among those it started from"),
      differences.end());
}

TEST(Relations, ContainWhatIsANeighbourUnderBoth) {
  const PrivacyUnit value{Relation::event, 1, {}};
  const PrivacyUnit week{Relation::event, 7, {}};
  const PrivacyUnit anywhere{Relation::user, 7, {}};
  EXPECT_TRUE(contains(week, value));
  EXPECT_FALSE(contains(value, week));
  EXPECT_TRUE(contains(anywhere, week));
  EXPECT_FALSE(contains(week, anywhere));  // seven places anywhere are not consecutive
  EXPECT_TRUE(contains(week, {Relation::user, 1, {}}));
  EXPECT_FALSE(contains(week, {Relation::user, 2, {}}));
  EXPECT_TRUE(contains(value, {Relation::event, 1, 0.5}));
  EXPECT_FALSE(contains({Relation::event, 1, 0.5}, value));
  EXPECT_TRUE(contains({Relation::event, 2, 0.5}, {Relation::event, 1, 0.25}));
  EXPECT_FALSE(contains({Relation::event, 2, 0.25}, {Relation::event, 1, 0.5}));
  // A series within an owner's is neither that owner's series nor a series on its own; owners are those of one
  // grouping.
  const PrivacyUnit series{Relation::series, 1, {}};
  const PrivacyUnit homes{Relation::series, 1, {}, "a"};
  EXPECT_TRUE(contains(homes, homes));
  EXPECT_FALSE(contains(homes, series));
  EXPECT_FALSE(contains(series, homes));
  EXPECT_FALSE(contains(homes, {Relation::series, 1, {}, "b"}));
  EXPECT_FALSE(contains(homes, value));
  // Of several variables, a step is all of them; whether one variable is among those of other data nothing tells.
  PrivacyUnit step;
  step.variables = 2;
  EXPECT_TRUE(contains(step, step));
  EXPECT_FALSE(contains(step, value));
  EXPECT_FALSE(contains(value, step));
  // Without noise on the data v is not what the guarantee rests on.
  EXPECT_FALSE(guaranteed_unit(mechanism_of({Relation::event, 1, 0.5})).v);
  EXPECT_EQ(guaranteed_unit(mechanism_of({Relation::event, 1, 0.5}, 4.0, 2.0)).v, 0.5);
}

TEST(Total, ComposesMechanismsForTheSmallestRelation) {
  const auto one = ledger_of(mechanism_of({}), "one", 200);
  const auto other = ledger_of(mechanism_of({Relation::event, 5, {}}, 8.0), "other", 300);
  const auto total = total_of({other, one});
  EXPECT_EQ(total.unit, PrivacyUnit());
  const auto together = total.epsilon(1e-6);
  const auto alone = one.method.privacy()->curve()->epsilon(1e-6, 200);
  const auto second = other.method.privacy()->curve()->epsilon(1e-6, 300);
  EXPECT_GT(together.upper, std::max(alone.upper, second.upper));
  EXPECT_LT(together.upper, alone.upper + second.upper);
  EXPECT_EQ(together.lower, 0.0);  // the second pair is for more changes than the total
  // One run in two parts is that run.
  const auto parts =
      total_of({ledger_of(mechanism_of({}), "a", 120), ledger_of(mechanism_of({}), "b", 80)}).epsilon(1e-6);
  EXPECT_LE(std::max(parts.lower, alone.lower), std::min(parts.upper, alone.upper));
}

// A run without steps costs nothing under any relation, whatever its place among the others.
TEST(Total, RunsWithoutStepsDecideNothing) {
  const auto counts = ledger_of(mechanism_of({Relation::user, 2, {}}), "counts", 10);
  const auto expected = total_of({counts});
  for (const auto& unit : {PrivacyUnit{Relation::event, 5, {}}, PrivacyUnit{}, PrivacyUnit{Relation::user, 9, {}}}) {
    const auto free = ledger_of(mechanism_of(unit), "free", 0);
    for (const auto& both : {std::vector{free, counts}, std::vector{counts, free}}) {
      const auto total = total_of(both);
      EXPECT_EQ(total.unit, expected.unit);
      EXPECT_EQ(total.epsilon(1e-6).upper, expected.epsilon(1e-6).upper);
    }
    EXPECT_EQ(total_of({free}).epsilon(1e-6).upper, 0.0);
  }
  EXPECT_EQ(group_privacy(3, 0.0, 1e-6).epsilon, 0.0);
}

// One run that counts covariates as public is enough; runs without covariates or steps say nothing of them.
TEST(Total, ProtectsCovariatesWhereAllRunsDo) {
  const auto told = [](const std::string& id, const std::string& name, bool is_protected, std::uint64_t steps = 10) {
    auto out = ledger_of(mechanism_of({}), id, steps);
    out.covariates = {name};
    out.protects_covariates = is_protected;
    return out;
  };
  const auto untold = ledger_of(mechanism_of({}), "u", 10);
  const auto alone = total_of({untold});
  EXPECT_TRUE(alone.covariates.empty());
  const auto all_protected = total_of({told("a", "weather", true), untold, told("b", "price", true)});
  EXPECT_EQ(all_protected.covariates, (std::vector<std::string>{"weather", "price"}));
  EXPECT_TRUE(all_protected.protects_covariates);
  EXPECT_FALSE(total_of({told("a", "weather", true), told("b", "price", false)}).protects_covariates);
  EXPECT_FALSE(total_of({told("a", "price", false), told("b", "weather", true)}).protects_covariates);
  EXPECT_TRUE(total_of({told("a", "price", false, 0), told("b", "weather", true)}).protects_covariates);
}

TEST(Total, RefusesWhatDoesNotCompose) {
  const auto one = ledger_of(mechanism_of({}), "one", 10);
  EXPECT_THROW(static_cast<void>(total_of({})), UsageError);
  EXPECT_THROW(static_cast<void>(total_of({one, one})), UsageError);
  Ledger without{TrainingMethod(mechanism_of({}).scheme())};
  EXPECT_THROW(static_cast<void>(total_of({one, without})), PrivacyError);
  // Two places anywhere, five in a row: neither contains the other.
  EXPECT_THROW(static_cast<void>(total_of({ledger_of(mechanism_of({Relation::user, 2, {}}), "a", 1),
                                           ledger_of(mechanism_of({Relation::event, 5, {}}), "b", 1)})),
               PrivacyError);
}

class BudgetTest : public test::TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    file_ = folder_ / "budget.json";
  }

  std::filesystem::path file_;
};

TEST_F(BudgetTest, AdmitsWhatItPaysForAndNoMore) {
  create_budget(file_, 3.0, 1e-6);
  EXPECT_THROW(create_budget(file_, 3.0, 1e-6), UsageError);
  EXPECT_EQ(read_budget(file_).spent(), 0.0);
  const auto mechanism = mechanism_of({});
  int admitted = 0;
  while (admitted < 1000) {
    try {
      charge_budget(file_, "run " + std::to_string(admitted), mechanism, {}, 5000);
    } catch (const PrivacyError&) { break; }
    ++admitted;
  }
  EXPECT_GT(admitted, 1);
  const auto budget = read_budget(file_);
  EXPECT_EQ(budget.charges.size(), static_cast<std::size_t>(admitted));
  EXPECT_LE(budget.spent(), 1.0);
  // What was admitted costs no more than the budget by the exact composition either.
  const auto uses = static_cast<std::uint64_t>(admitted) * 5000;
  EXPECT_LE(mechanism.curve()->delta(3.0, uses).upper, 1e-6);
  // One that costs less may still fit; a run is charged once.
  EXPECT_THROW(charge_budget(file_, "run 0", mechanism_of({}, 1000.0), {}, 1), UsageError);
  EXPECT_NO_THROW(charge_budget(file_, "small", mechanism_of({}, 10000.0), {}, 1));
}

TEST_F(BudgetTest, KeepsToOneRelation) {
  create_budget(file_, 8.0, 1e-6);
  charge_budget(file_, "without steps", mechanism_of({Relation::user, 9, {}}), {}, 0);  // costs nothing under any
  charge_budget(file_, "first", mechanism_of({Relation::event, 5, {}}), {}, 10);
  charge_budget(file_, "without steps, later", mechanism_of({}), {}, 0);
  // Next to no noise: a step would cost more than any number, none costs nothing, also of a budget that pays for none.
  charge_budget(file_, "without steps or noise", mechanism_of({}, 0.01), {}, 0);
  EXPECT_EQ(read_budget(file_).charges.back().renyi, std::vector<double>(renyi_orders().size()));
  EXPECT_GT(read_budget(file_).spent(), 0.0);
  const auto little = folder_ / "little.json";
  create_budget(little, 1e-3, 1e-20);
  EXPECT_NO_THROW(charge_budget(little, "without steps", mechanism_of({}), {}, 0));
  EXPECT_EQ(read_budget(little).spent(), 0.0);
  EXPECT_EQ(read_budget(little).spent_epsilon(), 0.0);
  EXPECT_THROW(charge_budget(little, "with one", mechanism_of({}), {}, 1), PrivacyError);
  EXPECT_EQ(read_budget(file_).unit, (PrivacyUnit{Relation::event, 5, {}}));
  EXPECT_THROW(charge_budget(file_, "smaller", mechanism_of({}), {}, 10), PrivacyError);
  EXPECT_NO_THROW(charge_budget(file_, "larger", mechanism_of({Relation::user, 5, {}}), {}, 10));
  const auto other = folder_ / "stated.json";
  create_budget(other, 8.0, 1e-6, PrivacyUnit{Relation::event, 1, 0.5});
  EXPECT_NO_THROW(charge_budget(other, "unbounded", mechanism_of({}), {}, 10));
  EXPECT_NO_THROW(charge_budget(other, "bounded", mechanism_of({Relation::event, 1, 0.5}, 4.0, 2.0), {}, 10));
  EXPECT_THROW(charge_budget(other, "too bounded", mechanism_of({Relation::event, 1, 0.25}, 4.0, 2.0), {}, 10),
               PrivacyError);
}

// Charges that are made at once: each sees the other, and none is lost.
TEST_F(BudgetTest, LosesNoChargeOfRunsThatBeginAtOnce) {
  create_budget(file_, 50.0, 1e-6);
  const auto mechanism = mechanism_of({});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5; ++i) charge_budget(file_, std::to_string(t) + "." + std::to_string(i), mechanism, {}, 1);
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(read_budget(file_).charges.size(), 20U);
}

TEST_F(BudgetTest, HasOneName) {
  create_budget(file_, 8.0, 1e-6);
  const auto other = folder_ / "other.json";
  std::filesystem::create_hard_link(file_, other);
  EXPECT_THROW(charge_budget(file_, "run", mechanism_of({}), {}, 1), UsageError);
  EXPECT_THROW(charge_budget(other, "run", mechanism_of({}), {}, 1), UsageError);
  std::filesystem::remove(other);
  std::filesystem::create_symlink(file_, other);
  EXPECT_NO_THROW(charge_budget(other, "run", mechanism_of({}), {}, 1));
  EXPECT_THROW(charge_budget(file_, "run", mechanism_of({}), {}, 1), UsageError);  // charged already
  std::filesystem::create_symlink(folder_ / "none.json", folder_ / "dangling.json");
  EXPECT_THROW(create_budget(folder_ / "dangling.json", 1.0, 1e-6), UsageError);
}

// What comes next may depend on releases that are charged, and on nothing else of the data: weights to start from, too.
TEST_F(BudgetTest, PaysForNoStartThatItDoesNotKnow) {
  create_budget(file_, 3.0, 1e-6);
  const auto mechanism = mechanism_of({});
  auto earlier = ledger_of(mechanism, "earlier", 60);
  earlier.cost->epsilon = mechanism.curve()->epsilon(1e-6, 60);
  const auto start_of_run = [](const Ledger& ledger) {
    return Start{{}, origin_of_weights(ledger), std::string(64, 'a'), document(ledger)};
  };
  auto open = ledger_of(mechanism, "open", 60);
  open.method = TrainingMethod(mechanism.scheme());
  open.cost.reset();
  EXPECT_THROW(charge_budget(file_, "next", mechanism, start_of_run(open), 10), PrivacyError);
  EXPECT_THROW(charge_budget(file_, "next", mechanism, start_of_run(earlier), 10), PrivacyError);
  // Two in a chain: the run in between is charged, the one behind it is not.
  auto between = ledger_of(mechanism, "between", 30);
  between.cost->epsilon = mechanism.curve()->epsilon(1e-6, 30);
  between.start = start_of_run(earlier);
  charge_budget(file_, "between", mechanism, {}, 30);
  EXPECT_THROW(charge_budget(file_, "next", mechanism, start_of_run(between), 10), PrivacyError);
  EXPECT_EQ(read_budget(file_).charges.size(), 1u);
  charge_budget(file_, "earlier", mechanism, {}, 59);
  EXPECT_THROW(charge_budget(file_, "next", mechanism, start_of_run(between), 10),
               PrivacyError);  // one use more than was charged
  auto other = file_;
  other += ".other";
  create_budget(other, 3.0, 1e-6);
  charge_budget(other, "earlier", mechanism, {}, 60);
  charge_budget(other, "between", mechanism, start_of_run(earlier), 30);
  EXPECT_NO_THROW(charge_budget(other, "next", mechanism, start_of_run(between), 10));
  auto synthetic = earlier;
  synthetic.synthetic = SyntheticData{"hourly", 10, 100, 1};
  EXPECT_NO_THROW(charge_budget(other, "free", mechanism, start_of_run(synthetic), 10));
}

// A run whose amplification the ledger states is charged with it.
TEST_F(BudgetTest, CountsTheAmplificationOfBins) {
  create_budget(file_, 3.0, 1e-6);
  const auto bins = of_whole_series(TopLevel::balls_in_bins, 1.2, 40);
  const auto own = bins.curve()->epsilon(1e-6, 1).upper;
  EXPECT_LT(own, 1.5);
  EXPECT_NO_THROW(charge_budget(file_, "bins", bins, {}, 1));
  EXPECT_THROW(charge_budget(file_, "in turn", of_whole_series(TopLevel::deterministic, 1.2, 40), {}, 1), PrivacyError);
}

// A rare event may have any divergence.
TEST_F(BudgetTest, TakesNoRunWithCutBatches) {
  create_budget(file_, 3.0, 1e-6);
  try {
    charge_budget(file_, "cut", with_largest_batch(200), {}, 1);
    FAIL();
  } catch (const PrivacyError& error) {
    EXPECT_NE(std::string(error.what()).find("sampling.largest_batch"), std::string::npos);
  }
  EXPECT_TRUE(read_budget(file_).charges.empty());
}

TEST_F(BudgetTest, NamesTheCovariatesThatARunCountsAsPublic) {
  create_budget(file_, 3.0, 1e-6);
  charge_budget(file_, "first", mechanism_of({}), {}, 10);
  EXPECT_EQ(read_file(file_).find("covariates"), std::string::npos);
  charge_budget(file_, "second", mechanism_of({}), {}, 10, {"holiday", "price"});
  charge_budget(file_, "third", mechanism_of({}), {}, 10, {"price"});
  const auto budget = read_budget(file_);
  EXPECT_EQ(budget.public_covariates(), (std::vector<std::string>{"holiday", "price"}));
  EXPECT_NE(read_file(file_).find("The covariates (holiday, price) count as public."), std::string::npos);
}

TEST_F(BudgetTest, NamesWhatItCannotRead) {
  create_budget(file_, 3.0, 1e-6);
  charge_budget(file_, "run", mechanism_of({}), {}, 10);
  const auto text = read_file(file_);
  const auto expect_refused = [&](const std::string& from, const std::string& to) {
    auto edited = text;
    const auto at = edited.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    std::ofstream(file_) << edited.replace(at, from.size(), to);
    EXPECT_THROW(charge_budget(file_, "next", mechanism_of({}), {}, 1), DataError) << to;
  };
  expect_refused("tsdp-budget-1", "tsdp-budget-9");
  expect_refused("\"epsilon\": 3.0", "\"epsilon\": -3.0");
  expect_refused("\"delta\"", "\"delt\"");
  expect_refused("\"orders\": [\n    1.5", "\"orders\": [\n    1.6");
  expect_refused("\"charges\": [", "\"charges\": 3, \"was\": [");
  expect_refused("\"compositions\": 10", "\"compositions\": -10");
  expect_refused("{", "[");
  EXPECT_THROW(charge_budget(folder_ / "none.json", "run", mechanism_of({}), {}, 1), UsageError);
  EXPECT_THROW(create_budget(folder_ / "new.json", 0.0, 1e-6), UsageError);
  EXPECT_THROW(create_budget(folder_ / "new.json", 1.0, 1.0), UsageError);
}

}  // namespace
}  // namespace tsdp::mechanism
