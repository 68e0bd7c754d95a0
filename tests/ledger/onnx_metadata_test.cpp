#include "ledger/onnx_metadata.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "support/temporary_folder.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/ledger/exported_model.h"

namespace tsdp::mechanism {
namespace {

using std::string_literals::operator""s;

/// A field that holds `content`, shorter than 128 bytes.
std::string field(int number, const std::string& content) {
  return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(content.size()) + content;
}
std::string entry(const std::string& key, const std::string& value) {
  return field(14, field(1, key) + field(2, value));
}

// A number (ir_version), a text, a graph that looks like an entry, entries, and fields of fixed sizes.
TEST(OnnxTexts, AreReadFromBetweenOtherFields) {
  const auto bytes = "\x08\x0a"s + field(2, "pytorch") + field(7, entry("a", "not this")) + entry("a", "first") +
                     "\x9d\x01"
                     "1234" +
                     entry("b", "") +
                     "\xa1\x01"
                     "12345678" +
                     entry("a", "second");
  EXPECT_EQ(onnx_texts(bytes, "a"), (std::vector<std::string_view>{"first", "second"}));
  EXPECT_EQ(onnx_texts(bytes, "b"), (std::vector<std::string_view>{""}));
  EXPECT_EQ(onnx_texts(bytes, "c"), std::vector<std::string_view>());
}

// Of bytes that are no message; and of those in which another reader may find another text.
TEST(OnnxTexts, AreNoneOfOtherBytes) {
  const auto key = field(1, "a"), value = field(2, "1");
  for (const auto& bytes :
       {"{}"s, "PK\x03\x04"s, "\x08"s, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"s,
        "\x72\x05"
        "abc"s,
        "\x00\x00"s, "\x0b"s,
        "\x9d\x01"
        "123"s,
        field(14, "\x0a\x7f"), field(14, key + "\x12\xff\xff\xff\xff\x0f"), field(14, key + value + "\x08\x00"s),
        field(14, key + value + key), field(14, key + value + value),
        "\x70\x01"s,  // field 14 as a number
        "\xf2\x80\x80\x80\x10"s + static_cast<char>(key.size()) + key})  // 14 in 36 bits
    EXPECT_FALSE(onnx_texts(bytes, "a")) << bytes;
}

class CarriedLedgers : public test::TemporaryFolder {};

TEST_F(CarriedLedgers, AreFoundInOnnx) {
  const auto file = folder_ / "model.onnx";
  const auto ledger = entry("privacy.json", R"({"theorem": "4.4"})");
  write_file_atomically(file, entry("model.json", "{}") + ledger);
  const auto found = carried_ledger(file);
  EXPECT_EQ(found.privacy["theorem"], "4.4");
  EXPECT_FALSE(found.ties_weights);
  const std::vector<std::pair<std::string, std::string>> others = {
      {entry("model.json", "{}"), "no privacy.json among the metadata"},
      {ledger + ledger, "privacy.json twice"},
      {entry("privacy.json", "{"), "privacy.json"},
      {"text", "neither a zip archive nor an ONNX model"},
      {"", "neither a zip archive nor an ONNX model"},
      {"PK\x03\x04" + ledger, "zip"}};
  for (const auto& [bytes, says] : others) {
    write_file_atomically(file, bytes);
    try {
      static_cast<void>(carried_ledger(file));
      ADD_FAILURE() << bytes;
    } catch (const DataError& error) {
      const std::string what = error.what();
      EXPECT_TRUE(what.starts_with(file.string()) && what.find(says) != std::string::npos) << what;
    }
  }
}

}  // namespace
}  // namespace tsdp::mechanism
