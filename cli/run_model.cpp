#include "run_model.h"

#include "tsdp/core/error.h"
#include "tsdp/core/file.h"
#include "tsdp/core/text.h"
#include "tsdp/core/version.h"
#include "tsdp/training/model_setup.h"

namespace tsdp::cli {

exporting::ModelMetadata metadata_of(const Config& config, const models::Forecaster& model,
                                     const nlohmann::ordered_json& ledger) {
  nlohmann::ordered_json about;
  about["format"] = "tsdp-model-1";
  about["program"] = cat("tsdp ", version());
  about["name"] = model.name();
  about["past_length"] = model.past_length();
  about["prediction_length"] = model.options().prediction_length;
  about["frequency"] = config.dataset.frequency;
  about["time_features"] = nlohmann::ordered_json::array();
  if (model.reads_time_features())
    about["time_features"] = data::window_feature_names(data::Frequency::parse(config.dataset.frequency));
  about["parameters"] = model.parameters().count();
  return {std::move(about), ledger};
}

RunModel model_of_run(const training::RunFolder& folder, const Config& config, const std::string& which) {
  const auto file = which == "best" ? folder.best() : folder.last();
  const auto checkpoint = training::load_checkpoint(file);
  if (!checkpoint)
    throw DataError(cat(file.string(), ": no such checkpoint; expected the folder of a run",
                        which == "best" ? " with training.checkpoint: best" : ""));
  nlohmann::ordered_json ledger;
  try {
    ledger = nlohmann::ordered_json::parse(read_file(folder.ledger()));
  } catch (const nlohmann::json::exception&) {
    throw DataError(cat(folder.ledger().string(), ": not JSON; expected the ledger that tsdp-train wrote"));
  }
  if (which == "best" && ledger.contains("not_covered") && config.training.checkpoint != "best")
    ledger["not_covered"].push_back("the choice of the checkpoint by validation loss");
  const auto model = training::model_of(config, at::TensorOptions(at::kFloat));
  if (checkpoint->values.numel() != model->parameters().count())
    throw DataError(cat(file.string(), ": found ", checkpoint->values.numel(), " parameters; expected ",
                        model->parameters().count(), " for the run's configuration"));
  model->parameters().values().copy_(checkpoint->values);
  return {exporting::make_module(*model, config.model.sampled_forecasts), metadata_of(config, *model, ledger)};
}

}  // namespace tsdp::cli
