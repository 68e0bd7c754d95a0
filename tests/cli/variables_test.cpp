// Series of several variables: all that a series has at a step is one value to protect, from the table to the
// statement, and itransformer forecasts its variables together.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "run_fixture.h"

namespace tsdp::cli_test {
namespace {

class Variables : public RunTest {
 protected:
  void SetUp() override {
    RunTest::SetUp();
    write("patients.csv", patients());
    write("config.yaml",
          "dataset: {path: patients.csv, frequency: 1h, prediction_length: 4, season_length: 24, split: last,\n"
          "  test_windows: 2, validation_length: 8, columns: {value: [pulse, pressure]}}\n"
          "model: {name: itransformer, context_length: 24, prior: auto, start: auto}\n"
          "sampling: {top_level: wor, batch_size: 2}\n"
          "privacy: {noise_multiplier: 4.0, delta: 1.0e-3, target_epsilon: 50}\n"
          "training: {max_epochs: 3}\n");
  }
  /// Rows of 120 hours of patients a, b and c; of some, the pressure is missing.
  [[nodiscard]] static std::string patients() {
    std::string out = "unique_id,ds,pulse,pressure\n";
    const auto two = [](int number) { return (number < 10 ? "0" : "") + std::to_string(number); };
    for (int p = 0; p < 3; ++p)
      for (int t = 0; t < 120; ++t)
        out += std::string(1, static_cast<char>('a' + p)) + ",2015-01-" + two(1 + t / 24) + " " + two(t % 24) + ":00," +
               std::to_string(60 + 7 * p + (t * (p + 5)) % 24) + "," +
               (t % 17 == 3 ? "" : std::to_string(110 + (t * (p + 3)) % 24)) + "\n";
    return out;
  }
  void forecast(const std::string& model, const std::string& output, const std::string& columns) const {
    static_cast<void>(answer("tsdp-forecast", {"--model", model, "--input", "patients.csv", "--output", output,
                                               "--columns", columns, "--json"}));
  }
  const std::string both = "value=pulse,value=pressure";
};

TEST_F(Variables, AreProtectedTogetherAndForecastTogether) {
  make_run("together");
  const auto ledger = ledger_of("together");
  EXPECT_EQ(ledger["mechanism"]["num_sequences"], 3);
  EXPECT_EQ(ledger["mechanism"]["variables"], 2);
  EXPECT_EQ(ledger["relation"]["variables"], 2);
  EXPECT_EQ(ledger["relation"]["text"],
            "two data sets are neighbours if they differ in one series, in the values of all 2 variables at one step");
  EXPECT_NE(content_of(path("together") / "model_card.md")
                .find("the values of all 2 variables of any one series at any "
                      "single step"),
            std::string::npos);
  for (const std::string text :
       {"3 series of 2 variables, each of 104 steps", "forecasts `pulse`, `pressure` of each series"})
    EXPECT_NE(content_of(path("together") / "model_card.md").find(text), std::string::npos) << text;
  const auto report = content_of(path("together") / "private" / "report.html");
  EXPECT_NE(report.find("3 series of 2 variables, a value of each every"), std::string::npos);
  EXPECT_EQ(report.find("rank 0"), std::string::npos);
  // A report of one entry, whose forecast needs the other variable.
  EXPECT_EQ(run("tsdp-evaluate", {"--run", "together", "--report", "--series", "b/pressure"}).exit_code, 0);
  EXPECT_EQ(run("tsdp-account", {"verify", "together"}).exit_code, 0);
  EXPECT_EQ(run("tsdp-account", {"verify", "together/model.pt"}).exit_code, 0);
  // It costs what one variable alone costs.
  make_run("pulse", {"--set", "dataset.columns.value=pulse"});
  EXPECT_EQ(ledger_of("pulse")["epsilon"], ledger["epsilon"]);
  const auto together = run("tsdp-account", {"total", "together", "pulse", "--delta", "1e-2"});
  EXPECT_EQ(together.exit_code, 4);
  EXPECT_NE(together.err.find("2 variables at every step"), std::string::npos) << together.err;

  EXPECT_EQ(answer("tsdp-evaluate", {"--run", "together", "--json"})["windows"], 12);
  forecast("together/model.pt", "all.csv", both);
  const auto text = content_of(path("all.csv"));
  for (const std::string name : {"a/pulse", "a/pressure", "c/pressure"})
    EXPECT_NE(text.find("\n" + name + ",2015-01-06 00:00:00,"), std::string::npos) << text;
  // The model reads all of them, in the order in which it was trained on them.
  for (const std::string columns : {"value=pulse", "value=pressure,value=pulse"}) {
    const auto refused = run("tsdp-forecast", {"--model", "together/model.pt", "--input", "patients.csv", "--output",
                                               "some.csv", "--columns", columns});
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_NE(refused.err.find("the model forecasts pulse, pressure together"), std::string::npos) << refused.err;
  }
  // A sensor that stopped long ago is not forecast in silence.
  auto stopped = patients();
  for (auto at = stopped.find("\nb,2015-01-03"); at != std::string::npos; at = stopped.find("\nb,", at + 1))
    stopped.erase(stopped.rfind(',', stopped.find('\n', at + 1)) + 1,
                  stopped.find('\n', at + 1) - stopped.rfind(',', stopped.find('\n', at + 1)) - 1);
  write("stopped.csv", stopped);
  const auto warned = run("tsdp-forecast", {"--model", "together/model.pt", "--input", "stopped.csv", "--output",
                                            "x.csv", "--columns", both});
  EXPECT_EQ(warned.exit_code, 0) << warned.err;
  EXPECT_NE(warned.err.find("1 of 6 series, such as 'b/pressure', have no value in their last 24 steps"),
            std::string::npos)
      << warned.err;
  EXPECT_NE(warned.out.find("3 series of 2 variables"), std::string::npos) << warned.out;
  // What one variable was matters to the forecast of the other, of the same patient alone.
  auto changed = patients();
  changed.replace(changed.rfind(","), 1, ",9");
  write("patients.csv", changed);
  forecast("together/model.pt", "changed.csv", both);
  const auto rows_of = [&](const std::string& file, const std::string& name) {
    std::string out;
    const auto all = content_of(path(file));
    for (std::size_t at = all.find("\n" + name + ","); at != std::string::npos;
         at = all.find("\n" + name + ",", at + 1))
      out += all.substr(at, all.find('\n', at + 1) - at);
    return out;
  };
  EXPECT_EQ(rows_of("all.csv", "b/pulse"), rows_of("changed.csv", "b/pulse"));
  EXPECT_NE(rows_of("all.csv", "c/pressure"), rows_of("changed.csv", "c/pressure"));
}

TEST_F(Variables, OfOtherModelsAreForecastOneByOne) {
  make_run("apart", {"--set", "model.name=dlinear"});
  EXPECT_EQ(ledger_of("apart")["relation"]["variables"], 2);
  // Each by itself, so that one column will do.
  forecast("apart/model.pt", "all.csv", both);
  forecast("apart/model.pt", "pulse.csv", "value=pulse");
  const auto whole = content_of(path("all.csv"));
  const auto alone = content_of(path("pulse.csv"));
  const auto row =
      alone.substr(alone.find("\nb,") + 2, alone.find('\n', alone.find("\nb,") + 1) - alone.find("\nb,") - 2);
  EXPECT_NE(whole.find("\nb/pulse" + row), std::string::npos) << row;
}

TEST_F(Variables, GoOnWhereARunWasInterrupted) {
  make_run("whole", {"--set", "training.reproducible=true"});
  make_run("parts", {"--set", "training.reproducible=true"});
  EXPECT_EQ(content_of(path("whole") / "model.pt").size(), content_of(path("parts") / "model.pt").size());
  // Another order of variables is other data.
  const auto resumed = run("tsdp-train", {"--resume", "parts", "--set", "dataset.columns.value=[pressure, pulse]"});
  EXPECT_NE(resumed.exit_code, 0);
}

// Of three patients whose wards are equally warm, none is protected by itself: each step of a ward is in three records.
TEST_F(Variables, ThatSeriesShareAreRefusedAsCopiesAre) {
  auto text = patients();
  std::string with_ward;
  int row = -1;
  for (std::size_t from = 0; from < text.size(); ++row) {
    const auto end = text.find('\n', from);
    with_ward +=
        text.substr(from, end - from) + (row < 0 ? ",ward" : "," + std::to_string(20 + (row % 120) * 7 % 5)) + "\n";
    from = end + 1;
  }
  write("patients.csv", with_ward);
  const auto with = [&](const std::string& columns) {
    return run("tsdp-train",
               {"--config", "config.yaml", "--output", "run", "--quiet", "--set", "dataset.columns.value=" + columns});
  };
  const auto refused = with("[pulse, pressure, ward]");
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_NE(refused.err.find("'a/ward'"), std::string::npos) << refused.err;
  // What one patient has twice is in one record.
  const auto equal = text.find(",pressure");
  ASSERT_NE(equal, std::string::npos);
  std::string twice = "unique_id,ds,pulse,pressure\n";
  for (std::size_t from = text.find('\n') + 1; from < text.size(); from = text.find('\n', from) + 1) {
    const auto last = text.find(',', text.find(',', text.find(',', from) + 1) + 1);
    const auto pulse = text.rfind(',', last - 1) + 1;
    twice += text.substr(from, last - from) + "," + text.substr(pulse, last - pulse) + "\n";
  }
  write("patients.csv", twice);
  EXPECT_EQ(with("[pulse, pressure]").exit_code, 0);
}

TEST_F(Variables, AreRefusedWhereNothingIsKnown) {
  const auto plan = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"--config", "config.yaml", "--dry-run", "--quiet"};
    for (const auto& one : more) arguments.insert(arguments.end(), {"--set", one});
    return run("tsdp-train", arguments);
  };
  EXPECT_NE(plan({}).out.find("3 series of 2 variables"), std::string::npos) << plan({}).out;
  expect_failure(
      plan({"augmentation.context_noise=1", "privacy.v=1"}), "tsdp-train", 2,
      {"config.yaml: privacy.v: found a bound with the 2 variables of dataset.columns.value (pulse, pressure)"});
  EXPECT_EQ(plan({"optimizer.learning_rate=auto"}).out.find("model.candidates learn most of it"), std::string::npos);
  EXPECT_NE(plan({"optimizer.learning_rate=auto", "model.name=dlinear"}).out.find("model.candidates learn most of it"),
            std::string::npos);
  // The time of a step is that of batches as they are drawn.
  const auto advice = run("tsdp-train", {"--config", "config.yaml", "--advise", "--quiet", "--set",
                                         "sampling.subsequences_per_sequence=2", "--set", "sampling.batch_size=6"});
  EXPECT_EQ(advice.exit_code, 0) << advice.err;
  expect_failure(plan({"model.start=pretrained"}), "tsdp-train", 2,
                 {"model.start: found pretrained", "2 variables forecast together"});
  expect_failure(run("tsdp-audit", {"--config", "config.yaml"}), "tsdp-audit", 2,
                 {"found 3 series of 2 variables, which tsdp-audit is not implemented for"});
  make_run("run", {"--set", "model.name=dlinear"});
  expect_failure(
      run("tsdp-forecast", {"--model", "run/model.pt", "--input", "patients.csv", "--output", "x.csv", "--columns",
                            both, "--private", "--epsilon", "1", "--delta", "1e-5", "--v", "2"}),
      "tsdp-forecast", 2, {"which --private is not implemented for"});
  expect_failure(run("tsdp-data", {"describe", "patients.csv", "--columns", "value=pulse,value=pulse"}), "tsdp-data", 2,
                 {"--columns: found 'value=pulse'"});
}

}  // namespace
}  // namespace tsdp::cli_test
