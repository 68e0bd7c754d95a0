// Reference values: where they lie and how they are read, at run time.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace tsdp::test {

/// The folder of reference values: TSDP_GOLDEN_DIR, or the project's own.
inline std::filesystem::path golden_folder() {
  const char* given = std::getenv("TSDP_GOLDEN_DIR");
  return given != nullptr ? std::filesystem::path(given)
                          : std::filesystem::path(TSDP_SOURCE_DIR) / "tests" / "golden";
}

/// The parsed file, or none where it is absent.
inline std::optional<nlohmann::json> golden_json(const std::string& name) {
  const auto file = golden_folder() / name;
  if (!std::filesystem::exists(file)) return std::nullopt;
  return nlohmann::json::parse(std::ifstream(file));
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
