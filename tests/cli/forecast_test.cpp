// tsdp-forecast, and forecasts from privatised pasts and of other programs in tsdp-evaluate, as users run them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "command.h"

namespace tsdp::cli_test {
namespace {

using nlohmann::json;

constexpr const char* forecast = "tsdp-forecast";
constexpr const char* evaluate = "tsdp-evaluate";

const std::string config_text =
    "dataset: {path: series.txt, format: lstnet, frequency: 1h, start: \"2015-01-01\", prediction_length: 4,\n"
    "          season_length: 6, split: last, test_windows: 2, validation_length: 0}\n"
    "model: {context_length: 8}\n"
    "sampling: {batch_size: 2}\n"
    "privacy: {noise_multiplier: 4.0, target_epsilon: 20.0, delta: 1.0e-5, composition: symmetrised}\n"
    "training: {max_epochs: 2}\n";

/// Value of series `s` at `row`.
double value(int row, int s) { return 10.0 * (s + 1) + row % 6 + 0.125 * (row % 5); }

std::string series_text(int rows) {
  std::string out;
  for (int i = 0; i < rows; ++i) {
    for (int s = 0; s < 3; ++s) out.append(s == 0 ? "" : ",").append(std::to_string(value(i, s)));
    out.push_back('\n');
  }
  return out;
}

class Forecast : public CommandTest {
 protected:
  /// Trains two epochs on three series; the model is then run/model.pt.
  void make_model(const std::vector<std::string>& settings = {}) {
    write("config.yaml", config_text);
    write("series.txt", series_text(120));
    std::vector<std::string> arguments = {"--config", "config.yaml", "--output", "run", "--quiet", "--threads", "1"};
    for (const auto& setting : settings) arguments.insert(arguments.end(), {"--set", setting});
    const auto made = run("tsdp-train", arguments);
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }

  Outcome run_on(const std::string& input, const std::string& output, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"--model", "run/model.pt", "--input",   input, "--output",
                                          output,    "--quiet",      "--threads", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(forecast, arguments);
  }

  /// On series.txt, which must work.
  Outcome forecast_to(const std::string& output, std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--start", "2015-01-01"});
    const auto outcome = run_on("series.txt", output, more);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome;
  }

  std::vector<json> json_lines(const std::string& name) {
    std::vector<json> out;
    for (const auto& line : lines_of(content_of(path(name)))) out.push_back(json::parse(line));
    return out;
  }

  std::vector<std::vector<std::string>> csv(const std::string& name) {
    std::vector<std::vector<std::string>> out;
    for (const auto& line : lines_of(content_of(path(name)))) {
      auto& row = out.emplace_back();
      for (std::size_t begin = 0; begin <= line.size();) {
        const auto end = std::min(line.find(',', begin), line.size());
        row.push_back(line.substr(begin, end - begin));
        begin = end + 1;
      }
    }
    return out;
  }

  json scores(const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"--run", "run", "--json", "--quiet", "--threads", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto outcome = run(evaluate, arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.exit_code == 0 ? json::parse(outcome.out) : json();
  }

  /// A failure of tsdp-forecast that must leave an earlier output as it was.
  void expect_refused(const std::vector<std::string>& more, int exit_code, const std::vector<std::string>& parts,
                      const std::string& output = "out.csv", const std::string& input = "series.txt") {
    SCOPED_TRACE(parts.front());
    write("out.csv", "precious");
    expect_failure(run_on(input, output, more), forecast, exit_code, parts);
    EXPECT_EQ(content_of(path("out.csv")), "precious");
    EXPECT_FALSE(std::filesystem::exists(path("out.csv.part")));
  }
};

const std::vector<std::string> privately = {"--private", "--epsilon", "1", "--delta", "1e-4", "--v", "0.5"};

std::vector<std::string> with(std::vector<std::string> options, const std::vector<std::string>& more) {
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

// --- what it writes

TEST_F(Forecast, WritesARowASeriesAndStepOrAnObjectASeries) {
  make_model();
  const auto told = forecast_to("out.csv");
  EXPECT_NE(told.out.find("no --private"), std::string::npos) << told.out;
  const auto rows = csv("out.csv");
  ASSERT_EQ(rows.size(), 1U + 3 * 4);
  EXPECT_EQ(rows[0], (std::vector<std::string>{"item_id", "timestamp", "mean", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6",
                                               "0.7", "0.8", "0.9"}));
  EXPECT_EQ(rows[1][0], "0");
  EXPECT_EQ(rows[1][1], "2015-01-06 00:00:00");  // 120 hours after the first row
  EXPECT_EQ(rows[12][0], "2");
  EXPECT_EQ(rows[12][1], "2015-01-06 03:00:00");
  for (std::size_t i = 1; i < rows.size(); ++i)
    for (std::size_t q = 4; q < 12; ++q) EXPECT_LE(std::stod(rows[i][q - 1]), std::stod(rows[i][q]));

  const auto answer =
      json::parse(forecast_to("out.jsonl", {"--json", "--quantiles", "0.9, 0.5", "--samples", "7"}).out);
  EXPECT_EQ(answer["series"], 3);
  EXPECT_EQ(answer["prediction_length"], 4);
  EXPECT_EQ(answer["frequency"], "1h");
  EXPECT_TRUE(answer["inference_privacy"].is_null());
  EXPECT_TRUE(answer["epsilon"].is_object());
  const auto objects = json_lines("out.jsonl");
  ASSERT_EQ(objects.size(), 3U);
  for (std::size_t s = 0; s < 3; ++s) {
    const auto& one = objects[s];
    EXPECT_EQ(one["item_id"], std::to_string(s));
    EXPECT_EQ(one["start"], "2015-01-06 00:00:00");
    EXPECT_EQ(one["samples"].size(), 7U);
    EXPECT_EQ(one["samples"][6].size(), 4U);
    EXPECT_EQ(one["quantiles"].size(), 2U);
    EXPECT_FALSE(one.contains("inference_privacy"));
    for (std::size_t k = 0; k < 4; ++k) {
      const auto& row = rows[1 + 4 * s + k];
      EXPECT_EQ(std::stof(row[2]), one["mean"][k].get<float>());
      EXPECT_EQ(std::stof(row[7]), one["quantiles"]["0.5"][k].get<float>());
      EXPECT_EQ(std::stof(row[11]), one["quantiles"]["0.9"][k].get<float>());
    }
  }
}

TEST_F(Forecast, DependsOnTheLastValuesOfASeriesAlone) {
  make_model();
  forecast_to("long.csv");
  // The last 8 hours, the context; ids and calendar as before.
  std::string text = "when,a,\"b, c\",d\n";
  const auto lines = lines_of(series_text(120));
  for (int i = 112; i < 120; ++i)
    text += "2015-01-05 " + std::to_string(i - 96) + ":00:00," + lines[static_cast<std::size_t>(i)] + "\n";
  write("tail.csv", text);
  const auto outcome = run_on("tail.csv", "short.csv");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  auto expected = content_of(path("long.csv"));
  const std::map<std::string, std::string> names = {{"\n0,", "\na,"}, {"\n1,", "\n\"b, c\","}, {"\n2,", "\nd,"}};
  for (const auto& [from, to] : names)
    for (auto at = expected.find(from); at != std::string::npos; at = expected.find(from))
      expected.replace(at, from.size(), to);
  EXPECT_EQ(content_of(path("short.csv")), expected);
}

TEST_F(Forecast, ShortSeriesAndMissingValuesAtTheEndAreForecastForTheSameSteps) {
  make_model();
  write("in.csv",
        "time,full,ended,young\n2015-01-01 00:00,1,2,\n2015-01-01 01:00,2,3,\n2015-01-01 02:00,3,nan,\n"
        "2015-01-01 03:00,4,,5\n");
  const auto outcome = run_on("in.csv", "out.jsonl");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto objects = json_lines("out.jsonl");
  ASSERT_EQ(objects.size(), 3U);
  for (const auto& one : objects) EXPECT_EQ(one["start"], "2015-01-01 04:00:00") << one["item_id"];
  // Series of a tsf file stand for themselves.
  write("in.tsf",
        "@relation r\n@attribute series_name string\n@attribute start_timestamp date\n@frequency hourly\n@data\n"
        "T1:2015-01-01 00-00-00:1,2,3\nT2:2015-01-01 00-00-00:1,2,3,4,?\n");
  const auto second = run_on("in.tsf", "tsf.jsonl");
  ASSERT_EQ(second.exit_code, 0) << second.err;
  const auto from_tsf = json_lines("tsf.jsonl");
  EXPECT_EQ(from_tsf[0]["start"], "2015-01-01 03:00:00");
  EXPECT_EQ(from_tsf[1]["start"], "2015-01-01 04:00:00");
}

TEST_F(Forecast, AllFormatsOfASeriesGiveOneForecast) {
  make_model();
  std::ostringstream wide, in_rows, objects;
  wide << "time,a,b\n";
  in_rows << "unique_id,ds,y\n";
  for (int s = 0; s < 2; ++s) {
    const char* id = s == 0 ? "a" : "b";
    objects << R"({"item_id": ")" << id << R"(", "start": "2015-01-01 00:00", "target": [)";
    for (int i = 0; i < 20; ++i) {
      const auto* zero = i < 10 ? "0" : "";
      if (s == 0) wide << "2015-01-01 " << zero << i << ":00," << value(i, 0) << "," << value(i, 1) << "\n";
      in_rows << id << ",2015-01-01 " << zero << i << ":00," << value(i, s) << "\n";
      objects << (i == 0 ? "" : ", ") << value(i, s);
    }
    objects << "]}\n";
  }
  write("wide.csv", wide.str());
  write("rows.csv", in_rows.str());
  write("objects.jsonl", objects.str());
  const std::map<std::string, std::string> outputs = {
      {"wide.csv", "of_wide.csv"}, {"rows.csv", "of_rows.csv"}, {"objects.jsonl", "of_objects.csv"}};
  for (const auto& [input, output] : outputs) {
    const auto outcome = run_on(input, output);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  }
  const auto expected = content_of(path("of_wide.csv"));
  EXPECT_NE(expected.find("b,2015-01-01 20:00:00"), std::string::npos) << expected;
  EXPECT_EQ(content_of(path("of_rows.csv")), expected);
  EXPECT_EQ(content_of(path("of_objects.csv")), expected);
  // Private ones, too: every reader gives the doubles that noise is put on.
  for (const auto& [input, output] : outputs) {
    const auto outcome = run_on(input, "private_" + output, with(privately, {"--seed", "5"}));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(content_of(path("private_" + output)), content_of(path("private_of_objects.csv")));
    EXPECT_NE(content_of(path("private_" + output)), expected);
  }
}

// A use is counted for each past: a series that stands in the file twice would be used twice.
TEST_F(Forecast, PrivateOnesReadEachSeriesOnce) {
  make_model();
  std::string windows;
  for (const int length : {12, 14, 16}) {
    windows += R"({"item_id": "a", "start": "2015-01-01 00:00", "target": [)";
    for (int i = 0; i < length; ++i) windows += (i == 0 ? "" : ", ") + std::to_string(i * i % 7);
    windows += "]}\n";
  }
  write("rolling.jsonl", windows);
  EXPECT_EQ(run_on("rolling.jsonl", "plain.jsonl").exit_code, 0);
  expect_failure(run_on("rolling.jsonl", "private.jsonl", privately), forecast, 3,
                 {"rolling: found the name 'a' 3 times", "each series once"});
  EXPECT_FALSE(std::filesystem::exists(path("private.jsonl")));
  // Under other names, too, and one of many.
  std::string columns = "time,x,y,z,u,v\n";
  for (int i = 10; i < 24; ++i) {
    columns.append("2015-01-01 ").append(std::to_string(i)).append(":00");
    for (const int number : {i * i % 7, i % 5, i * i % 7, i % 6, i * i % 11})
      columns.append(",").append(std::to_string(number));
    columns.append("\n");
  }
  write("columns.csv", columns);
  EXPECT_EQ(run_on("columns.csv", "plain.csv").exit_code, 0);
  expect_failure(run_on("columns.csv", "private.csv", privately), forecast, 3,
                 {"'x' (number 0) and 'z' (number 2)", "leave the copies out"});
  write("columns.yaml",
        "dataset: {path: columns.csv, prediction_length: 4, season_length: 1, split: last, test_windows: 1, "
        "validation_length: 0}\nmodel: {context_length: 8}\nsampling: {batch_size: 1}\n");
  const auto scored = with({"--model", "run/model.pt", "--config", "columns.yaml", "--threads", "1", "--quiet"}, {});
  EXPECT_EQ(run(evaluate, scored).exit_code, 0) << run(evaluate, scored).err;
  expect_failure(run(evaluate, with(scored, privately)), evaluate, 3,
                 {"'x' (number 0) and 'z' (number 2)", "leave the copies out"});
  std::string alike = columns;
  alike[alike.find('y')] = 'Z';
  for (std::size_t at = alike.find('\n') + 1; at < alike.size(); at = alike.find('\n', at) + 1)
    alike.insert(alike.find(',', at) + 1, 1, '1');
  write("alike.csv", alike);
  const auto told = run_on("alike.csv", "private.csv", privately);
  EXPECT_EQ(told.exit_code, 0) << told.err;
  EXPECT_NE(told.err.find("differ by case or outer spaces alone; if they are one series"), std::string::npos)
      << told.err;
}

TEST_F(Forecast, ReadsItsInputAsAConfigurationSays) {
  make_model();
  forecast_to("by_options.csv");
  const auto outcome = run_on("series.txt", "by_config.csv", {"--config", "config.yaml"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(content_of(path("by_options.csv")), content_of(path("by_config.csv")));
}

TEST_F(Forecast, SamplePathsAreRepeatableAndFollowTheSeed) {
  make_model({"model.name=deepar", "model.lags=[1,2,6]"});
  forecast_to("a.jsonl", {"--samples", "20"});
  forecast_to("b.jsonl", {"--samples", "20"});
  forecast_to("c.jsonl", {"--samples", "20", "--seed", "5"});
  EXPECT_EQ(content_of(path("a.jsonl")), content_of(path("b.jsonl")));
  EXPECT_NE(content_of(path("a.jsonl")), content_of(path("c.jsonl")));
  // Quantiles are order statistics of the paths that are shown: 0.5 is number round(19/2) = 10 (from 0).
  for (const auto& one : json_lines("a.jsonl"))
    for (std::size_t k = 0; k < 4; ++k) {
      std::multiset<double> sorted;
      for (const auto& sample : one["samples"]) sorted.insert(sample[k].get<double>());
      EXPECT_EQ(*std::next(sorted.begin(), 10), one["quantiles"]["0.5"][k].get<double>());
    }
}

// --- privacy

TEST_F(Forecast, PrivateForecastsSayWhatTheyCost) {
  make_model();
  const auto answer =
      json::parse(forecast_to("a.jsonl", with(privately, {"--json", "--seasonal-naive", "naive.jsonl"})).out);
  const auto& claim = answer["inference_privacy"];
  EXPECT_EQ(claim["epsilon"], 1.0);
  EXPECT_EQ(claim["delta"], 1e-4);
  EXPECT_EQ(claim["v"], 0.5);
  EXPECT_EQ(claim["w"], 1);
  EXPECT_EQ(claim["keep_probability"], 1.0);
  EXPECT_EQ(claim["randomness"], "key from the operating system");
  EXPECT_NE(claim["theorem"].get<std::string>().find("Appendix H"), std::string::npos);
  EXPECT_NE(claim["derivation"].get<std::string>().find("Bin(i; w"), std::string::npos);
  // The Gaussian mechanism: δ(1) = Φ(1/2s − s) − e Φ(−1/2s − s) with the noise s in multiples of v.
  const double s = claim["noise_multiplier"].get<double>();
  const auto phi = [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); };
  EXPECT_NEAR(phi(0.5 / s - s) - std::exp(1.0) * phi(-0.5 / s - s), 1e-4, 1e-10);
  EXPECT_NEAR(claim["noise"].get<double>(), 0.5 * (1.0 + 0x1p-19) * s, 1e-12);
  // With the model's own guarantee, for a series that it was trained on.
  EXPECT_GE(answer["with_training"]["epsilon"].get<double>(), 1.0 + answer["epsilon"]["upper"].get<double>());
  EXPECT_GE(answer["with_training"]["delta"].get<double>(), 1e-4 + 1e-5);
  EXPECT_EQ(json_lines("a.jsonl")[0]["inference_privacy"], claim);
  EXPECT_EQ(claim["with_training"], answer["with_training"]);
  ASSERT_EQ(json_lines("naive.jsonl").size(), 3U);
  // Fresh randomness every time.
  forecast_to("b.jsonl", privately);
  EXPECT_NE(json_lines("a.jsonl")[0]["mean"], json_lines("b.jsonl")[0]["mean"]);
  const auto told = forecast_to("c.csv", privately).out;
  EXPECT_NE(told.find("(1, 1e-04)-differential privacy"), std::string::npos) << told;
  EXPECT_NE(told.find("The model's own guarantee"), std::string::npos) << told;
  EXPECT_EQ(told.find("NOT FOR RELEASE"), std::string::npos) << told;
}

TEST_F(Forecast, ASeedMakesPrivateForecastsRepeatableAndUnfitForRelease) {
  make_model({"privacy.enabled=false"});
  const auto seeded = with(privately, {"--seed", "3", "--keep-probability", "0.5", "--w", "2"});
  const auto told = forecast_to("a.jsonl", seeded).out;
  EXPECT_NE(told.find("NOT FOR RELEASE"), std::string::npos) << told;
  EXPECT_NE(told.find("trained without privacy"), std::string::npos) << told;
  forecast_to("b.jsonl", seeded);
  EXPECT_EQ(content_of(path("a.jsonl")), content_of(path("b.jsonl")));
  EXPECT_EQ(json_lines("a.jsonl")[0]["inference_privacy"]["randomness"], "reproducible from the seed, not for release");
  EXPECT_EQ(json_lines("a.jsonl")[0]["inference_privacy"]["keep_probability"], 0.5);
  EXPECT_EQ(json_lines("a.jsonl")[0]["inference_privacy"]["w"], 2);
}

TEST_F(Forecast, NoiseOfAHarmlessChangeChangesLittle) {
  make_model();
  forecast_to("plain.jsonl");
  forecast_to("noisy.jsonl", {"--private", "--epsilon", "1", "--delta", "1e-4", "--v", "1e-6"});
  const auto plain = json_lines("plain.jsonl");
  const auto noisy = json_lines("noisy.jsonl");
  for (std::size_t i = 0; i < plain.size(); ++i)
    for (std::size_t k = 0; k < 4; ++k) {
      const double expected = plain[i]["mean"][k];
      EXPECT_NEAR(noisy[i]["mean"][k], expected, 1e-3 * (1.0 + std::abs(expected)));
    }
}

// Two inputs whose last values differ by v, at 1e9, where floats lie 64 apart: 300 series, each a use of its own. With
// rounding before the noise, all answers told which input they were made from.
TEST_F(Forecast, PrivateForecastsOfLargeCountsHideAChangeOfV) {
  make_model();
  constexpr int uses = 300;
  const auto input = [&](const std::string& name, const std::string& last) {
    std::string text;
    for (int row = 0; row < 12; ++row) {
      for (int s = 0; s < uses; ++s) text.append(s == 0 ? "" : ",").append(row == 11 ? last : "1000000000");
      text.push_back('\n');
    }
    write(name + ".txt", text);
  };
  input("first", "1000000031");
  input("second", "1000000033");
  // How many means of a file lie above `bound`, in the first step of each series.
  const auto above = [&](const std::string& file, double bound) {
    int count = 0;
    const auto rows = csv(file);
    EXPECT_EQ(rows.size(), 1U + 4 * uses);
    for (std::size_t i = 1; i < rows.size(); i += 4) count += std::stof(rows[i][2]) > static_cast<float>(bound) ? 1 : 0;
    return count;
  };
  // Noise for epsilon 1 and delta 1e-4, drawn anew for the two inputs. Counts err by less than 5 standard
  // deviations, 44.
  constexpr double slack = 44.0 * (1.0 + 2.718281828459045);
  for (const std::string name : {"first", "second"}) {
    const auto outcome =
        run_on(name + ".txt", name + ".csv",
               {"--start", "2015-01-01", "--seasonal-naive", name + "_naive.csv", "--season-length", "1", "--private",
                "--epsilon", "1", "--delta", "1e-4", "--v", "2", "--seed", name == "first" ? "1" : "2"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  }
  const auto expect_hidden = [&](int in_first, int in_second) {
    EXPECT_LE(in_second, std::exp(1.0) * in_first + uses * 1e-4 + slack);
    EXPECT_LE(uses - in_first, std::exp(1.0) * (uses - in_second) + uses * 1e-4 + slack);
  };
  expect_hidden(above("first_naive.csv", 1e9), above("second_naive.csv", 1e9));
  // The model's answers: any bound will do.
  for (const auto& file : {"first.csv", "second.csv"})
    for (std::size_t i = 1; const auto& row : csv(file)) {
      if (i++ % 100 != 2) continue;
      const double bound = std::stod(row[2]);
      expect_hidden(above("first.csv", bound), above("second.csv", bound));
    }
}

TEST_F(Forecast, EvaluationOnPrivatisedPasts) {
  make_model();
  const auto plain = scores();
  EXPECT_FALSE(plain.contains("inference_privacy"));
  const auto noisy = scores({"--private", "--epsilon", "1", "--delta", "1e-4", "--v", "20", "--seed", "1"});
  const auto naive = [](const json& of) {
    return of["baselines"]["seasonal_naive"]["mean_weighted_quantile_loss"].get<double>();
  };
  EXPECT_GT(naive(noisy), 2.0 * naive(plain));
  EXPECT_NE(noisy["metrics"]["ND"], plain["metrics"]["ND"]);
  const auto& claim = noisy["inference_privacy"];
  for (const auto* key :
       {"epsilon", "delta", "v", "w", "keep_probability", "noise_multiplier", "theorem", "derivation"})
    EXPECT_TRUE(claim.contains(key)) << key;
  // Two windows of four steps, pasts of max(8, 6) values: a value lies in both.
  EXPECT_EQ(claim["composition"]["uses_of_a_change"], 2);
  EXPECT_EQ(claim["composition"]["epsilon"], 2.0);
  // So little noise that nothing is seen of it.
  const auto same = scores({"--private", "--epsilon", "1", "--delta", "1e-4", "--v", "1e-7"});
  EXPECT_NEAR(naive(same), naive(plain), 1e-6);
  EXPECT_NEAR(same["metrics"]["ND"].get<double>(), plain["metrics"]["ND"].get<double>(), 1e-4);
}

// What is known of all values before looking is known of all forecasts: the model's, and those that are free.
TEST_F(Forecast, StayWithinTheBoundsOfTheData) {
  make_model({"dataset.lower_bound=12.5", "dataset.upper_bound=25"});
  forecast_to("out.jsonl", {"--samples", "20"});
  for (const auto& one : json_lines("out.jsonl")) {
    const auto inside = [&](const json& values) {
      for (const double value : values) EXPECT_TRUE(value >= 12.5 && value <= 25.0) << value;
    };
    inside(one["mean"]);
    for (const auto& [unused, quantile] : one["quantiles"].items()) inside(quantile);
    for (const auto& path : one["samples"]) inside(path);
  }
  // Cut at 25, a forecast of the third series, whose values are 30 and more, has no width.
  const auto all = scores({"--per-series"});
  const auto width = [&](const std::string& name) {
    return all["by_series"][2]["baselines"][name]["intervals"]["0.8"]["mean_width"].get<double>();
  };
  EXPECT_EQ(width("seasonal_quantiles"), 0.0);
  EXPECT_EQ(width("seasonal_naive_bands"), 0.0);
}

TEST_F(Forecast, EvaluationOfEverySeries) {
  make_model();
  EXPECT_FALSE(scores().contains("by_series"));
  const auto all = scores({"--per-series"});
  std::vector<double> errors, naive_errors;
  std::set<std::string> names;
  std::int64_t windows = 0;
  for (const auto& one : all["by_series"]) {
    names.insert(one["series"].get<std::string>());
    windows += one["windows"].get<std::int64_t>();
    errors.push_back(one["metrics"]["abs_error"]);
    naive_errors.push_back(one["baselines"]["seasonal_naive"]["abs_error"]);
  }
  EXPECT_GT(names.size(), 1U);
  EXPECT_EQ(names.size(), all["by_series"].size());
  EXPECT_EQ(windows, all["windows"]);
  const auto sum = [](const std::vector<double>& of) { return std::accumulate(of.begin(), of.end(), 0.0); };
  EXPECT_NEAR(sum(errors), all["metrics"]["abs_error"].get<double>(), 1e-9);
  EXPECT_NEAR(sum(naive_errors), all["baselines"]["seasonal_naive"]["abs_error"].get<double>(), 1e-9);
  const auto not_covered = all["epsilon_does_not_cover"];
  EXPECT_NE(std::find(not_covered.begin(), not_covered.end(), "by_series"), not_covered.end());
}

TEST_F(Forecast, EvaluationHasIntervalsAndMsis) {
  make_model();
  const auto metrics = scores()["metrics"];
  EXPECT_TRUE(metrics["MSIS"].is_number());
  double before = 0.0;
  for (const auto* nominal : {"0.2", "0.4", "0.5", "0.6", "0.8", "0.9", "0.95"}) {
    ASSERT_TRUE(metrics["intervals"].contains(nominal)) << nominal;
    const double width = metrics["intervals"][nominal]["mean_width"];
    EXPECT_GT(width, before);
    before = width;
  }
}

// --- forecasts of another program

class Baseline : public Forecast {
 protected:
  /// Entries of the two test windows, of three series each, whose quantiles and means are `shift` beside the truth.
  static std::vector<json> entries(double shift) {
    std::vector<json> out;
    for (const int start : {112, 116})
      for (int s = 0; s < 3; ++s) {
        json one = {{"item_id", std::to_string(s)}, {"forecast_start", start}};
        for (int k = 0; k < 4; ++k)
          one["mean"].push_back(static_cast<double>(static_cast<float>(value(start + k, s))) + shift);
        for (const auto* level : {"0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9"})
          one["quantiles"][level] = one["mean"];
        out.push_back(one);
      }
    return out;
  }
  std::string write_entries(const std::vector<json>& entries, const std::string& name = "other.jsonl") {
    std::string text;
    for (const auto& one : entries) text.append(one.dump()).push_back('\n');
    return write(name, text);
  }
  void expect_refused_entries(const std::vector<json>& entries, const std::vector<std::string>& parts) {
    SCOPED_TRACE(parts.front());
    write_entries(entries);
    expect_failure(run(evaluate, {"--run", "run", "--json", "--threads", "1", "--baseline", "other=other.jsonl"}),
                   evaluate, 3, parts);
  }
};

TEST_F(Baseline, IsScoredBesideSeasonalNaive) {
  make_model();
  write_entries(entries(0.0), "exact.jsonl");
  auto shifted = entries(1.0);
  for (auto& one : shifted)
    for (const auto* level : {"0.025", "0.975"}) one["quantiles"][level] = one["mean"];
  write_entries(shifted, "shifted.jsonl");
  const auto all = scores({"--baseline", "exact=exact.jsonl", "--baseline", "shifted=shifted.jsonl"});
  EXPECT_TRUE(all["baselines"].contains("seasonal_naive"));
  EXPECT_TRUE(all["baselines"].contains("start"));
  const auto& exact = all["baselines"]["exact"];
  EXPECT_EQ(exact["mean_weighted_quantile_loss"], 0.0);
  EXPECT_EQ(exact["ND"], 0.0);
  EXPECT_TRUE(exact["MSIS"].is_null());  // without the quantiles it needs
  const auto& shift = all["baselines"]["shifted"];
  EXPECT_NEAR(shift["RMSE"].get<double>(), 1.0, 1e-6);
  EXPECT_NEAR(shift["abs_error"].get<double>(), 24.0, 1e-5);
  EXPECT_NEAR(shift["MSIS"].get<double>(), 40.0 * shift["MASE"].get<double>(), 1e-4);
  const auto told = run(evaluate, {"--run", "run", "--threads", "1", "--baseline", "exact=exact.jsonl"});
  EXPECT_NE(told.out.find("exact"), std::string::npos);
}

TEST_F(Baseline, MismatchesAreNamed) {
  make_model();
  auto e = entries(0.0);
  e.pop_back();
  expect_refused_entries(e, {"other.jsonl: ", "found 5 entries", "expected 6"});
  e = entries(0.0);
  std::swap(e[1], e[2]);
  expect_refused_entries(e, {"other.jsonl:2: ", "series '2'", "expected series '1' from place 112"});
  e = entries(0.0);
  e[3]["forecast_start"] = 115;
  expect_refused_entries(e, {"other.jsonl:4: ", "place 115", "from place 116"});
  e = entries(0.0);
  e[0]["mean"].push_back(1.0);
  expect_refused_entries(e, {"other.jsonl:1: ", "mean: found 5 values", "expected 4"});
  e = entries(0.0);
  e[0]["quantiles"]["0.3"][2] = nullptr;
  expect_refused_entries(e, {"other.jsonl:1: ", "quantile 0.3: found null", "a finite number"});
  e = entries(0.0);
  e[0]["quantiles"].erase("0.5");
  expect_refused_entries(e, {"other.jsonl:1: ", "no quantile 0.5", "expected 0.1"});
  e = entries(0.0);
  e[5].erase("quantiles");
  expect_refused_entries(e, {"other.jsonl:6: ", "no 'quantiles'"});
  write("other.jsonl", "{\n\n\n\n\n\n\n\n\n\n}");
  expect_failure(run(evaluate, {"--run", "run", "--threads", "1", "--baseline", "other=other.jsonl"}), evaluate, 3,
                 {"other.jsonl: ", "found 2 entries"});
  write("other.jsonl", "{\n1\n2\n3\n4\n5\n");
  expect_failure(run(evaluate, {"--run", "run", "--threads", "1", "--baseline", "other=other.jsonl"}), evaluate, 3,
                 {"other.jsonl:1: ", "no JSON object"});
  const auto usage = [&](const std::vector<std::string>& more, const std::vector<std::string>& parts) {
    expect_failure(run(evaluate, with({"--run", "run", "--threads", "1"}, more)), evaluate, 2, parts);
  };
  usage({"--baseline", "other.jsonl"}, {"--baseline", "'other.jsonl'", "NAME=FILE"});
  usage({"--baseline", "seasonal_naive=other.jsonl"}, {"--baseline", "seasonal_naive", "is taken"});
  expect_failure(run(evaluate, {"--run", "run", "--threads", "1", "--baseline", "x=absent.jsonl"}), evaluate, 3,
                 {"absent.jsonl", "cannot be read"});
}

// --- mistakes

TEST_F(Forecast, RefusesMistakesAndKeepsWhatWasThere) {
  make_model();
  const std::vector<std::string> start = {"--start", "2015-01-01"};
  expect_refused({}, 2, {"--start: not given", "series.txt", "first row"});
  expect_refused({"--start", "yesterday"}, 2, {"--start", "'yesterday'", "YYYY-MM-DD"});
  expect_refused(with(start, {"--frequency", "1D"}), 2,
                 {"--frequency: found 1D", "expected 1h, the step of the series"});
  expect_refused(with(start, {"--frequency", "fortnight"}), 2, {"--frequency", "'fortnight'", "10min"});
  expect_refused(with(start, {"--format", "parquet"}), 2, {"--format", "parquet"});
  expect_refused({"--config", "config.yaml", "--frequency", "1h"}, 2, {"--config", "--frequency"});
  for (const auto* level : {"0", "1", "1.5", "-0.5", "half", "nan", ""})
    expect_refused(with(start, {"--quantiles", std::string("0.5,") + level}), 2, {"--quantiles", "(0, 1)"});
  expect_refused(with(start, {"--quantiles", "0.5,0.5"}), 2, {"--quantiles", "twice"});
  expect_refused(with(start, {"--samples", "10"}), 2, {"--samples", ".jsonl"});
  expect_refused(with(start, {"--samples", "0"}), 2, {"--samples"});
  expect_refused(with(start, {"--season-length", "24"}), 2, {"--season-length", "--seasonal-naive"});
  expect_refused(with(start, {"--seasonal-naive", "out.csv"}), 2, {"--seasonal-naive", "--output"});
  expect_refused(with(start, {"--seasonal-naive", "./new.csv"}), 2, {"--seasonal-naive", "--output"}, "new.csv");
  expect_refused(with(start, {"--device", "abacus"}), 2, {"--device", "'abacus'"});
  expect_refused(start, 2, {"--output", "'out.txt'", ".csv or .jsonl"}, "out.txt");
  expect_refused(start, 2, {"--output", "no folder", "absent"}, "absent/out.csv");
  write("twice.csv", "time,a\n2015-01-01 00:00,1\n");
  expect_refused({}, 2, {"--output", "twice.csv", "read, too"}, "twice.csv", "twice.csv");
  EXPECT_EQ(content_of(path("twice.csv")), "time,a\n2015-01-01 00:00,1\n");
  expect_refused({}, 2, {"series.feather: the name does not tell the form", "--format"}, "out.csv", "series.feather");
  expect_refused({}, 3, {"absent.csv"}, "out.csv", "absent.csv");
  write("wrong.csv", "time,a\n2015-01-01 00:00,1\n2015-01-02 00:00,1\n");
  expect_refused({}, 3, {"wrong.csv:3:1: ", "2015-01-02", "one step of 1h"}, "out.csv", "wrong.csv");
  write("config_daily.yaml", std::string(config_text).replace(config_text.find("1h"), 2, "1D"));
  expect_refused({"--config", "config_daily.yaml"}, 2, {"dataset.frequency: found 1D", "1h"});
  write("run/model.pt", "no archive");
  expect_refused(start, 3, {"run/model.pt", "not a zip archive"});
  std::filesystem::remove(path("run/model.pt"));
  expect_refused(start, 3, {"run/model.pt", "No such file"});
  expect_failure(run(forecast, {"--input", "series.txt", "--output", "out.csv"}), forecast, 2, {"--model"});
}

TEST_F(Forecast, RefusesPrivacyThatIsNotFullyStated) {
  make_model();
  // Each option of --private with a value that will not do.
  struct Case {
    std::vector<std::string> options;
    int exit_code;
    std::vector<std::string> parts;
  };
  const auto changed = [](const std::string& option, const std::string& value) {
    auto out = with(privately, {});
    for (std::size_t i = 0; i + 1 < out.size(); ++i)
      if (out[i] == option) {
        out[i + 1] = value;
        return out;
      }
    return with(out, {option, value});
  };
  const auto without = [](const std::string& option) {
    std::vector<std::string> out;
    for (std::size_t i = 0; i < privately.size(); ++i) {
      if (privately[i] == option) {
        ++i;
      } else {
        out.push_back(privately[i]);
      }
    }
    return out;
  };
  const std::vector<Case> cases = {
      {without("--epsilon"), 2, {"--epsilon: not given", "greater than 0"}},
      {without("--delta"), 2, {"--delta: not given", "below 1"}},
      {without("--v"), 2, {"--v: not given", "most by which a value changes"}},
      {changed("--epsilon", "0"), 2, {"epsilon: found 0", "greater than 0"}},
      {changed("--epsilon", "-1"), 2, {"epsilon: found -1"}},
      {changed("--epsilon", "one"), 2, {"--epsilon", "one"}},
      {changed("--delta", "0"), 2, {"delta: found 0", "greater than 0 and below 1"}},
      {changed("--delta", "1e-14"), 4, {"delta: found 1e-14 with w 1", "at least w 2^-46 = 1.42"}},
      {changed("--delta", "1"), 2, {"delta: found 1"}},
      {changed("--v", "0"), 2, {"v: found 0", "greater than 0"}},
      {changed("--v", "inf"), 4, {"v: found no bound"}},
      {changed("--v", "3e38"), 4, {"v: found 3e+38", "too large"}},
      {changed("--w", "0"), 2, {"w: found 0", "an integer from 1"}},
      {changed("--w", "1.5"), 2, {"--w", "1.5"}},
      {changed("--keep-probability", "0"), 2, {"keep probability: found 0", "at most 1"}},
      {changed("--keep-probability", "1.1"), 2, {"keep probability: found 1.1"}},
      {changed("--epsilon", "70"), 4, {"delta: found 1e-04", "smaller epsilon"}},
      {changed("--delta", "1e-15"), 4, {"delta: found 1e-15", "at least"}},
      {{"--epsilon", "1"}, 2, {"--epsilon: given without --private"}},
      {{"--delta", "1e-4"}, 2, {"--delta: given without --private"}},
      {{"--v", "1"}, 2, {"--v: given without --private"}},
      {{"--w", "1"}, 2, {"--w: given without --private"}},
      {{"--keep-probability", "0.5"}, 2, {"--keep-probability: given without --private"}},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto& c = cases[i];
    expect_refused(with(c.options, {"--start", "2015-01-01"}), c.exit_code, c.parts);
    if (i % 4 != 1) continue;  // one table of options serves both programs
    SCOPED_TRACE("tsdp-evaluate");
    expect_failure(run(evaluate, with({"--run", "run", "--json", "--threads", "1"}, c.options)), evaluate, c.exit_code,
                   c.parts);
  }
  expect_failure(run(evaluate, {"--run", "run", "--seed", "1"}), evaluate, 2, {"--seed", "--private"});
}

/// Forecasts of all windows of series.txt and the one after its end by one who knows the values.
std::string oracle(bool by_moment) {
  std::string out;
  for (int s = 0; s < 3; ++s)
    for (int place = 0; place <= 120; ++place) {
      json entry = {{"item_id", std::to_string(s)}};
      if (by_moment)
        entry["start"] = "2015-01-0" + std::to_string(1 + place / 24) + (place % 24 < 10 ? " 0" : " ") +
                         std::to_string(place % 24) + ":00";
      else entry["forecast_start"] = place;
      for (int k = 0; k < 4; ++k) {
        for (int q = 1; q <= 9; ++q)
          entry["quantiles"]["0." + std::to_string(q)].push_back(value(place + k, s) + 1e-3 * (q - 5));
        entry["mean"].push_back(value(place + k, s));
      }
      out += entry.dump() + "\n";
    }
  return out;
}

TEST_F(Forecast, EvaluationSaysWhereWildValuesWereScored) {
  make_model();
  auto rows = series_text(120);
  const auto last = rows.rfind('\n', rows.size() - 2) + 1;
  rows.replace(last, rows.find(',', last) - last, "1e6");
  write("series.txt", rows);
  const auto evaluated = run(evaluate, {"--run", "run", "--json", "--quiet", "--threads", "1"});
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
  EXPECT_EQ(
      json::parse(evaluated.out)["remarks"],
      json::array({"1 of the true values scored, in 1 series such as '0', lies far from all others there; a few such "
                   "values can decide a score (tsdp-data describe names them)"}));
  const auto report = run(evaluate, {"--run", "run", "--report", "--quiet", "--threads", "1"});
  ASSERT_EQ(report.exit_code, 0) << report.err;
  EXPECT_NE(content_of(path("run/private/report.html")).find("<p>1 of the true values scored, in 1 series"),
            std::string::npos);
}

TEST_F(Forecast, IsMixedWithThoseOfOtherPrograms) {
  write("oracle.jsonl", oracle(false));
  make_model({"model.candidates=[seasonal_quantiles, oracle.jsonl]"});
  const auto evaluated = run(evaluate, {"--run", "run", "--json", "--quiet", "--threads", "1"});
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
  const auto scores = json::parse(evaluated.out);
  EXPECT_EQ(scores["remarks"], json::array({"oracle takes part in 6 of 6 forecasts",
                                            "oracle counts as free here, and so does a start that is mixed with it; "
                                            "that is true only if oracle was made without these data, which no program "
                                            "can tell"}));
  constexpr const char* crps = "mean_weighted_quantile_loss";
  EXPECT_LT(scores["baselines"]["oracle"][crps].get<double>(), 1e-4);
  EXPECT_LT(scores["metrics"][crps].get<double>(), 0.1 * scores["baselines"]["seasonal_quantiles"][crps].get<double>());

  forecast_to("alone.csv");
  forecast_to("with.csv", {"--candidates", path("oracle.jsonl")});
  const auto alone = csv("alone.csv");
  const auto with = csv("with.csv");
  ASSERT_EQ(with.size(), 13U);
  double worst = 0.0;
  for (int s = 0; s < 3; ++s)
    for (int k = 0; k < 4; ++k) {
      const auto row = static_cast<std::size_t>(1 + 4 * s + k);
      EXPECT_NEAR(std::stod(with[row][2]), value(120 + k, s), 0.02) << s << ", " << k;
      worst = std::max(worst, std::abs(std::stod(alone[row][2]) - value(120 + k, s)));
    }
  EXPECT_GT(worst, 0.1);

  // By moments; and without the last window of one series.
  write("oracle.jsonl", oracle(true));
  forecast_to("moments.csv", {"--candidates", path("oracle.jsonl")});
  EXPECT_EQ(csv("moments.csv"), with);
  std::string entries;
  for (const auto& line : lines_of(oracle(false)))
    if (line.find("\"forecast_start\":114,\"item_id\":\"1\"") == std::string::npos) entries += line + "\n";
  ASSERT_EQ(lines_of(entries).size(), 3U * 121U - 1U);
  write("oracle.jsonl", entries);
  const auto part = run(forecast, {"--model", "run/model.pt", "--input", "series.txt", "--output", "part.csv",
                                   "--start", "2015-01-01", "--threads", "1", "--candidates", "oracle.jsonl"});
  EXPECT_EQ(part.exit_code, 0) << part.err;
  EXPECT_NE(
      part.err.find("oracle takes part in 2 of 3 forecasts (those where oracle.jsonl has the coming window and, as "
                    "far as the series goes back, the 20 that begin 6, 12, … steps earlier)"),
      std::string::npos)
      << part.err;
  const auto partly = csv("part.csv");
  for (std::size_t row = 1; row < 13; ++row) EXPECT_EQ(partly[row], row < 5 || row > 8 ? with[row] : alone[row]) << row;

  // Other programs read the series as they are.
  const auto beside = run(evaluate, {"--run", "run", "--json", "--quiet", "--threads", "1", "--private", "--epsilon",
                                     "1", "--delta", "1e-4", "--v", "1"});
  ASSERT_EQ(beside.exit_code, 0) << beside.err;
  EXPECT_NE(json::parse(beside.out)["remarks"].dump().find("oracle takes part in 0 of 6 forecasts"), std::string::npos);
  EXPECT_FALSE(json::parse(beside.out)["baselines"].contains("oracle"));
  expect_failure(run_on("series.txt", "f.csv",
                        {"--start", "2015-01-01", "--candidates", "oracle.jsonl", "--private", "--epsilon", "1",
                         "--delta", "1e-4", "--v", "1"}),
                 forecast, 2, {"--candidates: given with --private"});
  expect_failure(run_on("series.txt", "f.csv",
                        {"--start", "2015-01-01", "--candidates", "oracle.jsonl", "--candidates", "oracle.jsonl"}),
                 forecast, 2, {"candidates: found two files named oracle;", "expected one"});
  write("other.jsonl", oracle(false));
  expect_failure(run_on("series.txt", "f.csv", {"--start", "2015-01-01", "--candidates", "other.jsonl"}), forecast, 2,
                 {"candidates: found forecasts named other", "the model is mixed with oracle"});
}

/// All series up to each place, as series of their own, "s@place", that end together.
std::string all_pasts() {
  std::string out;
  for (int s = 0; s < 3; ++s)
    for (int place = 1; place <= 120; ++place) {
      const int first = 120 - place;
      json entry = {{"item_id", std::to_string(s) + "@" + std::to_string(place)},
                    {"start", "2015-01-0" + std::to_string(1 + first / 24) + (first % 24 < 10 ? " 0" : " ") +
                                  std::to_string(first % 24) + ":00"}};
      for (int row = 0; row < place; ++row) entry["target"].push_back(value(row, s));
      out += entry.dump() + "\n";
    }
  return out;
}

TEST_F(Forecast, IsMixedWithAnotherModelAsWithItsForecastsInAFile) {
  make_model({"model.prior=seasonal_naive", "model.candidates=[]"});
  ASSERT_EQ(std::rename(path("run").c_str(), path("flows").c_str()), 0);
  std::filesystem::copy_file(path("flows/model.pt"), path("flows.pt"));
  write("pasts.jsonl", all_pasts());
  const auto made = run(forecast, {"--model", "flows.pt", "--input", "pasts.jsonl", "--output", "made.jsonl", "--quiet",
                                   "--threads", "1"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  std::string file;
  for (auto entry : json_lines("made.jsonl")) {
    const auto id = entry["item_id"].get<std::string>();
    entry["item_id"] = id.substr(0, 1);
    entry["forecast_start"] = std::stoi(id.substr(2));
    entry.erase("start");
    file += entry.dump() + "\n";
  }
  write("flows.jsonl", file);

  make_model({"model.candidates=[seasonal_naive_bands, flows.pt]"});
  const auto scores_with = [&](const std::string& candidate) {
    const auto found = run(evaluate, {"--run", "run", "--json", "--quiet", "--threads", "1", "--set",
                                      "model.candidates=[seasonal_naive_bands, " + candidate + "]"});
    EXPECT_EQ(found.exit_code, 0) << found.err;
    return json::parse(found.out);
  };
  const auto asked = scores_with("flows.pt");
  const auto read = scores_with("flows.jsonl");
  EXPECT_EQ(asked["metrics"], read["metrics"]);
  ASSERT_EQ(asked["remarks"].size(), 3U) << asked["remarks"];
  EXPECT_EQ(asked["remarks"][0], "flows takes part in 6 of 6 forecasts");
  ASSERT_EQ(read["remarks"].size(), 2U) << read["remarks"];
  EXPECT_EQ(read["remarks"][0], asked["remarks"][0]);
  EXPECT_NE(read["remarks"][1].get<std::string>().find("only if flows was made without these data"), std::string::npos);
  // Trained on data, so not free.
  EXPECT_TRUE(read["baselines"].contains("flows"));
  EXPECT_FALSE(asked["baselines"].contains("flows"));
  const auto remark = asked["remarks"][1].get<std::string>();
  EXPECT_NE(remark.find("flows alone: CRPS "), std::string::npos) << remark;
  EXPECT_NE(remark.find("trained on data, which no statement of this model covers"), std::string::npos) << remark;
  EXPECT_NE(remark.find("differential privacy"), std::string::npos) << remark;
  // Nor is a start that is mixed with it, and what differs from one that is not is not what training did.
  EXPECT_FALSE(asked["baselines"].contains("start"));
  EXPECT_TRUE(read["baselines"].contains("start"));
  EXPECT_EQ(asked["remarks"][2],
            "its start is not scored, since it is mixed with flows, which was trained on data itself");
  EXPECT_NE(asked["best_free"]["name"], "start");
  // The run's own configuration finds it from anywhere.
  std::filesystem::rename(path("run"), path("elsewhere"));
  EXPECT_EQ(run(evaluate, {"--run", "elsewhere", "--quiet", "--threads", "1"}).exit_code, 0);
  std::filesystem::rename(path("elsewhere"), path("run"));

  const auto alone = forecast_to("alone.csv");
  EXPECT_EQ(alone.out.find("flows"), std::string::npos) << alone.out;
  const auto mixed = forecast_to("asked.csv", {"--candidates", path("flows.pt")});
  EXPECT_NE(mixed.out.find("They are mixed with those of flows, which was trained on data itself: ("),
            std::string::npos)
      << mixed.out;
  const auto told = json::parse(forecast_to("asked.csv", {"--candidates", path("flows.pt"), "--json"}).out);
  EXPECT_EQ(told["candidates"].size(), 1U) << told;
  EXPECT_NE(told["candidates"]["flows"].get<std::string>().find("differential privacy"), std::string::npos) << told;
  forecast_to("read.csv", {"--candidates", path("flows.jsonl")});
  EXPECT_EQ(csv("asked.csv"), csv("read.csv"));
  EXPECT_NE(csv("asked.csv"), csv("alone.csv"));

  // Epsilon 0: nothing was trained, so it is free.
  write("series.txt", series_text(120));
  const auto free = run("tsdp-train", {"--config", "config.yaml", "--output", "free", "--quiet", "--threads", "1",
                                       "--set", "privacy.target_epsilon=0", "--set", "model.prior=seasonal_naive"});
  ASSERT_EQ(free.exit_code, 0) << free.err;
  std::filesystem::copy_file(path("free/model.pt"), path("flows.pt"),
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_TRUE(scores_with("flows.pt")["baselines"].contains("flows"));

  // So are weights trained on series that the program made.
  const auto made_up = run("tsdp-train", {"--config", "config.yaml", "--output", "made_up", "--quiet", "--threads", "1",
                                          "--set", "privacy.enabled=false", "--set", "dataset.format=synthetic",
                                          "--set", "dataset.path=hourly", "--set", "dataset.synthetic.series=3",
                                          "--set", "dataset.synthetic.length=120", "--set", "model.candidates=[]"});
  ASSERT_EQ(made_up.exit_code, 0) << made_up.err;
  std::filesystem::copy_file(path("made_up/model.pt"), path("flows.pt"),
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_TRUE(scores_with("flows.pt")["baselines"].contains("flows"));
}

TEST_F(Forecast, ACandidateModelThatDoesNotFitIsNamed) {
  make_model({"model.candidates=[seasonal_quantiles]"});
  std::filesystem::copy_file(path("run/model.pt"), path("flows.pt"));
  const auto refused = [&](const std::vector<std::string>& settings, int code, const std::vector<std::string>& parts) {
    std::vector<std::string> arguments = {"--config", "config.yaml", "--output", "second"};
    for (const auto& setting : settings) arguments.insert(arguments.end(), {"--set", setting});
    expect_failure(run("tsdp-train", arguments), "tsdp-train", code, parts);
    EXPECT_FALSE(std::filesystem::exists(path("second/private")));
  };
  const std::string with = "model.candidates=[seasonal_quantiles, flows.pt]";
  refused({with, "dataset.prediction_length=3"}, 2,
          {"flows.pt: found a model that forecasts 4 steps", "expected one of 3"});
  refused({with, "dataset.frequency=2h"}, 2, {"flows.pt: found a model of series of 1h", "expected one of 2h"});
  refused({"model.candidates=[flows.pt, a/flows.jsonl]"}, 2, {"model.candidates: found two files named flows;"});
  refused({"model.candidates=[none.pt]"}, 3, {"model.candidates: no file 'none.pt'"});
  write("bad.pt", "no model");
  refused({"model.candidates=[bad.pt]"}, 3, {"bad.pt"});
  write("oracle.jsonl", oracle(false));
  std::filesystem::remove_all(path("run"));
  make_model({"model.candidates=[seasonal_quantiles, oracle.jsonl]"});
  std::filesystem::copy_file(path("run/model.pt"), path("flows.pt"), std::filesystem::copy_options::overwrite_existing);
  refused({with}, 2,
          {"flows.pt: found a model that is mixed with forecasts of other programs", "expected one that needs none"});
}

}  // namespace
}  // namespace tsdp::cli_test
