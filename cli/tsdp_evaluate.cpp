// tsdp-evaluate: rolling-window evaluation of a run or an exported model.
#include <algorithm>
#include <iostream>

#include "base/log.h"
#include "device.h"
#include "evaluation/baseline_file.h"
#include "inference_options.h"
#include "program.h"
#include "report/report_content.h"
#include "run_model.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/text.h"
#include "tsdp/evaluation/backtest.h"
#include "tsdp/ledger/exported_model.h"
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
    if (name == "seasonal_naive" || name == "start" || out.contains(name))
      throw UsageError(cat("--baseline: found the name '", name, "' again; expected each name once"));
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

/// For every series with windows: its scores and those of seasonal naive.
nlohmann::ordered_json scores_by_series(const data::Dataset& dataset, const evaluation::BacktestResult& result) {
  auto out = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < dataset.series.size(); ++i) {
    const auto& scores = result.by_series[i];
    if (scores.windows() == 0) continue;
    out.push_back({{"series", dataset.series[i].id},
                   {"windows", scores.windows()},
                   {"metrics", scores.json()},
                   {"baselines", {{"seasonal_naive", result.naive_by_series[i].json()}}}});
  }
  return out;
}

}  // namespace
}  // namespace tsdp::cli

int main(int argc, char** argv) {
  using tsdp::cat;
  CLI::App app("Scores a forecaster on rolling windows, beside seasonal naive.", "tsdp-evaluate");
  tsdp::cli::CommonOptions common;
  tsdp::cli::add_common_options(app, common);
  std::string run;
  std::string model;
  std::string config_name;
  std::vector<std::string> set;
  std::string split = "test";
  std::string device_name = "auto";
  int threads = 0;
  bool report = false;
  app.add_option("--run", run, "Folder of a run");
  app.add_option("--model", model, "Exported model; needs --config");
  app.add_option("--config", config_name, "Configuration that names data and split");
  app.add_option("--set", set, "section.name=value over the configuration")->allow_extra_args(false);
  app.add_option("--split", split, "validation or test")
      ->check(CLI::IsMember({"validation", "test"}))
      ->capture_default_str();
  std::vector<std::string> baselines;
  tsdp::cli::InferenceOptions inference;
  app.add_option("--baseline", baselines, "NAME=FILE: forecasts of the same windows by another program; repeatable")
      ->allow_extra_args(false);
  tsdp::cli::add_inference_options(app, inference, "Makes the noise of --private repeatable: then not for release");
  app.add_option("--device", device_name, "auto, cpu, cuda or cuda:i")->capture_default_str();
  app.add_option("--threads", threads, "CPU threads; 0: all cores")->check(CLI::Range(0, 4096))->capture_default_str();
  bool trust = false;
  app.add_flag(
      "--trust", trust,
      "Run the code inside --model, which can do whatever you may; without it the model is built from its data");
  app.add_flag("--report", report, "Write private/report.html of the run anew, with the baselines of --baseline");
  bool per_series = false;
  app.add_flag("--per-series", per_series, "With --json: the scores of every series, too");
  std::vector<std::string> series;
  app.add_option("--series", series,
                 "With --report: name of a series to show, in place of those chosen by score; repeatable")
      ->allow_extra_args(false);

  return tsdp::cli::run(app, argc, argv, common, [&] {
    if (run.empty() == model.empty())
      throw tsdp::UsageError(
          cat("--run and --model: found ", run.empty() ? "neither" : "both", "; expected exactly one of them"));
    if (!model.empty() && config_name.empty())
      throw tsdp::UsageError("--config: not given; expected with --model a configuration that names the data");
    if (inference.seed && !inference.privately)
      throw tsdp::UsageError("--seed: given without --private; expected with it alone");
    const auto privacy = tsdp::cli::inference_of(inference);
    if (report && run.empty())
      throw tsdp::UsageError("--report: given without --run; the report belongs to a run's folder");
    if (report && inference.privately)
      throw tsdp::UsageError(
          "--report: given with --private; expected one of them, since the report shows forecasts from true pasts");
    if (per_series && !common.json)
      throw tsdp::UsageError("--per-series: given without --json; expected with it alone");
    if (!series.empty() && !report) throw tsdp::UsageError("--series: given without --report; expected with it alone");
    tsdp::cli::set_threads(threads);
    const auto device = tsdp::cli::device_of(device_name);
    const tsdp::training::RunFolder folder{run};
    std::filesystem::path config_file;
    if (!config_name.empty()) {
      config_file = tsdp::find_config_file(config_name);
    } else {
      config_file = folder.config();
      if (!tsdp::is_there(config_file))
        throw tsdp::UsageError(cat("--run: no ", config_file.string(), "; expected the folder of an earlier run"));
    }
    auto config = tsdp::read_config(config_file, set);
    if (trust && model.empty()) throw tsdp::UsageError("--trust: given without --model; expected with it alone");
    auto [module, metadata] = !model.empty() || tsdp::is_there(folder.model())
                                  ? tsdp::exporting::load_model(
                                        model.empty() ? folder.model() : std::filesystem::path(model), device,
                                        trust ? tsdp::exporting::ArchiveCode::run : tsdp::exporting::ArchiveCode::never)
                                  : tsdp::cli::model_of_run(folder, tsdp::read_config(folder.config()),
                                                            tsdp::ExportedWeights::last, tsdp::cli::Unfinished::allow)
                                        .module();
    module.to(device);
    const auto horizon = metadata.model.value("prediction_length", std::int64_t{0});
    if (horizon != config.dataset.prediction_length)
      throw tsdp::UsageError(cat(config_file.string(), ": dataset.prediction_length: found ",
                                 config.dataset.prediction_length, "; the model forecasts ", horizon, " steps"));
    // In the model's order, whatever the order in the file.
    const auto covariates =
        tsdp::mechanism::covariates_of(metadata.model, model.empty() ? folder.model().string() : model);
    if (covariates.empty() != !config.dataset.covariates)
      throw tsdp::UsageError(cat(config_file.string(), ": dataset.covariates.file: found ",
                                 config.dataset.covariates.value_or("null"), "; the model ",
                                 covariates.empty()
                                     ? std::string("reads no covariates; expected null")
                                     : cat("reads ", tsdp::join(covariates, ", "), "; expected a file of them")));
    if (auto asked = config.dataset.covariate_columns;
        !asked.empty() && !std::is_permutation(asked.begin(), asked.end(), covariates.begin(), covariates.end()))
      throw tsdp::UsageError(cat(config_file.string(), ": dataset.covariates.columns: found ", tsdp::join(asked, ", "),
                                 "; expected what the model reads: ", tsdp::join(covariates, ", ")));
    config.dataset.covariate_columns = covariates;
    const auto data = tsdp::data::prepare_data(config, config_file, privacy.has_value());
    config = data.config;
    if (const auto trained_on = metadata.model.value("frequency", config.dataset.frequency);
        tsdp::data::Frequency::parse(trained_on) != tsdp::data::Frequency::parse(config.dataset.frequency))
      throw tsdp::UsageError(cat(config_file.string(), ": dataset.frequency: found ", config.dataset.frequency,
                                 "; the model was trained on series of ", trained_on));
    const auto& ranges = split == "test" ? data.split.test : data.split.validation;
    if (ranges.empty())
      throw tsdp::UsageError(cat(config_file.string(), ": no ", split, " windows; expected a longer dataset.", split,
                                 split == "test" ? "_windows" : "_length"));
    const auto others = tsdp::cli::baselines_of(baselines, config, data, ranges);
    const auto result = tsdp::evaluation::backtest(module, data.dataset, ranges, config.dataset.season_length, device,
                                                   privacy ? &*privacy : nullptr);
    // From true pasts, so not shown next to forecasts from privatised ones.
    std::optional<tsdp::evaluation::Metrics> start;
    if (model.empty() && !privacy)
      start = tsdp::cli::scores_of_start(folder, tsdp::read_config(folder.config()), data, ranges, metadata.privacy);
    nlohmann::ordered_json statement;
    if (privacy)
      statement = tsdp::evaluation::inference_privacy(
          *privacy, tsdp::cli::uses_of_a_change(*privacy, config, metadata.model.value("past_length", std::int64_t{1}),
                                                ranges.size(), data.dataset.series.size()));
    if (report) {
      module.to(at::kCPU);
      tsdp::exporting::write_report(
          {config, folder, data, module, metadata, result, start ? &*start : nullptr, split, others, series});
      tsdp::log::info(cat("report: ", folder.report().string()));
    }
    const auto metrics = result.model.json();
    const auto naive = result.seasonal_naive.json();
    if (common.json) {
      nlohmann::ordered_json out;
      out["dataset"] = data.dataset.name;
      out["model"] = metadata.model.value("name", "");
      out["split"] = split;
      out["windows"] = result.model.windows();
      out["metrics"] = metrics;
      out["baselines"] = {{"seasonal_naive", naive}};
      if (start) out["baselines"]["start"] = start->json();
      out["baselines"].update(others);
      std::vector<std::string> scores = {"metrics", "baselines"};
      if (per_series) {
        out["by_series"] = tsdp::cli::scores_by_series(data.dataset, result);
        scores.emplace_back("by_series");
      }
      tsdp::cli::put_training_privacy(out, metadata, scores);
      if (privacy) out["inference_privacy"] = statement;
      tsdp::cli::print_json(out);
      return 0;
    }
    const auto shown = [](const nlohmann::ordered_json& value) {
      return value.is_null() ? std::string("-") : tsdp::rounded(value.get<double>(), 5);
    };
    tsdp::cli::print(tsdp::cli::unfinished_text(metadata));
    tsdp::cli::print(cat(data.dataset.name, ", ", result.model.windows(), " ", split, " windows\n"));
    const auto cell = [](std::string text, std::size_t width) {
      if (text.size() + 1 < width) text.resize(width, ' ');
      return text;
    };
    std::cout << cell("", 30) << cell(metadata.model.value("name", "model"), 16) << cell("seasonal naive", 16);
    const auto origin = start ? tsdp::mechanism::start_origin_of(metadata.privacy, folder.ledger().string())
                              : tsdp::mechanism::StartOrigin::fresh;
    if (start) std::cout << cell(tsdp::mechanism::rests_on_data(origin) ? "start (trained)" : "start (eps 0)", 16);
    for (const auto& [name, unused] : others.items()) std::cout << cell(name, 16);
    std::cout << "\n";
    for (const auto* name : {"mean_weighted_quantile_loss", "ND", "NRMSE", "MASE", "sMAPE", "MSIS", "MAE_coverage"}) {
      std::cout << cell(name, 30) << cell(shown(metrics[name]), 16) << cell(shown(naive[name]), 16);
      if (start) std::cout << cell(shown(start->json()[name]), 16);
      for (const auto& [unused, scores] : others.items()) std::cout << cell(shown(scores[name]), 16);
      std::cout << "\n";
    }
    if (start)
      tsdp::cli::print(cat(tsdp::cli::what_data_added(result.model, *start, origin, result.seasonal_naive), ".\n"));
    if (privacy) tsdp::cli::print(cat(statement["statement"].get<std::string>(), "\n"));
    tsdp::cli::print(cat("The model: ", metadata.privacy.value("statement", std::string("no privacy statement")),
                         "\nThe scores compare with true values: no epsilon covers them.\n"));
    return 0;
  });
}
