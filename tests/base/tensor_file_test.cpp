#include "tsdp/base/tensor_file.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/digest.h"
#include "tsdp/base/error.h"

namespace tsdp {
namespace {

TensorFile example() {
  TensorFile file;
  file.texts = {{"about", "an \"example\" of ε"}, {"empty", ""}};
  const double values[] = {1.5, -0.0, 1e300};
  file.tensors = {{"values", "F64", {3}, std::string(reinterpret_cast<const char*>(values), sizeof values)},
                  {"none", "F32", {0, 4}, ""},
                  {"one", "I64", {}, std::string(8, '\1')}};
  return file;
}

TEST(TensorFile, ReadsBackWhatWasWritten) {
  const auto bytes = tensor_file_bytes(example());
  const auto found = read_tensor_file(bytes, "f");
  EXPECT_EQ(found.texts, example().texts);
  ASSERT_EQ(found.tensors.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(found.tensors[i].name, example().tensors[i].name);
    EXPECT_EQ(found.tensors[i].type, example().tensors[i].type);
    EXPECT_EQ(found.tensors[i].shape, example().tensors[i].shape);
    EXPECT_EQ(found.tensors[i].bytes, example().tensors[i].bytes);
  }
  EXPECT_EQ(tensor_file_bytes(found), bytes);
}

TEST(TensorFile, IsSafetensors) {
  const auto bytes = tensor_file_bytes(example());
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0U);
  const auto header = bytes.substr(8, length);
  EXPECT_NE(header.find(R"("values":{"dtype":"F64","shape":[3],"data_offsets":[0,24]})"), std::string::npos) << header;
  EXPECT_EQ(bytes.size(), 8 + length + 24 + 8 + 32);
}

TEST(TensorFile, AnyChangedBitIsFound) {
  const auto bytes = tensor_file_bytes(example());
  for (std::size_t place = 0; place < bytes.size(); ++place)
    for (int bit = 0; bit < 8; ++bit) {
      auto changed = bytes;
      changed[place] = static_cast<char>(changed[place] ^ (1 << bit));
      EXPECT_THROW(static_cast<void>(read_tensor_file(changed, "f")), DataError) << place;
    }
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THROW(static_cast<void>(read_tensor_file(bytes.substr(0, size), "f")), DataError) << size;
}

/// The bytes of a file with this header and these values, its checksum right.
std::string forged(std::string header, const std::string& values) {
  std::string out(8, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(out.data(), &length, 8);
  out += header + values;
  const auto hex = sha256(out);
  for (std::size_t i = 0; i < hex.size(); i += 2) out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return out;
}

TEST(TensorFile, LiesWithARightChecksumAreRefused) {
  const std::string sum = R"("sha256":{"dtype":"U8","shape":[32],"data_offsets":[8,40]})";
  const auto read = [&](const std::string& header, const std::string& values = std::string(8, 'x')) {
    return read_tensor_file(forged(header, values), "f");
  };
  EXPECT_EQ(read(R"({"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},)" + sum + "}").tensors.size(), 1U);
  for (const std::string tensor :
       {R"("a":{"dtype":"F64","shape":[2],"data_offsets":[0,8]})",
        R"("a":{"dtype":"F16","shape":[4],"data_offsets":[0,8]})",
        R"("a":{"dtype":"F64","shape":[-1],"data_offsets":[0,8]})",
        R"("a":{"dtype":"F64","shape":[1],"data_offsets":[8,0]})",
        R"("a":{"dtype":"F64","shape":[1],"data_offsets":[0,800]})", R"("a":{"dtype":"F64","shape":[1]})",
        R"("a":{"dtype":"F64","shape":[4611686018427387904,4611686018427387904,0],"data_offsets":[0,8]})",
        R"("a":{"dtype":"F64","shape":[1.0],"data_offsets":[0,8]})",
        R"("a":{"dtype":1,"shape":[1],"data_offsets":[0,8]})", R"("a":7)",
        R"("__metadata__":[],"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]})",
        R"("__metadata__":{"t":1},"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]})", R"("b":{})"})
    EXPECT_THROW(static_cast<void>(read("{" + tensor + "," + sum + "}")), DataError) << tensor;
  EXPECT_THROW(static_cast<void>(read("[]")), DataError);
  EXPECT_THROW(static_cast<void>(read("not JSON")), DataError);
  EXPECT_THROW(static_cast<void>(read(std::string(200'000, '['))), DataError);
  EXPECT_THROW(static_cast<void>(read("{}")), DataError);
}

TEST(TensorFile, WritesNothingThatDoesNotFit) {
  auto file = example();
  file.tensors[0].shape = {4};
  EXPECT_THROW(static_cast<void>(tensor_file_bytes(file)), Error);
  file = example();
  file.tensors[1].name = "values";
  EXPECT_THROW(static_cast<void>(tensor_file_bytes(file)), Error);
}

}  // namespace
}  // namespace tsdp
