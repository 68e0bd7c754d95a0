#include "tsdp/base/text.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tsdp/base/json.h"

namespace tsdp {
namespace {

void expect_exact(double value) {
  const auto text = exact(value);
  char* end = nullptr;
  const double read = std::strtod(text.c_str(), &end);
  EXPECT_EQ(*end, '\0') << text;
  EXPECT_EQ(std::bit_cast<std::uint64_t>(read), std::bit_cast<std::uint64_t>(value)) << text;
  double parsed = 0.0;
  EXPECT_TRUE(parse_double(text, parsed)) << text;
  EXPECT_EQ(std::bit_cast<std::uint64_t>(parsed), std::bit_cast<std::uint64_t>(value)) << text;
}

TEST(Text, ExactReadsBackExactly) {
  using limits = std::numeric_limits<double>;
  for (const double value : {0.0, -0.0, 1.0, 0.1, 1e-7, 1.0 / 3.0, 2.0 / 3.0, 1e22, 1e23, 5e-324, 123456789012345680.0,
                             limits::max(), limits::min(), limits::lowest(), limits::denorm_min(), limits::epsilon()})
    expect_exact(value);
  std::mt19937_64 bits(1);
  for (int i = 0; i < 100000; ++i) {
    const auto value = std::bit_cast<double>(bits());
    if (std::isfinite(value)) expect_exact(value);
  }
}

TEST(Text, ExactIsShort) {
  EXPECT_EQ(exact(0.1), "0.1");
  EXPECT_EQ(exact(4.0), "4");
  EXPECT_EQ(exact(1e-7), "1e-07");
}

TEST(Text, ExactNamesWhatIsNoNumber) {
  EXPECT_EQ(exact(std::numeric_limits<double>::quiet_NaN()), "nan");
  EXPECT_EQ(exact(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(exact(-std::numeric_limits<double>::infinity()), "-inf");
}

TEST(Text, RoundedKeepsSignificantDigits) {
  EXPECT_EQ(rounded(1.0 / 3.0), "0.3333");
  EXPECT_EQ(rounded(123456.0, 3), "123000");
  EXPECT_EQ(rounded(-99.6, 2), "-100");
  EXPECT_EQ(rounded(1234567.0, 3), "1.23e+06");
  EXPECT_EQ(rounded(0.0000123456, 3), "1.23e-05");
  EXPECT_EQ(rounded(2.0, 7), "2");
}

TEST(Text, Utf8IsToldFromOtherBytes) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("a ä ε 😀 \xF4\x8F\xBF\xBF"));
  for (const auto* text : {"\xFF", "a\xC3", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\x80"})
    EXPECT_FALSE(is_utf8(text)) << text;
}

// What a file calls itself or its series must not move the cursor, colour the screen or hide a line.
TEST(Text, VisibleTextHoldsNothingThatATerminalObeys) {
  EXPECT_EQ(visible("load of zone 3: ε ≤ 1, 'ä' 😀"), "load of zone 3: ε ≤ 1, 'ä' 😀");
  EXPECT_EQ(visible("\x1b[31mred\x7f"), "\\x1b[31mred\\x7f");
  EXPECT_EQ(visible("a\nb\tc\r"), "a\\x0ab\\x09c\\x0d");
  EXPECT_EQ(visible("a\nb\tc\r", true), "a\nb\tc\\x0d");
  EXPECT_EQ(visible(std::string("\0", 1)), "\\x00");
  EXPECT_EQ(visible("\xC2\x9B"
                    "2J"),
            "\\xc2\\x9b2J");   // CSI, as a character
  EXPECT_EQ(visible("\x9B"
                    "2J\xFF"),
            "\\x9b2J\\xff");  // and as a byte
  EXPECT_EQ(visible("\xE2\x80\xAE"
                    "cod.exe"),
            "\\xe2\\x80\\xaecod.exe");
  EXPECT_EQ(visible("\xE2\x81\xA6\xE2\x80\xA8"), "\\xe2\\x81\\xa6\\xe2\\x80\\xa8");
  for (int byte = 0; byte < 256; ++byte)
    for (const char c : visible(std::string(3, static_cast<char>(byte)))) EXPECT_TRUE(c >= ' ' && c <= '~') << byte;
}

TEST(Text, JsonOfAnyBytesIsText) {
  const nlohmann::json json = {{"na\xFFme", "\x1b\xC3"}};
  EXPECT_EQ(json_text(json), "{\"na\xEF\xBF\xBDme\":\"\\u001b\xEF\xBF\xBD\"}");
  EXPECT_EQ(json_text(nlohmann::json{{"a", 0.1}}, 2), "{\n  \"a\": 0.1\n}");
}

TEST(Text, CatWritesEachKindOfPart) {
  EXPECT_EQ(cat("a", 1, ' ', 0.1, true, std::string("z"), false, 0.5F), "a1 0.1truezfalse0.5");
  EXPECT_EQ(cat(), "");
}

TEST(Text, JoinAndSplitUndoEachOther) {
  EXPECT_EQ(join(std::vector<std::string>{}, ", "), "");
  EXPECT_EQ(join(std::vector<std::string>{"a", "b", ""}, ", "), "a, b, ");
  EXPECT_EQ(split("a,b,", ','), (std::vector<std::string>{"a", "b", ""}));
  EXPECT_EQ(split("", ','), std::vector<std::string>{""});
  EXPECT_EQ(split(",", ','), (std::vector<std::string>{"", ""}));
  EXPECT_EQ(join(split("x,,y", ','), ","), "x,,y");
}

TEST(Text, TrimmedTakesWhiteSpaceAtBothEnds) {
  EXPECT_EQ(trimmed(" \t a b\r\n"), "a b");
  EXPECT_EQ(trimmed("a"), "a");
  EXPECT_EQ(trimmed(" \n"), "");
  EXPECT_EQ(trimmed(""), "");
}

TEST(Text, CsvFieldsReadBack) {
  for (const auto* plain : {"", "a", "a b", "Köln"}) EXPECT_EQ(csv_field(plain), plain);
  for (const std::string separated : {"a,b", "x;y", "x\ty"}) EXPECT_EQ(csv_field(separated), "\"" + separated + "\"");
  EXPECT_EQ(csv_field("say \"a\""), "\"say \"\"a\"\"\"");
  EXPECT_EQ(csv_field("a\nb"), "\"a\nb\"");
  EXPECT_EQ(csv_field("a\r"), "\"a\r\"");
  EXPECT_EQ(csv_field(" a"), "\" a\"");
}

TEST(Text, ClockTextIsRoundedUp) {
  EXPECT_EQ(clock_text(0.0), "0:00:00");
  EXPECT_EQ(clock_text(186.2), "0:03:07");
  EXPECT_EQ(clock_text(3600.0), "1:00:00");
  EXPECT_EQ(clock_text(172799.0), "47:59:59");
  EXPECT_EQ(clock_text(172799.5), "2 d 00 h");
  EXPECT_EQ(clock_text(273600.0), "3 d 04 h");
  for (const double none : {-1.0, 2e9, std::nan(""), std::numeric_limits<double>::infinity()})
    EXPECT_EQ(clock_text(none), "?");
}

TEST(Text, NearestNameHasTheLeastEditDistance) {
  const std::vector<std::string> known = {"privacy.delta", "privacy.noise_multiplier", "sampling.batch_size"};
  EXPECT_EQ(nearest_name("sampling.batchsize", known), "sampling.batch_size");
  EXPECT_EQ(nearest_name("privacy.noise_multiplyer", known), "privacy.noise_multiplier");
  EXPECT_EQ(nearest_name("delta", known), "privacy.delta");
  EXPECT_EQ(nearest_name("privacy.delta", known), "privacy.delta");
  EXPECT_EQ(nearest_name("", std::vector<std::string>{"abc", "a"}), "a");
  EXPECT_EQ(nearest_name("abc", std::vector<std::string>{}), "");
  // Of equally near names, the first.
  EXPECT_EQ(nearest_name("ax", std::vector<std::string>{"ab", "ac"}), "ab");
}

TEST(Text, ParseDoubleTakesTheWholeTextOrNothing) {
  double value = 0.0;
  EXPECT_TRUE(parse_double("1.5e-3", value));
  EXPECT_EQ(value, 1.5e-3);
  EXPECT_TRUE(parse_double("+2", value));
  EXPECT_EQ(value, 2.0);
  EXPECT_TRUE(parse_double("-0.5", value));
  EXPECT_EQ(value, -0.5);
  for (const auto* bad : {"", "+", "-", "1.5x", " 1", "1 ", "1,5", "0x10", "1e999", "--1", "+-1", "one"})
    EXPECT_FALSE(parse_double(bad, value)) << bad;
}

TEST(Text, ParseIntTakesTheWholeTextOrNothing) {
  long long value = 0;
  EXPECT_TRUE(parse_int("9223372036854775807", value));
  EXPECT_EQ(value, std::numeric_limits<long long>::max());
  EXPECT_TRUE(parse_int("-9223372036854775808", value));
  EXPECT_EQ(value, std::numeric_limits<long long>::min());
  EXPECT_TRUE(parse_int("+7", value));
  EXPECT_EQ(value, 7);
  for (const auto* bad : {"", "+", "-", "1.0", "1e3", " 1", "1 ", "9223372036854775808", "0x10", "+-1", "one"})
    EXPECT_FALSE(parse_int(bad, value)) << bad;
}

}  // namespace
}  // namespace tsdp
