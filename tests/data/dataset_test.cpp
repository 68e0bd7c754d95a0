#include "tsdp/data/dataset.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tsdp/base/error.h"

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
      {"MS", {1, Unit::month}},      {"QS-OCT", {1, Unit::quarter}}, {"2AS", {2, Unit::year}},
      {"W-SUN", {1, Unit::week}},    {"Q-DEC", {1, Unit::quarter}},  {"M", {1, Unit::month}},
      {"Q", {1, Unit::quarter}},     {"Y", {1, Unit::year}},         {"4s", {4, Unit::second}},
      {" 2 h ", {2, Unit::hour}},
  };
  for (const auto& [text, frequency] : cases) EXPECT_EQ(Frequency::parse(text), frequency) << text;
}

TEST(Frequency, WritesWhatItReads) {
  for (const char* text : {"10min", "1h", "1D", "1B", "1W", "1M", "1Q", "1Y", "4s"})
    EXPECT_EQ(Frequency::parse(text).text(), text);
}

TEST(Frequency, RefusesTheRestAndSaysWhatIsAccepted) {
  for (const char* text : {"", "0h", "-1h", "1.5h", "0.5H", "hourly", "1 fortnight", "99999999h", "m", "h1", "h-JAN",
                           "D-MON", "W-JAN", "Q-SUN"}) {
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
  EXPECT_EQ(at("2015/01/31 9:05"), at("2015-01-31 09:05"));
  EXPECT_EQ(at("31.01.2015 13:00"), at("2015-01-31 13:00"));
  EXPECT_EQ(at("2015-01-31T13:00:00.000000"), at("2015-01-31 13:00"));
}

TEST(Moment, ReadsPeriodsAsTheirBeginning) {
  EXPECT_EQ(at("2015"), at("2015-01-01"));
  EXPECT_EQ(at("2015-03"), at("2015-03-01"));
  EXPECT_EQ(at("2015Q4"), at("2015-10-01"));
  EXPECT_EQ(at("2014-12-29/2015-01-04"), at("2014-12-29"));
}

TEST(Moment, TakesTimeZonesOff) {
  EXPECT_EQ(at("2015-01-01T13:00:00Z"), at("2015-01-01 13:00"));
  EXPECT_EQ(at("2015-01-01 00:30+01:00"), at("2014-12-31 23:30"));
  EXPECT_EQ(at("2015-01-01 00:00:00-0530"), at("2015-01-01 05:30"));
  EXPECT_EQ(at("2015-01-01 00:00:00.0+02"), at("2014-12-31 22:00"));
}

TEST(Moment, RefusesOthers) {
  for (const char* text : {"",
                           "215",
                           "20150101",
                           "2015-1-1",
                           "2015-02-29",
                           "1900-02-29",
                           "2015-13-01",
                           "2015-00-01",
                           "2015-01-32",
                           "1/31/2015",
                           "31.1.2015",
                           "2015.01.31",
                           "2015/01",
                           "2015-01/31",
                           "2015Q5",
                           "2015Q0",
                           "2015Q1 00:00",
                           "2015-01-01 24:00",
                           "2015-01-01 00:60",
                           "2015-01-01 00:00:60",
                           "2015-01-01 00-00:00",
                           "2015-01-01x00:00",
                           "2015-01-01 ",
                           "2015-01-01Z",
                           "2015-01-01 00:00:00 Z",
                           "2015-01-01 00:00:00+1",
                           "2015-01-01 00:00:00+24",
                           "2015-01-01 00:00:00.",
                           "2015-01-01 00:00:00.001",
                           "2015-01-0a",
                           "+015-01-01",
                           "2015-01-01 00:00:0",
                           "2014-12-29/",
                           "2014-12-29/2015-01-0"}) {
    Moment moment = 7;
    EXPECT_FALSE(parse_moment(text, moment)) << text;
    EXPECT_EQ(moment, 7) << text;
  }
}

// Hours are regular in UTC, days on their own clock.
TEST(TimeStamp, IsOnItsOwnClockWhereStepsAreDays) {
  Moment clock = 0, utc = 0;
  ASSERT_TRUE(parse_moment("2020-03-30 00:00:00", clock));
  ASSERT_TRUE(parse_moment("2020-03-29 22:00:00", utc));
  const auto stamp = parse_time_stamp("2020-03-30T00:00:00+02:00");
  ASSERT_TRUE(stamp);
  EXPECT_EQ(stamp->ahead, 7200);
  for (const char* step : {"1s", "15min", "1h", "12h", "23h"})
    EXPECT_EQ(stamp->at(Frequency::parse(step)), utc) << step;
  for (const char* step : {"24h", "1440min", "1D", "1B", "1W", "1M", "1Q", "1Y"})
    EXPECT_EQ(stamp->at(Frequency::parse(step)), clock) << step;
  EXPECT_FALSE(parse_time_stamp("2020-03-30")->ahead);
  EXPECT_EQ(parse_time_stamp("2020-03-30 00:00Z")->ahead, 0);
  EXPECT_TRUE(parse_time_stamp("2020-03-30 00:00Z[Asia/Tokyo]")->elsewhere);
  for (const char* text : {"2020-03-30 00:00Z[UTC]", "2020-03-30 00:00+09:00[Asia/Tokyo]", "2020-03-30 00:00"})
    EXPECT_FALSE(parse_time_stamp(text)->elsewhere) << text;
  for (const char* text : {"2020-03-30 00:00[UTC]", "2020-03-30[UTC]", "2020-03-30 00:00Z[]", "2020-03-30 00:00Z[UTC",
                           "2020-03-30 00:00Z[UTC]x"})
    EXPECT_FALSE(parse_time_stamp(text)) << text;
}

TEST(Moment, WritesWhatItReads) {
  for (const char* text : {"1970-01-01 00:00:00", "1969-12-31 23:59:59", "2016-02-29 12:34:56", "0001-01-01 00:00:00",
                           "9999-12-31 23:59:59"})
    EXPECT_EQ(moment_text(at(text)), text);
}

std::string inferred(const std::string& start, const std::string& frequency, const std::vector<std::int64_t>& steps) {
  std::vector<Moment> moments;
  for (const auto k : steps) moments.push_back(advance(at(start), Frequency::parse(frequency), k));
  const auto found = infer_frequency(moments);
  return found ? found->text() : "none";
}

TEST(InferFrequency, FindsTheStepOfEveryCalendar) {
  for (const char* frequency :
       {"1s", "10s", "1min", "15min", "1h", "6h", "1D", "2D", "1W", "2W", "1M", "2M", "1Q", "2Q", "1Y"})
    for (const char* start : {"2015-01-31", "2016-02-29 00:00", "2015-03-14 09:00", "2015-12-01"}) {
      std::vector<std::int64_t> all(40);
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
      EXPECT_EQ(inferred(start, frequency, all), frequency) << start;
      // With steps left out, as long as most are there.
      EXPECT_EQ(inferred(start, frequency, {0, 1, 3, 4, 6, 7, 8, 11}), frequency) << start;
    }
  EXPECT_EQ(inferred("2015-01-01", "1B", {0, 1, 2, 3, 4, 5, 6}), "1B");
  EXPECT_EQ(inferred("2015-01-05", "1D", {0, 1, 2, 3, 4}), "1D");  // Monday to Friday may be any days
  EXPECT_EQ(inferred("2015-01-05", "1D", {0, 1, 2, 3, 4, 7}), "1B");
}

TEST(InferFrequency, KnowsWhatItCannotTell) {
  EXPECT_EQ(inferred("2015-01-01", "1h", {}), "none");
  EXPECT_EQ(inferred("2015-01-01", "1h", {0, 1}), "none");
  EXPECT_EQ(inferred("2015-01-01", "1h", {0, 1, 100}), "none");
  EXPECT_EQ(inferred("2015-01-01", "1s", {0, 3, 7, 1000}), "none");
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

TEST(Advance, GoesFromLastDaysToLastDays) {
  EXPECT_EQ(after("2020-06-30", "M", 1), "2020-07-31 00:00:00");
  EXPECT_EQ(after("2020-06-30 12:00", "M", -1), "2020-05-31 12:00:00");
  EXPECT_EQ(after("2020-06-30", "Q", 2), "2020-12-31 00:00:00");
  EXPECT_EQ(after("2019-02-28", "Y", 1), "2020-02-29 00:00:00");
  EXPECT_EQ(after("2020-02-28", "M", 1), "2020-03-28 00:00:00");  // not the last day of a leap year's February
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

TEST(Advance, EveryUnitThroughALeapDayAndAYearEnd) {
  EXPECT_EQ(after("2016-02-28 23:59:59", "s", 1), "2016-02-29 00:00:00");
  EXPECT_EQ(after("2016-02-29 23:59:56", "4s", 1), "2016-03-01 00:00:00");
  EXPECT_EQ(after("2016-12-31 23:59", "min", 1), "2017-01-01 00:00:00");
  EXPECT_EQ(after("2016-02-28 23:45", "30min", 1), "2016-02-29 00:15:00");
  EXPECT_EQ(after("2015-12-31 18:00", "6h", 1), "2016-01-01 00:00:00");
  EXPECT_EQ(after("2016-02-27", "2D", 1), "2016-02-29 00:00:00");
  EXPECT_EQ(after("2016-12-30", "B", 1), "2017-01-02 00:00:00");  // a Friday
  EXPECT_EQ(after("2016-02-26", "B", 1), "2016-02-29 00:00:00");  // a Friday before a leap day that is a Monday
  EXPECT_EQ(after("2015-12-28", "W", 1), "2016-01-04 00:00:00");  // week 53 of ISO 8601, then week 1
  EXPECT_EQ(after("2016-02-24", "W", 1), "2016-03-02 00:00:00");
  EXPECT_EQ(after("2015-12-31", "M", 2), "2016-02-29 00:00:00");
  EXPECT_EQ(after("2015-10-01", "Q", 1), "2016-01-01 00:00:00");
  EXPECT_EQ(after("2015-08-31", "2Q", 1), "2016-02-29 00:00:00");
  EXPECT_EQ(after("2016-02-29 12:00", "Y", -16), "2000-02-29 12:00:00");
  EXPECT_EQ(after("1896-02-29", "4Y", 1), "1900-02-28 00:00:00");  // 1900 has no leap day
}

std::optional<std::int64_t> steps(const std::string& start, const std::string& frequency, const std::string& moment) {
  return steps_between(at(start), Frequency::parse(frequency), at(moment));
}

TEST(StepsBetween, UndoesAdvance) {
  for (const char* frequency :
       {"s", "4s", "min", "10min", "h", "6h", "D", "2D", "B", "3B", "W", "2W", "M", "2M", "Q", "Y", "4Y"})
    for (const char* start : {"2015-01-01", "2016-02-29 13:30", "2015-01-31 00:00:01", "2015-02-28",
                              "1969-12-31 23:59:59", "2016-01-02 05:00", "2016-01-03"})  // the last two on a weekend
      for (std::int64_t step = -60; step <= 60; ++step) {
        const auto moment = advance(at(start), Frequency::parse(frequency), step);
        ASSERT_EQ(steps_between(at(start), Frequency::parse(frequency), moment), step) << frequency << " " << start;
      }
}

TEST(StepsBetween, NoneOffTheGrid) {
  EXPECT_EQ(steps("2015-01-01", "h", "2015-01-01 00:30"), std::nullopt);
  EXPECT_EQ(steps("2015-01-01", "2h", "2015-01-01 01:00"), std::nullopt);
  EXPECT_EQ(steps("2015-01-01", "2h", "2014-12-31 23:00"), std::nullopt);
  EXPECT_EQ(steps("2015-01-01", "D", "2015-01-02 00:00:01"), std::nullopt);
  EXPECT_EQ(steps("2015-01-01", "B", "2015-01-03"), std::nullopt);  // a Saturday
  EXPECT_EQ(steps("2015-01-01", "2B", "2015-01-02"), std::nullopt);
  EXPECT_EQ(steps("2015-01-01", "B", "2015-01-02 01:00"), std::nullopt);
  EXPECT_EQ(steps("2015-01-01", "W", "2015-01-07"), std::nullopt);
  EXPECT_EQ(steps("2015-01-01", "M", "2015-02-02"), std::nullopt);
  EXPECT_EQ(steps("2015-01-01", "Q", "2015-03-01"), std::nullopt);
  EXPECT_EQ(steps("2015-01-01", "Y", "2016-02-01"), std::nullopt);
}

TEST(StepsBetween, LastDaysOfMonthsFollowEachOther) {
  EXPECT_EQ(steps("2015-02-28", "M", "2015-03-28"), 1);
  EXPECT_EQ(steps("2015-02-28", "M", "2015-03-31"), 1);
  EXPECT_EQ(steps("2015-02-28 06:00", "M", "2014-12-31 06:00"), -2);
  EXPECT_EQ(steps("2015-02-28", "M", "2015-03-30"), std::nullopt);
  EXPECT_EQ(steps("2015-02-28", "M", "2015-03-31 01:00"), std::nullopt);
  EXPECT_EQ(steps("2015-06-30", "Q", "2015-12-31"), 2);
  EXPECT_EQ(steps("2015-02-28", "Y", "2016-02-29"), 1);
  EXPECT_EQ(steps("2015-02-27", "M", "2015-03-31"), std::nullopt);
}

}  // namespace
}  // namespace tsdp::data
