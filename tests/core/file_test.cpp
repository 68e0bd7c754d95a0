#include "tsdp/core/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>

#include "tsdp/core/error.h"
#include "support/temporary_folder.h"

namespace tsdp {
namespace {

class File : public test::TemporaryFolder {
 protected:
  [[nodiscard]] std::filesystem::path path(const std::string& name) const { return folder_ / name; }
  [[nodiscard]] std::size_t entries() const {
    std::size_t count = 0;
    for (auto i = std::filesystem::directory_iterator(folder_); i != std::filesystem::directory_iterator(); ++i)
      ++count;
    return count;
  }
};

mode_t mode_of(const std::filesystem::path& file) {
  struct stat about {};
  EXPECT_EQ(::stat(file.c_str(), &about), 0) << file;
  return about.st_mode & 07777;
}

TEST_F(File, ReadsWhatWasWritten) {
  std::string content = "first\r\nsecond\n";
  content += '\0';
  content += "\xff\x80 third";
  for (const auto& text : {content, std::string(), std::string(1'000'000, 'x')}) {
    write_file_atomically(path("a"), text);
    EXPECT_EQ(read_file(path("a")), text);
  }
  EXPECT_EQ(entries(), 1U);  // nothing is left beside it
}

TEST_F(File, OldReadersKeepTheOldContent) {
  write_file_atomically(path("a"), "old content");
  const int fd = ::open(path("a").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  write_file_atomically(path("a"), "new");
  std::array<char, 32> buffer{};
  EXPECT_EQ(::read(fd, buffer.data(), buffer.size()), 11);
  EXPECT_EQ(std::string(buffer.data()), "old content");
  ::close(fd);
  EXPECT_EQ(read_file(path("a")), "new");
}

TEST_F(File, ModeIsAsAskedWhateverTheUmask) {
  const mode_t before = ::umask(077);
  write_file_atomically(path("open"), "x");
  ::umask(0);
  write_file_atomically(path("secret"), "x", FileAccess::owner);
  ::umask(before);
  EXPECT_EQ(mode_of(path("open")), 0644U);
  EXPECT_EQ(mode_of(path("secret")), 0600U);
}

TEST_F(File, ModeIsAsAskedWhateverWasThereBefore) {
  std::ofstream(path("a")) << "public";
  std::ofstream(path("a.part")) << "left over by a crash, and longer than the new content";
  ASSERT_EQ(::chmod(path("a").c_str(), 0666), 0);
  ASSERT_EQ(::chmod(path("a.part").c_str(), 0666), 0);
  write_file_atomically(path("a"), "secret", FileAccess::owner);
  EXPECT_EQ(mode_of(path("a")), 0600U);
  EXPECT_EQ(read_file(path("a")), "secret");
  EXPECT_EQ(entries(), 1U);
}

TEST_F(File, WritesToAPathWithoutFolder) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(path(""));
  write_file_atomically("bare", "x");
  std::filesystem::current_path(before);
  EXPECT_EQ(read_file(path("bare")), "x");
}

TEST_F(File, FailureToWriteNamesPathAndReason) {
  const auto target = path("absent/a");
  try {
    write_file_atomically(target, "x");
    ADD_FAILURE() << "it was written";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::failure);
    const std::string line = error.what();
    EXPECT_NE(line.find(target.string()), std::string::npos) << line;
    EXPECT_NE(line.find("No such file"), std::string::npos) << line;
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
  }
}

TEST_F(File, FailureToReplaceNamesPathAndHarmsNothing) {
  std::filesystem::create_directories(path("a/b"));
  try {
    write_file_atomically(path("a"), "x");
    ADD_FAILURE() << "it was written";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::failure);
    EXPECT_NE(std::string(error.what()).find(path("a").string()), std::string::npos) << error.what();
  }
  EXPECT_TRUE(std::filesystem::is_directory(path("a/b")));
}

TEST_F(File, PiecesAppearTogetherOrNotAtAll) {
  write_file_atomically(path("a"), "old");
  {
    AtomicFile file(path("a"));
    file.write("first, ");
    file.write("second");
    EXPECT_EQ(read_file(path("a")), "old");
    file.commit();
    EXPECT_EQ(read_file(path("a")), "first, second");
  }
  {
    AtomicFile abandoned(path("a"));
    abandoned.write("half of ");
  }
  EXPECT_EQ(read_file(path("a")), "first, second");
  EXPECT_EQ(entries(), 1U);
}

TEST_F(File, AFullDeviceNamesPathAndReason) {
  ASSERT_EQ(::symlink("/dev/full", path("a.part").c_str()), 0);
  try {
    write_file_atomically(path("a"), "x");
    ADD_FAILURE() << "it was written";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::failure);
    EXPECT_NE(std::string(error.what()).find(path("a.part").string()), std::string::npos) << error.what();
  }
  EXPECT_FALSE(std::filesystem::exists(path("a")));
}

TEST_F(File, FailureToReadNamesThePath) {
  for (const auto& target : {path("absent"), path("")}) {
    try {
      static_cast<void>(read_file(target));
      ADD_FAILURE() << target << " was read";
    } catch (const DataError& error) {
      EXPECT_EQ(error.code(), ExitCode::data);
      EXPECT_NE(std::string(error.what()).find(target.string()), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace tsdp
