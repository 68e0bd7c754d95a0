#include "tsdp/ledger/ledger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <tuple>

#include "base/version.h"
#include "privacy/theorems/series_law.h"
#include "support/ledger.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/json.h"
#include "tsdp/privacy/accountant/accountant.h"
#include "tsdp/privacy/terms/strategy.h"

namespace tsdp::mechanism {
namespace {

using namespace privacy;

using Json = nlohmann::ordered_json;

/// Six series of 188 to 200 values.
SubsamplingScheme::Parameters six_series() {
  SubsamplingScheme::Parameters p;
  p.lengths = SeriesLengths::between(6, 188, 200);
  p.context_length = 8;
  p.forecast_length = 4;
  p.batch_size = 3;
  return p;
}

/// 100 steps, whose epsilon follows from its terms.
Ledger ledger_of(const SubsamplingScheme::Parameters& law, PrivacyUnit unit = {},
                 std::optional<std::string> theorem = std::nullopt) {
  Ledger out(PrivateMechanism(unit, SubsamplingScheme(law), {ClippingKind::flat, 0.1}, {NoiseKind::independent, 2.0},
                              std::move(theorem)));
  out.program = std::string("tsdp ") + version();
  out.state = RunState::finished;
  out.run = {"0123456789abcdef0123456789abcdef", "0123456789abcdef", std::string(64, '0')};
  out.steps_planned = out.steps_charged = out.steps_taken = 100;
  auto& cost = out.cost.emplace();
  cost.delta = 1e-5;
  const auto curve = out.method.privacy()->curve();
  cost.epsilon = curve->epsilon(cost.delta, out.accounted_uses());
  cost.target_epsilon = std::max(8.0, cost.epsilon.upper);
  cost.attack = stated_attack(*curve, out.accounted_uses(), cost.epsilon.upper, cost.delta);
  return out;
}

Ledger example() { return ledger_of(six_series()); }

TEST(LedgerDocument, ReadsBackAsItsTerms) {
  for (const bool parsed : {false, true}) {
    auto json = document(example());
    if (parsed) json = Json::parse(json.dump());
    const auto found = read_ledger(json, "ledger");
    EXPECT_EQ(document(found), json);
    EXPECT_EQ(found.cost->epsilon.upper, example().cost->epsilon.upper);
    EXPECT_TRUE(verify(json, "ledger").agrees());
  }
}

// All ranks have the seed in their configuration.
TEST(LedgerDocument, NothingProtectsFromRanksThatKnowTheSeed) {
  auto of = example();
  of.files = 3;
  const auto known = document(of)["ranks"]["epsilon"];
  EXPECT_GT(known.get<double>(), of.cost->epsilon.upper);
  of.reproducible = true;
  auto json = document(of);
  EXPECT_TRUE(json["ranks"]["epsilon"].is_null());
  EXPECT_TRUE(verify(json, "ledger").agrees());
  json["ranks"]["epsilon"] = known;
  EXPECT_FALSE(verify(json, "ledger").agrees());
}

TEST(LedgerDocument, AgreesForEveryTheoremThatTrainingUses) {
  struct Scheme {
    TopLevel top;
    BottomLevel bottom;
    std::int64_t lambda;
    double context_noise, forecast_noise;
    const char* theorem;
  };
  constexpr auto deterministic = TopLevel::deterministic;
  constexpr auto without_replacement = TopLevel::without_replacement;
  using enum BottomLevel;
  for (const auto& s : {Scheme{deterministic, with_replacement, 1, 0, 0, "4.2"},
                        {without_replacement, with_replacement, 1, 0, 0, "4.4"},
                        {deterministic, with_replacement, 3, 0, 0, "E.1"},
                        {deterministic, poisson, 1, 0, 0, "E.8"},
                        {without_replacement, with_replacement, 3, 0, 0, "F.1"},
                        {without_replacement, poisson, 2, 0, 0, "F.2"},
                        {without_replacement, with_replacement, 1, 2, 2, "4.5"},
                        {without_replacement, with_replacement, 1, 1, 2, "G.1"}}) {
    SCOPED_TRACE(s.theorem);
    auto law = six_series();
    law.top_level = s.top;
    law.bottom_level = s.bottom;
    law.subsequences_per_sequence = s.lambda;
    law.context_noise = s.context_noise;
    law.forecast_noise = s.forecast_noise;
    PrivacyUnit unit;
    if (s.context_noise > 0.0) unit.v = 0.5;
    const auto ledger = ledger_of(law, unit, s.theorem);
    const auto found = verify(Json::parse(document(ledger).dump()), "ledger");
    EXPECT_TRUE(found.agrees()) << found.differences.front();
    // The shortest and the longest series decide: with all lengths between them the mechanism is the same.
    law.lengths = {190, 188, 195, 200, 199, 188};
    const auto whole = apply_theorem(SubsamplingScheme(law), unit, 2.0);
    EXPECT_EQ(whole.theorem, s.theorem);
    for (const double epsilon : {0.0, 0.1, 1.0})
      EXPECT_EQ(whole.pair.profile_bracket(epsilon).upper,
                ledger.method.privacy()->theorem().pair.profile_bracket(epsilon).upper);
  }
}

TEST(LedgerDocument, ALargestBatchIsPartOfTheTerms) {
  SubsamplingScheme::Parameters law = six_series();
  law.lengths = SeriesLengths::equal(1000, 200);
  law.record = Record::series;
  law.top_level = TopLevel::poisson;
  law.batch_size = 100;
  const auto without = ledger_of(law, {Relation::series, 1, {}});
  law.largest_batch = 167;
  const auto ledger = ledger_of(law, {Relation::series, 1, {}});
  EXPECT_GT(ledger.cost->epsilon.upper, without.cost->epsilon.upper);
  auto json = Json::parse(document(ledger).dump());
  EXPECT_EQ(json["mechanism"]["largest_batch"], 167);
  EXPECT_EQ(read_ledger(json, "ledger").method.scheme().parameters().largest_batch, 167);
  EXPECT_TRUE(verify(json, "ledger").agrees());
  // With cuts that are more frequent, or with none, it is another epsilon.
  json["mechanism"]["largest_batch"] = 164;
  EXPECT_FALSE(verify(json, "ledger").agrees());
  json["mechanism"].erase("largest_batch");
  EXPECT_FALSE(verify(json, "ledger").agrees());
  json["mechanism"]["largest_batch"] = 90;
  EXPECT_THROW(static_cast<void>(read_ledger(json, "ledger")), DataError);
}

TEST(LedgerDocument, TheVariablesOfASeriesAreInItsStatement) {
  auto law = six_series();
  const auto one = ledger_of(law);
  law.lengths = law.lengths.of_variables(3);
  PrivacyUnit unit;
  unit.variables = 3;
  const auto ledger = ledger_of(law, unit);
  // A step of a vector costs what a step of a number does (paper, Appendix I).
  EXPECT_EQ(ledger.cost->epsilon.upper, one.cost->epsilon.upper);
  EXPECT_NE(statement(ledger).find("they differ in one series, in the values of all 3 variables at one step"),
            std::string::npos)
      << statement(ledger);
  auto json = Json::parse(document(ledger).dump());
  EXPECT_TRUE(verify(json, "ledger").agrees());
  EXPECT_EQ(read_ledger(json, "ledger").method.privacy()->unit(), unit);
  EXPECT_EQ(read_ledger(json, "ledger").method.scheme().variables(), 3);
  // One of the two alone is refused.
  auto other = json;
  other["relation"].erase("variables");
  EXPECT_ANY_THROW(static_cast<void>(read_ledger(other, "ledger")));
  other = json;
  other["mechanism"].erase("variables");
  EXPECT_ANY_THROW(static_cast<void>(read_ledger(other, "ledger")));
  EXPECT_FALSE(Json::parse(document(one).dump())["relation"].contains("variables"));
  // Correlated noise has a row of its own; a private choice, and owners, know one variable.
  auto whole = law;
  whole.record = Record::series;
  whole.top_level = TopLevel::balls_in_bins;
  whole.batches = 2;
  const auto bins = [&](std::int64_t variables) {
    PrivacyUnit of{Relation::series, 1, {}};
    of.variables = variables;
    const auto strategy = std::make_shared<const Strategy>(StrategyKind::bsr, square_root_bands(2), 20);
    return PrivateMechanism(of, SubsamplingScheme(whole), {}, noise_by(strategy, 4.0));
  };
  EXPECT_EQ(bins(3).unit().variables, 3);
  EXPECT_THROW(bins(1), PrivacyError);
  EXPECT_THROW(bins(2), PrivacyError);
  EXPECT_THROW(PrivateMechanism(unit, SubsamplingScheme(law), {}, {NoiseKind::independent, 2.0}, std::nullopt, 0.5),
               PrivacyError);
  EXPECT_THROW(static_cast<void>(SeriesLengths({10, 10}, Owners{{0, 0}, "a"}).of_variables(2)), UsageError);

  unit.w = 7;
  EXPECT_NE(statement(ledger_of(law, unit)).find("all 3 variables within 7 consecutive steps"), std::string::npos);
  unit.relation = Relation::user;
  EXPECT_NE(statement(ledger_of(law, unit)).find("all 3 variables in at most 7 steps anywhere"), std::string::npos);
  unit = {Relation::series, 1, {}};
  law.record = Record::series;
  EXPECT_THROW(static_cast<void>(ledger_of(law, unit)), PrivacyError);
  unit.variables = 3;
  EXPECT_NE(statement(ledger_of(law, unit)).find("one whole series, with all 3 variables, is in the data"),
            std::string::npos);
  unit.v = 1.0;
  unit.relation = Relation::event;
  law.record = Record::window;
  EXPECT_THROW(static_cast<void>(ledger_of(law, unit)), PrivacyError);
}

TEST(LedgerDocument, APrivateChoiceIsPartOfTheTerms) {
  const auto with = [](double choice) {
    auto out = example();
    const auto& m = *out.method.privacy();
    out.method = PrivateMechanism(m.unit(), m.scheme(), m.clipping(), m.noise(), std::nullopt, choice);
    const auto curve = out.method.privacy()->curve();
    out.cost->epsilon = curve->epsilon(out.cost->delta, out.accounted_uses());
    out.cost->attack = stated(attack_bound(*curve, out.accounted_uses()));
    return out;
  };
  const auto ledger = with(0.5);
  EXPECT_NEAR(ledger.cost->epsilon.upper, example().cost->epsilon.upper + 0.5, 1e-9);
  const auto json = Json::parse(document(ledger).dump());
  EXPECT_TRUE(verify(json, "ledger").agrees());
  EXPECT_EQ(read_ledger(json, "ledger").method.privacy()->choice_epsilon(), 0.5);
  EXPECT_NE(statement(ledger).find("tsdp.7"), std::string::npos);
  EXPECT_EQ(json["not_covered"].dump().find("\"validation and test values, and any choice"), std::string::npos);
  // Neither a smaller choice nor none follows.
  auto less = json;
  for (const double other : {0.25, 0.75}) {
    less["choice"]["epsilon"] = other;
    EXPECT_FALSE(verify(less, "ledger").agrees());
  }
  less.erase("choice");
  EXPECT_FALSE(verify(less, "ledger").agrees());
  EXPECT_FALSE(document(example()).contains("choice"));
}

// As tsdp 0.5.0 wrote it, at the end of a run that is no longer offered.
TEST(LedgerDocument, AnEarlierRunsPrivateChoiceIsReadAndVerified) {
  const auto file = std::string(TSDP_SOURCE_DIR) + "/tests/ledger/ledger_of_0.5_with_a_choice.json";
  const auto json = parse_json(read_file(file), file);
  EXPECT_TRUE(verify(json, file).agrees());
  const auto ledger = read_ledger(json, file);
  EXPECT_EQ(ledger.method.privacy()->choice_epsilon(), 2.0);
  EXPECT_GT(ledger.cost->epsilon.upper, 2.0);
}

// A plan asks its curve for steps before it asks for the epsilon of them, at whatever precision: the answers differ in
// their last digits, and each is stated by some run. Without a choice and with one, whose epsilon is added.
TEST(LedgerDocument, AgreesWhateverItsCurveWasAskedBefore) {
  std::mt19937_64 draw(7);
  const auto between = [&](double low, double high) {
    return low * std::pow(high / low, std::uniform_real_distribution<>()(draw));
  };
  for (int i = 0; i < 12; ++i) {
    SCOPED_TRACE(i);
    auto law = six_series();
    const auto series = static_cast<std::int64_t>(between(20, 600));
    const auto length = static_cast<std::int64_t>(between(300, 4000));
    law.lengths = SeriesLengths::between(series, length, length);
    law.context_length = 168;
    law.forecast_length = 24;
    law.batch_size = series;
    const double target = between(0.1, 2.0);
    const double choice = i % 2 == 0 ? 0.0 : 0.05 * target;
    const PrivateMechanism mechanism({}, SubsamplingScheme(law), {ClippingKind::flat, 1e-4},
                                     {NoiseKind::independent, between(20.0, 400.0)}, std::nullopt, choice);
    const std::uint64_t uses = 4000;
    const double delta = 1e-7;
    for (const double precision : {1e-3, 1e-4, finest_precision}) {
      auto curve = mechanism.curve();
      if (precision == 1e-3) std::ignore = curve->max_uses(target, delta, uses);
      auto ledger = example();
      ledger.method = mechanism;
      ledger.steps_planned = ledger.steps_charged = ledger.steps_taken = uses;
      ledger.cost->delta = delta;
      ledger.cost->target_epsilon = 100.0;
      ledger.cost->epsilon = curve->epsilon(delta, uses, precision);
      ledger.cost->attack = stated(attack_bound(*mechanism.curve(), uses));
      const auto found = verify(document(ledger), "ledger");
      EXPECT_TRUE(found.agrees()) << precision << ": " << found.differences.front();
      // What is not certified at any precision does not follow.
      ledger.cost->epsilon.upper = ledger.cost->epsilon.lower * (1.0 - 1e-6);
      EXPECT_FALSE(verify(document(ledger), "ledger").agrees());
    }
  }
}

TEST(LedgerDocument, TheCompositionIsPartOfTheTerms) {
  auto ledger = example();
  const auto symmetrised = ledger.cost->epsilon;
  const auto& m = *ledger.method.privacy();
  ledger.method =
      PrivateMechanism(m.unit(), m.scheme(), m.clipping(), m.noise(), std::nullopt, 0.0, StepComposition::adaptive);
  const auto curve = ledger.method.privacy()->curve();
  ledger.cost->epsilon = curve->epsilon(ledger.cost->delta, ledger.accounted_uses());
  ledger.cost->attack = stated_attack(*curve, ledger.accounted_uses(), ledger.cost->epsilon.upper, ledger.cost->delta);
  EXPECT_LT(ledger.cost->epsilon.upper, 0.95 * symmetrised.upper);
  const auto json = Json::parse(document(ledger).dump());
  EXPECT_TRUE(verify(json, "ledger").agrees());
  EXPECT_EQ(json.at("composition"), "adaptive");
  EXPECT_NE(json.at("certificate").at("upper").get<std::string>().find("tsdp.6"), std::string::npos);
  EXPECT_EQ(read_ledger(json, "ledger").method.privacy()->composition(), StepComposition::adaptive);
  EXPECT_NE(statement(ledger).find("its steps composed by tsdp.6"), std::string::npos);
  // Without the word the same epsilon does not follow.
  auto without = json;
  without.erase("composition");
  EXPECT_FALSE(verify(without, "ledger").agrees());
  EXPECT_FALSE(document(example()).contains("composition"));
  // Two windows of a series, and whole series: not proven.
  auto two = six_series();
  two.subsequences_per_sequence = 2;
  two.batch_size = 4;
  EXPECT_THROW(PrivateMechanism({}, SubsamplingScheme(two), m.clipping(), m.noise(), std::nullopt, 0.0,
                                StepComposition::adaptive),
               PrivacyError);
  auto whole = six_series();
  whole.record = Record::series;
  EXPECT_THROW(PrivateMechanism({Relation::series, 1, {}}, SubsamplingScheme(whole), m.clipping(), m.noise(),
                                std::nullopt, 0.0, StepComposition::adaptive),
               PrivacyError);
}

TEST(LedgerDocument, TheAttackersBoundsAreCheckedToo) {
  auto ledger = example();
  EXPECT_TRUE(verify(document(ledger), "ledger").agrees());
  auto less = ledger;
  less.cost->attack->advantage *= 0.98;
  EXPECT_FALSE(verify(document(less), "ledger").agrees());
  less = ledger;
  less.cost->attack->true_positive_rate *= 0.98;
  EXPECT_FALSE(verify(document(less), "ledger").agrees());
  auto json = document(ledger);
  json["attack"]["meaning"] = "no attacker learns anything";
  EXPECT_FALSE(verify(json, "ledger").agrees());
  json = document(ledger);
  json["attack"]["more"] = 1;
  EXPECT_FALSE(verify(json, "ledger").agrees());
  json = document(ledger);
  json.erase("attack");
  EXPECT_FALSE(verify(json, "ledger").agrees());
  EXPECT_GT(document(ledger)["gaussian"]["regret"].get<double>(), 0.01);
  for (const auto* key : {"mu", "regret", "delta"}) {
    json = document(ledger);
    json["gaussian"][key] = 0.5 * json["gaussian"][key].get<double>();
    EXPECT_FALSE(verify(json, "ledger").agrees()) << key;
  }
  json = document(ledger);
  json["gaussian"]["meaning"] = "nobody learns anything";
  EXPECT_FALSE(verify(json, "ledger").agrees());
  // Ledgers of earlier programs have none.
  json = document(ledger);
  json.erase("gaussian");
  EXPECT_TRUE(verify(json, "ledger").agrees());
  json = document(ledger);
  json["attack"]["false_positive_rate"] = 0.9;
  EXPECT_THROW(static_cast<void>(verify(json, "ledger")), DataError);
}

/// By a closed form, and by a search whose answer another program may find a little elsewhere, but not below what
/// holds.
TEST(LedgerDocument, WhatAReplacedSeriesCostsIsNotLessThanFollows) {
  auto law = six_series();
  law.record = Record::series;
  for (const auto top : {TopLevel::deterministic, TopLevel::poisson, TopLevel::balls_in_bins}) {
    law.top_level = top;
    const auto ledger = ledger_of(law, {Relation::series, 1, {}});
    const auto stated = document(ledger);
    const double epsilon = stated["substitution"]["epsilon"];
    const bool searched = top != TopLevel::deterministic;
    const auto& privacy = *ledger.method.privacy();
    const double finer =
        privacy.substitution(ledger.accounted_uses(), ledger.cost->epsilon.upper, ledger.cost->delta, 1e-6).epsilon;
    EXPECT_LE(finer, epsilon);
    EXPECT_GT(finer, epsilon * (1.0 - (searched ? 1e-2 : 1e-15)));
    const auto agrees = [&](double with) {
      auto json = stated;
      json["substitution"]["epsilon"] = with;
      return verify(json, "ledger").agrees();
    };
    EXPECT_TRUE(agrees(epsilon)) << name(top);
    EXPECT_TRUE(agrees(1.001 * epsilon)) << name(top);
    EXPECT_TRUE(agrees(finer * (1.0 + 1e-9))) << name(top);
    EXPECT_FALSE(agrees(finer * (1.0 - 1e-4))) << name(top);
    auto json = stated;
    json["substitution"]["delta"] = 0.5 * ledger.cost->delta;
    EXPECT_FALSE(verify(json, "ledger").agrees()) << name(top);
    json["substitution"] = {{"epsilon", epsilon}};
    EXPECT_FALSE(verify(json, "ledger").agrees()) << name(top);
  }
}

TEST(LedgerDocument, NoRunPassesItsTarget) {
  auto ledger = example();
  ledger.cost->target_epsilon = ledger.cost->epsilon.upper;
  EXPECT_TRUE(verify(document(ledger), "ledger").agrees());
  ledger.cost->target_epsilon *= 0.999;
  EXPECT_FALSE(verify(document(ledger), "ledger").agrees());
}

// tsdp.1 is not monotone in the length: a length between the shortest and the longest may cost far more.
TEST(LedgerDocument, RowsThatNeedEveryLengthAreNotDerivedFromTwo) {
  auto law = six_series();
  law.context_noise = 0.1;
  law.forecast_noise = 50.0;
  const PrivacyUnit unit{Relation::event, 1, 0.5};
  EXPECT_THROW(static_cast<void>(read_ledger(document(ledger_of(law, unit, "tsdp.1")), "ledger")), PrivacyError);
  law.lengths = SeriesLengths::equal(6, 188);
  EXPECT_NO_THROW(static_cast<void>(read_ledger(document(ledger_of(law, unit, "tsdp.1")), "ledger")));
}

TEST(LedgerDocument, StatesTheWholePlanWhileARunGoesOn) {
  auto ledger = example();
  ledger.state = RunState::running;
  ledger.steps_charged = ledger.steps_taken = 10;
  EXPECT_EQ(ledger.accounted_steps(), 100U);
  EXPECT_TRUE(verify(document(ledger), "ledger").agrees());
  ledger.state = RunState::interrupted;
  EXPECT_EQ(ledger.accounted_steps(), 10U);
  EXPECT_FALSE(verify(document(ledger), "ledger").agrees());  // more than follows
}

// Never to the nearest: a number shown is not below the one that is proven.
TEST(LedgerStatement, RoundsUp) {
  auto ledger = example();
  ledger.cost->epsilon.upper = 0.876512;
  EXPECT_EQ(statement(ledger).rfind("(0.8766, 1e-05)-differential privacy", 0), 0U) << statement(ledger);
  ledger.reproducible = true;
  EXPECT_NE(statement(ledger).find("NOT FOR RELEASE"), std::string::npos);
  EXPECT_TRUE(document(ledger)["reproducible"].get<bool>());
}

// An event is accounted for by steps: with gaps, w values in a row may lie further apart and touch more windows.
TEST(LedgerStatement, CountsSteps) {
  const auto ledger = ledger_of(six_series(), {Relation::event, 5, std::nullopt}, std::nullopt);
  EXPECT_NE(statement(ledger).find("values within 5 consecutive steps"), std::string::npos) << statement(ledger);
  EXPECT_NE(document(ledger)["relation"]["text"].get<std::string>().find("values within 5 consecutive steps"),
            std::string::npos);
}

TEST(LedgerStatement, SaysWhatEpsilonDoesNotCover) {
  std::string all;
  const auto json = document(example());
  for (const auto& line : json["not_covered"]) all += line.get<std::string>() + "\n";
  for (const auto* part :
       {"other models and other runs on the same data", "what the programs print", "several series or columns",
        "stopping it", "private/", "validation and test values", "floating-point"})
    EXPECT_NE(all.find(part), std::string::npos) << part;
  EXPECT_EQ(json["epsilon_covers"], Json::array({"model"}));
}

TEST(LedgerStatement, WarnsOfALargeDelta) {
  auto ledger = example();
  EXPECT_TRUE(document(ledger)["warnings"].empty());
  ledger.cost->delta = 1.0 / 6.0 + 1e-9;
  EXPECT_NE(document(ledger)["warnings"].dump().find("not below 1 / 6"), std::string::npos);
}

TEST(GroupPrivacy, IsTheSumOverAChainOfNeighbours) {
  // ε = ln 2, δ = 1e-6: for 3 series 3 ln 2 and δ (1 + 2 + 4).
  const auto three = group_privacy(3, std::log(2.0), 1e-6);
  EXPECT_NEAR(three.epsilon, 3.0 * std::log(2.0), 1e-12);
  EXPECT_GE(three.epsilon, 3.0 * std::log(2.0));
  EXPECT_NEAR(three.delta, 7e-6, 1e-15);
  EXPECT_GE(three.delta, 7e-6);
  EXPECT_EQ(group_privacy(10, 800.0, 0.5).delta, 1.0);
  const auto json = document(example());
  const double epsilon = json["epsilon"]["upper"];
  EXPECT_GE(json["groups"]["of"][0]["epsilon"].get<double>(), 2.0 * epsilon);
  EXPECT_GE(json["groups"]["of"][0]["delta"].get<double>(), 1e-5 * (1.0 + std::exp(epsilon)));
}

TEST(LedgerReader, NamesWhatItCannotRead) {
  const auto good = document(example());
  const auto expect_refused = [&](const char* pointer, const Json& value, const std::string& part) {
    auto json = good;
    json[Json::json_pointer(pointer)] = value;
    try {
      static_cast<void>(read_ledger(json, "run/privacy.json"));
      ADD_FAILURE() << pointer << " = " << value;
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
      EXPECT_EQ(std::string(error.what()).rfind("run/privacy.json", 0), 0U) << error.what();
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  };
  expect_refused("/state", "done", "one of running, interrupted, finished");
  expect_refused("/private", 1, "true or false");
  expect_refused("/steps_taken", -1, "steps_taken: found -1");
  expect_refused("/steps_taken", 101, "from 0 to 100");
  expect_refused("/mechanism", 3, "mechanism");
  expect_refused("/mechanism/num_sequences", 1e3, "num_sequences");
  expect_refused("/mechanism/batch_size", 0, "batch_size");
  expect_refused("/mechanism/shortest_sequence", 201, "shortest_sequence");
  expect_refused("/mechanism/top_level", "alphabetic", "top_level");
  expect_refused("/relation/w", "1", "w: found \"1\"");
  expect_refused("/noise_multiplier", nullptr, "noise_multiplier: found null");
  expect_refused("/epsilon/upper", "0.5", "upper");
  expect_refused("/delta", 2.0, "delta");
  expect_refused("/format", "tsdp-privacy-1", "another version");
  EXPECT_THROW(static_cast<void>(read_ledger(Json::array(), "x")), DataError);
  EXPECT_THROW(static_cast<void>(read_ledger(Json(Json::value_t::discarded), "x")), DataError);
  auto without = good;
  without.erase("theorem");
  EXPECT_THROW(static_cast<void>(read_ledger(without, "x")), DataError);
}

TEST(LedgerReader, WithoutPrivacyThereIsNoEpsilon) {
  const auto json = test::ledger(false);
  EXPECT_TRUE(json["epsilon"].is_null());
  EXPECT_EQ(json["statement"], "No privacy: trained without clipping and noise.");
  EXPECT_FALSE(read_ledger(json, "x").is_private());
}

}  // namespace
}  // namespace tsdp::mechanism
