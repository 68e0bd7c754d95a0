// Forecasts of another program (--baseline, model.candidates): a file that is taken has the scores of its numbers, each
// finite or none, and windows of finite, ascending quantiles.
#include <cmath>

#include "data/forecast_file.h"
#include "evaluation/baseline_file.h"
#include "fuzz.h"

using namespace tsdp;

TSDP_FUZZ(input) {
  static const data::Dataset dataset{"d", {}, {{"a", 0, {1, 2, 3, 4, 5, 6, 7, 8}}, {"b", 0, {0, 0, 0, 1, 0, 0, 0, 0}}}};
  static const std::vector<data::ForecastRange> ranges = {{0, 4}, {1, 4}};
  const auto file = fuzz::put("baseline.jsonl", input);
  std::shared_ptr<const data::ExternalForecasts> external;
  if (fuzz::accepted([&] { external = data::read_external(file, dataset, 2); }, {file.string() + ":"}))
    for (const auto& [window, values] : external->windows)
      for (std::size_t i = 0; i < values.size(); ++i)
        fuzz::expect(std::isfinite(values[i]) && (i < 2 || i >= 18 || values[i] >= values[i - 2]),
                     "quantiles are finite and ascend");
  nlohmann::ordered_json scores;
  if (!fuzz::accepted([&] { scores = evaluation::score_baseline(file, dataset, ranges, 2, 1).json(); },
                      {file.string() + ":"}))
    return;
  for (const auto& [name, value] : scores.items())
    fuzz::expect(value.is_null() || value.is_structured() || std::isfinite(value.get<double>()),
                 name + " is a number or null");
}
