#include "tsdp/sampling/setup.h"

#include <algorithm>

#include "tsdp/core/text.h"

namespace tsdp::sampling {

data::StatedForm stated_form_of(const Config& config) {
  return {config.dataset.format, config.dataset.frequency, config.dataset.start.value_or("")};
}

data::FormNames form_names_of(const std::filesystem::path& config_file) {
  const auto key = cat(config_file.string(), ": dataset.");
  return {cat(key, "format"), cat(key, "frequency"), cat(key, "start")};
}

data::Dataset read_series(const Config& config, const std::filesystem::path& config_file, bool exact) {
  const auto file = find_data_file(config.dataset.path, config_file);
  auto options = data::read_options_of(file, stated_form_of(config), form_names_of(config_file));
  options.exact = exact;
  return data::read_dataset(file, options);
}

data::SplitOptions split_options_of(const Config& config) {
  const auto& d = config.dataset;
  data::SplitOptions split;
  split.kind = d.split == "lstnet" ? data::SplitKind::lstnet : data::SplitKind::last;
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
  out.split = data::split_dataset(out.dataset, split_options_of(config));
  return out;
}

std::int64_t accounted_context(const Config& config) {
  const auto& lags = config.model.lags;
  const auto reach = lags.empty() ? 0 : *std::max_element(lags.begin(), lags.end()) - 1;
  return config.model.context_length + reach;
}

SubsamplingScheme scheme_of(const Config& config, std::vector<std::int64_t> training_lengths) {
  SubsamplingScheme::Parameters p;
  p.lengths = std::move(training_lengths);
  p.context_length = accounted_context(config);
  p.forecast_length = config.dataset.prediction_length;
  p.batch_size = config.sampling.batch_size;
  p.subsequences_per_sequence = config.sampling.subsequences_per_sequence;
  p.top_level = config.sampling.top_level == "wor"        ? TopLevel::without_replacement
                : config.sampling.top_level == "shuffled" ? TopLevel::shuffled
                                                          : TopLevel::deterministic;
  p.bottom_level = config.sampling.bottom_level == "wr" ? BottomLevel::with_replacement
                                                        : BottomLevel::poisson;
  p.context_noise = config.augmentation.context_noise;
  p.forecast_noise = config.augmentation.forecast_noise;
  return SubsamplingScheme(std::move(p));
}

PrivacyUnit unit_of(const Config& config) {
  return {config.privacy.relation == "event" ? Relation::event : Relation::user, config.privacy.w,
          config.privacy.v};
}

}  // namespace tsdp::sampling
