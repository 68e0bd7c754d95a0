// Files that are not what they seem, as users give them to programs: refused before anything is charged, or read as
// what they are.
#include <filesystem>

#include "run_fixture.h"

namespace tsdp::cli_test {
namespace {

class OddInput : public RunTest {
 protected:
  void expect_refused(const std::string& program, const std::vector<std::string>& arguments, int code,
                      const std::vector<std::string>& parts) const {
    const auto outcome = run(program, arguments);
    EXPECT_EQ(outcome.exit_code, code) << outcome.err;
    for (const auto& part : parts)
      EXPECT_NE(outcome.err.find(part), std::string::npos) << part << " in: " << outcome.err;
  }
  [[nodiscard]] std::string forecast_of(const std::string& input, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"--model", "run/model.pt", "--input",   input, "--output",
                                          "out.csv", "--quiet",      "--threads", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto outcome = run("tsdp-forecast", arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return content_of(path("out.csv"));
  }
  static std::string two(int i) {
    std::string out = i < 10 ? "0" : "";
    return out.append(std::to_string(i));
  }
};

TEST_F(OddInput, AModelsStepIsHeldAgainstTheRows) {
  make_run("run");
  std::string days = "unique_id,ds,y\n", hours = days;
  for (int i = 0; i < 28; ++i) days += "A,2023-01-" + two(i + 1) + "," + std::to_string(i % 7) + "\n";
  for (int i = 0; i < 96; ++i)
    if (i % 7 != 3)
      hours += "A,2023-01-" + two(i / 24 + 1) + " " + two(i % 24) + ":00," + std::to_string(i % 24) + "\n";
  write("days.csv", days);
  write("hours.csv", hours);
  expect_refused("tsdp-forecast", {"--model", "run/model.pt", "--input", "days.csv", "--output", "out.csv"}, 3,
                 {"days.csv: found times that all lie on steps of 1D, for a frequency of 1h"});
  EXPECT_FALSE(std::filesystem::exists(path("out.csv")));
  const auto forecasts = forecast_of("hours.csv");
  // One step has several spellings.
  EXPECT_EQ(forecast_of("hours.csv", {"--frequency", "60min"}), forecasts);
  auto config = content_of(path("config.yaml"));
  config.replace(config.find("frequency: 1h"), 13, "frequency: 3600s");
  config.replace(config.find("format: lstnet"), 14, "format: csv_long");
  config.replace(config.find(", start: \"2015-01-01\""), 21, "");
  write("seconds.yaml", config);
  EXPECT_EQ(forecast_of("hours.csv", {"--config", "seconds.yaml"}), forecasts);
  expect_refused("tsdp-forecast",
                 {"--model", "run/model.pt", "--input", "hours.csv", "--output", "x.csv", "--frequency", "30min"}, 2,
                 {"--frequency: found 30min", "1h"});
  // Endings in capitals, of what is read and written.
  std::filesystem::copy(path("hours.csv"), path("HOURS.CSV"));
  const auto capitals = run("tsdp-forecast", {"--model", "run/model.pt", "--input", "HOURS.CSV", "--output", "OUT.CSV",
                                              "--quiet", "--threads", "1"});
  EXPECT_EQ(capitals.exit_code, 0) << capitals.err;
  EXPECT_EQ(content_of(path("OUT.CSV")), forecasts);
}

TEST_F(OddInput, BillsOfThe28thAreForecastForThe28th) {
  std::string months = "unique_id,ds,y\n", bills = months;
  for (int i = 0; i < 60; ++i) {
    const auto month = std::to_string(2010 + i / 12) + "-" + two(i % 12 + 1);
    months += "s," + month + "-01," + std::to_string(i % 12) + "\n";
    if (i > 0) bills += "bill," + month + "-28," + std::to_string(i % 12) + "\n";
  }
  write("months.csv", months);
  write("bills.csv", bills);  // from 28 February on
  std::vector<std::string> settings;
  for (const char* setting : {"dataset.path=months.csv", "dataset.format=csv_long", "dataset.frequency=1M",
                              "dataset.season_length=12", "sampling.batch_size=1", "privacy.target_epsilon=50"})
    settings.insert(settings.end(), {"--set", setting});
  make_run("run", settings);
  const auto text = forecast_of("bills.csv");
  for (const char* date : {"bill,2015-01-28", "bill,2015-02-28", "bill,2015-03-28", "bill,2015-04-28"})
    EXPECT_NE(text.find(date), std::string::npos) << text;
  const auto converted = run("tsdp-data", {"convert", "bills.csv", "again.csv", "--to", "csv_long"});
  EXPECT_EQ(converted.exit_code, 0) << converted.err;
  for (const auto& line : lines_of(content_of(path("again.csv"))))
    EXPECT_TRUE(line.starts_with("unique_id") || line.find("-28,") != std::string::npos) << line;
}

TEST_F(OddInput, SeasonalNaiveHasTheUsualSeason) {
  write("days.yaml",
        "dataset: {path: days.csv, frequency: 1D, prediction_length: 6, season_length: 7, split: last, test_windows: "
        "2, validation_length: 6}\n"
        "model: {name: dlinear, context_length: 14}\nsampling: {batch_size: 1}\n"
        "privacy: {noise_multiplier: 4.0, target_epsilon: 20, delta: 1.0e-5, composition: symmetrised}\ntraining: "
        "{max_epochs: 2}\n");
  std::string days = "time,A\n";
  for (int i = 0; i < 112; ++i)
    days += "2023-0" + std::to_string(i / 28 + 1) + "-" + two(i % 28 + 1) + "," + std::to_string(i % 7) + "\n";
  // (28 days a month are months in a row only in February; gaps are missing values.)
  write("days.csv", days);
  const auto made = run("tsdp-train", {"--config", "days.yaml", "--output", "run", "--quiet", "--threads", "1", "--set",
                                       "dataset.gaps=missing"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  (void)forecast_of("days.csv", {"--gaps", "missing", "--seasonal-naive", "usual.csv"});
  (void)forecast_of("days.csv", {"--gaps", "missing", "--seasonal-naive", "seven.csv", "--season-length", "7"});
  (void)forecast_of("days.csv", {"--gaps", "missing", "--seasonal-naive", "one.csv", "--season-length", "1"});
  EXPECT_EQ(content_of(path("usual.csv")), content_of(path("seven.csv")));
  EXPECT_NE(content_of(path("usual.csv")), content_of(path("one.csv")));
}

TEST_F(OddInput, WhatCannotBeTrainedOnIsRefusedBeforeAnythingIsCharged) {
  const auto train = [](const std::string& file, const std::string& format) {
    return std::vector<std::string>{"--config",  "config.yaml",
                                    "--output",  "run",
                                    "--threads", "1",
                                    "--set",     "dataset.path=" + file,
                                    "--set",     "dataset.format=" + format};
  };
  std::string map, counter;
  for (int i = 0; i < 200; ++i) {
    map += std::to_string(i % 24) + (i == 50 ? ",-3.4028234663852886e+38\n" : ",1\n");
    counter += std::to_string(1700000000 + i % 60) + ",1\n";
  }
  write("map.txt", map);
  write("counter.txt", counter);
  expect_refused("tsdp-train", train("map.txt", "lstnet"), 3,
                 {"map: series '1': found the value -3.40282e+38", "below 1e+18"});
  expect_refused("tsdp-train", train("counter.txt", "lstnet"), 3, {"counter: series '0'", "single precision"});
  std::string entry = "{\"item_id\": \"A\", \"start\": \"2015-01-01\", \"target\": [0";
  for (int i = 1; i < 196; ++i) entry.append(",").append(std::to_string(i % 24));
  const std::string windows = entry + "]}\n" + entry + ",1,2,3,4]}\n";
  write("test.json", windows);
  expect_refused("tsdp-train", train("test.json", "jsonl"), 3,
                 {"test: found the name 'A' 2 times", "GluonTS", "the longest of each name"});
  for (const char* file : {"run/privacy.json", "run/private/checkpoints"})
    EXPECT_FALSE(std::filesystem::exists(path(file))) << file;
  // Without privacy a value may be in several series.
  auto without = train("test.json", "jsonl");
  without.insert(without.end(), {"--set", "privacy.enabled=false", "--dry-run"});
  const auto planned = run("tsdp-train", without);
  EXPECT_EQ(planned.exit_code, 0) << planned.err;
  EXPECT_NE(planned.err.find("have one name"), std::string::npos) << planned.err;
}

// Complaints name what mends them: the key of a configuration, the option of a program.
TEST_F(OddInput, ComplaintsNameTheKeyOrTheOption) {
  write("set.csv", "when,A\n2020-10-25 02:00,1\n2020-10-25 02:30,2\n2020-10-25 02:00,3\n");
  write("own.csv", "meter,when,kWh\nM,2020-01-01,1\n");
  expect_refused("tsdp-data", {"describe", "set.csv", "--frequency", "30min"}, 3,
                 {"(the time of line 2, too; --duplicates: last or mean"});
  expect_refused("tsdp-data", {"describe", "own.csv"}, 3, {"--columns time=NAME can name"});
  const auto configured = [](const std::string& file) {
    return std::vector<std::string>{"describe",
                                    "--config",
                                    "config.yaml",
                                    "--set",
                                    "dataset.path=" + file,
                                    "--set",
                                    "dataset.format=csv",
                                    "--set",
                                    "dataset.frequency=30min"};
  };
  expect_refused("tsdp-data", configured("set.csv"), 3, {"config.yaml: dataset.duplicates: last or mean"});
  expect_refused("tsdp-data", configured("own.csv"), 3, {"config.yaml: dataset.columns.time can name"});
}

// A program that was copied away from the shipped weights trains no other model than it would beside them.
TEST_F(OddInput, ShippedWeightsThatAreNotThereAreNamed) {
  const std::filesystem::path bin = TSDP_BIN_DIR;
  std::filesystem::copy(bin / "tsdp-train", path("tsdp-train"));
  const auto outcome = run((folder_ / "tsdp-train").string(),
                           {"--config", "config.yaml", "--output", "run", "--dry-run", "--set", "model.start=auto"});
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  EXPECT_NE(outcome.err.find("model.start: found auto, and no shipped weights can be found"), std::string::npos)
      << outcome.err;
}

}  // namespace
}  // namespace tsdp::cli_test
