// The privacy ledger of a run: what was done, what it costs, and what it does not cover. It is written from the
// mechanism that ran, and read back to derive its epsilon again from its own terms.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tsdp/mechanism/prior.h"
#include "tsdp/mechanism/training_method.h"
#include "tsdp/privacy/terms/curve.h"
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

/// Where a model's initial weights come from: drawn with a seed; trained only on synthetic series, which are nobody's;
/// trained on data by private runs, which have their own statements; or trained on data without privacy by at least one
/// run: without noise, or with noise that follows from a seed (training.reproducible).
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

/// Whether weights of this origin depend on data, so that releasing them costs privacy.
[[nodiscard]] constexpr bool rests_on_data(StartOrigin origin) {
  switch (origin) {
    case StartOrigin::fresh:
    case StartOrigin::synthetic: return false;
    case StartOrigin::trained:
    case StartOrigin::trained_without_privacy: return true;
  }
  return true;
}

/// The note next to a score of such weights: "epsilon 0: before any of your data" if nothing was spent on them, and
/// only then.
[[nodiscard]] std::string start_cited(StartOrigin origin);

/// What the epsilon of a run that started from such weights leaves out, in words; empty if nothing. The one text used
/// wherever an epsilon is stated.
[[nodiscard]] std::string not_counted_of_start(StartOrigin origin);
/// Says that `delta` would allow publishing one of the records of a private method whole; empty if it would not.
[[nodiscard]] std::string warning_of_delta(double delta, const TrainingMethod& method);

/// Where a model started. The prior is a function of public facts and costs nothing, nor do fresh and synthetic
/// weights.
struct Start {
  Prior prior = {};
  StartOrigin origin = StartOrigin::fresh;
  std::string sha256;  ///< of the file of weights; empty if fresh
  nlohmann::ordered_json trained;  ///< the ledger of the run that trained them, if they rest on data; else null
  /// SHA-256 of the files of the other networks' weights that the model holds, by name. Nothing trains them.
  std::map<std::string, std::string> networks = {};

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

/// The terms of a ledger. While a run is in progress, it states the cost of the whole plan, so that it never
/// understates what a crash leaves behind; afterwards, the cost of the steps charged.
struct Ledger {
  explicit Ledger(TrainingMethod of) : method(std::move(of)) {}

  std::string program;
  RunState state = RunState::running;
  RunIdentity run;
  bool reproducible = false;  ///< the key follows from a seed that others may know: not for release
  /// A ledger holds the shortest and the longest of the lengths, which are decisive for the paper's rows: touched
  /// shares and Poisson rates are largest for the shortest series, numbers of touched windows for the longest. This is
  /// not so for tsdp.1 and tsdp.2.
  TrainingMethod method;
  Start start = {};
  std::optional<SyntheticData> synthetic;  ///< none: trained on data
  std::vector<std::string> covariates = {};  ///< names of those that the model is given
  bool protects_covariates = false;  ///< those of a series are part of its record; otherwise all are public
  std::optional<std::int64_t> files = std::nullopt;  ///< that several ranks read; none: one file, and one process
  std::uint64_t steps_planned = 0, steps_taken = 0, steps_charged = 0;  ///< taken ≤ charged ≤ planned
  std::optional<Cost> cost;  ///< of a private method

  [[nodiscard]] bool is_private() const noexcept { return method.privacy().has_value(); }
  /// Whether its noise protects anyone: whoever knows the seed of a reproducible run can remove the noise. Check this
  /// wherever epsilons of several runs are combined.
  [[nodiscard]] bool protects() const noexcept { return is_private() && !reproducible; }
  /// Steps that epsilon is stated for, and the number of uses of the theorem that they make up; requires `is_private`.
  [[nodiscard]] std::uint64_t accounted_steps() const;
  [[nodiscard]] std::uint64_t accounted_uses() const {
    return method.privacy()->theorem().uses_of_steps(accounted_steps());
  }
};

/// What a statement says of covariates: a sentence with a space before it; empty if there are none.
[[nodiscard]] std::string covariates_text(const std::vector<std::string>& names, bool are_protected,
                                          privacy::Relation relation);

/// The origin of weights trained by a run with this ledger.
[[nodiscard]] StartOrigin origin_of_weights(const Ledger& ledger);

/// The ledgers of the runs that a start's weights come from, newest first, without those on synthetic series. Throws
/// DataError, beginning with `where`, if one cannot be read.
[[nodiscard]] std::vector<Ledger> earlier_runs(const Start& start, const std::string& where);

/// Throws DataError, beginning with `where`, if so many runs stand behind the weights of `ledger`'s model that the
/// ledger of a run that starts from them could not be read.
void require_room_for_start(const Ledger& ledger, const std::string& where);

/// The origin of the start that a ledger document of any version of this program states. Throws DataError, beginning
/// with `where`.
[[nodiscard]] StartOrigin start_origin_of(const nlohmann::ordered_json& document, const std::string& where);

/// The parts of a method, one field each, under the names that ledgers use.
[[nodiscard]] nlohmann::ordered_json terms(const TrainingMethod& method);

/// The contents of `privacy.json`, which `model.pt` carries too. Contains no data, key or seed.
[[nodiscard]] nlohmann::ordered_json document(const Ledger& ledger);

/// Reads the terms back. Error messages begin with `where`. Throws DataError naming the first field that is missing, of
/// another type or out of range; PrivacyError if the named theorem does not cover the terms, or needs more than they
/// say (tsdp.1, tsdp.2 with series of differing lengths).
[[nodiscard]] Ledger read_ledger(const nlohmann::ordered_json& document, const std::string& where);

/// One sentence for people: the guarantee or the lack of one.
[[nodiscard]] std::string statement(const Ledger& ledger);

/// (ε_g, δ_g) for data sets that differ in g series instead of one: (g ε, δ Σ_{i<g} e^{iε}), δ_g at most 1, both
/// rounded up.
/// *Proof.* g neighbours in a row: P_0(S) ≤ e^ε P_1(S) + δ ≤ … ≤ e^{gε} P_g(S) + δ (1 + e^ε + … + e^{(g−1)ε}). ∎
struct GroupPrivacy {
  std::int64_t series;
  double epsilon;
  double delta;
};
[[nodiscard]] GroupPrivacy group_privacy(std::int64_t series, double epsilon, double delta);

/// The result of deriving a ledger's numbers again from its own terms.
struct Verification {
  std::optional<Ledger> terms;  ///< as read; none if no theorem covers them
  privacy::Interval epsilon;  ///< derived; {0, 0} without privacy
  privacy::Interval stated;  ///< likewise
  bool texts_checked = true;  ///< false: another version wrote the explanatory texts
  std::vector<std::string> differences;  ///< one line each, "field: found …; … follows from its terms"

  [[nodiscard]] bool agrees() const { return differences.empty(); }
};

/// Derives epsilon, compositions, relation and statement of a ledger again from its terms. Agrees if the stated upper
/// end is certified, the brackets meet, and everything else is what follows from the terms. Explanatory texts are
/// compared only if this version of the program wrote them. Throws DataError, beginning with `where`, if it cannot be
/// read.
[[nodiscard]] Verification verify(const nlohmann::ordered_json& document, const std::string& where);

}  // namespace tsdp::mechanism
