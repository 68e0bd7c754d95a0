// Values in double precision beside those in single precision: what every reader gives where it is asked for them.
#include "readers_fixture.h"

#include <string>

#include "tsdp/base/text.h"

namespace tsdp::data {
namespace {

constexpr double none = std::numeric_limits<double>::quiet_NaN();

// Fields of a series, what their nearest double is: counts at 1e9, which lie 64 apart in single precision, long
// decimals, ties of single precision, next to zero, and the largest.
struct Field {
  std::string text;
  double exact;
};
const std::vector<Field> fields = {
    {"1000000031", 1000000031.0},
    {"1000000033", 1000000033.0},
    {"", none},
    {"0.1", 0.1},
    {"-123456789.123456789", -123456789.123456789},
    {"9007199254740993", 9007199254740992.0},
    {"1.00000005960464477539062500001", 0x1.0000010000000p0},
    {"4.9e-324", 0x1p-1074},
    {"1e-310", 1e-310},
    {"3.4028234e38", 3.4028234e38},
    {"18446744073709551617", 0x1p64},
};

/// `fields` as each form writes them, and how it writes a missing value.
struct Form {
  Format format;
  std::string content;
};
std::vector<Form> forms() {
  std::string lstnet, csv = "time,a\n", csv_long = "unique_id,ds,y\n", tsf, jsonl;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto& text = fields[i].text;
    const auto stamp = moment_text(at("2015-01-01") + 3600 * static_cast<Moment>(i));
    lstnet += cat(i == 0 ? "1," : "nan,", text, "\n");  // two columns, so that an empty one is a missing value
    csv += cat(stamp, ",", text, "\n");
    if (!text.empty()) csv_long += cat("a,", stamp, ",", text, "\n");
    tsf += cat(i > 0 ? "," : "", text.empty() ? "?" : text);
    jsonl += cat(i > 0 ? ", " : "", text.empty() ? "null" : text);
  }
  return {{Format::lstnet, lstnet},
          {Format::csv, csv},
          {Format::csv_long, csv_long},
          {Format::tsf,
           "@attribute series_name string\n@attribute start_timestamp date\n@frequency hourly\n@data\n"
           "a:2015-01-01 00-00-00:" +
               tsf + "\n"},
          {Format::jsonl, "{\"start\": \"2015-01-01\", \"target\": [" + jsonl + "]}\n"}};
}

void expect_same(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_TRUE(found[i] == expected[i] || (std::isnan(found[i]) && std::isnan(expected[i])))
        << "place " << i << ": " << found[i] << " is not " << expected[i];
}

TEST_F(Readers, EveryReaderGivesTheNearestDouble) {
  std::vector<double> expected;
  for (const auto& field : fields) expected.push_back(field.exact);
  for (const auto& [format, content] : forms()) {
    SCOPED_TRACE(name(format));
    auto asked = options(format);
    asked.exact = true;
    expect_same(read_dataset(put(content), asked).series.back().exact, expected);
  }
}

TEST_F(Readers, SinglePrecisionIsTheSameWithDoubleBesideIt) {
  for (const auto& [format, content] : forms()) {
    SCOPED_TRACE(name(format));
    auto asked = options(format);
    const auto without = read_dataset(put(content), asked);
    asked.exact = true;
    const auto with = read_dataset(put(content), asked);
    ASSERT_EQ(with.series.size(), without.series.size());
    for (std::size_t s = 0; s < with.series.size(); ++s) {
      EXPECT_TRUE(without.series[s].exact.empty());
      ASSERT_EQ(with.series[s].exact.size(), with.series[s].values.size());
      expect_values(with.series[s].values, without.series[s].values);
      for (std::size_t i = 0; i < with.series[s].values.size(); ++i)
        EXPECT_EQ(std::isnan(with.series[s].values[i]), std::isnan(with.series[s].exact[i])) << i;
    }
  }
}

TEST_F(Readers, CutEndsAreCutInBoth) {
  auto asked = options(Format::lstnet);
  asked.exact = true;
  const auto data = read_dataset(put("nan,1,?\n2000000001,,NA\n,NaN,3\n4,5,nan\nNA,6,\n"), asked);
  expect_same(data.series[0].exact, {2000000001, none, 4});
  expect_same(data.series[1].exact, {1, none, none, 5, 6});
  expect_same(data.series[2].exact, {3});
  asked = options(Format::csv_long);
  asked.exact = true;
  const auto file = put("unique_id,ds,y\na,2015-01-01 03:00,\na,2015-01-01 00:00,NA\na,2015-01-01 02:00,1000000001\n");
  expect_same(read_dataset(file, asked).series.at(0).exact, {1000000001});
}

}  // namespace
}  // namespace tsdp::data
