// Names of enumerations: one table, and nothing falls through.
#include "tsdp/base/names.h"

#include <gtest/gtest.h>

#include "tsdp/privacy/terms/terms.h"
#include "tsdp/settings/config.h"

namespace tsdp {
namespace {

template <class Enum>
void expect_round_trip() {
  for (const auto& text : all_names<Enum>()) EXPECT_EQ(name(named<Enum>(text, "a test")), text);
}

TEST(Names, AreReadBackAsTheyAreWritten) {
  expect_round_trip<privacy::TopLevel>();
  expect_round_trip<privacy::BottomLevel>();
  expect_round_trip<privacy::Relation>();
  expect_round_trip<privacy::ClippingKind>();
  expect_round_trip<privacy::NoiseKind>();
  expect_round_trip<ExportedWeights>();
}

TEST(Names, UnknownValuesAreErrors) {
  try {
    static_cast<void>(named<privacy::TopLevel>("alphabetic", "sampling.top_level"));
    ADD_FAILURE() << "an unknown name was taken";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "sampling.top_level: found 'alphabetic'; expected one of wor, deterministic, shuffled, poisson, "
                 "cyclic_poisson, balls_in_bins");
  }
  privacy::TopLevel value = privacy::TopLevel::shuffled;
  EXPECT_FALSE(parse_name("Wor", value));
  EXPECT_EQ(value, privacy::TopLevel::shuffled);
  EXPECT_THROW(static_cast<void>(name(static_cast<privacy::TopLevel>(17))), Error);
}

}  // namespace
}  // namespace tsdp
