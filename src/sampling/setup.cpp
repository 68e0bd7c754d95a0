#include "tsdp/sampling/setup.h"

#include <algorithm>

#include "tsdp/core/error.h"
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

void require_terms_of(const Config& config, const Ledger& ledger, const std::string& where) {
  const auto same = [&](const char* term, const auto& found, const auto& expected) {
    if (found != expected)
      throw DataError(cat(where, ": ", term, ": found ", found, "; the run's configuration says ", expected,
                          ": put the run's own file back"));
  };
  const auto expected = scheme_of(config, {std::max(ledger.shortest, config.dataset.prediction_length)}).parameters();
  same("reproducible", ledger.reproducible, config.training.reproducible);
  same("context_length", ledger.context_length, expected.context_length);
  same("forecast_length", ledger.forecast_length, expected.forecast_length);
  same("batch_size", ledger.batch_size, expected.batch_size);
  same("subsequences_per_sequence", ledger.subsequences_per_sequence, expected.subsequences_per_sequence);
  same("top_level", std::string(name(ledger.top_level)), std::string(name(expected.top_level)));
  same("bottom_level", std::string(name(ledger.bottom_level)), std::string(name(expected.bottom_level)));
  same("context_noise", ledger.context_noise, expected.context_noise);
  same("forecast_noise", ledger.forecast_noise, expected.forecast_noise);
  same("private", ledger.privacy.has_value(), config.privacy.enabled);
  if (!ledger.privacy) return;
  const auto& p = *ledger.privacy;
  const auto unit = unit_of(config);
  same("relation", std::string(name(p.unit.relation)), std::string(name(unit.relation)));
  same("w", p.unit.w, unit.w);
  same("v", p.unit.v.value_or(0.0), unit.v.value_or(0.0));
  same("noise_multiplier", p.noise_multiplier, config.privacy.noise_multiplier.value_or(0.0));
  same("clip_norm", p.clip_norm, config.privacy.clip_norm);
  same("clipping", p.clipping, config.privacy.clipping);
  same("delta", p.delta, config.privacy.delta);
  same("target_epsilon", p.target_epsilon, config.privacy.target_epsilon);
}

}  // namespace tsdp::sampling
