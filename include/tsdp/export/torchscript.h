// The released model: a TorchScript module that carries its privacy statement.
#pragma once

#include <filesystem>
#include <optional>

#include <torch/csrc/jit/api/module.h>
#include <nlohmann/json.hpp>

#include "models/forecaster.h"
#include "tsdp/ledger/exported_model.h"

namespace tsdp::exporting {

/// What an exported model states about itself.
struct ModelMetadata {
  nlohmann::ordered_json model;    ///< name, past_length, prediction_length, frequency, program, sizes
  nlohmann::ordered_json privacy;  ///< the ledger
};

/// P: how many past values a forecast reads; more than the network where it is mixed with other candidates.
[[nodiscard]] std::int64_t forecast_past_length(const models::Forecaster& model);

/// A module with
///   forward(past_target: Tensor (B, any), past_observed: Tensor (B, any), levels: Tensor (Q) in (0, 1) = 0.1 … 0.9,
///           time_features: Tensor (B, any + H, F) = None, draws: Tensor (B, S, H, 2) in (0, 1] = None,
///           num_samples: int = 100, external: Tensor (B, J + 1, E, 10, H) = None)
///     -> (quantiles (B, Q, H), mean (B, H), samples (B, S, H)), in units of the data, any batch size.
/// Longer pasts are cut to the last P values, shorter ones padded in front; NaN counts as unobserved. Sample paths come
/// from the uniform `draws`, or from `num_samples` that the module draws. Only models that read time features need
/// them. The network's quantiles and means are those of the distribution where it is known at each step; for models
/// that sample paths, and for all models if `sampled_forecasts`, they are order statistics and means of the samples.
/// Where the model's options have a mixture, they are mixed as it says (tsdp/settings/mixture.h), with `external` as
/// the forecasts of other programs (models/mixture.h; NaN or None: not known). All are cut at the
/// model's bounds. Models of the first kind also have
///   distribution(past_target, past_observed) -> (df, loc, scale (B, H), affine_scale (B, 1))
/// of a past that is as long as the network reads.
/// The weights are a copy.
[[nodiscard]] torch::jit::Module make_module(const models::Forecaster& model, bool sampled_forecasts = false);

/// Writes a TorchScript archive of make_module(model, sampled_forecasts). TorchScript is a program that runs when the
/// archive is loaded, so the archive also carries, under extra/, what is needed to use the model without running it:
///   extra/tsdp.safetensors: weights, model.json and privacy.json as data, under one checksum (base/tensor_file.h),
///   extra/model.json, extra/privacy.json: the same texts, for those who load it in Python.
/// The sizes that the model is built from are added to `metadata.model` as "sizes". Atomic. Throws Error.
void save_model(const models::Forecaster& model, bool sampled_forecasts, ModelMetadata metadata,
                const std::filesystem::path& file);

/// A model as programs use it.
struct LoadedModel {
  torch::jit::Module module;
  ModelMetadata metadata;
};
/// Whether code in an archive may run: it can do whatever the user may, files included.
enum class ArchiveCode {
  never,
  run
};

/// With ArchiveCode::never, this program's own code builds the model anew from the archive's data; the archive's code
/// is not even parsed. With ArchiveCode::run, the archive's code is loaded, for models that this program does not know.
/// Every member's CRC, the checksum of the data, types, sizes and, unless told not to, the ledger are checked. Throws
/// DataError that names `file` and what is wrong with it.
[[nodiscard]] LoadedModel load_model(const std::filesystem::path& file, const at::Device& device,
                                     ArchiveCode code = ArchiveCode::never,
                                     mechanism::LedgerCheck check = mechanism::LedgerCheck::verified);

}  // namespace tsdp::exporting
