#include "export/candidates.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "evaluation/series_forecast.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/evaluation/backtest.h"
#include "tsdp/export/torchscript.h"
#include "tsdp/ledger/exported_model.h"
#include "tsdp/ledger/ledger.h"

namespace tsdp::exporting {
namespace {

/// What the ledger says of the training, if the weights rest on data; else empty.
std::string statement_of(const nlohmann::ordered_json& ledger, const std::string& file) {
  const auto origin = mechanism::origin_of_weights(mechanism::read_ledger(ledger, cat(file, ": privacy.json")));
  return mechanism::rests_on_data(origin) ? ledger.value("statement", std::string("no privacy statement")) : "";
}

/// Throws UsageError unless the model forecasts the windows of `dataset` that a mixture with this horizon needs.
void require_fit(const LoadedModel& model, const std::string& file, const data::Dataset& dataset,
                 std::int64_t horizon) {
  const auto& about = model.metadata.model;
  const auto refuse = [&](const auto&... parts) { throw UsageError(cat("candidates: ", file, ": ", parts...)); };
  if (const auto own = evaluation::shape_of(model.module).prediction_length; own != horizon)
    refuse("found a model that forecasts ", own, " steps; expected one of ", horizon,
           ", as the model it is mixed with");
  if (const auto step = about.value("frequency", std::string());
      step.empty() || data::Frequency::parse(step) != dataset.frequency)
    refuse("found a model of series of ", step.empty() ? "no stated step" : step, "; expected one of ",
           dataset.frequency.text());
  if (const auto names = mechanism::covariates_of(about, file); !names.empty() && names != dataset.covariates.names)
    refuse("found a model that reads the covariates ", join(names, ", "), "; expected those of the data set, ",
           dataset.covariates.names.empty() ? std::string("which has none") : join(dataset.covariates.names, ", "));
  else if (names.empty() && evaluation::shape_of(model.module).time_features > 0 && !dataset.covariates.names.empty())
    refuse("found a model that reads time features and no covariates, and the data set has covariates (",
           join(dataset.covariates.names, ", "),
           "); not implemented: expected a model that reads them, or another one");
  if (const auto names = mechanism::variables_of(about, file); !names.empty() && names != dataset.variables)
    refuse("found a model that forecasts the variables ", join(names, ", "),
           " together; expected those of the data set, ",
           dataset.variables.empty() ? std::string("which has one") : join(dataset.variables, ", "));
  if (model.module.hasattr("external") && model.module.attr("external").isList() &&
      !model.module.attr("external").toListRef().empty())
    refuse("found a model that is mixed with forecasts of other programs; expected one that needs none");
}

}  // namespace

void add_forecasts_of_models(data::Dataset& dataset, std::span<const data::WindowIndex> indices,
                             const torch::jit::Module& mixed, const at::Device& device) {
  for (auto& external : dataset.external) {
    if (!external->is_model()) continue;
    const auto horizon = evaluation::shape_of(mixed).prediction_length;
    auto model = load_model(external->file, device);
    require_fit(model, external->file.string(), dataset, horizon);
    auto filled = std::make_shared<data::ExternalForecasts>(*external);
    filled->statement = statement_of(model.metadata.privacy, external->file.string());
    for (const auto& places : evaluation::ExternalWindows(mixed, dataset, nullptr).judged(indices)) {
      std::vector<data::WindowIndex> missing;
      for (const auto& place : places)
        if (!filled->windows.contains({place.series, place.start})) missing.push_back(place);
      auto found = evaluation::window_forecasts(model.module, dataset, missing, device);
      for (std::size_t i = 0; i < missing.size(); ++i)
        filled->windows.insert_or_assign({missing[i].series, missing[i].start}, std::move(found[i]));
    }
    external = std::move(filled);
  }
}

}  // namespace tsdp::exporting
