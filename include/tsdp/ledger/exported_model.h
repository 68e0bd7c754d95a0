// What an exported model states about itself, read as data: none of the code in its archive is read.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "tsdp/base/tensor_file.h"

namespace tsdp::mechanism {

/// Before the names of the weights that training began with, where they are part of the model (Candidate::start).
inline constexpr std::string_view start_prefix = "start.";
/// Before the number and the weights' names of each other network, with a point: network.0.mlp.weight.
inline constexpr std::string_view network_prefix = "network.";
/// Before what was trained of a mixture (models/mixture.h).
inline constexpr std::string_view mixture_prefix = "mixture.";

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

/// Reads extra/tsdp.safetensors of an archive. The copies of its texts that Python shows must be identical, and its
/// weights must be those of the TorchScript module next to it (every tensor is one of the archive's data/). Throws
/// DataError that names the file and what is wrong.
[[nodiscard]] ExportedModel read_exported_model(const std::filesystem::path& file,
                                                LedgerCheck check = LedgerCheck::verified);

/// The ledger in a model.
struct CarriedLedger {
  nlohmann::ordered_json privacy;
  bool ties_weights = false;  ///< whether the file's weights are under one checksum with it: those of a model.pt
};
/// Reads the ledger that a model carries in any format of tsdp-export. The first bytes tell a zip archive from ONNX. An
/// archive is one of torch.export if it says so and holds nothing for torch.jit.load; any other is a model.pt, and must
/// be as read_exported_model wants it. The ledger need not agree with its terms. Throws DataError that names the file
/// and what is wrong.
[[nodiscard]] CarriedLedger carried_ledger(const std::filesystem::path& file);

/// Reads the same from the bytes of tsdp.safetensors alone, without an archive around them. Error messages begin with
/// `where`.
[[nodiscard]] ExportedModel read_model_data(std::string_view bytes, const std::string& where,
                                            LedgerCheck check = LedgerCheck::verified);

/// Names of the covariates that a model is given, in its order; `about` is its model.json. Throws DataError, beginning
/// with `where`, if they are not texts.
[[nodiscard]] std::vector<std::string> covariates_of(const nlohmann::ordered_json& about, const std::string& where);
/// The same of the variables of a series that a model forecasts together; none if it forecasts each by itself.
[[nodiscard]] std::vector<std::string> variables_of(const nlohmann::ordered_json& about, const std::string& where);

}  // namespace tsdp::mechanism
