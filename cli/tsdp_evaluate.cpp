// tsdp-evaluate: rolling-window evaluation of a run or an exported model.
#include <algorithm>
#include <iostream>
#include <utility>

#include "base/log.h"
#include "device.h"
#include "evaluation/baseline_file.h"
#include "export/candidates.h"
#include "inference_options.h"
#include "program.h"
#include "report/model_card.h"
#include "report/report_content.h"
#include "run_model.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/json.h"
#include "tsdp/base/text.h"
#include "tsdp/evaluation/backtest.h"
#include "tsdp/ledger/exported_model.h"
#include "tsdp/ledger/ledger.h"
#include "tsdp/settings/configured.h"

namespace tsdp::cli {
namespace {

/// Scores of the files named by --baseline NAME=FILE, by name.
nlohmann::ordered_json baselines_of(const std::vector<std::string>& given, const Config& config,
                                    const data::PreparedData& data, const std::vector<data::ForecastRange>& ranges) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  for (const auto& one : given) {
    const auto equals = one.find('=');
    const auto name = one.substr(0, equals);
    if (equals == std::string::npos || name.empty() || equals + 1 == one.size())
      throw UsageError(cat("--baseline: found '", one, "'; expected NAME=FILE"));
    const auto is_candidate = [&](const auto& external) { return external->name == name; };
    if (name == "start" || out.contains(name) || evaluation::is_baseline(name) ||
        std::any_of(data.dataset.external.begin(), data.dataset.external.end(), is_candidate))
      throw UsageError(cat("--baseline: found the name '", name,
                           "', which is taken; expected each name once, and none that scores have by themselves"));
    out[name] = evaluation::score_baseline(one.substr(equals + 1), data.dataset, ranges,
                                           config.dataset.prediction_length, config.dataset.season_length)
                    .json();
  }
  return out;
}

/// The largest number of windows of a series that read one of the w values in which neighbours differ.
std::int64_t uses_of_a_change(const evaluation::PrivateInference& privacy, const Config& config,
                              std::int64_t past_length, std::size_t windows, std::size_t series) {
  const auto read = std::max(past_length, config.dataset.season_length);
  const auto horizon = config.dataset.prediction_length;
  const auto of_a_value = (read + horizon - 1) / horizon;
  return std::min(privacy.mechanism.parameters().w * of_a_value, static_cast<std::int64_t>(windows / series));
}

/// For every series with windows: its scores and those of the baselines.
nlohmann::ordered_json scores_by_series(const data::Dataset& dataset, const evaluation::BacktestResult& result) {
  auto out = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < dataset.series.size(); ++i) {
    const auto& scores = result.by_series[i];
    if (scores.windows() == 0) continue;
    auto baselines = nlohmann::ordered_json::object();
    for (const auto& one : result.baselines) baselines[name(one.baseline)] = one.by_series[i].json();
    out.push_back({{"series", dataset.series[i].id},
                   {"windows", scores.windows()},
                   {"metrics", scores.json()},
                   {"baselines", std::move(baselines)}});
  }
  return out;
}

/// What the program is asked for.
struct Options {
  CommonOptions common;
  InferenceOptions inference;
  std::string run, model, config_name, card;
  std::vector<std::string> set, baselines, series;
  std::string split = "test";
  std::string device_name = "auto";
  int threads = 0;
  bool trust = false;
  bool report = false;
  bool per_series = false;

  [[nodiscard]] training::RunFolder folder() const { return {run}; }
  [[nodiscard]] std::filesystem::path model_file() const {
    return model.empty() ? folder().model() : std::filesystem::path(model);
  }
};

void add_options(CLI::App& app, Options& o) {
  add_common_options(app, o.common);
  app.add_option("--run", o.run, "Folder of a run");
  app.add_option("--model", o.model, "Exported model; needs --config");
  app.add_option("--config", o.config_name, "Configuration that names data and split");
  app.add_option("--set", o.set, "section.name=value over the configuration")->allow_extra_args(false);
  app.add_option("--split", o.split, "validation or test")
      ->check(CLI::IsMember({"validation", "test"}))
      ->capture_default_str();
  app.add_option("--baseline", o.baselines,
                 "NAME=FILE: forecasts of the same windows by another program, which count as free; repeatable")
      ->allow_extra_args(false);
  add_inference_options(app, o.inference, "Makes the noise of --private repeatable: then not for release");
  app.add_option("--device", o.device_name, "auto, cpu, cuda or cuda:i")->capture_default_str();
  add_threads_option(app, o.threads);
  app.add_flag(
      "--trust", o.trust,
      "Run the code inside --model, which can do whatever you may; without it the model is built from its data");
  app.add_flag("--report", o.report, "Write private/report.html of the run anew, with the baselines of --baseline");
  app.add_option("--card", o.card, "File to write the model's card to, in Markdown, with these scores");
  app.add_flag("--per-series", o.per_series, "With --json: the scores of every series, too");
  app.add_option("--series", o.series,
                 "With --report: name of a series to show, in place of those chosen by score; repeatable")
      ->allow_extra_args(false);
}

void check_together(const Options& o) {
  if (o.run.empty() == o.model.empty())
    throw UsageError(
        cat("--run and --model: found ", o.run.empty() ? "neither" : "both", "; expected exactly one of them"));
  if (!o.model.empty() && o.config_name.empty())
    throw UsageError("--config: not given; expected with --model a configuration that names the data");
  if (o.inference.seed && !o.inference.privately)
    throw UsageError("--seed: given without --private; expected with it alone");
  if (o.report && o.run.empty())
    throw UsageError("--report: given without --run; the report belongs to a run's folder");
  if (o.report && o.inference.privately)
    throw UsageError(
        "--report: given with --private; expected one of them, since the report shows forecasts from true pasts");
  if (!o.card.empty()) {
    const auto folder = o.folder();
    if (o.inference.privately)
      throw UsageError("--card: given with --private; expected one of them, since the card is of the model as it is");
    if (o.model.empty() && !is_there(folder.model()))
      throw UsageError(cat("--card: no ", folder.model().string(), "; expected a run that is finished, or --model"));
    auto kept = folder.needed();
    kept.insert(kept.end(), {folder.model(), folder.card(), o.model, o.config_name});
    for (const auto& baseline : o.baselines) kept.emplace_back(baseline.substr(baseline.find('=') + 1));
    require_other_file("--card", o.card, kept);
  }
  if (o.per_series && !o.common.json) throw UsageError("--per-series: given without --json; expected with it alone");
  if (!o.series.empty() && !o.report) throw UsageError("--series: given without --report; expected with it alone");
  if (o.trust && o.model.empty()) throw UsageError("--trust: given without --model; expected with it alone");
}

std::filesystem::path config_file_of(const Options& o) {
  if (!o.config_name.empty()) return find_config_file(o.config_name);
  auto file = o.folder().config();
  if (!is_there(file)) throw UsageError(cat("--run: no ", file.string(), "; expected the folder of an earlier run"));
  return file;
}

exporting::LoadedModel model_of(const Options& o, const at::Device& device) {
  const auto folder = o.folder();
  if (o.model.empty() && !is_there(folder.model()))
    return model_of_run(folder, read_config(folder.config()), ExportedWeights::last, Unfinished::allow).module();
  auto out = exporting::load_model(o.model_file(), device,
                                   o.trust ? exporting::ArchiveCode::run : exporting::ArchiveCode::never);
  // What stands beside its scores is read from the other files of the folder.
  if (o.model.empty() && is_there(folder.ledger())) {
    const auto run_of = [](const nlohmann::ordered_json& ledger, const std::filesystem::path& file) {
      return mechanism::read_ledger(ledger, file.string()).run.id;
    };
    const auto of = run_of(out.metadata.privacy, o.model_file());
    const auto run = run_of(parse_json(read_file(folder.ledger()), folder.ledger().string()), folder.ledger());
    if (of != run)
      throw DataError(cat(o.model_file().string(), ": belongs to run ", of, "; the run in this folder is ", run,
                          ": put its own file back, or score the file itself by --model"));
  }
  return out;
}

/// Throws UsageError unless the configuration asks for forecasts of the model's length. Returns its covariates in the
/// model's order, whatever the order in the file.
std::vector<std::string> covariates_for(const Options& o, const nlohmann::ordered_json& model, const Config& config,
                                        const std::string& file) {
  const auto horizon = model.value("prediction_length", std::int64_t{0});
  if (horizon != config.dataset.prediction_length)
    throw UsageError(cat(file, ": dataset.prediction_length: found ", config.dataset.prediction_length,
                         "; the model forecasts ", horizon, " steps"));
  auto covariates = mechanism::covariates_of(model, o.model_file().string());
  if (covariates.empty() != !config.dataset.covariates)
    throw UsageError(cat(file, ": dataset.covariates.file: found ", config.dataset.covariates.value_or("null"),
                         "; the model ",
                         covariates.empty() ? std::string("reads no covariates; expected null")
                                            : cat("reads ", join(covariates, ", "), "; expected a file of them")));
  const auto& asked = config.dataset.covariate_columns;
  if (!asked.empty() && !std::is_permutation(asked.begin(), asked.end(), covariates.begin(), covariates.end()))
    throw UsageError(cat(file, ": dataset.covariates.columns: found ", join(asked, ", "),
                         "; expected what the model reads: ", join(covariates, ", ")));
  return covariates;
}

/// What is known of a model after its windows were forecast.
struct Scores {
  std::string dataset;
  exporting::ModelMetadata metadata;
  evaluation::BacktestResult result;
  nlohmann::ordered_json by_series = {}, inference_privacy = {};
};

void print_as_json(const Options& o, const Scores& scores) {
  nlohmann::ordered_json out;
  out["dataset"] = scores.dataset;
  out["model"] = scores.metadata.model.value("name", "");
  out["split"] = o.split;
  out["windows"] = scores.result.model.windows();
  out["metrics"] = scores.result.model.json();
  put_beside(out, scores.result);
  out["remarks"] = scores.result.remarks;
  std::vector<std::string> of_true_values = {"metrics", "baselines", "best_free"};
  if (o.per_series) {
    out["by_series"] = scores.by_series;
    of_true_values.emplace_back("by_series");
  }
  put_training_privacy(out, scores.metadata, of_true_values);
  if (!scores.inference_privacy.is_null()) out["inference_privacy"] = scores.inference_privacy;
  print_json(out);
}

void print_as_table(const Options& o, const Scores& scores) {
  const auto& metadata = scores.metadata;
  const auto metrics = scores.result.model.json();
  const auto shown = [](const nlohmann::ordered_json& value) {
    return value.is_null() ? std::string("-") : rounded(value.get<double>(), 5);
  };
  const auto cell = [](std::string text, std::size_t width) {
    if (text.size() + 1 < width) text.resize(width, ' ');
    return text;
  };
  print(unfinished_text(metadata));
  print(cat(scores.dataset, ", ", scores.result.model.windows(), " ", o.split, " windows\n"));
  const auto others = evaluation::scored_beside(scores.result);
  const auto heading = [&](const std::string& name) {
    return name != "start"                                        ? name
           : mechanism::rests_on_data(scores.result.start_origin) ? "start (trained)"
                                                                  : "start (eps 0)";
  };
  const auto width = [&](const std::string& name) { return std::max<std::size_t>(16, heading(name).size() + 2); };
  std::cout << cell("", 30) << cell(metadata.model.value("name", "model"), 16);
  for (const auto& [name, unused] : others.items()) std::cout << cell(heading(name), width(name));
  std::cout << "\n";
  for (const auto* name : {"mean_weighted_quantile_loss", "ND", "NRMSE", "MASE", "sMAPE", "MSIS", "MAE_coverage"}) {
    std::cout << cell(name, 30) << cell(shown(metrics[name]), 16);
    for (const auto& [other, its] : others.items()) std::cout << cell(shown(its[name]), width(other));
    std::cout << "\n";
  }
  print(cat(what_data_added(scores.result), ".\n"));
  for (const auto& remark : scores.result.remarks) print(cat(remark, ".\n"));
  if (const double share = evaluation::share_in_band(metrics); std::isfinite(share)) {
    const auto words = evaluation::band_in_words(metrics);
    print(cat("80 % band: ", rounded(100.0 * share, 3), " % of the true values", words.empty() ? "" : ", ", words,
              ".\n"));
  }
  if (!scores.inference_privacy.is_null()) print(cat(scores.inference_privacy["statement"].get<std::string>(), "\n"));
  print(cat("The model: ", metadata.privacy.value("statement", std::string("no privacy statement")),
            "\nThe scores compare with true values: no epsilon covers them.\n"));
}

int evaluate(const Options& o) {
  check_together(o);
  const auto privacy = inference_of(o.inference);
  set_threads(o.threads);
  const auto device = device_of(o.device_name);
  const auto folder = o.folder();
  const auto config_file = config_file_of(o);
  auto asked = read_config(config_file, o.set);
  auto [module, metadata] = model_of(o, device);
  module.to(device);
  if (privacy) evaluation::require_public_covariates(asked.dataset.protects_covariates, metadata.privacy);
  asked.dataset.covariate_columns = covariates_for(o, metadata.model, asked, config_file.string());
  auto data = data::prepare_data(std::move(asked), config_file, privacy.has_value());
  require_variables(metadata, o.model_file().string(), data.dataset);
  const auto& config = data.config;
  if (const auto trained_on = metadata.model.value("frequency", config.dataset.frequency);
      data::Frequency::parse(trained_on) != data::Frequency::parse(config.dataset.frequency))
    throw UsageError(cat(config_file.string(), ": dataset.frequency: found ", config.dataset.frequency,
                         "; the model was trained on series of ", trained_on));
  if (!o.card.empty()) require_other_file("--card", o.card, files_read_by(config, config_file));
  const auto& ranges = o.split == "test" ? data.split.test : data.split.validation;
  if (ranges.empty())
    throw UsageError(cat(config_file.string(), ": no ", o.split, " windows; expected a longer dataset.", o.split,
                         o.split == "test" ? "_windows" : "_length"));
  if (!privacy) exporting::add_forecasts_of_models(data.dataset, data::windows_of(ranges), module, device);
  auto others = baselines_of(o.baselines, config, data, ranges);
  Scores scores{.dataset = data.dataset.name,
                .metadata = metadata,
                .result = evaluation::backtest(module, data.dataset, ranges, config.dataset.season_length, device,
                                               privacy ? &*privacy : nullptr)};
  scores.result.others.update(others);
  if (o.per_series) scores.by_series = scores_by_series(data.dataset, scores.result);
  // From true pasts, so not shown next to forecasts from privatised ones.
  if (o.model.empty() && !privacy) {
    const auto written = read_config(folder.config());
    add_scores_of_start(scores.result, *start_of_run(folder, written, metadata.privacy), written, data, ranges,
                        metadata.privacy);
  }
  add_remarks_on_trained_windows(scores.result, metadata.privacy, ranges);
  if (privacy)
    scores.inference_privacy = evaluation::inference_privacy(
        *privacy, uses_of_a_change(*privacy, config, metadata.model.value("past_length", std::int64_t{1}),
                                   ranges.size(), data.dataset.series.size()));
  if (o.report) {
    module.to(at::kCPU);
    exporting::write_report({config, folder, data, module, metadata, scores.result, o.split, o.series});
    log::info(cat("report: ", folder.report().string()));
  }
  if (!o.card.empty())
    write_file_atomically(
        o.card, exporting::model_card(metadata, exporting::CardScores{scores.result, o.split, data.dataset.name}));
  if (o.common.json) print_as_json(o, scores);
  else print_as_table(o, scores);
  return 0;
}

}  // namespace
}  // namespace tsdp::cli

int main(int argc, char** argv) {
  tsdp::cli::spin_briefly(argv);
  CLI::App app("Scores a forecaster on rolling windows, beside what can be forecast for nothing.", "tsdp-evaluate");
  tsdp::cli::Options options;
  tsdp::cli::add_options(app, options);
  return tsdp::cli::run(app, argc, argv, options.common, [&] { return tsdp::cli::evaluate(options); });
}
