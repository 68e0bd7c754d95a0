// Series that several of have one owner: all of an owner's are the record, from the configuration to what is stated.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "run_fixture.h"

namespace tsdp::cli_test {
namespace {

class Owners : public RunTest {
 protected:
  void SetUp() override {
    RunTest::SetUp();
    write("meters.csv", meters({"north", "south", "north", "east"}));
    write("config.yaml",
          "dataset: {path: meters.csv, frequency: 1h, prediction_length: 4, season_length: 24, split: last,\n"
          "  test_windows: 2, validation_length: 8, owner: {column: household}}\n"
          "model: {context_length: 8}\n"
          "sampling: {top_level: poisson, batch_size: 2}\n"
          "privacy: {relation: series, noise_multiplier: 4.0, delta: 1.0e-3, target_epsilon: 50}\n"
          "training: {max_epochs: 3}\n");
  }
  /// Rows of 120 hours of meters a, b, c, d, whose household stands beside each value.
  [[nodiscard]] static std::string meters(const std::vector<std::string>& households) {
    std::string out = "unique_id,ds,y,household\n";
    for (std::size_t m = 0; m < households.size(); ++m)
      for (int t = 0; t < 120; ++t) {
        const auto two = [](int number) { return (number < 10 ? "0" : "") + std::to_string(number); };
        out += std::string(1, static_cast<char>('a' + m)) + ",2015-01-" + two(1 + t / 24) + " " + two(t % 24) + ":00," +
               std::to_string(10 + static_cast<int>(m) * 7 + t % 24) + "," + households[m] + "\n";
      }
    return out;
  }
  /// After other lines, such as a word on the column of households where it is not read.
  static void expect_says(const Outcome& outcome, int code, const std::string& text) {
    EXPECT_EQ(outcome.exit_code, code) << outcome.err;
    EXPECT_NE(outcome.err.find(text), std::string::npos) << outcome.err;
  }
  [[nodiscard]] Outcome plan(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"--config", "config.yaml", "--dry-run", "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run("tsdp-train", arguments);
  }
};

// All series of the target's owner are missing from the other data, and the attack is about all of them.
TEST_F(Owners, AreAttackedWithAllTheirSeries) {
  const std::vector<std::string> asked = {"--config", "config.yaml", "--mode", "membership", "--models",
                                          "8",        "--target",    "a",      "--quiet"};
  const auto attacked = run("tsdp-audit", asked);
  ASSERT_EQ(attacked.exit_code, 0) << attacked.err;
  EXPECT_NE(attacked.out.find("whether the 2 series of the owner of a were among"), std::string::npos) << attacked.out;
  auto as_json = asked;
  as_json.emplace_back("--json");
  EXPECT_EQ(answer("tsdp-audit", as_json)["series_of_target"], 2);
}

TEST_F(Owners, AreWhatTheStatementIsAbout) {
  make_run("homes");
  const auto ledger = ledger_of("homes");
  EXPECT_EQ(ledger["mechanism"]["num_sequences"], 3);
  EXPECT_EQ(ledger["mechanism"]["kind"].get<std::string>().substr(0, 34), "DP-SGD on all series of an owner, ");
  EXPECT_EQ(ledger["relation"]["kind"], "owner");
  EXPECT_EQ(ledger["mechanism"]["num_series"], 4);
  EXPECT_EQ(ledger["relation"]["text"],
            "two data sets are neighbours if they differ in whether all series of one owner are in the data");
  EXPECT_EQ(ledger["relation"]["owners_sha256"].get<std::string>().size(), 64U);
  EXPECT_TRUE(ledger["groups"]["of"][0].contains("owners")) << ledger["groups"];
  EXPECT_NE(ledger["not_covered"].dump().find("which of them have the same owner"), std::string::npos);
  EXPECT_NE(content_of(path("homes") / "model_card.md").find("all series of any one owner, there or not"),
            std::string::npos);
  EXPECT_EQ(run("tsdp-account", {"verify", "homes"}).exit_code, 0);
  EXPECT_NE(plan().out.find("4 series of 3 owners"), std::string::npos) << plan().out;
  const std::vector<std::string> alone = {"--set", "model.prior=last_value", "--set", "model.candidates=[]"};
  EXPECT_NE(plan(alone).out.find("; more owners, or a larger"), std::string::npos) << plan(alone).out;
  // The same, from a file of its own; which household is called what does not matter.
  write("homes.csv", "meter,home\nz,9\na,1\nb,2\nc,1\nd,3\n");
  make_run("file", {"--set", "dataset.owner.file=homes.csv", "--set", "dataset.owner.column=home"});
  EXPECT_EQ(ledger_of("file")["relation"], ledger["relation"]);
  EXPECT_EQ(ledger_of("file")["epsilon"], ledger["epsilon"]);
  EXPECT_NE(content_of(path("homes") / "model_card.md").find("4 series of 3 owners, each of"), std::string::npos);
  // Owners of one series each are those series, by another statement.
  make_run("series", {"--set", "dataset.owner.column=null"});
  EXPECT_EQ(ledger_of("series")["mechanism"]["num_sequences"], 4);
  EXPECT_FALSE(ledger_of("series")["relation"].contains("owners_sha256"));
}

// One secret key draws the same batches for four series as for four owners of one series each.
TEST_F(Owners, OfOneSeriesEachTrainAsTheSeriesDo) {
  const std::vector<std::string> of_seed = {"--set", "training.reproducible=true", "--set", "training.seed=3"};
  auto without = of_seed;
  without.insert(without.end(), {"--set", "dataset.owner.column=null"});
  make_run("without", without);
  write("meters.csv", meters({"w", "x", "y", "z"}));
  make_run("with", of_seed);
  EXPECT_EQ(ledger_of("with")["epsilon"], ledger_of("without")["epsilon"]);
  const auto scores = [&](const std::string& name) {
    return answer("tsdp-evaluate", {"--run", name, "--json"})["crps"];
  };
  EXPECT_EQ(scores("with"), scores("without"));
}

TEST_F(Owners, RunsOfOthersAreNotAddedUp) {
  make_run("homes");
  write("meters.csv", meters({"north", "north", "south", "east"}));
  make_run("others");
  make_run("series", {"--set", "dataset.owner.column=null"});
  const auto total = [&](const std::string& other) {
    return run("tsdp-account", {"total", "homes", other, "--delta", "1e-2"});
  };
  expect_says(total("others"), 4, "all series of one owner");
  expect_says(total("series"), 4, "one whole series");
  // A budget is for the relation of its first run.
  const auto made = answer("tsdp-account", {"budget", "b.json", "--epsilon", "500", "--delta", "1e-3", "--json"});
  EXPECT_EQ(made, answer("tsdp-account", {"budget", "b.json", "--json"}));
  EXPECT_EQ(made["left"], 500.0);
  make_run("first", {"--budget", "b.json"});
  const auto with_budget = [&](const std::string& setting) {
    return run("tsdp-train", {"--config", "config.yaml", "--budget", "b.json", "--set", setting});
  };
  expect_says(with_budget("dataset.owner.column=null"), 4, "which this run's relation series: one whole series");
  write("meters.csv", meters({"north", "south", "north", "east"}));
  expect_says(with_budget("training.seed=2"), 4, "which this run's relation series: all series of one owner");
}

// The same three owners of as many series, but not of the same series: rows of another order do not hide that.
TEST_F(Owners, AreToldApartWhateverTheOrderOfRows) {
  const auto in_order = [&](const std::string& names, const std::vector<std::string>& households) {
    auto text = meters(households);
    for (auto at = text.find('\n') + 1; at < text.size(); at = text.find('\n', at) + 1)
      text[at] = names[static_cast<std::size_t>(text[at] - 'a')];
    write("meters.csv", text);
  };
  const auto grouping = [&](const std::string& name) { return ledger_of(name)["relation"]["owners_sha256"]; };
  in_order("abcd", {"1", "1", "2", "3"});
  make_run("first");
  in_order("acbd", {"1", "1", "2", "3"});  // a and c are one household's
  make_run("second");
  in_order("dcba", {"3", "2", "1", "1"});  // those of the first run, from behind
  make_run("third");
  EXPECT_NE(grouping("second"), grouping("first"));
  EXPECT_EQ(grouping("third"), grouping("first"));
}

TEST_F(Owners, OfSeriesOfManyLengthsAreReadAgain) {
  auto text = meters({"one", "one", "one", "one"});
  text.resize(text.size() - 30 * std::string("d,2015-01-05 10:00,41,one\n").size());
  write("meters.csv", text);
  make_run("run", {"--set", "sampling.batch_size=1", "--set", "privacy.delta=0.1"});
  EXPECT_EQ(run("tsdp-account", {"verify", "run"}).exit_code, 0);
  EXPECT_EQ(run("tsdp-evaluate", {"--run", "run", "--report"}).exit_code, 0);
  // Only as many digits as a SHA-256 has are one.
  auto forged = ledger_of("run");
  forged["relation"]["owners_sha256"] = "0000";
  write("forged.json", forged.dump());
  expect_failure(run("tsdp-account", {"verify", "forged.json"}), "tsdp-account", 3,
                 {"owners_sha256", "64 hexadecimal digits"});
  forged["relation"] = {{"kind", "series"}, {"w", 1}, {"v", nullptr}, {"text", ""}};
  write("forged.json", forged.dump());
  expect_failure(run("tsdp-account", {"verify", "forged.json"}), "tsdp-account", 3,
                 {"no owners beside a mechanism.num_series"});
}

TEST_F(Owners, CopiesWithinAnOwnerAreOneRecord) {
  auto text = meters({"one", "one", "two", "three"});
  // Meter b has the values of a.
  const auto rows_of = [&](char meter) {
    std::string out;
    for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
      if (text[at] == meter) out += text.substr(at, text.find('\n', at) + 1 - at);
    return out;
  };
  auto copy = rows_of('a');
  for (std::size_t at = 0; at < copy.size(); at = copy.find('\n', at) + 1) copy[at] = 'b';
  text.replace(text.find(rows_of('b')), rows_of('b').size(), copy);
  write("meters.csv", text);
  const auto fine = plan();
  EXPECT_EQ(fine.exit_code, 0) << fine.err;
  EXPECT_EQ(fine.err.find("same values"), std::string::npos) << fine.err;
  // Two of three households with one meter's values: it has several owners.
  write("homes.csv", "meter,owner\na,1\nb,2\nc,3\nd,1\n");
  expect_says(plan({"--set", "dataset.owner.column=null", "--set", "dataset.owner.file=homes.csv"}), 0,
              "it has several owners");
}

TEST_F(Owners, StayThoseOfTheRun) {
  make_run("homes", {"--set", "training.max_epochs=2"});
  const auto resume = [&] { return run("tsdp-train", {"--resume", "homes", "--quiet"}); };
  EXPECT_EQ(resume().exit_code, 0);
  write("meters.csv", meters({"north", "north", "south", "east"}));
  expect_failure(resume(), "tsdp-train", 2, {"dataset.owner: found other owners"});
}

TEST_F(Owners, AreRefusedWhereTheyAreNotKnown) {
  const auto refused = [&](const std::string& file, int code, const std::string& because) {
    write("homes.csv", file);
    expect_says(plan({"--set", "dataset.owner.file=homes.csv", "--set", "dataset.owner.column=home"}), code, because);
  };
  refused("meter,home\na,1\nb,2\nc,1\n", 3, "homes.csv: found no row of series 'd'");
  refused("meter,home\na,1\nb,2\nc,\nd,3\n", 3, "homes.csv:4:2: found no owner of series 'c'");
  refused("meter,home\na,1\nb,2\nc,1\na,2\nd,3\n", 3,
          "homes.csv:5:2: found the owner '2' of series 'a', and '1' in line 2");
  refused("meter,house\na,1\n", 2, "dataset.owner.column: found 'home', which is no column of");
  refused("home\n1\n", 2, "dataset.owner.column: found 'home', which is no column of");
  refused("", 3, "homes.csv: found an empty file");
  refused("meter,home\na,1\nb,nan\nc,1\nd,3\n", 3, "homes.csv:3:2: found no owner of series 'b'");
  refused(",meter,home\n0,a,1\n1,b,2\n2,c,1\n3,d,3\n", 3, "without a column of names that is known");
  refused("item_id,unique_id,home\na,b,1\nb,a,2\n", 3, "with several columns of names");
  expect_says(plan({"--set", "dataset.owner.column=unique_id"}), 3, "without a column of names that is known");
  expect_says(plan({"--set", "dataset.owner.column=street"}), 2, "found 'street', which is no column");
  expect_says(plan({"--set", "dataset.owner.file=nowhere.csv"}), 3, "nowhere.csv");
  expect_says(plan({"--set", "privacy.relation=event"}), 2, "found a file or column with privacy.relation event");
  expect_says(plan({"--set", "dataset.format=synthetic", "--set", "dataset.path=hourly"}), 2,
              "synthetic series are nobody's");
  expect_says(
      plan({"--set", "dataset.path=series.txt", "--set", "dataset.format=lstnet", "--set", "dataset.start=2015-01-01"}),
      2, "dataset.owner.column: found household");
}

}  // namespace
}  // namespace tsdp::cli_test
