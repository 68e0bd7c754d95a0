#include "readers_fixture.h"

#include <sys/stat.h>

#include <string_view>
#include <utility>

namespace tsdp::data {
namespace {

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

// A FIFO that nobody writes to would be waited on for ever.
TEST_F(Readers, OnlyFilesAreRead) {
  ASSERT_EQ(::mkfifo((folder_ / "fifo.csv").c_str(), 0600), 0);
  for (const auto& [place, reason] :
       {std::pair{folder_ / "fifo.csv", "fifo.csv: cannot be read (Is a FIFO); expected a text file, plain or gzip"},
        std::pair{std::filesystem::path("/dev/zero"),
                  "/dev/zero: cannot be read (Is a device); expected a text file"}}) {
    for (const bool sniffed : {false, true}) {
      if (sniffed && place.extension() != ".csv") continue;
      try {
        if (sniffed) {
          (void)format_of_file(place);
        } else {
          (void)read_dataset(place, options(Format::lstnet));
        }
        ADD_FAILURE() << place;
      } catch (const DataError& failure) {
        EXPECT_NE(std::string(failure.what()).find(reason), std::string::npos) << failure.what();
      }
    }
  }
}

// Later moments have no text that reads back, and their arithmetic overflows.
TEST_F(Readers, CalendarsEndWithTheYear9999) {
  const auto last = [&](const std::string& frequency, const std::string& start) {
    return error("{\"start\": \"" + start + "\", \"target\": [1, 2, 3]}\n", options(Format::jsonl, frequency));
  };
  EXPECT_EQ(last("1Y", "9996-01-01"), "no error");
  EXPECT_EQ(last("1h", "9999-12-31 21:00"), "no error");
  EXPECT_EQ(last("1h", "9999-12-31 23:00"),
            "set.txt: series '0': found 3 values in steps of 1h from 9999-12-31 23:00:00 on; expected an end within "
            "the year 9999");
  for (const auto* frequency : {"999999Y", "999999W", "999999Q", "999999M", "999999B", "999999D"})
    EXPECT_NE(last(frequency, "9999-01-01").find("expected an end within the year 9999"), std::string::npos)
        << frequency;
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

// The day of the month stays where a series is cut to begin on the last day of February.
TEST_F(Readers, CutEndsKeepTheCalendar) {
  const auto found = csv("t,a,b\n2021-01-28,1,\n2021-02-28,2,2\n2021-03-28,3,3\n", "M");
  ASSERT_EQ(found.series[1].values.size(), 2U);
  EXPECT_EQ(found.series[1].start, at("2021-02-28"));
  EXPECT_EQ(moment_text(found.series[1].at(found.frequency, 1)), "2021-03-28 00:00:00");
  // From last day to last day nothing is in the way.
  const auto ends = csv("t,a,b\n2021-01-31,1,\n2021-02-28,2,2\n2021-03-31,3,3\n", "M");
  EXPECT_EQ(ends.series[1].values.size(), 2U);
  EXPECT_EQ(moment_text(ends.series[1].at(ends.frequency, 1)), "2021-03-31 00:00:00");
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
            "2015-01-01 01:00:00 (--gaps: missing, takes steps without a row)");
  EXPECT_EQ(csv_error("t,a\n2015-01-01 00:00,1\n2015-01-01 00:00,2\n"),
            "set.txt:3:1: found the time 2015-01-01 00:00:00; expected 2015-01-01 01:00:00, one step of 1h after "
            "2015-01-01 00:00:00 (--duplicates: last or mean, takes rows of one time)");
  EXPECT_EQ(csv_error("t,a\n01/02/2015,1\n"),
            "set.txt:2:1: found '01/02/2015'; expected a time stamp such as 2015-01-31 or 2015-01-31 13:00:00, the "
            "year first: which of the others is the month cannot be told");
  EXPECT_EQ(csv_error("t,a,b,a\n"),
            "set.txt:1:4: found the column 'a' again, first seen in column 2; expected each name once");
  EXPECT_EQ(csv_error("t,a,,b\n"), "set.txt:1:3: found an empty column name; expected the name of a series");
  EXPECT_EQ(csv_error("t a\n"),
            "set.txt:1:1: found the header 't a'; expected a time column and at least one series, separated by commas, "
            "semicolons or tabs");
  EXPECT_EQ(csv_error("t,\"a\n"), "set.txt:1:2: found '\"a' without a closing quote; expected a column name");
  EXPECT_EQ(csv_error("t,\"a\"b,c\n"), "set.txt:1:2: found '\"a\"b'; expected a comma after the closing quote");
  EXPECT_EQ(csv_error("t,a,b\n2015-01-01,1,x\n"),
            "set.txt:2:3: found 'x'; expected a number, or nan or empty for missing; where that is the name of a "
            "series, and a row one value of it, --columns item=NAME and --columns value=NAME name the columns");
  EXPECT_EQ(csv_error("t,a,b\n2015-01-01,1\n"), "set.txt:2:3: found 2 columns; expected 3, as in the header");
  EXPECT_EQ(csv_error("t,a,b\n2015-01-01,1,2,3\n"), "set.txt:2:4: found 4 columns; expected 3, as in the header");
  EXPECT_EQ(csv_error("t,a,b\n2015-01-01\n"), "set.txt:2:2: found 1 columns; expected 3, as in the header");
  EXPECT_EQ(csv_error("t,a\n2015-01-01,1\n\n2015-01-01 01:00,2\n"),
            "set.txt:3:1: found an empty line; expected a time stamp and a value for each series");
  EXPECT_EQ(csv_error("t,a\n"), "set.txt: found no row after the header; expected rows of a time stamp and values");
  EXPECT_EQ(csv_error(""), "set.txt: found an empty file; expected a header, then rows of a time stamp and values");
  EXPECT_EQ(csv_error("t,a,b\n2015-01-01,1,\n"),
            "set.txt: found no value in column 3 (series 'b'); expected at least one that is not missing");
}

TEST_F(Readers, DamagedCsvIsReadOrNamed) {
  expect_no_crash("time,a,\"b, c\"\n2016-02-28 23:00:00,1,nan\n2016-02-29 00:00,2,\n\"2016-02-29T01:00:00\",-3e2,7\n",
                  "\n\",-: \r\t0123456789.einf", options(Format::csv));
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
  EXPECT_EQ(format_by_ending("c.parquet"), reads_parquet() ? std::optional(Format::csv) : std::nullopt);
  EXPECT_EQ(format_by_ending("c.jsonl"), Format::jsonl);
  EXPECT_EQ(format_by_ending("data.json.gz"), Format::jsonl);
  for (const char* unknown : {"c", "c.gz", "c.feather", "txt", ".gz", "c.tsf.bz2"})
    EXPECT_EQ(format_by_ending(unknown), std::nullopt) << unknown;
  EXPECT_EQ(format_of_file(put("t,a,b\n", "wide.csv")), Format::csv);
  EXPECT_EQ(format_of_file(put(packed("y,ds,x,\"unique_id\"\n"), "long.csv.gz")), Format::csv_long);
  EXPECT_EQ(format_of_file(put("", "empty.csv")), Format::csv);
  EXPECT_EQ(format_of_file("not there.tsf"), Format::tsf);
  EXPECT_THROW((void)format_of_file(folder_ / "absent.csv"), DataError);
}

}  // namespace
}  // namespace tsdp::data
