// tsdp-data: describes, converts, splits and generates data sets.
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/log.h"
#include "data/calendar_features.h"
#include "data/describe.h"
#include "data/generate.h"
#include "data/propose.h"
#include "data/synthetic.h"
#include "data/writers.h"
#include "program.h"
#include "table_options.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/text.h"
#include "tsdp/data/input_form.h"
#include "tsdp/settings/configured.h"

namespace {

using Json = nlohmann::ordered_json;
using namespace tsdp;

void add_form_options(CLI::App& app, data::StatedForm& form, const char* format_option) {
  app.add_option(format_option, form.format,
                 cat("Form of the input: ", join(data::format_names(), ", "), "; else by the file's name"));
  app.add_option("--frequency", form.frequency, "Calendar step, such as 10min, 1h, 1D, 1B; else as the file tells");
  app.add_option("--start", form.start,
                 "Moment of the first row, YYYY-MM-DD or YYYY-MM-DD hh:mm, where the file has no times (lstnet)");
  (void)cli::add_table_options(app, form);
}

data::Dataset read_file(const std::string& file, const data::StatedForm& form, const char* format_option) {
  data::FormNames names;
  names.format = format_option;
  return data::read_dataset(file, data::read_options_of(file, form, names));
}

void warn_of_variables(const data::Dataset& dataset, const std::string& output) {
  if (!dataset.variables.empty())
    log::warning(cat(output,
                     ": each variable becomes a series of its own, called NAME/COLUMN: trained on so, each value "
                     "is protected by itself"));
}

struct DescribeCommand {
  std::optional<std::string> file, config, write;
  std::vector<std::string> set;
  data::StatedForm form;
  std::optional<std::int64_t> prediction_length, context_length, season_length;

  void add_to(CLI::App& app) {
    app.add_option("FILE", file, "File with the series; with --config by default its dataset.path");
    add_form_options(app, form, "--format");
    app.add_option("--write", write,
                   "Configuration to write: how the file is read, a split, and auto for what a rule settles");
    auto* from_config =
        app.add_option("--config", config, "Configuration that says how the data are read, split and used");
    app.add_option("--set", set, "key.path=value over the configuration; may be repeated")
        ->needs(from_config)
        ->allow_extra_args(false);
    for (const char* option : {"--format", "--frequency", "--start", "--columns", "--duplicates", "--gaps", "--write"})
      from_config->excludes(option);
    const CLI::Range positive(1, 1'000'000'000);
    app.add_option("--prediction-length", prediction_length, "Steps to forecast, which every series should hold")
        ->check(positive);
    app.add_option("--context-length", context_length, "and steps before them")->check(positive);
    app.add_option("--season-length", season_length,
                   "Season of the seasonal-naive baseline; by default that of the frequency")
        ->check(positive);
  }

  int run(bool json) const {
    if (!file && !config)
      throw UsageError("FILE and --config: found neither; expected a file with series, or a configuration");
    data::DescribeOptions options;
    data::Dataset dataset;
    if (config) {
      const auto path = find_config_file(*config);
      auto c = read_config(path, set);
      if (file) c.dataset.path = *file;
      dataset = data::read_series(c, path);
      options.split = data::split_options_of(c);
      options.season_length = c.dataset.season_length;
    } else {
      const auto read = data::read_options_of(*file, form);
      dataset = data::read_dataset(*file, read);
      options.season_length = data::usual_season_length(dataset.frequency);
      if (write) {
        if (is_there(*write))
          throw UsageError(cat("--write: found '", *write, "', which is there already; expected a new file"));
        write_file_atomically(
            *write, data::proposed_configuration(*file, std::filesystem::path(*write).parent_path(), form, read,
                                                 dataset, {prediction_length, season_length}));
        (void)read_config(*write, {});  // the proposal must be accepted
      }
    }
    options.prediction_length = prediction_length.value_or(0);
    options.context_length = context_length.value_or(0);
    options.season_length = season_length.value_or(options.season_length);
    const auto description = data::describe(dataset, options);
    if (json) {
      cli::print_json(data::description_json(dataset, description));
    } else {
      cli::print(data::description_text(dataset, description));
    }
    return 0;
  }
};

struct ConvertCommand {
  std::string input_file, output_file;
  std::string output_format;
  data::StatedForm form;

  void add_to(CLI::App& app) {
    app.add_option("INPUT", input_file, "File with the series, plain or gzip")->required();
    app.add_option("OUTPUT", output_file, "File to write; compressed if its name ends in .gz")->required();
    add_form_options(app, form, "--from");
    app.add_option("--to", output_format, "Form of the output; else by the file's name");
  }

  int run(bool json) const {
    if (output_file.ends_with(".parquet"))
      throw UsageError(cat("OUTPUT: found '", output_file,
                           "'; Parquet is read and not written: expected a name in .csv, .jsonl, .tsf or .txt"));
    const auto format = data::stated_format(output_file, output_format, data::format_by_ending(output_file), "--to");
    std::error_code ignored;
    if (std::filesystem::equivalent(input_file, output_file, ignored))
      throw UsageError(cat("OUTPUT: found '", output_file, "', which is read, too; expected another file"));
    const auto dataset = read_file(input_file, form, "--from");
    warn_of_variables(dataset, output_file);
    data::write_dataset(dataset, output_file, format);
    if (format == data::Format::lstnet)
      log::warning(cat(output_file,
                       ": the form lstnet has neither names nor times; series are its columns in order, from ",
                       data::moment_text(dataset.series.front().start), " in steps of ", dataset.frequency.text()));
    if (std::filesystem::equivalent(output_file, "/dev/stdout", ignored)) {
      // Nothing may follow the data.
      log::info(cat(dataset.series.size(), " series, steps of ", dataset.frequency.text()));
    } else if (json) {
      const Json out = {{"output", output_file},
                        {"format", data::name(format)},
                        {"series", dataset.series.size()},
                        {"frequency", dataset.frequency.text()}};
      cli::print_json(out);
    } else {
      cli::print(cat(output_file, ": ", dataset.series.size(), " series, steps of ", dataset.frequency.text(), "\n"));
    }
    return 0;
  }
};

struct SplitCommand {
  std::string config, output;
  std::vector<std::string> set;

  void add_to(CLI::App& app) {
    app.add_option("--config", config, "Configuration that says how the data are read and split")->required();
    app.add_option("--output", output, "Folder for train.jsonl, validation.jsonl, test.jsonl and metadata.json")
        ->required();
    app.add_option("--set", set, "key.path=value over the configuration; may be repeated")->allow_extra_args(false);
  }

  int run(bool json) const {
    const auto path = find_config_file(config);
    const auto prepared = data::prepare_data(read_config(path, set), path);
    const auto& d = prepared.config.dataset;
    warn_of_variables(prepared.dataset, output);
    data::write_split(prepared.dataset, prepared.split, {d.prediction_length, d.season_length}, output);
    if (json) {
      const Json out = {{"output", output},
                        {"series", prepared.dataset.series.size()},
                        {"validation_entries", prepared.split.validation.size()},
                        {"test_entries", prepared.split.test.size()}};
      cli::print_json(out);
    } else {
      cli::print(cat(output, ": ", prepared.dataset.series.size(), " training series, ",
                     prepared.split.validation.size(), " validation and ", prepared.split.test.size(),
                     " test entries\n"));
    }
    return 0;
  }
};

struct GenerateCommand {
  static constexpr const char* traffic = "traffic-like";
  std::string kind, output;
  data::GenerateOptions options;

  void add_to(CLI::App& app) {
    auto kinds = all_names<data::SyntheticKind>();
    kinds.insert(kinds.begin(), traffic);
    app.add_option("kind", kind,
                   cat("What to make: ", join(kinds, ", "), "; all but the first are families to pretrain on"))
        ->required()
        ->check(CLI::IsMember(kinds));
    app.add_option("--series", options.series, "Number of series")
        ->check(CLI::Range(1, 10'000'000))
        ->capture_default_str();
    app.add_option("--length", options.length, "Values of each series")
        ->check(CLI::Range(1, 100'000'000))
        ->capture_default_str();
    app.add_option("--seed", options.seed, "Seed")->check(cli::whole_number)->capture_default_str();
    app.add_option("--output", output, "File to write, in lstnet form; compressed if its name ends in .gz")->required();
  }

  int run(bool json) const {
    data::write_dataset(kind == traffic ? data::generate_traffic_like(options)
                                        : data::generate_synthetic(named<data::SyntheticKind>(kind, "kind"), options),
                        output, data::Format::lstnet);
    if (json) {
      const Json out = {
          {"output", output}, {"series", options.series}, {"length", options.length}, {"seed", options.seed}};
      cli::print_json(out);
    } else {
      cli::print(
          cat(output, ": ", options.series, " series of ", options.length, kind == traffic ? " hours\n" : " values\n"));
    }
    return 0;
  }
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Describes, converts, splits and makes data sets.", "tsdp-data");
  cli::CommonOptions common;
  cli::add_common_options(app, common);
  app.require_subcommand(1);
  app.fallthrough();
  std::function<int()> chosen;
  const auto add = [&](const char* name, const char* what, auto& command) {
    auto* subcommand = app.add_subcommand(name, what);
    command.add_to(*subcommand);
    subcommand->callback(
        [&chosen, &common, &command] { chosen = [&common, &command] { return command.run(common.json); }; });
  };
  DescribeCommand describe;
  ConvertCommand convert;
  SplitCommand split;
  GenerateCommand generate;
  add("describe", "Says what a data set holds and names the series that stand out", describe);
  add("convert", "Reads a data set in one form and writes it in another", convert);
  add("split", "Writes training, validation and test parts as JSON Lines", split);
  add("generate", "Writes synthetic series, made from a seed and no real data, as LSTNet text", generate);
  return cli::run(app, argc, argv, common, [&] { return chosen(); });
}
