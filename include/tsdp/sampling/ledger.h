// The privacy ledger of a run: what was done, what it costs, and what it does not cover. It is written from the mechanism
// that ran, and read back to derive its epsilon again from its own terms.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tsdp/privacy/attack.h"
#include "tsdp/privacy/interval.h"
#include "tsdp/sampling/mechanism.h"
#include "tsdp/sampling/scheme.h"

namespace tsdp::sampling {

enum class RunState { running, interrupted, finished };

/// What ties the files of a run together. None of it is secret.
struct RunIdentity {
  std::string id;             ///< 32 random hexadecimal digits
  std::string key_print;      ///< tells keys apart: 16 digits of a SHA-256 of the key
  std::string configuration;  ///< SHA-256 of config.yaml

  bool operator==(const RunIdentity&) const = default;
};

/// What a private run adds to a ledger.
struct LedgerPrivacy {
  std::string theorem;
  PrivacyUnit unit;
  double noise_multiplier = 1.0;
  double clip_norm = 1.0;
  std::string clipping;  ///< flat, per_layer or automatic
  double delta = 0.0;
  double target_epsilon = 0.0;
  privacy::Interval epsilon;
  std::optional<privacy::AttackBound> attack;
};

/// The terms of a ledger. While a run is going on it states the cost of the whole plan, so that it never understates
/// whatever a crash leaves; afterwards the cost of the steps charged.
struct Ledger {
  std::string program;
  RunState state = RunState::running;
  RunIdentity run;
  bool reproducible = false;  ///< the key follows from a seed that others may know: not for release
  // The sampling law. Of the lengths the shortest and the longest decide, for the paper's rows: touched shares and Poisson
  // rates are largest for the shortest series, numbers of touched windows for the longest. Not so for tsdp.1 and tsdp.2.
  std::int64_t sequences = 1, shortest = 1, longest = 1;
  std::int64_t context_length = 1, forecast_length = 1, batch_size = 1, subsequences_per_sequence = 1;
  TopLevel top_level = TopLevel::without_replacement;
  BottomLevel bottom_level = BottomLevel::with_replacement;
  double context_noise = 0.0, forecast_noise = 0.0;
  std::uint64_t steps_planned = 0, steps_taken = 0, steps_charged = 0;  ///< taken ≤ charged ≤ planned

  using Privacy = LedgerPrivacy;
  std::optional<Privacy> privacy;  ///< none: trained without privacy

  /// Steps that epsilon is stated for.
  [[nodiscard]] std::uint64_t accounted_steps() const;
  /// The mechanism of these terms. Throws PrivacyError or UsageError if the named theorem does not cover them, or needs more
  /// than they say (tsdp.1, tsdp.2 with series of differing lengths); requires
  /// `privacy`.
  [[nodiscard]] Mechanism mechanism() const;
};

/// What `privacy.json` holds, and `model.pt` carries. Contains no data, key or seed.
[[nodiscard]] nlohmann::ordered_json document(const Ledger& ledger);

/// Reads the terms back. `where` begins complaints. Throws DataError that names the first field that is missing, of another
/// type or out of range.
[[nodiscard]] Ledger read_ledger(const nlohmann::ordered_json& document, const std::string& where);

/// One sentence for people: the guarantee or the lack of one.
[[nodiscard]] std::string statement(const Ledger& ledger);

/// (ε_g, δ_g) for data sets that differ in g series in place of one: (g ε, δ Σ_{i<g} e^{iε}), δ_g at most 1, both rounded up.
/// *Proof.* g neighbours in a row: P_0(S) ≤ e^ε P_1(S) + δ ≤ … ≤ e^{gε} P_g(S) + δ (1 + e^ε + … + e^{(g−1)ε}). ∎
struct GroupPrivacy {
  std::int64_t series;
  double epsilon;
  double delta;
};
[[nodiscard]] GroupPrivacy group_privacy(std::int64_t series, double epsilon, double delta);

/// What deriving a ledger's numbers again from its own terms found.
struct Verification {
  privacy::Interval epsilon;             ///< derived; {0, 0} without privacy
  privacy::Interval stated;              ///< likewise
  bool texts_checked = true;             ///< false: another version wrote the texts that explain
  std::vector<std::string> differences;  ///< one line each, "field: found …; … follows from its terms"

  [[nodiscard]] bool agrees() const { return differences.empty(); }
};

/// Derives epsilon, compositions, relation and statement of a ledger again from its terms: agrees if the stated upper end is
/// certified, the brackets meet, and everything else is what follows. Texts that only explain are compared where this
/// version of the program wrote them. Throws DataError (`where`) if it cannot be read.
[[nodiscard]] Verification verify(const nlohmann::ordered_json& document, const std::string& where);

}  // namespace tsdp::sampling
