#include "tsdp/mechanism/auto_settings.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/mechanism/setup.h"
#include "tsdp/privacy/accountant.h"

namespace tsdp::mechanism {
namespace {

// Found on training parts of the shipped sets (docs/choosing.md).
constexpr std::int64_t most_series = 4096;         // of a step
constexpr double steps_of_a_run = 10'000.0;        // more at larger noise help little
constexpr double windows_of_a_run = 2e7;           // but no run takes hours
constexpr double fewest_steps = 1'000.0;
constexpr double recurrent_share = 0.25;           // of the steps, for a model that costs as much more
constexpr double rate_with_prior = 1.1e-4;         // times Λ/σ
constexpr double rate_with_start = 3e-5;
constexpr double most_rate_times_root_steps = 0.01;  // with_start: how far a walk of noise alone may go
constexpr double rate_without = 1e-3;

/// The least multiple of the season that holds the horizon, where a prior is to see a season; else the horizon. Not beyond what the series hold.
std::int64_t context_of(const Config& c, const privacy::SeriesLengths& lengths) {
  const auto horizon = c.dataset.prediction_length;
  const auto season = c.dataset.season_length;
  const bool by_season = c.model.lags.empty() && c.model.prior != PriorKind::none && c.model.prior != PriorKind::last_value && season >= 2;
  const auto wanted = by_season ? (horizon + season - 1) / season * season : horizon;
  const auto held = std::max<std::int64_t>(1, lengths.shortest() - horizon);
  return std::max(std::min(wanted, held), by_season && season <= held ? season : 1);
}

}  // namespace

Settled settle_law(Config config, const privacy::SeriesLengths& lengths, const std::filesystem::path& config_file, SettleLimits limits) {
  Settled out;
  const auto choose = [&](const char* key, const auto& value, const std::string& why) { out.chosen.push_back({key, cat(value), why}); };
  auto& c = config;

  const auto asked = c.model.start;
  out.start = find_start(c, config_file);
  if (asked == "auto" || asked == "pretrained") {
    c.model.start = out.start ? out.start->file.string() : "fresh";
    choose("model.start", out.start ? out.start->file.stem().string() : "fresh",
           out.start             ? "shipped weights, trained on synthetic series alone"
           : prior_of(c).kind == PriorKind::none ? "no shipped weights are offered for this shape"
                                 : "no shipped weights are offered for this shape, so the prior is the start");
  }
  if (!c.model.context_length) {
    c.model.context_length = out.start ? context_length_of(*out.start) : context_of(c, lengths);
    choose("model.context_length", *c.model.context_length, out.start ? "that of the weights it starts from" : "the forecast length, in whole seasons where the prior needs one");
  }
  const auto lambda = c.sampling.subsequences_per_sequence;
  if (c.sampling.auto_batch_size) {
    c.sampling.auto_batch_size = false;
    c.sampling.batch_size = lambda * std::min(lengths.count(), most_series);
    choose("sampling.batch_size", *c.sampling.batch_size,
           lengths.count() <= most_series ? "every series in every step: the fewest steps for the same signal" : cat(most_series, " series a step, so that a step stays short"));
  }
  const auto law = law_of(c, lengths);
  const auto windows = static_cast<double>(law.expected_windows());
  if (!c.training.max_epochs) {
    const double share = c.model.lags.empty() ? 1.0 : recurrent_share;
    const double by_rule = share * std::clamp(windows_of_a_run / windows, fewest_steps, steps_of_a_run);
    const double steps = std::min(by_rule, limits.most_steps);
    c.training.max_epochs = std::max<std::int64_t>(1, std::llround(steps / static_cast<double>(law.steps_per_epoch())));
    choose("training.max_epochs", *c.training.max_epochs, cat(rounded(steps, 5), steps < by_rule ? " steps, as many as the time allows" : " steps: more of them with more noise help little"));
  }
  out.config = std::move(config);
  return out;
}

Settled settle(Config config, const privacy::SeriesLengths& lengths, const std::filesystem::path& config_file, SettleLimits limits) {
  auto out = settle_law(std::move(config), lengths, config_file, limits);
  const auto choose = [&](const char* key, const auto& value, const std::string& why) { out.chosen.push_back({key, cat(value), why}); };
  auto& c = out.config;
  const auto law = law_of(c, lengths);
  double multiplier = c.privacy.noise_multiplier.value_or(1.0);
  if (c.privacy.enabled && !c.privacy.noise_multiplier) {
    const auto method = method_of(c, lengths);
    multiplier = method.privacy()->noise().multiplier;
    c.privacy.noise_multiplier = multiplier;
    const auto& strategy = method.privacy()->noise().strategy;
    if (!c.privacy.noise_mechanism) c.privacy.noise_mechanism = strategy ? strategy->kind() : privacy::StrategyKind::identity;
    choose("privacy.noise_multiplier", exact(multiplier), cat("the least that spends epsilon ", c.privacy.target_epsilon, " over ", *c.training.max_epochs, " epochs"));
  }
  if (!c.optimizer.learning_rate) {
    const double signal = law.divisor() / multiplier;
    const double steps = static_cast<double>(*c.training.max_epochs) * static_cast<double>(law.steps_per_epoch());
    double rate = rate_without;
    std::string why = "GluonTS's, as the model has no prior";
    if (c.privacy.enabled && out.start) {
      rate = std::min(rate_with_start * signal, most_rate_times_root_steps / std::sqrt(steps));
      why = "so small that the noise alone does not carry the weights away from where they start";
    } else if (c.privacy.enabled && prior_of(c).kind != PriorKind::none) {
      rate = rate_with_prior * signal;
      why = "in proportion to the batch over the noise, with a prior";
    }
    c.optimizer.learning_rate = rate;
    choose("optimizer.learning_rate", rounded(rate, 4), why);
  }
  return out;
}

}  // namespace tsdp::mechanism
