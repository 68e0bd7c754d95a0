#include "readers_fixture.h"

#include <array>

namespace tsdp::data {
namespace {

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
      message.starts_with("set.txt:3:2: found the frequency 'hourli', of the known ones nearest to hourly; expected "
                          "one of 4_seconds, minutely"))
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
  EXPECT_EQ(frequency_of_file(put(header("half_hourly")), {Format::tsf, {}, {}}), Frequency::parse("30min"));
  EXPECT_EQ(frequency_of_file(put("@relation x\n@data\n1\n"), {Format::tsf, {}, {}}), std::nullopt);
  EXPECT_THROW((void)frequency_of_file(put(header("hourli")), {Format::tsf, {}, {}}), DataError);
  EXPECT_THROW((void)frequency_of_file(put("1,2\n"), {Format::tsf, {}, {}}), DataError);
}

TEST_F(Readers, DamagedTsfIsReadOrNamed) {
  expect_no_crash(demo, "\n:,?@#-_ \r\t0123456789.einf", options(Format::tsf, "10min"));
}

}  // namespace
}  // namespace tsdp::data
