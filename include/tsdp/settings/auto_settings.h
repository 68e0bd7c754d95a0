// Settings that a configuration leaves to the program: chosen by stated rules, from public facts alone.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tsdp/base/text.h"
#include "tsdp/mechanism/training_method.h"
#include "tsdp/privacy/terms/scheme.h"
#include "tsdp/settings/config.h"
#include "tsdp/settings/start.h"

namespace tsdp::mechanism {

/// One setting that was chosen, and why.
struct ChosenSetting {
  std::string key, value, why;
};

/// A configuration whose sampling scheme is settled (start, context, batch size and epochs are no longer `auto`), and
/// the weights that model.start stands for.
struct SettledScheme {
  Config config;
  std::optional<StartWeights> start = {};  ///< none: fresh weights, and model.start is fresh
  std::vector<StartWeights> networks = {};  ///< those of model.candidates, in that order
  std::vector<ChosenSetting> chosen = {};

  /// Whether the weights before training are drawn, and no prior makes a forecast of them: no model to release.
  [[nodiscard]] bool begins_at_random() const;
  [[nodiscard]] StartOrigin start_origin() const { return start ? start->origin : StartOrigin::fresh; }
  template <class Value>
  void choose(const char* key, const Value& value, const std::string& why) {
    chosen.push_back({key, cat(value), why});
  }
};

/// How far training is expected to carry a model from its start, by public facts alone: the sizes of the data and the
/// noise. It is what the rule for the learning rate goes by (docs/choosing.md), measured on public and made data; a
/// rule of thumb, and no promise.
struct Expectation {
  double signal;  ///< to noise of the run, √T Λ/σ; infinite without privacy
  double enough;  ///< the signal from which on it learns all it can
  double share;   ///< of what it would learn with more of either, in (0, 1]
};

/// Everything that a run does, derived once from the configuration as written and from public facts. Training, its plan
/// and advice read this. Nothing that enters the accounting of a private run is `auto`.
struct Settled : SettledScheme {
  TrainingMethod method;
  std::optional<Expectation> expected = {};  ///< none: from random weights, or without a step
};

/// Limits on the run that the rules may choose.
struct SettleLimits {
  double most_steps = 1e18;  ///< as many as the time allows; ≥ 1
  bool trains_mixtures = true;  ///< which is done on a CPU alone
};

/// Replaces `auto` in model.start, model.context_length, sampling.batch_size, training.max_epochs,
/// privacy.noise_multiplier, training.trainable and optimizer.learning_rate by what the rules of docs/choosing.md give.
/// The rules read the configuration, the number and lengths of the series and the shipped weights, but no value of a
/// series. Throws as find_start and method_of do.
[[nodiscard]] Settled settle(Config config, const privacy::SeriesLengths& training_lengths,
                             const std::filesystem::path& config_file, SettleLimits limits = {});

/// The two parts of `settle`: first what the sampling scheme depends on, then noise, composition and learning rate,
/// with the mechanism itself.
[[nodiscard]] SettledScheme settle_scheme(Config config, const privacy::SeriesLengths& training_lengths,
                                          const std::filesystem::path& config_file, SettleLimits limits = {});
[[nodiscard]] Settled settle_noise(SettledScheme settled, const privacy::SeriesLengths& training_lengths);

/// The same run with one thing changed: what the noise and the signal to noise of the run would be, and how much of
/// what it could learn it would be expected to.
struct Alternative {
  std::string what;  ///< in words, with the setting that does it where one does
  double noise_multiplier, signal, share;
};

/// What would change the signal to noise of `settled`, which was settled from `written` with these limits: without the
/// shortest series, a twentieth of all at most, as the shortest sets the noise of all; twice the epsilon; a whole
/// season of values protected in place of fewer; whole series drawn by coins. From public facts alone, like `settle`.
/// Where the composition is `auto` these are composed symmetrically, which takes a moment and a little more noise.
/// Empty where `settled` expects nothing, and where the noise is given.
[[nodiscard]] std::vector<Alternative> alternatives(const Config& written,
                                                    const privacy::SeriesLengths& training_lengths,
                                                    const std::filesystem::path& config_file, const Settled& settled,
                                                    SettleLimits limits = {});

/// Throws PrivacyError, naming what differs, unless the method of `run` is the one that follows from its configuration
/// and series of these lengths, so that what is trained is what is stated. A configuration may be changed after it was
/// settled, but in nothing that is accounted for.
void require_settled(const Settled& run, const privacy::SeriesLengths& training_lengths);

}  // namespace tsdp::mechanism
