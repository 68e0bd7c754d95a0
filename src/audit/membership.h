// Whether one can tell from a trained model that a household was among its data: a likelihood-ratio attack on the
// weights that a run releases, beside what the run's epsilon allows. docs/auditing.md describes the method.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tsdp/privacy/terms/curve.h"
#include "tsdp/settings/auto_settings.h"
#include "tsdp/settings/configured.h"

namespace tsdp::audit {

struct MembershipOptions {
  std::uint64_t models = 200;  ///< trained in all, half of them without the target; a multiple of 4, ≥ 8
  double confidence = 0.95;    ///< in (0, 1)
  std::optional<std::string> target = std::nullopt;  ///< name of a series; none: the one that stands out most
  std::function<void(double share)> progress = {};   ///< called after every model with the share done; may be empty
  const std::atomic<bool>* stop = nullptr;           ///< set by a signal: `attack_membership` ends with Stopped
};

/// What the attack reaches. It is computed from true values, so no epsilon covers it.
struct MembershipVerdict {
  std::string target;          ///< the attacked series; with owners, all series of its owner are
  std::uint64_t models = 0;    ///< tried by the test, half of them without the target
  double true_positives = 0.0;   ///< share of models with the target that the test says were trained with it
  double false_positives = 0.0;  ///< the same of models without it
  privacy::Interval advantage{0.0, 0.0};  ///< true- less false-positive rate: a bracket at the confidence asked for
  /// What no attack on this run passes: 1 without privacy, and where the relation protects values and not a series.
  double bound = 1.0;
  std::string not_counted;  ///< what the bound leaves out of the run's start (mechanism::not_counted_of_start)
  bool reproducible = false;  ///< the bound is about whoever does not know the seed
  std::size_t series = 1;     ///< that are absent together: with owners, those of the target's owner
  [[nodiscard]] bool contradicted() const { return advantage.lower > bound; }
};

/// Trains the run that `run` describes `models` times on `data`, every other time without the target: its values are
/// missing then, so that it contributes nothing (the neighbour of relation series). The attacker knows everything but
/// whether the target was there, and the keys: the statistic is the mean loss of the target's training windows under
/// the weights, its laws with and without the target are normal, fitted to half of the models (Carlini et al. 2022,
/// LiRA), and the test is the threshold of their ratio that tells best there. The other half is tried. Every model has
/// a key of its own; reproducible runs have those of training.seed, training.seed + 1 and so on.
///
/// Throws UsageError for a target that is not there and values out of range, as Trainer does, and Stopped.
[[nodiscard]] MembershipVerdict attack_membership(const mechanism::Settled& run, const data::PreparedData& data,
                                                  const MembershipOptions& options);

/// The verdict of the test on losses of models trained with and without the target, as many of each, in the order in
/// which they were trained: the first half of each fits the test, the other half tries it. The bracket holds with
/// probability `confidence`, by Clopper and Pearson's ends; `bound` as in MembershipVerdict.
[[nodiscard]] MembershipVerdict judge_membership(const std::vector<double>& with, const std::vector<double>& without,
                                                 double bound, double confidence);

/// The result as the program prints it.
[[nodiscard]] nlohmann::ordered_json to_json(const MembershipVerdict& verdict, const MembershipOptions& options);

}  // namespace tsdp::audit
