#include "fuzz.h"

#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "base/log.h"
#include "data/writers.h"
#include "tsdp/base/text.h"
#include "tsdp/data/input_form.h"

namespace tsdp::fuzz {
namespace {

/// The values' bits, all NaN alike: a missing value is a missing value.
bool same_value(float a, float b) { return std::isnan(a) ? std::isnan(b) : std::memcmp(&a, &b, sizeof a) == 0; }

class Folder {
 public:
  Folder() {
    log::set_level(log::Level::quiet);
    const auto* const root = std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : "/tmp";
    std::string name = std::string(root) + "/tsdp_fuzz_XXXXXX";
    expect(::mkdtemp(name.data()) != nullptr, "a folder for inputs");
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace

void expect(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "property does not hold: %s\n", what.c_str());
  std::abort();
}

const std::filesystem::path& folder() {
  static const Folder one;
  return one.path();
}

std::filesystem::path put(const std::string& name, std::string_view content) {
  const auto file = folder() / name;
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  expect(out.flush().good(), "the input as a file");
  return file;
}

std::string_view take_line(std::string_view& input) {
  const auto end = std::min(input.find('\n'), input.size());
  const auto line = input.substr(0, end);
  input.remove_prefix(std::min(end + 1, input.size()));
  return line;
}

void expect_refusal(const Error& error, std::initializer_list<std::string> begins) {
  const std::string line = error.what();
  expect(!line.empty(), "a refusal has words");
  const auto printed = visible(line);
  expect(is_utf8(printed), "what is printed is UTF-8");
  for (const char c : printed) {
    const auto byte = static_cast<unsigned char>(c);
    expect(byte >= 0x20 && byte != 0x7f, cat("a refusal is one line without control characters: '", printed, "'"));
  }
  bool begun = begins.size() == 0;
  for (const auto& begin : begins) begun = begun || line.starts_with(begin);
  expect(begun, cat("a refusal begins with what is at fault: '", line, "'"));
}

void expect_equal(const data::Dataset& found, const data::Dataset& expected, bool ids) {
  expect(found.frequency == expected.frequency, "the same frequency");
  expect(found.series.size() == expected.series.size(), "as many series");
  for (std::size_t i = 0; i < found.series.size(); ++i) {
    const auto& a = found.series[i];
    const auto& b = expected.series[i];
    const auto where = cat("series ", i, ": ");
    expect(!ids || a.id == b.id, where + "the same id");
    expect(a.start == b.start, cat(where, "the same start: ", a.start, ", ", b.start));
    expect(a.values.size() == b.values.size(), cat(where, "as many values: ", a.values.size(), ", ", b.values.size()));
    const auto other = std::mismatch(a.values.begin(), a.values.end(), b.values.begin(), same_value).first;
    expect(other == a.values.end(), cat(where, "the same value at place ", other - a.values.begin()));
  }
}

void round_trip(std::string_view input, data::Format format) {
  const std::string about(take_line(input));
  const auto space = std::min(about.find(' '), about.size());
  data::ReadOptions options;
  options.format = format;
  const auto file = put("input", input);
  data::Dataset first;
  if (!accepted([&] { options.frequency = data::Frequency::parse(about.substr(0, space)); })) return;
  if (data::Moment start = 0; space < about.size() && data::parse_moment(about.substr(space + 1), start))
    options.start = start;
  if (!accepted([&] { first = data::read_dataset(file, options); }, {file.string() + ":"})) return;

  expect(!first.series.empty(), "a data set has series");
  std::size_t values = 0;
  for (const auto& series : first.series) {
    expect(!series.values.empty() && !std::isnan(series.values.back()), "missing values are cut off at the end");
    const auto infinite = [](float value) { return std::isinf(value); };
    expect(std::none_of(series.values.begin(), series.values.end(), infinite), "no value is infinite");
    values += series.values.size();
  }
  // Time stamps far apart make long series of a short file: they are read, but writing them would take seconds.
  constexpr std::size_t most_written = 20'000;
  if (values > most_written) return;
  const auto copy = folder() / "copy";
  std::filesystem::remove(copy);
  if (!accepted([&] { data::write_dataset(first, copy, format); }, {copy.string() + ": "})) {
    expect(!std::filesystem::exists(copy), "what is refused is not written in part");
    return;
  }
  if (format == data::Format::lstnet) options.start = first.series.front().start;
  data::Dataset second;
  expect(accepted([&] { second = data::read_dataset(copy, options); }), "what is written can be read");
  expect_equal(second, first, format != data::Format::lstnet);
}

}  // namespace tsdp::fuzz
