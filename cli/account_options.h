// The options of tsdp-account, and what they ask about.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "privacy/theorems/series_law.h"
#include "tsdp/privacy/accountant/accountant.h"
#include "tsdp/privacy/theorems/theorems.h"
#include "tsdp/settings/config.h"

namespace tsdp::cli {

/// The mechanism, from a configuration or from options.
struct MechanismOptions {
  std::optional<std::string> config;
  std::vector<std::string> set;
  std::optional<std::int64_t> num_sequences, sequence_length, context_length, forecast_length, batch_size;
  std::optional<std::int64_t> num_records, window_length;
  std::int64_t lags_length = 0;
  std::int64_t subsequences = 1;
  std::optional<std::string> top_level, bottom_level;
  std::optional<double> noise_multiplier, context_noise, forecast_noise;
  std::string relation = "event";
  std::int64_t w = 1;
  std::optional<double> v;
  std::optional<std::string> theorem;
  std::optional<std::string> composition;
  // Whole series as records.
  std::optional<std::int64_t> batches;
  std::optional<double> sampling_rate;
  std::optional<std::string> reshuffle;
  std::optional<std::string> redraw;
  std::optional<std::int64_t> largest_batch;
  std::optional<std::string> direction;
  // Correlated noise.
  std::optional<std::string> mechanism, coefficients, method;
  std::optional<std::int64_t> bands, buffers;
  bool sampled = false;
  // Estimates.
  std::optional<std::int64_t> samples, seed;
};

/// The question about it.
struct QueryOptions {
  std::optional<double> epsilon, delta;
  std::optional<std::string> steps, epochs, epsilons;  // read as numbers when they are used
  double precision = privacy::default_precision;
  std::optional<std::string> csv, plot;
};

/// Adds the options of these names to a command and, if it asks about a mechanism, all options that describe one.
void add_options(CLI::App& command, MechanismOptions& mechanism, QueryOptions& query, bool about_a_mechanism,
                 const std::vector<std::string>& names);

/// What is asked about: the mechanism for every noise multiplier, and the multiplier given.
struct Subject {
  std::function<privacy::AppliedTheorem(double)> mechanism_at;
  std::optional<double> noise_multiplier;
  std::optional<Config> config;
  /// For whole series: the law, and "both", "remove" or "add". None for other relations.
  std::optional<privacy::SeriesLaw> series = {};
  std::string direction = {};
  std::shared_ptr<const privacy::Strategy> strategy = nullptr;  ///< of correlated noise
  bool sampled = false;                                         ///< σ is to be found by sampling
  /// None: `auto` in a configuration, which follows the noise.
  std::optional<privacy::StepComposition> composition = privacy::StepComposition::symmetrised;
  /// `mechanism_at` with its uses composed as named.
  std::function<privacy::AppliedTheorem(double, privacy::StepComposition)> composed_at = {};

  /// The mechanism with the given noise multiplier; UsageError without one.
  [[nodiscard]] privacy::AppliedTheorem mechanism() const;
};
/// Throws UsageError for options that are missing, out of range or not used by the named theorem.
[[nodiscard]] Subject subject_of(const CLI::App& app, const MechanismOptions& options);

/// Methods of --method whose answers are estimates, not ends of a bracket (account_estimate.h).
inline constexpr const char* monte_carlo_method = "monte_carlo";
inline constexpr const char* published_method = "estimate";
[[nodiscard]] bool asks_for_estimate(const MechanismOptions& options);

/// The law of --relation series, from --top-level, --batches, --sampling-rate, --reshuffle and --redraw. Throws
/// UsageError for others.
[[nodiscard]] privacy::SeriesLaw series_law_of(const CLI::App& app, const MechanismOptions& options);

/// Puts --top-level, --reshuffle and --redraw, where they are given.
void put_names(const MechanismOptions& options, privacy::SeriesLaw& into);

/// The law in words, and as JSON: "top_level", and what goes with it.
[[nodiscard]] std::string shown_law(const privacy::SeriesLaw& law);
void put_largest_batch(nlohmann::ordered_json& into, const privacy::SeriesLaw& law);
void put_law(nlohmann::ordered_json& into, const privacy::SeriesLaw& law);

/// The strategy matrix of --mechanism, --bands, --buffers and --coefficients for `epochs` epochs of `bins` steps; none
/// for identity without --method. Throws UsageError for options that the mechanism does not use.
[[nodiscard]] std::shared_ptr<const privacy::Strategy> strategy_of(const MechanismOptions& options, std::int64_t bins,
                                                                   std::int64_t epochs);

/// A whole-series law with the matrix of correlated (or independent) noise, and the direction asked about, for k =
/// --epochs epochs.
struct PlannedSeries {
  privacy::SeriesLaw law;
  std::optional<privacy::Direction> direction;  ///< none: both
  std::shared_ptr<const privacy::Strategy> strategy;
  std::int64_t epochs = 1;
};
[[nodiscard]] PlannedSeries planned_series_of(const CLI::App& app, const MechanismOptions& options);

[[nodiscard]] double needed_delta(const QueryOptions& query, const Subject& subject);
[[nodiscard]] double needed_epsilon(const QueryOptions& query, const Subject& subject);
/// Steps asked about, from --steps or --epochs; none if neither is given.
[[nodiscard]] std::optional<std::uint64_t> steps_of(const QueryOptions& query,
                                                    const privacy::AppliedTheorem& mechanism);
[[nodiscard]] std::uint64_t needed_steps(const QueryOptions& query, const privacy::AppliedTheorem& mechanism);
/// The numbers of --epsilons; none if it is not given.
[[nodiscard]] std::vector<double> epsilons_of(const QueryOptions& query);
/// --precision within its range.
[[nodiscard]] double precision_of(const QueryOptions& query);

}  // namespace tsdp::cli
