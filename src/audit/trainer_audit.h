// Attacks on the assembled trainer; docs/auditing.md describes the method.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "audit/statistics.h"
#include "tsdp/privacy/terms/scheme.h"
#include "tsdp/settings/config.h"

namespace tsdp::audit {

enum class Mode {
  canary,  ///< the audit's own forecaster, with worst-case gradients (audit/canary.h)
  data,    ///< the configured forecaster at its initial weights, on extreme data
};
[[nodiscard]] const char* name(Mode value);  // "canary", "data"

struct AuditOptions {
  Mode mode = Mode::canary;
  std::uint64_t trials = 20'000;  ///< uses on each of the two data sets, ≥ 2
  double confidence = 0.95;       ///< in (0, 1)
  std::optional<std::string> theorem = std::nullopt;  ///< row to check against; none: the one training rests on
  std::function<void(double share)> progress = {};    ///< called now and then with the share done; may be empty
  const std::atomic<bool>* stop = nullptr;            ///< set by a signal: `measure` ends with Stopped
};

/// A stop was asked for.
struct Stopped {};

/// What ran, and what it showed.
struct Measurement {
  Observations uses;
  double unit_length =
      1.0;    ///< canary: what clipping leaves of a long gradient in a step without noise, in multiples of C
  std::optional<Shape> shape;  ///< data: approximate law of the releases, from the gradients of single windows
  std::string model;
  std::int64_t parameters = 0;
};

/// Takes uses of the trainer that `config` describes, on two neighbouring data sets of series of `lengths` made for the
/// purpose: sampling, relation, clipping, noise and noise on the data are those of the configuration, the values are
/// not. Where records are series, one of them, or all of an owner, is missing from one of the data sets.
///
/// On each data set a training::Trainer runs in a temporary folder, which is removed, with a key of its own
/// (`reproducible`: from seed and seed + 1) and a learning rate so small that weights stay as they are. A use is a
/// step, the step of an epoch in which the changed series is due, or that of a round, with what the next releases show
/// of it if noise is correlated. The attacker sees the release of the step (the noisy clipped sum over Λ, or over the
/// expected number of series): in mode canary two coordinates of it, in mode data its projection on the direction in
/// which the clipped gradients of touched windows differ most.
///
/// Throws UsageError for a run that is not private or values out of range, PrivacyError if no theorem covers it or its
/// steps are no independent uses, and Stopped.
[[nodiscard]] Measurement measure(const Config& config, const privacy::SeriesLengths& lengths,
                                  const AuditOptions& options);

/// What is certified for a run of `config` on series of `lengths`: by the theorem and the plan of training::Trainer, or
/// by the theorem named in the options. Throws as `measure`.
[[nodiscard]] Claim claim_of(const Config& config, const privacy::SeriesLengths& lengths, const AuditOptions& options,
                             const Measurement& measurement);

/// The result as the program prints it.
[[nodiscard]] nlohmann::ordered_json to_json(const Claim& claim, const Measurement& measurement, const Verdict& verdict,
                                             const AuditOptions& options);

}  // namespace tsdp::audit
