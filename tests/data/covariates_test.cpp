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

class CovariatesTest : public test::TemporaryFolder {
 protected:
  [[nodiscard]] std::filesystem::path write(const std::string& text) const {
    const auto file = folder_ / "known.csv";
    std::ofstream(file) << text;
    return file;
  }
  [[nodiscard]] Covariates read(const std::string& text, const std::vector<std::string>& columns = {}) const {
    return read_covariates(write(text), Frequency::parse("1D"), columns, "config.yaml: dataset.covariates.columns");
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

TEST_F(CovariatesTest, AreTheColumnsThatAreAskedFor) {
  const auto all = read(week);
  EXPECT_EQ(all.names, (std::vector<std::string>{"holiday", "price"}));
  EXPECT_EQ(all.start, at("2024-12-23"));
  EXPECT_EQ(all.values, (std::vector<float>{0, 1.5F, 0.5F, 2, 1, 2.5F, 1, 3, 0, 3.5F}));
  EXPECT_EQ(all.rows(), 5);
  const auto turned = read(week, {"price", "holiday"});
  EXPECT_EQ(turned.names, (std::vector<std::string>{"price", "holiday"}));
  EXPECT_EQ(turned.values[1], 0.0F);
  EXPECT_EQ(Covariates().rows(), 0);
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
  EXPECT_EQ(read("day,a,b\n2024-12-23,1,2\n2024-12-24,1,\n", {"a"}).rows(), 2);
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
  expect_refused<UsageError>(head + "\n" + row1 + "\n" + row2 + "\n", {}, "found 101 columns in");
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
        EXPECT_EQ(found[3], place < 0 ? 0.0F : dataset.covariates.values[2 * row])
            << series << ", " << start << ", " << i;
        EXPECT_EQ(found[4], place < 0 ? 0.0F : dataset.covariates.values[2 * row + 1])
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

}  // namespace
}  // namespace tsdp::data
