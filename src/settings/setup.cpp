#include "settings/setup.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "privacy/matrix/correlated_noise.h"
#include "privacy/terms/out_of_reach.h"
#include "privacy/theorems/noise_choice.h"
#include "tsdp/base/error.h"
#include "tsdp/base/json.h"
#include "tsdp/base/text.h"
#include "tsdp/privacy/accountant/accountant.h"
#include "tsdp/privacy/matrix/strategy_search.h"

namespace tsdp::mechanism {

std::int64_t accounted_context(const Config& config) {
  const auto& lags = config.model.lags;
  const auto reach = lags.empty() ? 0 : *std::max_element(lags.begin(), lags.end()) - 1;
  const auto network = config.model.context_length.value() + reach;
  // To train a mixture, a window's past is judged, too.
  return config.training.trainable == Trainable::mixture
             ? mixture_of(config).past_length(network, config.dataset.prediction_length)
             : network;
}

namespace {

/// p of cyclic Poisson batches: the bands of C, which independent noise has one of.
std::int64_t groups_of(const Config& config) {
  if (config.sampling.top_level != privacy::TopLevel::cyclic_poisson) return 1;
  switch (config.privacy.noise_mechanism.value_or(privacy::StrategyKind::identity)) {
    case privacy::StrategyKind::bsr:
    case privacy::StrategyKind::band_mf: return config.privacy.noise_bands;
    case privacy::StrategyKind::file: {
      // As Strategy::bands() counts them: zeros at the end are none.
      std::int64_t bands = 1;
      if (const auto& recursion = config.privacy.noise_recursion; recursion)
        for (std::size_t j = 0; j < recursion->coefficients.size(); ++j)
          if (recursion->coefficients[j] != 0.0) bands = static_cast<std::int64_t>(j) + 1;
      return bands;
    }
    case privacy::StrategyKind::identity:
    case privacy::StrategyKind::bisr:
    case privacy::StrategyKind::band_inv_mf:
    case privacy::StrategyKind::blt: break;
  }
  return 1;
}

}  // namespace

privacy::SubsamplingScheme scheme_of(const Config& config, privacy::SeriesLengths training_lengths) {
  privacy::SubsamplingScheme::Parameters p;
  p.lengths = std::move(training_lengths);
  p.context_length = accounted_context(config);
  p.forecast_length = config.dataset.prediction_length;
  p.batch_size = config.sampling.batch_size.value_or(1);  // where none is given, batches or a rate are
  p.subsequences_per_sequence = config.sampling.subsequences_per_sequence;
  p.top_level = config.sampling.top_level;
  p.bottom_level = config.sampling.bottom_level;
  p.context_noise = config.augmentation.context_noise;
  p.forecast_noise = config.augmentation.forecast_noise;
  p.record = config.privacy.relation == privacy::Relation::series ? privacy::Record::series : privacy::Record::window;
  p.reshuffle = config.sampling.reshuffle;
  p.redraw = config.sampling.redraw;
  p.groups = config.privacy.enabled ? groups_of(config) : 1;
  p.batches = config.sampling.batches;
  p.rate = config.sampling.rate;
  p.largest_batch = config.sampling.largest_batch;
  try {
    return privacy::SubsamplingScheme(std::move(p));
  } catch (const UsageError& error) {
    // Only the data tell how many series there are.
    if (config.sampling.batches && std::string(error.what()).starts_with("batches: "))
      throw UsageError(cat("sampling.", error.what()));
    if (const std::string what = error.what(); what.starts_with("largest batch: "))
      throw UsageError(cat("sampling.largest_batch: ", what.substr(what.find(' ', what.find(' ') + 1) + 1)));
    if (std::string(error.what()).starts_with("bands: "))
      throw UsageError(cat(config.privacy.noise_mechanism == privacy::StrategyKind::file
                               ? "privacy.noise.coefficients: their "
                               : "privacy.noise.",
                           error.what()));
    throw;
  }
}

std::optional<SyntheticData> synthetic_data_of(const Config& config) {
  const auto& d = config.dataset;
  if (!d.is_synthetic()) return std::nullopt;
  return SyntheticData{d.path, d.synthetic_series, d.synthetic_length, d.synthetic_seed};
}

privacy::PrivacyUnit unit_of(const Config& config, const privacy::SeriesLengths& training_lengths) {
  privacy::PrivacyUnit out{config.privacy.relation, config.privacy.w, config.privacy.v};
  if (training_lengths.has_owners()) out.owners = training_lengths.grouped().grouping;
  out.variables = training_lengths.variables();
  return out;
}

bool takes_steps(const Config& config) { return !config.privacy.enabled || config.privacy.target_epsilon > 0.0; }

std::uint64_t uses_of_epochs(const privacy::AppliedTheorem& theorem, std::int64_t max_epochs) {
  const auto steps = static_cast<std::uint64_t>(max_epochs) * static_cast<std::uint64_t>(theorem.steps_per_epoch);
  const auto uses = theorem.uses_of_steps(steps);
  if (uses > privacy::max_uses_ever)
    throw UsageError(cat("training.max_epochs: found ", max_epochs, ", that is ", steps, " steps; at most ",
                         privacy::max_uses_ever, " are accounted for"));
  return uses;
}

std::shared_ptr<const privacy::Strategy> planned_strategy_of(const Config& config,
                                                             const privacy::SubsamplingScheme& scheme) {
  const auto kind = config.privacy.noise_mechanism.value_or(privacy::StrategyKind::identity);
  if (kind == privacy::StrategyKind::identity) return nullptr;
  return std::make_shared<const privacy::Strategy>(privacy::planned_strategy(
      config.privacy.wanted_strategy(kind), scheme.steps_per_epoch(), config.training.max_epochs.value()));
}

namespace {

/// The key of a test by sampling of a reproducible run.
SecretKey reproducible_test(const Config& config, int test) {
  return SecretKey::from_stream(SecretKey::from_seed(static_cast<std::uint64_t>(config.training.seed)),
                                "noise by sampling: test", static_cast<std::uint64_t>(test));
}

}  // namespace

std::optional<privacy::SampledClaim> sampled_claim_of(const Config& config) {
  const auto& p = config.privacy;
  if (!p.noise_sampled || *p.noise_sampled == "auto") return std::nullopt;
  return privacy::SampledClaim{p.target_epsilon, p.delta, SecretKey::from_hex(*p.noise_sampled)};
}

TrainingMethod method_of(const Config& config, privacy::SeriesLengths training_lengths) {
  auto scheme = scheme_of(config, std::move(training_lengths));
  const auto& p = config.privacy;
  if (!p.enabled) return TrainingMethod(std::move(scheme));
  const auto epochs = config.training.max_epochs.value();
  auto strategy = planned_strategy_of(config, scheme);
  auto multiplier_of = p.noise_multiplier;
  if (!takes_steps(config)) multiplier_of = multiplier_of.value_or(1.0);
  if (const auto& t = scheme.parameters(); takes_steps(config) && !p.noise_mechanism &&
                                           p.relation == privacy::Relation::series &&
                                           privacy::searches_correlated_noise(privacy::series_law_of(scheme))) {
    // auto, which elsewhere is identity.
    auto best = privacy::least_total_error({privacy::series_law_of(scheme), epochs, p.target_epsilon, p.delta},
                                           p.wanted_strategy(privacy::StrategyKind::identity));
    multiplier_of = best.noise_multiplier;
    if (t.top_level == privacy::TopLevel::cyclic_poisson) {
      auto with_groups = t;
      with_groups.groups = best.law.groups;
      scheme = privacy::SubsamplingScheme(std::move(with_groups));
    }
    if (best.strategy->kind() != privacy::StrategyKind::identity) strategy = std::move(best.strategy);
  }
  auto composition = p.composition;
  const auto choose = [&](privacy::StepComposition chosen) {
    composition = chosen;
    if (chosen == privacy::StepComposition::adaptive)
      log::info(
          "the steps are composed adaptively (privacy.composition): the first answer for a noise multiplier may take a "
          "minute, later ones are kept on disk");
  };
  const auto with = [&](privacy::Noise noise) {
    return PrivateMechanism(unit_of(config, scheme.parameters().lengths), scheme, {p.clipping, p.clip_norm},
                            std::move(noise), std::nullopt, /*choice_epsilon=*/0.0,
                            composition.value_or(privacy::StepComposition::symmetrised));
  };
  if (takes_steps(config) && p.noise_sampled) {
    composition = composition.value_or(privacy::StepComposition::symmetrised);
    if (multiplier_of) {
      const auto claim = sampled_claim_of(config);
      for (int test = 0; test < privacy::most_sampled_tests && !config.training.reproducible; ++test)
        if (claim->key == reproducible_test(config, test))
          throw UsageError(
              "privacy.noise.sampled: found the key of a reproducible run, which follows from its seed; expected auto");
      return with(privacy::noise_by(strategy, *multiplier_of, claim));
    }
    log::info("the noise is found by sampling (privacy.noise.sampled), which takes a minute or so");
    auto noise = [&] {
      try {
        return privacy::least_sampled_noise(
            {privacy::series_law_of(scheme), epochs, p.target_epsilon, p.delta}, strategy, [&](int test) {
              return config.training.reproducible ? reproducible_test(config, test) : SecretKey::from_system();
            });
      } catch (const privacy::OutOfReach& error) {
        throw PrivacyError(cat("privacy.noise.sampled: found auto, and ", error.what(),
                               "; expected null, or a smaller privacy.target_epsilon"));
      }
    }();
    if (!noise.sampled)
      log::warning(
          "privacy.noise.sampled: no test by sampling was passed; the noise is certified without, for 0.99 of delta");
    return with(std::move(noise));
  }
  const auto with_noise = [&](double multiplier) { return with(privacy::noise_by(strategy, multiplier)); };
  if (multiplier_of) {
    if (!composition) choose(privacy::chosen_composition(with_noise(*multiplier_of).theorem()));
    return with_noise(*multiplier_of);
  }
  const auto uses = uses_of_epochs(with_noise(1.0).theorem(), epochs);
  const privacy::PrivacyTarget target{p.target_epsilon, p.delta, uses};
  const auto theorem_at = [&](double sigma) { return with_noise(sigma).theorem(); };
  if (!composition) choose(privacy::chosen_composition(target, theorem_at));
  return with_noise(privacy::least_noise(target, theorem_at));
}

void keep_choices(Config& config, const PrivateMechanism& mechanism) {
  config.privacy.composition = mechanism.composition();
  const auto& noise = mechanism.noise();
  config.privacy.noise_multiplier = noise.multiplier;
  config.privacy.noise_sampled.reset();
  if (noise.sampled) config.privacy.noise_sampled = noise.sampled->key.hex();
  if (!config.privacy.noise_mechanism) {
    config.privacy.noise_mechanism = noise.strategy ? noise.strategy->kind() : privacy::StrategyKind::identity;
    const auto& scheme = mechanism.scheme().parameters();
    if (scheme.top_level == privacy::TopLevel::cyclic_poisson) config.privacy.noise_bands = scheme.groups;
  }
}

void require_terms_of(const Config& config, const Ledger& ledger, const std::string& where) {
  const auto require_same = [&](const nlohmann::ordered_json& found, const nlohmann::ordered_json& expected) {
    const auto shown = [](const nlohmann::ordered_json& terms, const std::string& term) {
      return terms.contains(term) ? json_text(terms.at(term)) : "none";
    };
    auto both = found;
    both.update(expected);
    for (const auto& [term, unused] : both.items())
      if (!found.contains(term) || !expected.contains(term) || found.at(term) != expected.at(term))
        throw DataError(cat(where, ": ", term, ": found ", shown(found, term), "; the run's configuration says ",
                            shown(expected, term), ": put the run's own file back"));
  };
  const auto prior = prior_of(config);
  const auto& start = ledger.start;
  require_same(
      {{"prior", name(start.prior.kind)},
       {"season", start.prior.season},
       {"fresh weights", start.origin == StartOrigin::fresh}},
      {{"prior", name(prior.kind)}, {"season", prior.season}, {"fresh weights", config.model.start == "fresh"}});
  if (ledger.synthetic != synthetic_data_of(config))
    throw DataError(
        cat(where, ": synthetic_data: is not what the run's configuration says; put the run's own file back"));
  require_same({{"reproducible", ledger.reproducible}, {"private", ledger.is_private()}},
               {{"reproducible", config.training.reproducible}, {"private", config.privacy.enabled}});
  const auto& scheme = ledger.method.scheme().parameters();
  // With the same series and owners: their own digests tell whether they fit the configuration.
  require_same({{"owners", scheme.lengths.has_owners()}}, {{"owners", config.dataset.has_owners()}});
  if (scheme.lengths.shortest() < config.dataset.prediction_length)
    throw DataError(cat(where, ": shortest_sequence: found ", scheme.lengths.shortest(),
                        "; the run's configuration says at least ", config.dataset.prediction_length,
                        ": put the run's own file back"));
  if (!ledger.cost) return require_same(terms(ledger.method), terms(TrainingMethod(scheme_of(config, scheme.lengths))));
  const auto& p = config.privacy;
  require_same({{"delta", ledger.cost->delta}, {"target_epsilon", ledger.cost->target_epsilon}},
               {{"delta", p.delta}, {"target_epsilon", p.target_epsilon}});
  if (!p.noise_multiplier)
    throw DataError(cat(where,
                        ": noise_multiplier: found a number; the run's configuration says auto, and a run keeps its "
                        "number: put the run's own file back"));
  require_same(terms(ledger.method), terms(method_of(config, scheme.lengths)));
}

}  // namespace tsdp::mechanism
