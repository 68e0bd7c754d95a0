#include "options.h"

namespace tsdp::detail {

#define AT(member) [](Config& c) -> auto& { return c.member; }

const std::vector<Option>& option_table() {
  constexpr std::int64_t many = 1'000'000'000;
  constexpr std::int64_t longest = 1'000'000;  // part of a window: no memory holds models of longer ones
  constexpr std::size_t most_lags = 1000;      // each makes an input of every step
  static const std::vector<Option> table = {
      {"dataset.path", true, Text{AT(dataset.path)},
       "File with the series; looked up from the working directory, the configuration's folder, the project's root."},
      {"dataset.format", true, Choice{AT(dataset.format), {"lstnet", "tsf", "csv", "csv_long", "jsonl"}},
       "lstnet: text, a row a time step, a column a series; tsf: Monash; csv: header and time stamps, a column a "
       "series; csv_long: columns unique_id, ds and y; jsonl: JSON Lines as GluonTS has them. All plain or gzip."},
      {"dataset.frequency", true, Text{AT(dataset.frequency)}, "Calendar step, pandas-style: 10min, 1h, 1D, 1B, 1W."},
      {"dataset.start", false, OptionalText{AT(dataset.start)},
       "Moment of the first row, where the file does not say it (lstnet): \"YYYY-MM-DD hh:mm\"."},
      {"dataset.prediction_length", true, Integer{AT(dataset.prediction_length), {1, longest}},
       "Forecast length L_F, in steps."},
      {"dataset.season_length", true, Integer{AT(dataset.season_length), {1, many}},
       "Season of the seasonal-naive baseline and of MASE, in steps."},
      {"dataset.split", false, Choice{AT(dataset.split), {"lstnet", "last"}},
       "lstnet: train on the first 80 %, test windows right after; last: test windows at the end."},
      {"dataset.test_windows", false, Integer{AT(dataset.test_windows), {1, many}},
       "Rolling test windows of each series."},
      {"dataset.validation_length", false,
       OptionalInteger{AT(dataset.validation_length), {0, many}, "5 * prediction_length"},
       "Values held out of training, at the end of its part of each series."},
      {"model.name", false, Choice{AT(model.name), {"simple_ff", "deepar", "itransformer", "dlinear"}}, "The forecaster."},
      {"model.context_length", true, Integer{AT(model.context_length), {1, longest}},
       "Past steps that the model is given, L_C."},
      {"model.lags", false, IntegerList{AT(model.lags), {1, longest}, most_lags},
       "Lags of the target that the model reads (deepar only, which needs some); they count into the accounted context: "
       "L_C + max(lag) - 1 past values."},
      {"model.default_scale", false, Real{AT(model.default_scale), {0.0, 1e30}},
       "Scale of a window without any observed value (deepar, itransformer, dlinear); at least 1e-10 is taken."},
      {"model.width_factor", false, Integer{AT(model.width_factor), {1, 1024}},
       "Multiple of the model's standard widths (hidden layers, LSTM, attention, feed-forward)."},
      {"model.sampled_forecasts", false, Flag{AT(model.sampled_forecasts)},
       "true: the exported model's quantiles and means come from 100 sample paths, as GluonTS has it for itransformer; "
       "deepar always forecasts so."},
      {"sampling.top_level", false, Choice{AT(sampling.top_level), {"wor", "deterministic", "shuffled"}},
       "How series are chosen: a fresh sample without replacement each step; in turn; shuffled (not private: nothing covers "
       "it): in turn, in a new order every epoch."},
      {"sampling.bottom_level", false, Choice{AT(sampling.bottom_level), {"wr", "poisson"}},
       "How windows are chosen inside a series: with replacement, or each by its own coin."},
      {"sampling.batch_size", true, Integer{AT(sampling.batch_size), {1, many}},
       "Expected windows a step, Lambda: the divisor of every step."},
      {"sampling.subsequences_per_sequence", false, Integer{AT(sampling.subsequences_per_sequence), {1, many}},
       "Expected windows of a chosen series, lambda; at most the batch size."},
      {"augmentation.context_noise", false, Real{AT(augmentation.context_noise), {0.0}},
       "Standard deviation of noise on the context, in multiples of privacy.v."},
      {"augmentation.forecast_noise", false, Real{AT(augmentation.forecast_noise), {0.0}},
       "Standard deviation of noise on the forecast target, in multiples of privacy.v."},
      {"privacy.enabled", false, Flag{AT(privacy.enabled)},
       "false trains without clipping and noise, and without any privacy."},
      {"privacy.relation", false, Choice{AT(privacy.relation), {"event", "user"}},
       "Neighbours differ in one series: event, in w consecutive places; user, in any w places."},
      {"privacy.w", false, Integer{AT(privacy.w), {1, many}}, "Places in which neighbours differ."},
      {"privacy.v", false, OptionalReal{AT(privacy.v), {0.0, 1e300, true}, "null"},
       "Most by which a value, as read in single precision, changes between neighbours; null: without bound (and, without "
       "privacy, 1 for augmentation)."},
      {"privacy.noise_multiplier", false, OptionalReal{AT(privacy.noise_multiplier), {0.01, 1e6}, "auto"},
       "Noise standard deviation in multiples of the clip norm; auto: the least that spends target_epsilon over "
       "max_epochs."},
      {"privacy.clip_norm", false, Real{AT(privacy.clip_norm), {1e-12, 1e12}},
       "Largest norm of the gradient of one window."},
      {"privacy.clipping", false, Choice{AT(privacy.clipping), {"flat", "per_layer", "automatic"}},
       "flat: a window's gradient is scaled down to clip_norm where it is longer; per_layer: each of M layers on its own, "
       "to clip_norm / sqrt(M); automatic: every gradient g is scaled by clip_norm / (|g| + 0.01)."},
      {"privacy.target_epsilon", false, Real{AT(privacy.target_epsilon), {0.0, 1e6, true}},
       "Training stops before epsilon passes this."},
      {"privacy.delta", false, Real{AT(privacy.delta), {1e-25, 1.0, false, true}}, "delta at which epsilon is stated."},
      {"optimizer.name", false, Choice{AT(optimizer.name), {"adam"}}, "The optimizer."},
      {"optimizer.learning_rate", false, Real{AT(optimizer.learning_rate), {0.0, 1e6, true}}, "Step size."},
      {"optimizer.weight_decay", false, Real{AT(optimizer.weight_decay), {0.0, 1e6}},
       "Multiple of the weights added to the gradient."},
      {"optimizer.gradient_norm_bound", false, OptionalReal{AT(optimizer.gradient_norm_bound), {0.0, 1e12, true}, "null"},
       "Not private: the batch's gradient is scaled down to this norm where it is longer; null: never."},
      {"optimizer.plateau_looks", false, OptionalInteger{AT(optimizer.plateau_looks), {0, many}, "null"},
       "Not private: the learning rate is halved after more than this many looks (training.validate_every) in a row at "
       "which the mean training loss was no lower than at its best; null: never. GluonTS's DeepAR has 10."},
      {"training.max_epochs", false, Integer{AT(training.max_epochs), {1, many}},
       "Epochs after which training ends even within the budget."},
      {"training.seed", false, Integer{AT(training.seed), {0, std::numeric_limits<std::int64_t>::max()}},
       "Seed of the initial weights; of all randomness if training.reproducible."},
      {"training.reproducible", false, Flag{AT(training.reproducible)},
       "true derives the secret key from the seed: for tests and studies, not for release."},
      {"training.validate_every", false, Integer{AT(training.validate_every), {1, many}},
       "Epochs between two looks at the validation loss."},
      {"training.checkpoint", false, Choice{AT(training.checkpoint), {"last", "best"}},
       "Weights that are exported; best: of least validation loss, a choice that epsilon does not cover (not private and "
       "without a validation part: of least mean training loss between two looks)."},
      {"training.checkpoint_seconds", false, Real{AT(training.checkpoint_seconds), {0.0, 1e6}},
       "Least seconds between two checkpoints; from 1 s on their cost is also kept below 0.5 % of the time."},
      {"training.memory_mb", false, OptionalInteger{AT(training.memory_mb), {1, 1'000'000'000}, "null"},
       "Memory that the records of a batch may take; larger batches are worked on in chunks. null: without bound."},
  };
  return table;
}

#undef AT

}  // namespace tsdp::detail
