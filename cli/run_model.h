// Steps that programs share: from a run's folder to its model.
#pragma once

#include <filesystem>
#include <string>

#include "tsdp/core/config.h"
#include "tsdp/export/torchscript.h"
#include "tsdp/training/checkpoint.h"

namespace tsdp::cli {

/// What an exported model says of itself.
[[nodiscard]] exporting::ModelMetadata metadata_of(const Config& config, const models::Forecaster& model,
                                                   const nlohmann::ordered_json& ledger);

/// The model of a checkpoint ("last" or "best") of a run, with the run's ledger. Throws DataError.
struct RunModel {
  torch::jit::Module module;
  exporting::ModelMetadata metadata;
};
[[nodiscard]] RunModel model_of_run(const training::RunFolder& folder, const Config& config, const std::string& which);

}  // namespace tsdp::cli
