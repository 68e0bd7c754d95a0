// Reference values: where they lie and how they are read, at run time.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace tsdp::test {

/// The project's own reference values.
inline std::filesystem::path own_golden_folder() { return std::filesystem::path(TSDP_SOURCE_DIR) / "tests" / "golden"; }

/// The folder of reference values: TSDP_GOLDEN_DIR, or the project's own.
inline std::filesystem::path golden_folder() {
  const char* given = std::getenv("TSDP_GOLDEN_DIR");
  return given != nullptr ? std::filesystem::path(given) : own_golden_folder();
}

inline bool golden_folder_is_own() {
  std::error_code ignored;
  return std::filesystem::weakly_canonical(golden_folder(), ignored) ==
         std::filesystem::weakly_canonical(own_golden_folder(), ignored);
}

/// Says that something is absent: a failure in the project's own folder, a word in one that TSDP_GOLDEN_DIR names.
inline void say_absent(const std::string& what) {
  if (golden_folder_is_own()) {
    ADD_FAILURE() << what << " is absent from " << golden_folder();
  } else {
    std::cout << what << ": absent, skipped\n";
  }
}

/// Ends a test whose reference values are absent: failed in the project's own folder, skipped in another. Never both,
/// as CTest takes a test that prints the word skipped for skipped.
#define TSDP_GOLDEN_OR_LEAVE(value, what)                                                                              \
  if (!(value)) {                                                                                                      \
    if (::tsdp::test::golden_folder_is_own()) FAIL() << (what) << " is absent from " << ::tsdp::test::golden_folder(); \
    GTEST_SKIP() << (what) << " is absent from " << ::tsdp::test::golden_folder();                                     \
  }

/// The parsed file, or none where it is absent.
inline std::optional<nlohmann::json> golden_json(const std::string& name) {
  const auto file = golden_folder() / name;
  if (!std::filesystem::exists(file)) return std::nullopt;
  return nlohmann::json::parse(std::ifstream(file));
}

/// What stands at `place` ("/windows/deepar") of the parsed file; none where it is absent or empty.
inline std::optional<nlohmann::json> golden_entry(const std::string& name, const std::string& place) {
  const auto all = golden_json(name);
  const nlohmann::json::json_pointer pointer(place);
  if (!all || !all->contains(pointer) || all->at(pointer).empty()) return std::nullopt;
  return all->at(pointer);
}

/// That a file of the project's own folder has at least so many entries at each place: what is lost there would be
/// skipped in silence elsewhere.
inline void expect_own_entries(const std::string& name,
                               const std::vector<std::pair<std::string, std::size_t>>& places) {
  std::ifstream in(own_golden_folder() / name);
  ASSERT_TRUE(in.good()) << name << " is absent from " << own_golden_folder();
  const auto all = nlohmann::json::parse(in);
  for (const auto& [place, count] : places) {
    const nlohmann::json::json_pointer pointer(place);
    ASSERT_TRUE(all.contains(pointer)) << name << place << " is absent from " << own_golden_folder();
    EXPECT_GE(all.at(pointer).size(), count) << name << place << " has lost entries";
  }
}

/// A number, or one of the strings "NaN", "Infinity", "-Infinity", or decimal digits in a string.
inline double golden_number(const nlohmann::json& value) {
  if (value.is_number()) return value.get<double>();
  if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
  const auto text = value.get<std::string>();
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  return std::strtod(text.c_str(), nullptr);
}

}  // namespace tsdp::test
