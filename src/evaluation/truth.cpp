#include "evaluation/truth.h"

#include "tsdp/evaluation/metrics.h"

namespace tsdp::evaluation {

std::span<const float> past_of(const data::Dataset& dataset, const data::ForecastRange& range) {
  const auto& values = dataset.series[static_cast<std::size_t>(range.series)].values;
  return std::span(values).first(static_cast<std::size_t>(range.forecast_start));
}

Truth truth_of(const data::Dataset& dataset, const data::ForecastRange& range, std::int64_t prediction_length,
               std::int64_t season_length) {
  const auto past = past_of(dataset, range);
  const auto* target = past.data() + past.size();
  return {{target, target + prediction_length},
          seasonal_error(std::vector<double>(past.begin(), past.end()), season_length)};
}

}  // namespace tsdp::evaluation
