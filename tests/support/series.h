// Series in tests.
#pragma once

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "tsdp/data/dataset.h"

namespace tsdp::test {

inline constexpr float missing = std::numeric_limits<float>::quiet_NaN();

/// The moment of "2015-01-01" or "2015-01-01 01:00".
inline data::Moment at(const std::string& text) {
  data::Moment moment = 0;
  EXPECT_TRUE(data::parse_moment(text, moment)) << text;
  return moment;
}

}  // namespace tsdp::test
