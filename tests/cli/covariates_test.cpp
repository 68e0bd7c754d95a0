// What is known of every step beside the series, from the configuration to forecasts.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "run_fixture.h"

namespace tsdp::cli_test {
namespace {

class CovariatesOfRuns : public RunTest {
 protected:
  void SetUp() override {
    RunTest::SetUp();
    write("known.csv", known(230));
  }
  /// Hours from the start of the series on.
  [[nodiscard]] static std::string known(int rows, double scale = 1.0) {
    std::string out = "time,holiday,price\n";
    for (int i = 0; i < rows; ++i) {
      const int day = i / 24;
      const int hour = i % 24;
      out += "2015-01-" + std::string(day < 9 ? "0" : "") + std::to_string(day + 1) + " " +
             std::string(hour < 10 ? "0" : "") + std::to_string(hour) + ":00," +
             std::to_string(day % 3 == 0 ? scale : 0.0) + "," + std::to_string(0.01 * i * scale) + "\n";
    }
    return out;
  }
  /// The series themselves, as covariates.
  [[nodiscard]] static std::string same_as_series() {
    auto times = lines(known(200));
    const auto values = lines(series_text(1));
    std::string out = "time,a,b\n";
    for (std::size_t i = 0; i < values.size(); ++i)
      out += times[i + 1].substr(0, times[i + 1].find(',')) + "," + std::to_string(i % 2) +
             values[i].substr(values[i].find(',')) + "\n";
    return out;
  }
  [[nodiscard]] std::string read(const std::string& name) const { return content_of(path(name)); }
  [[nodiscard]] static std::vector<std::string> lines(const std::string& text) {
    std::vector<std::string> out;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) out.push_back(line);
    return out;
  }
  const std::vector<std::string> told = {
      "--set", "model.name=deepar", "--set", "model.lags=[1, 2]", "--set", "dataset.covariates.file=known.csv"};

  [[nodiscard]] Outcome plan(std::vector<std::string> more) const {
    std::vector<std::string> arguments = {"--config", "config.yaml", "--dry-run"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run("tsdp-train", arguments);
  }
  [[nodiscard]] Outcome forecast(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"--model", "told/model.pt", "--input",  "series.txt", "--format", "lstnet",
                                          "--start", "2015-01-01",    "--output", "out.csv",    "--seed",   "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run("tsdp-forecast", arguments);
  }
};

TEST_F(CovariatesOfRuns, ReachTheModelItsStatementAndItsForecasts) {
  make_run("told", told);
  const auto ledger = nlohmann::json::parse(read("told/privacy.json"));
  EXPECT_EQ(ledger["covariates"]["names"], (nlohmann::json{"holiday", "price"}));
  EXPECT_NE(ledger["not_covered"].dump().find("the covariates (holiday, price): treated as public"), std::string::npos);
  EXPECT_NE(ledger["statement"].get<std::string>().find("The covariates (holiday, price) count as public."),
            std::string::npos);
  EXPECT_TRUE(answer("tsdp-account", {"verify", "told", "--json"})["agrees"].get<bool>());
  // The run names the columns that it read, and finds the file again.
  EXPECT_NE(read("told/config.yaml").find("columns: [\"holiday\", \"price\"]"), std::string::npos)
      << read("told/config.yaml");
  EXPECT_EQ(run("tsdp-evaluate", {"--run", "told", "--json"}).exit_code, 0);

  const auto done = forecast({"--covariates", "known.csv"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const auto forecasts = read("out.csv");
  // Other prices, other forecasts; the order of columns does not matter.
  write("other.csv", known(230, 5.0));
  EXPECT_EQ(forecast({"--covariates", "other.csv"}).exit_code, 0);
  EXPECT_NE(read("out.csv"), forecasts);
  std::string turned;
  for (const auto& line : lines(known(230))) {
    const auto first = line.find(',');
    const auto second = line.rfind(',');
    turned += line.substr(0, first) + line.substr(second) + line.substr(first, second - first) + "\n";
  }
  write("turned.csv", turned);
  EXPECT_EQ(forecast({"--covariates", "turned.csv"}).exit_code, 0);
  EXPECT_EQ(read("out.csv"), forecasts);

  const auto without = forecast({});
  EXPECT_EQ(without.exit_code, 2);
  EXPECT_NE(without.err.find("--covariates: not given; told/model.pt reads holiday, price"), std::string::npos)
      << without.err;
  write("short.csv", known(203));  // 200 values and 3 of the 4 steps of the forecast
  const auto ends = forecast({"--covariates", "short.csv"});
  EXPECT_EQ(ends.exit_code, 3);
  EXPECT_NE(ends.err.find("none for 2015-01-09 11:00:00"), std::string::npos) << ends.err;
}

TEST_F(CovariatesOfRuns, AreWhatARunWasChargedFor) {
  std::vector<std::string> some = told;
  some.insert(some.end(), {"--set", "dataset.covariates.columns=[price]", "--set", "training.max_epochs=400", "--set",
                           "privacy.target_epsilon=40"});
  make_run("run", some);
  EXPECT_NE(read("run/config.yaml").find("columns: [\"price\"]"), std::string::npos);
  write("known.csv", known(230));  // the column that is read stays
  EXPECT_EQ(run("tsdp-train", {"--resume", "run", "--threads", "1"}).exit_code, 0);
  auto text = known(230);
  const auto line = text.find(",0.05");
  text.replace(line, 5, ",0.06");
  write("known.csv", text);
  const auto changed = run("tsdp-train", {"--resume", "run", "--threads", "1"});
  EXPECT_EQ(changed.exit_code, 2) << changed.err;
  EXPECT_NE(changed.err.find("dataset.covariates.file: found ../known.csv with other values than the run began with"),
            std::string::npos)
      << changed.err;
  // Rows behind the series may come later.
  write("known.csv", known(238));
  EXPECT_EQ(run("tsdp-train", {"--resume", "run", "--threads", "1"}).exit_code, 0);
}

TEST_F(CovariatesOfRuns, AreRefusedInOneLine) {
  const auto expect = [&](const std::vector<std::string>& more, int exit_code, const std::string& because) {
    const auto outcome = plan(more);
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    EXPECT_NE(outcome.err.find(because), std::string::npos) << outcome.err;
    EXPECT_EQ(lines(outcome.err).size(), 1U) << outcome.err;
  };
  expect({"--set", "dataset.covariates.columns=[price]"}, 2,
         "dataset.covariates.columns: found price without dataset.covariates.file");
  const auto with = [&](const std::string& setting) {
    auto out = told;
    out.insert(out.end(), {"--set", setting});
    return out;
  };
  expect(with("dataset.covariates.file=gone.csv"), 3, "dataset.covariates.file");
  write("same.csv", same_as_series());
  expect(with("dataset.covariates.file=same.csv"), 4,
         "column b: has the values of series 1, and covariates count as public");
  expect(with("dataset.covariates.columns=[weather]"), 2, "found 'weather', which is no column of");
  expect(with("dataset.covariates.columns=[price, price]"), 2, "a list of at most 100 different names");
  write("known.csv", "time,age\n2015-01-01 00:00,1\n2015-01-01 01:00,1\n");
  expect(told, 3, "none for 2015-01-01 02:00:00 of series");
}

/// `known` of each of three series, whose names are numbers: other prices, and a region.
std::string of_series(const std::string& shared) {
  std::string out;
  std::istringstream in(shared);
  std::vector<std::string> rows;
  for (std::string line; std::getline(in, line);) rows.push_back(line);
  out = "item_id," + rows.front() + ",region\n";
  for (int s = 0; s < 20; ++s)
    for (std::size_t i = 1; i < rows.size(); ++i)
      out += std::to_string(s) + "," + rows[i].substr(0, rows[i].rfind(',')) + "," + std::to_string(0.1 * s) + "," +
             (s % 2 == 0 ? "north" : "south") + "\n";
  return out;
}

// A model that reads time features and was told of no covariates cannot forecast series that have some.
TEST_F(CovariatesOfRuns, ACandidateThatKnowsNoneIsRefusedByName) {
  make_run("untold", {"--set", "model.name=deepar", "--set", "model.lags=[1, 2]", "--set", "privacy.target_epsilon=50",
                      "--set", "dataset.validation_length=0"});
  std::filesystem::copy_file(path("untold/model.pt"), path("untold.pt"));
  auto arguments = told;
  arguments.insert(arguments.begin(),
                   {"--config", "config.yaml", "--output", "mixed", "--quiet", "--set",
                    "model.candidates=[last_value_bands, untold.pt]", "--set", "privacy.enabled=false"});
  const auto refused = run("tsdp-train", arguments);
  expect_failure(refused, "tsdp-train", 2, {"untold.pt", "no covariates", "holiday, price"});
}

TEST_F(CovariatesOfRuns, OfEachSeriesAreProtectedWhereThatIsAskedFor) {
  write("each.csv", of_series(known(230)));
  const auto with = [this](std::vector<std::string> more) {
    auto all = told;
    all.back() = "dataset.covariates.file=each.csv";
    for (const auto& one : more) all.insert(all.end(), {"--set", one});
    return all;
  };
  make_run("public", with({}));
  const auto open = nlohmann::json::parse(read("public/privacy.json"));
  EXPECT_EQ(open["covariates"]["names"], (nlohmann::json{"holiday", "price", "region=north", "region=south"}));
  EXPECT_FALSE(open["covariates"].contains("protected"));
  EXPECT_EQ(run("tsdp-evaluate", {"--run", "public", "--json"}).exit_code, 0);
  // The run goes on with what it was charged for alone.
  auto other = of_series(known(230));
  other.replace(other.find("0.100000", other.find("\n1,2015-01-04")), 8, "0.300000");
  write("each.csv", other);
  expect_failure(run("tsdp-train", {"--resume", "public", "--threads", "1"}), "tsdp-train", 2,
                 {"dataset.covariates.file: found ../each.csv with other values than the run began with"});
  write("each.csv", of_series(known(238)));  // rows behind the series may come later
  EXPECT_EQ(run("tsdp-train", {"--resume", "public", "--threads", "1"}).exit_code, 0);

  make_run("told", with({"dataset.covariates.private=true", "dataset.covariates.columns=[price, region=south]"}));
  const auto ledger = nlohmann::json::parse(read("told/privacy.json"));
  EXPECT_EQ(ledger["covariates"]["names"], (nlohmann::json{"price", "region=south"}));
  EXPECT_TRUE(ledger["covariates"]["protected"].get<bool>());
  EXPECT_EQ(ledger["not_covered"].dump().find("whoever they are about"), std::string::npos);
  EXPECT_NE(
      ledger["not_covered"].dump().find("covariates (price, region=south) that were computed from values of other"),
      std::string::npos);
  EXPECT_NE(ledger["statement"].get<std::string>().find(
                "The covariates (price, region=south) of a step belong to its value: neighbours may differ in them "
                "where they differ in the value."),
            std::string::npos)
      << ledger["statement"];
  EXPECT_EQ(ledger["epsilon"], open["epsilon"]);
  EXPECT_TRUE(answer("tsdp-account", {"verify", "told", "--json"})["agrees"].get<bool>());
  // A statement that was changed is not derived anew.
  auto changed = read("told/privacy.json");
  const std::string flag = "\"protected\": true";
  ASSERT_NE(changed.find(flag), std::string::npos) << changed;
  changed.replace(changed.find(flag), flag.size(), "\"protected\": false");
  write("changed.json", changed);
  EXPECT_NE(run("tsdp-account", {"verify", "changed.json"}).exit_code, 0);
  const auto privately =
      forecast({"--covariates", "each.csv", "--private", "--epsilon", "1", "--delta", "1e-6", "--v", "1"});
  expect_failure(privately, "tsdp-forecast", 2,
                 {"--private: the model's training protects the covariates (price, region=south)"});

  const auto expect = [&](const std::vector<std::string>& more, const std::string& because) {
    expect_failure(plan(with(more)), "tsdp-train", 2, {"dataset.covariates.private: found true" + because});
  };
  expect({"dataset.covariates.private=true"}, ", and each.csv has a column of text");
  expect({"dataset.covariates.private=true", "dataset.covariates.file=known.csv"},
         ", and known.csv is the same for all series");
  expect({"dataset.covariates.private=true", "dataset.covariates.columns=[price]", "privacy.v=1"}, " with privacy.v");
  expect({"dataset.covariates.private=true", "dataset.covariates.columns=[price]", "privacy.v=1",
          "augmentation.context_noise=1"},
         " with privacy.v");
  write("facts.csv", "item_id,size\n0,1\n1,2\n2,3\n3,4\n4,5\n5,6\n6,7\n7,8\n8,9\n9,1\n");
  expect({"dataset.covariates.private=true", "dataset.covariates.file=facts.csv"},
         ", and facts.csv has one row a series");
  // What is asked for is kept with a model that was trained without.
  expect_failure(run("tsdp-evaluate", {"--run", "public", "--private", "--epsilon", "1", "--delta", "1e-6", "--v", "1",
                                       "--set", "dataset.covariates.private=true", "--set",
                                       "dataset.covariates.columns=[holiday, price, region=north, region=south]"}),
                 "tsdp-evaluate", 2, {"--private: the configuration has dataset.covariates.private"});
  // The series themselves are no covariates of theirs, protected or not.
  std::string copies = "item_id,time,y\n";
  const auto times = lines(known(200));
  const auto values = lines(series_text(1));
  for (int s = 0; s < 20; ++s)
    for (std::size_t i = 0; i < values.size(); ++i)
      copies += std::to_string(s) + "," + times[i + 1].substr(0, times[i + 1].find(',')) +
                values[i].substr(values[i].find(',')) + "\n";
  write("copies.csv", copies);
  expect_failure(plan(with({"dataset.covariates.private=true", "dataset.covariates.file=copies.csv"})), "tsdp-train", 4,
                 {"column y: has the values of series 1, which are what is to be forecast"});
  // A start that was told of none was told of nothing in public.
  make_run("untold", {"--set", "model.name=dlinear"});
  const auto after = plan({"--set", "model.name=dlinear", "--set", "model.start=untold/model.pt", "--set",
                           "dataset.covariates.file=each.csv", "--set", "dataset.covariates.private=true", "--set",
                           "dataset.covariates.columns=[price]"});
  EXPECT_EQ(after.exit_code, 0) << after.err;
  // A budget knows which covariates its runs count as public.
  ASSERT_EQ(run("tsdp-account", {"budget", "budget.json", "--epsilon", "90", "--delta", "1e-5"}).exit_code, 0);
  const auto charged = [&](const std::string& name, std::vector<std::string> more) {
    more.insert(more.end(), {"--budget", path("budget.json")});
    make_run(name, more);
    const auto found = answer("tsdp-account", {"budget", "budget.json", "--json"});
    return found.contains("public_covariates") ? found["public_covariates"].size() : 0;
  };
  EXPECT_EQ(charged("paid", with({"dataset.covariates.private=true", "dataset.covariates.columns=[price]"})), 0U);
  EXPECT_EQ(charged("paid publicly", with({"dataset.covariates.columns=[price]"})), 1U);
  // Together, both treat their covariates as the one does that protects less.
  const auto together = answer("tsdp-account", {"total", "public", "told", "--delta", "1e-5", "--json"});
  EXPECT_FALSE(together["covariates"]["protected"].get<bool>());
  EXPECT_EQ(together["covariates"]["names"].size(), 4U);
  EXPECT_TRUE(answer("tsdp-account", {"total", "told", "--delta", "1e-5", "--json"})["covariates"]["protected"]);
  EXPECT_NE(run("tsdp-account", {"total", "public", "told", "--delta", "1e-5"}).out.find(") count as public."),
            std::string::npos);
  // What a start was trained on in public stays so.
  expect_failure(
      plan(with({"dataset.covariates.private=true", "model.start=public/model.pt",
                 "dataset.covariates.columns=[holiday, price, region=north, region=south]"})),
      "tsdp-train", 2,
      {"dataset.covariates.private: found true; the weights are of a run on data to which the covariates were "
       "public"});
  expect_failure(plan({"--set", "dataset.covariates.private=true"}), "tsdp-train", 2,
                 {"without dataset.covariates.file"});
}

}  // namespace
}  // namespace tsdp::cli_test
