// What fuzz targets share: inputs as files in memory, and what every refusal must be.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>

#include "tsdp/base/error.h"
#include "tsdp/data/readers.h"

namespace tsdp::fuzz {

/// Ends the program with a word where a property does not hold: libFuzzer keeps the input.
void expect(bool holds, const std::string& what);

/// A folder of this process in memory (/dev/shm), removed when it ends.
const std::filesystem::path& folder();
/// Writes a file there, over the one before.
std::filesystem::path put(const std::string& name, std::string_view content);

/// The first line of an input, which becomes the rest.
std::string_view take_line(std::string_view& input);

/// That a refusal, as programs print it, is one line without control characters, and begins with what is at fault: with
/// one of `begins`.
void expect_refusal(const Error& error, std::initializer_list<std::string> begins = {});

/// Whether `action` went through; a tsdp::Error is looked at, anything else passes on and is a finding.
template <class Action>
bool accepted(Action action, std::initializer_list<std::string> begins = {}) {
  try {
    action();
    return true;
  } catch (const Error& error) {
    expect_refusal(error, begins);
    return false;
  }
}

/// That two data sets hold the same series: starts, and every value to the bit; ids too unless the form has none.
void expect_equal(const data::Dataset& found, const data::Dataset& expected, bool ids);

/// A reader and a writer of one form. The first line of `input` says the frequency and, for lstnet, the start; the rest
/// is the file. What is read is written and read again as the same; what the writer refuses leaves no file.
void round_trip(std::string_view input, data::Format format);

}  // namespace tsdp::fuzz

/// The target: `TSDP_FUZZ(input) { … }`, input a std::string_view.
#define TSDP_FUZZ(input)                                                               \
  static void tsdp_fuzz_one(std::string_view input);                                   \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);  \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) { \
    tsdp_fuzz_one({size == 0 ? "" : reinterpret_cast<const char*>(bytes), size});      \
    return 0;                                                                          \
  }                                                                                    \
  static void tsdp_fuzz_one(std::string_view input)
