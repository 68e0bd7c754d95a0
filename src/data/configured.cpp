#include "tsdp/data/configured.h"

#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/data/readers.h"
#include "tsdp/data/synthetic.h"

namespace tsdp::data {

StatedForm stated_form_of(const Config& config) {
  return {config.dataset.format, config.dataset.frequency, config.dataset.start.value_or("")};
}

FormNames form_names_of(const std::filesystem::path& config_file) {
  const auto key = cat(config_file.string(), ": dataset.");
  return {cat(key, "format"), cat(key, "frequency"), cat(key, "start")};
}

namespace {

Dataset synthetic_series(const Config& config, const std::filesystem::path& config_file, bool exact) {
  const auto& d = config.dataset;
  const auto where = cat(config_file.string(), ": dataset.");
  auto out = generate_synthetic(named<SyntheticKind>(d.path, cat(where, "path")),
                                {d.synthetic_series, d.synthetic_length, static_cast<std::uint64_t>(d.synthetic_seed)});
  if (Frequency::parse(d.frequency) != out.frequency)
    throw UsageError(cat(where, "frequency: found ", d.frequency, "; series of the family ", d.path, " have ", out.frequency.text()));
  if (exact)
    for (auto& series : out.series) series.exact.assign(series.values.begin(), series.values.end());
  return out;
}

}  // namespace

Dataset read_series(const Config& config, const std::filesystem::path& config_file, bool exact) {
  if (config.dataset.is_synthetic()) return synthetic_series(config, config_file, exact);
  const auto file = find_data_file(config.dataset.path, config_file);
  auto options = read_options_of(file, stated_form_of(config), form_names_of(config_file));
  options.exact = exact;
  return read_dataset(file, options);
}

SplitOptions split_options_of(const Config& config) {
  const auto& d = config.dataset;
  SplitOptions split;
  split.kind = d.split == "lstnet" ? SplitKind::lstnet : SplitKind::last;
  split.prediction_length = d.prediction_length;
  split.test_windows = d.test_windows;
  split.validation_length = d.validation_length.value_or(5 * d.prediction_length);
  return split;
}

PreparedData prepare_data(const Config& config, const std::filesystem::path& config_file, bool private_forecasts) {
  const auto& noise = config.augmentation;
  // Without noise on the data guarantees hold for changes of any size, and v says nothing.
  const bool trains_on_noised_values =
      config.privacy.enabled && config.privacy.v && (noise.context_noise > 0.0 || noise.forecast_noise > 0.0);
  PreparedData out;
  out.dataset = read_series(config, config_file, private_forecasts || trains_on_noised_values);
  out.split = split_dataset(out.dataset, split_options_of(config));
  return out;
}

}  // namespace tsdp::data
