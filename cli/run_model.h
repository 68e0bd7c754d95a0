// Steps that programs share, from a run's folder to its model.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "run/charge.h"
#include "run/checkpoint.h"
#include "tsdp/evaluation/backtest.h"
#include "tsdp/export/torchscript.h"
#include "tsdp/ledger/ledger.h"
#include "tsdp/run/run_folder.h"
#include "tsdp/settings/config.h"
#include "tsdp/settings/configured.h"

namespace tsdp::cli {

/// What an exported model says about itself.
[[nodiscard]] exporting::ModelMetadata metadata_of(const Config& config, const models::Forecaster& model,
                                                   const nlohmann::ordered_json& ledger);

/// Throws UsageError unless series have the variables, in the same order, that `model`, a file, forecasts together,
/// if it does.
void require_variables(const exporting::ModelMetadata& metadata, const std::string& model,
                       const data::Dataset& dataset);

/// {"step": s, "of": n} for a model whose run is not finished, with the weights of step s of the n planned; null for a
/// finished one. A run that was cut off may have taken more steps than its last checkpoint holds.
[[nodiscard]] nlohmann::ordered_json unfinished(const exporting::ModelMetadata& metadata);
/// The same as a line ending with a full stop and a line break; empty for a finished model.
[[nodiscard]] std::string unfinished_text(const exporting::ModelMetadata& metadata);

/// What epsilon covers in a model's release: ["model"], or nothing for a model without privacy, or without a ledger.
[[nodiscard]] nlohmann::ordered_json epsilon_covers(const nlohmann::ordered_json& ledger);
/// `beside`, the names of what stands next to epsilon in an answer, plus "start" if the model's start rests on data.
[[nodiscard]] std::vector<std::string> epsilon_does_not_cover(const nlohmann::ordered_json& ledger,
                                                              std::vector<std::string> beside);
/// Puts epsilon and delta of a model's training into a program's answer, with what they are about: "epsilon", "delta",
/// "epsilon_covers", "epsilon_does_not_cover" (`beside`: names of what stands next to them in the answer),
/// "reproducible", "unfinished" and the statement.
void put_training_privacy(nlohmann::ordered_json& out, const exporting::ModelMetadata& metadata,
                          const std::vector<std::string>& beside);

/// The files that `config`, which was read from `config_file`, names and that are there: data and what belongs to
/// them.
[[nodiscard]] std::vector<std::filesystem::path> files_read_by(const Config& config,
                                                               const std::filesystem::path& config_file);

/// The model of a checkpoint of a run, with the run's ledger.
struct RunModel {
  std::unique_ptr<models::Forecaster> model;
  bool sampled_forecasts = false;
  exporting::ModelMetadata metadata;

  [[nodiscard]] exporting::LoadedModel module() const {
    return {exporting::make_module(*model, sampled_forecasts), metadata};
  }
};
/// The model with the weights that the run began with, before any step. Throws DataError if these are not those of its
/// ledger.
[[nodiscard]] std::unique_ptr<models::Forecaster> start_of_run(const training::RunFolder& folder, const Config& config,
                                                               const nlohmann::ordered_json& ledger);
/// Adds the scores of `start`, which `ledger` tells of, over the same `ranges` as those of the model in `scores`: what
/// the data added is the difference. None, and a remark, where both are mixed with a model that was trained on data.
void add_scores_of_start(evaluation::BacktestResult& scores, const models::Forecaster& start, const Config& config,
                         const data::PreparedData& data, std::span<const data::ForecastRange> ranges,
                         const nlohmann::ordered_json& ledger);
/// Tells of windows that the run of `ledger`, or one that it started from, may have been trained on.
void add_remarks_on_trained_windows(evaluation::BacktestResult& scores, const nlohmann::ordered_json& ledger,
                                    std::span<const data::ForecastRange> ranges);
/// Puts "baselines" (all that the model is scored beside) and "best_free" (null where nothing has a score).
void put_beside(nlohmann::ordered_json& out, const evaluation::BacktestResult& scores);
/// "CRPS 0.0712, at its start (epsilon 0: …) 0.0903, of the best that is free (seasonal_quantiles) 0.0801: your data
/// took 21 % off the start's; the model is 11 % better than what is free".
[[nodiscard]] std::string what_data_added(const evaluation::BacktestResult& scores);

/// Whether the model of an unfinished run is wanted.
enum class Unfinished {
  refuse,
  allow
};

/// Checkpoint, count of charged steps, configuration and ledger must belong to one run, and the ledger's numbers must
/// follow from its terms, which are derived again. Throws DataError for files that do not belong together or cannot be
/// read. Throws PrivacyError for a ledger that states less than what was spent or what follows from its terms, for
/// "best" of a private run, and for a run that is not finished.
[[nodiscard]] RunModel model_of_run(const training::RunFolder& folder, const Config& config, ExportedWeights which,
                                    Unfinished unfinished = Unfinished::refuse);

}  // namespace tsdp::cli
