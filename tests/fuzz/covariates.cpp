// Files of covariates: what is read is finite, has one name each, and a table for each series. The first line of an
// input has the columns that are asked for, with a comma between two; the rest is the file.
#include <cmath>
#include <set>

#include "data/covariates.h"
#include "fuzz.h"
#include "tsdp/base/text.h"

using namespace tsdp;

TSDP_FUZZ(input) {
  const auto asked = fuzz::take_line(input);
  const auto columns = asked.empty() ? std::vector<std::string>() : split(asked, ',');
  const auto file = fuzz::put("covariates.csv", input);
  data::Dataset dataset;
  dataset.name = "series";
  dataset.frequency = data::Frequency::parse("1D");
  dataset.series = {{"a", 19'722 * 86'400, {1, 2, 3}}, {"b", 19'723 * 86'400, {4, 5, 6, 7}}};  // from 2023-12-31 on
  if (!fuzz::accepted([&] { dataset.covariates = data::read_covariates(file, dataset, columns, {}, "columns"); },
                      {file.string() + ":", "columns: "}))
    return;
  const auto& known = dataset.covariates;
  const auto width = known.names.size();
  fuzz::expect(width > 0 && width <= data::most_covariates, "there are some covariates, and not too many");
  fuzz::expect(std::set(known.names.begin(), known.names.end()).size() == width, "covariates have names of their own");
  fuzz::expect(columns.empty() || !known.of_each_series() || width >= columns.size(), "what is asked for is there");
  for (const auto& table : known.tables) {
    fuzz::expect(!table.values.empty() && table.values.size() % width == 0, "a row has a value for each covariate");
    for (const float value : table.values) fuzz::expect(std::isfinite(value), "covariates are known of every step");
  }
  static_cast<void>(data::covariate_that_is_a_series(dataset));
  if (!fuzz::accepted([&] { data::require_covariates(dataset, 1); }, {file.string() + ":"})) return;
  for (std::size_t s = 0; s < dataset.series.size(); ++s) {
    const data::KnownSteps steps(dataset, s);
    for (std::int64_t place = 0; place <= std::ssize(dataset.series[s].values); ++place)
      fuzz::expect(steps.at(place).size() == width, "every step has a row");
  }
}
