// tsdp-data as a user runs it.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "command.h"

namespace tsdp::cli_test {
namespace {

using Json = nlohmann::json;

constexpr const char* program = "tsdp-data";

const std::string tsf_text =
    "@relation demo\n@attribute series_name string\n@attribute start_timestamp date\n@frequency hourly\n@data\n"
    "T1:2015-01-01 00-00-00:1,2,3,4,5,6,7,8,9,10\nT2:2015-01-02 00-00-00:5,5,?,?,?,5\nT3:2015-01-01 00-00-00:0.1,?,3\n";

class Data : public CommandTest {
 protected:
  Outcome data(const std::vector<std::string>& arguments) const { return run(program, arguments); }

  /// What a command that must succeed silently prints as JSON.
  Json json(std::vector<std::string> arguments) const {
    arguments.push_back("--json");
    const auto outcome = data(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return Json::parse(outcome.out);
  }

  void expect_refused(const std::vector<std::string>& arguments, int exit_code,
                      const std::vector<std::string>& parts) const {
    expect_failure(data(arguments), program, exit_code, parts);
  }

  std::string write_config(const std::string& more = {}) const {
    return write("config.yaml",
                 "dataset: {path: set.tsf, format: tsf, frequency: 1h, prediction_length: 2, season_length: 24, split: "
                 "last, test_windows: 2, validation_length: 2" +
                     more +
                     "}\n"
                     "model: {context_length: 4}\nsampling: {batch_size: 2}\nprivacy: {noise_multiplier: 4.0, delta: "
                     "1.0e-7, composition: symmetrised}\n");
  }
};

TEST_F(Data, HelpOfEveryCommand) {
  for (const char* command : {"describe", "convert", "split", "generate"}) {
    const auto outcome = data({command, "--help"});
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_NE(outcome.out.find("--"), std::string::npos);
    EXPECT_EQ(outcome.err, "");
  }
}

TEST_F(Data, DescribeNamesWhatStandsOut) {
  write("set.tsf", tsf_text);
  const auto outcome =
      data({"describe", "set.tsf", "--prediction-length", "2", "--context-length", "3", "--season-length", "2"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(
      outcome.out,
      "demo: 3 series, steps of 1h\n  time: 2015-01-01 00:00:00 to 2015-01-02 05:00:00\n  length: 3 to 10, median 6\n"
      "  values: 15, from 0.1 to 10; missing: 4 (21.0526 %)\n"
      "  seasonal naive, season of 2: too few known values in 1 of 3 series\n"
      "  too short: 1\n    series 'T3' (number 2): 3 values, at least 5 are needed\n"
      "  constant: 1\n    series 'T2' (number 1): all values are 5\n"
      "  less than a season known: 1\n    series 'T3' (number 2): 1 known values, at least 2 make a season\n");
}

TEST_F(Data, DescribeAsJson) {
  write("set.tsf", tsf_text);
  const auto out = json({"describe", "set.tsf"});
  EXPECT_EQ(out["series"], 3);
  EXPECT_EQ(out["frequency"], "1h");
  EXPECT_EQ(out["first"], "2015-01-01 00:00:00");
  EXPECT_EQ(out["season_length"], 24);  // of hours
  EXPECT_EQ(out["seasonal_naive"], false);
  EXPECT_EQ(out["range"]["min"], static_cast<double>(0.1F));
  EXPECT_EQ(out["constant"], Json::parse(R"([{"series": "T2", "index": 1, "value": 5.0}])"));
  EXPECT_TRUE(out["too_short"].empty());
}

TEST_F(Data, DescribeByAConfiguration) {
  write("set.tsf", tsf_text);
  write_config();
  auto out = json({"describe", "--config", "config.yaml"});
  EXPECT_EQ(out["least_length"], 8);  // two test windows of 2, 2 for validation, 2 to train on
  EXPECT_EQ(out["too_short"].size(), 2U);
  EXPECT_EQ(json({"describe", "--config", "config.yaml", "--set", "dataset.test_windows=3"})["least_length"], 10);
  write("other.tsf", tsf_text + "T4:2015-01-01 00-00-00:1\n");
  EXPECT_EQ(json({"describe", "other.tsf", "--config", "config.yaml"})["series"], 4);
}

TEST_F(Data, DescribeOfTheShippedConfigurations) {
  for (const char* name :
       {"exchange_rate", "gefcom2012_load", "m4_hourly", "metr_la_week_10min", "sf_traffic_one_sensor"}) {
    const auto out = json({"describe", "--config", std::string(name) + ".yaml"});
    EXPECT_EQ(out["name"], name);
    EXPECT_TRUE(out["too_short"].empty()) << name;
    EXPECT_EQ(out["seasonal_naive"], true) << name;
  }
}

TEST_F(Data, ConvertThroughAllFormsLosesNothing) {
  write("set.tsf", tsf_text);
  const std::vector<std::vector<std::string>> ways = {
      {"convert", "set.tsf", "a.jsonl.gz"},
      {"convert", "a.jsonl.gz", "b.csv", "--frequency", "1h"},
      {"convert", "b.csv", "c.csv", "--to", "csv_long", "--frequency", "1h"},
      {"convert", "c.csv", "d.json", "--frequency", "1h"},
      {"convert", "d.json", "demo.tsf", "--frequency", "1h"}};
  for (const auto& way : ways) EXPECT_EQ(json(way)["series"], 3);
  auto expected = tsf_text;
  expected.replace(expected.find("@data"), 0, "@missing true\n@equallength false\n");
  auto found = content_of(path("demo.tsf"));
  found.replace(found.find("@relation d\n"), 12, "@relation demo\n");  // named by its file
  EXPECT_EQ(found, expected);
  EXPECT_EQ(content_of(path("c.csv")).substr(0, 15), "unique_id,ds,y\n");
}

TEST_F(Data, ConvertToLstnetSaysWhatIsLost) {
  write("set.csv", "time,a,b\n2015-01-05,1,2\n2015-01-06,3,4.5\n");
  const auto outcome = data({"convert", "set.csv", "out.txt", "--frequency", "1B"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "out.txt: 2 series, steps of 1B\n");
  EXPECT_NE(outcome.err.find(
                "neither names nor times; series are its columns in order, from 2015-01-05 00:00:00 in steps of 1B"),
            std::string::npos)
      << outcome.err;
  EXPECT_EQ(content_of(path("out.txt")), "1,2\n3,4.5\n");
  EXPECT_EQ(json({"describe", "out.txt", "--frequency", "1B", "--start", "2015-01-05"})["last"], "2015-01-06 00:00:00");
}

// Names hold what separates columns elsewhere, and nothing follows data on stdout.
TEST_F(Data, ConvertedTablesAreReadAgain) {
  write("set.jsonl", "{\"item_id\": \"a;b;c\", \"start\": \"2024-01-01\", \"target\": [1, 2, 3, 5]}\n");
  for (const std::string form : {"csv", "csv_long"}) {
    const auto outcome = data({"convert", "set.jsonl", "/dev/stdout", "--to", form, "--frequency", "1D", "--quiet"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    write("again.csv", outcome.out);
    const auto read = json({"describe", "again.csv", "--format", form});
    EXPECT_EQ(read["series"], 1) << outcome.out;
    EXPECT_EQ(read["last"], "2024-01-04 00:00:00") << outcome.out;
    EXPECT_NE(outcome.out.find("\"a;b;c\""), std::string::npos) << outcome.out;
    const auto as_json =
        data({"convert", "set.jsonl", "/dev/stdout", "--to", form, "--frequency", "1D", "--quiet", "--json"});
    EXPECT_EQ(as_json.out, outcome.out);
  }
}

TEST_F(Data, ConvertDoesNotOverwriteWhatItReads) {
  const auto file = write("set.jsonl", "{\"item_id\": \"a\", \"start\": \"2015-01-01\", \"target\": [1, 2, 3]}\n");
  const auto before = content_of(file);
  std::filesystem::create_symlink(file, path("link.csv"));
  expect_failure(run("tsdp-data", {"convert", "set.jsonl", "link.csv", "--frequency", "1h"}), "tsdp-data", 2,
                 {"link.csv", "which is read, too"});
  EXPECT_EQ(content_of(file), before);
}

TEST_F(Data, ConvertRefusesAndKeepsWhatIsThere) {
  write("set.tsf", tsf_text);
  write("out.txt", "old");
  expect_refused({"convert", "set.tsf", "out.txt"}, 3, {"out.txt: series 'T2': found 6 values", "expected 10"});
  EXPECT_EQ(content_of(path("out.txt")), "old");
}

TEST_F(Data, SplitWritesTheParts) {
  write("set.tsf", tsf_text.substr(0, tsf_text.find("T2")));
  write_config();
  const auto out = json({"split", "--config", "config.yaml", "--output", "parts"});
  EXPECT_EQ(out, Json::parse(R"({"output": "parts", "series": 1, "validation_entries": 1, "test_entries": 2})"));
  const std::string head = "{\"item_id\": \"T1\", \"start\": \"2015-01-01 00:00:00\", \"target\": ";
  EXPECT_EQ(content_of(path("parts/train.jsonl")), head + "[1, 2, 3, 4]}\n");
  EXPECT_EQ(content_of(path("parts/validation.jsonl")), head + "[1, 2, 3, 4, 5, 6]}\n");
  EXPECT_EQ(content_of(path("parts/test.jsonl")),
            head + "[1, 2, 3, 4, 5, 6, 7, 8]}\n" + head + "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}\n");
  EXPECT_EQ(Json::parse(content_of(path("parts/metadata.json")))["prediction_length"], 2);
  EXPECT_EQ(json({"split", "--config", "config.yaml", "--output", "parts", "--set",
                  "dataset.test_windows=1"})["test_entries"],
            1);
  EXPECT_EQ(json({"describe", "parts/train.jsonl", "--frequency", "1h"})["series"], 1);
}

TEST_F(Data, GenerateIsSeeded) {
  for (const char* file : {"a.txt", "b.txt"})
    EXPECT_EQ(json({"generate", "traffic-like", "--series", "3", "--length", "50", "--seed", "4", "--output",
                    file})["length"],
              50);
  EXPECT_EQ(content_of(path("a.txt")), content_of(path("b.txt")));
  EXPECT_EQ(lines_of(content_of(path("a.txt"))).size(), 50U);
}

// --- mistakes

TEST_F(Data, GenerateMakesSeriesToPretrainOn) {
  for (const std::string kind : {"10_minutes", "hourly", "daily", "business_daily", "weekly", "monthly"}) {
    const auto answer = json({"generate", kind, "--series", "4", "--length", "60", "--output", "synthetic.txt"});
    EXPECT_EQ(answer["series"], 4);
    const auto text = content_of(path("synthetic.txt"));
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 60) << kind;
  }
  expect_refused({"generate", "yearly", "--output", "x.txt"}, 2, {"kind", "yearly", "monthly"});
}

TEST_F(Data, WrongUsage) {
  write("set.tsf", tsf_text);
  write("set.jsonl", "{\"start\": \"2015-01-01\", \"target\": [1]}\n");
  write_config();
  expect_refused({}, 2, {"--help"});
  expect_refused({"describe"}, 2, {"FILE and --config", "neither"});
  expect_refused({"describe", "set.feather"}, 2,
                 {"set.feather", "does not tell the form", ".jsonl", "--format", "csv_long"});
  expect_refused({"describe", "set.jsonl"}, 2, {"--frequency: not given", "set.jsonl (jsonl)", "10min"});
  expect_refused({"describe", "set.jsonl", "--frequency", "1fortnight"}, 2, {"--frequency: ", "'1fortnight'", "10min"});
  expect_refused({"describe", "set.tsf", "--format", "parquet"}, 2, {"--format: ", "'parquet'", "lstnet, tsf, csv"});
  expect_refused({"describe", "set.tsf", "--start", "soon"}, 2, {"--start: ", "'soon'", "YYYY-MM-DD"});
  expect_refused({"describe", "x.txt", "--frequency", "1h"}, 2, {"--start: not given", "x.txt (lstnet)"});
  expect_refused({"describe", "set.tsf", "--prediction-length", "0"}, 2, {"--prediction-length"});
  expect_refused({"describe", "--config", "config.yaml", "--format", "tsf"}, 2, {"--format", "--config"});
  expect_refused({"describe", "set.tsf", "--set", "dataset.test_windows=3"}, 2, {"--set", "--config"});
  expect_refused({"describe", "--config", "absent.yaml"}, 2, {"'absent.yaml'", "looked for"});
  expect_refused({"convert", "set.tsf"}, 2, {"OUTPUT"});
  expect_refused({"convert", "set.tsf", "out.bin"}, 2, {"out.bin", "does not tell the form", "--to"});
  expect_refused({"convert", "set.tsf", "out.bin", "--to", "xml"}, 2, {"--to: ", "'xml'"});
  expect_refused({"split", "--config", "config.yaml"}, 2, {"--output"});
  expect_refused({"split", "--config", "config.yaml", "--output", "x", "--set", "dataset.split=first"}, 2,
                 {"dataset.split", "'first'", "last"});
  EXPECT_FALSE(std::filesystem::exists(path("x")));
}

TEST_F(Data, UnfitData) {
  write("set.tsf", tsf_text);
  write_config();
  expect_refused({"describe", "absent.tsf"}, 3, {"absent.tsf: cannot be read"});
  expect_refused({"describe", "set.tsf", "--frequency", "1D"}, 3, {"set.tsf:4:2: ", "'hourly' (1h)", "1D"});
  expect_refused({"split", "--config", "config.yaml", "--output", "x"}, 3,
                 {"series 'T2' of demo: found 6 values", "at least 8"});
  EXPECT_FALSE(std::filesystem::exists(path("x")));
  write("bad.jsonl",
        "{\"start\": \"2015-01-01\", \"target\": [1]}\n{\"start\": \"2015-01-01\", \"target\": [1, true]}\n");
  expect_refused({"describe", "bad.jsonl", "--frequency", "1h"}, 3, {"bad.jsonl:2: found true as value 2"});
  write("bad.csv", "unique_id,ds,y\na,2015-01-01,1\na,2015-01-01 00:30,1\n");
  expect_refused({"convert", "bad.csv", "out.jsonl", "--frequency", "1h"}, 3,
                 {"bad.csv:3:2: ", "2015-01-01 00:30:00", "1h"});
  EXPECT_FALSE(std::filesystem::exists(path("out.jsonl")));
}

// --- streams, and names that hold anything

TEST_F(Data, WhatCannotBeWrittenToStdoutIsAFailure) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full to write to";
  write("set.tsf", tsf_text);
  for (const std::string arguments : {"--help", "--version", "describe --help", "describe set.tsf",
                                      "describe set.tsf --json", "convert set.tsf out.jsonl"}) {
    const auto outcome = run("/bin/sh", {"-c", program_path(program).string() + " " + arguments + " >/dev/full"});
    expect_failure(outcome, program, 1, {"cannot be written to stdout"});
  }
}

// The first file to be opened would take the number of a stream that is closed, and with it all that is printed.
TEST_F(Data, ClosedStreamsNeverEndInAFile) {
  write("one.tsf", tsf_text.substr(0, tsf_text.find("T2")));
  for (const std::string closed : {"<&-", ">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"}) {
    std::filesystem::remove(path("out.txt"));
    const auto outcome = run("/bin/sh", {"-c", program_path(program).string() + " convert one.tsf out.txt " + closed});
    // What it prints is a result, which a closed stdout does not take.
    const bool no_stdout = (" " + closed).find(" >&-") != std::string::npos;
    EXPECT_EQ(outcome.exit_code, no_stdout ? 1 : 0) << closed;
    EXPECT_EQ(content_of(path("out.txt")), "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n") << closed;
  }
}

// A program that waits for the reader of its output shows which descriptors it has.
TEST_F(Data, ClosedStreamsAreOpenedOnNothing) {
  ASSERT_EQ(::mkfifo(path("fifo.txt").c_str(), 0600), 0);
  const auto outcome =
      run("/bin/sh", {"-c", program_path(program).string() +
                                " generate traffic-like --series 1 --length 2 --output fifo.txt <&- >&- 2>&- &\n"
                                "for i in $(seq 100); do\n"
                                "  streams=$(readlink /proc/$!/fd/0 /proc/$!/fd/1 /proc/$!/fd/2 | tr '\\n' ' ')\n"
                                "  [ \"$streams\" = '/dev/null /dev/null /dev/null ' ] && break\n"
                                "  sleep 0.05\n"
                                "done\n"
                                "echo $streams\n"
                                "timeout 10 cat fifo.txt >/dev/null\n"
                                "wait"});
  EXPECT_EQ(outcome.out, "/dev/null /dev/null /dev/null\n") << outcome.err;
}

TEST_F(Data, ControlCharactersOfNamesAreShownNotObeyed) {
  const std::string escape = "\x1b]0;owned\x07\x1b[2J";
  const std::string shown = "\\x1b]0;owned\\x07\\x1b[2J";
  expect_refused({"describe", "absent" + escape + ".tsf"}, 3, {"absent" + shown + ".tsf: cannot be read"});
  expect_refused({"describe" + escape}, 2, {"'describe" + shown + "'"});
  write("config.yaml", "dataset: {\"\\e[2Jred\": 1}\n");
  expect_refused({"describe", "--config", "config.yaml"}, 2, {"unknown key 'dataset.\\x1b[2Jred'"});
  write("long.csv", "unique_id,ds,y,\"" + escape + "\"\na\x1b,2015-01-01,1,1\n");
  write("set.tsf", tsf_text);
  for (const auto& arguments :
       std::vector<std::vector<std::string>>{{"convert", "set.tsf", "out" + escape + ".jsonl"},
                                             {"convert", "set.tsf", "out" + escape + ".txt", "--to", "jsonl"},
                                             {"describe", "long.csv", "--frequency", "1h"}}) {
    const auto outcome = data(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    for (const char c : outcome.out + outcome.err)
      EXPECT_TRUE(c == '\n' || (c >= ' ' && c <= '~')) << outcome.out << outcome.err;
  }
}

TEST_F(Data, NamesThatAreNoUtf8HaveJsonToo) {
  write("set.tsf", tsf_text);
  const auto outcome = json({"convert", "set.tsf", "out\xff.jsonl"});
  EXPECT_EQ(outcome["output"], "out\xEF\xBF\xBD.jsonl");
  EXPECT_TRUE(std::filesystem::exists(path("out\xff.jsonl")));
  EXPECT_EQ(json({"generate", "traffic-like", "--series", "1", "--length", "2", "--output", "\xff"})["series"], 1);
}

TEST_F(Data, WhatIsNoFileIsRefusedAtOnce) {
  ASSERT_EQ(::mkfifo(path("fifo.jsonl").c_str(), 0600), 0);
  expect_refused({"describe", "fifo.jsonl", "--frequency", "1h"}, 3, {"fifo.jsonl: cannot be read (Is a FIFO)"});
  expect_refused({"describe", "--config", "fifo.jsonl"}, 2, {"'fifo.jsonl'", "fifo.jsonl (Is a FIFO)"});
  expect_refused({"describe", "/dev/zero", "--format", "jsonl", "--frequency", "1h"}, 3, {"/dev/zero", "Is a device"});
}

TEST_F(Data, AFolderThatCannotBeWritten) {
  write("set.tsf", tsf_text);
  expect_refused({"convert", "set.tsf", "absent/out.jsonl"}, 1,
                 {"absent/out.jsonl.part: cannot write", "No such file"});
}

template <typename... Numbers>
std::string line(const char* format, Numbers... numbers) {
  std::array<char, 80> buffer{};
  (void)std::snprintf(buffer.data(), buffer.size(), format, numbers...);
  return buffer.data();
}

TEST_F(Data, DescribeProposesAConfigurationThatPlans) {
  std::string text = ";when;meter;kWh\r\n";
  for (int series = 0; series < 5; ++series)
    for (int day = 0; day < (series == 4 ? 20 : 200); ++day)
      text += line("%d;2021-%02d-%02d;m%d;%d,5\r\n", day, day / 28 + 1, day % 28 + 1, series, (day + series) % 7);
  write("meters.csv", text);
  const std::vector<std::string> stated{"--columns", "item=meter,time=when,value=kWh", "--frequency", "1D"};
  std::vector<std::string> arguments{"describe", "meters.csv", "--write", "meters.yaml"};
  arguments.insert(arguments.end(), stated.begin(), stated.end());
  const auto outcome = data(arguments);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto proposed = content_of(path("meters.yaml"));
  for (const char* part :
       {"5 series of 20 to ", "path: \"meters.csv\"", "format: csv_long", "frequency: 1D",
        "columns: {item: \"meter\", time: \"when\", value: \"kWh\"}", "short_series: drop  # 1 are shorter than",
        "prediction_length: 14", "season_length: 7", "# covariates: {file: FILE}", "name: dlinear"})
    EXPECT_NE(proposed.find(part), std::string::npos) << part << " in\n" << proposed;
  const auto parts = data({"split", "--config", "meters.yaml", "--output", "parts"});
  EXPECT_EQ(parts.exit_code, 0) << parts.err;
  EXPECT_NE(parts.out.find("4 training series"), std::string::npos) << parts.out;
  const auto padded =
      data({"split", "--config", "meters.yaml", "--output", "padded", "--set", "dataset.short_series=pad"});
  EXPECT_EQ(padded.exit_code, 0) << padded.err;
  EXPECT_NE(padded.out.find("5 training series"), std::string::npos) << padded.out;
  expect_refused({"split", "--config", "meters.yaml", "--output", "x", "--set", "dataset.short_series=error"}, 3,
                 {"series 'm4'", "dataset.short_series: drop or pad"});
  // What is there is not written over; what no split fits is refused.
  expect_refused(arguments, 2, {"--write: found 'meters.yaml', which is there already"});
  arguments[3] = "other.yaml";
  arguments.insert(arguments.end(), {"--prediction-length", "150"});
  expect_refused(arguments, 3, {"meters.csv: found series of 20 to ", "a shorter --prediction-length"});
  EXPECT_FALSE(std::filesystem::exists(path("other.yaml")));
}

// What is proposed depends on no value.
TEST_F(Data, AProposalReadsNoValue) {
  std::string one = "t,A\n";
  std::string other = one;
  for (int year = 1900; year < 1980; ++year) {
    one += line("%d,%d\n", year, year % 3);
    other += line("%d,%d\n", year, 1000 * (year % 5) - 7);
  }
  for (const auto& [name, text] : {std::pair<std::string, std::string>{"one", one}, {"other", other}}) {
    std::filesystem::create_directory(path(name));
    write(name + "/set.csv", text);
    EXPECT_EQ(data({"describe", name + "/set.csv", "--write", name + "/set.yaml"}).exit_code, 0);
  }
  EXPECT_EQ(content_of(path("one/set.yaml")), content_of(path("other/set.yaml")));
}

TEST_F(Data, TablesAreReadAsTheirOptionsSay) {
  write("set.csv", "t,A\n2020-01-01,1\n2020-01-02,2\n2020-01-02,4\n2020-01-04,5\n");
  EXPECT_EQ(json({"describe", "set.csv", "--duplicates", "mean", "--gaps", "missing"})["range"]["max"], 5);
  expect_refused({"describe", "set.csv"}, 3,
                 {"set.csv:4:1: found the time 2020-01-02 00:00:00", "duplicates: last or mean"});
  expect_refused({"describe", "set.csv", "--duplicates", "first"}, 2,
                 {"--duplicates: found 'first'", "error, last, mean"});
  expect_refused({"describe", "set.csv", "--columns", "A=1"}, 2, {"--columns: found 'A=1'", "item=NAME"});
  expect_refused({"describe", "set.csv", "--format", "csv", "--columns", "item=A"}, 2,
                 {"--columns: given for set.csv (csv)", "with csv, time alone"});
  write("set.tsf", tsf_text);
  expect_refused({"describe", "set.tsf", "--gaps", "missing"}, 2,
                 {"--gaps: given for set.tsf (tsf)", "csv_long and csv"});
}

}  // namespace
}  // namespace tsdp::cli_test
