// Forecasts of other programs, as JSON Lines.
#include "data/forecast_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/temporary_folder.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::data {
namespace {

class ForecastFile : public test::TemporaryFolder {
 protected:
  ForecastFile() {
    dataset_.name = "meters";
    dataset_.frequency = Frequency::parse("1D");
    for (const auto* id : {"a", "b"}) dataset_.series.push_back({id, day("2024-03-01"), std::vector<float>(30, 1.0F)});
  }
  static Moment day(const std::string& text) {
    Moment out = 0;
    EXPECT_TRUE(parse_moment(text, out));
    return out;
  }
  /// An entry of two steps: quantile 0.1 i is from + i, each step 10 more, and the mean is `from`.
  static std::string entry(const std::string& id, const std::string& where, double from = 0.0) {
    std::vector<std::string> levels;
    for (int i = 1; i <= 9; ++i) levels.push_back(cat("\"0.", i, "\": [", from + i, ", ", from + i + 10, "]"));
    return cat("{\"item_id\": \"", id, "\", ", where, ", \"quantiles\": {", join(levels, ", "), "}, \"mean\": [", from,
               ", ", from, "]}\n");
  }
  [[nodiscard]] std::filesystem::path write(const std::string& text) const {
    auto file = folder_ / "chronos.jsonl";
    std::ofstream(file) << text;
    return file;
  }
  void expect_refused(const std::string& text, const std::string& because) const {
    try {
      static_cast<void>(read_external(write(text), dataset_, 2));
      ADD_FAILURE() << "read: " << text;
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find(because), std::string::npos) << error.what();
    }
  }

  Dataset dataset_;
};

TEST_F(ForecastFile, NamesWindowsByPlaceOrMoment) {
  const auto found =
      read_external(write(entry("a", "\"forecast_start\": 5") + "\n" + entry("b", "\"start\": \"2024-03-08\"", 100.0) +
                          entry("c", "\"start\": \"2024-03-08\"") + entry("a", "\"forecast_start\": 30")),
                    dataset_, 2);
  EXPECT_EQ(found->name, "chronos");
  ASSERT_EQ(found->windows.size(), 3U);  // that of c, which is no series, is left out
  const auto& b = found->windows.at({1, 7});
  ASSERT_EQ(b.size(), 20U);
  EXPECT_EQ(b[0], 101.0F);
  EXPECT_EQ(b[1], 111.0F);
  EXPECT_EQ(b[2 * 8], 109.0F);
  EXPECT_EQ(b[2 * 9], 100.0F);
  EXPECT_TRUE(found->windows.contains({0, 5}));
  EXPECT_TRUE(found->windows.contains({0, 30}));
}

TEST_F(ForecastFile, SortsQuantilesThatCross) {
  auto text = entry("a", "\"forecast_start\": 5");
  text.replace(text.find("[1, 11]"), 7, "[4, 11]");
  text.replace(text.find("\"0.4\": [4, 14]"), 14, "\"0.4\": [1, 14]");
  const auto found = read_external(write(text), dataset_, 2);
  for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(found->windows.at({0, 5})[2 * i], static_cast<float>(i + 1));
}

TEST_F(ForecastFile, RefusesWhatItCannotUse) {
  expect_refused("",
                 "found no forecast of a series of meters; expected entries whose item_id is that of a series, such "
                 "as 'a'");
  expect_refused(entry("c", "\"forecast_start\": 5"), "found no forecast of a series of meters");
  expect_refused("[1]\n", "chronos.jsonl:1: found no JSON object");
  expect_refused(entry("a", "\"forecast_start\": 5") + entry("a", "\"start\": \"2024-03-06\""),
                 "chronos.jsonl:2: found a second forecast of series 'a' from place 5; expected one");
  expect_refused(entry("a", "\"start\": \"2024-03-06 12:00\""), "which is no step of series 'a'");
  expect_refused(entry("a", "\"start\": \"soon\""), "start: found 'soon'; expected a moment");
  expect_refused(entry("a", "\"begin\": 5"), "found no 'forecast_start'");
  expect_refused(entry("a", "\"forecast_start\": 5", 1e39), "found a value that single precision does not hold");
  auto text = entry("a", "\"forecast_start\": 5");
  text.replace(text.find("\"0.3\""), 5, "\"0.35\"");
  expect_refused(text, "found no quantile 0.3; expected 0.1, 0.2, … 0.9");
  text = entry("a", "\"forecast_start\": 5");
  text.replace(text.find("[1, 11]"), 7, "[1]");
  expect_refused(text, "quantile 0.1: found 1 values; expected 2, the forecast length");
}

}  // namespace
}  // namespace tsdp::data
