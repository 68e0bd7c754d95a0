// What settings cannot be combined with.
#include <algorithm>

#include "base/single_precision.h"
#include "options.h"
#include "privacy/matrix/correlated_noise.h"
#include "settings/setup.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/data/dataset.h"

namespace tsdp::detail {
namespace {

/// The batch size is stated only once.
void check_batch_size(const std::string& where, const Config& c) {
  const auto& s = c.sampling;
  const bool whole_series = c.privacy.relation == privacy::Relation::series;
  const auto in_place = [&](const char* key, const auto& value) {
    if (!value) return;
    if (!whole_series)
      throw UsageError(cat(where, key, ": found ", *value, " with privacy.relation ", name(c.privacy.relation),
                           "; expected sampling.batch_size, or privacy.relation series"));
    if (s.batch_size || s.auto_batch_size)
      throw UsageError(cat(where, key, ": found ", *value, " beside sampling.batch_size ",
                           s.batch_size ? cat(*s.batch_size) : std::string("auto"),
                           "; expected one of them (null for the other)"));
  };
  in_place("sampling.batches", s.batches);
  in_place("sampling.rate", s.rate);
  if (s.batches && s.rate)
    throw UsageError(cat(where, "sampling.rate: found ", *s.rate, " beside sampling.batches ", *s.batches,
                         "; expected one of them"));
  if (s.rate && s.top_level != privacy::TopLevel::poisson && s.top_level != privacy::TopLevel::cyclic_poisson)
    throw UsageError(cat(where, "sampling.rate: found ", *s.rate, " with sampling.top_level ",
                         s.auto_top_level ? "auto" : name(s.top_level),
                         "; expected poisson, cyclic_poisson, or sampling.batches"));
  if (!s.batch_size && !s.auto_batch_size && !s.batches && !s.rate)
    throw UsageError(cat(where, "sampling.batch_size: not given; expected an integer from 1 to 1000000000, or auto",
                         whole_series ? ", or sampling.batches" : ""));
  if (s.batch_size && s.subsequences_per_sequence > *s.batch_size)
    throw UsageError(cat(where, "sampling.subsequences_per_sequence: found ", s.subsequences_per_sequence,
                         "; expected at most sampling.batch_size (", *s.batch_size, ")"));
}

/// Noise found by sampling is correlated, in bins drawn once.
void check_sampled_noise(const std::string& where, const Config& c) {
  const auto& p = c.privacy;
  if (!p.noise_sampled) return;
  const auto found = cat(where, "privacy.noise.sampled: found ", *p.noise_sampled);
  if (*p.noise_sampled != "auto") {
    try {
      static_cast<void>(SecretKey::from_hex(*p.noise_sampled));
    } catch (const DataError&) {
      throw UsageError(cat(found, "; expected null, auto, or the key of a test, 64 hexadecimal digits"));
    }
  }
  if (p.noise_multiplier.has_value() == (*p.noise_sampled == "auto"))
    throw UsageError(p.noise_multiplier ? cat(found, " beside privacy.noise_multiplier ", *p.noise_multiplier,
                                              "; expected auto for both, or the key of the test that this noise passed")
                                        : cat(found, " without the noise that passed its test; expected auto"));
  if (!p.enabled || p.relation != privacy::Relation::series || c.sampling.auto_top_level ||
      c.sampling.top_level != privacy::TopLevel::balls_in_bins || c.sampling.redraw != privacy::Redraw::once ||
      !p.noise_mechanism || *p.noise_mechanism == privacy::StrategyKind::identity)
    throw UsageError(cat(found,
                         "; it is for privacy.relation series with sampling.top_level balls_in_bins, sampling.redraw "
                         "once and a privacy.noise.mechanism by name other than identity; expected null elsewhere"));
}

/// Batches of whole series have a largest size where coins or bins draw them.
void check_largest_batch(const std::string& where, const Config& c) {
  const auto& s = c.sampling;
  if (!s.largest_batch && !s.auto_largest_batch) return;
  const auto found =
      cat(where, "sampling.largest_batch: found ", s.largest_batch ? cat(*s.largest_batch) : std::string("auto"));
  if (c.privacy.relation != privacy::Relation::series)
    throw UsageError(
        cat(found, " with privacy.relation ", name(c.privacy.relation), "; expected null, or privacy.relation series"));
  if (!s.auto_top_level && s.top_level != privacy::TopLevel::poisson &&
      s.top_level != privacy::TopLevel::cyclic_poisson && s.top_level != privacy::TopLevel::balls_in_bins)
    throw UsageError(cat(found, " with sampling.top_level ", name(s.top_level),
                         ", whose batches have one size; expected null, or poisson, cyclic_poisson or balls_in_bins"));
  if (c.privacy.noise_sampled)
    throw UsageError(cat(found, " beside privacy.noise.sampled ", *c.privacy.noise_sampled,
                         ", whose test spends all of delta; expected null for one of them"));
}

/// A mechanism of correlated noise has its coefficients, and goes with the sampling.
void check_noise_mechanism(const std::string& where, const Config& c) {
  const auto& s = c.sampling;
  const bool whole_series = c.privacy.relation == privacy::Relation::series;
  const bool of_file = c.privacy.noise_mechanism == privacy::StrategyKind::file;
  if (of_file && !c.privacy.noise_coefficients)
    throw UsageError(
        cat(where, "privacy.noise.coefficients: not given; expected a file, with privacy.noise.mechanism file"));
  if (!of_file && c.privacy.noise_coefficients)
    throw UsageError(cat(where, "privacy.noise.coefficients: found ", *c.privacy.noise_coefficients,
                         " without privacy.noise.mechanism file; expected null"));
  if (s.auto_top_level && c.privacy.enabled && c.privacy.relation == privacy::Relation::series) {
    if (c.privacy.noise_multiplier)
      throw UsageError(cat(where, "sampling.top_level: found auto beside privacy.noise_multiplier ",
                           *c.privacy.noise_multiplier,
                           "; expected auto for both, as batches are chosen with their noise"));
    if (c.privacy.noise_mechanism && *c.privacy.noise_mechanism != privacy::StrategyKind::identity)
      throw UsageError(cat(where, "sampling.top_level: found auto beside privacy.noise.mechanism ",
                           name(*c.privacy.noise_mechanism), "; expected auto or identity, or a top level by name"));
    return;
  }
  if (c.privacy.enabled && !c.privacy.noise_mechanism && c.privacy.noise_multiplier && whole_series &&
      (s.top_level == privacy::TopLevel::cyclic_poisson || privacy::searches_correlated_noise(s.top_level, s.redraw)))
    throw UsageError(cat(where, "privacy.noise.mechanism: found auto beside privacy.noise_multiplier ",
                         *c.privacy.noise_multiplier,
                         "; expected auto for both, as the mechanism is chosen with its noise"));
  if (c.privacy.enabled && c.privacy.noise_mechanism && *c.privacy.noise_mechanism != privacy::StrategyKind::identity) {
    const auto mechanism = name(*c.privacy.noise_mechanism);
    if (!whole_series)
      throw PrivacyError(cat(where, "privacy.noise.mechanism: found ", mechanism, " with privacy.relation ",
                             name(c.privacy.relation),
                             ", which is not implemented; expected privacy.relation series with sampling.top_level "
                             "balls_in_bins, or identity"));
    using Kind = privacy::StrategyKind;
    const auto kind = *c.privacy.noise_mechanism;
    if (s.top_level == privacy::TopLevel::cyclic_poisson) {
      if (kind != Kind::bsr && kind != Kind::band_mf && kind != Kind::file)
        throw PrivacyError(
            cat(where, "privacy.noise.mechanism: found ", mechanism,
                " with sampling.top_level cyclic_poisson, whose matrix is not banded, so that no theorem "
                "covers it; expected bsr, band_mf, file or identity"));
    } else if (!privacy::covers_correlated_noise(s.top_level))
      throw PrivacyError(
          cat(where, "privacy.noise.mechanism: found ", mechanism, " with sampling.top_level ", name(s.top_level),
              s.top_level == privacy::TopLevel::poisson ? ", which is not implemented; expected cyclic_poisson, "
                                                        : ", for which no theorem is known; expected ",
              "balls_in_bins, deterministic or shuffled"));
  }
}

/// Options about values of a series do not go with whole series.
void check_no_values(const std::string& where, const Config& c) {
  const auto of_values = [&](const char* key, const std::string& found, const char* expected) {
    throw UsageError(cat(where, key, ": found ", found,
                         " with privacy.relation series, which is about whole series and not their values; expected ",
                         expected));
  };
  if (c.privacy.w != 1) of_values("privacy.w", cat(c.privacy.w), "1");
  if (c.privacy.v) of_values("privacy.v", cat(*c.privacy.v), "null");
  if (c.augmentation.context_noise > 0.0)
    of_values("augmentation.context_noise", cat(c.augmentation.context_noise), "0");
  if (c.augmentation.forecast_noise > 0.0)
    of_values("augmentation.forecast_noise", cat(c.augmentation.forecast_noise), "0");
}

/// Covariates as a part of the record: of every step those of its value. Theorems that bound the size of a change do
/// not know how far a covariate may change.
void check_private_covariates(const std::string& where, const Config& c) {
  if (!c.dataset.protects_covariates) return;
  const auto refuse_if = [&](bool found, const std::string& what) {
    if (found) throw UsageError(cat(where, "dataset.covariates.private: found true ", what));
  };
  refuse_if(!c.dataset.covariates.has_value(), "without dataset.covariates.file; expected the file, too");
  refuse_if(c.privacy.v.has_value(),
            "with privacy.v, a bound for the change of a value, which says nothing of covariates; expected privacy.v "
            "null");
  refuse_if(c.augmentation.context_noise > 0.0 || c.augmentation.forecast_noise > 0.0,
            "with noise on the data, of which the covariates have none; expected augmentation of 0");
}

void check_sampling(const std::string& where, const Config& c) {
  check_batch_size(where, c);
  check_noise_mechanism(where, c);
  check_sampled_noise(where, c);
  check_largest_batch(where, c);
  const auto& s = c.sampling;
  const bool whole_series = c.privacy.relation == privacy::Relation::series;
  if (s.reshuffle == privacy::Reshuffle::once && s.top_level != privacy::TopLevel::shuffled)
    throw UsageError(cat(where, "sampling.reshuffle: found once with sampling.top_level ", name(s.top_level),
                         "; expected shuffled"));
  if (s.redraw == privacy::Redraw::every_epoch && s.top_level != privacy::TopLevel::balls_in_bins)
    throw UsageError(cat(where, "sampling.redraw: found every_epoch with sampling.top_level ", name(s.top_level),
                         "; expected balls_in_bins"));
  if ((s.top_level == privacy::TopLevel::balls_in_bins || s.top_level == privacy::TopLevel::cyclic_poisson) &&
      !whole_series)
    throw PrivacyError(
        cat(where, "sampling.top_level: found ", name(s.top_level), " with privacy.relation ", name(c.privacy.relation),
            ", which no theorem covers; expected privacy.relation series, or shuffled, deterministic, wor or poisson"));
  if (whole_series) check_no_values(where, c);
}

/// What series in several files, each of which one rank reads, cannot be combined with.
void check_ranks(const std::string& where, const Config& c) {
  const auto& path = c.dataset.path;
  if (!c.dataset.has_ranks()) return;
  const auto refuse_if = [&](bool found, const std::string& key, const std::string& what) {
    if (found) throw UsageError(cat(where, key, " with dataset.path ", path, ", whose files", what));
  };
  refuse_if(c.dataset.is_synthetic(), "dataset.format: found synthetic",
            " are none: expected the name of a family as the path");
  refuse_if(c.dataset.has_owners(), "dataset.owner: found a file or column",
            " different ranks read, so that nobody sees which series have one owner: expected null");
  refuse_if(c.dataset.value_columns.size() > 1, "dataset.columns.value: found several columns",
            " have one variable each: not implemented; expected one column");
  refuse_if(c.augmentation.context_noise > 0.0 || c.augmentation.forecast_noise > 0.0,
            "augmentation: found noise on the data", " are trained on as they are: expected 0");
  refuse_if(c.training.memory_mb.has_value(), "training.memory_mb: found a bound",
            " are worked on in pieces that depend on nothing but the batch: expected null");
  for (const auto& candidate : c.model.candidates)
    refuse_if(external_name(candidate).has_value(), cat("model.candidates: found ", candidate),
              " no single rank knows all series of: expected candidates that are no files");
}

/// What series of several variables cannot be combined with.
void check_variables(const std::string& where, const Config& c) {
  const auto& columns = c.dataset.value_columns;
  if (columns.size() < 2) return;
  const auto refuse_if = [&](bool found, const std::string& key, const std::string& expected) {
    if (found)
      throw UsageError(cat(where, key, " with the ", columns.size(), " variables of dataset.columns.value (",
                           join(columns, ", "), "), which is not implemented; expected ", expected));
  };
  refuse_if(c.dataset.is_synthetic(), "dataset.format: found synthetic, whose series have one variable,", "null");
  refuse_if(c.dataset.has_owners(), "dataset.owner: found a file or column", "null");
  refuse_if(c.privacy.v.has_value(), "privacy.v: found a bound", "null");
  refuse_if(c.augmentation.context_noise > 0.0 || c.augmentation.forecast_noise > 0.0,
            "augmentation: found noise on the data", "0");
}

}  // namespace

void check_trained_mixture(const std::string& where, const Config& c) {
  const auto refuse = [&](const auto&... parts) {
    throw UsageError(cat(where, "training.trainable: found mixture with ", parts...));
  };
  const auto* model = find_model(c.model.name);
  const bool reads_lags = model != nullptr && model->reads_lags;
  if (reads_lags || c.model.sampled_forecasts)
    refuse(reads_lags ? cat("model.name ", c.model.name) : std::string("model.sampled_forecasts"),
           ", whose forecasts are samples; expected a model whose distribution is known at each step");
  if (c.model.candidates.empty() && !c.model.auto_candidates) refuse("no model.candidates; expected some, or auto");
  if (std::any_of(c.model.candidates.begin(), c.model.candidates.end(),
                  [](const auto& candidate) { return external_name(candidate).has_value(); }))
    refuse(
        "forecasts of other programs in model.candidates, which are not known of every window of the past; "
        "expected others");
  if (c.dataset.covariates)
    refuse("dataset.covariates.file ", *c.dataset.covariates,
           ", which the windows of the past are not told; not implemented: expected null");
  if (c.dataset.path.find(rank_in_path) != std::string::npos)
    refuse("dataset.path ", c.dataset.path, ", whose files several ranks may read; not implemented: expected one file");
}

void check_together(const std::string& where, const Config& c) {
  check_sampling(where, c);
  if (c.dataset.format == "lstnet" && !c.dataset.start)
    throw UsageError(cat(
        where, "dataset.start: not given; an lstnet file has no time stamps; expected the moment of its first row"));
  check_ranks(where, c);
  check_variables(where, c);
  // As the model has them: in single precision.
  if (c.dataset.lower_bound && c.dataset.upper_bound &&
      !(bound_inwards(*c.dataset.lower_bound, true) < bound_inwards(*c.dataset.upper_bound, false)))
    throw UsageError(cat(where, "dataset.lower_bound: found ", exact(*c.dataset.lower_bound),
                         " with dataset.upper_bound ", exact(*c.dataset.upper_bound),
                         "; expected a number below it, in single precision, too"));
  const auto* model = find_model(c.model.name);
  if (c.dataset.covariates && (model == nullptr || !model->reads_covariates))
    throw UsageError(cat(where, "dataset.covariates.file: found ", *c.dataset.covariates, "; ", c.model.name,
                         " reads no covariates: expected null, or another model"));
  if (c.dataset.covariates && c.dataset.is_synthetic())
    throw UsageError(cat(where, "dataset.covariates.file: found ", *c.dataset.covariates,
                         " with dataset.format synthetic, whose series know of none; expected null"));
  if (c.dataset.has_owners() && c.privacy.relation != privacy::Relation::series)
    throw UsageError(cat(where, "dataset.owner: found a file or column with privacy.relation ",
                         name(c.privacy.relation),
                         "; expected privacy.relation series, where all series of an owner are one record"));
  if (c.dataset.has_owners() && c.dataset.is_synthetic())
    throw UsageError(cat(where, "dataset.owner: found a file or column; synthetic series are nobody's: expected null"));
  check_private_covariates(where, c);
  if (!c.dataset.covariates && !c.dataset.covariate_columns.empty())
    throw UsageError(cat(where, "dataset.covariates.columns: found ", join(c.dataset.covariate_columns, ", "),
                         " without dataset.covariates.file; expected the file, too"));
  const bool reads_lags = model != nullptr && model->reads_lags;
  if (reads_lags && c.model.lags.empty())
    throw UsageError(cat(where, "model.lags: not given; ", c.model.name,
                         " reads past values through lags alone; expected auto or a list, such as [1, 2, 3, 4, 5, 6, "
                         "7, 23, 24, 25] for hourly data"));
  if (!reads_lags && !c.model.lags.empty())
    throw UsageError(cat(where, "model.lags: found ", c.model.lags.size(), " lags; ", c.model.name,
                         " reads none; expected an empty list"));
  if (c.model.prior != PriorKind::none && (model == nullptr || !model->has_prior))
    throw UsageError(cat(where, "model.prior: found ", c.model.prior ? name(*c.model.prior) : "auto", "; ",
                         c.model.name, " has no prior; expected none"));
  if (c.model.missing_values == "zero" && c.model.prior != PriorKind::none)
    throw UsageError(cat(where, "model.missing_values: found zero with model.prior ",
                         c.model.prior ? name(*c.model.prior) : "auto", ", which knows no zeros; expected mean"));
  if (c.model.prior == PriorKind::seasonal_naive) {
    const auto seen = longest_season(c);
    if (c.dataset.season_length < 2)
      throw UsageError(cat(where, "model.prior: found seasonal_naive with dataset.season_length ",
                           c.dataset.season_length, "; expected a season of 2 or more, or last_value"));
    if (c.dataset.season_length > seen)
      throw UsageError(cat(where, "model.prior: found seasonal_naive with dataset.season_length ",
                           c.dataset.season_length, " and a model that sees ", seen,
                           reads_lags ? " steps by its lags" : " steps", "; expected ",
                           reads_lags ? "a lag" : "model.context_length", " of at least the season, or last_value"));
  }
  check_candidates(where, c.model.candidates);
  if (c.training.trainable == Trainable::mixture) check_trained_mixture(where, c);
  if (c.privacy.enabled && c.optimizer.gradient_norm_bound)
    throw UsageError(cat(where, "optimizer.gradient_norm_bound: found ", *c.optimizer.gradient_norm_bound,
                         " in a private run, where privacy.clip_norm bounds every window's gradient; expected null"));
  if (c.privacy.enabled && c.optimizer.plateau_looks)
    throw UsageError(cat(where, "optimizer.plateau_looks: found ", *c.optimizer.plateau_looks,
                         " in a private run, where no step may depend on the training loss; expected null"));
  if (c.privacy.enabled && c.training.checkpoint == ExportedWeights::best)
    throw PrivacyError(cat(where,
                           "training.checkpoint: found best with privacy.enabled; weights chosen by losses without "
                           "noise are covered by no theorem: set training.checkpoint to last"));
}

}  // namespace tsdp::detail
