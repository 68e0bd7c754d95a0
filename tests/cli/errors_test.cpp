// Every mistake of a user ends in its exit code and in one line that says where it is, what it is, and what would do.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "command.h"

namespace tsdp::cli_test {
namespace {

constexpr const char* train = "tsdp-train";
constexpr const char* evaluate = "tsdp-evaluate";

// Small enough to be read and planned in no time. Tests refer to line numbers of the configuration.
const std::string config_text =
    "dataset:\n"                   // 1
    "  path: FOLDER/series.txt\n"  // 2
    "  format: lstnet\n"           // 3
    "  frequency: 1h\n"            // 4
    "  start: \"2015-01-01\"\n"    // 5
    "  prediction_length: 4\n"     // 6
    "  season_length: 24\n"        // 7
    "  split: last\n"              // 8
    "  test_windows: 2\n"          // 9
    "  validation_length: 8\n"     // 10
    "model:\n"                     // 11
    "  context_length: 8\n"        // 12
    "sampling:\n"                  // 13
    "  batch_size: 2\n"            // 14
    "privacy:\n"                   // 15
    "  noise_multiplier: 4.0\n"    // 16
    "  delta: 1.0e-7\n"            // 17
    "  composition: symmetrised\n" // 18
    "training:\n"                  // 19
    "  max_epochs: 2\n";           // 20

std::string row(int i) {
  return std::to_string(i % 24) + "," + std::to_string(100 + i % 7) + "," + std::to_string(i % 5) + ".5";
}

/// `rows` hours of three series; row `special` (from 1) reads `text`.
std::string series_text(int rows, int special = 0, const std::string& text = {}) {
  std::string out;
  for (int i = 1; i <= rows; ++i) out += (i == special ? text : row(i)) + "\n";
  return out;
}

class Errors : public CommandTest {
 protected:
  /// Writes the configuration with `from`, which must be in it, replaced by `to`.
  std::string write_config(const std::string& from = {}, const std::string& to = {}) {
    std::string text = config_text;
    const auto replace = [&](const std::string& old_part, const std::string& new_part) {
      const auto place = text.find(old_part);
      if (place == std::string::npos) {
        ADD_FAILURE() << old_part << " is not in the configuration";
      } else {
        text.replace(place, old_part.size(), new_part);
      }
    };
    if (!from.empty()) replace(from, to);
    replace("FOLDER", folder().string());
    return write("config.yaml", text);
  }

  /// A planned run on that configuration and on good data unless `series.txt` is there already.
  Outcome plan(const std::vector<std::string>& more = {}) {
    if (!std::filesystem::exists(path("series.txt"))) write("series.txt", series_text(200));
    std::vector<std::string> arguments = {"--config", "config.yaml", "--dry-run", "--json",
                                          "--quiet",  "--threads",   "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(train, arguments);
  }

  Outcome plan_with(const std::string& from, const std::string& to) {
    write_config(from, to);
    return plan();
  }

  Outcome plan_setting(const std::vector<std::string>& assignments) {
    write_config();
    std::vector<std::string> arguments;
    for (const auto& assignment : assignments) arguments.insert(arguments.end(), {"--set", assignment});
    return plan(arguments);
  }

  /// A planned run on data of this content.
  Outcome plan_on(const std::string& name, const std::string& content, const std::string& format = "lstnet") {
    return plan_setting({"dataset.path=" + write(name, content), "dataset.format=" + format});
  }

  /// A finished run of two epochs on the shipped exchange rates, in the folder `run`.
  void make_run() {
    write_config();
    const auto data = (source_folder() / "data/exchange_rate.txt.gz").string();
    const auto outcome = run(train, {"--config", "config.yaml", "--output", "run", "--quiet", "--threads", "1", "--set",
                                     "dataset.path=" + data, "--set", "dataset.frequency=1D"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  }

  /// Content of every file below the folder `name`.
  std::map<std::string, std::string> files_of(const std::string& name) const {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path(name)))
      if (entry.is_regular_file()) files[entry.path().string()] = content_of(entry.path());
    return files;
  }
};

// The other tests change one thing in what works here.
TEST_F(Errors, NoneWithTheUnchangedConfiguration) {
  const auto outcome = plan_with("", "");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.out.front(), '{');
}

// Relative paths are looked up from the working directory, then from the configuration's folder.
TEST_F(Errors, NoneWithARelativePathToTheData) {
  write_config("FOLDER/series.txt", "series.txt # FOLDER");
  const auto here = plan();
  EXPECT_EQ(here.exit_code, 0) << here.err;
  const auto away = run(train, {"--config", path("config.yaml").string(), "--dry-run", "--quiet"}, "/");
  EXPECT_EQ(away.exit_code, 0) << away.err;
}

TEST_F(Errors, NoneWithARunOnARelativePath) {
  write_config("FOLDER/series.txt", "series.txt # FOLDER");
  write("series.txt", series_text(200));
  const auto made = run(train, {"--config", "config.yaml", "--output", "a/run", "--quiet", "--threads", "1"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const auto resumed = run(train, {"--resume", path("a/run").string(), "--quiet", "--threads", "1"}, "/");
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
}

// --- configuration

TEST_F(Errors, UnknownKeyNamesLineAndNearest) {
  expect_failure(plan_with("context_length: 8", "context_lenght: 8"), train, 2,
                 {"config.yaml:12: ", "'model.context_lenght'", "'model.context_length'"});
}

TEST_F(Errors, UnknownSectionNamesLineAndNearest) {
  expect_failure(plan_with("sampling:", "samplng:"), train, 2, {"config.yaml:13: ", "'samplng'", "sampling"});
}

TEST_F(Errors, DuplicateKey) {
  expect_failure(plan_with("  batch_size: 2\n", "  batch_size: 2\n  batch_size: 3\n"), train, 2,
                 {"config.yaml:15: ", "duplicate", "sampling.batch_size"});
}

TEST_F(Errors, DuplicateSection) {
  expect_failure(plan_with("training:\n", "model:\n  context_length: 9\ntraining:\n"), train, 2,
                 {"config.yaml:19: ", "duplicate", "model"});
}

TEST_F(Errors, WordForANumber) {
  expect_failure(plan_with("context_length: 8", "context_length: eight"), train, 2,
                 {"config.yaml:12: ", "model.context_length", "'eight'", "an integer from 1 to 1000000"});
}

TEST_F(Errors, FractionForAnInteger) {
  expect_failure(plan_with("batch_size: 2", "batch_size: 2.5"), train, 2,
                 {"config.yaml:14: ", "sampling.batch_size", "'2.5'", "an integer from 1 to 1000000"});
}

TEST_F(Errors, ListForANumber) {
  expect_failure(plan_with("batch_size: 2", "batch_size: [2]"), train, 2,
                 {"config.yaml:14: ", "sampling.batch_size", "a list", "an integer from 1 to 1000000"});
}

TEST_F(Errors, UnknownChoiceNamesAllChoices) {
  expect_failure(plan_with("format: lstnet", "format: parquet"), train, 2,
                 {"config.yaml:3: ", "dataset.format", "'parquet'", "lstnet, tsf, csv"});
}

TEST_F(Errors, NumberOutOfRange) {
  expect_failure(plan_with("delta: 1.0e-7", "delta: 1.0"), train, 2,
                 {"config.yaml:17: ", "privacy.delta", "'1.0'", "of at least 1e-25 and below 1"});
}

TEST_F(Errors, NoNoiseMultiplierOfZero) {
  expect_failure(plan_with("noise_multiplier: 4.0", "noise_multiplier: 0"), train, 2,
                 {"config.yaml:16: ", "privacy.noise_multiplier", "'0'", "at least 0.01", "auto"});
}

TEST_F(Errors, MissingRequiredKey) {
  expect_failure(plan_with("  batch_size: 2\n", ""), train, 2,
                 {"config.yaml: ", "sampling.batch_size", "not given", "an integer from 1 to 1000000"});
}

TEST_F(Errors, StartsThatDoNotFit) {
  expect_failure(plan_setting({"model.start=absent.pt"}), train, 3,
                 {"model.start", "'absent.pt'", "looked for absent.pt"});
  expect_failure(plan_setting({"model.start=series.txt"}), train, 3, {"series.txt", "expected"});
  expect_failure(plan_setting({"model.start=pretrained"}), train, 2,
                 {"model.start: found pretrained", "no shipped weights fit model simple_ff", "expected one of"});
  expect_failure(plan_setting({"model.start="}), train, 2, {"model.start", "null"});
  make_run();
  expect_failure(
      plan_setting({"model.start=run/model.pt", "dataset.frequency=1D", "model.context_length=9"}), train, 2,
      {"model.start: found run/model.pt, which does not fit: ", "model.context_length: found 9; the weights are of 8"});
  const auto fits = plan_setting({"model.start=run/model.pt", "dataset.frequency=1D"});
  EXPECT_EQ(fits.exit_code, 0) << fits.err;
}

TEST_F(Errors, SyntheticSeriesThatAreNone) {
  expect_failure(plan_setting({"dataset.format=synthetic"}), train, 2,
                 {"dataset.path: found '", "expected one of 10_minutes, hourly"});
  expect_failure(plan_setting({"dataset.format=synthetic", "dataset.path=monthly"}), train, 2,
                 {"dataset.frequency: found", "monthly", "1M"});
  const auto good = plan_setting(
      {"dataset.format=synthetic", "dataset.path=daily", "dataset.frequency=1D", "dataset.synthetic.length=200"});
  EXPECT_EQ(good.exit_code, 0) << good.err;
}

// Settings that plan well and cannot be meant: said before anything is trained.
TEST_F(Errors, AnEmptyValueIsNone) {
  write_config();
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--config", "config.yaml", "--output", ""}, {"--config", ""}, {"--config="}})
    expect_failure(run(train, arguments), train, 2, {"given without a value; expected one"});
  expect_failure(
      run("tsdp-account", {"epsilon", "--num-sequences", "862", "--sequence-length", "13916", "--context-length", "96",
                           "--forecast-length", "24", "--batch-size", "256", "--noise-multiplier", "4", "--delta",
                           "1e-7", "--steps", "100", "--lags-length", ""}),
      "tsdp-account", 2, {"--lags-length: given without a value"});
}

TEST_F(Errors, OptionsSayWhatWasFoundAndWhatWouldDo) {
  const auto refused = [&](const std::string& program, const std::vector<std::string>& arguments,
                           const std::vector<std::string>& parts) {
    expect_failure(run(program, arguments), program, 2, parts);
  };
  refused(train, {"--config", "a.yaml", "--threads", "9999"}, {"--threads: found 9999; expected a number from 0 to "});
  refused(train, {"--config", "a.yaml", "--threads", "two"}, {"--threads: found two; expected a number from 0 to "});
  refused(train, {"--config", "a.yaml", "--advise", "--minutes=-3"},
          {"--minutes: found -3; expected a number above 0 "});
  refused(train, {"--config", "a.yaml", "--config", "b.yaml"}, {"--config: given 2 times; expected once"});
  refused(train, {"--config"}, {"--config: given without a value; expected one"});
  refused(train, {"more"}, {"found 'more', which belongs to no option; expected options alone"});
  refused(train, {"--help-options", "html"}, {"--help-options: found html; expected one of text, markdown"});
  refused("tsdp-account", {"epsilon", "--largest-batch", "auto"}, {"--largest-batch: found auto; expected a number"});
  refused("tsdp-account", {"epsilon", "--largest-batch", std::string(3000, 'x')}, {"--largest-batch"});
}

TEST_F(Errors, SizesBeyondTheDataAreWarnedOf) {
  const auto batch = plan_setting({"sampling.batch_size=32"});
  EXPECT_EQ(batch.exit_code, 0) << batch.err;
  EXPECT_NE(batch.err.find("sampling.batch_size: found 32"), std::string::npos) << batch.err;
  EXPECT_NE(batch.err.find("windows a step: set it to "), std::string::npos) << batch.err;
  EXPECT_EQ(batch.err.find("model.context_length"), std::string::npos) << batch.err;
  const auto context = plan_setting({"model.context_length=5000", "privacy.target_epsilon=50"});
  EXPECT_EQ(context.exit_code, 0) << context.err;
  EXPECT_NE(context.err.find("model.context_length: every window reads 5000 past values; the longest series has "),
            std::string::npos)
      << context.err;
}

// What `auto` means is told, and why; and it is what would run.
TEST_F(Errors, AdviceIsTold) {
  const std::vector<std::string> all_auto = {
      "--set", "model.context_length=auto",     "--set", "sampling.batch_size=auto",
      "--set", "training.max_epochs=auto",      "--set", "optimizer.learning_rate=auto",
      "--set", "privacy.noise_multiplier=auto", "--set", "privacy.composition=auto"};
  write_config();
  write("series.txt", series_text(200));
  std::vector<std::string> arguments = {"--config", "config.yaml", "--advise", "--json"};
  arguments.insert(arguments.end(), all_auto.begin(), all_auto.end());
  const auto told = run(train, arguments);
  ASSERT_EQ(told.exit_code, 0) << told.err;
  const auto advice = nlohmann::json::parse(told.out);
  EXPECT_EQ(advice["settings"].size(), 6U);
  for (const auto& setting : advice["settings"]) EXPECT_FALSE(setting["why"].get<std::string>().empty());
  const auto planned = plan(all_auto);
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  const auto noise = advice["settings"]["privacy.noise_multiplier"]["value"].get<std::string>();
  EXPECT_DOUBLE_EQ(nlohmann::json::parse(planned.out)["noise_multiplier"].get<double>(), std::stod(noise));
  EXPECT_GT(advice["expected"]["seconds"].get<double>(), 0.0);
  EXPECT_LE(advice["expected"]["epsilon"].get<double>(), 1.0);
  arguments.insert(arguments.end(), {"--minutes", "1e-5"});
  const auto hurried = nlohmann::json::parse(run(train, arguments).out);
  EXPECT_LT(hurried["expected"]["steps"].get<int>(), advice["expected"]["steps"].get<int>());
  EXPECT_TRUE(advice["expectation"]["pays"].is_null()) << advice;  // of random weights nothing is known
  EXPECT_TRUE(advice["expectation"]["instead"].empty()) << advice;
  auto from_prior = arguments;
  from_prior.resize(from_prior.size() - 2);
  from_prior.insert(from_prior.end(), {"--set", "model.prior=last_value"});
  const auto expectation = nlohmann::json::parse(run(train, from_prior).out)["expectation"];
  EXPECT_EQ(expectation["pays"], false) << expectation;
  EXPECT_LT(expectation["share"].get<double>(), 0.1) << expectation;
  ASSERT_FALSE(expectation["instead"].empty()) << expectation;
  EXPECT_EQ(expectation["instead"][0]["what"], "privacy.target_epsilon=2");
  // --dry-run and --advise say the same, and without privacy nothing has to pay.
  auto of_plan = all_auto;
  of_plan.insert(of_plan.end(), {"--set", "model.prior=last_value"});
  EXPECT_EQ(nlohmann::json::parse(plan(of_plan).out)["expectation"], expectation);
  EXPECT_TRUE(nlohmann::json::parse(plan({"--set", "privacy.enabled=false"}).out)["expectation"]["pays"].is_null());
  std::erase(from_prior, "--json");
  EXPECT_NE(run(train, from_prior).out.find("Training is expected to add little: model.candidates learn"),
            std::string::npos);
  // Much signal helps a network that forecasts alone, and not the mixture, which has most of it already.
  auto much = of_plan;
  for (const char* setting : {"dataset.format=synthetic", "dataset.path=hourly", "dataset.start=null",
                              "dataset.synthetic.series=100", "privacy.target_epsilon=8"})
    much.insert(much.end(), {"--set", setting});
  EXPECT_EQ(nlohmann::json::parse(plan(much).out)["expectation"]["pays"], false);
  much.insert(much.end(), {"--set", "model.candidates=[]"});
  const auto alone = nlohmann::json::parse(plan(much).out)["expectation"];
  EXPECT_EQ(alone["pays"], true) << alone;
  expect_failure(plan({"--minutes", "5"}), train, 2, {"--minutes", "--advise"});
  // With a noise of the user's own epsilon ends the run, and so does what it can learn.
  auto loud = much;
  for (const char* setting :
       {"privacy.noise_multiplier=8", "privacy.target_epsilon=1", "privacy.composition=symmetrised",
        "training.max_epochs=100000", "sampling.batch_size=100"})
    loud.insert(loud.end(), {"--set", setting});
  const auto cut = nlohmann::json::parse(plan(loud).out);
  EXPECT_EQ(cut["ends_by"], "target_epsilon");
  EXPECT_NEAR(cut["expectation"]["signal_to_noise"].get<double>(), std::sqrt(cut["steps"].get<double>()) * 100.0 / 8.0,
              1e-6 * 100.0);
  loud.insert(loud.end(), {"--set", "training.max_epochs=" + std::to_string(cut["steps"].get<int>())});
  EXPECT_EQ(nlohmann::json::parse(plan(loud).out)["expectation"], cut["expectation"]);
  const auto nothing = run(train, {"--config", "config.yaml", "--advise"});
  EXPECT_EQ(nothing.exit_code, 0);
  EXPECT_NE(nothing.out.find("No setting is auto"), std::string::npos);
}

TEST_F(Errors, BrokenYamlNamesLineAndColumn) {
  expect_failure(plan_with("  context_length: 8\n", "\tcontext_length: 8\n"), train, 2, {"config.yaml:12:", "YAML"});
}

TEST_F(Errors, EmptyConfigurationFile) {
  write("config.yaml", "");
  expect_failure(plan(), train, 2, {"config.yaml: ", "expected sections of keys"});
}

TEST_F(Errors, FrequencyThatIsNone) {
  expect_failure(plan_with("frequency: 1h", "frequency: 1fortnight"), train, 2,
                 {"dataset.frequency", "'1fortnight'", "10min"});
}

TEST_F(Errors, StartThatIsNoMoment) {
  expect_failure(plan_with("\"2015-01-01\"", "yesterday"), train, 2, {"dataset.start", "'yesterday'", "YYYY-MM-DD"});
}

TEST_F(Errors, LstnetWithoutStart) {
  expect_failure(plan_with("  start: \"2015-01-01\"\n", ""), train, 2, {"config.yaml: ", "dataset.start", "expected"});
}

TEST_F(Errors, SetOfAnUnknownKey) {
  expect_failure(plan_setting({"privacy.noise_multiplyer=4"}), train, 2,
                 {"--set", "'privacy.noise_multiplyer'", "'privacy.noise_multiplier'"});
}

TEST_F(Errors, SetWithoutEqualsSign) {
  expect_failure(plan_setting({"model.context_length"}), train, 2, {"--set", "model.context_length", "key.path=value"});
}

TEST_F(Errors, SetOutOfRange) {
  expect_failure(plan_setting({"model.context_length=0"}), train, 2,
                 {"--set", "model.context_length", "'0'", "an integer from 1 to 1000000"});
}

TEST_F(Errors, MoreWindowsOfASeriesThanInABatch) {
  expect_failure(plan_setting({"sampling.subsequences_per_sequence=3"}), train, 2,
                 {"sampling.subsequences_per_sequence", "3", "at most sampling.batch_size (2)"});
}

// What is about values says nothing of whole series, and the size of their batches is said once.
TEST_F(Errors, WholeSeries) {
  const auto refused = [&](std::vector<std::string> settings, int code, const std::vector<std::string>& parts) {
    SCOPED_TRACE(settings.front());
    settings.insert(settings.begin(), "privacy.relation=series");
    expect_failure(plan_setting(settings), train, code, parts);
  };
  EXPECT_EQ(plan_setting({"privacy.relation=series", "privacy.target_epsilon=50"}).exit_code, 0);
  refused({"privacy.w=2"}, 2, {"privacy.w: found 2 with privacy.relation series", "expected 1"});
  refused({"privacy.v=1.5"}, 2, {"privacy.v: found 1.5 with privacy.relation series", "expected null"});
  refused({"augmentation.context_noise=1"}, 2,
          {"augmentation.context_noise: found 1 with privacy.relation series", "expected 0"});
  refused({"augmentation.forecast_noise=1"}, 2, {"augmentation.forecast_noise: found 1"});
  refused({"sampling.top_level=bins"}, 2, {"sampling.top_level: found 'bins'", "balls_in_bins"});
  refused({"sampling.rate=0"}, 2, {"sampling.rate: found '0'", "greater than 0 and at most 1"});
  refused({"sampling.rate=1.5"}, 2, {"sampling.rate: found '1.5'"});
  refused({"dataset.lower_bound=2", "dataset.upper_bound=2"}, 2,
          {"dataset.lower_bound: found 2 with dataset.upper_bound 2", "expected a number below it"});
  // The model has them in single precision, which does not tell these apart.
  refused({"dataset.lower_bound=16777216", "dataset.upper_bound=16777217"}, 2,
          {"dataset.lower_bound: found 16777216", "in single precision, too"});
  refused({"model.candidates=[seasonal_quantile]"}, 2,
          {"model.candidates: found seasonal_quantile", "expected names out of start, seasonal_quantiles"});
  refused({"model.candidates=[absent.jsonl]"}, 3, {"model.candidates: no file 'absent.jsonl'", "looked for"});
  refused({"model.candidates=[start.jsonl]"}, 2, {"model.candidates: found start.jsonl", "a file of another name"});
  refused({"model.candidates=[a/x.jsonl, b/x.jsonl]"}, 2, {"found two files named x;", "different names"});
  refused({"model.candidates=all"}, 2, {"model.candidates: found 'all'", "different names, or auto"});
  refused({"sampling.rate=0.5"}, 2, {"sampling.rate: found 0.5 beside sampling.batch_size 2", "expected one of them"});
  refused({"sampling.rate=0.5", "sampling.batch_size=null"}, 2,
          {"sampling.rate: found 0.5 with sampling.top_level wor", "expected poisson"});
  refused({"sampling.batches=2"}, 2, {"sampling.batches: found 2 beside sampling.batch_size 2"});
  refused({"sampling.batches=4", "sampling.batch_size=null"}, 2,
          {"sampling.batches: found 4 of 3 series", "from 1 to their number"});
  refused({"sampling.batch_size=null"}, 2, {"sampling.batch_size: not given", "sampling.batches"});
  refused({"sampling.redraw=every_epoch"}, 2,
          {"sampling.redraw: found every_epoch with sampling.top_level wor", "expected balls_in_bins"});
  refused({"sampling.reshuffle=once"}, 2,
          {"sampling.reshuffle: found once with sampling.top_level wor", "expected shuffled"});
  expect_failure(plan_setting({"sampling.batches=3"}), train, 2,
                 {"sampling.batches: found 3 with privacy.relation event", "privacy.relation series"});
  expect_failure(plan_setting({"sampling.largest_batch=3"}), train, 2,
                 {"sampling.largest_batch: found 3 with privacy.relation event", "expected null"});
  refused({"sampling.largest_batch=auto"}, 2,
          {"sampling.largest_batch: found auto with sampling.top_level wor, whose batches have one size",
           "poisson, cyclic_poisson or balls_in_bins"});
  refused({"sampling.largest_batch=0"}, 2, {"sampling.largest_batch: found '0'", "an integer from 1"});
  refused({"sampling.largest_batch=1", "sampling.top_level=poisson"}, 2,
          {"sampling.largest_batch: found 1 where 2 of 3 series are expected", "from as many to all of them"});
  refused({"sampling.largest_batch=2", "sampling.top_level=poisson", "privacy.noise_multiplier=5"}, 4,
          {"less than what cuts of large batches cost (sampling.largest_batch)", "or a larger delta"});
  expect_failure(plan_setting({"sampling.top_level=balls_in_bins"}), train, 4,
                 {"sampling.top_level: found balls_in_bins with privacy.relation event", "no theorem covers",
                  "privacy.relation series"});
}

TEST_F(Errors, CorrelatedNoise) {
  const auto refused = [&](std::vector<std::string> settings, int code, const std::vector<std::string>& parts) {
    SCOPED_TRACE(settings.front());
    settings.insert(settings.begin(),
                    {"privacy.relation=series", "sampling.top_level=balls_in_bins", "privacy.target_epsilon=50"});
    expect_failure(plan_setting(settings), train, code, parts);
  };
  EXPECT_EQ(plan_setting({"privacy.relation=series", "sampling.top_level=balls_in_bins", "privacy.noise_multiplier=200",
                          "privacy.target_epsilon=50", "privacy.noise.mechanism=bsr", "training.max_epochs=5"})
                .exit_code,
            0);
  refused({"privacy.noise.mechanism=dense"}, 2, {"privacy.noise.mechanism: found 'dense'", "bisr", "blt"});
  refused({"privacy.noise.mechanism=file"}, 2, {"privacy.noise.coefficients: not given", "expected a file"});
  refused({"privacy.noise.mechanism=bsr", "privacy.noise.coefficients=c.json"}, 2,
          {"privacy.noise.coefficients: found c.json without"});
  refused({"privacy.noise.mechanism=file", "privacy.noise.coefficients=absent.json"}, 3,
          {"privacy.noise.coefficients: no file 'absent.json'", "looked for"});
  write("zero.json", "[0, 1]");
  refused({"privacy.noise.mechanism=file", "privacy.noise.coefficients=zero.json"}, 3,
          {"zero.json: coefficients: found 0 as the first one"});
  write("signed.json", "[1, -0.5]");
  refused({"privacy.noise.mechanism=file", "privacy.noise.coefficients=signed.json"}, 4,
          {"negative entries", "deterministic"});
  refused({"privacy.noise.mechanism=auto", "privacy.noise_multiplier=5"}, 2,
          {"privacy.noise.mechanism: found auto beside privacy.noise_multiplier 5", "expected auto for both"});
  refused({"privacy.noise.mechanism=bsr", "privacy.noise.bands=0"}, 2, {"privacy.noise.bands: found '0'", "from 1 to"});
  refused({"privacy.noise.mechanism=blt", "privacy.noise.buffers=9"}, 2,
          {"privacy.noise.buffers: found '9'", "from 1 to 8"});
  refused({"privacy.noise.mechanism=bsr", "sampling.top_level=poisson"}, 4,
          {"privacy.noise.mechanism: found bsr with sampling.top_level poisson", "not implemented", "cyclic_poisson"});
  refused({"privacy.noise.mechanism=bsr", "sampling.top_level=wor"}, 4,
          {"sampling.top_level wor", "no theorem is known", "balls_in_bins"});
  for (const std::string orders : {"sampling.top_level=shuffled", "sampling.redraw=every_epoch"})
    EXPECT_EQ(plan_setting({"privacy.relation=series", "sampling.top_level=balls_in_bins", orders,
                            "privacy.noise_multiplier=200", "privacy.target_epsilon=50", "privacy.noise.mechanism=bsr",
                            "training.max_epochs=5"})
                  .exit_code,
              0)
        << orders;
  refused({"privacy.noise.mechanism=bisr", "sampling.top_level=cyclic_poisson"}, 4,
          {"sampling.top_level cyclic_poisson, whose matrix is not banded", "expected bsr, band_mf, file or identity"});
  refused({"privacy.noise.mechanism=bsr", "privacy.noise.bands=4", "sampling.top_level=cyclic_poisson",
           "sampling.batch_size=null", "sampling.batches=3"},
          2, {"privacy.noise.bands: found 4 with 3 steps of an epoch"});
  expect_failure(plan_setting({"sampling.top_level=cyclic_poisson"}), train, 4,
                 {"sampling.top_level: found cyclic_poisson with privacy.relation event", "privacy.relation series"});
  expect_failure(plan_setting({"privacy.noise.mechanism=bisr"}), train, 4,
                 {"privacy.noise.mechanism: found bisr with privacy.relation event", "privacy.relation series"});
}

TEST_F(Errors, BatchesThatAreChosen) {
  const std::vector<std::string> of_series = {"privacy.relation=series", "sampling.top_level=auto",
                                              "privacy.target_epsilon=50", "training.max_epochs=4",
                                              "sampling.batch_size=1"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), of_series.begin(), of_series.end());
    return plan_setting(more);
  };
  expect_failure(with({"privacy.noise_multiplier=5"}), train, 2,
                 {"sampling.top_level: found auto beside privacy.noise_multiplier 5", "expected auto for both"});
  expect_failure(with({"privacy.noise_multiplier=auto", "privacy.noise.mechanism=bsr"}), train, 2,
                 {"sampling.top_level: found auto beside privacy.noise.mechanism bsr", "auto or identity"});
  const auto chosen = with({"privacy.noise_multiplier=auto", "privacy.noise.mechanism=identity"});
  ASSERT_EQ(chosen.exit_code, 0) << chosen.err;
  const auto plan = nlohmann::json::parse(chosen.out);
  EXPECT_TRUE(plan["theorem"] == "series.poisson" || plan["theorem"] == "series.bins_redrawn") << plan["theorem"];
  EXPECT_LE(plan["epsilon"]["upper"].get<double>(), 50.0);
  // For values it is what costs least in long runs.
  const auto values = plan_setting({"sampling.top_level=auto"});
  ASSERT_EQ(values.exit_code, 0) << values.err;
  EXPECT_EQ(nlohmann::json::parse(values.out)["theorem"], "4.4");
}

TEST_F(Errors, PriorsThatTheModelCannotSee) {
  EXPECT_EQ(plan_setting({"model.prior=auto"}).exit_code, 0);
  EXPECT_EQ(plan_setting({"model.prior=last_value"}).exit_code, 0);
  expect_failure(plan_setting({"model.prior=naive"}), train, 2,
                 {"model.prior: found 'naive'", "seasonal_naive", "auto"});
  expect_failure(plan_setting({"model.prior=seasonal_naive", "dataset.season_length=500"}), train, 2,
                 {"model.prior: found seasonal_naive with dataset.season_length 500", "model.context_length"});
  expect_failure(plan_setting({"model.prior=seasonal_naive", "dataset.season_length=1"}), train, 2,
                 {"dataset.season_length 1", "last_value"});
  expect_failure(
      plan_setting({"model.prior=seasonal_naive", "dataset.season_length=3", "model.name=deepar", "model.lags=[1, 2]"}),
      train, 2, {"sees 2 steps by its lags", "expected a lag"});
}

TEST_F(Errors, MissingConfigurationFile) {
  expect_failure(run(train, {"--config", "absent.yaml"}), train, 2, {"--config", "'absent.yaml'", "looked for"});
}

// --- data

TEST_F(Errors, MissingDataFileNamesPlacesLookedAt) {
  expect_failure(plan_setting({"dataset.path=absent.txt"}), train, 3,
                 {"dataset.path", "'absent.txt'", "looked for absent.txt"});
}

TEST_F(Errors, RowWithTooFewColumns) {
  expect_failure(plan_on("series.txt", series_text(200, 17, "1,2")), train, 3,
                 {"series.txt:17:3: ", "found 2 columns", "expected 3"});
}

TEST_F(Errors, RowWithTooManyColumns) {
  expect_failure(plan_on("series.txt", series_text(200, 17, "1,2,3,4")), train, 3,
                 {"series.txt:17:4: ", "found 4 columns", "expected 3"});
}

TEST_F(Errors, CellThatIsNoNumber) {
  expect_failure(plan_on("series.txt", series_text(200, 18, "1,two,3")), train, 3,
                 {"series.txt:18:2: ", "'two'", "a number, or nan or empty for missing"});
}

TEST_F(Errors, Infinity) {
  expect_failure(plan_on("series.txt", series_text(200, 19, "1,2,-inf")), train, 3,
                 {"series.txt:19:3: ", "'-inf'", "a finite number"});
}

TEST_F(Errors, NumberTooLargeForSinglePrecision) {
  expect_failure(plan_on("series.txt", series_text(200, 19, "1e39,2,3")), train, 3,
                 {"series.txt:19:1: ", "'1e39'", "at most 3.4e38"});
}

TEST_F(Errors, DamagedGzip) {
  auto packed = content_of(source_folder() / "data/exchange_rate.txt.gz");
  ASSERT_GT(packed.size(), 10000U);
  for (std::size_t i = 5000; i < 5100; ++i) packed[i] = static_cast<char>(packed[i] ^ 0x5a);
  expect_failure(plan_on("series.txt.gz", packed), train, 3, {"series.txt.gz"});
}

TEST_F(Errors, GzipThatBreaksOff) {
  const auto packed = content_of(source_folder() / "data/exchange_rate.txt.gz");
  expect_failure(plan_on("series.txt.gz", packed.substr(0, packed.size() / 2)), train, 3,
                 {"series.txt.gz", "break off after line", "complete gzip file"});
}

TEST_F(Errors, SeriesTooShort) {
  expect_failure(plan_on("series.txt", series_text(19)), train, 3,
                 {"series '0' of series", "found 19 values", "more are needed"});
}

TEST_F(Errors, EmptyDataFile) {
  expect_failure(plan_on("series.txt", ""), train, 3, {"series.txt: ", "empty file", "expected rows"});
}

TEST_F(Errors, SeriesWithoutAnyValue) {
  std::string text;
  for (int i = 1; i <= 200; ++i) text += std::to_string(i) + ",nan\n";
  expect_failure(plan_on("series.txt", text), train, 3, {"series.txt: ", "column 2", "at least one"});
}

TEST_F(Errors, CsvWithAGap) {
  expect_failure(
      plan_on("series.csv", "time,a,b\n2015-01-01 00:00,1,2\n2015-01-01 01:00,1,2\n2015-01-01 03:00,1,2\n", "csv"),
      train, 3, {"series.csv:4:1: ", "2015-01-01 03:00:00", "expected 2015-01-01 02:00:00", "one step of 1h"});
}

TEST_F(Errors, CsvWithABrokenTimeStamp) {
  expect_failure(plan_on("series.csv", "time,a\n2015-01-01 00:00,1\n01/02/2015,1\n", "csv"), train, 3,
                 {"series.csv:3:1: ", "'01/02/2015'", "expected a time stamp"});
}

TEST_F(Errors, TsfWithAWrongNumberOfParts) {
  expect_failure(plan_on("series.tsf",
                         "@relation r\n@attribute series_name string\n@attribute start_timestamp date\n"
                         "@frequency hourly\n@data\nT1:2015-01-01 00-00-00:1,2,3\nT2:1,2,3\n",
                         "tsf"),
                 train, 3, {"series.tsf:7:", "found 2 parts", "expected 3"});
}

// --- privacy

TEST_F(Errors, AugmentationWithoutBoundedChange) {
  expect_failure(plan_setting({"augmentation.context_noise=1.0"}), train, 4, {"noise on context", "privacy.v"});
}

TEST_F(Errors, NoTheoremForAugmentationOfPoissonWindows) {
  expect_failure(
      plan_setting({"augmentation.forecast_noise=1.0", "privacy.v=0.5", "sampling.bottom_level=poisson"}), train, 4,
      {"no theorem covers", "noise on context or forecast", "Theorem G.1", "bottom level poisson", "it covers"});
}

TEST_F(Errors, NoTheoremForAugmentationOfSeveralWindowsOfASeries) {
  expect_failure(
      plan_setting({"augmentation.forecast_noise=1.0", "privacy.v=0.5", "sampling.subsequences_per_sequence=2"}), train,
      4, {"no theorem covers", "2 subsequences per sequence", "it covers"});
}

TEST_F(Errors, BudgetTooSmallForOneStep) {
  expect_failure(plan_setting({"privacy.target_epsilon=1e-6"}), train, 4,
                 {"privacy.target_epsilon", "1e-06", "one step alone costs", "raise privacy.noise_multiplier"});
}

TEST_F(Errors, MorePlacesThanASeriesHas) {
  expect_failure(plan_setting({"privacy.w=201"}), train, 4, {"w: ", "201", "at most the length"});
}

// --- folders of runs

TEST_F(Errors, AFailedPlanLeavesNoFolder) {
  write_config();
  write("series.txt", series_text(200));
  const auto outcome =
      run(train, {"--config", "config.yaml", "--output", "run", "--quiet", "--set", "privacy.target_epsilon=1e-6"});
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_FALSE(std::filesystem::exists(path("run")));
}

TEST_F(Errors, ResumeOfAFolderThatIsNotThere) {
  expect_failure(run(train, {"--resume", "absent"}), train, 2,
                 {"--resume", "absent", "expected the folder of an earlier run"});
}

TEST_F(Errors, ResumeOfAFolderWithoutARun) {
  write_config();
  write("series.txt", series_text(200));
  std::filesystem::create_directory(path("other"));
  std::filesystem::copy_file(path("config.yaml"), path("other/config.yaml"));
  expect_failure(run(train, {"--resume", "other", "--quiet"}), train, 2, {"other", "holds no run", "expected"});
}

TEST_F(Errors, OutputThatHoldsARunAlready) {
  make_run();
  const auto before = files_of("run");
  write("series.txt", series_text(200));
  // The plan is logged before the folder is touched.
  expect_failure(run(train, {"--config", "config.yaml", "--output", "run", "--threads", "1"}), train, 2,
                 {"run: ", "holds a run already", "--resume"}, /*logged=*/true);
  EXPECT_EQ(files_of("run"), before);
}

TEST_F(Errors, DamagedCheckpointLosesNothing) {
  make_run();
  const auto checkpoint = path("run/private/checkpoints/last.pt");
  const auto whole = content_of(checkpoint);
  ASSERT_GT(whole.size(), 5000U);
  std::ofstream(checkpoint, std::ios::binary) << whole.substr(0, whole.size() / 2);
  const auto before = files_of("run");
  expect_failure(
      run(train, {"--resume", "run", "--quiet", "--threads", "1"}), train, 3,
      {"run/private/checkpoints/last.pt", "damaged", "expected", "remove the file: the steps that it had stay"});
  EXPECT_EQ(files_of("run"), before);
  std::ofstream(checkpoint, std::ios::binary) << whole;
  EXPECT_EQ(run(train, {"--resume", "run", "--quiet", "--threads", "1"}).exit_code, 0);
}

TEST_F(Errors, DamagedChargeLosesNothing) {
  make_run();
  write("run/private/checkpoints/charged", "many\n");
  const auto before = files_of("run");
  expect_failure(run(train, {"--resume", "run", "--quiet", "--threads", "1"}), train, 3,
                 {"run/private/checkpoints/charged", "'many'", "expected a count of steps"});
  EXPECT_EQ(files_of("run"), before);
}

// Steps were taken with the old noise: a ledger that states the new one would understate what they cost.
TEST_F(Errors, ResumeWithAnEditedMechanismDoesNotUnderstateEpsilon) {
  make_run();
  const auto ledger = content_of(path("run/privacy.json"));
  auto text = content_of(path("run/config.yaml"));
  const std::string noise = "noise_multiplier: 4";
  const auto place = text.find(noise);
  ASSERT_NE(place, std::string::npos) << text;
  write("run/config.yaml", text.replace(place, noise.size(), "noise_multiplier: 40"));
  expect_failure(run(train, {"--resume", "run", "--quiet", "--threads", "1"}), train, 2, {"noise_multiplier", "40"});
  EXPECT_EQ(content_of(path("run/privacy.json")), ledger);
}

// A program writes all of its options, so a run without one of them was begun by another version.
TEST_F(Errors, ARunOfAnotherVersionIsNotGoneOnWith) {
  make_run();
  auto text = content_of(path("run/private/checkpoints/config.yaml"));
  const std::string option = "  redraw: once\n";
  const auto place = text.find(option);
  ASSERT_NE(place, std::string::npos) << text;
  write("run/private/checkpoints/config.yaml", text.erase(place, option.size()));
  const auto before = files_of("run");
  expect_failure(
      run(train, {"--resume", "run", "--quiet", "--threads", "1"}), train, 3,
      {"run/private/checkpoints/config.yaml", "other options than this version", "only the version that began a run"});
  EXPECT_EQ(files_of("run"), before);
}

TEST_F(Errors, DamagedLedgerIsNotExported) {
  make_run();
  write("run/privacy.json", "{");
  expect_failure(run("tsdp-export", {"--run", "run", "--output", "model.pt"}), "tsdp-export", 3,
                 {"run/privacy.json", "not JSON", "expected"});
  EXPECT_FALSE(std::filesystem::exists(path("model.pt")));
}

// --- usage

TEST_F(Errors, UnknownOption) {
  expect_failure(run(train, {"--config", "config.yaml", "--epoch", "3"}), train, 2,
                 {"--epoch: not used by tsdp-train; the nearest option is --", "--help"});
}

TEST_F(Errors, SettingAsAnOption) {
  expect_failure(run(train, {"--config", "config.yaml", "--privacy.target_epsilon", "1"}), train, 2,
                 {"--privacy.target_epsilon: found a setting; expected it as --set privacy.target_epsilon=VALUE"});
}

TEST_F(Errors, ConfigAndResumeTogether) {
  write_config();
  expect_failure(run(train, {"--config", "config.yaml", "--resume", "run"}), train, 2,
                 {"--config", "--resume", "both", "exactly one"});
}

TEST_F(Errors, NeitherConfigNorResume) {
  expect_failure(run(train, {}), train, 2, {"--config", "--resume", "neither", "exactly one"});
}

TEST_F(Errors, DeviceThatIsNotThere) {
  write_config();
  expect_failure(plan({"--device", "cuda:99"}), train, 2, {"--device", "'cuda:99'", "expected", "cpu"});
}

TEST_F(Errors, DeviceThatIsNone) {
  write_config();
  expect_failure(plan({"--device", "abacus"}), train, 2, {"--device", "'abacus'", "expected auto, cpu, cuda"});
}

TEST_F(Errors, EvaluateWithoutModel) {
  expect_failure(run(evaluate, {"--run", "r", "--per-series"}), evaluate, 2, {"--per-series", "--json"});
  expect_failure(run(evaluate, {"--json"}), evaluate, 2, {"--run", "--model", "neither", "exactly one"});
  expect_failure(run(evaluate, {"--model", "m.pt", "--config", "c.yaml", "--report"}), evaluate, 2,
                 {"--report", "--run"});
}

TEST_F(Errors, EvaluateModelWithoutConfiguration) {
  write("model.pt", "x");
  expect_failure(run(evaluate, {"--model", "model.pt", "--json"}), evaluate, 2, {"--config", "not given", "expected"});
}

TEST_F(Errors, EvaluateAFileThatIsNoModel) {
  write_config();
  write("series.txt", series_text(200));
  write("model.pt", "no archive at all");
  expect_failure(run(evaluate, {"--model", "model.pt", "--config", "config.yaml", "--json", "--threads", "1"}),
                 evaluate, 3, {"model.pt", "not a zip archive", "expected a model"});
}

TEST_F(Errors, EvaluateAFolderWithoutARun) {
  expect_failure(run(evaluate, {"--run", "absent", "--json"}), evaluate, 2, {"--run", "absent", "expected"});
}

TEST_F(Errors, ExportOfAFolderWithoutARun) {
  expect_failure(run("tsdp-export", {"--run", "absent", "--output", "m.pt", "--json"}), "tsdp-export", 2,
                 {"--run", "absent", "expected"});
}

TEST_F(Errors, NoneForHelpAndVersion) {
  for (const auto* program :
       {train, evaluate, "tsdp-forecast", "tsdp-export", "tsdp-account", "tsdp-data", "tsdp-audit"})
    for (const auto* option : {"--help", "--version"}) {
      const auto outcome = run(program, {option});
      EXPECT_EQ(outcome.exit_code, 0) << program << " " << option;
      EXPECT_NE(outcome.out, "") << program << " " << option;
      EXPECT_EQ(outcome.err, "") << program << " " << option;
    }
}

TEST_F(Errors, HelpThatCannotBeWritten) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full to write to";
  for (const std::string program :
       {train, evaluate, "tsdp-forecast", "tsdp-export", "tsdp-account", "tsdp-data", "tsdp-sweep", "tsdp-audit"})
    for (const std::string option : {"--help", "--version"})
      expect_failure(run("/bin/sh", {"-c", program_path(program).string() + " " + option + " >/dev/full"}), program, 1,
                     {"cannot be written to stdout"});
}

TEST_F(Errors, ConfigurationsThatAreNoFiles) {
  ASSERT_EQ(::mkfifo(path("fifo.yaml").c_str(), 0600), 0);
  expect_failure(run(train, {"--config", "fifo.yaml"}), train, 2, {"--config", "fifo.yaml (Is a FIFO)"});
  write_config();
  write("series.txt", series_text(200));
  std::filesystem::create_directory(path("folder.txt"));
  expect_failure(plan_setting({"dataset.path=" + path("folder.txt").string()}), train, 3,
                 {"dataset.path", "folder.txt (Is a directory)"});
}

TEST_F(Errors, ASecondDocument) {
  write("config.yaml", content_of(write_config()) + "---\nmodel: {context_length: 9}\n");
  expect_failure(plan(), train, 2, {"config.yaml:21: found a second YAML document"});
}

TEST_F(Errors, WindowsAndLagsThatNoMemoryHolds) {
  expect_failure(plan_setting({"model.context_length=1000000000"}), train, 2, {"model.context_length", "1 to 1000000"});
  std::string lags = "context_length: 8\n  name: deepar\n  lags: [1";
  for (int lag = 2; lag <= 100'000; ++lag) lags.append(",").append(std::to_string(lag));
  lags.append("]");
  write_config("context_length: 8", lags);
  expect_failure(plan(), train, 2,
                 {"config.yaml:14: model.lags: found a list of 100000; expected a list of at most 1000"});
}

}  // namespace
}  // namespace tsdp::cli_test
