// Where a model's weights come from: what its ledger says of it, and what it costs with the rest.
#include <gtest/gtest.h>

#include <string>

#include "support/ledger.h"
#include "tsdp/base/error.h"
#include "tsdp/mechanism/setup.h"
#include "tsdp/mechanism/total.h"

namespace tsdp::mechanism {
namespace {

Ledger ledger_with(const std::string& id, Start start = {}, bool with_privacy = true) {
  auto out = read_ledger(test::ledger(with_privacy), "ledger");
  out.run.id = id;
  out.start = std::move(start);
  return out;
}

Start trained_by(const Ledger& ledger) { return {{}, StartOrigin::trained, std::string(64, 'a'), document(ledger)}; }

TEST(Start, LedgersOfFreshWeightsSayNothingOfThem) { EXPECT_FALSE(document(ledger_with("a")).contains("start")); }

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
  EXPECT_NE(statement(ledger_with("a", trained_by(ledger_with("b", {}, false)))).find("NOT COVERED"), std::string::npos);
  EXPECT_EQ(statement(ledger_with("a", {{}, StartOrigin::synthetic, "c", {}})), plain);
}

TEST(Start, OfSyntheticSeriesIsFreeUnlessTheirOwnStartIsNot) {
  auto ledger = ledger_with("a", {}, false);
  EXPECT_EQ(origin_of_weights(ledger), StartOrigin::trained);
  ledger.synthetic = SyntheticData{"hourly", 10, 100, 1};
  EXPECT_EQ(origin_of_weights(ledger), StartOrigin::synthetic);
  EXPECT_NE(statement(ledger).find("Nobody's data"), std::string::npos);
  EXPECT_EQ(read_ledger(document(ledger), "ledger").synthetic, ledger.synthetic);
  ledger.start = trained_by(ledger_with("b"));
  EXPECT_EQ(origin_of_weights(ledger), StartOrigin::trained);
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
  const auto one = first.accounted_uses();
  EXPECT_EQ(uses({first}), one);
  EXPECT_EQ(uses({second}), 2 * one);
  EXPECT_EQ(uses({first, second}), 2 * one);
  EXPECT_EQ(uses({second, third}), 3 * one);
  EXPECT_EQ(uses({ledger_with("d", trained_by(second))}), 3 * one);
  EXPECT_THROW(static_cast<void>(total_of({ledger_with("b", trained_by(ledger_with("a", {}, false)))})), PrivacyError);
}

TEST(Start, AnEditedLedgerBehindItIsFound) {
  auto text = document(ledger_with("a", trained_by(ledger_with("b"))));
  text["start"]["trained"]["epsilon"]["upper"] = 1e-3;
  const auto found = verify(text, "ledger");
  ASSERT_FALSE(found.agrees());
  EXPECT_NE(found.differences.front().find("start: trained: "), std::string::npos) << found.differences.front();
  // Weights of data cannot be passed off as synthetic ones and keep their ledger, nor lose it.
  text = document(ledger_with("a", trained_by(ledger_with("b"))));
  text["start"]["weights"] = "synthetic";
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
