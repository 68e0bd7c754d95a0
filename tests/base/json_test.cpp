#include "tsdp/base/json.h"

#include <gtest/gtest.h>

#include "tsdp/base/error.h"

namespace tsdp {
namespace {

TEST(ParseJson, TakesWhatHasOneMeaning) {
  EXPECT_EQ(parse_json(R"({"a": {"b": 1}, "c": {"b": [2, {"b": 3}]}})", "f")["c"]["b"][1]["b"], 3);
  EXPECT_EQ(parse_json(std::string(16, '[') + std::string(16, ']'), "f").size(), 1U);
}

TEST(ParseJson, RefusesTheRest) {
  for (const std::string text :
       {"", "{", "{} {}", R"({"a": 1, "a": 1})", R"({"x": {"a": 1, "b": 2, "a": 3}})", R"([{"a": 1, "a": 2}])"})
    EXPECT_THROW(static_cast<void>(parse_json(text, "f")), DataError) << text;
  EXPECT_NO_THROW(static_cast<void>(parse_json(std::string(64, '[') + std::string(64, ']'), "f")));
  for (const std::size_t deep : {65U, 3'000'000U}) {
    EXPECT_THROW(static_cast<void>(parse_json(std::string(deep, '['), "f")), DataError);
    EXPECT_THROW(static_cast<void>(parse_json(std::string(deep, '[') + std::string(deep, ']'), "f")), DataError);
  }
  try {
    static_cast<void>(parse_json(R"({"a": 1, "a": 2})", "run/privacy.json"));
    FAIL();
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(), "run/privacy.json: has the key 'a' twice; expected each once");
  }
}

}  // namespace
}  // namespace tsdp
