#include "data/covariates.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "support/temporary_folder.h"
#include "tsdp/base/error.h"
#include "tsdp/data/feature_store.h"

namespace tsdp::data {
namespace {

Moment at(const std::string& text) {
  Moment moment = 0;
  EXPECT_TRUE(parse_moment(text, moment)) << text;
  return moment;
}

Dataset days(const std::vector<std::string>& starts, std::size_t length, Covariates known) {
  Dataset out;
  out.frequency = Frequency::parse("1D");
  for (const auto& start : starts) out.series.push_back({"s" + start, at(start), std::vector<float>(length, 1.0F)});
  out.covariates = std::move(known);
  return out;
}

class CovariatesTest : public test::TemporaryFolder {
 protected:
  [[nodiscard]] std::filesystem::path write(const std::string& text) const {
    const auto file = folder_ / "known.csv";
    std::ofstream(file) << text;
    return file;
  }
  [[nodiscard]] Covariates read(const std::string& text, const std::vector<std::string>& columns = {}) const {
    return read_covariates(write(text), days({}, 0, {}), columns, {}, "config.yaml: dataset.covariates.columns");
  }
  template <class Kind>
  void expect_refused(const std::string& text, const std::vector<std::string>& columns,
                      const std::string& because) const {
    try {
      static_cast<void>(read(text, columns));
      ADD_FAILURE() << "read: " << text;
    } catch (const Kind& error) {
      EXPECT_NE((std::string(error.what()) + "\n").find(because), std::string::npos) << error.what();
    }
  }

  const std::string week =
      "day,holiday,price\n2024-12-23,0,1.5\n2024-12-24,0.5,2\n2024-12-25,1,2.5\n2024-12-26,1,3\n2024-12-27,0,3.5\n";
};

TEST_F(CovariatesTest, AreTheColumnsThatAreAskedFor) {
  const auto all = read(week);
  EXPECT_EQ(all.names, (std::vector<std::string>{"holiday", "price"}));
  EXPECT_EQ(all.tables.front().start, at("2024-12-23"));
  EXPECT_EQ(all.tables.front().values, (std::vector<float>{0, 1.5F, 0.5F, 2, 1, 2.5F, 1, 3, 0, 3.5F}));
  const auto turned = read(week, {"price", "holiday"});
  EXPECT_EQ(turned.names, (std::vector<std::string>{"price", "holiday"}));
  EXPECT_EQ(turned.tables.front().values[1], 0.0F);
}

TEST_F(CovariatesTest, AreKnownOfEveryStep) {
  expect_refused<UsageError>(week, {"weather"}, "dataset.covariates.columns: found 'weather', which is no column of");
  expect_refused<DataError>("day,a\n2024-12-23,1\n2024-12-24,\n2024-12-25,1\n", {},
                            "column a: found a missing value at 2024-12-24");
  expect_refused<DataError>("day,a,b\n2024-12-23,1,2\n2024-12-24,1,\n", {},
                            "column b: found a missing value at an end");
  // What may be said of series is not offered.
  expect_refused<DataError>("day,a\n2024-12-23,1\n2024-12-25,1\n", {},
                            ":3:1: found the time 2024-12-25 00:00:00; expected 2024-12-24 00:00:00, one step of 1D "
                            "after 2024-12-23 00:00:00\n");
  expect_refused<DataError>("day,a\n2024-12-23,1\n2024-12-23,1\n", {}, "one step of 1D after 2024-12-23 00:00:00\n");
  // A column that the model is not told of may have gaps.
  EXPECT_EQ(read("day,a,b\n2024-12-23,1,2\n2024-12-24,1,\n", {"a"}).tables.front().values.size(), 2U);
}

// Series may be in UTC or not, so a zone would move a covariate against them.
TEST_F(CovariatesTest, HaveTheClockOfTheSeries) {
  for (const char* zone : {"Z", "+01:00", "-0500"})
    expect_refused<DataError>(
        std::string("t,a\n2024-12-23 00:00:00") + zone + ",1\n2024-12-24 00:00:00" + zone + ",2\n", {},
        "with a zone; expected times without one");
  expect_refused<DataError>("t,a\n2024-12-23 00:00,1\n2024-12-24 00:00+01:00,2\n", {}, "with a zone");
}

TEST_F(CovariatesTest, AreAHundredAtMost) {
  std::string head = "day", row1 = "2024-12-23", row2 = "2024-12-24";
  for (int i = 0; i < 101; ++i) {
    head += ",c" + std::to_string(i);
    row1 += ",1";
    row2 += ",2";
  }
  expect_refused<UsageError>(head + "\n" + row1 + "\n" + row2 + "\n", {}, "found more than 100 covariates in");
  EXPECT_EQ(read(head + "\n" + row1 + "\n" + row2 + "\n", {"c7", "c100"}).names.size(), 2U);
}

// What is protected, given away as public, is found.
TEST_F(CovariatesTest, ThatAreASeriesAreTold) {
  auto dataset = days({"2024-12-23", "2024-12-24"}, 3, read(week));
  dataset.series[0].values = {0, 0.5F, std::numeric_limits<float>::quiet_NaN()};
  dataset.series[1].values = {2, 2.5F, 3};
  const auto same = covariate_that_is_a_series(dataset);
  ASSERT_TRUE(same.has_value());
  EXPECT_EQ(same->first, "holiday");
  dataset.series[0].values = {0, 0.5F, 7};
  EXPECT_EQ(covariate_that_is_a_series(dataset)->first, "price");
  dataset.series[1].values = {2, 2.5F, 3.1F};
  EXPECT_FALSE(covariate_that_is_a_series(dataset).has_value());
  dataset.series[0].values = {1, 1, 1};  // a constant is no one's secret by being a holiday
  EXPECT_FALSE(covariate_that_is_a_series(dataset).has_value());
}

// By the series' own start, whatever their neighbours' is; with calendar and age around them.
TEST_F(CovariatesTest, StandBesideTheirOwnStep) {
  const auto dataset = days({"2024-12-23", "2024-12-24"}, 3, read(week));
  const FeatureStore store(dataset, 2, 1);
  EXPECT_EQ(store.names(),
            (std::vector<std::string>{"day_of_week", "day_of_month", "day_of_year", "holiday", "price", "age"}));
  const auto features = static_cast<std::size_t>(store.feature_count());
  for (std::int64_t series = 0; series < 2; ++series)
    for (std::int64_t start = 0; start <= 3; ++start) {
      std::vector<float> window(static_cast<std::size_t>(store.window_length()) * features);
      const WindowIndex index{series, start};
      store.gather({&index, 1}, window.data());
      for (std::int64_t i = 0; i < 3; ++i) {
        const auto place = start - 2 + i;
        const auto row = static_cast<std::size_t>(series + place);  // of the file
        const auto* found = window.data() + static_cast<std::size_t>(i) * features;
        EXPECT_EQ(found[3], place < 0 ? 0.0F : dataset.covariates.tables.front().values[2 * row])
            << series << ", " << start << ", " << i;
        EXPECT_EQ(found[4], place < 0 ? 0.0F : dataset.covariates.tables.front().values[2 * row + 1])
            << series << ", " << start << ", " << i;
      }
    }
}

TEST_F(CovariatesTest, MustReachAsFarAsTheyAreRead) {
  EXPECT_NO_THROW(require_covariates(days({"2024-12-23"}, 3, read(week)), 2));
  const auto expect_lacking = [](const Dataset& dataset, std::int64_t beyond, const std::string& because) {
    try {
      require_covariates(dataset, beyond);
      ADD_FAILURE() << because;
    } catch (const DataError& error) {
      EXPECT_NE((std::string(error.what()) + "\n").find(because), std::string::npos) << error.what();
    }
  };
  expect_lacking(days({"2024-12-23"}, 3, read(week)), 3,
                 "none for 2024-12-28 00:00:00 of series s2024-12-23; expected one for every step from 2024-12-23 "
                 "00:00:00 to 2024-12-28");
  expect_lacking(days({"2024-12-22"}, 3, read(week)), 0, "none for 2024-12-22");
  expect_lacking(days({"2024-12-23 12:00"}, 3, read(week)), 0, "no whole number of steps of 1D apart");
  EXPECT_NO_THROW(require_covariates(days({"2024-12-22"}, 30, {}), 9));
}

/// Series "a" and "b" of three days from Christmas' eve on.
Dataset two_series(Covariates known = {}) {
  auto out = days({"2024-12-24", "2024-12-24"}, 3, std::move(known));
  out.name = "sales";
  out.series[0].id = "a";
  out.series[1].id = "b";
  return out;
}

class CovariatesOfSeries : public CovariatesTest {
 protected:
  [[nodiscard]] Covariates read(const std::string& text, const std::vector<std::string>& columns = {},
                                const ColumnNames& stated = {}) const {
    return read_covariates(write(text), two_series(), columns, stated, "config.yaml: dataset.covariates.columns");
  }
  /// What the model is told of each place of a series.
  [[nodiscard]] static std::vector<float> told(const Covariates& known, std::size_t series, std::int64_t places) {
    const auto dataset = two_series(known);
    const KnownSteps steps(dataset, series);
    std::vector<float> out;
    for (std::int64_t i = 0; i < places; ++i) out.insert(out.end(), steps.at(i).begin(), steps.at(i).end());
    return out;
  }
  void expect_refused(const std::string& text, const std::vector<std::string>& columns,
                      const std::string& because) const {
    try {
      static_cast<void>(read(text, columns));
      ADD_FAILURE() << "read: " << text;
    } catch (const Error& error) {
      EXPECT_NE((std::string(error.what()) + "\n").find(because), std::string::npos) << error.what();
    }
  }

  // In another order than the series, and with one that they do not have.
  const std::string weather =
      "region,item_id,date,temperature\nsouth,b,2024-12-23,20\nsouth,b,2024-12-24,21\nsouth,b,2024-12-25,22\n"
      "south,b,2024-12-26,23\nnorth,a,2024-12-25,-1\nnorth,a,2024-12-24,0\nnorth,a,2024-12-26,-2\n"
      "east,c,2024-12-24,7\nnorth,a,2024-12-27,-3\n";
  const std::string homes = "unique_id,size,kind\nb,2.5,flat\na,1.5,house\n";
};

TEST_F(CovariatesOfSeries, AreThoseOfTheirOwnSteps) {
  const auto known = read(weather, {"temperature"});
  EXPECT_EQ(known.names, (std::vector<std::string>{"temperature"}));
  ASSERT_TRUE(known.of_each_series());
  EXPECT_EQ(told(known, 0, 6), (std::vector<float>{0, -1, -2, -3}));  // and none where there is no row
  EXPECT_EQ(told(known, 1, 3), (std::vector<float>{21, 22, 23}));
  const auto dataset = two_series(known);
  EXPECT_NO_THROW(require_covariates(dataset, 0));
  EXPECT_THROW(require_covariates(dataset, 1), DataError);  // b has none so far ahead
}

TEST_F(CovariatesOfSeries, AreTheirsWhereTheNamesAreInAStatedColumn) {
  auto text = weather;
  text.replace(text.find("item_id"), 7, "meter");
  expect_refused(text, {}, "found ");  // the same for all series, then: the first column is no time
  EXPECT_EQ(told(read(text, {"temperature"}, {"meter", ""}), 1, 1), (std::vector<float>{21}));
}

TEST_F(CovariatesOfSeries, OfTextAreOneForEachCategory) {
  const auto known = read(weather);
  EXPECT_EQ(known.names, (std::vector<std::string>{"region=north", "region=south", "temperature"}));  // none of c's
  EXPECT_EQ(told(known, 0, 1), (std::vector<float>{1, 0, 0}));
  EXPECT_EQ(told(known, 1, 1), (std::vector<float>{0, 1, 21}));
  // A model is told of the same ones in the same order, whatever a later file has.
  const auto again = read(weather, {"temperature", "region=south", "region=west"});
  EXPECT_EQ(again.names, (std::vector<std::string>{"temperature", "region=south", "region=west"}));
  EXPECT_EQ(told(again, 0, 1), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(told(again, 1, 1), (std::vector<float>{21, 1, 0}));
  EXPECT_EQ(read(weather, {"region"}).names.size(), 2U);
  // Numbers are categories where one is named, and = may be part of a name.
  const std::string odd = "item_id,a=b,code\na,x=y,1\nb,z,2\n";
  EXPECT_EQ(told(read(odd, {"a=b=x=y", "code=2"}), 0, 1), (std::vector<float>{1, 0}));
  EXPECT_EQ(told(read(odd, {"a=b=x=y", "code=2"}), 1, 1), (std::vector<float>{0, 1}));
  EXPECT_EQ(told(read("item_id,code\na,1.0\nb,2\n", {"code=1", "code=2.0"}), 0, 1), (std::vector<float>{1, 0}));
}

TEST_F(CovariatesOfSeries, WithoutTimesHoldForAllSteps) {
  const auto known = read(homes);
  EXPECT_EQ(known.names, (std::vector<std::string>{"size", "kind=flat", "kind=house"}));
  EXPECT_EQ(told(known, 0, 2), (std::vector<float>{1.5F, 0, 1, 1.5F, 0, 1}));
  EXPECT_EQ(told(known, 1, 1), (std::vector<float>{2.5F, 1, 0}));
  EXPECT_NO_THROW(require_covariates(two_series(known), 1000));
}

TEST_F(CovariatesOfSeries, MayHaveDecimalCommas) {
  const auto known = read("unique_id;size;kind\na;1,5;1\nb;2,25;2\n", {"size", "kind=2.0"});
  EXPECT_EQ(told(known, 0, 1), (std::vector<float>{1.5F, 0}));
  EXPECT_EQ(told(known, 1, 1), (std::vector<float>{2.25F, 1}));
  EXPECT_EQ(read("unique_id;size\na;1,5\nb;2,25\n").names, (std::vector<std::string>{"size"}));
  expect_refused("unique_id;size\na;1,5\nb;2.5\n", {}, "found '2.5' with a point, below '1,5' with a comma");
}

// One table for all series that have the same rows: a region's weather takes memory once.
TEST_F(CovariatesOfSeries, AreKeptOnce) {
  const auto same = read("item_id,date,t\na,2024-12-24,1\nb,2024-12-24,1\n");
  EXPECT_EQ(same.tables.size(), 1U);
  EXPECT_EQ(read("item_id,date,t\na,2024-12-24,1\nb,2024-12-25,1\n").tables.size(), 2U);
  EXPECT_EQ(read("item_id,date,t\na,2024-12-24,1\nb,2024-12-24,2\n").tables.size(), 2U);
}

TEST_F(CovariatesOfSeries, ReachTheWindowsOfTheirSeriesAlone) {
  const FeatureStore store(two_series(read(weather, {"temperature"})), 1, 1);
  for (std::int64_t series = 0; series < 2; ++series) {
    std::vector<float> window(static_cast<std::size_t>(store.window_length() * store.feature_count()));
    const WindowIndex index{series, 1};
    store.gather({&index, 1}, window.data());
    const auto at = [&](std::size_t place) {
      return window[place * static_cast<std::size_t>(store.feature_count()) + 3];
    };
    EXPECT_EQ(at(0), series == 0 ? 0.0F : 21.0F);
    EXPECT_EQ(at(1), series == 0 ? -1.0F : 22.0F);
  }
}

TEST_F(CovariatesOfSeries, AreRefusedWithTheLine) {
  const std::string head = "item_id,date,t\n";
  expect_refused(head + "a,2024-12-24,1\n", {}, "known.csv: found no row of series 'b'; expected rows of each series");
  expect_refused(head + "a,2024-12-24,1\na,2024-12-26,1\nb,2024-12-24,1\n", {},
                 "known.csv:3:2: found the time 2024-12-26 00:00:00 of series 'a'; expected 2024-12-25 00:00:00");
  expect_refused(
      head + "a,2024-12-24,1\na,2024-12-24,1\nb,2024-12-24,1\n", {},
      "known.csv:3:2: found the time 2024-12-24 00:00:00 of series 'a' again, first seen in line 2; expected "
      "one row a step");
  expect_refused(head + "a,2024-12-24 00:00Z,1\nb,2024-12-24 00:00Z,1\n", {},
                 "known.csv:2:2: found the time '2024-12-24 00:00Z' with a zone");
  expect_refused(head + "a,2024-12-24,\nb,2024-12-24,1\n", {}, "known.csv:2:3: found nothing of series 'a'");
  expect_refused(head + "a,2024-12-24,1\nb,2024-12-24,x\n", {},
                 "known.csv:3:3: found 'x' among numbers; expected a finite number in every row, or the categories in "
                 "config.yaml: dataset.covariates.columns, as t=x");
  expect_refused(head + "a,2024-12-24,1e20\nb,2024-12-24,1\n", {}, "found a value of magnitude");
  expect_refused("item_id,size\na,1\na,1\nb,1\n", {},
                 "known.csv:3: found series 'a' again, first seen in line 2; expected one row a series, or a column of "
                 "times, named one of ds, ");
  expect_refused("item_id,date\na,2024-12-24\n", {}, "without a column beside them; expected one for each covariate");
  expect_refused(weather, {"wind"}, "dataset.covariates.columns: found 'wind', which is no column of");
  expect_refused(weather, {"wind=strong"}, "expected of: region, temperature\n");
  expect_refused("item_id,series_id,size\na,a,1\n", {}, "with the columns 'item_id' and 'series_id'");
  std::string many = "item_id,date,kind\n";
  for (int i = 0; i < 101; ++i) many += "a,2024-12-24,k" + std::to_string(i) + "\n";
  expect_refused(many, {}, "found more than 100 covariates in");
  // One name, one covariate.
  expect_refused(homes, {"kind", "kind=flat"}, "found the covariate 'kind=flat' twice in");
  expect_refused("item_id,code\na,1\nb,2\n", {"code=1", "code=2", "code=1.0"}, "found the covariate 'code=1' twice");
  expect_refused("item_id,kind,kind=x\na,x,1\nb,y,2\n", {}, "found the covariate 'kind=x' twice in");
}

TEST_F(CovariatesOfSeries, ThatAreASeriesAreTold) {
  auto dataset = two_series(read(weather, {"temperature"}));
  dataset.series[0].values = {21, 22, 23};  // what is told of another one
  const auto same = covariate_that_is_a_series(dataset);
  ASSERT_TRUE(same.has_value());
  EXPECT_EQ(*same, (std::pair<std::string, std::string>{"temperature", "a"}));
  dataset.series[0].values = {21, 22, 24};
  EXPECT_FALSE(covariate_that_is_a_series(dataset).has_value());
}

// Rows that do not meet the values are no copies of them.
TEST_F(CovariatesOfSeries, ThatEndBeforeAnotherSeriesBeginsAreNotItsCopies) {
  auto dataset = days({"2024-12-24", "2024-12-29"}, 3, {});
  dataset.series[0].values = {1, 2, 3};
  dataset.series[1].values = {4, 5, 6};
  const std::string head = "item_id,date,t\n";
  const auto reads = [&](const std::string& rows) {
    auto out = dataset;
    out.covariates = read_covariates(write(head + rows), dataset, {}, {}, "key");
    return out;
  };
  const std::string first = "s2024-12-24,2024-12-24,7\ns2024-12-24,2024-12-25,8\ns2024-12-24,2024-12-26,9\n";
  const std::string second = "s2024-12-29,2024-12-29,7\ns2024-12-29,2024-12-30,8\ns2024-12-29,2024-12-31,9\n";
  EXPECT_FALSE(covariate_that_is_a_series(reads(first + second)).has_value());
  // One that meets half of the values is.
  const std::string copied =
      "s2024-12-24,2024-12-24,7\ns2024-12-24,2024-12-25,8\ns2024-12-24,2024-12-26,9\n"
      "s2024-12-24,2024-12-27,1\ns2024-12-24,2024-12-28,1\ns2024-12-24,2024-12-29,4\n";
  EXPECT_FALSE(covariate_that_is_a_series(reads(copied + second)).has_value());
  EXPECT_TRUE(covariate_that_is_a_series(reads(copied + "s2024-12-24,2024-12-30,5\n" + second)));
}

// At the first change of a series, tables that have its value there are compared whole.
TEST_F(CovariatesOfSeries, ThatAreASeriesAreToldWhereverItChanges) {
  auto dataset =
      two_series(read("item_id,date,u,t\na,2024-12-24,9,4\na,2024-12-25,4,4\na,2024-12-26,5,5\n"
                      "b,2024-12-24,4,4\nb,2024-12-25,4,4\nb,2024-12-26,5,6\n"));
  dataset.series[1].values = {4, 4, 5};
  EXPECT_EQ(covariate_that_is_a_series(dataset), (std::pair<std::string, std::string>{"t", "b"}));
  dataset.series[1].values = {3, 4, 5};
  EXPECT_FALSE(covariate_that_is_a_series(dataset).has_value());
  dataset.series[1].values[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(covariate_that_is_a_series(dataset).has_value());
}

}  // namespace
}  // namespace tsdp::data
