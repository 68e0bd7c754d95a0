#include "readers_fixture.h"

namespace tsdp::data {
namespace {

TEST_F(Readers, JsonlIsGluontsForm) {
  const auto data = jsonl(
      "{\"start\": \"2015-01-01 05:00\", \"target\": [1.5, \"Nan\", 0.10000000149011612], \"item_id\": \"x\"}\n"
      "\n"
      "  "
      "{\"item_id\":17,\"feat_static_cat\":[0,[1]],\"target\":[null,1,2,\"NaN\",-3e-2,\"nan\",NaN,18446744073709551615,"
      "NaN],\"start\":\"2015-01-01T00:00:00.000000\",\"other\":{\"target\":[\"a\"],\"start\":1,\"NaN \\\" "
      "NaN\":true}}\r\n"
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

}  // namespace
}  // namespace tsdp::data
