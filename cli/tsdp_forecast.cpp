// tsdp-forecast: forecasts past the end of each series with an exported model.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <iostream>

#include "base/log.h"
#include "data/calendar_features.h"
#include "data/covariates.h"
#include "data/forecast_file.h"
#include "data/oddities.h"
#include "device.h"
#include "evaluation/series_forecast.h"
#include "export/candidates.h"
#include "inference_options.h"
#include "program.h"
#include "run_model.h"
#include "table_options.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/text.h"
#include "tsdp/data/input_form.h"
#include "tsdp/export/torchscript.h"
#include "tsdp/ledger/exported_model.h"
#include "tsdp/settings/config.h"
#include "tsdp/settings/configured.h"

namespace tsdp::cli {
namespace {

namespace fs = std::filesystem;

bool ends_in(const fs::path& file, const std::string& end) {
  auto name = file.filename().string();
  for (auto& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name.size() > end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
}

/// Options that say how the input is read: the form as stated, or a configuration that states it.
struct InputOptions {
  std::string input, config, covariates;
  data::StatedForm form;
};

/// `exact`: in double precision as well, which private forecasts need.
data::Dataset read_input(const InputOptions& options, const std::string& model, const std::string& model_frequency,
                         bool exact) {
  const auto trained_on = data::Frequency::parse(model_frequency);
  auto form = options.form;
  data::FormNames names;
  if (!options.config.empty()) {
    const auto file = find_config_file(options.config);
    form = data::stated_form_of(read_config(file));
    names = data::form_names_of(file);
  }
  auto read = data::read_options_of(options.input, form, names, trained_on);
  read.exact = exact;
  if (read.frequency != trained_on)
    throw UsageError(cat(names.frequency, ": found ", form.frequency, "; expected ", model_frequency,
                         ", the step of the series that ", model, " was trained on"));
  auto dataset = data::read_dataset(options.input, read);
  data::require_magnitudes(dataset);
  if (exact) data::require_one_variable(dataset, "--private");
  // Private forecasts count the uses of each past: a series that occurs twice would be used twice.
  if (exact) data::treat_copies(dataset, data::Copies::refused);
  // Series of a table share its rows; in the other forms each series stands on its own.
  if (read.format == data::Format::csv || read.format == data::Format::lstnet) {
    const auto extended = evaluation::align_ends(dataset);
    if (extended > 0)
      log::info(
          cat(extended, " of ", dataset.series.size(),
              " series end before the last one: their missing values are unobserved, and all are forecast from there"));
  }
  return dataset;
}

/// Adds what is known about the steps of `dataset` and the `horizon` steps after its ends, as far as the model reads
/// it.
void add_covariates(data::Dataset& dataset, const InputOptions& options, const std::vector<std::string>& read,
                    const std::string& model, std::int64_t horizon) {
  std::string given = options.covariates;
  std::string where = "--covariates";
  fs::path file = given;
  auto columns = options.form.columns;
  if (given.empty() && !options.config.empty()) {
    const auto config_file = find_config_file(options.config);
    const auto config = read_config(config_file);
    given = config.dataset.covariates.value_or("");
    columns = data::stated_form_of(config).columns;
    where = cat(config_file.string(), ": dataset.covariates.file");
    if (!given.empty()) file = find_file("dataset.covariates.file", given, config_file);
  }
  if (given.empty() && read.empty()) return;
  if (given.empty())
    throw UsageError(cat("--covariates: not given; ", model, " reads ", join(read, ", "),
                         ": expected a CSV file with these columns, up to ", horizon,
                         " steps after the end of every series"));
  if (read.empty()) throw UsageError(cat(where, ": found ", given, "; ", model, " reads no covariates: expected none"));
  dataset.covariates = data::read_covariates(file, dataset, read, columns, where);
  data::require_covariates(dataset, horizon);
}

/// Warns of series without a value among the last ones that the network reads.
void warn_of_empty_contexts(const data::Dataset& dataset, const exporting::ModelMetadata& metadata) {
  const nlohmann::ordered_json::json_pointer place("/sizes/context_length");
  if (!metadata.model.contains(place) || !metadata.model[place].is_number_integer()) return;
  const auto context = metadata.model[place].get<std::int64_t>();
  std::vector<std::string> empty;
  for (const auto& series : dataset.series) {
    const auto& values = series.values;
    const auto read = std::min<std::ptrdiff_t>(context, std::ssize(values));
    if (std::all_of(values.end() - read, values.end(), [](float value) { return std::isnan(value); }))
      empty.push_back(series.id);
  }
  if (!empty.empty())
    log::warning(cat(empty.size(), " of ", dataset.series.size(), " series, such as '", empty.front(),
                     "', have no value in their last ", context,
                     " steps, which are all that the network reads: it forecasts them from nothing"));
}

std::vector<double> levels_of(const std::string& text) {
  std::vector<double> levels;
  for (const auto& part : split(text, ',')) {
    double level = 0.0;
    if (!parse_double(trimmed(part), level) || !(level >= 1e-6) || !(level <= 1.0 - 1e-6))
      throw UsageError(cat("--quantiles: found '", part,
                           "'; expected numbers in (0, 1), from 1e-6 to 1 - 1e-6, such as ", "0.1,0.5,0.9"));
    if (std::find(levels.begin(), levels.end(), level) != levels.end())
      throw UsageError(cat("--quantiles: found ", level, " twice; expected each level once"));
    levels.push_back(level);
  }
  return levels;
}

bool same_file(const fs::path& a, const fs::path& b) {
  return fs::weakly_canonical(fs::absolute(a)) == fs::weakly_canonical(fs::absolute(b));
}

/// Refuses, before anything is computed, an output that could not be written or would destroy something.
void check_output(const char* option, const std::string& output, const std::vector<std::string>& inputs) {
  if (!ends_in(output, ".csv") && !ends_in(output, ".jsonl"))
    throw UsageError(cat(option, ": found '", output, "'; expected a name in .csv or .jsonl (JSON Lines)"));
  require_other_file(option, output, {});
  for (const auto& input : inputs)
    if (same_file(output, input))
      throw UsageError(cat(option, ": found '", output, "', which is read, too; expected another file"));
}

/// What the program is asked for.
struct Options {
  CommonOptions common;
  InputOptions input;
  InferenceOptions inference;
  std::string model, output, naive_output;
  std::vector<std::string> candidates;
  std::string quantiles = "0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9";
  std::string device_name = "auto";
  std::int64_t samples = 0;
  std::int64_t season_length = 0;
  int threads = 0;
  bool trust = false;
};

void add_options(CLI::App& app, Options& o) {
  add_common_options(app, o.common);
  app.add_option("--model", o.model, "Exported model")->required();
  app.add_option("--input", o.input.input, "Series to forecast")->required();
  app.add_option("--output", o.output, "File to write: .csv, or .jsonl for JSON Lines")->required();
  auto* config =
      app.add_option("--config", o.input.config, "Configuration whose dataset section says how --input is read");
  app.add_option("--format", o.input.form.format,
                 "lstnet, tsf, csv, csv_long or jsonl; by the name of --input if not given")
      ->excludes(config);
  app.add_option("--frequency", o.input.form.frequency, "Calendar step of the input; the model's if not given")
      ->excludes(config);
  app.add_option("--start", o.input.form.start, "Moment of the first row of an lstnet file: \"YYYY-MM-DD hh:mm\"")
      ->excludes(config);
  for (auto* option : add_table_options(app, o.input.form)) option->excludes(config);
  app.add_option("--covariates", o.input.covariates,
                 "CSV file of what the model is told of every step beside the series, to the end of the forecasts");
  app.add_option("--candidates", o.candidates,
                 "NAME.jsonl: forecasts of another program that the model is mixed with (model.candidates); repeatable")
      ->allow_extra_args(false);
  app.add_option("--quantiles", o.quantiles, "Levels in (0, 1), separated by commas")->capture_default_str();
  app.add_option("--samples", o.samples, "Sample paths of each series, into JSON Lines")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--seasonal-naive", o.naive_output, "File for seasonal-naive forecasts from the same past");
  app.add_option("--season-length", o.season_length,
                 "Season of --seasonal-naive; the frequency's usual one if not given")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000'000}));
  add_inference_options(app, o.inference,
                        "Makes sample paths, and noise with --private, repeatable: then not for release");
  app.add_flag(
      "--trust", o.trust,
      "Run the code inside --model, which can do whatever you may; without it the model is built from its data");
  app.add_option("--device", o.device_name, "auto, cpu, cuda or cuda:i")->capture_default_str();
  add_threads_option(app, o.threads);
}

void check_outputs(const Options& o) {
  std::vector<std::string> inputs = {o.input.input, o.model};
  if (!o.input.config.empty()) inputs.push_back(o.input.config);
  if (!o.input.covariates.empty()) inputs.push_back(o.input.covariates);
  inputs.insert(inputs.end(), o.candidates.begin(), o.candidates.end());
  check_output("--output", o.output, inputs);
  if (!o.naive_output.empty()) {
    check_output("--seasonal-naive", o.naive_output, inputs);
    if (same_file(o.naive_output, o.output))
      throw UsageError("--seasonal-naive: found the file of --output; expected another one");
  } else if (o.season_length > 0) {
    throw UsageError("--season-length: given without --seasonal-naive; expected with it alone");
  }
  if (o.samples > 0 && !ends_in(o.output, ".jsonl"))
    throw UsageError(cat("--samples: found '", o.output, "' to write them to; expected --output in .jsonl"));
}

/// Steps of seasonal naive's season. What it would read beyond the model's past is released only if it is asked for.
std::int64_t season_of(const Options& o, const data::Frequency& frequency) {
  if (o.naive_output.empty()) return 1;
  if (o.season_length > 0) return o.season_length;
  if (!o.input.config.empty()) return read_config(find_config_file(o.input.config)).dataset.season_length;
  return data::usual_season_length(frequency);
}

/// What was written, and what it costs.
struct Written {
  std::size_t series;   ///< each variable of a series counts
  std::string counted;  ///< in words
  std::string frequency;
  std::vector<double> levels;
  const exporting::ModelMetadata& metadata;
  nlohmann::ordered_json statement, together;  ///< null without --private
  /// What each model among --candidates that was trained on data states of its training, by name.
  nlohmann::ordered_json candidates = nlohmann::ordered_json::object();
};

void print_as_json(const Options& o, const Written& written) {
  const auto& metadata = written.metadata;
  nlohmann::ordered_json out;
  out["output"] = o.output;
  out["seasonal_naive"] =
      o.naive_output.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(o.naive_output);
  out["model"] = metadata.model.value("name", "");
  out["series"] = written.series;
  out["prediction_length"] = metadata.model.value("prediction_length", std::int64_t{0});
  out["frequency"] = written.frequency;
  out["quantiles"] = written.levels;
  if (o.inference.privately) {
    put_training_privacy(out, metadata, {});
  } else {
    put_training_privacy(out, metadata, {"output"});
  }
  out["candidates"] = written.candidates;
  out["inference_privacy"] = written.statement;
  out["with_training"] = written.together;
  print_json(out);
}

void print_as_text(const Options& o, const Written& written) {
  const auto& metadata = written.metadata;
  print(cat(o.output, ": ", written.counted, ", ", metadata.model.value("prediction_length", std::int64_t{0}),
            " steps of ", written.frequency, " each, by ", metadata.model.value("name", ""), "\n"));
  print(unfinished_text(metadata));
  if (!o.naive_output.empty()) print(cat(o.naive_output, ": the same by seasonal naive\n"));
  print(o.inference.privately
            ? cat(written.statement["statement"].get<std::string>(), "\n", written.together["text"].get<std::string>(),
                  "\n")
            : cat("Forecasts show the series they were made from: no --private. Of the model's training: ",
                  metadata.privacy.value("statement", std::string("no privacy statement")), "\n"));
  for (const auto& [name, statement] : written.candidates.items())
    print(cat("They are mixed with those of ", name,
              ", which was trained on data itself: ", statement.get<std::string>(), "\n"));
}

int forecast(const Options& o) {
  evaluation::ForecastRequest request;
  request.levels = levels_of(o.quantiles);
  request.samples = o.samples;
  check_outputs(o);
  const auto privacy = inference_of(o.inference);
  if (privacy && !o.candidates.empty())
    throw UsageError(
        "--candidates: given with --private; expected one of them, since other programs read the series as they are");
  request.privacy = privacy ? &*privacy : nullptr;
  if (o.inference.seed) request.draws = SecretKey::from_seed(*o.inference.seed);
  if (privacy && !o.inference.seed) request.draws = privacy->key;

  set_threads(o.threads);
  const auto device = device_of(o.device_name);
  auto [module, metadata] =
      exporting::load_model(o.model, device, o.trust ? exporting::ArchiveCode::run : exporting::ArchiveCode::never);
  const auto frequency = metadata.model.value("frequency", std::string());
  if (frequency.empty())
    throw DataError(cat(o.model, ": names no frequency; expected a model that tsdp-export or tsdp-train wrote"));
  if (privacy) {
    const bool asked =
        !o.input.config.empty() && read_config(find_config_file(o.input.config)).dataset.protects_covariates;
    evaluation::require_public_covariates(asked, metadata.privacy);
  }
  auto dataset = read_input(o.input, o.model, frequency, privacy.has_value());
  require_variables(metadata, o.model, dataset);
  warn_of_empty_contexts(dataset, metadata);
  add_covariates(dataset, o.input, mechanism::covariates_of(metadata.model, o.model), o.model,
                 metadata.model.value("prediction_length", std::int64_t{1}));
  request.season_length = season_of(o, dataset.frequency);
  for (const auto& file : o.candidates)
    dataset.external.push_back(
        data::read_external(file, dataset, metadata.model.value("prediction_length", std::int64_t{1})));
  std::vector<data::WindowIndex> ends;
  for (std::size_t i = 0; i < dataset.series.size(); ++i)
    ends.push_back({static_cast<std::int64_t>(i), static_cast<std::int64_t>(dataset.series[i].values.size())});
  exporting::add_forecasts_of_models(dataset, ends, module, device);
  if (const auto text = evaluation::ExternalWindows(module, dataset, request.privacy).taking_part(ends); !text.empty())
    log::info(text);
  const auto forecasts = evaluation::forecast_series(module, dataset, request, device);

  Written written{
      forecasts.size(), data::counted_series(dataset), dataset.frequency.text(), request.levels, metadata, {}, {}};
  for (const auto& one : dataset.external)
    if (!one->is_free()) written.candidates[one->name] = one->statement;
  if (privacy) {
    written.statement = evaluation::inference_privacy(*privacy, 1);
    written.together = evaluation::with_training(*privacy, metadata.privacy);
    written.statement["with_training"] = written.together;  // it travels with the forecasts
  }
  const auto write = [&](const std::string& file, const std::vector<evaluation::SeriesForecast>& what) {
    write_file_atomically(file, ends_in(file, ".csv")
                                    ? evaluation::forecasts_as_csv(what, request.levels)
                                    : evaluation::forecasts_as_json_lines(what, request.levels, written.statement));
  };
  write(o.output, forecasts);
  if (!o.naive_output.empty()) write(o.naive_output, evaluation::seasonal_naive_of(forecasts, request.levels.size()));
  if (o.common.json) print_as_json(o, written);
  else print_as_text(o, written);
  return 0;
}

}  // namespace
}  // namespace tsdp::cli

int main(int argc, char** argv) {
  tsdp::cli::spin_briefly(argv);
  CLI::App app("Forecasts what comes after the end of each series.", "tsdp-forecast");
  tsdp::cli::Options options;
  tsdp::cli::add_options(app, options);
  return tsdp::cli::run(app, argc, argv, options.common, [&] { return tsdp::cli::forecast(options); });
}
