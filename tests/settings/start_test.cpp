// Where a model's weights come from: what its ledger says of it, and what it costs with the rest.
#include <gtest/gtest.h>

#include <string>

#include "base/version.h"
#include "ledger/total.h"
#include "settings/setup.h"
#include "support/ledger.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::mechanism {
namespace {

Ledger ledger_with(const std::string& id, Start start = {}, bool with_privacy = true) {
  auto out = read_ledger(test::ledger(with_privacy), "ledger");
  out.run.id = id;
  out.start = std::move(start);
  return out;
}

Start trained_by(const Ledger& ledger) {
  return {{}, origin_of_weights(ledger), std::string(64, 'a'), document(ledger)};
}

TEST(Start, EveryLedgerSaysWhereWeightsComeFrom) {
  const auto synthetic = [] { return Start{{}, StartOrigin::synthetic, std::string(64, 'b'), {}}; }();
  // Noise that follows from a seed hides nothing.
  auto of_a_seed = ledger_with("d");
  of_a_seed.reproducible = true;
  for (const auto& [start, origin] :
       {std::pair{Start{}, "fresh"}, std::pair{synthetic, "synthetic"},
        std::pair{trained_by(ledger_with("b")), "trained"},
        std::pair{trained_by(ledger_with("b", {}, false)), "trained_without_privacy"},
        std::pair{trained_by(of_a_seed), "trained_without_privacy"},
        std::pair{trained_by(ledger_with("b", trained_by(of_a_seed))), "trained_without_privacy"},
        std::pair{trained_by(ledger_with("b", trained_by(ledger_with("c", {}, false)))), "trained_without_privacy"}}) {
    const auto text = document(ledger_with("a", start));
    EXPECT_EQ(text["start"]["origin"], origin);
    EXPECT_EQ(start_origin_of(text, "ledger"), start.origin);
    EXPECT_TRUE(verify(text, "ledger").agrees()) << verify(text, "ledger").differences.front();
    // "epsilon 0" stands where nothing was spent, and nowhere else.
    EXPECT_EQ(start_cited(start.origin).find("epsilon 0") != std::string::npos, !rests_on_data(start.origin)) << origin;
    // Whoever reads fields is told, too: in what is not covered, in the warnings, and beside each number that leaves
    // the start out.
    for (const char* where : {"/not_covered", "/warnings", "/groups/meaning", "/attack/meaning"}) {
      const auto place = nlohmann::ordered_json::json_pointer(where);
      if (!text.contains(place)) continue;
      EXPECT_EQ(text.at(place).dump().find("start.trained") != std::string::npos, rests_on_data(start.origin))
          << origin << where;
    }
  }
  EXPECT_NE(document(of_a_seed)["warnings"].dump().find("not for release"), std::string::npos);
  // A ledger cannot claim more privacy than the ledgers behind it.
  auto text = document(ledger_with("a", trained_by(ledger_with("b", {}, false))));
  text["start"]["origin"] = "trained";
  EXPECT_THROW(static_cast<void>(read_ledger(text, "ledger")), DataError);
}

// What version 0.5 wrote stays readable, is held to its own words, and what it did not say of privacy is found in the
// ledgers that it holds.
TEST(Start, LedgersOfTheEditionBeforeAreRead) {
  const auto as_before = [](nlohmann::ordered_json text) {
    text["format"] = "tsdp-privacy-2";
    text["program"] = cat("tsdp ", version());  // as that version called itself
    const auto put_back = [&](const char* where, const std::string& now, const std::string& then) {
      const auto place = nlohmann::ordered_json::json_pointer(where);
      if (!text.contains(place)) return;
      auto value = text.at(place).get<std::string>();
      if (const auto at = value.find(now); at != std::string::npos) value.replace(at, now.size(), then);
      text[place] = value;
    };
    put_back("/attack/meaning", "all releases of this run and", "all releases and");
    for (const char* where : {"/attack/meaning", "/groups/meaning"}) {
      const auto place = nlohmann::ordered_json::json_pointer(where);
      if (text.contains(place)) text[place] = split(text.at(place).get<std::string>(), ';').front();
    }
    put_back("/relation/text", "values within 24 consecutive steps", "at most 24 consecutive values");
    put_back("/statement", "values within 24 consecutive steps", "at most 24 consecutive values");
    const auto start = text["start"];
    text.erase("start");
    nlohmann::ordered_json out;
    for (const auto& [key, value] : text.items()) {
      if (key == "steps_planned" && start["origin"] != "fresh") {
        const bool data = start["origin"] != "synthetic";
        out["start"] = {{"prior", start["prior"]},
                        {"season", start["season"]},
                        {"weights", data ? "trained" : "synthetic"},
                        {"weights_sha256", start["weights_sha256"]}};
        if (data) out["start"]["trained"] = start["trained"];
      }
      out[key] = value;
    }
    return out;
  };
  const auto day = [](Ledger ledger) {
    const auto& m = *ledger.method.privacy();
    Ledger out{PrivateMechanism({privacy::Relation::event, 24, std::nullopt}, m.scheme(), m.clipping(), m.noise())};
    out.program = ledger.program, out.state = ledger.state, out.run = ledger.run, out.start = ledger.start;
    out.steps_planned = out.steps_charged = out.steps_taken = ledger.steps_planned;
    const auto curve = out.method.privacy()->curve();
    out.cost = Cost{ledger.cost->delta, 100.0, curve->epsilon(ledger.cost->delta, out.accounted_uses()),
                    privacy::stated(privacy::attack_bound(*curve, out.accounted_uses()))};
    return out;
  };
  for (const auto& ledger : {ledger_with("a"), day(ledger_with("a")), ledger_with("a", trained_by(ledger_with("b"))),
                             ledger_with("a", trained_by(ledger_with("b", {}, false)))}) {
    const auto text = as_before(document(ledger));
    const auto found = verify(text, "ledger");
    EXPECT_TRUE(found.agrees()) << found.differences.front();
    EXPECT_EQ(found.terms->start.origin, ledger.start.origin);
    EXPECT_EQ(start_origin_of(text, "ledger"), ledger.start.origin);
    auto edited = text;
    edited["statement"] = "(0.001, 1e-09)-differential privacy.";
    EXPECT_FALSE(verify(edited, "ledger").agrees());
  }
}

TEST(Start, IsReadBackAsItWasWritten) {
  const Start synthetic{{PriorKind::seasonal_naive, 24}, StartOrigin::synthetic, std::string(64, 'b'), {}};
  for (const auto& start : {synthetic, trained_by(ledger_with("b"))}) {
    const auto text = document(ledger_with("a", start));
    EXPECT_EQ(read_ledger(text, "ledger").start, start);
    EXPECT_TRUE(verify(text, "ledger").agrees()) << verify(text, "ledger").differences.front();
  }
}

TEST(Start, WeightsTrainedOnDataAreInTheStatement) {
  const auto plain = statement(ledger_with("a"));
  const auto after_private = statement(ledger_with("a", trained_by(ledger_with("b"))));
  EXPECT_TRUE(after_private.starts_with(plain));
  EXPECT_NE(after_private.find("NOT INCLUDED"), std::string::npos);
  EXPECT_NE(statement(ledger_with("a", trained_by(ledger_with("b", {}, false)))).find("NOT COVERED"),
            std::string::npos);
  EXPECT_EQ(statement(ledger_with("a", {{}, StartOrigin::synthetic, "c", {}})), plain);
}

TEST(Start, OfSyntheticSeriesIsFreeUnlessTheirOwnStartIsNot) {
  auto ledger = ledger_with("a", {}, false);
  EXPECT_EQ(origin_of_weights(ledger), StartOrigin::trained_without_privacy);
  ledger.synthetic = SyntheticData{"hourly", 10, 100, 1};
  EXPECT_EQ(origin_of_weights(ledger), StartOrigin::synthetic);
  EXPECT_NE(statement(ledger).find("Nobody's data"), std::string::npos);
  EXPECT_EQ(read_ledger(document(ledger), "ledger").synthetic, ledger.synthetic);
  EXPECT_THROW(static_cast<void>(total_of({ledger})), UsageError);
  ledger.start = trained_by(ledger_with("b"));
  EXPECT_EQ(origin_of_weights(ledger), StartOrigin::trained);
  const auto text = statement(ledger);
  EXPECT_EQ(text.find("Nobody's data"), std::string::npos) << text;
  EXPECT_NE(text.find("NOT INCLUDED"), std::string::npos) << text;
  // It costs what its start cost, which is named.
  const auto total = total_of({ledger});
  EXPECT_EQ(total.earlier, std::vector<std::string>{"b"});
  EXPECT_EQ(total.epsilon(1e-6).upper, total_of({ledger_with("b")}).epsilon(1e-6).upper);
  EXPECT_TRUE(total_of({ledger, ledger_with("b")}).earlier.empty());
}

// The runs behind a run's weights compose with it, each once, however many started from it.
TEST(Start, CostsWhatItsOwnRunCost) {
  const auto first = ledger_with("a");
  const auto second = ledger_with("b", trained_by(first));
  const auto third = ledger_with("c", trained_by(first));
  const auto uses = [](const std::vector<Ledger>& ledgers) {
    std::uint64_t out = 0;
    for (const auto& one : total_of(ledgers).mechanisms) out += one.uses;
    return out;
  };
  const auto refusal_of = [](const std::vector<Ledger>& ledgers) -> std::string {
    try {
      static_cast<void>(total_of(ledgers));
    } catch (const PrivacyError& error) { return error.what(); }
    return "not refused";
  };
  const auto one = first.accounted_uses();
  EXPECT_EQ(uses({first}), one);
  EXPECT_EQ(uses({second}), 2 * one);
  EXPECT_EQ(uses({first, second}), 2 * one);
  EXPECT_EQ(uses({second, third}), 3 * one);
  EXPECT_EQ(uses({ledger_with("d", trained_by(second))}), 3 * one);
  // Nothing is stated of a run whose start protects nobody, whichever runs are named beside it.
  auto of_a_seed = ledger_with("a");
  of_a_seed.reproducible = true;
  EXPECT_THROW(static_cast<void>(total_of({of_a_seed})), PrivacyError);  // and of runs with one seed the noise is one
  for (const auto& start : {ledger_with("a", {}, false), of_a_seed, ledger_with("e", trained_by(of_a_seed))}) {
    const auto after = ledger_with("b", trained_by(start));
    for (const auto& runs : {std::vector<Ledger>{after},
                             {ledger_with("f"), after},
                             {after, of_a_seed},
                             {ledger_with("g", trained_by(after))}})
      EXPECT_NE(refusal_of(runs).find("started from weights that were trained without privacy"), std::string::npos);
    auto on_synthetic = ledger_with("h", trained_by(start), false);
    on_synthetic.synthetic = SyntheticData{"hourly", 10, 100, 1};
    EXPECT_THROW(static_cast<void>(total_of({on_synthetic})), PrivacyError);
    EXPECT_THROW(static_cast<void>(total_of({ledger_with("f"), ledger_with("i", trained_by(on_synthetic))})),
                 PrivacyError);
  }
}

TEST(Start, AnEditedLedgerBehindItIsFound) {
  auto text = document(ledger_with("a", trained_by(ledger_with("b"))));
  text["start"]["trained"]["epsilon"]["upper"] = 1e-3;
  const auto found = verify(text, "ledger");
  ASSERT_FALSE(found.agrees());
  EXPECT_NE(found.differences.front().find("start: trained: "), std::string::npos) << found.differences.front();
  // Weights of data cannot be passed off as synthetic ones and keep their ledger, nor lose it.
  text = document(ledger_with("a", trained_by(ledger_with("b"))));
  text["start"]["origin"] = "synthetic";
  EXPECT_FALSE(verify(text, "ledger").agrees());
  text = document(ledger_with("a", trained_by(ledger_with("b"))));
  text["start"].erase("trained");
  EXPECT_THROW(static_cast<void>(verify(text, "ledger")), DataError);
}

TEST(Start, ChainsOfRunsEnd) {
  auto text = document(ledger_with("a"));
  for (int i = 0; i < 25; ++i) {
    auto next = document(ledger_with("b", trained_by(ledger_with("c"))));
    next["start"]["trained"] = text;
    text = next;
  }
  EXPECT_THROW(static_cast<void>(read_ledger(text, "ledger")), DataError);
}

}  // namespace
}  // namespace tsdp::mechanism
