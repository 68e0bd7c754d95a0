// Weights that a run may start from: those of an earlier run, or shipped ones.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tsdp/ledger/exported_model.h"
#include "tsdp/ledger/ledger.h"
#include "tsdp/settings/config.h"

namespace tsdp::mechanism {

/// Weights and where they come from.
struct StartWeights {
  std::filesystem::path file;
  std::string bytes;  ///< tsdp.safetensors: the weights with model.json and privacy.json
  ExportedModel content;
  StartOrigin origin;
  std::string sha256;  ///< of `bytes`
};

/// Reads a model.pt, or the extra/tsdp.safetensors of one. Verifies its ledger. Throws DataError that names the file.
[[nodiscard]] StartWeights read_start(const std::filesystem::path& file);

/// What a run that begins with `weights` (none: fresh ones), beside `networks`, states about its start.
[[nodiscard]] Start start_of(const Config& config, const std::optional<StartWeights>& weights,
                             const std::vector<StartWeights>& networks);

/// Why a model of `config` cannot start from `weights`, as "name: found dlinear; the weights are of simple_ff"; none if
/// it can. It must be the same model for the same frequency, prior, season, lags, width and context; its forecasts may
/// be shorter. A context that is not settled yet fits any.
[[nodiscard]] std::optional<std::string> misfit(const Config& config, const StartWeights& weights);

/// The context length of the weights.
[[nodiscard]] std::int64_t context_length_of(const StartWeights& weights);

/// Shipped weights: starts/NAME.safetensors of the project. Those that starts/tried.txt names did no worse than their
/// prior alone on every public set tried.
struct ShippedStart {
  StartWeights weights;
  bool did_no_worse = false;
};
/// The shipped weights in the order of their names; none if the program has no project around it. Throws DataError.
[[nodiscard]] std::vector<ShippedStart> shipped_starts();

/// The weights that model.start of `config` asks for; none: fresh ones. If several shipped ones fit (their context may
/// differ, if it is not settled), the one for the shortest forecasts is taken; `auto` takes none that reads more than
/// `most_context` steps, for series that hold no more. Throws UsageError if `pretrained` is asked for and none fits,
/// naming those that are shipped, or if a file's weights do not fit; DataError for a file that is missing or cannot be
/// read.
[[nodiscard]] std::optional<StartWeights> find_start(
    const Config& config, const std::filesystem::path& config_file,
    std::int64_t most_context = std::numeric_limits<std::int64_t>::max());

/// How many steps of the series of `config` one of a network with these weights takes: several where weights are of a
/// longer step of seconds, minutes, hours or days that theirs divides; else 1.
[[nodiscard]] std::int64_t steps_of_network(const Config& config, const StartWeights& weights);
/// How many values of a series it reads.
[[nodiscard]] std::int64_t values_read_by(const Config& config, const StartWeights& weights);

/// `config` for the model that `weights` belong to, in place of its own: a network beside it, with lengths in its own
/// steps.
[[nodiscard]] Config config_of_network(const Config& config, const StartWeights& weights);

/// The weights of the networks that model.candidates of `config` names, in that order; their file names stand in
/// `config` for other_starts, which are the shipped weights of all other models that fit, one a model, that read no
/// time features and at most `most_context` steps; for a step that none are shipped for, those of longer steps, one of
/// each model and step. Throws UsageError for weights of a step that is no multiple, of another season or covariates,
/// or of fewer steps to forecast, and as `check_candidates` does; PrivacyError for weights that rest on data, which no
/// statement of the run would cover; DataError for a file that is missing or cannot be read.
[[nodiscard]] std::vector<StartWeights> find_networks(
    Config& config, const std::filesystem::path& config_file,
    std::int64_t most_context = std::numeric_limits<std::int64_t>::max());

}  // namespace tsdp::mechanism
