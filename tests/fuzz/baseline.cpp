// Forecasts of another program (--baseline): a file that is taken has the scores of its numbers, each finite or none.
#include <cmath>

#include "evaluation/baseline_file.h"
#include "fuzz.h"

using namespace tsdp;

TSDP_FUZZ(input) {
  static const data::Dataset dataset{"d", {}, {{"a", 0, {1, 2, 3, 4, 5, 6, 7, 8}}, {"b", 0, {0, 0, 0, 1, 0, 0, 0, 0}}}};
  static const std::vector<data::ForecastRange> ranges = {{0, 4}, {1, 4}};
  const auto file = fuzz::put("baseline.jsonl", input);
  nlohmann::ordered_json scores;
  if (!fuzz::accepted([&] { scores = evaluation::score_baseline(file, dataset, ranges, 2, 1).json(); },
                      {file.string() + ":"}))
    return;
  for (const auto& [name, value] : scores.items())
    fuzz::expect(value.is_null() || value.is_structured() || std::isfinite(value.get<double>()),
                 name + " is a number or null");
}
