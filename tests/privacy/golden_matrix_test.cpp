// The sections of matrix-mechanisms.json that are about independent noise. The others are for correlated noise, which the product does
// not have yet: they are skipped by name.
#include <cmath>
#include <iostream>
#include <set>

#include "support/golden.h"
#include "tsdp/base/text.h"
#include "tsdp/privacy/zero_out.h"

namespace tsdp::privacy {
namespace {

using nlohmann::json;

const std::set<std::string> not_yet = {"coefficients", "objective", "gram", "optimised", "renyi_remove", "renyi_remove_large",
                                       "algorithm1_as_printed_counts_twice", "renyi_remove_identity", "renyi_add_exact_two_bins", "renyi_to_dp",
                                       "profile_monte_carlo", "extension_gram_monotone",
                                       "extension_add_laplace", "conditional_composition"};

TEST(GoldenMatrix, EverySectionIsKnown) {
  const auto all = test::golden_json("matrix-mechanisms.json");
  TSDP_GOLDEN_OR_LEAVE(all, "matrix-mechanisms.json");
  for (const auto& [section, records] : all->items()) {
    if (!records.is_array() || section == "identity_profile" || section == "profile_two_bins" || section == "profile_three_bins") continue;
    EXPECT_TRUE(not_yet.contains(section)) << "unknown section " << section;
    std::cout << section << ": not available yet, skipped\n";
  }
  test::expect_own_entries("matrix-mechanisms.json", {{"/identity_profile", 16}});
}

TEST(GoldenMatrix, IdentityProfile) {
  const auto records = test::golden_entry("matrix-mechanisms.json", "/identity_profile");
  TSDP_GOLDEN_OR_LEAVE(records, "section identity_profile of matrix-mechanisms.json");
  for (const auto& record : *records) {
    SCOPED_TRACE(record.dump());
    RandomAllocationCurve curve(record["bins"], record["sigma"]);
    for (const auto direction : {Direction::remove, Direction::add}) {
      const std::string word(name(direction));
      if (!record.contains(word)) continue;
      const double expected = record[word];
      const double tolerance = 3.0 * record[cat(word, "_uncertainty")].get<double>() + 1e-6 * expected;
      const auto found = curve.delta(direction, record["epsilon"], record["epochs"]);
      EXPECT_NEAR(found.lower, expected, tolerance) << word;
      EXPECT_NEAR(found.upper, expected, tolerance) << word;
      EXPECT_LE(found.upper - found.lower, 1e-6 * found.upper) << word;
    }
  }
}

/// Quadrature in two and three dimensions; of all strategies identity alone.
TEST(GoldenMatrix, ProfilesOfTwoAndThreeBins) {
  for (const std::string section : {"profile_two_bins", "profile_three_bins"}) {
    const auto records = test::golden_entry("matrix-mechanisms.json", "/" + section);
    TSDP_GOLDEN_OR_LEAVE(records, "section " + section + " of matrix-mechanisms.json");
    for (const auto& record : *records) {
      SCOPED_TRACE(record.dump());
      if (record["strategy"] != "identity") {
        std::cout << section << ": " << record["strategy"] << ": not available yet, skipped\n";
        continue;
      }
      RandomAllocationCurve curve(record["bins"], record["sigma"]);
      for (const auto direction : {Direction::remove, Direction::add}) {
        const double expected = test::golden_number(record[std::string(name(direction))]);
        const double tolerance = record.value("tolerance", 1e-15);
        const auto found = curve.delta(direction, record["epsilon"], record["epochs"]);
        EXPECT_LE(found.lower, expected + tolerance) << name(direction);
        EXPECT_GE(found.upper, expected - tolerance) << name(direction);
        EXPECT_LE(found.upper - found.lower, 1e-9 * expected) << name(direction);
      }
    }
  }
}

}  // namespace
}  // namespace tsdp::privacy
