#include "options.h"

#include <optional>
#include <type_traits>
#include <utility>

#include "data/covariates.h"
#include "tsdp/settings/config.h"

namespace tsdp::detail {

#define AT(member) [](Config& c) -> auto& { return c.member; }  // NOLINT(bugprone-macro-parentheses): a name

namespace {

template <class T>
constexpr bool is_optional_enum = false;
template <class T>
constexpr bool is_optional_enum<std::optional<T>> = std::is_enum_v<T>;

/// One of an enumeration's names, or of `choices` where the configuration keeps the text itself.
template <class At>
Choice choice(At at, std::vector<std::string> choices = {}) {
  using Value = std::remove_cvref_t<decltype(at(std::declval<Config&>()))>;
  Choice out;
  if constexpr (is_optional_enum<Value>) {
    // None is `auto`.
    using Enum = typename Value::value_type;
    out.choices = all_names<Enum>();
    out.choices.push_back("auto");
    out.get = [at](const Config& c) {
      const auto& value = at(const_cast<Config&>(c));
      return value ? std::string(name(*value)) : std::string("auto");
    };
    out.set = [at](Config& c, const std::string& text) {
      at(c) = text == "auto" ? Value() : Value(named<Enum>(text, "an option"));
    };
  } else if constexpr (std::is_enum_v<Value>) {
    out.choices = all_names<Value>();
    out.get = [at](const Config& c) { return std::string(name(at(const_cast<Config&>(c)))); };
    out.set = [at](Config& c, const std::string& text) { at(c) = named<Value>(text, "an option"); };
  } else {
    out.choices = std::move(choices);
    out.get = [at](const Config& c) { return at(const_cast<Config&>(c)); };
    out.set = [at](Config& c, const std::string& text) { at(c) = text; };
  }
  return out;
}

/// sampling.top_level, whose `auto` is kept apart.
Choice top_level_or_auto() {
  Choice out;
  out.choices = all_names<privacy::TopLevel>();
  out.choices.push_back("auto");
  out.get = [](const Config& c) {
    return c.sampling.auto_top_level ? std::string("auto") : std::string(name(c.sampling.top_level));
  };
  out.set = [](Config& c, const std::string& text) {
    c.sampling.auto_top_level = text == "auto";
    c.sampling.top_level = c.sampling.auto_top_level ? privacy::TopLevel::without_replacement
                                                     : named<privacy::TopLevel>(text, "an option");
  };
  return out;
}

std::vector<std::string> model_names() {
  std::vector<std::string> out;
  for (const auto& model : known_models()) out.push_back(model.name);
  return out;
}

}  // namespace

const std::vector<Option>& option_table() {
  constexpr std::int64_t many = 1'000'000'000;
  constexpr std::int64_t longest = 1'000'000;  // part of a window: no memory holds models of longer ones
  constexpr std::size_t most_lags = 1000;      // each adds an input to every step
  static const std::vector<Option> table = {
      {"dataset.path", true, Text{AT(dataset.path)},
       "File with the series; looked up from the working directory, the configuration's folder, the project's root. Of "
       "format synthetic the family: 10_minutes, hourly, daily, business_daily, weekly, monthly. {rank} in it stands "
       "for "
       "0, 1, …: the series lie in several files, each of which one rank reads (docs/distributed.md)."},
      {"dataset.files", false, OptionalInteger{AT(dataset.files), {1, most_files}, "auto", "auto"},
       "How many files {rank} in dataset.path stands for; not used without it. One fewer than ranks: rank 0 reads "
       "none. auto: as many as there are ranks; of one process, as many as are there."},
      {"dataset.format", false,
       choice(AT(dataset.format), {"auto", "lstnet", "tsf", "csv", "csv_long", "jsonl", "synthetic"}),
       "auto: by the file's name and header; lstnet: text, a row a time step, a column a series; tsf: Monash; csv: "
       "header and time stamps, a column a series; csv_long: a column each for names, times and values; jsonl: JSON "
       "Lines as GluonTS has them. All plain or gzip. synthetic: no file, but what tsdp-data generate makes of "
       "dataset.path and dataset.synthetic."},
      {"dataset.frequency", false, Text{AT(dataset.frequency)},
       "Calendar step, pandas-style: 10min, 1h, 1D, 1B, 1W; auto: as the file tells (its time stamps, the header of a "
       "tsf file)."},
      {"dataset.start", false, OptionalText{AT(dataset.start)},
       "Moment of the first row, where the file does not say it (lstnet): \"YYYY-MM-DD hh:mm\"."},
      {"dataset.columns.item", false, OptionalText{AT(dataset.item_column)},
       "Column of csv_long with the series' names; null: unique_id, item_id or series_id."},
      {"dataset.columns.time", false, OptionalText{AT(dataset.time_column)},
       "Column of csv or csv_long with the time stamps; null: in csv the first, in csv_long ds, timestamp, date, time "
       "or datetime."},
      {"dataset.columns.value", false, TextList{AT(dataset.value_columns), data::most_variables, {}, true},
       "Column of csv_long with the values; null: y, target or value. Given without a column of names, the file is one "
       "series. Several columns are the variables of each series: all that it has at a step is protected together."},
      {"dataset.duplicates", false, choice(AT(dataset.duplicates), {"error", "last", "mean"}),
       "Several values of one series at one time (csv, csv_long): an error, the last in the file, or their mean, which "
       "is then the value that the guarantee is about."},
      {"dataset.gaps", false, choice(AT(dataset.gaps), {"auto", "error", "missing"}),
       "Steps without a row (csv, csv_long): an error, or missing values; auto: an error in csv, missing in csv_long."},
      {"dataset.short_series", false, choice(AT(dataset.short_series), {"error", "drop", "pad"}),
       "Series too short for the split: an error; left out; or begun earlier, with missing values. Which they are "
       "follows from lengths alone."},
      {"dataset.covariates.file", false, OptionalText{AT(dataset.covariates)},
       "CSV file of what is known of every step, ahead of time too (holidays, prices, temperatures), near -1 to 1: "
       "time stamps in the first column and a column each, the same for all series; or with a column of series' names, "
       "of each series. They count as public."},
      {"dataset.covariates.columns", false, TextList{AT(dataset.covariate_columns), data::most_covariates},
       "Columns of that file that the model is told of; an empty list: all of them. A column of text is one covariate "
       "column=category for each category."},
      {"dataset.covariates.private", false, Flag{AT(dataset.protects_covariates)},
       "Whether the covariates of each series are protected like its values, instead of public."},
      {"dataset.owner.column", false, OptionalText{AT(dataset.owner_column)},
       "Column that names whose a series is, of dataset.owner.file or, without it, of a csv_long file of series: all "
       "series of one owner are one record. For privacy.relation series."},
      {"dataset.owner.file", false, OptionalText{AT(dataset.owner_file)},
       "CSV file with a row for each series: its owner in dataset.owner.column (null: `owner`), and its name in the "
       "other "
       "column, in unique_id, item_id or series_id, or in dataset.columns.item."},
      {"dataset.prediction_length", true, Integer{AT(dataset.prediction_length), {1, longest}},
       "Forecast length L_F, in steps."},
      {"dataset.season_length", true, Integer{AT(dataset.season_length), {1, many}},
       "Season of the seasonal-naive baseline and of MASE, in steps."},
      {"dataset.split", false, choice(AT(dataset.split), {"lstnet", "last"}),
       "lstnet: train on the first 80 %, test windows right after; last: test windows at the end."},
      {"dataset.test_windows", false, Integer{AT(dataset.test_windows), {1, many}},
       "Rolling test windows of each series."},
      {"dataset.validation_length", false,
       OptionalInteger{AT(dataset.validation_length), {0, many}, "5 * prediction_length"},
       "Values held out of training, at the end of its part of each series."},
      {"dataset.lower_bound", false, OptionalReal{AT(dataset.lower_bound), {-1e30, 1e30}, "null"},
       "What no value of any series is below, as is known without looking at the data (0 for a load): no forecast is "
       "below it either."},
      {"dataset.upper_bound", false, OptionalReal{AT(dataset.upper_bound), {-1e30, 1e30}, "null"},
       "The same from above (1 for a share)."},
      {"dataset.synthetic.series", false, Integer{AT(dataset.synthetic_series), {1, 1'000'000}},
       "Of format synthetic: how many series."},
      {"dataset.synthetic.length", false, Integer{AT(dataset.synthetic_length), {1, many}},
       "Of format synthetic: values of each series."},
      {"dataset.synthetic.seed", false,
       Integer{AT(dataset.synthetic_seed), {0, std::numeric_limits<std::int64_t>::max()}},
       "Of format synthetic: the seed of its values, which come from no real data."},
      {"model.name", false, choice(AT(model.name), model_names()), "The forecaster."},
      {"model.context_length", true, OptionalInteger{AT(model.context_length), {1, longest}, "required", "auto"},
       "Past steps that the model is given, L_C; auto: docs/choosing.md has the rule."},
      {"model.lags", false, IntegerList{AT(model.lags), AT(model.auto_lags), {1, longest}, most_lags},
       "Lags of the target that the model reads (deepar only, which needs some); they count into the accounted "
       "context: L_C + max(lag) - 1 past values. auto: 1 to 7, and dataset.season_length with the lags next to it (of "
       "a season of 24, of seven seasons); none for other models."},
      {"model.default_scale", false, Real{AT(model.default_scale), {0.0, 1e30}},
       "Scale of a window without any observed value (deepar, itransformer, dlinear); at least 1e-10 is taken."},
      {"model.missing_values", false, choice(AT(model.missing_values), {"mean", "zero"}),
       "How a model reads a past value that is missing or lies before its series: as the mean of the window's own "
       "observed context, or, without a prior, as zero, which is GluonTS's way and the zero padding of the paper "
       "(Algorithms 4 and 6)."},
      {"model.width_factor", false, Integer{AT(model.width_factor), {1, 1024}},
       "Multiple of the model's standard widths (hidden layers, LSTM, attention, feed-forward)."},
      {"model.width", false, OptionalInteger{AT(model.width), {1, 65536}, "auto", "auto"},
       "Hidden units of a step (simple_ff, dlinear), of the LSTM (deepar) or of a token (itransformer, a multiple of "
       "4). auto: the standard ones (64, 20, 40, 32) times width_factor; with a prior 16 for simple_ff and 4 for "
       "dlinear, which serve as well and take less noise."},
      {"model.sampled_forecasts", false, Flag{AT(model.sampled_forecasts)},
       "true: the exported model's quantiles and means come from 100 sample paths, as GluonTS has it for itransformer; "
       "deepar always forecasts so."},
      {"model.prior", false, choice(AT(model.prior)),
       "Naive forecast of the window's own that the model starts as, and learns the difference to: seasonal_naive "
       "(dataset.season_length back), last_value; none: as GluonTS has it, if model.missing_values is zero, too; auto: "
       "seasonal_naive where a season is stated that fits the context, else last_value."},
      {"model.start", false, Text{AT(model.start)},
       "Weights before the first step: fresh, drawn with the seed (with a prior, the prior itself); pretrained, those "
       "shipped for this model, frequency, context and prior; auto, pretrained where some fit that did no worse than "
       "their prior on every public set tried, else fresh; or a file that tsdp-train wrote (model.pt), whose origin "
       "the ledger then states."},
      {"model.candidates", false, TextList{AT(model.candidates), most_candidates, AT(model.auto_candidates)},
       "Public forecasts that the exported model mixes its network's with, by how each did on the last windows of the "
       "series' own past (docs/forecasting.md): start (the weights before training; in "
       "a private run, unless they were trained on data), seasonal_quantiles, moved_quantiles, seasonal_naive_bands, "
       "last_value_bands, seasonal_regression, covariate_quantiles (where there are covariates; auto: at most 16, "
       "which change), "
       "other_starts (networks of other kinds with the shipped weights that fit); weights of "
       "another network (NAME.safetensors); a file of forecasts that another program made (NAME.jsonl); or another "
       "exported model (NAME.pt). They cost no epsilon of this run. An empty list: the network alone; auto: all of "
       "them but files with a prior, none without one."},
      {"sampling.top_level", false, top_level_or_auto(),
       "How series are chosen: wor, a fresh sample without replacement each step; deterministic, in turn; shuffled, in "
       "turn, in a random order (costs what in turn does); poisson, each by its own coin in every step; "
       "cyclic_poisson, each by its own coin in every p-th step, p the bands of the noise; balls_in_bins, "
       "each in one bin, a bin a step (both with privacy.relation series only). auto: with "
       "privacy.relation series, and noise_multiplier and noise.mechanism auto, the batches and the noise of least "
       "total error at the target; else wor."},
      {"sampling.bottom_level", false, choice(AT(sampling.bottom_level)),
       "How windows are chosen inside a series: with replacement, or each by its own coin."},
      {"sampling.batch_size", false,
       IntegerNullOrAuto{
           AT(sampling.batch_size), AT(sampling.auto_batch_size), {1, many}, "required without batches or rate"},
       "Expected windows a step, Lambda: the divisor of every step (with privacy.relation series the expected number "
       "of series, Lambda / lambda, is); auto: lambda of every series, of at most 4096 series."},
      {"sampling.subsequences_per_sequence", false, Integer{AT(sampling.subsequences_per_sequence), {1, many}},
       "Expected windows of a chosen series, lambda; at most the batch size."},
      {"sampling.reshuffle", false, choice(AT(sampling.reshuffle)),
       "Of shuffled batches: every epoch has an order of its own, or all have the one that is drawn once for the run."},
      {"sampling.redraw", false, choice(AT(sampling.redraw)),
       "Of balls_in_bins: bins are drawn once for the run, or anew in every epoch, which costs less with independent "
       "noise and more with correlated noise."},
      {"sampling.batches", false, OptionalInteger{AT(sampling.batches), {1, many}, "null"},
       "Steps of an epoch, of balls_in_bins bins, in place of batch_size; with privacy.relation series only."},
      {"sampling.rate", false, OptionalReal{AT(sampling.rate), {0.0, 1.0, true}, "null"},
       "Probability with which poisson draws every series (cyclic_poisson: on average over steps), in place of "
       "batch_size; with privacy.relation series only."},
      {"sampling.largest_batch", false,
       IntegerNullOrAuto{AT(sampling.largest_batch), AT(sampling.auto_largest_batch), {1, many}, "null"},
       "Series (or owners) in a batch at most, where poisson, cyclic_poisson or balls_in_bins draw them: a batch with "
       "more is cut, which costs a share of delta, so that what a step needs is known beforehand. auto: a size with "
       "which that share is at most a hundredth. With privacy.relation series only."},
      {"augmentation.context_noise", false, Real{AT(augmentation.context_noise), {0.0}},
       "Standard deviation of noise on the context, in multiples of privacy.v."},
      {"augmentation.forecast_noise", false, Real{AT(augmentation.forecast_noise), {0.0}},
       "Standard deviation of noise on the forecast target, in multiples of privacy.v."},
      {"privacy.enabled", false, Flag{AT(privacy.enabled)},
       "false trains without clipping and noise, and without any privacy."},
      {"privacy.relation", false, choice(AT(privacy.relation)),
       "Neighbours differ in one series: event, in the values within w consecutive steps; user, in any w values; "
       "series, in whether it is there at all: the windows of a series in a step are clipped as one."},
      {"privacy.w", false, Integer{AT(privacy.w), {1, many}}, "Places in which neighbours differ."},
      {"privacy.v", false, OptionalReal{AT(privacy.v), {1e-300, 1e300}, "null"},
       "Most by which a value, as it stands in the file, changes between neighbours; noise on the data is added to "
       "values cut at 2^32 times that; null: without bound (and, without privacy, 1 for augmentation)."},
      {"privacy.noise_multiplier", false, OptionalReal{AT(privacy.noise_multiplier), {0.01, 1e6}, "auto"},
       "Noise standard deviation in multiples of the clip norm; auto: the least that spends target_epsilon over "
       "max_epochs."},
      {"privacy.noise.mechanism", false, choice(AT(privacy.noise_mechanism)),
       "How the noise of different steps is correlated (docs/accounting.md): identity: it is independent; bsr, bisr, "
       "band_mf, band_inv_mf, blt, file: later steps cancel a part of earlier noise. With privacy.relation series, and "
       "balls_in_bins, cyclic_poisson (bsr, band_mf, file), deterministic or shuffled. auto: the one of least total "
       "error at the target, with noise_multiplier auto; identity elsewhere, and with bins drawn anew in every epoch."},
      {"privacy.noise.bands", false, Integer{AT(privacy.noise_bands), {1, 1'000'000}},
       "Bands p of bsr, bisr, band_mf and band_inv_mf."},
      {"privacy.noise.sampled", false, OptionalText{AT(privacy.noise_sampled)},
       "auto: noise_multiplier auto is found by sampling, which needs less noise than is certified without, for "
       "correlated noise with balls_in_bins drawn once (docs/accounting.md); in a run's own configuration the key of "
       "the "
       "test that its noise passed, 64 digits; null: without sampling."},
      {"privacy.noise.coefficients", false, OptionalText{AT(privacy.noise_coefficients)},
       "Of file: a JSON file, the first column of the strategy matrix as a list, or {\"inverse\": [...]}."},
      {"privacy.noise.buffers", false, Integer{AT(privacy.noise_buffers), {1, 8}}, "Buffers d of blt."},
      {"privacy.clip_norm", false, Real{AT(privacy.clip_norm), {1e-12, 1e12}},
       "Largest norm of the gradient of one window; with privacy.relation series, of one series (or owner) in a step: "
       "the mean of "
       "lambda windows."},
      {"privacy.clipping", false, choice(AT(privacy.clipping)),
       "flat: a window's gradient is scaled down to clip_norm where it is longer; per_layer: each of M layers on its "
       "own, to clip_norm / sqrt(M); automatic: every gradient g is scaled by clip_norm / (|g| + 0.01)."},
      {"privacy.target_epsilon", false, Real{AT(privacy.target_epsilon), {0.0, 1e6}},
       "Training stops before epsilon passes this. 0: no step is taken, and the model is released as it starts."},
      {"privacy.composition", false, choice(AT(privacy.composition)),
       "How the steps are composed, for one window a series with relation event or user: symmetrised, which lets a "
       "step leak in both directions at once, or adaptive, which is what an adaptive adversary can make of them "
       "(tsdp.6): a third more steps for the same epsilon, after seconds of work. auto: adaptive where that is covered "
       "and the noise multiplier is from 3 to 12 (docs/accounting.md), symmetrised elsewhere."},
      {"privacy.delta", false, Real{AT(privacy.delta), {1e-25, 1.0, false, true}}, "delta at which epsilon is stated."},
      {"optimizer.name", false, choice(AT(optimizer.name), {"adam"}), "The optimizer."},
      {"optimizer.learning_rate", false, OptionalReal{AT(optimizer.learning_rate), {0.0, 1e6, true}, "auto"},
       "Step size; auto: docs/choosing.md has the rule."},
      {"optimizer.weight_decay", false, Real{AT(optimizer.weight_decay), {0.0, 1e6}},
       "Multiple of the weights added to the gradient."},
      {"optimizer.gradient_norm_bound", false,
       OptionalReal{AT(optimizer.gradient_norm_bound), {0.0, 1e12, true}, "null"},
       "Not private: the batch's gradient is scaled down to this norm where it is longer; null: never."},
      {"optimizer.plateau_looks", false, OptionalInteger{AT(optimizer.plateau_looks), {0, many}, "null"},
       "Not private: the learning rate is halved after more than this many looks (training.validate_every) in a row at "
       "which the mean training loss was no lower than at its best; null: never. GluonTS's DeepAR has 10."},
      {"training.max_epochs", false, OptionalInteger{AT(training.max_epochs), {1, many}, "1000", "auto"},
       "Epochs after which training ends even within the budget; auto: docs/choosing.md has the rule."},
      {"training.seed", false, Integer{AT(training.seed), {0, std::numeric_limits<std::int64_t>::max()}},
       "Seed of the initial weights; of all randomness if training.reproducible."},
      {"training.reproducible", false, Flag{AT(training.reproducible)},
       "true derives the secret key from the seed: for tests and studies, not for release."},
      {"training.trainable", false, choice(AT(training.trainable)),
       "Which parameters training changes: all; head, the biases, layer norms and the head alone, of which deepar has "
       "the head; or mixture, how the network's forecasts are mixed with model.candidates, three numbers for "
       "each of them. The fewer there are, the less harm noise does. The others stay those of the start. auto: "
       "docs/choosing.md has "
       "the rule."},
      {"training.validate_every", false, Integer{AT(training.validate_every), {1, many}},
       "Epochs between two looks at the validation loss."},
      {"training.checkpoint", false, choice(AT(training.checkpoint)),
       "Weights that are exported; best (not private): of least validation loss, or without a validation part of least "
       "mean training loss between two looks."},
      {"training.checkpoint_seconds", false, Real{AT(training.checkpoint_seconds), {0.0, 1e6}},
       "Least seconds between two checkpoints; from 1 s on their cost is also kept below 0.5 % of the time."},
      {"training.memory_mb", false, OptionalInteger{AT(training.memory_mb), {1, 1'000'000'000}, "null"},
       "Memory that the records of a batch may take; larger batches are worked on in chunks. null: without bound."},
      {"training.mask_sums", false, Flag{AT(training.mask_sums)},
       "true hides from rank 0 what each other rank adds to a step, of which it learns the sum alone, and its scores. "
       "For three ranks or more, all but rank 0 with --mask-key (docs/distributed.md)."},
  };
  return table;
}

#undef AT

}  // namespace tsdp::detail
