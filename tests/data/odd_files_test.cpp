// Files that are not what they seem: each is read as what it is, or refused with what is wrong.
#include <tuple>

#include "data/calendar_features.h"
#include "data/describe.h"
#include "data/oddities.h"
#include "data/writers.h"
#include "readers_fixture.h"
#include "tsdp/base/file.h"
#include "tsdp/base/text.h"
#include "tsdp/data/feature_store.h"
#include "tsdp/data/input_form.h"
#include "tsdp/data/windows.h"

namespace tsdp::data {
namespace {

class OddFiles : public Readers {
 protected:
  /// What a file is read as when nothing is stated but its name and `stated`: "1D: id start values | …", or the error.
  std::string read(const std::string& content, const StatedForm& stated = {}, const std::string& name = "f.csv",
                   const std::optional<Frequency>& usual = std::nullopt) const {
    const auto path = put(content, name);
    testing::internal::CaptureStderr();
    std::string found;
    try {
      const auto options = read_options_of(path, stated, {}, usual);
      const auto dataset = read_dataset(path, options);
      found = dataset.frequency.text() + ":";
      for (const auto& series : dataset.series) {
        auto start = moment_text(series.start);
        if (start.ends_with(" 00:00:00")) start.resize(10);
        found += cat(&series == &dataset.series.front() ? " " : " | ", series.id, " ", start);
        for (const float value : series.values) found += std::isnan(value) ? std::string(" ?") : cat(" ", value);
      }
    } catch (const Error& error) { found = error.what(); }
    warnings_ = testing::internal::GetCapturedStderr();
    return found;
  }
  static void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
    for (const auto& part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
  }
  static StatedForm frequency(const std::string& text) {
    StatedForm out;
    out.frequency = text;
    return out;
  }
  static std::string day(int i, const char* month = "2023-01") { return cat(month, i < 10 ? "-0" : "-", i); }

  mutable std::string warnings_;
};

TEST_F(OddFiles, TheDecimalMarkIsThatOfTheWholeFile) {
  // Thousands with a point beside decimals with a comma, in either order, and the other way round.
  expect_parts(
      read("t;A;B\n01.01.2020;1.234;10,5\n02.01.2020;999,5;11,25\n03.01.2020;1.050;12\n"),
      {":2:3: found '10,5' with a comma, below '1.234' with a point in line 2, column 2", "the same decimal mark"});
  expect_parts(read("t;A\n2020-01-01;999,5\n2020-01-02;1.234\n2020-01-03;1\n"),
               {":3:2: found '1.234' with a point, below '999,5' with a comma in line 2"});
  expect_parts(read("t\tA\n2020-01-01\t999.5\n2020-01-02\t1,234\n2020-01-03\t1\n"),
               {":3:2: found '1,234' with a comma, below '999.5' with a point"});
  expect_parts(read("unique_id;ds;y\nA;2020-01-01;1.234\nA;2020-01-02;999,5\nA;2020-01-03;1\n"),
               {":3:3: found '999,5' with a comma"});
  expect_parts(read("t;A\n2020-01-01;1.234,5\n2020-01-02;2\n2020-01-03;1\n"), {":2:2: found '1.234,5'"});
  // Nothing tells.
  for (const char* const mark : {",", "."})
    expect_parts(read(cat("t;A\n2020-01-01;999\n2020-01-02;1", mark, "234\n2020-01-03;-12", mark, "345\n")),
                 {cat(":3:2: found '1", mark, "234'"), "of thousands"});
  // Something does: another number of digits, a number that would have a separator, all numbers with decimals.
  EXPECT_EQ(read("t;A\n2020-01-01;1,125\n2020-01-02;1,5\n2020-01-03;3\n"), "1D: A 2020-01-01 1.125 1.5 3");
  EXPECT_EQ(read("t;A\n2020-01-01;1.125\n2020-01-02;2000\n2020-01-03;3\n"), "1D: A 2020-01-01 1.125 2000 3");
  EXPECT_EQ(read("t;A\n2020-01-01;1.125\n2020-01-02;1.500\n2020-01-03;2.000\n"), "1D: A 2020-01-01 1.125 1.5 2");
  EXPECT_EQ(read("t;A\n2020-01-01;0.125\n2020-01-02;1\n2020-01-03;2\n"), "1D: A 2020-01-01 0.125 1 2");
  EXPECT_EQ(read("t,A\n2020-01-01,1.125\n2020-01-02,2\n2020-01-03,3\n"),
            "1D: A 2020-01-01 1.125 2 3");  // commas separate
}

TEST_F(OddFiles, TheStepIsThatOfAllSeries) {
  std::string text = "unique_id,ds,y\n";
  for (int i = 2; i <= 23; i += 7) text += cat("A,", day(i), ",1\n");
  for (int i = 1; i <= 28; ++i) text += cat("B,", day(i), ",2\n");
  EXPECT_TRUE(read(text).starts_with("1D: A 2023-01-02 1 ? ? ? ? ? ? 1")) << read(text);
  // Business days beside days; months of the 1st beside those of the 15th; weeks of other days.
  text = "unique_id,ds,y\n";
  for (const int i : {2, 3, 4, 5, 6, 9, 10}) text += cat("A,", day(i), ",1\n");
  const auto business = text;
  for (int i = 1; i <= 10; ++i) text += cat("B,", day(i), ",1\n");
  EXPECT_TRUE(read(business).starts_with("1B:"));
  EXPECT_TRUE(read(text).starts_with("1D:")) << read(text);
  EXPECT_EQ(read("unique_id,ds,y\nA,2023-01-01,1\nA,2023-02-01,2\nA,2023-03-01,3\nB,2023-01-15,4\nB,2023-02-15,5\n"),
            "1M: A 2023-01-01 1 2 3 | B 2023-01-15 4 5");
  EXPECT_EQ(read("unique_id,ds,y\nA,2023-01-01,1\nA,2023-01-08,2\nA,2023-01-15,3\nB,2023-01-03,4\nB,2023-01-10,5\n"),
            "1W: A 2023-01-01 1 2 3 | B 2023-01-03 4 5");
  // Where the file's own step does not hold for a row that was not looked at, what states another is named.
  ReadOptions inferred = options(Format::csv_long, "1D");
  inferred.inferred = true;
  expect_parts(error("unique_id,ds,y\nA,2023-01-01,1\nA,2023-01-01 12:00,2\n", inferred),
               {"whole steps of 1D", "the step was inferred from the times; --frequency states another"});
}

TEST_F(OddFiles, AStepFinerThanTheTimesIsRefused) {
  std::string days = "unique_id,ds,y\n", months = days, hours = days, pairs = days;
  for (int i = 1; i <= 28; ++i) days += cat("A,", day(i), ",1\n");
  for (int i = 1; i <= 9; ++i) months += cat("A,2023-0", i, "-01,1\n");
  for (int i = 0; i < 24; ++i)
    if (i % 5 != 3) hours += cat("A,2023-01-01 ", i < 10 ? "0" : "", i, ":00,1\n");
  for (int i = 0; i < 24; i += 2) pairs += cat("A,2023-01-01 ", i < 10 ? "0" : "", i, ":00,1\n");
  expect_parts(read(days, frequency("1h")),
               {"all lie on steps of 1D, for a frequency of 1h", "--frequency 1D", "--gaps: missing"});
  expect_parts(read(days, {}, "f.csv", Frequency::parse("1h")), {"all lie on steps of 1D"});  // that of a model
  expect_parts(read(months, frequency("1D")), {"all lie on steps of 1M, for a frequency of 1D"});
  expect_parts(read(pairs, frequency("1h")), {"all lie on steps of 2h"});
  EXPECT_TRUE(read(hours, frequency("1h")).starts_with("1h: A 2023-01-01 1 1 1 ? 1"));
  // A few rows say little, business days are days, and who says so wants it.
  EXPECT_EQ(read("unique_id,ds,y\nA,2023-01-01,1\nA,2023-01-03,2\nA,2023-01-05,3\n", frequency("1D")),
            "1D: A 2023-01-01 1 ? 2 ? 3");
  EXPECT_TRUE(read("unique_id,ds,y\nA,2023-01-02,1\nA,2023-01-03,1\nA,2023-01-04,1\nA,2023-01-05,1\nA,2023-01-06,1\nA,"
                   "2023-01-09,1\n",
                   frequency("1D"))
                  .starts_with("1D:"));
  auto wanted = frequency("1h");
  wanted.gaps = "missing";
  EXPECT_TRUE(read(days, wanted).starts_with("1h:"));
  expect_parts(warnings_, {"warning: ", "all lie on steps of 1D, for a frequency of 1h"});
}

// A series of the 28th or the 30th stays there, wherever it begins, is cut, padded, written or forecast.
TEST_F(OddFiles, DaysOfTheMonthBelongToASeries) {
  const auto times = [](const Series& series, const Frequency& frequency, std::int64_t from, std::int64_t to) {
    std::string out;
    for (auto k = from; k < to; ++k) out += moment_text(series.at(frequency, k)).substr(5, 6);
    return out;
  };
  for (const auto& [rows, expected] : std::vector<std::pair<std::vector<const char*>, std::string>>{
           {{"2010-02-28", "2010-03-28", "2010-04-28"}, "01-28 02-28 03-28 04-28 05-28 "},
           {{"2010-02-28", "2010-03-30", "2010-04-30"}, "01-30 02-28 03-30 04-30 05-30 "},
           {{"2010-02-28", "2010-03-31", "2010-04-30"}, "01-31 02-28 03-31 04-30 05-31 "},
           {{"2012-02-29", "2012-03-29", "2012-04-29"}, "01-29 02-29 03-29 04-29 05-29 "}}) {
    SCOPED_TRACE(expected);
    std::string wide = "time,A,B\n", tall = "unique_id,ds,y\n";
    int value = 0;
    for (const char* row : rows) {
      ++value;
      wide += cat(row, ",", value, ",", value > 1 ? "1" : "", "\n");
      tall += cat("A,", row, ",", value, "\n");
    }
    const auto frequency = Frequency::parse("1M");
    for (const auto& dataset : {csv(wide, "1M"), csv_long(tall, "1M")})
      EXPECT_EQ(times(dataset.series[0], frequency, -1, 4), expected);
    EXPECT_EQ(times(csv(wide, "1M").series[1], frequency, -2, 3), expected);  // begins a month later
    auto padded = csv_long(tall, "1M").series[0];
    pad_front(padded, frequency, 5);
    EXPECT_EQ(padded.values.size(), 5U);
    EXPECT_EQ(times(padded, frequency, 1, 6), expected);
    // Every form that is written is read as the same.
    const auto dataset = csv_long(tall, "1M");
    for (const auto& [format, ending] : {std::pair{Format::csv, ".csv"},
                                         {Format::csv_long, ".csv"},
                                         {Format::jsonl, ".jsonl"},
                                         {Format::tsf, ".tsf"}}) {
      const auto path = folder_ / cat("again", ending);
      write_dataset(dataset, path, format);
      const auto again = read_dataset(path, options(format, "1M"));
      EXPECT_EQ(times(again.series[0], frequency, -1, 4), expected) << name(format);
      expect_values(again.series[0].values, {1, 2, 3});
    }
  }
  // Steps of months are inferred of such days, too, and quarters and years of them.
  EXPECT_EQ(read("unique_id,ds,y\nA,2010-02-28,1\nA,2010-03-30,2\nA,2010-04-30,3\n"), "1M: A 2010-02-28 1 2 3");
  EXPECT_EQ(read("time,A\n2010-01-30,1\n2010-02-28,2\n2010-03-30,3\n"), "1M: A 2010-01-30 1 2 3");
  EXPECT_EQ(common_month_day(std::vector<Moment>{at("2010-01-30"), at("2010-03-31")}), 0);
  EXPECT_EQ(common_month_day(std::vector<Moment>{at("2010-02-28"), at("2010-04-30")}), 31);
}

TEST_F(OddFiles, OneStepHasOneFormAndOneSeason) {
  for (const auto& [text, normal, season] :
       std::vector<std::tuple<const char*, const char*, int>>{{"60min", "1h", 24},
                                                              {"3600s", "1h", 24},
                                                              {"60s", "1min", 1440},
                                                              {"90min", "90min", 16},
                                                              {"24h", "1D", 7},
                                                              {"1440min", "1D", 7},
                                                              {"7D", "1W", 52},
                                                              {"168h", "1W", 52},
                                                              {"14D", "2W", 26},
                                                              {"3M", "1Q", 4},
                                                              {"12M", "1Y", 1},
                                                              {"4Q", "1Y", 1},
                                                              {"6M", "2Q", 2},
                                                              {"5B", "5B", 1},
                                                              {"B", "1B", 5},
                                                              {"MS", "1M", 12}}) {
    EXPECT_EQ(Frequency::parse(text).text(), normal);
    EXPECT_EQ(Frequency::parse(text), Frequency::parse(normal));
    EXPECT_EQ(usual_season_length(Frequency::parse(text)), season) << text;
  }
  EXPECT_EQ(tsf("@attribute series_name string\n@attribute start_timestamp date\n@frequency "
                "60_minutes\n@data\nA:2020-01-01 00-00-00:1,2\n",
                "1h")
                .frequency.text(),
            "1h");
}

TEST_F(OddFiles, WhatSinglePrecisionCannotTellApartIsNamed) {
  std::string text = "unique_id,ds,y\n";
  for (int i = 0; i < 20; ++i)
    text += cat("counter,", day(i + 1), ",", 1700000000 + 7 * i % 60, "\nslow,", day(i + 1), ",", 5, "\nnoise,",
                day(i + 1), i % 2 == 0 ? ",0.3\n" : ",0.30000000000000004\n");
  (void)read(text);
  expect_parts(warnings_,
               {"warning: ", "1 series, the first of them 'counter'", "single precision", "19 of 19 changes"});
  const auto dataset = csv_long(text, "1D");
  const auto description = describe(dataset, {});
  ASSERT_EQ(description.constant.size(), 2U);  // not the counter; what arithmetic leaves behind is no change
  EXPECT_EQ(description.constant[0].series, 1);
  EXPECT_EQ(description.odd.not_told_apart, std::vector<std::int64_t>{0});
  expect_parts(
      description_text(dataset, description),
      {"not told apart in single precision, which has 7 digits: 1\n    series 'counter' (number 0): 19 of 19 changes"});
  // Neither trained on nor scored as if it did not move.
  try {
    require_distinct(dataset, Copies::told);
    FAIL();
  } catch (const DataError& error) {
    expect_parts(error.what(), {"series 'counter'", "19 of 19 changes", "subtract a constant"});
  }
  for (const char* form : {"{\"start\": \"2020-01-01\", \"target\": [1700000000, 1700000001, 1700000002]}\n"})
    EXPECT_EQ(jsonl(form, "1D").series[0].lost, 2);
  EXPECT_EQ(csv("t,A\n2020-01-01,1700000000\n2020-01-02,\n2020-01-03,1700000001\n", "1D").series[0].lost, 1);
}

TEST_F(OddFiles, ValuesThatTrainingCannotHoldAreRefused) {
  for (const char* value : {"-3.4028234663852886e+38", "1e20", "9.96921e36"}) {
    const auto dataset = csv(cat("t,A\n2020-01-01,1\n2020-01-02,", value, "\n"), "1D");
    EXPECT_EQ(describe(dataset, {}).odd.excessive, std::vector<std::int64_t>{0});
    try {
      require_distinct(dataset, Copies::refused_if_half);
      FAIL() << value;
    } catch (const DataError& error) {
      expect_parts(error.what(),
                   {"series 'A'", "2020-01-02 00:00:00", "expected magnitudes below 1e+18", "empty field"});
    }
  }
  EXPECT_NO_THROW(require_distinct(csv("t,A\n2020-01-01,1\n2020-01-02,-9.9e17\n", "1D"), Copies::refused_if_half));
}

TEST_F(OddFiles, RowsOfATableStandInAnyOrder) {
  EXPECT_EQ(read("t,A,B\n2020-01-03,3,\n2020-01-02,2,5\n2020-01-01,1,4\n"),
            "1D: A 2020-01-01 1 2 3 | B 2020-01-01 4 5");
  // The hour of autumn twice, at steps below an hour.
  const std::string autumn =
      "t,A\n2020-10-25 01:30,1\n2020-10-25 02:00,2\n2020-10-25 02:30,3\n2020-10-25 02:00,4\n2020-10-25 "
      "02:30,5\n2020-10-25 03:00,6\n";
  expect_parts(read(autumn),
               {":5:1: found the time 2020-10-25 02:00:00", "the time of line 3, too; --duplicates: last or mean"});
  StatedForm stated;
  stated.duplicates = "last";
  EXPECT_EQ(read(autumn, stated), "30min: A 2020-10-25 01:30:00 1 4 5 6");
  stated.duplicates = "mean";
  EXPECT_EQ(read(autumn, stated), "30min: A 2020-10-25 01:30:00 1 3 4 6");
}

TEST_F(OddFiles, FormsAreReadOrNamed) {
  EXPECT_EQ(read("t,A\r2020-01-01,1\r2020-01-02,2\r2020-01-03,3"), "1D: A 2020-01-01 1 2 3");
  EXPECT_EQ(read("unique_id,ds,y\rA,2020-01-01,1\rA,2020-01-02,2\rA,2020-01-03,3\r"), "1D: A 2020-01-01 1 2 3");
  EXPECT_EQ(read("t,A\r2020-01-01,1\r2020-01-02,2\r2020-01-03,3\n"), "1D: A 2020-01-01 1 2 3");
  EXPECT_EQ(read("t,A\r\r\n2020-01-01,1\r\r\n2020-01-02,2\r\r\n2020-01-03,3\r\r\n"), "1D: A 2020-01-01 1 2 3");
  EXPECT_EQ(read("t,A\r\n2020-01-01,1\r\n2020-01-02,2\r\n2020-01-03,3\r\n"), "1D: A 2020-01-01 1 2 3");
  EXPECT_EQ(read("\n \nt,A\n2020-01-01,1\n2020-01-02,2\n2020-01-03,3\n"), "1D: A 2020-01-01 1 2 3");
  for (const char* top :
       {"Page,2015-07-01,2015-07-02,2015-07-03\npage one,1,2,3\n", "item_id,d_1,d_2,d_3\nitem one,1,2,3\n",
        "Country,State,1/22/20,1/23/20\nA,B,1,2\n", "\"V1\",\"V2\",\"V3\"\n\"H1\",605,586\n"})
    expect_parts(read(top), {":2:1: found '", "lies on its side"});
  for (const char* top : {"Station 42\ntime,A\n2020-01-01,1\n", "# made by, hand\ntime,A\n2020-01-01,1\n",
                          "Loads;;\nDatum;A;B\n01.01.2020;1;2\n", "Loads\nof 2020\ntime,A\n2020-01-01,1\n",
                          "time,A\n,MW\n2020-01-01,1\n"})
    expect_parts(read(top), {":2:", "lines above the header, or between it and the rows, are not read"});
  expect_parts(read("Loads of 2020,\n\nDatum,A\n2020-01-01,1\n"),
               {":2:1: found an empty line", "lines above the header, or between it and the rows, are not read"});
  // A row a value, with names of one's own.
  expect_parts(read("meter,when,kWh\nM1,2020-01-01,1\nM1,2020-01-02,2\n"),
               {":2:1: found 'M1'", "times stand in the column 'when'", "--columns time=NAME"});
  expect_parts(read("when,meter,kWh\n2020-01-01,M1,1\n2020-01-02,M1,2\n2020-01-03,M1,2\n"),
               {":2:2: found 'M1'", "--columns item=NAME and --columns value=NAME"});
  expect_parts(read("when,meter,kWh\n2020-01-01,1,1\n2020-01-01,2,2\n2020-01-02,1,3\n2020-01-02,2,1\n2020-01-03,1,1\n"),
               {"--duplicates", "--columns item=NAME and --columns value=NAME"});
  FormNames names;
  names.columns = "c.yaml: dataset.columns";
  EXPECT_EQ(names.column("time"), "c.yaml: dataset.columns.time");
  // Endings in capitals.
  EXPECT_EQ(read("t,A\n2020-01-01,1\n2020-01-02,2\n2020-01-03,3\n", {}, "F.CSV"), "1D: A 2020-01-01 1 2 3");
  EXPECT_EQ(read(packed("t,A\n2020-01-01,1\n2020-01-02,2\n2020-01-03,3\n"), {}, "F.Csv.GZ"), "1D: A 2020-01-01 1 2 3");
  EXPECT_EQ(format_by_ending("SET.TSF"), Format::tsf);
  EXPECT_EQ(format_by_ending("set.JSONL.gz"), Format::jsonl);
}

TEST_F(OddFiles, NamesAreShownAsTheyAreWritten) {
  expect_parts(read("unique_id,ds,y\nZählerstand,2020-01-01,1\nZählerstand,2020-01-01,2\n", frequency("1D")),
               {"series 'Zählerstand'"});
  expect_parts(read("time,Zürich,北京\n2020-01-01,1,\n2020-01-02,2,\n2020-01-03,3,\n"), {"series '北京'"});
  expect_parts(read("time,Z\xE4hler,Z\xE4hler\n2020-01-01,1,2\n", frequency("1D")),
               {"column 'Zähler' again"});  // Latin-1
  StatedForm stated = frequency("1D");
  stated.columns = {"Zähler", "time", {"y"}};
  EXPECT_EQ(read("Z\xE4hler,time,y\nA,2020-01-01,1\n", stated), "1D: A 2020-01-01 1");
  // Long ones are cut between characters, and what is not to be seen stays hidden.
  expect_parts(read(cat("t,A\n2020-01-01,", std::string(39, 'x'), "北京\n"), frequency("1D")),
               {cat("'", std::string(39, 'x'), "北...'")});
  expect_parts(read("t,A\n2020-01-01,\x1b[2J\n", frequency("1D")), {"'\\x1b[2J'"});
}

TEST_F(OddFiles, ASeriesThatEntersTwiceIsNamed) {
  // A test split as GluonTS stores it.
  std::string rolling, values = "[1, 2, 3, 4, 5, 6, 7, 8, 9";
  for (int window = 0; window < 3; ++window)
    rolling += "{\"item_id\": \"A\", \"start\": \"2020-01-01\", \"target\": " + (values += ", 1, 2") + "]}\n";
  const auto split = jsonl(rolling, "1D");
  EXPECT_EQ(oddities_of(split).same_name.size(), 2U);
  try {
    require_distinct(split, Copies::refused_if_half);
    FAIL();
  } catch (const DataError& error) {
    expect_parts(error.what(), {"found the name 'A' 3 times", "GluonTS stores the rolling windows of a test split",
                                "the longest of each name", "the train file"});
  }
  testing::internal::CaptureStderr();
  EXPECT_NO_THROW(require_distinct(split, Copies::told));
  expect_parts(testing::internal::GetCapturedStderr(), {"have one name", "have the same values"});
  // The same without names, and under names of their own; without privacy it is only told.
  for (const auto* name : {"", "\"item_id\": \"A1\", "}) {
    std::string unnamed;
    values = "[1, 2, 3, 4, 5, 6, 7, 8, 9";
    for (int window = 0; window < 3; ++window) {
      std::string own = name;
      if (!own.empty()) own[own.find('1')] = static_cast<char>('1' + window);
      unnamed += cat("{", own, "\"start\": \"2020-01-01\", \"target\": ", values += ", 1, 2", "]}\n");
    }
    const auto beginnings = jsonl(unnamed, "1D");
    try {
      require_distinct(beginnings, Copies::refused_if_half);
      ADD_FAILURE() << unnamed;
    } catch (const DataError& error) {
      expect_parts(error.what(), {"some the beginning of others", "GluonTS stores the rolling windows of a test split",
                                  "the longest of each", "the train file"});
    }
    EXPECT_NO_THROW(require_distinct(beginnings, Copies::told));
  }
  // Under other names, or with names that differ by case alone.
  const auto columns =
      csv("t,A,a,B,C\n2020-01-01,1,9,1,1\n2020-01-02,2,9,2,2\n2020-01-03,3,9,3,3\n2020-01-04,4,9,4,4\n2020-01-05,5,9,5,"
          "5\n2020-01-06,6,9,6,6\n2020-01-07,7,9,7,7\n2020-01-08,8,9,8,0\n",
          "1D");
  const auto found = oddities_of(columns);
  ASSERT_EQ(found.alike_name.size(), 1U);
  EXPECT_EQ(found.alike_name[0].series, 1);
  ASSERT_EQ(found.same_values.size(), 1U);
  EXPECT_EQ(found.same_values[0].series, 2);
  EXPECT_EQ(found.same_values[0].earlier, 0);
  expect_parts(description_text(columns, describe(columns, {})),
               {"differ by case or outer spaces alone: 1\n    series 'a' (number 1), as 'A' (number 0)",
                "the same values, or their beginning, again: 1\n    series 'B' (number 2), as 'A'"});
  testing::internal::CaptureStderr();
  EXPECT_NO_THROW(require_distinct(columns, Copies::refused_if_half));
  expect_parts(testing::internal::GetCapturedStderr(),
               {"differ by case or outer spaces alone", "have the same values from the same time on",
                "each of its values is in several"});
}

// Half of what can be told from others is half of the file, however many series of one value lie beside it; and short
// series are copies, too.
TEST_F(OddFiles, CopiesThatAreHalfOfTheSeriesAreRefused) {
  std::string doubled;
  for (const auto* values : {"1, 2, 3, 4, 5, 6, 7", "4, 3, 2, 1, 6"})
    for (const auto* name : {"a", "b"})
      doubled += cat("{\"item_id\": \"", name, values, "\", \"start\": \"2020-01-01\", \"target\": [", values, "]}\n");
  const auto constant =
      cat("{\"item_id\": \"c\", \"start\": \"2020-01-01\", \"target\": [0, 0, 0, 0, 0, 0, 0, 0, 0]}\n");
  for (const auto& text : {doubled, doubled + constant}) {
    const auto dataset = jsonl(text, "1D");
    EXPECT_EQ(oddities_of(dataset).same_values.size(), 2U);
    EXPECT_THROW(require_distinct(dataset, Copies::refused_if_half), DataError) << text;
    EXPECT_THROW(treat_copies(dataset, Copies::refused), DataError) << text;
    EXPECT_NO_THROW(require_distinct(dataset, Copies::told)) << text;
  }
}

// GluonTS's own folder, whatever names the test split has; without its train file, and where the files are not of one
// set, nothing is taken away.
TEST_F(OddFiles, ATestSplitBesideItsTrainFileHasEachSeriesOnce) {
  const auto entry = [](const std::string& name, const std::string& target) {
    return cat("{", name.empty() ? "" : cat("\"item_id\": \"", name, "\", "),
               "\"start\": \"2020-01-01\", \"target\": [", target, "]}\n");
  };
  const auto write = [](const std::filesystem::path& file, const std::string& text) {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  };
  const auto train = folder_ / "train/data.json", test = folder_ / "test/data.json";
  ReadOptions options;
  options.format = Format::jsonl;
  options.frequency = Frequency::parse("1D");
  for (const auto& names : {std::vector<std::string>{"A", "B", "A", "B"}, {"A", "B", "C", "D"}, {"", "", "", ""}}) {
    write(train, entry(names[0], "1, 2, 3, 4, 5, 6, 7, 8") + entry(names[1], "9, null, 3, 4, 5, 6, 7, 8"));
    write(test, entry(names[0], "1, 2, 3, 4, 5, 6, 7, 8, 1") + entry(names[1], "9, null, 3, 4, 5, 6, 7, 8, 2") +
                    entry(names[2], "1, 2, 3, 4, 5, 6, 7, 8, 1, 3") +
                    entry(names[3], "9, null, 3, 4, 5, 6, 7, 8, 2, 4"));
    testing::internal::CaptureStderr();
    const auto read = read_dataset(test, options);
    expect_parts(testing::internal::GetCapturedStderr(),
                 {"the longest of 2 rolling windows of each of the 2 series", "test_windows: 2"});
    ASSERT_EQ(read.series.size(), 2U);
    EXPECT_EQ(read.series[0].values, (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 1, 3}));
    EXPECT_EQ(read.series[0].id, names[0].empty() ? "0" : "A");
    EXPECT_EQ(read.series[1].id, names[0].empty() ? "1" : "B");
    EXPECT_NO_THROW(require_distinct(read, Copies::refused_if_half));
  }
  // Another value in the train file, or in an earlier window: not one data set.
  const auto good = read_file(test);
  for (const auto& [file, text] :
       {std::pair{train, entry("A", "1, 2, 3, 4, 5, 6, 7, 9") + entry("B", "9, null, 3")},
        std::pair{test, good + entry("", "1, 2")},
        std::pair{test, entry("", "1, 2, 3, 4, 5, 6, 7, 8, 2") + good.substr(good.find('\n') + 1)},
        std::pair{train, std::string("no JSON")}}) {
    const auto kept = read_file(file);
    write(file, text);
    EXPECT_GE(read_dataset(test, options).series.size(), 4U);
    write(file, kept);
  }
  EXPECT_EQ(read_dataset(test, options).series.size(), 2U);
  std::filesystem::remove(train);
  const auto alone = read_dataset(test, options);
  EXPECT_EQ(alone.series.size(), 4U);
  EXPECT_THROW(require_distinct(alone, Copies::refused_if_half), DataError);
}

// A column of text in a file of other numbers must not be taken for a header, nor damage be fatal.
TEST_F(OddFiles, DamagedOnesAreReadOrNamed) {
  auto read = options(Format::csv, "1D");
  expect_no_crash("Datum;A;B\r01.01.2020;1,5;10,5\r02.01.2020;999,5;11,25\r", "\r\n;-: 01234567890123456789.,\"", read);
  auto months = options(Format::csv, "1M");
  months.duplicates = Duplicates::last;
  expect_no_crash("t,A,B\n2020-03-30,1,2\n2020-02-29,1,\n2020-01-30,3,4\n", "\r\n,-: 01234567890123456789.\"", months);
}

}  // namespace
}  // namespace tsdp::data
