// The one way from a configuration and public facts to what a run does.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "tsdp/ledger/ledger.h"
#include "tsdp/mechanism/training_method.h"
#include "tsdp/settings/config.h"

namespace tsdp::mechanism {

/// L_C of the accountant: how many past steps can influence the gradient of a window. Lags reach beyond the context by
/// max(lag) − 1 (GluonTS counts lag 1 as the newest known value).
[[nodiscard]] std::int64_t accounted_context(const Config& config);

/// The subsampling scheme of a configuration for training series of the given lengths; and the unit of its privacy.
[[nodiscard]] privacy::SubsamplingScheme scheme_of(const Config& config, privacy::SeriesLengths training_lengths);
[[nodiscard]] privacy::PrivacyUnit unit_of(const Config& config, const privacy::SeriesLengths& training_lengths);

/// The series of format synthetic; none for any other format.
[[nodiscard]] std::optional<SyntheticData> synthetic_data_of(const Config& config);

/// The strategy matrix of correlated noise that `config` names, for all its epochs; none for independent noise, and for
/// `auto`.
[[nodiscard]] std::shared_ptr<const privacy::Strategy> planned_strategy_of(const Config& config,
                                                                           const privacy::SubsamplingScheme& scheme);

/// What `config` says of a test that its noise passed; none for `auto` and without one.
[[nodiscard]] std::optional<privacy::SampledClaim> sampled_claim_of(const Config& config);

/// What a run of `config` does. A noise multiplier `auto` becomes the least that spends the target epsilon over
/// max_epochs. Throws PrivacyError (exit 4) if no theorem covers the scheme, UsageError for contradictions.
[[nodiscard]] TrainingMethod method_of(const Config& config, privacy::SeriesLengths training_lengths);

/// Writes the noise and composition of `mechanism` into `config` in place of `auto`: another program might calibrate,
/// or choose, differently.
void keep_choices(Config& config, const PrivateMechanism& mechanism);

/// Whether a run of `config` takes any step: with a target of 0 it releases the start.
[[nodiscard]] bool takes_steps(const Config& config);

/// Uses that max_epochs epochs cost at most. Throws UsageError if they are more than are accounted for.
[[nodiscard]] std::uint64_t uses_of_epochs(const privacy::AppliedTheorem& theorem, std::int64_t max_epochs);

/// Throws DataError that begins with `where` and names the first term of `ledger` that differs from what a run of
/// `config` has: a ledger's statement is about the configuration next to it.
void require_terms_of(const Config& config, const Ledger& ledger, const std::string& where);

}  // namespace tsdp::mechanism
