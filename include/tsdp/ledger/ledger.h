// The privacy ledger of a run: what was done, what it costs, and what it does not cover. It is written from the mechanism
// that ran, and read back to derive its epsilon again from its own terms.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tsdp/mechanism/prior.h"
#include "tsdp/mechanism/training_method.h"
#include "tsdp/privacy/terms/curve.h"
#include "tsdp/privacy/terms/interval.h"
#include "tsdp/privacy/theorems/attack.h"

namespace tsdp::mechanism {

enum class RunState {
  running,
  interrupted,
  finished
};
constexpr Names<RunState, 3> names_of(RunState) {
  return {{{RunState::running, "running"}, {RunState::interrupted, "interrupted"}, {RunState::finished, "finished"}}};
}

/// {"upper": theorem, "lower": theorem, or null where nothing certifies one, "assumptions": […]}
[[nodiscard]] nlohmann::ordered_json certificate_json(const privacy::Certificate& why);

/// What ties the files of a run together. None of it is secret.
struct RunIdentity {
  std::string id;             ///< 32 random hexadecimal digits
  std::string key_print;      ///< tells keys apart: 16 digits of a SHA-256 of the key
  std::string configuration;  ///< SHA-256 of config.yaml

  bool operator==(const RunIdentity&) const = default;
};

/// Where the weights come from that a model starts with: drawn with a seed; trained on synthetic series alone, which are nobody's; trained on data
/// by private runs, which have statements of their own; or trained on data without privacy, by one run at least: without noise, or with noise that
/// follows from a seed (training.reproducible).
enum class StartOrigin {
  fresh,
  synthetic,
  trained,
  trained_without_privacy
};
constexpr Names<StartOrigin, 4> names_of(StartOrigin) {
  return {{{StartOrigin::fresh, "fresh"},
           {StartOrigin::synthetic, "synthetic"},
           {StartOrigin::trained, "trained"},
           {StartOrigin::trained_without_privacy, "trained_without_privacy"}}};
}

/// Whether such weights follow from data, so that releasing them costs privacy.
[[nodiscard]] constexpr bool rests_on_data(StartOrigin origin) {
  switch (origin) {
    case StartOrigin::fresh:
    case StartOrigin::synthetic: return false;
    case StartOrigin::trained:
    case StartOrigin::trained_without_privacy: return true;
  }
  return true;
}

/// What stands beside a score of such weights: "epsilon 0: before any of your data" where nothing was spent on them, and nowhere else.
[[nodiscard]] std::string start_cited(StartOrigin origin);

/// What epsilon of a run leaves out that started from such weights, in words; empty where it leaves out nothing. One text for all who state an epsilon.
[[nodiscard]] std::string not_counted_of_start(StartOrigin origin);

/// Where a model started. The prior is a function of public facts and costs nothing, nor do fresh and synthetic weights.
struct Start {
  Prior prior = {};
  StartOrigin origin = StartOrigin::fresh;
  std::string sha256;              ///< of the file of weights; empty if fresh
  nlohmann::ordered_json trained;  ///< the ledger of the run that trained them, if they rest on data; else null

  bool operator==(const Start&) const = default;
};

/// Series that this program made (dataset.format synthetic).
struct SyntheticData {
  std::string family;
  std::int64_t series, length, seed;

  bool operator==(const SyntheticData&) const = default;
};

/// What a private run costs.
struct Cost {
  double delta = 0.0;
  double target_epsilon = 0.0;
  privacy::Interval epsilon;
  std::optional<privacy::AttackBound> attack;
};

/// The terms of a ledger. While a run is going on it states the cost of the whole plan, so that it never understates
/// whatever a crash leaves; afterwards the cost of the steps charged.
struct Ledger {
  explicit Ledger(TrainingMethod of) : method(std::move(of)) {}

  std::string program;
  RunState state = RunState::running;
  RunIdentity run;
  bool reproducible = false;  ///< the key follows from a seed that others may know: not for release
  /// Of the lengths a ledger holds the shortest and the longest, which decide for the paper's rows: touched shares and Poisson
  /// rates are largest for the shortest series, numbers of touched windows for the longest. Not so for tsdp.1 and tsdp.2.
  TrainingMethod method;
  Start start = {};
  std::optional<SyntheticData> synthetic;  ///< none: trained on data
  std::vector<std::string> covariates = {};  ///< names of those that the model is told of, which count as public
  std::uint64_t steps_planned = 0, steps_taken = 0, steps_charged = 0;  ///< taken ≤ charged ≤ planned
  std::optional<Cost> cost;  ///< of a private method

  [[nodiscard]] bool is_private() const noexcept { return method.privacy().has_value(); }
  /// Whether its noise protects anyone: whoever knows the seed of a reproducible run takes the noise away. Ask this wherever epsilons of several runs are put together.
  [[nodiscard]] bool protects() const noexcept { return is_private() && !reproducible; }
  /// Steps that epsilon is stated for, and the uses of the theorem that they are; requires `is_private`.
  [[nodiscard]] std::uint64_t accounted_steps() const;
  [[nodiscard]] std::uint64_t accounted_uses() const { return method.privacy()->theorem().uses_of_steps(accounted_steps()); }
};

/// Where weights come from that a run of this ledger has trained.
[[nodiscard]] StartOrigin origin_of_weights(const Ledger& ledger);

/// The ledgers of the runs that a start's weights come from, the newest first, without those on synthetic series. Throws DataError (`where`) if one
/// cannot be read.
[[nodiscard]] std::vector<Ledger> earlier_runs(const Start& start, const std::string& where);

/// Where the start comes from that a ledger (the document) states, of any version of this program. Throws DataError (`where`).
[[nodiscard]] StartOrigin start_origin_of(const nlohmann::ordered_json& document, const std::string& where);

/// What a method is made of, one field each, by the names that ledgers have for them.
[[nodiscard]] nlohmann::ordered_json terms(const TrainingMethod& method);

/// What `privacy.json` holds, and `model.pt` carries. Contains no data, key or seed.
[[nodiscard]] nlohmann::ordered_json document(const Ledger& ledger);

/// Reads the terms back. `where` begins complaints. Throws DataError that names the first field that is missing, of another
/// type or out of range, PrivacyError where the theorem that is named does not cover the terms, or needs more than they say
/// (tsdp.1, tsdp.2 with series of differing lengths).
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
  std::optional<Ledger> terms;           ///< as read; none where no theorem covers them
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

}  // namespace tsdp::mechanism
