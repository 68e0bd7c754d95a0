#include "tsdp/data/dataset.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tsdp/core/error.h"

namespace tsdp::data {
namespace {

using Unit = Frequency::Unit;

Moment at(const std::string& text) {
  Moment moment = 0;
  EXPECT_TRUE(parse_moment(text, moment)) << text;
  return moment;
}

std::string after(const std::string& start, const std::string& frequency, std::int64_t steps) {
  return moment_text(advance(at(start), Frequency::parse(frequency), steps));
}

TEST(Frequency, ReadsPandasNames) {
  const std::vector<std::pair<std::string, Frequency>> cases{
      {"10min", {10, Unit::minute}}, {"10T", {10, Unit::minute}},    {"30min", {30, Unit::minute}},
      {"h", {1, Unit::hour}},        {"1h", {1, Unit::hour}},        {"H", {1, Unit::hour}},
      {"1D", {1, Unit::day}},        {"B", {1, Unit::business_day}}, {"W", {1, Unit::week}},
      {"M", {1, Unit::month}},       {"Q", {1, Unit::quarter}},      {"Y", {1, Unit::year}},
      {"4s", {4, Unit::second}},     {" 2 h ", {2, Unit::hour}},
  };
  for (const auto& [text, frequency] : cases) EXPECT_EQ(Frequency::parse(text), frequency) << text;
}

TEST(Frequency, WritesWhatItReads) {
  for (const char* text : {"10min", "1h", "1D", "1B", "1W", "1M", "1Q", "1Y", "4s"})
    EXPECT_EQ(Frequency::parse(text).text(), text);
}

TEST(Frequency, RefusesTheRestAndSaysWhatIsAccepted) {
  for (const char* text : {"", "0h", "-1h", "1.5h", "0.5H", "hourly", "1 fortnight", "99999999h", "m", "h1"}) {
    try {
      (void)Frequency::parse(text);
      FAIL() << text;
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find(std::string("'") + text + "'"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("10min"), std::string::npos) << error.what();
    }
  }
}

TEST(Moment, ReadsDatesAndTimes) {
  EXPECT_EQ(at("1970-01-01"), 0);
  EXPECT_EQ(at("1970-01-02 01:02:03"), 86400 + 3723);
  EXPECT_EQ(at("1969-12-31 23:59:59"), -1);
  EXPECT_EQ(at("2015-01-01"), 1420070400);
  EXPECT_EQ(at("2006-01-01 00-00-01"), at("2006-01-01T00:00:01"));
  EXPECT_EQ(at("2006-01-01 07:30"), at("2006-01-01 07-30-00"));
  EXPECT_EQ(at("2000-02-29"), at("2000-02-28") + 86400);
}

TEST(Moment, RefusesOthers) {
  for (const char* text :
       {"", "2015", "2015-1-1", "2015-02-29", "1900-02-29", "2015-13-01", "2015-00-01", "2015-01-32",
        "2015-01-01 24:00", "2015-01-01 00:60", "2015-01-01 00:00:60", "2015-01-01 00:00-00", "2015-01-01x00:00",
        "2015/01/01", "2015-01-01 ", "2015-01-01 00:00:00Z", "2015-01-0a", "+015-01-01", "2015-01-01 00:00:0"}) {
    Moment moment = 7;
    EXPECT_FALSE(parse_moment(text, moment)) << text;
    EXPECT_EQ(moment, 7) << text;
  }
}

TEST(Moment, WritesWhatItReads) {
  for (const char* text : {"1970-01-01 00:00:00", "1969-12-31 23:59:59", "2016-02-29 12:34:56", "0001-01-01 00:00:00",
                           "9999-12-31 23:59:59"})
    EXPECT_EQ(moment_text(at(text)), text);
}

TEST(Advance, GoesThroughLeapDaysAndYearEnds) {
  EXPECT_EQ(after("2016-02-28 23:00", "1h", 1), "2016-02-29 00:00:00");
  EXPECT_EQ(after("2015-02-28 23:00", "1h", 1), "2015-03-01 00:00:00");
  EXPECT_EQ(after("1900-02-28", "1D", 1), "1900-03-01 00:00:00");
  EXPECT_EQ(after("2000-02-28", "1D", 1), "2000-02-29 00:00:00");
  EXPECT_EQ(after("2015-12-31 23:50", "10min", 1), "2016-01-01 00:00:00");
  EXPECT_EQ(after("2006-01-01", "10min", 52560), "2007-01-01 00:00:00");
  EXPECT_EQ(after("2015-01-01", "h", 17544), "2017-01-01 00:00:00");
  EXPECT_EQ(after("2015-01-01", "4s", 15), "2015-01-01 00:01:00");
  EXPECT_EQ(after("2015-01-01", "1W", -1), "2014-12-25 00:00:00");
  EXPECT_EQ(after("1970-01-01 00:30", "1h", -1), "1969-12-31 23:30:00");
}

TEST(Advance, KeepsTheDayOfTheMonthWhereItExists) {
  EXPECT_EQ(after("2015-01-31", "M", 1), "2015-02-28 00:00:00");
  EXPECT_EQ(after("2016-01-31", "M", 1), "2016-02-29 00:00:00");
  EXPECT_EQ(after("2015-01-31", "M", 2), "2015-03-31 00:00:00");
  EXPECT_EQ(after("2015-01-31 06:00", "M", -2), "2014-11-30 06:00:00");
  EXPECT_EQ(after("2015-11-30", "Q", 1), "2016-02-29 00:00:00");
  EXPECT_EQ(after("2016-02-29", "Y", 1), "2017-02-28 00:00:00");
  EXPECT_EQ(after("2016-02-29", "Y", 4), "2020-02-29 00:00:00");
}

TEST(Advance, BusinessDaysSkipWeekends) {
  EXPECT_EQ(after("1990-01-01", "B", 4), "1990-01-05 00:00:00");  // Monday to Friday
  EXPECT_EQ(after("1990-01-01", "B", 5), "1990-01-08 00:00:00");
  EXPECT_EQ(after("1990-01-05", "B", 1), "1990-01-08 00:00:00");
  EXPECT_EQ(after("1990-01-08", "B", -1), "1990-01-05 00:00:00");
  EXPECT_EQ(after("1990-01-06", "B", 1), "1990-01-08 00:00:00");  // from a Saturday
  EXPECT_EQ(after("1990-01-07", "B", 2), "1990-01-09 00:00:00");
  EXPECT_EQ(after("1990-01-06", "B", -1), "1990-01-05 00:00:00");
  EXPECT_EQ(after("1990-01-06", "B", 0), "1990-01-06 00:00:00");
  EXPECT_EQ(after("1990-01-04 09:00", "2B", 1), "1990-01-08 09:00:00");
  EXPECT_EQ(after("1969-12-29", "B", 4), "1970-01-02 00:00:00");
  // One step at a time meets the same days as one leap.
  const auto frequency = Frequency::parse("B");
  Moment day = at("1990-01-01");
  for (int i = 0; i < 3000; ++i) {
    ASSERT_EQ(day, advance(at("1990-01-01"), frequency, i));
    ASSERT_EQ(at("1990-01-01"), advance(day, frequency, -i));
    day = advance(day, frequency, 1);
  }
}

}  // namespace
}  // namespace tsdp::data
