// What ranks tell each other before they train together: public facts, so that all of them plan the same run.
#pragma once

#include <functional>

#include "training/ranks.h"
#include "tsdp/settings/auto_settings.h"
#include "tsdp/settings/configured.h"

namespace tsdp::training {

/// The key by which a run's windows are drawn, if `shared` is what its ranks share: it tells nothing of `shared`, and
/// changes with the key of the run's noise, so that steps under another key of noise draw other windows, too.
/// `key_print`: of that key, which is public.
[[nodiscard]] SecretKey sampling_key_of(const SecretKey& shared, const std::string& key_print);

/// What the ranks of a run share: a key that follows from the seed if the run is reproducible, else their own; none if
/// one process has none.
[[nodiscard]] std::optional<SecretKey> shared_sampling_key(const Config& config, const Ranks& ranks);

/// Reads a key that ranks share: 64 hexadecimal digits in a file that nobody but its owner may read. Throws UsageError
/// or DataError that name `option`.
[[nodiscard]] SecretKey read_shared_key(const std::string& option, const std::filesystem::path& file);

/// The data that `read` reads for this rank, with the lengths of the series of all files. The ranks tell rank 0 the
/// lengths of their series, their environment, and of their values a digest that only those who know the sampling key
/// can compare, so that a resumed run finds out whether any of it changed. Rank 0 passes the lengths on. Throws on
/// every rank if one finds its own files or settings wrong, whose line, which may quote data, stays there; or if what
/// the ranks told does not fit.
[[nodiscard]] data::PreparedData shared_data(const std::function<data::PreparedData(data::Rank)>& read, Ranks& ranks);

/// What the bits of a step depend on if other ranks sum some of the files: `own`, if all of them are alike.
[[nodiscard]] std::string environment_of_ranks(const std::string& own, const data::Shards& shards);

/// Throws UsageError, on every rank, unless all ranks have settled the same run, for the same purpose. What names files
/// may differ, what start and networks hold may not.
void require_one_run(const mechanism::SettledScheme& settled, const std::string& purpose, Ranks& ranks);

}  // namespace tsdp::training
