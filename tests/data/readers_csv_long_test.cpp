#include "readers_fixture.h"

namespace tsdp::data {
namespace {

TEST_F(Readers, CsvLongIsNixtlasForm) {
  const auto data =
      csv_long("unique_id,ds,y\nnorth,2016-02-28 23:00:00,1\nnorth,2016-02-29 00:00:00,2.5\nsouth,2015-01-01,-7\n");
  EXPECT_EQ(data.name, "set");
  ASSERT_EQ(data.series.size(), 2U);
  EXPECT_EQ(data.series[0].id, "north");
  EXPECT_EQ(data.series[0].start, at("2016-02-28 23:00"));
  expect_values(data.series[0].values, {1, 2.5});
  EXPECT_EQ(data.series[1].id, "south");
  EXPECT_EQ(data.series[1].start, at("2015-01-01"));
  expect_values(data.series[1].values, {-7});
}

TEST_F(Readers, CsvLongMayBeOutOfOrderWithGapsAndOtherColumns) {
  testing::internal::CaptureStderr();
  const auto data = csv_long(
      "\xEF\xBB\xBFy,price,ds,\"unique_id\",weekday\r\n"
      "3,9,2015-01-01 03:00,\"b, \"\"old\"\"\",x\r\n"
      "1,9,2015-01-01T01:00:00,a,x\r\n"
      ",9,2015-01-01 00:00,\"b, \"\"old\"\"\",x\r\n"
      "nan,9,2015-01-01 05:00,a,x\r\n"
      "6,9,2015-01-01 06:00,a,x\r\n"
      "NA,9,2015-01-01 09:00,a,x\r\n"
      "2,,2015-01-01 02:00,\"b, \"\"old\"\"\",x\r\n\r\n");
  const auto warnings = testing::internal::GetCapturedStderr();
  EXPECT_NE(warnings.find("set.txt:1: ignored the columns 'price', 'weekday'; unique_id, ds and y are read"),
            std::string::npos)
      << warnings;
  EXPECT_EQ(warnings.find("ignored"), warnings.rfind("ignored")) << warnings;
  ASSERT_EQ(data.series.size(), 2U);
  EXPECT_EQ(data.series[0].id, "b, \"old\"");
  EXPECT_EQ(data.series[0].start, at("2015-01-01 02:00"));
  expect_values(data.series[0].values, {2, 3});
  EXPECT_EQ(data.series[1].id, "a");
  EXPECT_EQ(data.series[1].start, at("2015-01-01 01:00"));
  expect_values(data.series[1].values, {1, missing, missing, missing, missing, 6});
}

TEST_F(Readers, CsvLongMayHaveSeveralVariables) {
  auto how = options(Format::csv_long);
  how.columns.values = {"pulse", "pressure"};
  const auto read = [&](const std::string& text) { return read_dataset(put(text), how); };
  // Missing ends are cut where all variables miss, so all have the same steps.
  const auto data = read(
      "ds,pressure,unique_id,pulse\n2015-01-01 02:00,3,a,70\n2015-01-01 00:00,,a,\n2015-01-01 01:00,2,a,\n"
      "2015-01-01 05:00,,a,71\n2015-01-01 06:00,NA,a,?\n2015-01-01 00:00,8,b,60\n");
  EXPECT_EQ(data.variables, (std::vector<std::string>{"pulse", "pressure"}));
  EXPECT_EQ(data.variable_count(), 2);
  EXPECT_EQ(counted_series(data), "2 series of 2 variables");
  ASSERT_EQ(data.series.size(), 4U);
  for (const std::size_t s : {0U, 1U}) EXPECT_EQ(data.series[s].start, at("2015-01-01 01:00"));
  EXPECT_EQ(data.series[0].id, "a/pulse");
  expect_values(data.series[0].values, {missing, 70, missing, missing, 71});
  EXPECT_EQ(data.series[1].id, "a/pressure");
  expect_values(data.series[1].values, {2, 3, missing, missing, missing});
  EXPECT_EQ(data.series[1].cut, 2);
  EXPECT_EQ(data.series[2].id, "b/pulse");
  EXPECT_EQ(data.record_of(1), 0);
  EXPECT_EQ(data.record_of(2), 1);
  how.exact = true;
  EXPECT_EQ(read("unique_id,ds,pulse,pressure\na,2015-01-01,0.1,0.2\n").series[1].exact, std::vector{0.2});
  how.exact = false;
  // Without a column of names there is one series.
  const auto one = read("ds,pulse,pressure\n2015-01-01 00:00,1,2\n");
  EXPECT_EQ(one.series[0].id, "pulse");
  EXPECT_EQ(one.series[1].id, "pressure");

  const auto refusal = [&](const std::string& text) { return error(text, how); };
  EXPECT_EQ(refusal("unique_id,ds,pulse,pressure\na,2015-01-01,1,\nb,2015-01-01,1,2\n"),
            "set.txt:2: found no value of series 'a/pressure'; expected at least one that is not missing: "
            "leave out the series, or the variable");
  EXPECT_EQ(refusal("unique_id,ds,pulse,pressure\na,2015-01-01,1,x\n").substr(0, 11), "set.txt:2:4");
  EXPECT_NE(refusal("unique_id,ds,pulse\na,2015-01-01,1\n").find("without a column 'pressure'"), std::string::npos);
  EXPECT_NE(refusal("unique_id,ds,pulse,pressure\na,2015-01-01,1,2\na,2015-01-01,1,2\n").find("series 'a/pulse' again"),
            std::string::npos);
  how.columns.item = "pulse";
  EXPECT_NE(refusal("unique_id,ds,pulse,pressure\na,2015-01-01,1,2\n").find("read as another column, too"),
            std::string::npos);
}

TEST_F(Readers, CsvLongFollowsTheCalendar) {
  expect_values(csv_long("unique_id,ds,y\na,2015-01-02,1\na,2015-01-05,2\na,2015-01-07,4\n", "B").series[0].values,
                {1, 2, missing, 4});
  expect_values(csv_long("unique_id,ds,y\na,2015-02-28,1\na,2015-03-31,2\na,2015-05-31,4\n", "M").series[0].values,
                {1, 2, missing, 4});
  expect_values(csv_long("unique_id,ds,y\na,2015-01-01,1\na,2016-01-01,2\n", "Q").series[0].values,
                {1, missing, missing, missing, 2});
  EXPECT_EQ(csv_long_error("unique_id,ds,y\na,2015-01-02,1\na,2015-01-03,2\n", "B"),
            "set.txt:3:2: found the time 2015-01-03 00:00:00 of series 'a'; expected whole steps of 1B after its first "
            "time, 2015-01-02 00:00:00 in line 2");
}

TEST_F(Readers, CsvLongSaysWhereAndWhat) {
  const std::string top = "unique_id,ds,y\n";
  EXPECT_EQ(csv_long_error(""),
            "set.txt: found an empty file; expected a header with columns for names, time stamps and values, such as "
            "unique_id, ds and y");
  EXPECT_EQ(csv_long_error("unique_id,when,y\n"),
            "set.txt:1:1: found the header 'unique_id,when,y' without a column of time stamps; expected one named ds, "
            "timestamp, date, time, datetime, or its name by --columns time=NAME");
  EXPECT_EQ(csv_long_error("unique_id,ds,date,y\n"),
            "set.txt:1:1: found the header 'unique_id,ds,date,y' with the columns 'ds' and 'date'; expected --columns "
            "time=NAME to say which one is read");
  EXPECT_EQ(csv_long_error("y,unique_id,ds,y\n"),
            "set.txt:1:4: found the column 'y' again, first seen in column 1; expected each name once");
  EXPECT_EQ(csv_long_error(top),
            "set.txt: found no row after the header; expected rows of a series' name, a time stamp and a value");
  EXPECT_EQ(csv_long_error(top + "a,2015-01-01\n"), "set.txt:2:3: found 2 columns; expected 3, as in the header");
  EXPECT_EQ(csv_long_error(top + "a,2015-01-01,1,2\n"), "set.txt:2:4: found 4 columns; expected 3, as in the header");
  EXPECT_EQ(csv_long_error(top + ",2015-01-01,1\n"), "set.txt:2:1: found no unique_id; expected the name of a series");
  EXPECT_EQ(csv_long_error(top + "a,7,1\n"),
            "set.txt:2:2: found '7'; expected a time stamp such as 2015-01-31 or 2015-01-31 13:00:00");
  EXPECT_EQ(csv_long_error(top + "a,2015-01-01,x\n"),
            "set.txt:2:3: found 'x'; expected a number, or nan or empty for missing");
  EXPECT_EQ(csv_long_error(top + "a,2015-01-01,inf\n"),
            "set.txt:2:3: found 'inf'; expected a finite number, or nan or empty for missing");
  EXPECT_EQ(csv_long_error(top + "\"a,2015-01-01,1\n"),
            "set.txt:2:1: found '\"a,2015-01-01,1' without a closing quote; expected a field");
  EXPECT_EQ(csv_long_error(top + "a,2015-01-01,1\n\na,2015-01-02,1\n"),
            "set.txt:3:1: found an empty line; expected a name, a time stamp and a value");
  EXPECT_EQ(csv_long_error(top + "a,2015-01-01 01:00,1\nb,2015-01-01,1\na,2015-01-01,2\na,2015-01-01 01:00,3\n"),
            "set.txt:5:2: found the time 2015-01-01 01:00:00 of series 'a' again, first seen in line 2; expected each "
            "time once (--duplicates: last or mean, takes rows of one time)");
  EXPECT_EQ(csv_long_error(top + "a,2015-01-01 01:00,1\na,2015-01-01 00:30,2\n"),
            "set.txt:2:2: found the time 2015-01-01 01:00:00 of series 'a'; expected whole steps of 1h after its first "
            "time, 2015-01-01 00:30:00 in line 3");
  EXPECT_EQ(csv_long_error(top + "a,2015-01-01,1\nb,2015-01-01,\n"),
            "set.txt:3: found no value of series 'b'; expected at least one that is not missing");
  // A wrong year must not ask for all memory.
  EXPECT_EQ(csv_long_error(top + "a,0015-01-01,1\na,2015-01-01,1\n"),
            "set.txt:3:2: found the time 2015-01-01 00:00:00 of series 'a', 17531640 steps after its first time, "
            "0015-01-01 00:00:00 in line 2, with 2 rows in all; expected fewer than 1002000 steps");
}

// Each of these series alone would pass; all of them would take 8 GB for a file of 200 kB.
TEST_F(Readers, CsvLongCountsTheMissingValuesOfAllSeries) {
  std::string text = "unique_id,ds,y\n";
  for (int i = 0; i < 2000; ++i) {
    const auto id = std::string("s").append(std::to_string(i));
    text += id + ",2000-01-01,1\n" + id + (i == 7 ? ",2001-11-02,1\n" : ",2001-11-01,1\n");
  }
  EXPECT_EQ(csv_long_error(text, "1min"),
            "set.txt: found 4000 rows over 1929603440 steps of 1min, the longest of them series 's7' (2 rows from "
            "2000-01-01 00:00:00 in line 16 to 2001-11-02 00:00:00 in line 17); expected at most 10400000 steps: no "
            "wrong dates, and a frequency that is not finer than the data's");
  // At the frequency that they have nothing is missing but what was meant.
  EXPECT_EQ(read_dataset(put(text), options(Format::csv_long, "1D")).series.size(), 2000U);
}

TEST_F(Readers, DamagedCsvLongIsReadOrNamed) {
  expect_no_crash(
      "unique_id,ds,y\na,2015-01-01 00:00,1\n\"b, c\",2015-01-01 00:00,-2e3\na,2015-01-01 01:00,nan\na,2015-01-01 "
      "03:00,4\n\"b, c\",2015-01-01 01:00:00,5.5\n",
      "\n\",-: \r\t0123456789.einf", options(Format::csv_long));
}

}  // namespace
}  // namespace tsdp::data
