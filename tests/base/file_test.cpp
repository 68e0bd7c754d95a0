#include "tsdp/base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "support/temporary_folder.h"
#include "tsdp/base/error.h"

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
  struct stat about{};
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

TEST_F(File, EveryoneIsWhomTheUmaskLetsAndTheOwnerIsAlone) {
  const mode_t before = ::umask(0);
  for (const mode_t mask : {mode_t{022}, mode_t{077}, mode_t{0}, mode_t{0777}}) {
    ::umask(mask);
    write_file_atomically(path("open"), "x");
    write_file_atomically(path("secret"), "x", FileAccess::owner);
    EXPECT_EQ(mode_of(path("open")), 0666U & ~mask);
    EXPECT_EQ(mode_of(path("secret")), 0600U);
  }
  ::umask(before);
}

TEST_F(File, ALinkStaysAndTheFileBehindItIsReplaced) {
  std::filesystem::create_directories(path("there"));
  write_file_atomically(path("there/a"), "old");
  ASSERT_EQ(::symlink("there/b", path("link").c_str()), 0);
  ASSERT_EQ(::symlink("a", path("there/b").c_str()), 0);
  ASSERT_EQ(::symlink("there/new", path("dangling").c_str()), 0);
  write_file_atomically(path("link"), "new", FileAccess::owner);
  EXPECT_TRUE(std::filesystem::is_symlink(path("link")));
  EXPECT_TRUE(std::filesystem::is_symlink(path("there/b")));
  EXPECT_EQ(read_file(path("there/a")), "new");
  EXPECT_EQ(mode_of(path("there/a")), 0600U);
  write_file_atomically(path("dangling"), "made");
  EXPECT_TRUE(std::filesystem::is_symlink(path("dangling")));
  EXPECT_EQ(read_file(path("there/new")), "made");
  EXPECT_FALSE(std::filesystem::exists(path("there/a.part")));
  EXPECT_EQ(entries(), 3U);
}

TEST_F(File, LinksInACircleAreOneLine) {
  ASSERT_EQ(::symlink("b", path("a").c_str()), 0);
  ASSERT_EQ(::symlink("a", path("b").c_str()), 0);
  const auto expect_told = [&](auto action) {
    try {
      action();
      ADD_FAILURE() << "links in a circle were followed";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("Too many levels of symbolic links"), std::string::npos) << error.what();
    }
  };
  expect_told([&] { write_file_atomically(path("a"), "x"); });
  expect_told([&] { static_cast<void>(read_file(path("a"))); });
  expect_told([&] { static_cast<void>(is_there(path("a"))); });
  EXPECT_EQ(entries(), 2U);
}

TEST_F(File, ALeftOverOrPlantedPartIsNeverFollowed) {
  std::ofstream(path("precious")) << "precious";
  ASSERT_EQ(::symlink("precious", path("a.part").c_str()), 0);
  write_file_atomically(path("a"), "new");
  EXPECT_EQ(read_file(path("precious")), "precious");
  EXPECT_EQ(read_file(path("a")), "new");
  EXPECT_FALSE(std::filesystem::is_symlink(path("a")));
  EXPECT_EQ(entries(), 2U);
}

TEST_F(File, TwoWritersNeverMixTheirBytes) {
  AtomicFile first(path("a"));
  first.write("first");
  AtomicFile second(path("a"));
  second.write("sec");
  EXPECT_THROW(first.commit(), Error);
  second.write("ond");
  second.commit();
  EXPECT_EQ(read_file(path("a")), "second");
  EXPECT_EQ(entries(), 1U);
}

TEST_F(File, AFifoIsWrittenIntoAndStays) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  const int reader = ::open(path("fifo").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  write_file_atomically(path("fifo"), "through");
  std::array<char, 32> buffer{};
  EXPECT_EQ(::read(reader, buffer.data(), buffer.size()), 7);
  EXPECT_EQ(std::string(buffer.data()), "through");
  ::close(reader);
  EXPECT_TRUE(std::filesystem::is_fifo(path("fifo")));
  EXPECT_EQ(entries(), 1U);
}

TEST_F(File, ADeviceIsWrittenIntoAndStays) {
  ASSERT_EQ(::symlink("/dev/null", path("nowhere").c_str()), 0);
  write_file_atomically(path("nowhere"), "x");
  EXPECT_TRUE(std::filesystem::is_symlink(path("nowhere")));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_EQ(entries(), 1U);
}

// What a shell sent stdout to is a file of the shell's: --output /dev/stdout adds to it.
TEST_F(File, StdoutIsWrittenIntoEvenIfItIsAFile) {
  const int before = ::dup(STDOUT_FILENO);
  const int file = ::open(path("out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(file, 0);
  ASSERT_EQ(::write(file, "one ", 4), 4);
  ::dup2(file, STDOUT_FILENO);
  write_file_atomically("/dev/stdout", "two ");
  ::dup2(before, STDOUT_FILENO);
  ::close(before);
  ASSERT_EQ(::write(file, "three", 5), 5);
  ::close(file);
  EXPECT_EQ(read_file(path("out")), "one two three");
  EXPECT_EQ(entries(), 1U);
}

// A FIFO that nobody writes to, and a terminal, would be waited on for ever.
TEST_F(File, OnlyRegularFilesAreRead) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  ASSERT_EQ(::symlink("fifo", path("link").c_str()), 0);
  for (const auto& [name, found] :
       {std::pair{path("fifo"), "Is a FIFO"}, std::pair{path("link"), "Is a FIFO"},
        std::pair{std::filesystem::path("/dev/zero"), "Is a device"}, std::pair{path(""), "Is a directory"}}) {
    try {
      static_cast<void>(read_file(name));
      ADD_FAILURE() << name << " was read";
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find(found), std::string::npos) << error.what();
    }
  }
}

TEST_F(File, WhatCannotBeSeenIsNotAbsent) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may look everywhere";
  std::filesystem::create_directories(path("closed"));
  write_file_atomically(path("closed/a"), "x");
  ASSERT_EQ(::chmod(path("closed").c_str(), 0), 0);
  EXPECT_THROW(static_cast<void>(is_there(path("closed/a"))), DataError);
  EXPECT_THROW(static_cast<void>(read_file(path("closed/a"))), DataError);
  EXPECT_THROW(write_file_atomically(path("closed/a"), "y"), Error);
  ASSERT_EQ(::chmod(path("closed").c_str(), 0700), 0);
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
  ASSERT_EQ(::symlink("/dev/full", path("a").c_str()), 0);
  try {
    write_file_atomically(path("a"), "x");
    ADD_FAILURE() << "it was written";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::failure);
    EXPECT_NE(std::string(error.what()).find(path("a").string() + ": cannot write: "), std::string::npos)
        << error.what();
  }
  EXPECT_EQ(entries(), 1U);
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
