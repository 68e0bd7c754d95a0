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

TEST(UsualSeason, IsWholeOrOne) {
  const std::vector<std::pair<std::string, std::int64_t>> cases{
      {"s", 3600}, {"min", 1440}, {"10min", 144}, {"7min", 1}, {"h", 24}, {"2h", 12}, {"5h", 1}, {"48h", 1}, {"D", 7},
      {"7D", 52},  {"B", 5},      {"2B", 1},      {"W", 52},   {"M", 12}, {"3M", 4},  {"Q", 4},  {"2Q", 2},  {"Y", 1},
  };
  for (const auto& [text, season] : cases) EXPECT_EQ(usual_season_length(Frequency::parse(text)), season) << text;
}

}  // namespace
}  // namespace tsdp::data
