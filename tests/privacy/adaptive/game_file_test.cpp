// Games in the cache folder: read back as they were, and left aside where they are not what this program and user
// wrote.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include "privacy/adaptive/adaptive_curve.h"
#include "privacy/adaptive/game_file.h"
#include "privacy/adaptive/game_profiles.h"
#include "support/temporary_folder.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/privacy/accountant/dominating_pair.h"

namespace tsdp::privacy {
namespace {

GameProfiles some_profiles(std::size_t rounds) {
  GameProfiles out(0.01, 0.02);
  std::vector<double> values;
  for (int n = 0; n < 40; ++n) values.push_back(0.1 / (1.0 + n));
  for (std::size_t t = 1; t <= rounds; ++t) out.add(values, 1e-12 * static_cast<double>(t));
  return out;
}

class GameFile : public test::TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    if (const char* was = std::getenv("TSDP_CACHE_DIR"); was != nullptr) before_ = was;
    set(folder_ / "cache");
  }
  void TearDown() override {
    if (before_) ::setenv("TSDP_CACHE_DIR", before_->c_str(), 1);
    else ::unsetenv("TSDP_CACHE_DIR");
    TemporaryFolder::TearDown();
  }
  static void set(const std::filesystem::path& folder) { ::setenv("TSDP_CACHE_DIR", folder.c_str(), 1); }
  /// The one file there is.
  std::filesystem::path file() const {
    std::filesystem::path out;
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "cache")) {
      out = entry.path();
      ++count;
    }
    EXPECT_EQ(count, 1);
    return out;
  }
  std::optional<std::string> before_;
};

TEST_F(GameFile, ReadsBackWhatWasKept) {
  EXPECT_EQ(read_game(0.1, 2.0), nullptr);
  keep_game(0.1, 2.0, some_profiles(70));
  const auto found = read_game(0.1, 2.0);
  ASSERT_NE(found, nullptr);
  const auto expected = some_profiles(70);
  EXPECT_EQ(found->rounds(), 70U);
  EXPECT_EQ(found->step(), expected.step());
  EXPECT_EQ(found->deviation(), expected.deviation());
  for (std::size_t t = 0; t <= 70; ++t) {
    EXPECT_EQ(found->rows()[t].values, expected.rows()[t].values);
    EXPECT_EQ(found->rows()[t].stride, expected.rows()[t].stride);
    EXPECT_EQ(found->rows()[t].error, expected.rows()[t].error);
  }
  EXPECT_EQ(read_game(0.1, 2.0000000000000004), nullptr);
  EXPECT_EQ(read_game(0.1000000000000001, 2.0), nullptr);
  // Fewer or more rounds take its place.
  keep_game(0.1, 2.0, some_profiles(80));
  EXPECT_EQ(read_game(0.1, 2.0)->rounds(), 80U);
}

TEST_F(GameFile, IsLeftAsideWhereABitDiffers) {
  keep_game(0.1, 2.0, some_profiles(5));
  const auto path = file();
  const auto bytes = read_file(path);
  for (std::size_t i = 0; i < bytes.size(); i += 1 + bytes.size() / 97) {
    auto other = bytes;
    other[i] = static_cast<char>(other[i] ^ 1);
    write_file_atomically(path, other, FileAccess::owner);
    EXPECT_EQ(read_game(0.1, 2.0), nullptr) << i;
  }
  for (const std::size_t length : {std::size_t{0}, std::size_t{10}, bytes.size() - 1}) {
    write_file_atomically(path, bytes.substr(0, length), FileAccess::owner);
    EXPECT_EQ(read_game(0.1, 2.0), nullptr) << length;
  }
  write_file_atomically(path, bytes, FileAccess::owner);
  EXPECT_NE(read_game(0.1, 2.0), nullptr);
}

// A digest has no key, so a file may lie and be whole. An answer below what is certified from below is refused.
TEST_F(GameFile, ThatSaysLessThanIsPossibleIsNoticed) {
  constexpr double q = 0.1234, sigma = 2.0;
  GameProfiles less(0.01, 0.02);
  for (int t = 0; t < 6; ++t) less.add(std::vector<double>(40, 1e-9), 0.0);
  keep_game(q, sigma, less);
  ASSERT_NE(read_game(q, sigma), nullptr);
  AdaptiveCurve curve(DominatingPair({{0.0, 1.0 - q}, {2.0, q}}, sigma));
  for (const auto& ask : {std::function<Interval()>([&] { return curve.epsilon(1e-3, 5); }),
                          std::function<Interval()>([&] { return curve.delta(0.1, 5); })}) {
    try {
      ask();
      ADD_FAILURE() << "an answer";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("a stored game is damaged; remove the folder of games"),
                std::string::npos)
          << error.what();
    }
  }
}

TEST_F(GameFile, IsLeftAsideWhereOthersMayWrite) {
  keep_game(0.1, 2.0, some_profiles(5));
  const auto path = file();
  ASSERT_EQ(::chmod(path.c_str(), 0622), 0);
  EXPECT_EQ(read_game(0.1, 2.0), nullptr);
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  EXPECT_NE(read_game(0.1, 2.0), nullptr);
  ASSERT_EQ(::chmod((folder_ / "cache").c_str(), 0777), 0);
  EXPECT_EQ(read_game(0.1, 2.0), nullptr);
  keep_game(0.3, 2.0, some_profiles(5));
  EXPECT_EQ(file(), path);  // nothing was written beside it
  ASSERT_EQ(::chmod((folder_ / "cache").c_str(), 0700), 0);
  // Neither a link nor a pipe is read.
  std::filesystem::rename(path, folder_ / "elsewhere");
  std::filesystem::create_symlink(folder_ / "elsewhere", path);
  EXPECT_EQ(read_game(0.1, 2.0), nullptr);
  std::filesystem::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(read_game(0.1, 2.0), nullptr);
}

TEST_F(GameFile, IsNotKeptWithoutAFolder) {
  for (const char* folder : {"", "relative", "/proc/none"}) {
    set(folder);
    keep_game(0.1, 2.0, some_profiles(5));
    EXPECT_EQ(read_game(0.1, 2.0), nullptr) << folder;
  }
}

TEST_F(GameFile, TheOldestOfManyAreRemovedAndNothingElseIs) {
  std::filesystem::create_directory(folder_ / "cache");
  std::filesystem::permissions(folder_ / "cache", std::filesystem::perms::owner_all);
  for (const char* name : {"chess.game", "notes"}) std::ofstream(folder_ / "cache" / name) << "mine";
  const auto files = [&] {
    std::vector<std::filesystem::path> out;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "cache")) out.push_back(entry.path());
    return out;
  };
  const auto is_game = [](const std::filesystem::path& file) { return file.stem().string().size() == 32; };
  for (int i = 0; i < 30; ++i) keep_game(0.1, 2.0 + i, some_profiles(2));
  EXPECT_EQ(files().size(), 30 + 2);
  // As if they had been large and written a minute ago: three of 100 MiB pass 256 MiB, and one goes for each.
  for (const auto& file : files()) {
    if (!is_game(file)) continue;
    std::filesystem::resize_file(file, 100 << 20);
    std::filesystem::last_write_time(file, std::filesystem::file_time_type::clock::now() - std::chrono::minutes(1));
  }
  keep_game(0.5, 2.0, some_profiles(2));
  EXPECT_EQ(files().size(), 1 + 2 + 2);
  EXPECT_NE(read_game(0.5, 2.0), nullptr);
}

TEST(GameProfiles, RowsThatNoRoundLeavesAreRefused) {
  GameProfiles out(0.01, 0.02);
  EXPECT_THROW(out.add(GameProfiles::Row{2, {0.1}, 0.0}), Error);
  EXPECT_THROW(out.add(GameProfiles::Row{1, {}, 0.0}), Error);
  EXPECT_THROW(out.add(GameProfiles::Row{1, {-0.1}, 0.0}), Error);
  EXPECT_THROW(out.add(GameProfiles::Row{1, {0.1}, -1.0}), Error);
  EXPECT_THROW(GameProfiles(0.0, 1.0), Error);
  EXPECT_THROW(out.loss(0, 0, 1e-9), Error);
}

}  // namespace
}  // namespace tsdp::privacy
