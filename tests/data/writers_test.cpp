#include "data/writers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "data/generate.h"
#include "support/series.h"
#include "support/temporary_folder.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/random/random.h"

namespace tsdp::data {
namespace {

using test::at;
using test::missing;

void expect_equal(const Series& found, const Series& expected) {
  EXPECT_EQ(found.id, expected.id);
  EXPECT_EQ(moment_text(found.start), moment_text(expected.start));
  ASSERT_EQ(found.values.size(), expected.values.size());
  for (std::size_t i = 0; i < found.values.size(); ++i) {
    const bool same = std::memcmp(&found.values[i], &expected.values[i], sizeof(float)) == 0;
    ASSERT_TRUE(same || (std::isnan(found.values[i]) && std::isnan(expected.values[i])))
        << "place " << i << ": " << found.values[i] << " is not " << expected.values[i];
  }
}

class Writers : public test::TemporaryFolder {
 protected:
  [[nodiscard]] std::filesystem::path path(const std::string& name) const { return folder_ / name; }

  Dataset back(const std::filesystem::path& file, Format format, const Dataset& like) const {
    return read_dataset(
        file, {format, like.frequency, format == Format::lstnet ? std::optional(like.series[0].start) : std::nullopt});
  }

  void expect_round_trip(const Dataset& data, Format format, const std::string& file) const {
    write_dataset(data, path(file), format);
    const auto found = back(path(file), format, data);
    ASSERT_EQ(found.series.size(), data.series.size());
    for (std::size_t i = 0; i < data.series.size(); ++i) {
      auto expected = data.series[i];
      if (format == Format::lstnet) expected.id = std::to_string(i);
      expect_equal(found.series[i], expected);
      if (HasFatalFailure()) return;
    }
  }

  /// The message of the error, without the folder's name; nothing may have been written.
  std::string refusal(const Dataset& data, Format format) const {
    try {
      write_dataset(data, path("out"), format);
    } catch (const DataError& error) {
      EXPECT_FALSE(std::filesystem::exists(path("out")));
      EXPECT_FALSE(std::filesystem::exists(path("out.part")));
      std::string what = error.what();
      EXPECT_EQ(what.find('\n'), std::string::npos) << what;
      const std::string prefix = path("").string();
      EXPECT_EQ(what.substr(0, prefix.size()), prefix);
      return what.substr(prefix.size());
    }
    return "written";
  }
};

/// Any finite float, often an extreme one.
float any_value(RandomStream& stream) {
  const auto choice = stream.below(8);
  if (choice == 0) return std::numeric_limits<float>::max();
  if (choice == 1) return -std::numeric_limits<float>::denorm_min();
  if (choice == 2) return -0.0F;
  if (choice == 3) return static_cast<float>(stream.below(1000)) / 10.0F;
  float value = 0;
  do {
    const auto bits = static_cast<std::uint32_t>(stream.next());
    std::memcpy(&value, &bits, sizeof value);
  } while (!std::isfinite(value));
  return value;
}

struct Shape {
  bool equal_starts = false;
  bool equal_lengths = false;
  bool any_ids = true;
};

/// Series whose starts are steps of one calendar.
Dataset random_dataset(RandomStream& stream, const Frequency& frequency, const std::string& start, const Shape& shape) {
  const std::vector<std::string> ids{
      "a", "two words", "comma, quote \" and 'other'", "K\xC3\xB6ln", "17", "ds", "NaN", "{\"x\": [1]}", "\"", "last"};
  Dataset data;
  data.name = "random";
  data.frequency = frequency;
  const auto count = 1 + stream.below(6);
  const auto length = 1 + stream.below(40);
  for (std::uint64_t i = 0; i < count; ++i) {
    auto& series = data.series.emplace_back();
    series.id = shape.any_ids ? ids[i] : std::to_string(i);
    const auto steps = shape.equal_starts ? 0 : static_cast<std::int64_t>(stream.below(50));
    series.start = advance(at(start), frequency, steps);
    const auto own = shape.equal_lengths ? length : 1 + stream.below(40);
    for (std::uint64_t t = 0; t < own; ++t)
      series.values.push_back(stream.below(4) == 0 && t > 0 && t + 1 < own ? missing : any_value(stream));
  }
  return data;
}

TEST_F(Writers, RandomSeriesReadBackAsTheSame) {
  const struct {
    const char* frequency;
    const char* start;
  } calendars[] = {{"1s", "2016-02-28 23:59:30"}, {"10min", "2015-12-31 23:00"}, {"1h", "2016-02-28 20:00"},
                   {"1D", "2016-02-20"},          {"1B", "2015-01-01"},          {"1W", "2015-11-30"},
                   {"1M", "2015-11-15"},          {"1Q", "2015-10-01"},          {"1Y", "1999-07-01 12:00"},
                   {"2M", "2015-01-28"},          {"30min", "1970-01-01 00:30"}};
  const struct {
    Format format;
    Shape shape;
  } formats[] = {{Format::lstnet, {true, true, false}},
                 {Format::csv, {false, false, true}},
                 {Format::csv_long, {false, false, true}},
                 {Format::jsonl, {false, false, true}},
                 {Format::tsf, {false, false, false}}};
  std::uint64_t number = 0;
  for (const auto& calendar : calendars)
    for (const auto& [format, shape] : formats)
      for (const char* file : {"plain.txt", "packed.txt.gz"}) {
        const auto frequency = Frequency::parse(calendar.frequency);
        if (format == Format::tsf && frequency.unit == Frequency::Unit::business_day) continue;
        RandomStream stream(SecretKey::from_seed(5), "writers", number++);
        const auto data = random_dataset(stream, frequency, calendar.start, shape);
        SCOPED_TRACE(std::string(name(format)) + " " + calendar.frequency);
        expect_round_trip(data, format, file);
        if (HasFatalFailure()) return;
      }
  EXPECT_EQ(read_file(path("packed.txt.gz")).substr(0, 2), "\x1f\x8b");
  EXPECT_NE(read_file(path("plain.txt")).substr(0, 2), "\x1f\x8b");
}

// The one float whose shortest text, read in double precision and rounded, gives its neighbour.
TEST_F(Writers, AValueNextToHalfway) {
  Dataset data;
  data.frequency = Frequency::parse("1h");
  data.series = {{"0", 0, {0x1.5c87fap-84F, -0x1.5c87fap-84F, 0x1.5c87f8p-84F, 0x1.5c87fcp-84F}}};
  for (const auto format : {Format::lstnet, Format::csv, Format::csv_long, Format::jsonl, Format::tsf})
    expect_round_trip(data, format, "x");
}

TEST_F(Writers, ManyPiecesOfGzip) {
  const auto data = generate_traffic_like({.series = 7, .length = 40000, .seed = 1});
  for (const auto format : {Format::lstnet, Format::csv, Format::csv_long, Format::jsonl, Format::tsf})
    expect_round_trip(data, format, "packed.gz");
}

TEST_F(Writers, WhatTheFormsLookLike) {
  Dataset data;
  data.name = "demo";
  data.frequency = Frequency::parse("1D");
  data.series = {{"a,b", at("2016-02-28"), {1, missing, 0.1F}}, {"c", at("2016-02-29"), {-2.5e-8F}}};
  write_dataset(data, path("x"), Format::csv);
  EXPECT_EQ(read_file(path("x")), "time,\"a,b\",c\n2016-02-28,1,\n2016-02-29,,-2.5e-08\n2016-03-01,0.1,\n");
  write_dataset(data, path("x"), Format::csv_long);
  EXPECT_EQ(
      read_file(path("x")),
      "unique_id,ds,y\n\"a,b\",2016-02-28,1\n\"a,b\",2016-02-29,\n\"a,b\",2016-03-01,0.1\nc,2016-02-29,-2.5e-08\n");
  write_dataset(data, path("x"), Format::jsonl);
  EXPECT_EQ(read_file(path("x")),
            "{\"item_id\": \"a,b\", \"start\": \"2016-02-28 00:00:00\", \"target\": [1, null, 0.1]}\n"
            "{\"item_id\": \"c\", \"start\": \"2016-02-29 00:00:00\", \"target\": [-2.5e-08]}\n");
  write_dataset(data, path("x"), Format::tsf);
  EXPECT_EQ(
      read_file(path("x")),
      "@relation demo\n@attribute series_name string\n@attribute start_timestamp date\n@frequency daily\n"
      "@missing true\n@equallength false\n@data\na,b:2016-02-28 00-00-00:1,?,0.1\nc:2016-02-29 00-00-00:-2.5e-08\n");
  EXPECT_EQ(frequency_of_file(path("x"), {Format::tsf, {}, {}}), data.frequency);
  data.series[1].start = at("2016-02-28 06:00");
  write_dataset(data, path("x"), Format::csv_long);
  EXPECT_EQ(read_file(path("x")).substr(0, 41), "unique_id,ds,y\n\"a,b\",2016-02-28 00:00:00,");
}

TEST_F(Writers, TsfFrequenciesReadBack) {
  for (const char* text :
       {"1s", "4s", "1min", "10min", "30min", "1h", "6h", "1D", "2D", "1W", "1M", "3M", "1Q", "2Q", "1Y"}) {
    Dataset data;
    data.frequency = Frequency::parse(text);
    data.series = {{"a", at("2016-01-01"), {1, 2}}};
    write_dataset(data, path("x"), Format::tsf);
    EXPECT_EQ(frequency_of_file(path("x"), {Format::tsf, {}, {}}), data.frequency) << text;
  }
}

// A row a second for ten years is no way to hold four values.
TEST_F(Writers, CsvOfStartsFarApartIsRefused) {
  Dataset data;
  data.frequency = Frequency::parse("1s");
  data.series = {{"a", at("2010-01-01"), {1, 2}}, {"b", at("2020-01-01"), {3, 4}}};
  EXPECT_EQ(refusal(data, Format::csv),
            "out: series 'b': found the start 2020-01-01 00:00:00 beside 2010-01-01 00:00:00 of series 'a', which "
            "makes 315532802 rows of 2 fields for 4 values; expected at most 100000400 fields; the form csv_long has "
            "no rows without values");
  write_dataset(data, path("out"), Format::csv_long);
  EXPECT_EQ(read_file(path("out")).size(), 111U);
}

TEST_F(Writers, RefuseWhatAFormCannotHold) {
  Dataset data;
  data.name = "demo";
  data.frequency = Frequency::parse("1h");
  data.series = {{"a", at("2016-02-28"), {1, 2}}, {"b", at("2016-02-28"), {3, 4}}};
  const auto changed = [&](const auto& change) {
    auto copy = data;
    change(copy);
    return copy;
  };
  for (const auto format : {Format::lstnet, Format::csv, Format::csv_long, Format::jsonl, Format::tsf}) {
    EXPECT_EQ(refusal({}, format), "out: found no series to write; expected at least one");
    EXPECT_EQ(refusal(changed([](Dataset& d) { d.series[1].values = {missing, missing}; }), format),
              "out: series 'b': found no value; expected at least one that is not missing");
    EXPECT_EQ(refusal(changed([](Dataset& d) { d.series[1].values.clear(); }), format),
              "out: series 'b': found no value; expected at least one that is not missing");
  }
  EXPECT_EQ(
      refusal(changed([](Dataset& d) { d.series[1].values.pop_back(); }), Format::lstnet),
      "out: series 'b': found 1 values; expected 2, as in series 'a': columns of the form lstnet are of one length");
  EXPECT_EQ(refusal(changed([](Dataset& d) { d.series[1].start += 3600; }), Format::lstnet),
            "out: series 'b': found the start 2016-02-28 01:00:00; expected 2016-02-28 00:00:00, as of series 'a': "
            "columns of the form lstnet have one start");
  EXPECT_EQ(refusal(changed([](Dataset& d) { d.series[0].start += 60; }), Format::csv),
            "out: series 'a': found the time 2016-02-28 00:01:00; expected whole steps of 1h from 2016-02-28 00:00:00 "
            "on, where series 'b' starts: rows of the form csv are steps of one calendar");
  for (const auto format : {Format::csv, Format::csv_long}) {
    const std::string form = name(format);
    EXPECT_EQ(refusal(changed([](Dataset& d) { d.series[1].id = "a"; }), format),
              "out: series 'a': found the id again; expected each once, as the form " + form + " needs it");
    EXPECT_EQ(refusal(changed([](Dataset& d) { d.series[1].id = ""; }), format),
              "out: series '': found an empty id; expected a name in one line, as the form " + form + " needs it");
    EXPECT_EQ(refusal(changed([](Dataset& d) { d.series[1].id = "b\nc"; }), format),
              "out: series 'b\\x0ac': found a line break in the id; expected a name in one line, as the form " + form +
                  " needs it");
  }
  for (const char* id : {"a:b", " a", "a\r", "#a"}) {
    const auto message = refusal(changed([&](Dataset& d) { d.series[1].id = id; }), Format::tsf);
    EXPECT_TRUE(message.starts_with("out: series '") && message.find("found an id with a colon") != std::string::npos)
        << message;
  }
  EXPECT_EQ(refusal(changed([](Dataset& d) { d.series[1].start += 1; }), Format::tsf),
            "out: series 'b': found the start 2016-02-28 00:00:01; expected a whole minute, as the form tsf has it for "
            "steps of 1h");
  EXPECT_EQ(
      refusal(changed([](Dataset& d) { d.frequency = Frequency::parse("B"); }), Format::tsf),
      "out: series 'a': found steps of 1B; expected steps for which the form tsf has a word, from seconds to years");
}

// January 30 leads to February 28, which is a last day, and then to March 30; from February 28 a last day follows.
TEST_F(Writers, CalendarsOfMonthsThatMeetOnlyOnceAreTwo) {
  Dataset data;
  data.frequency = Frequency::parse("1M");
  data.series = {{"a", at("2015-01-30"), {1, 2, 3}}, {"b", at("2015-02-28"), {1, 2}}};
  EXPECT_EQ(refusal(data, Format::csv),
            "out: series 'b': found the time 2015-03-31 00:00:00; expected whole steps of 1M from 2015-01-30 00:00:00 "
            "on, where series 'a' starts: rows of the form csv are steps of one calendar");
  data.series[1].values.pop_back();
  expect_round_trip(data, Format::csv, "x");
  data.series[1].values.push_back(5);
  expect_round_trip(data, Format::csv_long, "x");
}

TEST_F(Writers, LastDaysOfMonthsStayLastDays) {
  Dataset data;
  for (const char* frequency : {"1M", "1Q"}) {
    data.frequency = Frequency::parse(frequency);
    const bool months = data.frequency.unit == Frequency::Unit::month;
    data.series = {{"a", at("2020-06-30"), {1, 2, 3, 4}}, {"b", at(months ? "2020-07-31" : "2020-09-30"), {5, 6}}};
    for (const auto format : {Format::csv, Format::csv_long, Format::jsonl, Format::tsf})
      expect_round_trip(data, format, "x");
    write_dataset(data, path("x.csv"), Format::csv);
    EXPECT_NE(read_file(path("x.csv")).find(months ? "\n2020-07-31" : "\n2020-12-31"), std::string::npos);
  }
}

TEST_F(Writers, AFailureLeavesTheOldFile) {
  write_file_atomically(path("out"), "old");
  Dataset data;
  data.series = {{"a", 0, {1}}};
  std::filesystem::create_directory(path("out.part"));  // so that nothing can be written beside it
  EXPECT_THROW(write_dataset(data, path("out"), Format::jsonl), Error);
  EXPECT_EQ(read_file(path("out")), "old");
}

TEST_F(Writers, SplitWritesWhatGluontsReads) {
  Dataset data;
  data.name = "demo";
  data.frequency = Frequency::parse("1h");
  data.series = {{"a", at("2016-02-28"), {}}, {"b", at("2016-03-01 05:00"), {}}};
  for (int t = 0; t < 20; ++t) data.series[0].values.push_back(static_cast<float>(t));
  for (int t = 0; t < 16; ++t) data.series[1].values.push_back(static_cast<float>(100 + t));
  data.series[1].values[9] = missing;
  const auto split = split_dataset(data, {SplitKind::last, 2, 3, 4});
  write_split(data, split, {2, 24}, path("made/for/it"));
  const auto entries = [&](const char* file) {
    std::vector<nlohmann::json> out;
    const auto text = read_file(path("made/for/it") / file);
    for (std::size_t begin = 0; begin < text.size();) {
      const auto end = text.find('\n', begin);
      out.push_back(nlohmann::json::parse(text.substr(begin, end - begin)));
      begin = end + 1;
    }
    return out;
  };
  const auto train = entries("train.jsonl");
  ASSERT_EQ(train.size(), 2U);
  EXPECT_EQ(train[0]["target"].size(), 10U);  // 20 less 3 test windows of 2 and 4 for validation
  EXPECT_EQ(train[1]["target"].size(), 6U);
  const auto validation = entries("validation.jsonl");
  ASSERT_EQ(validation.size(), 4U);
  EXPECT_EQ(validation[0]["target"].size(), 12U);
  EXPECT_EQ(validation[3]["target"].size(), 10U);
  EXPECT_TRUE(validation[3]["target"].back().is_null());  // missing, and not cut off
  const auto test = entries("test.jsonl");
  ASSERT_EQ(test.size(), 6U);
  const std::vector<std::string> ids{"a", "b", "a", "b", "a", "b"};  // window by window, then series by series
  const std::vector<std::size_t> lengths{16, 12, 18, 14, 20, 16};
  for (std::size_t i = 0; i < test.size(); ++i) {
    EXPECT_EQ(test[i]["item_id"], ids[i]);
    EXPECT_EQ(test[i]["target"].size(), lengths[i]);
    EXPECT_EQ(test[i]["start"], ids[i] == "a" ? "2016-02-28 00:00:00" : "2016-03-01 05:00:00");
    EXPECT_EQ(test[i]["target"][3], ids[i] == "a" ? 3 : 103);
  }
  const auto metadata = nlohmann::json::parse(read_file(path("made/for/it/metadata.json")));
  EXPECT_EQ(metadata, nlohmann::json::parse(R"({"name": "demo", "frequency": "1h", "freq": "1h", "prediction_length": 2,
    "season_length": 24, "series": 2, "validation_entries": 4, "test_entries": 6})"));
  write_file_atomically(path("file"), "");
  EXPECT_THROW(write_split(data, split, {2, 24}, path("file")), Error);
}

}  // namespace
}  // namespace tsdp::data
