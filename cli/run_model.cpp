#include "run_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/digest.h"
#include "base/version.h"
#include "run/charged_for.h"
#include "settings/setup.h"
#include "training/model_setup.h"
#include "training/start_weights.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/json.h"
#include "tsdp/base/text.h"
#include "tsdp/ledger/ledger.h"

namespace tsdp::cli {

exporting::ModelMetadata metadata_of(const Config& config, const models::Forecaster& model,
                                     const nlohmann::ordered_json& ledger) {
  nlohmann::ordered_json about;
  about["format"] = "tsdp-model-2";
  about["program"] = cat("tsdp ", version());
  about["name"] = model.name();
  about["past_length"] = exporting::forecast_past_length(model);
  about["prediction_length"] = model.options().prediction_length;
  about["frequency"] = data::Frequency::parse(config.dataset.frequency).text();
  about["time_features"] = nlohmann::ordered_json::array();
  if (model.reads_time_features())
    about["time_features"] =
        data::window_feature_names(data::Frequency::parse(config.dataset.frequency), config.dataset.covariate_columns);
  if (!config.dataset.covariate_columns.empty()) about["covariates"] = config.dataset.covariate_columns;
  if (model.variables() > 1) about["variables"] = config.dataset.value_columns;
  about["parameters"] = model.network().parameters().count();
  return {std::move(about), ledger};
}

void require_variables(const exporting::ModelMetadata& metadata, const std::string& model,
                       const data::Dataset& dataset) {
  const auto expected = mechanism::variables_of(metadata.model, model);
  if (expected.empty() || expected == dataset.variables) return;
  throw UsageError(
      cat(dataset.name, ": found ",
          dataset.variables.empty() ? std::string("series of one variable")
                                    : cat("the variables ", join(dataset.variables, ", ")),
          "; the model forecasts ", join(expected, ", "),
          " together: expected these columns of values, in this order (dataset.columns.value, or --columns "
          "value=NAME,value=NAME)"));
}

nlohmann::ordered_json epsilon_covers(const nlohmann::ordered_json& ledger) {
  auto out = nlohmann::ordered_json::array();
  if (ledger.is_object() && ledger.value("private", false)) out.push_back("model");
  return out;
}

nlohmann::ordered_json unfinished(const exporting::ModelMetadata& metadata) {
  const auto& ledger = metadata.privacy;
  if (!ledger.is_object() || ledger.value("state", std::string("finished")) == "finished") return nullptr;
  return metadata.model.value("unfinished",
                              nlohmann::ordered_json{{"step", ledger.value("steps_taken", std::int64_t{0})},
                                                     {"of", ledger.value("steps_planned", std::int64_t{0})}});
}

std::string unfinished_text(const exporting::ModelMetadata& metadata) {
  const auto about = unfinished(metadata);
  if (!about.is_object()) return {};
  return cat("NOT FINISHED: these are the weights after step ", about.value("step", std::int64_t{0}), " of ",
             about.value("of", std::int64_t{0}), "; tsdp-train --resume goes on.\n");
}

std::vector<std::string> epsilon_does_not_cover(const nlohmann::ordered_json& ledger, std::vector<std::string> beside) {
  const bool is_private = ledger.is_object() && ledger.value("private", false);
  // Weights that rest on data have a cost of their own.
  if (is_private && mechanism::rests_on_data(mechanism::start_origin_of(ledger, "the model")))
    beside.emplace_back("start");
  return beside;
}

void put_training_privacy(nlohmann::ordered_json& out, const exporting::ModelMetadata& metadata,
                          const std::vector<std::string>& beside) {
  const auto& ledger = metadata.privacy;
  out["epsilon"] = ledger.value("epsilon", nlohmann::ordered_json(nullptr));
  out["delta"] = ledger.value("delta", nlohmann::ordered_json(nullptr));
  out["epsilon_covers"] = epsilon_covers(ledger);
  out["epsilon_does_not_cover"] = epsilon_does_not_cover(ledger, beside);
  out["reproducible"] = ledger.value("reproducible", false);
  out["unfinished"] = unfinished(metadata);
  out["statement"] = ledger.value("statement", std::string());
}

namespace {

/// Gives `model` the weights that the run began with. Throws DataError if they are not those of its ledger.
void initialise_as_stated(models::Forecaster& model, const training::RunFolder& folder, const Config& config,
                          const mechanism::Ledger& ledger) {
  const auto start = mechanism::find_start(config, folder.config());
  auto settled = config;  // a run's configuration names all of its networks
  const auto networks = mechanism::find_networks(settled, folder.config());
  if (ledger.start != mechanism::start_of(config, start, networks))
    throw DataError(cat(folder.config().string(),
                        ": model.start, model.candidates: found other weights than the run began with; put the run's "
                        "own *.safetensors back"));
  training::initialise(model, config.training.seed, start);
  model.network().keep_networks(training::networks_of(config, networks));
}

/// What to know of windows that the run of `ledger` may have trained `what` on; empty if there are none.
std::string of_trained_windows(const nlohmann::ordered_json& ledger, const char* what,
                               std::span<const data::ForecastRange> ranges) {
  const nlohmann::ordered_json::json_pointer shortest("/mechanism/shortest_sequence");
  const nlohmann::ordered_json::json_pointer longest("/mechanism/longest_sequence");
  if (!ledger.is_object() || ledger.contains("synthetic_data") || ledger.value("steps_taken", std::uint64_t{0}) == 0 ||
      !ledger.contains(shortest) || !ledger.contains(longest))
    return {};
  const auto trained = ledger[shortest].get<std::int64_t>();
  const auto windows =
      std::count_if(ranges.begin(), ranges.end(), [&](const auto& range) { return range.forecast_start < trained; });
  if (windows == 0) return {};
  const bool at_least = ledger[longest] != ledger[shortest];
  return cat(at_least ? "at least " : "", windows, " of the ", ranges.size(), " windows begin within the first ",
             trained, " values of their series, and on ", at_least ? "at least " : "", "as many ", what,
             " was trained: of the same data, these are not unseen");
}

}  // namespace

void add_remarks_on_trained_windows(evaluation::BacktestResult& scores, const nlohmann::ordered_json& ledger,
                                    std::span<const data::ForecastRange> ranges) {
  const nlohmann::ordered_json::json_pointer earlier("/start/trained");
  const char* what = "the model";
  for (const auto* one = &ledger; one != nullptr; what = "its start") {  // and the runs that it started from
    auto remark = of_trained_windows(*one, what, ranges);
    auto& all = scores.remarks;
    if (!remark.empty() && std::find(all.begin(), all.end(), remark) == all.end()) all.push_back(std::move(remark));
    one = one->contains(earlier) ? &one->at(earlier) : nullptr;
  }
}

std::unique_ptr<models::Forecaster> start_of_run(const training::RunFolder& folder, const Config& config,
                                                 const nlohmann::ordered_json& ledger) {
  auto model = training::model_of(config, at::TensorOptions(at::kFloat));
  initialise_as_stated(*model, folder, config, mechanism::read_ledger(ledger, folder.ledger().string()));
  return model;
}

void add_scores_of_start(evaluation::BacktestResult& scores, const models::Forecaster& start, const Config& config,
                         const data::PreparedData& data, std::span<const data::ForecastRange> ranges,
                         const nlohmann::ordered_json& ledger) {
  scores.start_origin = mechanism::start_origin_of(ledger, "privacy.json");
  // With such a model the start is none from before the data; without it, training is not all of the difference.
  for (const auto& one : data.dataset.external)
    if (!one->is_free()) {
      scores.remarks.push_back(
          cat("its start is not scored, since it is mixed with ", one->name, ", which was trained on data itself"));
      return;
    }
  if (ledger.value("steps_taken", std::int64_t{1}) == 0) {  // the model is its start
    scores.start = scores.model;
    return;
  }
  // With the same mixture, in which network and start are then the same weights.
  auto module = exporting::make_module(start, config.model.sampled_forecasts);
  scores.start = evaluation::backtest(module, data.dataset, ranges, config.dataset.season_length, at::kCPU).model;
}

std::vector<std::filesystem::path> files_read_by(const Config& config, const std::filesystem::path& config_file) {
  std::vector<std::filesystem::path> out;
  auto named = config;
  const auto add = [&](const auto& find) {
    try {
      find();
    } catch (const DataError&) { return; }  // what is not there cannot be written over
  };
  add([&] { out = data_files(config, config_file); });
  for (const auto& setting : file_settings(named)) add([&] { out.push_back(setting.find(config_file)); });
  return out;
}

void put_beside(nlohmann::ordered_json& out, const evaluation::BacktestResult& scores) {
  out["baselines"] = evaluation::scored_beside(scores);
  out["best_free"] = nullptr;
  if (const auto best = evaluation::best_free(scores))
    out["best_free"] = {{"name", best->name}, {"mean_weighted_quantile_loss", best->crps}};
}

std::string what_data_added(const evaluation::BacktestResult& scores) {
  const double score = scores.model.mean_weighted_quantile_loss();
  if (!std::isfinite(score))
    return cat("no CRPS, which is a share of the true values: ",
               scores.model.observed() ? "all of them are 0" : "none of them was observed");
  auto text = cat("CRPS ", rounded(score, 4));
  std::vector<std::string> did;
  if (scores.start) {
    const double before = scores.start->mean_weighted_quantile_loss();
    text += cat(", at its start (", mechanism::start_cited(scores.start_origin), ") ", rounded(before, 4));
    did.push_back(evaluation::what_data_did(score, before));
  }
  if (const auto best = evaluation::best_free(scores)) {
    if (best->name == "start") text += ", the best that is free";
    else if (scores.start) {
      text += cat(", of the best that is free (", best->name, ") ", rounded(best->crps, 4));
      did.push_back(evaluation::beside_free(score, best->crps));
    } else {  // the start is free, too, where it rests on no data, and nothing is known of it
      text +=
          cat(", of the best baseline (", best->name, ") ", rounded(best->crps, 4), "; its start is not scored here");
    }
  }
  std::erase(did, "");
  return did.empty() ? text : cat(text, ": ", join(did, "; "));
}

namespace {

/// What a run's folder holds of one of its models.
struct RunFiles {
  bool best;
  std::filesystem::path checkpoint_file;
  training::Checkpoint checkpoint;
  nlohmann::ordered_json document;
  mechanism::Ledger ledger;  ///< as the document states it
  training::Charge charge;

  [[nodiscard]] bool finished() const { return ledger.state == mechanism::RunState::finished; }
};

RunFiles files_of(const training::RunFolder& folder, const Config& config, ExportedWeights which) {
  const bool best = which == ExportedWeights::best;
  if (best && config.privacy.enabled)
    throw PrivacyError(
        "--checkpoint: found best of a private run; weights chosen by losses without noise are covered by no theorem: "
        "expected last");
  auto file = best ? folder.best() : folder.last();
  auto checkpoint = training::load_checkpoint(file);
  if (!checkpoint)
    throw DataError(cat(file.string(), ": no such checkpoint; expected the folder of a run",
                        best ? " with training.checkpoint: best" : ""));
  auto document = parse_json(read_file(folder.ledger()), folder.ledger().string());
  auto ledger = mechanism::read_ledger(document, folder.ledger().string());
  return {best,
          std::move(file),
          std::move(*checkpoint),
          std::move(document),
          std::move(ledger),
          training::Charge(folder.charged())};
}

/// All files must belong to one run: the statement is about these weights.
void require_one_run(const training::RunFolder& folder, const Config& config, const RunFiles& files) {
  const auto& ledger = files.ledger;
  const auto run = training::run_charged_for(folder);
  for (const auto& [from, found] :
       {std::pair{folder.ledger(), ledger.run.id}, std::pair{folder.charged(), files.charge.run()},
        std::pair{files.checkpoint_file, files.checkpoint.run}})
    if (found != run)
      throw DataError(cat(from.string(), ": belongs to run ", found, "; the run in this folder is ", run,
                          ": put its own file back"));
  if (ledger.run.configuration != sha256(config_text(config)) ||
      training::config_charged_for(folder) != config_text(config))
    throw DataError(cat(
        folder.config().string(),
        ": is not the configuration that the run was charged for and its ledger names; put the run's own file back"));
  mechanism::require_terms_of(config, ledger, folder.ledger().string());
  if (ledger.run.key_print != files.charge.print())
    throw DataError(cat(folder.ledger().string(), ": names another key than ", folder.charged().string(),
                        "; resume the run, which writes both anew, or put the run's own file back"));
}

/// A finished run's last checkpoint must be that of its end.
void require_checkpoint_of_the_end(const RunFiles& files) {
  const auto& checkpoint = files.checkpoint;
  const auto& ledger = files.ledger;
  if (!files.best && files.finished() &&
      (checkpoint.step != ledger.steps_charged || checkpoint.step - checkpoint.given_up != ledger.steps_taken))
    throw DataError(cat(files.checkpoint_file.string(), ": is of step ", checkpoint.step, "; the run ended after ",
                        ledger.steps_charged, ": resume it, or put its own file back"));
}

/// The ledger must state the cost of every step, and nothing but what follows from its terms.
void require_whole_cost(const training::RunFolder& folder, const RunFiles& files) {
  if (const auto spent = std::max(files.charge.steps(), files.checkpoint.step); files.ledger.accounted_steps() < spent)
    throw PrivacyError(cat(folder.ledger().string(), ": states the cost of ", files.ledger.accounted_steps(),
                           " steps; ", spent, " are charged or taken: resume the run, which writes it anew"));
  if (const auto found = mechanism::verify(files.document, folder.ledger().string()); !found.agrees())
    throw PrivacyError(
        cat(folder.ledger().string(), ": ", found.differences.front(), "; put the ledger back that tsdp-train wrote"));
}

std::unique_ptr<models::Forecaster> model_with_weights(const training::RunFolder& folder, const Config& config,
                                                       const RunFiles& files) {
  auto model = training::model_of(config, at::TensorOptions(at::kFloat));
  initialise_as_stated(*model, folder, config, files.ledger);
  if (files.checkpoint.values.numel() != model->parameters().count())
    throw DataError(cat(files.checkpoint_file.string(), ": found ", files.checkpoint.values.numel(),
                        " parameters; expected ", model->parameters().count(), " for the run's configuration"));
  model->parameters().values().copy_(files.checkpoint.values);
  if (!model->parameters().values().isfinite().all().item<bool>())
    throw Error(ExitCode::failure,
                cat(files.checkpoint_file.string(), ": the weights are not finite, so there is no model"));
  return model;
}

exporting::ModelMetadata metadata_of_run(const Config& config, const models::Forecaster& model, const RunFiles& files) {
  const auto& checkpoint = files.checkpoint;
  const auto& ledger = files.ledger;
  auto stated = ledger;
  const bool was_killed = ledger.state == mechanism::RunState::running;
  if (was_killed) {  // after its last checkpoint and before its ledger followed; the ledger's cost is that of the whole
                     // plan
    stated.steps_taken = checkpoint.step - checkpoint.given_up;
    stated.steps_charged = std::max({ledger.steps_charged, files.charge.steps(), checkpoint.step});
  }
  auto out = metadata_of(config, model, was_killed ? mechanism::document(stated) : files.document);
  if (!files.finished())
    out.model["unfinished"] = {{"step", checkpoint.step - checkpoint.given_up}, {"of", ledger.steps_planned}};
  return out;
}

}  // namespace

RunModel model_of_run(const training::RunFolder& folder, const Config& config, ExportedWeights which,
                      Unfinished unfinished) {
  const auto files = files_of(folder, config, which);
  require_one_run(folder, config, files);
  require_checkpoint_of_the_end(files);
  require_whole_cost(folder, files);
  if (!files.finished() && unfinished == Unfinished::refuse)
    throw PrivacyError(cat(folder.root.string(), ": the run is not finished (", files.ledger.steps_taken, " of ",
                           files.ledger.steps_planned,
                           " steps taken); expected tsdp-train --resume first, or --unfinished with tsdp-export"));
  RunModel out;
  out.model = model_with_weights(folder, config, files);
  out.sampled_forecasts = config.model.sampled_forecasts;
  out.metadata = metadata_of_run(config, *out.model, files);
  return out;
}

}  // namespace tsdp::cli
