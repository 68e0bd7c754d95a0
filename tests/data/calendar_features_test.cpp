#include "data/calendar_features.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tsdp::data {
namespace {

/// The features of a moment as counts from 0: scaling undone.
std::vector<int> counts(const std::string& text, const std::string& frequency_text) {
  Moment moment = 0;
  EXPECT_TRUE(parse_moment(text, moment)) << text;
  const auto frequency = Frequency::parse(frequency_text);
  const auto names = calendar_feature_names(frequency);
  std::vector<double> values(names.size());
  calendar_features(moment, frequency, values);
  std::vector<int> out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto name = names[i];
    const double largest = name == "second_of_minute" || name == "minute_of_hour" ? 59
                           : name == "hour_of_day"                                ? 23
                           : name == "day_of_week"                                ? 6
                           : name == "day_of_month"                               ? 30
                           : name == "day_of_year"                                ? 365
                           : name == "week_of_year"                               ? 52
                                                                                  : 11;
    EXPECT_GE(values[i], -0.5);
    EXPECT_LE(values[i], 0.5);
    const double count = (values[i] + 0.5) * largest;
    out.push_back(static_cast<int>(std::lround(count)));
    EXPECT_NEAR(count, out.back(), 1e-12) << name;
  }
  return out;
}

std::vector<std::int64_t> lags(const std::string& frequency) { return default_lags(Frequency::parse(frequency)); }

TEST(CalendarFeatures, AreNamedByUnit) {
  using Names = std::vector<std::string_view>;
  const auto names = [](const char* frequency) { return calendar_feature_names(Frequency::parse(frequency)); };
  EXPECT_EQ(names("4s"),
            (Names{"second_of_minute", "minute_of_hour", "hour_of_day", "day_of_week", "day_of_month", "day_of_year"}));
  EXPECT_EQ(names("10min"), (Names{"minute_of_hour", "hour_of_day", "day_of_week", "day_of_month", "day_of_year"}));
  EXPECT_EQ(names("2h"), (Names{"hour_of_day", "day_of_week", "day_of_month", "day_of_year"}));
  EXPECT_EQ(names("D"), (Names{"day_of_week", "day_of_month", "day_of_year"}));
  EXPECT_EQ(names("B"), names("D"));
  EXPECT_EQ(names("W"), (Names{"day_of_month", "week_of_year"}));
  EXPECT_EQ(names("M"), (Names{"month_of_year"}));
  EXPECT_EQ(names("Q"), names("M"));
  EXPECT_TRUE(names("Y").empty());
  EXPECT_EQ(names("s").size(), most_calendar_features);
}

TEST(CalendarFeatures, CountFromZeroInEveryPlace) {
  EXPECT_EQ(counts("2015-01-01 00:00:00", "s"), (std::vector<int>{0, 0, 0, 3, 0, 0}));  // a Thursday
  EXPECT_EQ(counts("2015-08-31 23:59:58", "s"), (std::vector<int>{58, 59, 23, 0, 30, 242}));
  EXPECT_EQ(counts("2015-08-31 23:59:58", "min"), (std::vector<int>{59, 23, 0, 30, 242}));
  EXPECT_EQ(counts("2015-08-31 23:59:58", "h"), (std::vector<int>{23, 0, 30, 242}));
  EXPECT_EQ(counts("2015-08-31 23:59:58", "D"), (std::vector<int>{0, 30, 242}));
  EXPECT_EQ(counts("2015-08-31", "M"), (std::vector<int>{7}));
  EXPECT_TRUE(counts("2015-08-31", "Y").empty());
}

TEST(CalendarFeatures, KnowLeapYearsAndYearEnds) {
  EXPECT_EQ(counts("2016-02-29", "D"), (std::vector<int>{0, 28, 59}));
  EXPECT_EQ(counts("2016-03-01", "D"), (std::vector<int>{1, 0, 60}));
  EXPECT_EQ(counts("2015-03-01", "D"), (std::vector<int>{6, 0, 59}));
  EXPECT_EQ(counts("2016-12-31 23:00", "h"), (std::vector<int>{23, 5, 30, 365}));
  EXPECT_EQ(counts("2017-01-01 00:00", "h"), (std::vector<int>{0, 6, 0, 0}));
  EXPECT_EQ(counts("2017-12-31", "D"), (std::vector<int>{6, 30, 364}));
  EXPECT_EQ(counts("2000-12-31", "D"), (std::vector<int>{6, 30, 365}));
  EXPECT_EQ(counts("1900-12-31", "D"), (std::vector<int>{0, 30, 364}));
  EXPECT_EQ(counts("1969-12-31 23:59:59", "s"), (std::vector<int>{59, 59, 23, 2, 30, 364}));
}

TEST(CalendarFeatures, OfWeeksAreThoseOfTheirSunday) {
  // Monday 2014-12-29 … Sunday 2015-01-04 is week 1 of 2015; whichever of its days the step begins on.
  for (const char* day : {"2014-12-29", "2015-01-01", "2015-01-04"})
    EXPECT_EQ(counts(day, "W"), (std::vector<int>{3, 0})) << day;
  EXPECT_EQ(counts("2014-12-28", "W"), (std::vector<int>{27, 51}));
  EXPECT_EQ(counts("2015-12-28", "W"), (std::vector<int>{2, 52}));  // week 53 ends on 2016-01-03
  EXPECT_EQ(counts("2016-01-04", "W"), (std::vector<int>{9, 0}));
  EXPECT_EQ(counts("2021-01-03", "2W"), (std::vector<int>{2, 52}));
}

TEST(CalendarFeatures, OfQuartersAreThoseOfTheirLastMonth) {
  EXPECT_EQ(counts("2015-01-01", "Q"), (std::vector<int>{2}));
  EXPECT_EQ(counts("2015-03-31", "Q"), (std::vector<int>{2}));
  EXPECT_EQ(counts("2015-04-01", "Q"), (std::vector<int>{5}));
  EXPECT_EQ(counts("2015-12-31", "Q"), (std::vector<int>{11}));
}

TEST(Age, IsALogarithmOfThePosition) {
  EXPECT_EQ(age(0), static_cast<float>(std::log10(2.0)));
  EXPECT_EQ(age(8), 1.0F);
  EXPECT_EQ(age(98), 2.0F);
  EXPECT_EQ(age(999998), 6.0F);
}

// Worked out by hand; tests of reference values hold those of the frequencies in use.
TEST(DefaultLags, AreNeighboursOfWholePeriods) {
  EXPECT_EQ(lags("4s"), (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 13, 14, 15, 16, 17, 28, 29,
                                                   30, 31, 32, 43, 44, 45, 46, 47, 898, 899, 900, 901, 902}));
  EXPECT_EQ(lags("W"),
            (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 12, 51, 52, 53, 103, 104, 105, 155, 156, 157}));
  EXPECT_EQ(lags("M"), (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 23, 24, 25, 35, 36, 37}));
  EXPECT_EQ(lags("Q"), (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13}));
  EXPECT_EQ(lags("Y"), (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(lags("999999Y"), lags("Y"));
  EXPECT_EQ(lags("999999s"), lags("Y"));
}

TEST(DefaultLags, AgreeForStepsOfEqualLength) {
  EXPECT_EQ(lags("60min"), lags("1h"));
  EXPECT_EQ(lags("24h"), lags("1D"));
  EXPECT_EQ(lags("7D"), lags("1W"));
  EXPECT_EQ(lags("3M"), lags("1Q"));
}

// 52 weeks of five business days are 260 steps; 52 // (1 / 5) in doubles is 259, and so the reference has it.
TEST(DefaultLags, KeepTheRoundingOfTheirOrigin) {
  const auto found = lags("B");
  EXPECT_EQ(std::vector<std::int64_t>(found.end() - 9, found.end()),
            (std::vector<std::int64_t>{258, 259, 260, 518, 519, 520, 778, 779, 780}));
}

TEST(DefaultSeason, IsWholeOrOne) {
  const std::vector<std::pair<std::string, std::int64_t>> cases{
      {"s", 3600},
      {"min", 1440},
      {"10min", 144},
      {"7min", 1},
      {"h", 24},
      {"2h", 12},
      {"5h", 1},
      {"48h", 1},
      {"D", 1},
      {"7D", 1},
      {"B", 5},
      {"2B", 1},
      {"W", 1},
      {"M", 12},
      {"3M", 4},
      {"Q", 4},
      {"2Q", 2},
      {"Y", 1},
  };
  for (const auto& [text, season] : cases) EXPECT_EQ(gluonts_season_length(Frequency::parse(text)), season) << text;
}

}  // namespace
}  // namespace tsdp::data
