#include "tsdp/sampling/setup.h"

#include <algorithm>

#include "tsdp/core/error.h"
#include "tsdp/core/text.h"
#include "tsdp/data/readers.h"

namespace tsdp::sampling {

data::Dataset read_series(const Config& config, const std::filesystem::path& config_file) {
  const auto& d = config.dataset;
  data::ReadOptions options;
  options.format = data::format_named(d.format);
  try {
    options.frequency = data::Frequency::parse(d.frequency);
  } catch (const UsageError& error) {
    throw UsageError(cat(config_file.string(), ": dataset.frequency: ", error.what()));
  }
  if (d.start) {
    data::Moment start = 0;
    if (!data::parse_moment(*d.start, start))
      throw UsageError(cat(config_file.string(), ": dataset.start: found '", *d.start, "'; expected \"YYYY-MM-DD\" or \"YYYY-MM-DD hh:mm\""));
    options.start = start;
  }
  return data::read_dataset(find_data_file(d.path, config_file), options);
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

PreparedData prepare_data(const Config& config, const std::filesystem::path& config_file) {
  PreparedData out;
  out.dataset = read_series(config, config_file);
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
