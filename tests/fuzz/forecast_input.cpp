// What tsdp-forecast and tsdp-data are given: a file whose form its name, its head or options tell. The first line of
// an input has the ending of the name, then format, frequency and start, '-' for what is not stated.
#include <cmath>

#include <nlohmann/json.hpp>

#include "fuzz.h"
#include "tsdp/base/text.h"
#include "tsdp/data/input_form.h"

using namespace tsdp;

TSDP_FUZZ(input) {
  auto about = split(fuzz::take_line(input), ' ');
  about.resize(4, "-");
  for (auto& word : about)
    if (word == "-") word.clear();
  std::string ending;
  for (const char c : about[0])
    if ((c >= 'a' && c <= 'z') || c == '.') ending += c;
  const auto file = fuzz::put("input." + ending.substr(0, 20), input);
  data::Dataset dataset;
  const bool read = fuzz::accepted(
      [&] { dataset = data::read_dataset(file, data::read_options_of(file, {about[1], about[2], about[3]})); },
      {file.string() + ":", "--format: ", "--frequency: ", "--start: "});
  std::filesystem::remove(file);
  if (!read) return;
  for (const auto& series : dataset.series) {
    static_cast<void>(
        nlohmann::json(series.id).dump());  // throws unless an id is UTF-8, which forecasts are written in
    fuzz::expect(!series.values.empty() && !std::isnan(series.values.back()), "a series ends with what was observed");
  }
}
