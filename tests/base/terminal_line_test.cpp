#include "base/terminal_line.h"

#include <gtest/gtest.h>

namespace tsdp {
namespace {

TEST(TerminalLine, CountsCharactersAndNotBytes) {
  EXPECT_EQ(width_of(""), 0U);
  EXPECT_EQ(width_of("ε ≤ 1 · zäh"), 11U);
}

TEST(TerminalLine, ShortensBetweenCharacters) {
  EXPECT_EQ(shortened("ε ≤ 1", 5), "ε ≤ 1");
  EXPECT_EQ(shortened("ε ≤ 1", 4), "ε ≤…");
  EXPECT_EQ(shortened("≤≤≤", 2), "≤…");
  EXPECT_EQ(shortened("abc", 1), "…");
  EXPECT_EQ(shortened("abc", 0), "");
}

}  // namespace
}  // namespace tsdp
