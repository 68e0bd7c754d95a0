// The configuration of a run, and the one table of options behind it: the YAML reader, range checks, --set, --help,
// the resolved configuration of a run and docs/options.md all come from that table.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tsdp/base/names.h"
#include "tsdp/mechanism/prior.h"
#include "tsdp/privacy/matrix/strategy_search.h"
#include "tsdp/privacy/terms/terms.h"
#include "tsdp/settings/mixture.h"

namespace tsdp {

/// Which weights are exported: those after the last step or, without privacy, those of least loss.
enum class ExportedWeights {
  last,
  best
};
constexpr Names<ExportedWeights, 2> names_of(ExportedWeights) {
  return {{{ExportedWeights::last, "last"}, {ExportedWeights::best, "best"}}};
}

/// Which parameters training changes. Noise grows with their number; the others stay those of the start.
enum class Trainable {
  all,
  head,  ///< biases, layer norms and the head, which makes a distribution of hidden units
  mixture  ///< no weights of the network: how its forecasts are mixed with the candidates
};
constexpr Names<Trainable, 3> names_of(Trainable) {
  return {{{Trainable::all, "all"}, {Trainable::head, "head"}, {Trainable::mixture, "mixture"}}};
}

/// What stands in dataset.path for the number of a file, if the series lie in several.
inline constexpr std::string_view rank_in_path = "{rank}";
inline constexpr std::int64_t most_files = 4096;

/// Defaults are those of the option table's documentation; options without a default must be given.
struct Config {
  struct Dataset {
    std::string path;
    std::optional<std::int64_t> files;   // that {rank} stands for; none: `auto`, until prepare_data counts them
    std::string format = "auto";     // taken from the file
    std::string frequency = "auto";  // taken from the file
    std::optional<std::string> start;
    std::optional<std::string> item_column, time_column;  // for csv and csv_long; none: usual names
    std::vector<std::string> value_columns;  // for csv_long; none: the usual name; several: each series' variables
    std::string duplicates = "error";
    std::string gaps = "auto";
    std::string short_series = "error";
    std::optional<std::string> covariates;       // none: the model is given the calendar only
    std::vector<std::string> covariate_columns;  // none: all of the file's, until prepare_data names them
    bool covariates_change = true;               // from step to step; not if each series has one row for all of them
    bool protects_covariates = false;            // they are part of their series' record; otherwise they are public
    std::optional<std::string> owner_file, owner_column;  // neither: no owners are known
    std::int64_t prediction_length = 0;
    std::int64_t season_length = 0;
    std::string split = "lstnet";
    std::int64_t test_windows = 1;
    std::optional<std::int64_t> validation_length;
    std::optional<double> lower_bound, upper_bound;
    std::int64_t synthetic_series = 300;  // for format synthetic
    std::int64_t synthetic_length = 3000;
    std::int64_t synthetic_seed = 1;

    [[nodiscard]] bool is_synthetic() const { return format == "synthetic"; }
    /// Whether the series lie in several files, each of which one rank reads.
    [[nodiscard]] bool has_ranks() const { return path.find(rank_in_path) != std::string::npos; }
    /// The path of one of these files.
    [[nodiscard]] std::string path_of(std::int64_t file) const;
    [[nodiscard]] bool has_owners() const { return owner_file || owner_column; }
    /// V of each series.
    [[nodiscard]] std::int64_t variable_count() const {
      return value_columns.empty() ? 1 : static_cast<std::int64_t>(value_columns.size());
    }
  } dataset;
  struct Model {
    std::string name = "simple_ff";
    std::optional<std::int64_t> context_length;  // none: `auto`
    std::vector<std::int64_t> lags;
    bool auto_lags = false;    // until the whole configuration is read
    bool chosen_lags = false;  // they were `auto`
    double default_scale = 0.0;
    std::string missing_values = "mean";
    std::int64_t width_factor = 1;
    std::optional<std::int64_t> width;  // none: `auto`
    bool sampled_forecasts = false;
    std::optional<PriorKind> prior = PriorKind::none;  // none: `auto`
    std::string start = "fresh";                       // or pretrained, auto, a file
    std::vector<std::string> candidates = {};          // beside the network
    bool auto_candidates = true;

    [[nodiscard]] bool starts_from_file() const { return start != "fresh" && start != "pretrained" && start != "auto"; }
  } model;
  struct Sampling {
    tsdp::privacy::TopLevel top_level = tsdp::privacy::TopLevel::without_replacement;
    tsdp::privacy::BottomLevel bottom_level = tsdp::privacy::BottomLevel::with_replacement;
    std::optional<std::int64_t> batch_size;  // none: batches or rate, or `auto`
    bool auto_batch_size = false;
    bool auto_top_level = false;  ///< `top_level` and `redraw` are chosen when the run is settled
    std::int64_t subsequences_per_sequence = 1;
    tsdp::privacy::Reshuffle reshuffle = tsdp::privacy::Reshuffle::every_epoch;
    tsdp::privacy::Redraw redraw = tsdp::privacy::Redraw::once;
    std::optional<std::int64_t> batches;
    std::optional<double> rate;
    std::optional<std::int64_t> largest_batch;
    bool auto_largest_batch = false;
  } sampling;
  struct Augmentation {
    double context_noise = 0.0;
    double forecast_noise = 0.0;
  } augmentation;
  struct Privacy {
    bool enabled = true;
    tsdp::privacy::Relation relation = tsdp::privacy::Relation::event;
    std::int64_t w = 1;
    std::optional<double> v;
    std::optional<double> noise_multiplier;  // none: `auto`
    std::optional<tsdp::privacy::StrategyKind> noise_mechanism = tsdp::privacy::StrategyKind::identity;  // none: `auto`
    std::int64_t noise_bands = 4;
    std::int64_t noise_buffers = 2;
    std::optional<std::string> noise_sampled;  // `auto`, or the key of a test by sampling
    std::optional<std::string> noise_coefficients;
    /// The contents of the noise_coefficients file, read with the configuration.
    std::optional<tsdp::privacy::NoiseRecursion> noise_recursion;

    [[nodiscard]] tsdp::privacy::WantedStrategy wanted_strategy(tsdp::privacy::StrategyKind kind) const {
      return {kind, noise_bands, noise_buffers, noise_recursion, noise_coefficients.value_or("")};
    }
    double clip_norm = 1e-4;
    tsdp::privacy::ClippingKind clipping = tsdp::privacy::ClippingKind::flat;
    double target_epsilon = 1.0;
    std::optional<tsdp::privacy::StepComposition> composition;  // none: `auto`
    double delta = 1e-7;
  } privacy;
  struct Optimizer {
    std::string name = "adam";
    std::optional<double> learning_rate = 1e-3;  // none: `auto`
    double weight_decay = 1e-8;
    std::optional<double> gradient_norm_bound;
    std::optional<std::int64_t> plateau_looks;
  } optimizer;
  struct Training {
    std::optional<std::int64_t> max_epochs = 1000;  // none: `auto`
    std::int64_t seed = 1;
    bool reproducible = false;
    std::int64_t validate_every = 50;
    std::optional<Trainable> trainable;  // none: `auto`
    ExportedWeights checkpoint = ExportedWeights::last;
    double checkpoint_seconds = 10.0;
    std::optional<std::int64_t> memory_mb;
    bool mask_sums = false;
  } training;
};

/// Reads a configuration file, then applies the `key.path=value` assignments.
///
/// Throws UsageError with `FILE:LINE: key: …` (or `--set key: …`) for: an unknown key (with the nearest known one), a
/// duplicate key, a wrong type, a value out of range, a missing required key, broken YAML; and for values that
/// contradict each other. A file that cannot be read is a UsageError too.
[[nodiscard]] Config read_config(const std::filesystem::path& file, const std::vector<std::string>& assignments = {});

/// The text of a YAML file. Throws UsageError with `FILE: …` or `FILE:LINE: …` if it cannot be read, holds more than 4
/// MiB (no configuration does, and parsing YAML takes a hundred times that) or more than one document.
[[nodiscard]] std::string read_yaml_text(const std::filesystem::path& file);

/// Checks a single `section.name=value`: that the option exists, and the type and range of the value (YAML text).
/// Throws UsageError that begins with `where`.
void check_setting(const std::string& where, const std::string& key, const std::string& value);

/// The prior of a configuration's model, from public facts alone: `auto` is seasonal_naive if a season of 2 or more
/// steps is stated and the model sees a whole one, else last_value.
[[nodiscard]] Prior prior_of(const Config& config);

/// What a configuration's forecasts are mixed with, from public facts alone: of each candidate several, which look back
/// over different numbers of seasons. `auto` is all of them with a prior, and none without one, as in GluonTS.
[[nodiscard]] Mixture mixture_of(const Config& config);

/// The candidates that a model needs no file for, as model.candidates: auto has them with a prior.
[[nodiscard]] std::vector<std::string> built_in_candidates(const Config& config);

/// Hidden units of a configuration's model; 0: the standard ones times model.width_factor.
[[nodiscard]] std::int64_t width_of(const Config& config);

/// Every option with its value, as YAML that `read_config` reads back to the same configuration.
[[nodiscard]] std::string config_text(const Config& config);

/// The reference page of all options, as Markdown: docs/options.md is this text.
[[nodiscard]] std::string options_reference();

/// The table as plain text for --help.
[[nodiscard]] std::string options_help();

/// Finds the file `path` of option `key`: as given if absolute, else in the first of the working directory, the
/// configuration file's folder and the project's root that holds it (for a run's own config.yaml, the working directory
/// is last). Throws DataError naming the places searched, with
/// `hint`.
[[nodiscard]] std::filesystem::path find_file(const std::string& key, const std::string& path,
                                              const std::filesystem::path& config_file, const std::string& hint = "");
/// find_file for dataset.path.
[[nodiscard]] std::filesystem::path find_data_file(const std::string& path, const std::filesystem::path& config_file);
/// Whether there is one.
[[nodiscard]] bool is_data_file(const std::string& path, const std::filesystem::path& config_file);

/// find_file for a file that a run copies into its own folder: that beside the configuration comes first, whatever the
/// working directory holds.
[[nodiscard]] std::filesystem::path find_copied_file(const std::string& key, const std::string& path,
                                                     const std::filesystem::path& config_file);

/// The files of the series of `config`: of a path with {rank} those that are here. Throws DataError if there is none.
[[nodiscard]] std::vector<std::filesystem::path> data_files(const Config& config,
                                                            const std::filesystem::path& config_file);

/// A setting whose value names a file that is read.
struct FileSetting {
  std::string key;
  std::string* value;
  bool copied = false;  ///< find_copied_file finds it

  /// Throws DataError if there is no such file.
  [[nodiscard]] std::filesystem::path find(const std::filesystem::path& config_file) const;
};
/// All of them in `config`, which they point into, but for dataset.path (data_files).
[[nodiscard]] std::vector<FileSetting> file_settings(Config& config);

/// Finds a configuration by name: as given or, if a relative name is not found that way, in these folders of the
/// project, in order. Throws UsageError naming the places searched.
[[nodiscard]] std::filesystem::path find_config_file(const std::filesystem::path& name,
                                                     const std::vector<std::string>& folders = {"configs"});

/// Root of the source tree or installation that the running program belongs to; empty if it cannot be determined.
[[nodiscard]] std::filesystem::path project_root();

/// What the configuration has to know about a forecaster; everything else is up to the forecaster.
struct ModelRules {
  std::string name;  ///< model.name
  bool reads_lags = false;  ///< whether model.lags must be given, or must be empty
  bool has_prior = false;  ///< whether it can begin as a naive forecast (model.prior)
  std::int64_t width_with_prior =
      0;  ///< hidden units to use with it, as noise grows with parameters; 0: the standard ones
  bool reads_covariates = false;  ///< whether it is given what is known of every step (dataset.covariates)
  bool joins_variables = false;  ///< whether it forecasts the variables of a series together (dataset.columns.value)

  bool operator==(const ModelRules&) const = default;
};

/// All forecasters, in the order in which they are offered, including those that a program links itself.
[[nodiscard]] const std::vector<ModelRules>& known_models();
/// The forecaster of that name; null if there is none.
[[nodiscard]] const ModelRules* find_model(const std::string& name);
/// How many variables of a series the model of `config` forecasts together.
[[nodiscard]] std::int64_t joined_variables(const Config& config);
/// Adds a forecaster. To be called when the program starts, before a configuration is read. Throws Error if the name is
/// taken.
void add_model(ModelRules rules);

}  // namespace tsdp
