// What an exported model says of itself, read as data: no code of its archive is looked at.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "tsdp/base/tensor_file.h"

namespace tsdp::mechanism {

/// The parts of model.pt that are data.
struct ExportedModel {
  TensorFile data;                 ///< weights, and the texts below under one checksum
  nlohmann::ordered_json model;    ///< name, lengths, sizes
  nlohmann::ordered_json privacy;  ///< the ledger
};

/// Whether the ledger must agree with its own terms (`verify`).
enum class LedgerCheck {
  verified,
  unverified
};

/// Reads extra/tsdp.safetensors of an archive. The copies of its texts that Python shows must be the same, and its weights must
/// be those of the TorchScript module beside it (every tensor is one of the archive's data/). Throws DataError that names the
/// file and what is wrong.
[[nodiscard]] ExportedModel read_exported_model(const std::filesystem::path& file, LedgerCheck check = LedgerCheck::verified);

/// The same of the bytes of tsdp.safetensors alone, which need no archive around them. `where` begins complaints.
[[nodiscard]] ExportedModel read_model_data(std::string_view bytes, const std::string& where, LedgerCheck check = LedgerCheck::verified);

/// Names of the covariates that a model is told of, in its order; `about` is its model.json. Throws DataError, beginning with `where`, where they are
/// no texts.
[[nodiscard]] std::vector<std::string> covariates_of(const nlohmann::ordered_json& about, const std::string& where);

}  // namespace tsdp::mechanism
