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
  about["past_length"] = model.past_length();
  about["prediction_length"] = model.options().prediction_length;
  about["frequency"] = data::Frequency::parse(config.dataset.frequency).text();
  about["time_features"] = nlohmann::ordered_json::array();
  if (model.reads_time_features())
    about["time_features"] =
        data::window_feature_names(data::Frequency::parse(config.dataset.frequency), config.dataset.covariate_columns);
  if (!config.dataset.covariate_columns.empty()) about["covariates"] = config.dataset.covariate_columns;
  about["parameters"] = model.parameters().count();
  return {std::move(about), ledger};
}

nlohmann::ordered_json epsilon_covers(const nlohmann::ordered_json& ledger) {
  auto out = nlohmann::ordered_json::array();
  if (ledger.value("private", false)) out.push_back("model");
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

evaluation::Metrics scores_of_start(const training::RunFolder& folder, const Config& config,
                                    const data::PreparedData& data, std::span<const data::ForecastRange> ranges,
                                    const nlohmann::ordered_json& ledger) {
  const auto start = mechanism::find_start(config, folder.config());
  if (mechanism::read_ledger(ledger, folder.ledger().string()).start != mechanism::start_of(config, start))
    throw DataError(cat(folder.config().string(),
                        ": model.start: found other weights than the run began with; put the run's own ",
                        config.model.start, " back"));
  auto model = training::model_of(config, at::TensorOptions(at::kFloat));
  training::initialise(*model, config.training.seed, start);
  auto module = exporting::make_module(*model, config.model.sampled_forecasts);
  return evaluation::backtest(module, data.dataset, ranges, config.dataset.season_length, at::kCPU).model;
}

std::string what_data_added(const evaluation::Metrics& model, const evaluation::Metrics& start,
                            mechanism::StartOrigin origin, const evaluation::Metrics& naive) {
  const double score = model.mean_weighted_quantile_loss();
  const double before = start.mean_weighted_quantile_loss();
  auto text = cat("CRPS ", rounded(score, 4), ", at its start (", mechanism::start_cited(origin), ") ",
                  rounded(before, 4), ", of seasonal naive ", rounded(naive.mean_weighted_quantile_loss(), 4));
  if (!std::isfinite(score)) text += ", as all true values are 0, of which no loss is a share";
  if (const auto did = evaluation::what_data_did(score, before); !did.empty()) text += cat(": ", did);
  return text;
}

RunModel model_of_run(const training::RunFolder& folder, const Config& config, ExportedWeights which,
                      Unfinished unfinished) {
  const bool best = which == ExportedWeights::best;
  if (best && config.privacy.enabled)
    throw PrivacyError(
        "--checkpoint: found best of a private run; weights chosen by losses without noise are covered by no theorem: "
        "expected last");
  const auto file = best ? folder.best() : folder.last();
  const auto checkpoint = training::load_checkpoint(file);
  if (!checkpoint)
    throw DataError(cat(file.string(), ": no such checkpoint; expected the folder of a run",
                        best ? " with training.checkpoint: best" : ""));
  const auto json = parse_json(read_file(folder.ledger()), folder.ledger().string());
  const auto ledger = mechanism::read_ledger(json, folder.ledger().string());
  // All files must belong to one run: the statement is about these weights.
  const training::Charge charge(folder.charged());
  const auto run = training::run_charged_for(folder);
  for (const auto& [from, found] : {std::pair{folder.ledger(), ledger.run.id},
                                    std::pair{folder.charged(), charge.run()}, std::pair{file, checkpoint->run}})
    if (found != run)
      throw DataError(cat(from.string(), ": belongs to run ", found, "; the run in this folder is ", run,
                          ": put its own file back"));
  if (ledger.run.configuration != sha256(config_text(config)) ||
      training::config_charged_for(folder) != config_text(config))
    throw DataError(cat(
        folder.config().string(),
        ": is not the configuration that the run was charged for and its ledger names; put the run's own file back"));
  mechanism::require_terms_of(config, ledger, folder.ledger().string());
  if (ledger.run.key_print != charge.print())
    throw DataError(cat(folder.ledger().string(), ": names another key than ", folder.charged().string(),
                        "; resume the run, which writes both anew, or put the run's own file back"));
  if (!best && ledger.state == mechanism::RunState::finished &&
      (checkpoint->step != ledger.steps_charged || checkpoint->step - checkpoint->given_up != ledger.steps_taken))
    throw DataError(cat(file.string(), ": is of step ", checkpoint->step, "; the run ended after ",
                        ledger.steps_charged, ": resume it, or put its own file back"));
  if (ledger.state == mechanism::RunState::finished && ledger.method.choice_epsilon() > 0.0 && checkpoint->key)
    throw DataError(
        cat(file.string(),
            ": is of the time before the private choice; resume the run, which makes it, or put its own file back"));
  if (ledger.accounted_steps() < std::max(charge.steps(), checkpoint->step))
    throw PrivacyError(cat(folder.ledger().string(), ": states the cost of ", ledger.accounted_steps(), " steps; ",
                           std::max(charge.steps(), checkpoint->step),
                           " are charged or taken: resume the run, which writes it anew"));
  if (const auto found = mechanism::verify(json, folder.ledger().string()); !found.agrees())
    throw PrivacyError(
        cat(folder.ledger().string(), ": ", found.differences.front(), "; put the ledger back that tsdp-train wrote"));
  if (ledger.state != mechanism::RunState::finished && unfinished == Unfinished::refuse)
    throw PrivacyError(cat(folder.root.string(), ": the run is not finished (", ledger.steps_taken, " of ",
                           ledger.steps_planned,
                           " steps taken); expected tsdp-train --resume first, or --unfinished with tsdp-export"));
  RunModel out;
  out.model = training::model_of(config, at::TensorOptions(at::kFloat));
  if (checkpoint->values.numel() != out.model->parameters().count())
    throw DataError(cat(file.string(), ": found ", checkpoint->values.numel(), " parameters; expected ",
                        out.model->parameters().count(), " for the run's configuration"));
  out.model->parameters().values().copy_(checkpoint->values);
  if (!out.model->parameters().values().isfinite().all().item<bool>())
    throw Error(ExitCode::failure, cat(file.string(), ": the weights are not finite, so there is no model"));
  out.sampled_forecasts = config.model.sampled_forecasts;
  auto stated = ledger;
  const bool was_killed = ledger.state == mechanism::RunState::running;
  if (was_killed) {  // after its last checkpoint and before its ledger followed; the ledger's cost is that of the whole
                     // plan
    stated.steps_taken = checkpoint->step - checkpoint->given_up;
    stated.steps_charged = std::max({ledger.steps_charged, charge.steps(), checkpoint->step});
  }
  out.metadata = metadata_of(config, *out.model, was_killed ? mechanism::document(stated) : json);
  if (ledger.state != mechanism::RunState::finished)
    out.metadata.model["unfinished"] = {{"step", checkpoint->step - checkpoint->given_up},
                                        {"of", ledger.steps_planned}};
  return out;
}

}  // namespace tsdp::cli
