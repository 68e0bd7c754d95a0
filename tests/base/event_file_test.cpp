#include "base/event_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "support/temporary_folder.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"

namespace tsdp {
namespace {

using EventFileTest = test::TemporaryFolder;

TEST(Crc32c, AgreesWithTheExamplesOfRfc3720) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62A8AB43U);
  EXPECT_EQ(crc32c(""), 0U);
}

/// Payloads of the records, each with both checksums checked.
std::vector<std::string> records(const std::string& content) {
  const auto number = [&](std::size_t at, std::size_t size) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(content.at(at + i))) << (8 * i);
    return value;
  };
  const auto unmasked = [](std::uint64_t masked) {
    const auto rotated = static_cast<std::uint32_t>(masked) - 0xA282EAD8U;
    return (rotated >> 17U) | (rotated << 15U);
  };
  std::vector<std::string> out;
  for (std::size_t at = 0; at < content.size();) {
    const auto size = static_cast<std::size_t>(number(at, 8));
    EXPECT_EQ(unmasked(number(at + 8, 4)), crc32c(content.substr(at, 8)));
    out.push_back(content.substr(at + 12, size));
    EXPECT_EQ(unmasked(number(at + 12 + size, 4)), crc32c(out.back()));
    at += 16 + size;
  }
  return out;
}

TEST_F(EventFileTest, HoldsVersionStartAndScalars) {
  EventFile file(folder_, 301);
  file.add(300, std::vector<TaggedScalar>{{"a/b", 0.5}});
  const auto found = records(read_file(file.path()));
  ASSERT_EQ(found.size(), 3U);
  // Each begins with wall_time (field 1, fixed64) and step (field 2, varint).
  for (const auto& event : found) {
    EXPECT_EQ(event[0], '\x09');
    double seconds = 0.0;
    std::memcpy(&seconds, event.data() + 1, sizeof seconds);
    EXPECT_GT(seconds, 1.6e9);
  }
  EXPECT_EQ(found[0].substr(9), std::string("\x10\x00\x1a\x0d", 4) + "brain.Event:2");
  EXPECT_EQ(found[1].substr(9), "\x10\xad\x02\x3a\x02\x08\x01");                                  // step 301, START
  EXPECT_EQ(found[2].substr(9), std::string("\x10\xac\x02\x2a\x0c\x0a\x0a\x0a\x03", 9) + "a/b" +  // step 300
                                    std::string("\x15\x00\x00\x00\x3f", 5));
  struct stat about{};
  ASSERT_EQ(::stat(file.path().c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777, 0600U);
}

TEST_F(EventFileTest, NamesGrowAndHoldNoHost) {
  std::ofstream(folder_ / "events.out.tfevents.4000000000.tsdp.000000") << "of a clock that went ahead";
  std::array<char, 256> host{};
  ASSERT_EQ(::gethostname(host.data(), host.size() - 1), 0);
  std::string before = "events.out.tfevents.4000000000.tsdp.000000";
  for (int i = 0; i < 3; ++i) {
    EventFile file(folder_, 0);
    const auto name = file.path().filename().string();
    EXPECT_LT(before, name);
    EXPECT_EQ(name.rfind("events.out.tfevents.", 0), 0U);
    if (std::strlen(host.data()) > 3) {
      EXPECT_EQ(name.find(host.data()), std::string::npos);
    }
    before = name;
  }
}

TEST_F(EventFileTest, NamesTheFolderThatCannotBeWritten) {
  try {
    EventFile file(folder_ / "missing", 0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("missing"), std::string::npos);
    EXPECT_EQ(error.code(), ExitCode::failure);
  }
}

}  // namespace
}  // namespace tsdp
