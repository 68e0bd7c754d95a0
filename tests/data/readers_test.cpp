#include "tsdp/data/readers.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "tsdp/core/error.h"
#include "tsdp/core/file.h"
#include "tsdp/core/random.h"

namespace tsdp::data {
namespace {

constexpr float missing = std::numeric_limits<float>::quiet_NaN();

Moment at(const std::string& text) {
  Moment moment = 0;
  EXPECT_TRUE(parse_moment(text, moment)) << text;
  return moment;
}

std::string packed(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  std::string copy = text;
  stream.next_in = reinterpret_cast<Bytef*>(copy.data());
  stream.avail_in = static_cast<uInt>(copy.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

void expect_values(const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_TRUE(found[i] == expected[i] || (std::isnan(found[i]) && std::isnan(expected[i])))
        << "place " << i << ": " << found[i] << " is not " << expected[i];
}

class Readers : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("tsdp_readers_" + std::to_string(::getpid()) + "_" +
                                                        testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path put(const std::string& content, const std::string& name = "set.txt") const {
    std::filesystem::remove(folder_ / name);  // some file systems wait for the disk when a file is overwritten
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return folder_ / name;
  }

  static ReadOptions options(Format format, const std::string& frequency = "1h") {
    ReadOptions out{format, Frequency::parse(frequency), std::nullopt};
    if (format == Format::lstnet) out.start = at("2015-01-01");
    return out;
  }

  Dataset lstnet(const std::string& content, const std::string& frequency = "1h") const {
    return read_dataset(put(content), options(Format::lstnet, frequency));
  }
  Dataset csv(const std::string& content, const std::string& frequency = "1h") const {
    return read_dataset(put(content), options(Format::csv, frequency));
  }
  Dataset csv_long(const std::string& content, const std::string& frequency = "1h") const {
    return read_dataset(put(content), options(Format::csv_long, frequency));
  }
  Dataset jsonl(const std::string& content, const std::string& frequency = "1h") const {
    return read_dataset(put(content), options(Format::jsonl, frequency));
  }
  Dataset tsf(const std::string& content, const std::string& frequency = "10min") const {
    return read_dataset(put(content), options(Format::tsf, frequency));
  }

  /// The message of the DataError, without the folder's name.
  std::string error(const std::string& content, const ReadOptions& read_options) const {
    try {
      (void)read_dataset(put(content), read_options);
    } catch (const DataError& failure) {
      std::string what = failure.what();
      EXPECT_EQ(what.find('\n'), std::string::npos) << what;
      const std::string prefix = (folder_ / "").string();
      EXPECT_EQ(what.substr(0, prefix.size()), prefix);
      return what.substr(std::min(prefix.size(), what.size()));
    }
    return "no error";
  }
  std::string lstnet_error(const std::string& content) const { return error(content, options(Format::lstnet)); }
  std::string csv_error(const std::string& content, const std::string& frequency = "1h") const {
    return error(content, options(Format::csv, frequency));
  }
  std::string tsf_error(const std::string& content, const std::string& frequency = "10min") const {
    return error(content, options(Format::tsf, frequency));
  }

  std::string csv_long_error(const std::string& content, const std::string& frequency = "1h") const {
    return error(content, options(Format::csv_long, frequency));
  }
  std::string jsonl_error(const std::string& content) const { return error(content, options(Format::jsonl)); }

  /// Changes `text` again and again at random places; what comes of it must be read, or refused in one line that names
  /// the file.
  void expect_no_crash(const std::string& text, const std::string& bytes, const ReadOptions& read_options) const {
    RandomStream stream(SecretKey::from_seed(9), "corruption", 0);
    int read = 0;
    int refused = 0;
    const auto attempt = [&](const std::string& damaged) {
      const auto message = error(damaged, read_options);
      ++(message == "no error" ? read : refused);
      EXPECT_TRUE(message == "no error" || message.starts_with("set.txt:")) << message;
    };
    for (int trial = 0; trial < 3000; ++trial) {
      std::string damaged = text;
      for (auto changes = 1 + stream.below(3); changes > 0; --changes) {
        const auto place = static_cast<std::size_t>(stream.below(damaged.size()));
        const char byte =
            stream.below(4) == 0 ? static_cast<char>(stream.below(256)) : bytes[stream.below(bytes.size())];
        switch (stream.below(4)) {
          case 0:
            damaged[place] = byte;
            break;
          case 1:
            damaged.insert(place, 1 + stream.below(3), byte);
            break;
          case 2:
            damaged.erase(place, 1 + stream.below(5));
            break;
          default:
            damaged += damaged.substr(place, stream.below(30));
        }
        if (damaged.empty()) damaged.assign(1, ' ');
      }
      attempt(damaged);
    }
    for (std::size_t size = 0; size < text.size(); ++size) attempt(text.substr(0, size));
    // Both must have happened, or nothing was tried.
    EXPECT_GT(read, 30);
    EXPECT_GT(refused, 300);
  }

  std::filesystem::path folder_;
};

// --- LSTNet ---

TEST_F(Readers, LstnetColumnsAreSeries) {
  const auto data = lstnet("1,2\n3.5,-4e-1\n+5, 6 \n");
  EXPECT_EQ(data.name, "set");
  EXPECT_EQ(data.frequency, Frequency::parse("1h"));
  ASSERT_EQ(data.series.size(), 2U);
  EXPECT_EQ(data.series[0].id, "0");
  EXPECT_EQ(data.series[1].id, "1");
  EXPECT_EQ(data.series[1].start, at("2015-01-01"));
  expect_values(data.series[0].values, {1, 3.5, 5});
  expect_values(data.series[1].values, {2, -0.4F, 6});
}

TEST_F(Readers, ToleratesLineEndsAndByteOrderMark) {
  const std::string mark = "\xEF\xBB\xBF";
  for (const std::string& text : {std::string("1,2\n3,4"), std::string("1,2\n3,4\n"), std::string("1,2\r\n3,4\r\n"),
                                  mark + "1,2\n3,4\n", std::string("1,2\n3,4\n\n\r\n")}) {
    const auto data = lstnet(text);
    ASSERT_EQ(data.series.size(), 2U) << text;
    expect_values(data.series[0].values, {1, 3});
    expect_values(data.series[1].values, {2, 4});
  }
}

TEST_F(Readers, MissingValuesAndCutEnds) {
  const auto data = lstnet("nan,1,?\n2,,NA\n,NaN,3\n4,5,nan\nNA,6,\n");
  ASSERT_EQ(data.series.size(), 3U);
  expect_values(data.series[0].values, {2, missing, 4});
  EXPECT_EQ(data.series[0].start, at("2015-01-01 01:00"));
  expect_values(data.series[1].values, {1, missing, missing, 5, 6});
  EXPECT_EQ(data.series[1].start, at("2015-01-01"));
  expect_values(data.series[2].values, {3});
  EXPECT_EQ(data.series[2].start, at("2015-01-01 02:00"));
  // The cut follows the calendar: 2015-01-01 is a Thursday.
  EXPECT_EQ(lstnet("nan,1\nnan,1\n1,1\n", "1B").series[0].start, at("2015-01-05"));
}

TEST_F(Readers, EmptyLineOfOneColumnIsMissing) {
  expect_values(lstnet("1\n\n3\n").series.at(0).values, {1, missing, 3});
}

TEST_F(Readers, LstnetSaysWhereAndWhat) {
  EXPECT_EQ(lstnet_error("1,2\n3,abc\n"), "set.txt:2:2: found 'abc'; expected a number, or nan or empty for missing");
  EXPECT_EQ(lstnet_error("1,2\n1.2.3,4\n"),
            "set.txt:2:1: found '1.2.3'; expected a number, or nan or empty for missing");
  EXPECT_EQ(lstnet_error("1;2\n"), "set.txt:1:1: found '1;2'; expected a number, or nan or empty for missing");
  EXPECT_EQ(lstnet_error("1,0x10\n"), "set.txt:1:2: found '0x10'; expected a number, or nan or empty for missing");
  EXPECT_EQ(lstnet_error("1,+-1\n"), "set.txt:1:2: found '+-1'; expected a number, or nan or empty for missing");
  EXPECT_EQ(lstnet_error("1,-nan\n"), "set.txt:1:2: found '-nan'; expected a number, or nan or empty for missing");
  EXPECT_EQ(lstnet_error("1,nan(1)\n"), "set.txt:1:2: found 'nan(1)'; expected a number, or nan or empty for missing");
  EXPECT_EQ(lstnet_error("1,2\n3\n"), "set.txt:2:2: found 1 columns; expected 2, as in line 1");
  EXPECT_EQ(lstnet_error("1,2\n3,4\n5,6,7\n"), "set.txt:3:3: found 3 columns; expected 2, as in line 1");
  EXPECT_EQ(lstnet_error("1,2\n\n3,4\n"), "set.txt:2:1: found an empty line; expected 2 comma-separated values");
  EXPECT_EQ(lstnet_error("1,nan\n2,\n"),
            "set.txt: found no value in column 2 (series '1'); expected at least one that is not missing");
}

TEST_F(Readers, InfiniteAndTooLargeValuesAreRefused) {
  for (const char* text : {"inf", "-inf", "Infinity", "+inf"})
    EXPECT_EQ(lstnet_error(std::string("1,2\n1,") + text + "\n"),
              std::string("set.txt:2:2: found '") + text + "'; expected a finite number, or nan or empty for missing");
  for (const char* text : {"1e39", "-1e39", "1e400", "-1e999"})
    EXPECT_EQ(lstnet_error(std::string(text) + ",1\n"),
              std::string("set.txt:1:1: found '") + text +
                  "'; expected a number of magnitude at most 3.4e38, or nan or empty for missing");
  expect_values(lstnet("3.4028234e38,1e-400,-1e-60\n").series.at(0).values, {std::numeric_limits<float>::max()});
  expect_values(lstnet("3.4028234e38,1e-400,-1e-60\n").series.at(1).values, {0});
  // What rounds to the largest number is no more than it.
  expect_values(lstnet("3.4028235e+38\n").series.at(0).values, {std::numeric_limits<float>::max()});
  expect_values(lstnet("-3.40282356e38\n").series.at(0).values, {-std::numeric_limits<float>::max()});
  EXPECT_NE(lstnet_error("3.40282357e38\n"), "no error");
}

TEST_F(Readers, FileAsAWhole) {
  for (const char* text : {"", "\n", " \r\n\n", "\xEF\xBB\xBF"})
    EXPECT_EQ(lstnet_error(text), "set.txt: found an empty file; expected rows of comma-separated values");
  EXPECT_EQ(lstnet_error(packed("")), "set.txt: found an empty file; expected rows of comma-separated values");
  EXPECT_EQ(lstnet_error(std::string("1,\0\x01\xff\n", 6)),
            "set.txt:1:2: found '\\x00\\x01\\xff'; expected a number, or nan or empty for missing");
  EXPECT_EQ(lstnet_error(std::string(100, 'x')),
            "set.txt:1:1: found '" + std::string(40, 'x') + "...'; expected a number, or nan or empty for missing");
  try {
    (void)read_dataset(folder_ / "absent.txt", options(Format::lstnet));
    FAIL();
  } catch (const DataError& failure) {
    EXPECT_NE(std::string(failure.what()).find("absent.txt: cannot be read (No such file or directory)"),
              std::string::npos)
        << failure.what();
  }
  try {
    (void)read_dataset(folder_, options(Format::lstnet));
    FAIL();
  } catch (const DataError& failure) {
    EXPECT_NE(std::string(failure.what()).find("cannot be read (Is a directory)"), std::string::npos) << failure.what();
  }
}

TEST_F(Readers, LstnetNeedsAStart) {
  try {
    (void)read_dataset(put("1\n"), {Format::lstnet, Frequency::parse("1h"), std::nullopt});
    FAIL();
  } catch (const UsageError& failure) {
    EXPECT_NE(std::string(failure.what()).find("set.txt: no start is given"), std::string::npos) << failure.what();
  }
}

// --- gzip ---

std::string many_rows(std::size_t rows) {
  std::string text;
  for (std::size_t i = 0; i < rows; ++i) text += std::to_string(i) + "," + std::to_string(i * i % 977) + "\n";
  return text;
}

TEST_F(Readers, GzipIsToldByContent) {
  const std::string text = many_rows(60000);
  for (const auto& content : {text, packed(text), packed(text.substr(0, 1001)) + packed(text.substr(1001))}) {
    const auto data = lstnet(content);
    ASSERT_EQ(data.series.at(1).values.size(), 60000U);
    EXPECT_EQ(data.series[0].values.back(), 59999);
  }
  EXPECT_EQ(read_dataset(put(packed("1\n"), "a.b.txt"), options(Format::lstnet)).name, "a");
}

TEST_F(Readers, LinesMayBeLongerThanBuffers) {
  std::string text;
  for (int i = 0; i < 300000; ++i) text += std::to_string(i) + (i < 299999 ? "," : "\n");
  const auto data = lstnet(packed(text + text));
  ASSERT_EQ(data.series.size(), 300000U);
  expect_values(data.series[299999].values, {299999, 299999});
}

TEST_F(Readers, EveryTruncationOfGzipIsFound) {
  const std::string whole = packed(many_rows(40));
  ASSERT_EQ(lstnet(whole).series.size(), 2U);
  for (std::size_t size = 2; size < whole.size(); ++size)
    EXPECT_NE(lstnet_error(whole.substr(0, size)).find("expected a complete gzip file"), std::string::npos) << size;
  EXPECT_NE(lstnet_error(whole + "rubbish").find("found damaged gzip data after line"), std::string::npos);
}

TEST_F(Readers, EveryFlippedByteOfGzipIsFoundOrHarmless) {
  const std::string text = many_rows(40);
  const std::string whole = packed(text);
  const auto right = lstnet(whole).series;
  for (std::size_t i = 2; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x55);
    const bool header_note = i >= 4 && i < 10;  // time, compressor's flags, system: no part of the content
    if (header_note) {
      EXPECT_EQ(lstnet(damaged).series[1].values, right[1].values);
    } else {
      EXPECT_NE(lstnet_error(damaged), "no error") << i;
    }
  }
}

TEST_F(Readers, EveryFlippedByteOfTextIsReadOrNamed) {
  const std::string text = "1.5,22,nan\n4,-5e1,6\n";
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (const char byte : {'\0', '\n', '\r', ',', '-', '.', 'e', '"', ' ', '7', 'x', '\xff'}) {
      std::string damaged = text;
      damaged[i] = byte;
      const auto message = lstnet_error(damaged);
      EXPECT_TRUE(message == "no error" || message.starts_with("set.txt:1:") || message.starts_with("set.txt:2:") ||
                  message.starts_with("set.txt:3:") || message.starts_with("set.txt: found no value in column "))
          << message;
    }
  }
}

// --- CSV ---

TEST_F(Readers, CsvHasNamesAndTimes) {
  const auto data =
      csv("time,north,\"south, \"\"old\"\"\"\n"
          "2016-02-28 23:00:00,1,nan\n"
          "\"2016-02-29 00:00\",2,\n"
          "2016-02-29T01:00:00,,7\r\n");
  ASSERT_EQ(data.series.size(), 2U);
  EXPECT_EQ(data.series[0].id, "north");
  EXPECT_EQ(data.series[1].id, "south, \"old\"");
  expect_values(data.series[0].values, {1, 2});
  EXPECT_EQ(data.series[0].start, at("2016-02-28 23:00"));
  expect_values(data.series[1].values, {7});
  EXPECT_EQ(data.series[1].start, at("2016-02-29 01:00"));
}

TEST_F(Readers, CsvFollowsTheCalendar) {
  EXPECT_EQ(csv("t,a\n2015-01-01,1\n2015-01-02,2\n2015-01-05,3\n", "B").series[0].values.size(), 3U);
  EXPECT_EQ(csv("t,a\n2016-01-31,1\n2016-02-29,2\n2016-03-31,3\n", "M").series[0].values.size(), 3U);
  EXPECT_EQ(csv("t,a\n2015-02-28,1\n2015-03-31,2\n2015-04-30,3\n", "M").series[0].values.size(), 3U);
  EXPECT_EQ(csv("t,a\n2015-02-28,1\n2015-03-28,2\n2015-04-28,3\n", "M").series[0].values.size(), 3U);
  EXPECT_EQ(csv("t,a\n2016-02-29,1\n2017-02-28,2\n", "Y").series[0].values.size(), 2U);
  EXPECT_EQ(csv_error("t,a\n2015-01-01,1\n2015-01-02,2\n2015-01-03,3\n", "B"),
            "set.txt:4:1: found the time 2015-01-03 00:00:00; expected 2015-01-05 00:00:00, one step of 1B after "
            "2015-01-02 00:00:00");
  EXPECT_EQ(csv_error("t,a\n2015-01-30,1\n2015-03-31,2\n", "M"),
            "set.txt:3:1: found the time 2015-03-31 00:00:00; expected 2015-02-28 00:00:00, one step of 1M after "
            "2015-01-30 00:00:00");
}

TEST_F(Readers, CsvSaysWhereAndWhat) {
  EXPECT_EQ(csv_error("t,a\n2015-01-01 00:00,1\n2015-01-01 01:00,2\n2015-01-01 03:00,3\n"),
            "set.txt:4:1: found the time 2015-01-01 03:00:00; expected 2015-01-01 02:00:00, one step of 1h after "
            "2015-01-01 01:00:00");
  EXPECT_EQ(csv_error("t,a\n2015-01-01 00:00,1\n2015-01-01 00:00,2\n"),
            "set.txt:3:1: found the time 2015-01-01 00:00:00; expected 2015-01-01 01:00:00, one step of 1h after "
            "2015-01-01 00:00:00");
  EXPECT_EQ(csv_error("t,a\n01/02/2015,1\n"),
            "set.txt:2:1: found '01/02/2015'; expected a time stamp such as 2015-01-31 or 2015-01-31 13:00:00");
  EXPECT_EQ(csv_error("t,a,b,a\n"),
            "set.txt:1:4: found the column 'a' again, first seen in column 2; expected each name once");
  EXPECT_EQ(csv_error("t,a,,b\n"), "set.txt:1:3: found an empty column name; expected the name of a series");
  EXPECT_EQ(csv_error("t;a\n"),
            "set.txt:1:1: found the header 't;a'; expected a time column and at least one series, separated by commas");
  EXPECT_EQ(csv_error("t,\"a\n"), "set.txt:1:2: found '\"a' without a closing quote; expected a column name");
  EXPECT_EQ(csv_error("t,\"a\"b,c\n"), "set.txt:1:2: found '\"a\"b'; expected a comma after the closing quote");
  EXPECT_EQ(csv_error("t,a,b\n2015-01-01,1,x\n"),
            "set.txt:2:3: found 'x'; expected a number, or nan or empty for missing");
  EXPECT_EQ(csv_error("t,a,b\n2015-01-01,1\n"), "set.txt:2:3: found 2 columns; expected 3, as in the header");
  EXPECT_EQ(csv_error("t,a,b\n2015-01-01,1,2,3\n"), "set.txt:2:4: found 4 columns; expected 3, as in the header");
  EXPECT_EQ(csv_error("t,a,b\n2015-01-01\n"), "set.txt:2:2: found 1 columns; expected 3, as in the header");
  EXPECT_EQ(csv_error("t,a\n2015-01-01,1\n\n2015-01-01 01:00,2\n"),
            "set.txt:3:1: found an empty line; expected a time stamp and 1 values");
  EXPECT_EQ(csv_error("t,a\n"), "set.txt: found no row after the header; expected rows of a time stamp and values");
  EXPECT_EQ(csv_error(""), "set.txt: found an empty file; expected a header, then rows of a time stamp and values");
  EXPECT_EQ(csv_error("t,a,b\n2015-01-01,1,\n"),
            "set.txt: found no value in column 3 (series 'b'); expected at least one that is not missing");
}

// --- tsf ---

// The text that GluonTS's own reader was asked about.
constexpr const char* demo =
    "# comment line\n@relation demo\n@attribute series_name string\n@attribute start_timestamp date\n"
    "@frequency 10_minutes\n@missing true\n@equallength false\n@data\n"
    "T1:2006-01-01 00-00-01:0,0.5,?,1.25,1e-3\nT2:2006-01-02 12-30-00:3,?,?\n";

TEST_F(Readers, TsfAsGluontsReadsIt) {
  const auto data = tsf(demo);
  EXPECT_EQ(data.name, "demo");
  EXPECT_EQ(data.frequency, Frequency::parse("10min"));
  ASSERT_EQ(data.series.size(), 2U);
  EXPECT_EQ(data.series[0].id, "T1");
  EXPECT_EQ(moment_text(data.series[0].start), "2006-01-01 00:00:00");
  expect_values(data.series[0].values, {0, 0.5, missing, 1.25, 0.001F});
  EXPECT_EQ(data.series[1].id, "T2");
  EXPECT_EQ(moment_text(data.series[1].start), "2006-01-02 12:30:00");
  expect_values(data.series[1].values, {3});
}

std::string header(const std::string& frequency) {
  return "@attribute series_name string\n@attribute start_timestamp date\n@frequency " + frequency + "\n@data\n";
}

TEST_F(Readers, TsfFrequencies) {
  const std::vector<std::array<const char*, 2>> cases{
      {"10_minutes", "10T"}, {"half_hourly", "30min"}, {"hourly", "1h"},    {"hourly", "60min"}, {"daily", "1D"},
      {"weekly", "1W"},      {"weekly", "7D"},         {"monthly", "1M"},   {"quarterly", "1Q"}, {"quarterly", "3M"},
      {"yearly", "1Y"},      {"minutely", "1min"},     {"4_seconds", "4s"}, {"2_months", "2M"},  {"2_years", "8Q"},
      {"HOURLY", "1h"},      {"6_hours", "6h"},        {"2_weeks", "14D"},
  };
  for (const auto& [name, stated] : cases)
    EXPECT_EQ(tsf(header(name) + "a:2006-01-01 00-00-00:1\n", stated).series.size(), 1U) << name;
  EXPECT_EQ(tsf_error(header("hourly")),
            "set.txt:3:2: found the frequency 'hourly' (1h); expected the stated frequency 10min");
  const auto message = tsf_error(header("hourli"));
  EXPECT_TRUE(
      message.starts_with("set.txt:3:2: found the frequency 'hourli', of the known ones nearest to hourly; "
                          "expected one of 4_seconds, minutely"))
      << message;
  for (const char* name : {"0_minutes", "_minutes", "10_", "10", "99999999_minutes", "-1_minutes"})
    EXPECT_TRUE(tsf_error(header(name)).starts_with("set.txt:3:2: found the frequency ")) << name;
  // Seconds count where the step is one of seconds only.
  EXPECT_EQ(tsf(header("4_seconds") + "a:2006-01-01 00-00-01:1\n", "4s").series[0].start, at("2006-01-01 00:00:01"));
  EXPECT_EQ(tsf(header("daily") + "a:1969-12-31 00-00-59:1\n", "1D").series[0].start, at("1969-12-31"));
}

TEST_F(Readers, TsfToleratesWhatItNeedNotKnow) {
  const auto data =
      tsf("\xEF\xBB\xBF# note\r\n\r\n@Relation x y\r\n@unknown a b c\r\n@attribute city string\r\n"
          "@attribute number numeric\r\n@attribute start_timestamp date\r\n@horizon 60\r\n@missing false\r\n@data\r\n"
          "K\xF6ln:7:2006-01-01 00-00-00: ?,1, 2,?\r\n\r\n# note\r\nMalm\xC3\xB6:-8:2006-01-01:1\r\n");
  EXPECT_EQ(data.name, "x y");
  ASSERT_EQ(data.series.size(), 2U);
  EXPECT_EQ(data.series[0].id, "K\xC3\xB6ln");  // Latin-1 in the file, UTF-8 here
  EXPECT_EQ(data.series[0].start, at("2006-01-01 00:10"));
  expect_values(data.series[0].values, {1, 2});
  EXPECT_EQ(data.series[1].id, "Malm\xC3\xB6");
}

TEST_F(Readers, TsfSaysWhereAndWhat) {
  const std::string top = header("10_minutes");
  EXPECT_EQ(tsf_error(top + "a:2006-01-01 00-00-00:1\nb:2006-01-01 00-00-00:1,x,3\n"),
            "set.txt:6:4: found 'x' as value 2 of series 'b'; expected a number, or nan or empty for missing");
  EXPECT_EQ(tsf_error(top + "a:2006-01-01 00-00-00:inf\n"),
            "set.txt:5:3: found 'inf' as value 1 of series 'a'; expected a finite number, or nan or empty for missing");
  EXPECT_EQ(tsf_error(top + "a:1,2,3\n"),
            "set.txt:5:2: found 2 parts separated by ':'; expected 3: 2 attributes and the values");
  EXPECT_EQ(tsf_error(top + "a:2006-01-01 00:00:00:1\n"),
            "set.txt:5:3: found 5 parts separated by ':'; expected 3: 2 attributes and the values");
  EXPECT_EQ(tsf_error(top + "a:2006-02-30 00-00-00:1\n"),
            "set.txt:5:2: found '2006-02-30 00-00-00'; expected a date such as 2006-01-31 13-00-00");
  EXPECT_EQ(tsf_error(top + "a:2006-01-01 00-00-00:?,?\n"),
            "set.txt:5:3: found no value in series 'a'; expected at least one that is not missing");
  EXPECT_EQ(tsf_error(top + "a:2006-01-01 00-00-00:\n"),
            "set.txt:5:3: found no value in series 'a'; expected at least one that is not missing");
  EXPECT_EQ(tsf_error(top), "set.txt: found no series after @data; expected one a line");
  EXPECT_EQ(tsf_error(""), "set.txt: found an empty file; expected header lines that start with @");
  EXPECT_EQ(tsf_error("@relation x\n"), "set.txt: found no @data line in 1 lines; expected one after the header");
  EXPECT_EQ(tsf_error("1,2\n"), "set.txt:1:1: found '1,2'; expected a header line that starts with @");
  EXPECT_EQ(tsf_error("@attribute a\n"), "set.txt:1:3: found '@attribute a'; expected @attribute NAME TYPE");
  EXPECT_EQ(tsf_error("@attribute a float\n"), "set.txt:1:3: found the type 'float'; expected string, numeric or date");
  EXPECT_EQ(tsf_error("@attribute a date\n@attribute a date\n"),
            "set.txt:2:2: found the attribute 'a' again; expected each name once");
  EXPECT_EQ(tsf_error("@horizon soon\n"), "set.txt:1:2: found the horizon 'soon'; expected a whole number from 1");
  EXPECT_EQ(tsf_error("@missing maybe\n"), "set.txt:1:2: found 'maybe'; expected true or false");
  EXPECT_EQ(tsf_error("@attribute n numeric\n@attribute d date\n@data\n1.5:2006-01-01 00-00-00:1\n"),
            "set.txt:4:1: found '1.5'; expected a whole number for the attribute 'n'");
  EXPECT_EQ(tsf_error("@attribute n string\n@data\na:1\n"),
            "set.txt: found no attribute of type date; expected '@attribute start_timestamp date', or a stated start");
}

TEST_F(Readers, TsfWithoutDatesTakesTheStatedStart) {
  auto stated = options(Format::tsf);
  stated.start = at("2020-02-29");
  const auto data = read_dataset(put("@data\n?,1,2\n3\n"), stated);
  ASSERT_EQ(data.series.size(), 2U);
  EXPECT_EQ(data.series[0].id, "0");
  EXPECT_EQ(data.series[0].start, at("2020-02-29 01:00"));
  EXPECT_EQ(data.series[1].id, "1");
  EXPECT_EQ(data.name, "set");
}

TEST_F(Readers, EveryFlippedByteOfTsfIsReadOrNamed) {
  const std::string text = demo;
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (const char byte : {'\0', '\n', ':', ',', '@', '7'}) {
      std::string damaged = text;
      damaged[i] = byte;
      const auto message = tsf_error(damaged);
      EXPECT_TRUE(message == "no error" || message.starts_with("set.txt:")) << message;
    }
  }
}

TEST_F(Readers, TsfSaysItsFrequency) {
  EXPECT_EQ(tsf_frequency(put(header("half_hourly"))), Frequency::parse("30min"));
  EXPECT_EQ(tsf_frequency(put("@relation x\n@data\n1\n")), std::nullopt);
  EXPECT_THROW((void)tsf_frequency(put(header("hourli"))), DataError);
  EXPECT_THROW((void)tsf_frequency(put("1,2\n")), DataError);
}

TEST_F(Readers, DamagedTsfIsReadOrNamed) {
  expect_no_crash(demo, "\n:,?@#-_ \r\t0123456789.einf", options(Format::tsf, "10min"));
}

TEST_F(Readers, DamagedCsvIsReadOrNamed) {
  expect_no_crash("time,a,\"b, c\"\n2016-02-28 23:00:00,1,nan\n2016-02-29 00:00,2,\n\"2016-02-29T01:00:00\",-3e2,7\n",
                  "\n\",-: \r\t0123456789.einf", options(Format::csv));
}

// --- long CSV ---

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

TEST_F(Readers, CsvLongFollowsTheCalendar) {
  expect_values(csv_long("unique_id,ds,y\na,2015-01-02,1\na,2015-01-05,2\na,2015-01-07,4\n", "B").series[0].values,
                {1, 2, missing, 4});
  expect_values(csv_long("unique_id,ds,y\na,2015-02-28,1\na,2015-03-31,2\na,2015-05-31,4\n", "M").series[0].values,
                {1, 2, missing, 4});
  expect_values(csv_long("unique_id,ds,y\na,2015-01-01,1\na,2016-01-01,2\n", "Q").series[0].values,
                {1, missing, missing, missing, 2});
  EXPECT_EQ(
      csv_long_error("unique_id,ds,y\na,2015-01-02,1\na,2015-01-03,2\n", "B"),
      "set.txt:3:2: found the time 2015-01-03 00:00:00 of series 'a'; expected whole steps of 1B after its first time, "
      "2015-01-02 00:00:00 in line 2");
}

TEST_F(Readers, CsvLongSaysWhereAndWhat) {
  const std::string top = "unique_id,ds,y\n";
  EXPECT_EQ(csv_long_error(""), "set.txt: found an empty file; expected a header with the columns unique_id, ds and y");
  EXPECT_EQ(
      csv_long_error("unique_id,time,y\n"),
      "set.txt:1:1: found the header 'unique_id,time,y' without a column ds; expected the columns unique_id, ds (time "
      "stamp) and y (value)");
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
            "set.txt:3:1: found an empty line; expected 3 fields");
  EXPECT_EQ(
      csv_long_error(top + "a,2015-01-01 01:00,1\nb,2015-01-01,1\na,2015-01-01,2\na,2015-01-01 01:00,3\n"),
      "set.txt:5:2: found the time 2015-01-01 01:00:00 of series 'a' again, first seen in line 2; expected each time "
      "once");
  EXPECT_EQ(
      csv_long_error(top + "a,2015-01-01 01:00,1\na,2015-01-01 00:30,2\n"),
      "set.txt:2:2: found the time 2015-01-01 01:00:00 of series 'a'; expected whole steps of 1h after its first time, "
      "2015-01-01 00:30:00 in line 3");
  EXPECT_EQ(csv_long_error(top + "a,2015-01-01,1\nb,2015-01-01,\n"),
            "set.txt:3: found no value of series 'b'; expected at least one that is not missing");
  // A wrong year must not ask for all memory.
  EXPECT_EQ(
      csv_long_error(top + "a,0015-01-01,1\na,2015-01-01,1\n"),
      "set.txt:3:2: found the time 2015-01-01 00:00:00 of series 'a', 17531640 steps after its first time, 0015-01-01 "
      "00:00:00 in line 2, with 2 rows in all; expected fewer than 1002000 steps");
}

TEST_F(Readers, DamagedCsvLongIsReadOrNamed) {
  expect_no_crash(
      "unique_id,ds,y\na,2015-01-01 00:00,1\n\"b, c\",2015-01-01 00:00,-2e3\na,2015-01-01 01:00,nan\na,2015-01-01 "
      "03:00,4\n\"b, c\",2015-01-01 01:00:00,5.5\n",
      "\n\",-: \r\t0123456789.einf", options(Format::csv_long));
}

// --- JSON Lines ---

TEST_F(Readers, JsonlIsGluontsForm) {
  const auto data = jsonl(
      "{\"start\": \"2015-01-01 05:00\", \"target\": [1.5, \"Nan\", 0.10000000149011612], \"item_id\": \"x\"}\n"
      "\n"
      "  "
      "{\"item_id\":17,\"feat_static_cat\":[0,[1]],\"target\":[null,1,2,\"NaN\",-3e-2,\"nan\",NaN,18446744073709551615,"
      "NaN],"
      "\"start\":\"2015-01-01T00:00:00.000000\",\"other\":{\"target\":[\"a\"],\"start\":1,\"NaN \\\" NaN\":true}}\r\n"
      "{\"start\":\"2015-01-01\",\"target\":[1]}");
  EXPECT_EQ(data.name, "set");
  ASSERT_EQ(data.series.size(), 3U);
  EXPECT_EQ(data.series[0].id, "x");
  EXPECT_EQ(data.series[0].start, at("2015-01-01 05:00"));
  expect_values(data.series[0].values, {1.5, missing, 0.1F});
  EXPECT_EQ(data.series[1].id, "17");
  EXPECT_EQ(data.series[1].start, at("2015-01-01 01:00"));
  expect_values(data.series[1].values, {1, 2, missing, -0.03F, missing, missing, 1.8446744e19F});
  EXPECT_EQ(data.series[2].id, "2");
  // Python's NaN within a text stays what it is.
  EXPECT_EQ(jsonl("{\"item_id\":\"a\\\\\",\"start\":\"2015-01-01\",\"target\":[1,NaN,1]}").series[0].id, "a\\");
  EXPECT_EQ(jsonl("{\"item_id\":\"\\\"NaN\",\"start\":\"2015-01-01\",\"target\":[1,NaN,1]}").series[0].id, "\"NaN");
  EXPECT_EQ(jsonl(packed("{\"item_id\":\"K\\u00f6ln\",\"start\":\"2015-01-01\",\"target\":[1]}")).series[0].id,
            "K\xC3\xB6ln");
}

TEST_F(Readers, JsonlStartsMayBePeriods) {
  const auto start = [&](const std::string& text) {
    return moment_text(jsonl("{\"start\":\"" + text + "\",\"target\":[1]}").series[0].start);
  };
  EXPECT_EQ(start("2015"), "2015-01-01 00:00:00");
  EXPECT_EQ(start("2015-03"), "2015-03-01 00:00:00");
  EXPECT_EQ(start("2015Q3"), "2015-07-01 00:00:00");
  EXPECT_EQ(start("2014-12-29/2015-01-04"), "2014-12-29 00:00:00");
  auto stated = options(Format::jsonl);
  stated.start = at("2020-02-29");
  EXPECT_EQ(read_dataset(put("{\"target\":[null,1]}"), stated).series[0].start, at("2020-02-29 01:00"));
}

TEST_F(Readers, JsonlSaysWhereAndWhat) {
  const std::string good = "{\"start\":\"2015-01-01\",\"target\":[1]}\n";
  const std::string line = "; expected one JSON object a line, with \"start\" and \"target\"";
  const auto with = [&](const std::string& rest) {
    return jsonl_error(good + "{\"start\":\"2015-01-01\"," + rest + "}\n");
  };
  EXPECT_EQ(jsonl_error(""), "set.txt: found an empty file" + line);
  EXPECT_EQ(jsonl_error("\n \n"), "set.txt: found an empty file" + line);
  EXPECT_EQ(jsonl_error(good + "{\"start\":\"2015-01-01\"\n"),
            "set.txt:2: found broken JSON near '\"2015-01-01\"'" + line);
  EXPECT_EQ(jsonl_error(good + good.substr(0, good.size() - 1) + "]\n"),
            "set.txt:2: found broken JSON near '1]}]'" + line);
  EXPECT_EQ(jsonl_error("x\n"), "set.txt:1: found broken JSON near 'x'" + line);
  EXPECT_EQ(jsonl_error("[1,2]\n"), "set.txt:1: found a list" + line);
  EXPECT_EQ(jsonl_error("1\n"), "set.txt:1: found the number '1'" + line);
  EXPECT_EQ(jsonl_error("{\"start\":\"2015-01-01\"}\n"),
            "set.txt:1: found no \"target\" in '{\"start\":\"2015-01-01\"}'" + line);
  EXPECT_EQ(jsonl_error("{\"target\":[1]}\n"), "set.txt:1: found no \"start\" in '{\"target\":[1]}'" + line);
  EXPECT_EQ(with("\"target\":[1,true]"),
            "set.txt:2: found true as value 2 of \"target\"; expected a number, or null or \"NaN\" for missing");
  EXPECT_EQ(with("\"target\":[[1],[2]]"),
            "set.txt:2: found a list as value 1 of \"target\"; expected a number, or null or \"NaN\" for missing");
  EXPECT_EQ(
      with("\"target\":[\"one\"]"),
      "set.txt:2: found the text 'one' as value 1 of \"target\"; expected a number, or null or \"NaN\" for missing");
  for (const char* number : {"1e39", "-1e39", "1e999"})
    EXPECT_EQ(with(std::string("\"target\":[5,") + number + "]"),
              std::string("set.txt:2: found '") + number +
                  "' as value 2 of \"target\"; expected a number of magnitude at most 3.4e38, or null or \"NaN\" for "
                  "missing");
  EXPECT_EQ(with("\"target\":[Infinity]").substr(0, 29), "set.txt:2: found broken JSON ");
  EXPECT_EQ(with("\"target\":3"), "set.txt:2: found the number '3' as \"target\"; expected a list of numbers");
  EXPECT_EQ(with("\"target\":{}"), "set.txt:2: found an object as \"target\"; expected a list of numbers");
  EXPECT_EQ(with("\"target\":[1],\"target\":[2]"), "set.txt:2: found the key 'target' again; expected it once");
  EXPECT_EQ(with("\"target\":[1],\"start\":\"2015-01-01\""),
            "set.txt:2: found the key 'start' again; expected it once");
  EXPECT_EQ(with("\"target\":[1],\"item_id\":null"), "set.txt:2: found null as \"item_id\"; expected text or a number");
  EXPECT_EQ(with("\"target\":[]"),
            "set.txt:2: found no value in series '1'; expected at least one that is not missing");
  EXPECT_EQ(with("\"item_id\":\"b\",\"target\":[null,\"nan\"]"),
            "set.txt:2: found no value in series 'b'; expected at least one that is not missing");
  for (const char* start : {"", "yesterday", "2015-02-30", "2015Q5", "2015-01-01 00:00:00.5", "2015-13", "/2015-01-01"})
    EXPECT_EQ(
        jsonl_error(std::string("{\"target\":[1],\"start\":\"") + start + "\"}"),
        std::string("set.txt:1: found the start '") + start + "'; expected a moment such as \"2015-01-31 13:00:00\"");
  EXPECT_EQ(jsonl_error("{\"target\":[1],\"start\":5}"),
            "set.txt:1: found the number '5' as \"start\"; expected a moment such as \"2015-01-31 13:00:00\"");
  EXPECT_EQ(jsonl_error("{\"item_id\":\"K\xF6ln\",\"start\":\"2015-01-01\",\"target\":[1]}").substr(0, 28),
            "set.txt:1: found broken JSON");
}

TEST_F(Readers, DeepJsonIsNoTrouble) {
  const std::string deep(200000, '[');
  EXPECT_EQ(jsonl_error("{\"x\":" + deep).substr(0, 28), "set.txt:1: found broken JSON");
  const std::string closed = deep + std::string(200000, ']');
  EXPECT_EQ(jsonl("{\"x\":" + closed + ",\"start\":\"2015-01-01\",\"target\":[1]}").series.size(), 1U);
}

TEST_F(Readers, DamagedJsonlIsReadOrNamed) {
  expect_no_crash(
      "{\"start\": \"2015-01-01 05:00\", \"target\": [1.5, \"Nan\", null, -2e3], \"item_id\": \"x\"}\n"
      "{\"item_id\": 17, \"x\": {\"y\": [true, NaN]}, \"target\": [3, NaN, 4], \"start\": \"2015-01-01\"}\n",
      "\n\",-:[]{}\\ \r\t0123456789.eNalntrufs", options(Format::jsonl));
}

// --- names of formats ---

TEST_F(Readers, FormatsByNameAndEnding) {
  for (const auto& text : format_names()) EXPECT_EQ(name(format_named(text)), text);
  EXPECT_EQ(format_names().size(), 5U);
  try {
    (void)format_named("parquet");
    FAIL();
  } catch (const UsageError& failure) {
    EXPECT_STREQ(failure.what(), "found the format 'parquet'; expected one of lstnet, tsf, csv, csv_long, jsonl");
  }
  EXPECT_EQ(format_by_ending("a/b.x/c.txt"), Format::lstnet);
  EXPECT_EQ(format_by_ending("c.txt.gz"), Format::lstnet);
  EXPECT_EQ(format_by_ending("c.tsf.gz"), Format::tsf);
  EXPECT_EQ(format_by_ending("c.csv"), Format::csv);
  EXPECT_EQ(format_by_ending("c.jsonl"), Format::jsonl);
  EXPECT_EQ(format_by_ending("data.json.gz"), Format::jsonl);
  for (const char* unknown : {"c", "c.gz", "c.parquet", "txt", ".gz", "c.tsf.bz2"})
    EXPECT_EQ(format_by_ending(unknown), std::nullopt) << unknown;
  EXPECT_EQ(format_of_file(put("t,a,b\n", "wide.csv")), Format::csv);
  EXPECT_EQ(format_of_file(put(packed("y,ds,x,\"unique_id\"\n"), "long.csv.gz")), Format::csv_long);
  EXPECT_EQ(format_of_file(put("", "empty.csv")), Format::csv);
  EXPECT_EQ(format_of_file("not there.tsf"), Format::tsf);
  EXPECT_THROW((void)format_of_file(folder_ / "absent.csv"), DataError);
}

// --- the shipped files ---

std::filesystem::path shipped(const char* name) { return std::filesystem::path(TSDP_SOURCE_DIR) / "data" / name; }

TEST(ShippedData, ExchangeRate) {
  const auto data =
      read_dataset(shipped("exchange_rate.txt.gz"), {Format::lstnet, Frequency::parse("1B"), at("1990-01-01")});
  EXPECT_EQ(data.name, "exchange_rate");
  ASSERT_EQ(data.series.size(), 8U);
  for (const auto& series : data.series) ASSERT_EQ(series.values.size(), 7588U);
  EXPECT_EQ(data.series[0].values[0], 0.7855F);
  EXPECT_EQ(data.series[0].values[6070], 1.025347F);
  EXPECT_EQ(data.series[0].values[6071], 1.026905F);
  EXPECT_EQ(data.series[7].values[7587], 0.690942F);
}

TEST(ShippedData, GefcomHasEightMissingWeeks) {
  const auto data =
      read_dataset(shipped("gefcom2012_load.txt.gz"), {Format::lstnet, Frequency::parse("1h"), at("2004-01-01")});
  ASSERT_EQ(data.series.size(), 20U);
  for (const auto& series : data.series) {
    ASSERT_EQ(series.values.size(), 39414U);
    EXPECT_EQ(series.start, at("2004-01-01"));
    std::size_t weeks = 0;
    std::size_t run = 0;
    for (const float value : series.values) {
      run = std::isnan(value) ? run + 1 : 0;
      if (run == 168) ++weeks;
      ASSERT_LE(run, 168U);
    }
    EXPECT_EQ(weeks, 8U);
    EXPECT_EQ(std::count_if(series.values.begin(), series.values.end(), [](float value) { return std::isnan(value); }),
              8 * 168);
  }
}

TEST(ShippedData, M4Hourly) {
  const auto data = read_dataset(shipped("m4_hourly.tsf.gz"), {Format::tsf, Frequency::parse("1h"), std::nullopt});
  EXPECT_EQ(data.name, "m4_hourly");
  ASSERT_EQ(data.series.size(), 414U);
  EXPECT_EQ(data.series[0].id, "H1");
  EXPECT_EQ(data.series[413].id, "H414");
  EXPECT_EQ(data.series[0].values[0], 605);
  std::size_t of_748 = 0;
  std::size_t of_1008 = 0;
  for (const auto& series : data.series) {
    of_748 += series.values.size() == 748 ? 1 : 0;
    of_1008 += series.values.size() == 1008 ? 1 : 0;
    EXPECT_EQ(series.start, 0);
  }
  EXPECT_EQ(of_748, 169U);
  EXPECT_EQ(of_1008, 245U);
}

TEST(ShippedData, MetrLaAndOneSensor) {
  const auto week =
      read_dataset(shipped("metr_la_week_10min.txt.gz"), {Format::lstnet, Frequency::parse("10min"), at("2012-03-01")});
  ASSERT_EQ(week.series.size(), 207U);
  for (const auto& series : week.series) ASSERT_EQ(series.values.size(), 1008U);
  EXPECT_EQ(moment_text(advance(week.series[0].start, week.frequency, 1007)), "2012-03-07 23:50:00");
  const auto sensor =
      read_dataset(shipped("sf_traffic_one_sensor.txt.gz"), {Format::lstnet, Frequency::parse("1h"), at("2015-01-01")});
  ASSERT_EQ(sensor.series.size(), 1U);
  ASSERT_EQ(sensor.series[0].values.size(), 17544U);
  for (const float value : sensor.series[0].values) ASSERT_TRUE(value >= 0 && value <= 1);
}

}  // namespace
}  // namespace tsdp::data
