// Every section of matrix-mechanisms.json.
#include <cmath>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>

#include "privacy/matrix/allocation_bounds.h"
#include "privacy/matrix/conditional_composition.h"
#include "privacy/matrix/correlated_noise.h"
#include "privacy/whole_series/allocation_renyi.h"
#include "privacy/whole_series/random_allocation_curve.h"
#include "support/golden.h"
#include "tsdp/base/text.h"
#include "tsdp/privacy/matrix/strategy_search.h"
#include "tsdp/privacy/terms/strategy.h"

namespace tsdp::privacy {
namespace {

using nlohmann::json;

const std::set<std::string> known = {"identity_profile",
                                     "profile_two_bins",
                                     "profile_three_bins",
                                     "coefficients",
                                     "objective",
                                     "gram",
                                     "renyi_remove",
                                     "renyi_remove_large",
                                     "algorithm1_as_printed_counts_twice",
                                     "renyi_remove_identity",
                                     "renyi_add_exact_two_bins",
                                     "renyi_to_dp",
                                     "extension_add_laplace",
                                     "conditional_composition",
                                     "profile_monte_carlo",
                                     "extension_gram_monotone",
                                     "optimised"};

/// A strategy by its name in the reference values: `bsr:4`.
Strategy strategy_of(const std::string& text, std::int64_t steps) {
  const auto colon = text.find(':');
  const auto kind = text.substr(0, colon);
  const auto number = colon == std::string::npos ? 0 : std::stoll(text.substr(colon + 1));
  if (kind == "identity") return {StrategyKind::identity, {}, steps};
  if (kind == "sqrt") return {StrategyKind::bsr, square_root_bands(steps), steps};
  if (kind == "inverse_sqrt")
    return {StrategyKind::file, {NoiseRecursion::Form::banded, inverse_square_root_bands(steps).coefficients}, steps};
  if (kind == "bsr") return {StrategyKind::bsr, square_root_bands(number), steps};
  if (kind == "bisr") return {StrategyKind::bisr, inverse_square_root_bands(number), steps};
  if (text == "blt:2")
    return {StrategyKind::blt,
            {NoiseRecursion::Form::buffered,
             {},
             {0.9888596997267308, 0.7729881333431666},
             {0.14602780421913836, 0.32354096817067296}},
            steps};
  throw std::runtime_error("reference values of an unknown strategy " + text);
}
Gram gram_of(const json& record, Gram::Side side) {
  const std::int64_t bins = record["bins"];
  const std::int64_t epochs = record["epochs"];
  return Gram(strategy_of(record.value("strategy", "identity"), bins * epochs), bins, epochs, side);
}
double number(const json& value) {
  return value.is_string() ? std::stod(value.get<std::string>()) : value.get<double>();
}

TEST(GoldenMatrix, EverySectionIsKnown) {
  const auto all = test::golden_json("matrix-mechanisms.json");
  TSDP_GOLDEN_OR_LEAVE(all, "matrix-mechanisms.json");
  for (const auto& [section, records] : all->items()) {
    if (!records.is_array() || known.contains(section)) continue;
    ADD_FAILURE() << "unknown section " << section;
  }
  test::expect_own_entries("matrix-mechanisms.json", {{"/identity_profile", 16},
                                                      {"/coefficients", 5},
                                                      {"/objective", 10},
                                                      {"/gram", 5},
                                                      {"/renyi_remove", 23},
                                                      {"/renyi_remove_large", 10},
                                                      {"/renyi_remove_identity", 10},
                                                      {"/algorithm1_as_printed_counts_twice", 3},
                                                      {"/renyi_add_exact_two_bins", 6},
                                                      {"/renyi_to_dp", 3},
                                                      {"/extension_add_laplace", 6},
                                                      {"/conditional_composition", 26},
                                                      {"/profile_two_bins", 8},
                                                      {"/profile_three_bins", 5},
                                                      {"/profile_monte_carlo", 5},
                                                      {"/extension_gram_monotone", 4},
                                                      {"/optimised", 3}});
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

constexpr CorrelatedMethod methods[] = {CorrelatedMethod::automatic, CorrelatedMethod::renyi,
                                        CorrelatedMethod::conditional, CorrelatedMethod::gram,
                                        CorrelatedMethod::deterministic};

/// Quadrature in two and three dimensions: of identity exact, of the others each method's upper end lies above, and
/// every lower end below.
TEST(GoldenMatrix, ProfilesOfTwoAndThreeBins) {
  for (const std::string section : {"profile_two_bins", "profile_three_bins"}) {
    const auto records = test::golden_entry("matrix-mechanisms.json", "/" + section);
    TSDP_GOLDEN_OR_LEAVE(records, "section " + section + " of matrix-mechanisms.json");
    for (const auto& record : *records) {
      SCOPED_TRACE(record.dump());
      const std::int64_t bins = record["bins"];
      const std::int64_t epochs = record["epochs"];
      const double tolerance = record.value("tolerance", 1e-15);
      const auto strategy = std::make_shared<const Strategy>(strategy_of(record["strategy"], bins * epochs));
      for (const auto direction : {Direction::remove, Direction::add}) {
        const double expected = test::golden_number(record[std::string(name(direction))]);
        for (const auto method : methods) {
          CorrelatedNoiseCurve curve(strategy, TopLevel::balls_in_bins, bins, record["sigma"], direction, method);
          const auto found = curve.delta(record["epsilon"], static_cast<std::uint64_t>(epochs));
          EXPECT_LE(found.lower, expected + tolerance) << name(direction) << ", " << name(method);
          EXPECT_GE(found.upper, expected - tolerance) << name(direction) << ", " << name(method);
        }
        if (record["strategy"] != "identity") continue;
        RandomAllocationCurve curve(bins, record["sigma"]);
        const auto found = curve.delta(direction, record["epsilon"], static_cast<std::uint64_t>(epochs));
        EXPECT_LE(found.lower, expected + tolerance) << name(direction);
        EXPECT_GE(found.upper, expected - tolerance) << name(direction);
        EXPECT_LE(found.upper - found.lower, 1e-9 * expected) << name(direction);
      }
    }
  }
}

TEST(GoldenMatrix, ProfilesByMonteCarlo) {
  const auto records = test::golden_entry("matrix-mechanisms.json", "/profile_monte_carlo");
  TSDP_GOLDEN_OR_LEAVE(records, "section profile_monte_carlo of matrix-mechanisms.json");
  for (const auto& record : *records) {
    SCOPED_TRACE(record.dump());
    const std::int64_t bins = record["bins"];
    const std::int64_t epochs = record["epochs"];
    const auto strategy = std::make_shared<const Strategy>(strategy_of(record["strategy"], bins * epochs));
    for (const auto direction : {Direction::remove, Direction::add}) {
      const std::string word(name(direction));
      const double mean = record[word];
      const double error = record[word + "_se"];
      for (const auto method : methods) {
        CorrelatedNoiseCurve curve(strategy, TopLevel::balls_in_bins, bins, record["sigma"], direction, method);
        const auto found = curve.delta(record["epsilon"], static_cast<std::uint64_t>(epochs));
        EXPECT_GE(found.upper, mean - 5.0 * error) << word << ", " << name(method);
        EXPECT_LE(found.lower, mean + 5.0 * error) << word << ", " << name(method);
      }
    }
  }
}

/// A larger matrix of the form t 11ᵀ + u I lies above what is larger by quadrature, a smaller one below what is
/// smaller.
TEST(GoldenMatrix, LargerGramMatricesCostMore) {
  const auto records = test::golden_entry("matrix-mechanisms.json", "/extension_gram_monotone");
  TSDP_GOLDEN_OR_LEAVE(records, "section extension_gram_monotone of matrix-mechanisms.json");
  for (const auto& record : *records) {
    SCOPED_TRACE(record.dump());
    const auto gram_from = [&](const char* key) {
      std::vector<double> entries;
      for (const auto& row : record[key])
        for (const auto& entry : row) entries.push_back(entry);
      return Gram(entries, static_cast<std::int64_t>(record[key].size()));
    };
    const double variance = record["sigma"].get<double>() * record["sigma"].get<double>();
    const auto large = gram_from("gram_large");
    const auto small = gram_from("gram_small");
    const auto direction = record["direction"] == "remove" ? Direction::remove : Direction::add;
    CommonAndOwn above(large.bins(), large.largest_beside() / variance,
                       (large.largest_diagonal() - large.largest_beside()) / variance);
    CommonAndOwn below(small.bins(), small.least_beside() / variance,
                       (small.least_diagonal() - small.least_beside()) / variance);
    EXPECT_GE(above.delta(direction, record["epsilon"]).upper, record["large"].get<double>() - 1e-7);
    EXPECT_LE(below.delta(direction, record["epsilon"]).lower, record["small"].get<double>() + 1e-7);
    EXPECT_LE(record["small"].get<double>(), record["large"].get<double>());
  }
}

/// (Larger objectives are worse, smaller ones progress.)
TEST(GoldenMatrix, OptimisedStrategies) {
  const auto records = test::golden_entry("matrix-mechanisms.json", "/optimised");
  TSDP_GOLDEN_OR_LEAVE(records, "section optimised of matrix-mechanisms.json");
  for (const auto& record : *records) {
    SCOPED_TRACE(record.dump());
    const std::int64_t epochs = record["epochs"];
    const std::int64_t bins = record["n"].get<std::int64_t>() / epochs;
    const std::string word = record["name"];
    const auto size = std::stoll(word.substr(word.find(':') + 1));
    const auto kind = word.starts_with("bandmf:") ? StrategyKind::band_mf
                      : word.starts_with("blt:")  ? StrategyKind::blt
                                                  : StrategyKind::band_inv_mf;
    const auto strategy = planned_strategy({kind, size, size}, bins, epochs);
    EXPECT_TRUE(strategy.non_negative());
    const double expected = record["objective"];
    EXPECT_LE(strategy.mean_error() * squared_sensitivity(strategy, bins, epochs),
              expected * (1.0 + record["tolerance"].get<double>()));
  }
}

TEST(GoldenMatrix, Coefficients) {
  const auto records = test::golden_entry("matrix-mechanisms.json", "/coefficients");
  TSDP_GOLDEN_OR_LEAVE(records, "section coefficients of matrix-mechanisms.json");
  for (const auto& record : *records) {
    SCOPED_TRACE(record.dump());
    const auto strategy = strategy_of(record["name"], record["n"]);
    const auto compare = [](const json& expected, const std::vector<double>& found) {
      ASSERT_LE(expected.size(), found.size());
      for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_NEAR(found[i], number(expected[i]), 1e-12 * std::abs(number(expected[i])) + 1e-15) << i;
    };
    bool any = false;
    for (const auto& [key, value] : record.items()) {
      if (key == "first_column") compare(value, strategy.column()), any = true;
      if (key == "inverse_first_column") compare(value, strategy.inverse()), any = true;
    }
    EXPECT_TRUE(any) << "nothing to compare";
  }
}

TEST(GoldenMatrix, Objective) {
  const auto records = test::golden_entry("matrix-mechanisms.json", "/objective");
  TSDP_GOLDEN_OR_LEAVE(records, "section objective of matrix-mechanisms.json");
  for (const auto& record : *records) {
    SCOPED_TRACE(record.dump());
    const std::int64_t n = record["n"];
    const std::int64_t epochs = record["epochs"];
    const auto strategy = strategy_of(record["name"], n);
    EXPECT_NEAR(strategy.mean_error(), record["mean_error"].get<double>(), 1e-12 * record["mean_error"].get<double>());
    EXPECT_NEAR(strategy.max_error(), record["max_error"].get<double>(), 1e-12 * record["max_error"].get<double>());
    const double expected = record["sensitivity_squared"];
    const double found = squared_sensitivity(strategy, n / epochs, epochs);
    EXPECT_NEAR(found, expected, 1e-12 * expected);
    EXPECT_GE(found, expected * (1.0 - 1e-15));
  }
}

TEST(GoldenMatrix, GramMatrices) {
  const auto records = test::golden_entry("matrix-mechanisms.json", "/gram");
  TSDP_GOLDEN_OR_LEAVE(records, "section gram of matrix-mechanisms.json");
  for (const auto& record : *records) {
    SCOPED_TRACE(record["strategy"].get<std::string>());
    for (const auto side : {Gram::Side::lower, Gram::Side::upper}) {
      const auto gram = gram_of(record, side);
      for (std::int64_t i = 0; i < gram.bins(); ++i)
        for (std::int64_t j = 0; j < gram.bins(); ++j) {
          const double expected = record["gram"][static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
          EXPECT_NEAR(gram.at(i, j), expected, 1e-12 * std::max(1.0, expected));
        }
      for (const auto& [bands, truncated] : record["truncated"].items())
        EXPECT_NEAR(gram.largest_beyond(std::stoll(bands)), truncated["tau"].get<double>(), 1e-12) << bands;
    }
  }
}

TEST(GoldenMatrix, RenyiDivergences) {
  for (const std::string section : {"renyi_remove", "renyi_remove_large", "renyi_remove_identity"}) {
    const auto records = test::golden_entry("matrix-mechanisms.json", "/" + section);
    TSDP_GOLDEN_OR_LEAVE(records, "section " + section + " of matrix-mechanisms.json");
    const double tolerance = section == "renyi_remove_large" ? 1e-9 : 1e-10;
    for (const auto& record : *records) {
      SCOPED_TRACE(record.dump());
      const auto gram = gram_of(record, Gram::Side::upper);
      const std::int64_t order = record["alpha"];
      auto by_bandwidth = record.value("by_bandwidth", json::object());
      if (record.contains("value")) by_bandwidth["1"] = record["value"];
      for (const auto& [bands, expected] : by_bandwidth.items()) {
        const auto found = renyi_remove(gram, record["sigma"], std::stoll(bands), order);
        EXPECT_NEAR(found[static_cast<std::size_t>(order)], number(expected),
                    tolerance * std::max(1.0, number(expected)))
            << bands;
        EXPECT_GE(found[static_cast<std::size_t>(order)], number(expected) * (1.0 - 1e-13)) << bands;
        const double least = record.contains("exact") ? number(record["exact"]) : 0.0;
        EXPECT_GE(found[static_cast<std::size_t>(order)], least * (1.0 - 1e-14)) << bands;
      }
      const double bound = record["add_bound"];
      EXPECT_NEAR(RenyiAdd(gram, record["sigma"])(static_cast<double>(order)), bound, 1e-10 * bound);
    }
  }
}

TEST(GoldenMatrix, TheMendedAlgorithmCountsPairsOnce) {
  const auto records = test::golden_entry("matrix-mechanisms.json", "/algorithm1_as_printed_counts_twice");
  TSDP_GOLDEN_OR_LEAVE(records, "section algorithm1_as_printed_counts_twice of matrix-mechanisms.json");
  for (const auto& record : *records) {
    SCOPED_TRACE(record.dump());
    const std::int64_t order = record["alpha"];
    const auto found = renyi_remove(gram_of(record, Gram::Side::upper), record["sigma"], record["bandwidth"], order);
    EXPECT_NEAR(found[static_cast<std::size_t>(order)], number(record["exact"]), 1e-10);
  }
}

TEST(GoldenMatrix, RenyiOfAnAdditionLiesBetween) {
  const auto records = test::golden_entry("matrix-mechanisms.json", "/renyi_add_exact_two_bins");
  TSDP_GOLDEN_OR_LEAVE(records, "section renyi_add_exact_two_bins of matrix-mechanisms.json");
  for (const auto& record : *records) {
    SCOPED_TRACE(record.dump());
    const double found = RenyiAdd(gram_of(record, Gram::Side::upper), record["sigma"])(record["alpha"]);
    EXPECT_GE(found, number(record["exact"]));
    EXPECT_LE(found, number(record["bound"]) * (1.0 + 1e-12));
  }
}

TEST(GoldenMatrix, FromRenyiToDelta) {
  const auto records = test::golden_entry("matrix-mechanisms.json", "/renyi_to_dp");
  TSDP_GOLDEN_OR_LEAVE(records, "section renyi_to_dp of matrix-mechanisms.json");
  for (const auto& record : *records) {
    SCOPED_TRACE(record.dump());
    const double expected = record["delta"];
    EXPECT_NEAR(delta_of_renyi(record["rho"], record["alpha"], record["epsilon"]), expected, 1e-12 * expected);
  }
}

TEST(GoldenMatrix, LaplaceBoundOfAnAddition) {
  const auto records = test::golden_entry("matrix-mechanisms.json", "/extension_add_laplace");
  TSDP_GOLDEN_OR_LEAVE(records, "section extension_add_laplace of matrix-mechanisms.json");
  for (const auto& record : *records) {
    SCOPED_TRACE(record.dump());
    const std::int64_t bins = record["bins"];
    const std::int64_t epochs = record["epochs"];
    const auto strategy = strategy_of(record["strategy"], bins * epochs);
    const Gram gram(strategy, bins, epochs, Gram::Side::upper);
    LaplaceOfAddition bound(gram, record["sigma"], strategy.bands());
    EXPECT_EQ(bound.colours(), record["classes"].get<std::int64_t>());
    const double expected = record["laplace"];
    EXPECT_NEAR(bound.delta(record["epsilon"]), expected, 1e-4 * expected);
    double renyi = 1.0;
    for (std::int64_t order = 2; order <= 256; ++order)
      renyi = std::min(renyi, delta_of_renyi(RenyiAdd(gram, record["sigma"])(static_cast<double>(order)),
                                             static_cast<double>(order), record["epsilon"]));
    // (Of fewer orders there.)
    EXPECT_LE(renyi, record["am_gm_renyi"].get<double>() * (1.0 + 1e-9));
  }
}

/// Hazards and weights to 1e-6. δ within 1 %, or lower by what its grid had not converged by; never below the exact
/// profile.
TEST(GoldenMatrix, ConditionalComposition) {
  const auto records = test::golden_entry("matrix-mechanisms.json", "/conditional_composition");
  TSDP_GOLDEN_OR_LEAVE(records, "section conditional_composition of matrix-mechanisms.json");
  for (const auto& record : *records) {
    auto shown = record;
    shown.erase("weights_at_step");
    SCOPED_TRACE(shown.dump());
    ASSERT_EQ(record["allocation"], "union over steps 2..N");
    const std::int64_t bins = record["bins"];
    const std::int64_t epochs = record["epochs"];
    const auto direction = record["relation"] == "remove" ? Direction::remove : Direction::add;
    const auto mode = record["mode"] == "sharp" ? HazardMode::sharp : HazardMode::all_in;
    const Means means(strategy_of(record["strategy"], bins * epochs), bins, epochs);
    const ConditionalComposition found(means, record["sigma"], record["delta_E"], direction, mode);
    for (const auto& [step, hazard] : record["top_reverse_hazard"].items())
      EXPECT_NEAR(found.hazards(std::stoll(step) - 1).back(), hazard.get<double>(), 1e-6) << step;
    if (record["weights_at_step"].is_object())
      for (const auto& [step, weights] : record["weights_at_step"].items()) {
        const auto own = found.weights(std::stoll(step) - 1);
        ASSERT_EQ(own.size(), weights.size());
        for (std::size_t i = 0; i < own.size(); ++i)
          EXPECT_NEAR(own[i], weights[i].get<double>(), 1e-6) << "step " << step << ", place " << i;
      }
    for (const auto& row : record["profile"]) {
      const double expected = row["delta"];
      const double value = found.delta(row["epsilon"]);
      EXPECT_LE(value, expected * 1.01) << row.dump();
      EXPECT_GE(value, expected * 0.99 - row["h_convergence"].get<double>()) << row.dump();
      if (record["strategy"] != "identity") continue;
      RandomAllocationCurve exact(bins, record["sigma"]);
      EXPECT_GE(value, exact.delta(direction, row["epsilon"], static_cast<std::uint64_t>(epochs)).lower) << row.dump();
    }
  }
}

}  // namespace
}  // namespace tsdp::privacy
