#include "tsdp/training/ledger.h"

#include <algorithm>

#include "tsdp/core/text.h"
#include "tsdp/core/version.h"
#include "tsdp/privacy/accountant.h"
#include "tsdp/privacy/attack.h"

namespace tsdp::training {
namespace {

using Json = nlohmann::ordered_json;

const char* name(RunState state) {
  return state == RunState::running ? "running" : state == RunState::interrupted ? "interrupted" : "finished";
}

std::string relation_text(const sampling::PrivacyUnit& unit) {
  std::string text = "two data sets are neighbours if they differ in one series, in ";
  text += unit.w == 1                                    ? std::string("one value")
          : unit.relation == sampling::Relation::event ? cat("at most ", unit.w, " consecutive values")
                                                         : cat("at most ", unit.w, " values anywhere");
  if (unit.v) text += cat(", each by at most ", *unit.v, " (values as they stand in the file)");
  return text;
}

}  // namespace

Json ledger(const Config& config, const sampling::SubsamplingScheme& scheme, const Plan& plan, RunState state,
            std::uint64_t steps_taken, std::uint64_t steps_charged) {
  const auto& p = scheme.parameters();
  Json out;
  out["format"] = "tsdp-privacy-1";
  out["program"] = cat("tsdp ", version());
  out["state"] = name(state);
  out["private"] = plan.mechanism.has_value();
  const auto [shortest, longest] = std::minmax_element(p.lengths.begin(), p.lengths.end());
  out["mechanism"] = {
      {"kind", plan.mechanism ? "DP-SGD on structured subsamples, Gaussian noise on the sum of clipped per-window gradients"
                              : "none: ordinary training on structured subsamples, without clipping per window and noise"},
      {"top_level", sampling::name(p.top_level)},
      {"bottom_level", sampling::name(p.bottom_level)},
      {"num_sequences", scheme.sequences()},
      {"shortest_sequence", *shortest},
      {"longest_sequence", *longest},
      {"context_length", p.context_length},
      {"forecast_length", p.forecast_length},
      {"batch_size", p.batch_size},
      {"subsequences_per_sequence", p.subsequences_per_sequence},
      {"steps_per_epoch", scheme.steps_per_epoch()},
      {"context_noise", p.context_noise},
      {"forecast_noise", p.forecast_noise},
  };
  out["steps_planned"] = plan.steps;
  out["steps_taken"] = steps_taken;
  out["steps_charged"] = steps_charged;
  out["randomness"] = config.training.reproducible
                          ? "reproducible, not for release: the key follows from the seed, so whoever knows the seed can "
                            "remove the noise"
                          : "secret 256-bit key of the operating system; ChaCha20 streams per purpose and step";
  if (!plan.mechanism) {
    out["epsilon"] = nullptr;
    out["statement"] = "No privacy: trained without clipping and noise.";
    return out;
  }
  const auto& m = *plan.mechanism;
  const auto unit = sampling::unit_of(config);
  out["theorem"] = m.theorem;
  out["source"] =
      "Schuchardt et al., Privacy Amplification by Structured Subsampling for Deep Differentially Private Time Series "
      "Forecasting, ICML 2025";
  out["bound"] = sampling::name(m.bound);
  out["composition_unit"] = sampling::name(m.unit);
  const auto charged = state == RunState::running ? std::max(plan.steps, steps_charged) : steps_charged;
  const auto uses = m.uses_of_steps(charged);
  out["compositions"] = uses;
  out["relation"] = {{"kind", sampling::name(unit.relation)}, {"w", unit.w}, {"v", nullptr}, {"text", relation_text(unit)}};
  if (unit.v) out["relation"]["v"] = *unit.v;
  out["noise_multiplier"] = m.noise_multiplier;
  out["clip_norm"] = config.privacy.clip_norm;
  out["clipping"] = config.privacy.clipping;
  out["delta"] = config.privacy.delta;
  out["target_epsilon"] = config.privacy.target_epsilon;
  privacy::Interval epsilon = plan.epsilon;
  auto attack = plan.attack;
  if (charged != plan.steps) {
    privacy::Accountant accountant(m.pair);
    epsilon = accountant.epsilon(config.privacy.delta, uses);
    attack = privacy::attack_bound(accountant, uses);
    if (charged < plan.steps) epsilon.upper = std::min(epsilon.upper, plan.epsilon.upper);  // fewer cost no more
  }
  out["epsilon"] = {{"lower", epsilon.lower}, {"upper", epsilon.upper}};
  if (attack)
    out["attack"] = {{"advantage", attack->advantage},
                     {"false_positive_rate", attack->false_positive_rate},
                     {"true_positive_rate", attack->true_positive_rate},
                     {"meaning",
                      "at most, for whoever sees all releases and guesses which of two neighbouring data sets was used: "
                      "true- less false-positive rate of the best test, and the true-positive rate of the best test with "
                      "that false-positive rate"}};
  Json uncovered = {
      "everything under private/: losses, norms, validation scores, plots, checkpoints and the key of the randomness",
      "validation and test values, and any choice made by looking at them (settings, model, number of epochs)",
      "the number and lengths of the series, their calendar, and which values are missing: treated as public",
      "forecasts from a series' own recent values: the guarantee is about training data, not about a model's inputs",
      "floating-point side channels: noise is made of finitely many random bits in double precision, cut at 12.07 standard "
      "deviations, and added to single-precision sums on a grid of 2^-24 of its deviation",
  };
  if (config.training.checkpoint == "best") uncovered.push_back("the choice of the checkpoint by validation loss");
  out["not_covered"] = std::move(uncovered);
  out["statement"] = statement(out);
  return out;
}

std::string statement(const Json& ledger) {
  if (!ledger.value("private", false)) return "No privacy: trained without clipping and noise.";
  std::string text = cat("(", rounded_up(ledger["epsilon"]["upper"].get<double>(), 4), ", ",
                         exact(ledger["delta"].get<double>()), ")-differential privacy, where ",
                         ledger["relation"]["text"].get<std::string>(), " (Theorem ",
                         ledger["theorem"].get<std::string>(), ").");
  if (ledger["randomness"].get<std::string>().rfind("reproducible", 0) == 0)
    text += " NOT FOR RELEASE: the randomness is reproducible from the seed.";
  return text;
}

}  // namespace tsdp::training
