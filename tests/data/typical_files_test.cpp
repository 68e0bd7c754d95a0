// Files as other programs write them, and what becomes of each when the user states nothing but their name.
// docs/data.md has the same table for people.
#include "readers_fixture.h"
#include "tsdp/base/text.h"
#include "tsdp/data/input_form.h"

namespace tsdp::data {
namespace {

struct TypicalFile {
  const char* what;
  const char* name;
  std::string content;
  StatedForm stated;
  const char* expected;  ///< "format frequency: id start values | …", or the error behind the file's name
};

std::string text_of(const ReadOptions& options, const Dataset& dataset) {
  std::string out = cat(name(options.format), " ", dataset.frequency.text(), ":");
  for (const auto& series : dataset.series) {
    auto start = moment_text(series.start);
    if (start.ends_with(" 00:00:00")) start.resize(10);
    out += cat(&series == &dataset.series.front() ? " " : " | ", series.id, " ", start);
    for (const float value : series.values) out += std::isnan(value) ? std::string(" ?") : cat(" ", value);
  }
  return out;
}

const std::string hourly_long =
    "A,2020-01-01 00:00:00,1\nA,2020-01-01 01:00:00,2\nA,2020-01-01 02:00:00,3\nB,2020-01-01 01:00:00,4\n";
const char* const read_long = "csv_long 1h: A 2020-01-01 1 2 3 | B 2020-01-01 01:00:00 4";

std::vector<TypicalFile> typical_files() {
  StatedForm columns;
  columns.columns = {"meter", "when", {"kWh"}};
  StatedForm one_series;
  one_series.columns = {"", "when", {"kWh"}};
  StatedForm time_column;
  time_column.columns.time = "when";
  StatedForm last;
  last.duplicates = "last";
  StatedForm mean;
  mean.duplicates = "mean";
  StatedForm gaps;
  gaps.gaps = "missing";
  StatedForm no_gaps;
  no_gaps.gaps = "error";
  StatedForm daily;
  daily.frequency = "1D";
  StatedForm hourly;
  hourly.frequency = "1h";
  StatedForm half_daily;
  half_daily.frequency = "12h";
  StatedForm zoned_start = daily;
  zoned_start.start = "2020-01-01 00:00+01:00";
  StatedForm daily_from_2020 = daily;
  daily_from_2020.start = "2020-01-01";
  return {
      {"Nixtla's long frame", "f.csv", "unique_id,ds,y\n" + hourly_long, {}, read_long},
      {"AutoGluon's and GluonTS' long frame", "f.csv", "item_id,timestamp,target\n" + hourly_long, {}, read_long},
      {"the same with pandas' index",
       "f.csv",
       ",item_id,timestamp,target\n0,A,2020-01-01,1\n1,A,2020-01-02,2\n2,A,2020-01-03,3\n",
       {},
       "csv_long 1D: A 2020-01-01 1 2 3"},
      {"the same, written and read twice",
       "f.csv",
       "Unnamed: 0,item_id,timestamp,target\n0,A,2020-01-01,1\n1,A,2020-01-02,2\n2,A,2020-01-03,3\n",
       {},
       "csv_long 1D: A 2020-01-01 1 2 3"},
      {"columns with names of one's own", "f.csv", "when,kWh,meter\n2020-01-01,1,A\n2020-01-02,2,A\n2020-01-03,3,A\n",
       columns, "csv_long 1D: A 2020-01-01 1 2 3"},
      {"one series among other columns", "f.csv",
       "when,weather,kWh\n2020-01-01,fair,1\n2020-01-02,wet,2\n2020-01-03,fair,3\n", one_series,
       "csv_long 1D: kWh 2020-01-01 1 2 3"},
      {"pandas, a column a series, dates as index",
       "f.csv",
       ",A,B\n2020-01-31,1,2\n2020-02-29,3,4\n2020-03-31,5,6\n",
       {},
       "csv 1M: A 2020-01-31 1 3 5 | B 2020-01-31 2 4 6"},
      {"the same with a numbered index and a column of dates",
       "f.csv",
       ",date,A\n0,2020-01-06,1\n1,2020-01-13,2\n2,2020-01-20,3\n",
       {},
       "csv 1W: A 2020-01-06 1 2 3"},
      {"Darts' to_csv",
       "f.csv",
       "time,0\n2020-01-01 00:00:00,1.0\n2020-01-01 00:15:00,2.0\n2020-01-01 00:30:00,3.0\n",
       {},
       "csv 15min: 0 2020-01-01 1 2 3"},
      {"a column of dates that is not the first", "f.csv", "A,when\n1,2020-01-01\n2,2020-01-02\n3,2020-01-03\n",
       time_column, "csv 1D: A 2020-01-01 1 2 3"},
      {"times in UTC, with Z",
       "f.csv",
       "t,A\n2020-01-01T00:00:00Z,1\n2020-01-01T01:00:00Z,2\n2020-01-01T02:00:00Z,3\n",
       {},
       "csv 1h: A 2020-01-01 1 2 3"},
      {"an offset that changes with summer time",
       "f.csv",
       "t,A\n2020-03-29 01:00:00+01:00,1\n2020-03-29 03:00:00+02:00,2\n2020-03-29 04:00:00+02:00,3\n",
       {},
       "csv 1h: A 2020-03-29 1 2 3"},
      {"days with an offset that changes with summer time",
       "f.csv",
       "t,A\n2020-03-28 00:00:00+01:00,1\n2020-03-29 00:00:00+01:00,2\n2020-03-30 00:00:00+02:00,3\n",
       {},
       "csv 1D: A 2020-03-28 1 2 3"},
      {"the same, a row a value",
       "f.csv",
       "item_id,timestamp,target\nA,2020-03-28 00:00:00+01:00,1\nA,2020-03-29 00:00:00+01:00,2\nA,2020-03-30 "
       "00:00:00+02:00,3\n",
       {},
       "csv_long 1D: A 2020-03-28 1 2 3"},
      {"a zone in some rows alone",
       "f.csv",
       "t,A\n2020-03-29 01:00:00+01:00,1\n2020-03-29 03:00:00,2\n2020-03-29 04:00:00,3\n",
       {},
       ":3:1: found the time '2020-03-29 03:00:00' without a zone, below times with one; expected a zone in every row "
       "or in none"},
      {"a zone in some rows alone, a row a value", "f.csv",
       "item_id,timestamp,target\nA,2020-01-01 00:00,1\nA,2020-01-01 01:00,2\nB,2020-01-01 02:00Z,3\n", hourly,
       ":4:2: found the time '2020-01-01 02:00Z' with a zone, below times without one; expected a zone in every row or "
       "in none"},
      {"JSON Lines with a zone in some", "f.jsonl",
       "{\"start\": \"2020-01-01 00:00Z\", \"target\": [1]}\n{\"start\": \"2020-01-01 00:00\", \"target\": [1]}\n",
       hourly, ":2: found a start without a zone, below starts with one; expected a zone in every line or in none"},
      {"JSON Lines of another place in UTC", "f.jsonl",
       "{\"start\": \"2020-01-01T15:00Z[Asia/Tokyo]\", \"target\": [1]}\n", daily,
       ":1: found a start in UTC though it is of another place, with steps of 1D, which are in local time; expected "
       "starts without a zone"},
      {"days of a zone in Monash's tsf",
       "f.tsf",
       "@relation x\n@attribute series_name string\n@attribute start_timestamp date\n@frequency daily\n@missing "
       "true\n@equallength true\n@data\nA:2020-01-01 00-00-00+0100:1,2,3\n",
       {},
       "tsf 1D: A 2020-01-01 1 2 3"},
      {"hours of a zone in Monash's tsf",
       "f.tsf",
       "@relation x\n@attribute series_name string\n@attribute start_timestamp date\n@frequency hourly\n@missing "
       "true\n@equallength true\n@data\nA:2020-01-01 00-00-00+0100:1,2,3\n",
       {},
       "tsf 1h: A 2019-12-31 23:00:00 1 2 3"},
      {"a zone in some starts of Monash's tsf",
       "f.tsf",
       "@relation x\n@attribute series_name string\n@attribute start_timestamp date\n@frequency daily\n@missing "
       "true\n@equallength true\n@data\nA:2020-01-01 00-00-00+0100:1,2,3\nB:2020-01-01 00-00-00:1,2,3\n",
       {},
       ":9:2: found a start without a zone, below starts with one; expected a zone in every line or in none"},
      {"days from a stated start with a zone", "f.txt", "1\n2\n", zoned_start, "lstnet 1D: 0 2020-01-01 1 2"},
      {"a gap that a later row fills",
       "f.csv",
       "t,A\n2020-01-01,1\n2020-01-02,2\n2020-01-04,4\n2020-01-05,5\n2020-01-03,3\n",
       {},
       "csv 1D: A 2020-01-01 1 2 3 4 5"},
      {"a gap that no later row fills",
       "f.csv",
       "t,A\n2020-01-01,1\n2020-01-02,2\n2020-01-05,5\n2020-01-03,3\n",
       {},
       ":4:1: found the time 2020-01-05 00:00:00; expected 2020-01-04 00:00:00, one step of 1D after 2020-01-03 "
       "00:00:00 (--gaps: missing, takes steps without a row)"},
      {"days 24 hours apart across summer time", "f.csv",
       "t,A\n2020-03-28 00:00:00+01:00,1\n2020-03-29 00:00:00+01:00,2\n2020-03-30 01:00:00+02:00,3\n", daily,
       ":4:1: found the time 2020-03-30 01:00:00; expected 2020-03-30 00:00:00, one step of 1D after 2020-03-29 "
       "00:00:00 (times with a zone are read in local time, as a step is a day or longer)"},
      {"half days of the clock across summer time", "f.csv",
       "item_id,timestamp,target\nA,2020-03-28 12:00:00+01:00,1\nA,2020-03-29 00:00:00+01:00,2\nA,2020-03-29 "
       "12:00:00+02:00,3\n",
       half_daily,
       ":4:2: found the time 2020-03-29 10:00:00 of series 'A'; expected whole steps of 12h after its first time, "
       "2020-03-28 11:00:00 in line 2 (times with a zone are read in UTC, as a step is shorter than a day)"},
      {"a place behind the offset, as Java writes it",
       "f.csv",
       "t,A\n2020-01-01T00:00+01:00[Europe/Berlin],1\n2020-01-02T00:00+01:00[Europe/"
       "Berlin],2\n2020-01-03T00:00+01:00[Europe/Berlin],3\n",
       {},
       "csv 1D: A 2020-01-01 1 2 3"},
      {"days of another place in UTC",
       "f.csv",
       "t,A\n2020-01-01T15:00Z[Asia/Tokyo],1\n2020-01-02T15:00Z[Asia/Tokyo],2\n2020-01-03T15:00Z[Asia/Tokyo],3\n",
       {},
       ":2:1: found the time '2020-01-01T15:00Z[Asia/Tokyo]', in UTC though it is of another place, with steps of 1D, "
       "which are in local time; expected times without a zone: with pandas, frame[column].dt.tz_localize(None)"},
      {"months with an offset",
       "f.csv",
       "t,A\n2020-03-01T00:00:00+01:00,1\n2020-04-01T00:00:00+02:00,2\n2020-05-01T00:00:00+02:00,3\n",
       {},
       "csv 1M: A 2020-03-01 1 2 3"},
      {"GluonTS' JSON Lines of days, with an offset", "f.jsonl",
       "{\"start\": \"2020-01-01 00:00:00+01:00\", \"target\": [1, 2, 3], \"item_id\": \"A\"}\n", daily,
       "jsonl 1D: A 2020-01-01 1 2 3"},
      {"fractions of a second that are 0",
       "f.csv",
       "t,A\n2020-01-01 00:00:00.000,1\n2020-01-01 00:00:10.000000,2\n2020-01-01 00:00:20,3\n",
       {},
       "csv 10s: A 2020-01-01 1 2 3"},
      {"fractions of a second that are not",
       "f.csv",
       "t,A\n2020-01-01 00:00:00.5,1\n",
       {},
       ":2:1: found '2020-01-01 00:00:00.5'; expected a time stamp such as 2015-01-31 or 2015-01-31 13:00:00"},
      {"quoted numbers",
       "f.csv",
       "\"t\",\"A\"\n\"2020-01-01\",\"1.5\"\n\"2020-01-02\",\"\"\n\"2020-01-03\",\"3\"\n",
       {},
       "csv 1D: A 2020-01-01 1.5 ? 3"},
      {"Excel: byte order mark, CRLF, empty rows behind",
       "f.csv",
       "\xEF\xBB\xBFt,A\r\n2020-01-01 0:00,1\r\n2020-01-01 1:00,2\r\n2020-01-01 2:00,3\r\n,\r\n,\r\n",
       {},
       "csv 1h: A 2020-01-01 1 2 3"},
      {"Excel in German: semicolons, decimal commas, days first",
       "f.csv",
       "Datum;A;B\r\n31.12.2019;1,5;2\r\n01.01.2020;2,5;\r\n02.01.2020;3;4\r\n",
       {},
       "csv 1D: A 2019-12-31 1.5 2.5 3 | B 2019-12-31 2 ? 4"},
      {"Excel's line that names the separator",
       "f.csv",
       "sep=;\nt;A\n2020-01-01;1\n2020-01-02;2\n2020-01-03;3\n",
       {},
       "csv 1D: A 2020-01-01 1 2 3"},
      {"tabs between columns",
       "f.csv",
       "t\tA\tB\n2020-01-01\t1\t2\n2020-01-02\t3\t\n2020-01-03\t5\t6\n",
       {},
       "csv 1D: A 2020-01-01 1 3 5 | B 2020-01-01 2 ? 6"},
      {"Excel in American: the month first",
       "f.csv",
       "t,A\n1/31/2020,1\n2/1/2020,2\n",
       {},
       ":2:1: found '1/31/2020'; expected a time stamp such as 2015-01-31 or 2015-01-31 13:00:00, the year first: "
       "which of the others is the month cannot be told"},
      {"rows without a header",
       "f.csv",
       "2020-01-01,1\n2020-01-02,2\n2020-01-03,3\n",
       {},
       ":1:1: found the header '2020-01-01,1', which begins with a time as rows of values do; expected a header with "
       "names in the first line"},
      {"numbers with thousands separators",
       "f.csv",
       "t,A\n2020-01-01,\"1,234.5\"\n2020-01-02,1\n2020-01-03,1\n",
       {},
       ":2:2: found '1,234.5'; expected a number, or nan or empty for missing"},
      {"Excel's workbook",
       "f.xlsx",
       std::string("PK\x03\x04\x14\x00\x06\x00", 8),
       {},
       ": found a zip archive, as workbooks of Excel are; expected a text file, plain or gzip: unpack it, or save the "
       "sheet as CSV (UTF-8)"},
      {"Excel's text in UTF-16",
       "f.csv",
       std::string("\xFF\xFEt\0,\0", 6),
       {},
       ": found text in UTF-16; expected a text file, plain or gzip in UTF-8: save it as CSV (UTF-8)"},
      {"Parquet",
       "f.parquet",
       "PAR1....PAR1",
       {},
       ": found a Parquet file; expected a text file, plain or gzip: convert it, such as with pandas: "
       "pandas.read_parquet(\"f.parquet\").to_csv(\"series.csv\", index=False)"},
      {"Parquet inside gzip", "f.csv.gz", packed("PAR1....PAR1"), daily,
       ": found a Parquet file inside a gzip file; expected it unpacked (gunzip), since Parquet compresses its own "
       "columns"},
      {"periods of months as pandas writes them",
       "f.csv",
       "month,A\n2020-01,1\n2020-02,2\n2020-03,3\n",
       {},
       "csv 1M: A 2020-01-01 1 2 3"},
      {"periods of quarters", "f.csv", "quarter,A\n2020Q1,1\n2020Q2,2\n2020Q3,3\n", {}, "csv 1Q: A 2020-01-01 1 2 3"},
      {"years", "f.csv", "year,A\n2018,1\n2019,2\n2020,3\n", {}, "csv 1Y: A 2018-01-01 1 2 3"},
      {"business days",
       "f.csv",
       "t,A\n2020-01-02,1\n2020-01-03,2\n2020-01-06,3\n2020-01-07,4\n2020-01-08,5\n",
       {},
       "csv 1B: A 2020-01-02 1 2 3 4 5"},
      {"a step without a row, a column a series",
       "f.csv",
       "t,A\n2020-01-01,1\n2020-01-02,2\n2020-01-04,4\n",
       {},
       ":4:1: found the time 2020-01-04 00:00:00; expected 2020-01-03 00:00:00, one step of 1D after 2020-01-02 "
       "00:00:00 (--gaps: missing, takes steps without a row)"},
      {"the same with gaps: missing", "f.csv", "t,A\n2020-01-01,1\n2020-01-02,2\n2020-01-04,4\n", gaps,
       "csv 1D: A 2020-01-01 1 2 ? 4"},
      {"a step without a row, a row a value",
       "f.csv",
       "item_id,timestamp,target\nA,2020-01-01,1\nA,2020-01-02,2\nA,2020-01-04,4\n",
       {},
       "csv_long 1D: A 2020-01-01 1 2 ? 4"},
      {"the same with gaps: error", "f.csv",
       "item_id,timestamp,target\nA,2020-01-01,1\nA,2020-01-02,2\nA,2020-01-04,4\n", no_gaps,
       ":4:2: found the time 2020-01-04 00:00:00 of series 'A'; expected 2020-01-03 00:00:00, as no step may be "
       "without a row (--gaps: missing, takes them)"},
      {"one time twice",
       "f.csv",
       "item_id,timestamp,target\nA,2020-01-01,1\nA,2020-01-02,2\nA,2020-01-02,4\nA,2020-01-03,5\n",
       {},
       ":4:2: found the time 2020-01-02 00:00:00 of series 'A' again, first seen in line 3; expected each time once "
       "(--duplicates: last or mean, takes rows of one time)"},
      {"the same with duplicates: last", "f.csv",
       "item_id,timestamp,target\nA,2020-01-01,1\nA,2020-01-02,2\nA,2020-01-02,4\nA,2020-01-03,5\n", last,
       "csv_long 1D: A 2020-01-01 1 4 5"},
      {"the same with duplicates: mean, a column a series", "f.csv",
       "t,A,B\n2020-01-01,1,1\n2020-01-02,2,\n2020-01-02,4,7\n2020-01-03,5,1\n", mean,
       "csv 1D: A 2020-01-01 1 3 5 | B 2020-01-01 1 7 1"},
      {"the hour that winter time repeats", "f.csv",
       "t,A\n2020-10-25 01:00,1\n2020-10-25 02:00,2\n2020-10-25 02:00,4\n2020-10-25 03:00,5\n", mean,
       "csv 1h: A 2020-10-25 01:00:00 1 3 5"},
      {"GluonTS' JSON Lines", "f.jsonl",
       "{\"start\": \"2020-01-01 00:00\", \"target\": [1, NaN, 3], \"item_id\": \"A\"}\n", daily,
       "jsonl 1D: A 2020-01-01 1 ? 3"},
      {"Monash's tsf",
       "f.tsf",
       "@relation x\n@attribute series_name string\n@attribute start_timestamp date\n@frequency daily\n@missing "
       "true\n@equallength true\n@data\n"
       "A:2020-01-01 00-00-00:1,?,3\n",
       {},
       "tsf 1D: A 2020-01-01 1 ? 3"},
      {"numbers alone, as LSTNet has them", "f.txt", "1,2\n3,4\n", daily_from_2020,
       "lstnet 1D: 0 2020-01-01 1 3 | 1 2020-01-01 2 4"},
      {"seconds since 1970",
       "f.csv",
       "t,A\n1577836800,1\n1577840400,2\n",
       {},
       ":2:1: found '1577836800'; expected a time stamp such as 2015-01-31 or 2015-01-31 13:00:00"},
  };
}

TEST_F(Readers, TypicalFilesAreReadOrNamed) {
  const auto files = typical_files();
  EXPECT_GE(files.size(), 30U);
  for (const auto& file : files) {
    SCOPED_TRACE(file.what);
    if (reads_parquet() && std::string_view(file.name) == "f.parquet")
      continue;  // tests/cli/parquet.py has what is read then, and refused
    const auto path = put(file.content, file.name);
    std::string found;
    testing::internal::CaptureStderr();
    try {
      const auto options = read_options_of(path, file.stated);
      found = text_of(options, read_dataset(path, options));
    } catch (const Error& error) {
      found = error.what();
      const auto folder = (folder_ / "").string();
      while (found.find(folder) != std::string::npos) found.erase(found.find(folder), folder.size());
      EXPECT_TRUE(found.starts_with(file.name)) << found;
      found.erase(0, std::string(file.name).size());
      EXPECT_EQ(error.code(), ExitCode::data) << found;
    }
    (void)testing::internal::GetCapturedStderr();
    EXPECT_EQ(found, file.expected);
    std::filesystem::remove(path);
  }
}

// What cannot be told is asked for.
TEST_F(Readers, AFrequencyThatTimesDoNotTellIsAskedFor) {
  for (const char* text : {"t,A\n2020-01-01,1\n2020-01-02,2\n", "t,A\n2020-01-01,1\n2020-01-02,2\n2020-03-01,2\n"}) {
    try {
      (void)read_options_of(put(text, "f.csv"), {});
      FAIL() << text;
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find("--frequency: not given, and "), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("f.csv (csv) does not tell it; expected a calendar step"),
                std::string::npos)
          << error.what();
    }
  }
}

// A wrong year asks for no more memory than the file has reason for.
TEST_F(Readers, CsvWithGapsHoldsNoMoreThanItsRows) {
  auto read = options(Format::csv);
  read.gaps = Gaps::missing;
  std::string header = "t";
  std::string zeros;
  for (int i = 0; i < 1000; ++i) {
    header += cat(",s", i);
    zeros += ",0";
  }
  EXPECT_NE(error(header + "\n2015-01-01" + zeros + "\n2018-01-01" + zeros + "\n", read)
                .find("found the time 2018-01-01 00:00:00; expected 2015-01-01 01:00:00"),
            std::string::npos);
}

TEST_F(Readers, DamagedTablesOfOtherFormsAreReadOrNamed) {
  auto read = options(Format::csv_long, "1D");
  read.duplicates = Duplicates::mean;
  expect_no_crash(
      ";item_id;timestamp;target\n0;A;31.12.2019;1,5\n1;\"A\";2020-01-01T00:00:00;2\n2;B;2020/01/"
      "01;\"3\"\n3;A;2020-01-01 0:00;4\n",
      "\n;-: \r\t01234567890123456789.,TZ+/\"", read);
  expect_no_crash(
      "item_id,timestamp,target\nA,2019-12-31T00:00:00+00:00,1.5\n\"A\",2020-01-01T00:00:00+0100,2\nB,2020-01-01T00:00:"
      "00+09:00[Asia/Tokyo],3\n",
      "\n,-: \r\t01234567890123456789.TZ+/[]\"", read);
  auto wide = options(Format::csv, "1D");
  wide.gaps = Gaps::missing;
  wide.duplicates = Duplicates::last;
  expect_no_crash("sep=;\n;date;A;B\n0;31.12.2019;1,5;2\n1;2020-01-02;;2\n2;2020-01-02;3;\"4\"\n3;2020-01-05;3;4\n",
                  "\n;-: 01234567890123456789.,\"", wide);
}

}  // namespace
}  // namespace tsdp::data
