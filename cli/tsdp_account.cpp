// tsdp-account: privacy numbers from a configuration or from options, without training anything.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "account_compare.h"
#include "account_estimate.h"
#include "account_figure.h"
#include "account_options.h"
#include "account_strategy.h"
#include "account_total.h"
#include "account_verify.h"
#include "base/log.h"
#include "ledger/budget.h"
#include "ledger/unit.h"
#include "privacy/accountant/renyi.h"
#include "privacy/theorems/bound_of_run.h"
#include "privacy/theorems/noise_choice.h"
#include "program.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/text.h"
#include "tsdp/ledger/ledger.h"
#include "tsdp/privacy/accountant/accountant.h"
#include "tsdp/privacy/theorems/theorems.h"
#include "tsdp/settings/config.h"

namespace {

using Json = nlohmann::ordered_json;
using tsdp::cat;
using tsdp::UsageError;
using tsdp::cli::QueryOptions;
using tsdp::cli::Subject;
using tsdp::privacy::AppliedTheorem;
using tsdp::privacy::Certificate;
using tsdp::privacy::Certified;
using tsdp::privacy::Interval;
using tsdp::privacy::PrivacyCurve;
using tsdp::privacy::StepComposition;

/// An answer: JSON for programs, text for people.
struct Answer {
  Json json;
  std::string text;
};

std::string shown(const Interval& i) {
  return cat("[", tsdp::rounded_down(i.lower, 7), ", ", tsdp::rounded_up(i.upper, 7), "]");
}

/// "epsilon in […]", or "epsilon at most …".
std::string shown(const char* what, const Interval& i, const Certificate& why) {
  return why.lower.empty() ? cat(what, " at most ", tsdp::rounded_up(i.upper, 7)) : cat(what, " in ", shown(i));
}

/// What the ends rest on, for whole series and adaptive composition.
void put_certificate(Json& out, const Subject& subject, const AppliedTheorem& m, const Certificate& why) {
  if (m.composition == tsdp::privacy::StepComposition::adaptive) {
    out["composition"] = tsdp::name(m.composition);
    out["certificate"] = tsdp::mechanism::certificate_json(why);
  }
  if (!subject.series) return;
  out["relation"] = "series";
  out["direction"] = subject.direction;
  if (subject.series->sampler == tsdp::privacy::TopLevel::cyclic_poisson) out["groups"] = subject.series->groups;
  tsdp::cli::put_largest_batch(out, *subject.series);
  out["certificate"] = tsdp::mechanism::certificate_json(why);
  if (subject.strategy) out["noise"] = tsdp::cli::strategy_json(*subject.strategy);
}

void warn_where_shuffled(const Subject& subject, const char* what, const Interval& i) {
  if (subject.series && subject.series->sampler == tsdp::privacy::TopLevel::shuffled)
    tsdp::cli::warn_of_shuffling(what, i);
}

/// Whole epochs in `steps` steps; the charged epochs if epochs are what is composed.
std::uint64_t epochs_of(const AppliedTheorem& m, std::uint64_t steps) {
  return m.unit == tsdp::privacy::CompositionUnit::epoch ? m.uses_of_steps(steps)
                                                         : steps / static_cast<std::uint64_t>(m.steps_per_epoch);
}

void put_mechanism(Json& out, const AppliedTheorem& m, std::uint64_t steps) {
  out["noise_multiplier"] = m.noise_multiplier;
  out["steps"] = steps;
  out["epochs"] = epochs_of(m, steps);
  out["theorem"] = m.theorem;
  out["bound"] = tsdp::name(tsdp::privacy::bound_of_run(m));
  out["composition_unit"] = tsdp::name(m.unit);
  out["compositions"] = m.uses_of_steps(steps);
  if (!m.rigorous(m.uses_of_steps(steps))) out["rigorous"] = false;
  if (!m.valid_for_time_series) out["valid_for_time_series"] = false;
}

std::string of_mechanism(const AppliedTheorem& m, std::uint64_t steps) {
  return cat(steps, " steps (", epochs_of(m, steps), " epochs), noise multiplier ",
             tsdp::rounded_up(m.noise_multiplier, 7), ", Theorem ", m.theorem,
             tsdp::privacy::composition_cited(m.composition), m.cut.chance ? ", " : "", m.cut.what);
}

/// Whether only one of the two directions was asked for.
bool is_one_sided(const Subject& subject) { return subject.series && subject.direction != "both"; }

/// What the numbers do not mean, one line each.
std::string reservations(const Subject& subject, const AppliedTheorem& m, std::uint64_t steps) {
  std::string text;
  if (is_one_sided(subject))
    text += cat("\nThis is of the direction ", subject.direction,
                " alone: no guarantee, which the larger of both directions is.");
  if (m.bound == tsdp::privacy::Bound::optimistic_lower)
    text +=
        m.rigorous(m.uses_of_steps(steps))
            ? "\nThis is a lower bound of the privacy loss: no guarantee."
            : "\nThis composes a lower bound of a single use: no guarantee, and not proven to bound the composition.";
  if (!m.valid_for_time_series)
    text +=
        "\nThis holds for independent records only: it is no guarantee for time series, of which a value lies in many "
        "windows.";
  return text;
}

/// Whether a bracket is as narrow as asked for, relative to its upper end.
bool reached(const Interval& i, double precision) { return i.upper - i.lower <= precision * i.upper; }

/// Says in `out` and on stderr that a bracket is wider than asked for; it still holds.
void state_precision(Json& out, const Interval& i, double precision, const Certificate& why, const AppliedTheorem& m,
                     std::uint64_t steps) {
  // Ends from different theorems, or for different numbers of epochs, are apart for another reason.
  if (reached(i, precision) || why.lower != why.upper || m.complete_uses(steps) != m.uses_of_steps(steps)) return;
  out["precision_reached"] = false;
  tsdp::log::warning(cat("precision: the bracket ", shown(i), " is wider than the relative ", precision,
                         " asked for; it holds, but ",
                         m.cut.chance ? "cuts of large batches may cost less than is charged for them"
                                      : "rounding or the size of the grids ended its refinement"));
}

/// Puts what `answer` is of, and what its ends rest on; says where they are not what one might take them for.
void put_subject(Json& out, const char* what, const Certified& answer, const Subject& subject, const AppliedTheorem& m,
                 std::uint64_t steps, double precision) {
  put_mechanism(out, m, steps);
  put_certificate(out, subject, m, answer.why);
  if (what) warn_where_shuffled(subject, what, answer);
  state_precision(out, answer, precision, answer.why, m, steps);
}

/// Puts how much of the budget is left after `spent`, for commands that are given one.
std::string put_budget(Json& out, const Interval& spent, double target) {
  const double left = std::max(0.0, target - spent.upper);
  out["budget_left"] = left;
  return cat("leaves epsilon ", tsdp::rounded_down(left, 4), " of ", target);
}

Answer epsilon(const Subject& subject, const QueryOptions& query) {
  const auto m = subject.mechanism();
  const double delta = needed_delta(query, subject);
  const auto steps = needed_steps(query, m);
  const auto curve = m.curve();
  const auto answer = tsdp::privacy::epsilon_after(m, *curve, delta, steps, precision_of(query));
  const auto& why = answer.why;
  Answer out;
  out.json["epsilon"] = tsdp::cli::bracket_json(answer, why);
  out.json["delta"] = delta;
  put_subject(out.json, "epsilon", answer, subject, m, steps, query.precision);
  out.text = cat(shown("epsilon", answer, why), " at delta ", delta, ": ", of_mechanism(m, steps),
                 reservations(subject, m, steps));
  if (subject.series && !is_one_sided(subject)) {
    const auto replaced =
        tsdp::privacy::substitution_of(*subject.series, tsdp::privacy::noise_by(subject.strategy, m.noise_multiplier),
                                       m.uses_of_steps(steps), answer.upper, delta);
    out.json["substitution"] = {{"epsilon", replaced.epsilon}, {"delta", replaced.delta}};
    out.text += cat("\nA series replaced by another: epsilon ", tsdp::rounded_up(replaced.epsilon, 7), " at delta ",
                    tsdp::rounded_up(replaced.delta, 5));
  }
  return out;
}

Answer delta(const Subject& subject, const QueryOptions& query) {
  const auto m = subject.mechanism();
  const double epsilon = needed_epsilon(query, subject);
  const auto steps = needed_steps(query, m);
  const auto curve = m.curve();
  const auto answer = tsdp::privacy::delta_after(m, *curve, epsilon, steps, precision_of(query));
  const auto& why = answer.why;
  Answer out;
  out.json["epsilon"] = epsilon;
  out.json["delta"] = tsdp::cli::bracket_json(answer, why);
  put_subject(out.json, "delta", answer, subject, m, steps, query.precision);
  out.text = cat(shown("delta", answer, why), " at epsilon ", epsilon, ": ", of_mechanism(m, steps),
                 reservations(subject, m, steps));
  return out;
}

Answer steps(const Subject& subject, const QueryOptions& query) {
  const auto m = subject.mechanism();
  const double target = needed_epsilon(query, subject);
  const double delta = needed_delta(query, subject);
  const auto curve = m.curve();
  const auto uses = curve->max_uses(target, delta);
  if (uses == 0)
    throw tsdp::PrivacyError(cat("epsilon ", target, " at delta ", delta, ": not even one ", tsdp::name(m.unit),
                                 " stays within it; it costs epsilon ",
                                 tsdp::rounded_up(curve->epsilon(delta, 1).upper, 6)));
  const auto count = m.steps_of_uses(uses);
  auto spent = curve->epsilon(delta, uses, precision_of(query));
  spent.upper = std::min(spent.upper, target);  // delta at the target was certified
  const auto& why = spent.why;
  Answer out;
  out.json["epsilon"] = tsdp::cli::bracket_json(spent, why);
  out.json["delta"] = delta;
  put_subject(out.json, "epsilon", spent, subject, m, count, query.precision);
  const auto left = put_budget(out.json, spent, target);
  out.text = cat("at most ", of_mechanism(m, count), " within epsilon ", target, " at delta ", delta, ": spends ",
                 shown("epsilon", spent, why), ", ", left, reservations(subject, m, count));
  return out;
}

Answer sigma(const Subject& subject, const QueryOptions& query) {
  const double target = needed_epsilon(query, subject);
  const double delta = needed_delta(query, subject);
  const auto precision = precision_of(query);
  const auto trial = subject.mechanism_at(1.0);
  const auto count = needed_steps(query, trial);
  const auto uses = trial.uses_of_steps(count);
  const auto stated = [&](const AppliedTheorem& m, const std::optional<tsdp::privacy::SampledClaim>& claim) {
    const auto curve = m.curve();
    auto spent = tsdp::privacy::epsilon_after(m, *curve, delta, count, precision);
    const auto& why = spent.why;
    spent.upper = std::min(spent.upper, target);  // certified by the calibration
    Answer out;
    out.json["epsilon"] = tsdp::cli::bracket_json(spent, why);
    out.json["delta"] = delta;
    put_subject(out.json, "epsilon", spent, subject, m, count, precision);
    const auto left = put_budget(out.json, spent, target);
    if (subject.sampled) out.json["sampled"] = nullptr;
    if (claim) out.json["sampled"] = {{"epsilon", claim->epsilon}, {"delta", claim->delta}, {"key", claim->key.hex()}};
    out.text =
        cat("noise multiplier ", tsdp::rounded_up(m.noise_multiplier, 7), " spends ", shown("epsilon", spent, why),
            ", ", left, " at delta ", delta, claim ? cat(" (it passed the test with key ", claim->key.hex(), ")") : "",
            ": ", of_mechanism(m, count), reservations(subject, m, count));
    return out;
  };
  const tsdp::privacy::PrivacyTarget wanted{target, delta, uses};
  if (subject.sampled) {
    const auto noise = tsdp::privacy::least_sampled_noise(
        {*subject.series, subject.strategy->steps() / subject.series->batches, target, delta}, subject.strategy,
        [](int) { return tsdp::SecretKey::from_system(); });
    if (!noise.sampled)
      tsdp::log::warning(
          "--sampled: no test by sampling was passed; the noise is certified without, for 0.99 of delta");
    return stated(tsdp::privacy::series_theorem(*subject.series, noise), noise.sampled);
  }
  const auto composition =
      subject.composition ? *subject.composition : tsdp::privacy::chosen_composition(wanted, [&](double noise) {
        return subject.composed_at(noise, StepComposition::symmetrised);
      });
  const auto mechanism_at = [&](double noise) { return subject.composed_at(noise, composition); };
  return stated(mechanism_at(tsdp::privacy::least_noise(wanted, mechanism_at, 2e-4, precision)), {});
}

/// Bracket of the profile at any ε after `uses` uses.
Certified profile_at(const AppliedTheorem& m, PrivacyCurve& curve, double epsilon, std::uint64_t uses,
                     double precision) {
  const double e = std::abs(epsilon);
  if (uses == 1 && m.composes_its_pair()) return {m.pair.profile_bracket(epsilon), curve.methods()};
  if (!m.composes_its_pair() && epsilon < 0.0)
    throw UsageError(cat("--epsilons: found ", epsilon,
                         "; expected numbers of at least 0 with --relation series or --composition adaptive"));
  auto positive = curve.delta(e, uses, precision);
  if (epsilon >= 0.0) return positive;
  // Swapping the measures of a symmetrised pair leaves all divergences as they are (H_sym(α) = 1 − α + α H_sym(1/α)),
  // so its loss has one law in both directions, and so has the product's: δ(−e) = 1 − e^{−e} + e^{−e} δ(e).
  const double unit_roundings = 8.0 * std::numeric_limits<double>::epsilon();
  const auto below = [&](double at) { return -std::expm1(-e) + std::exp(-e) * at; };
  return {
      {below(positive.lower) * (1.0 - unit_roundings), std::min(1.0, below(positive.upper) * (1.0 + unit_roundings))},
      positive.why};
}

/// 33 values from 0 to where the profile falls below 1e-12, or where most of it is cuts of large batches.
std::vector<double> default_grid(const AppliedTheorem& m, PrivacyCurve& curve, std::uint64_t uses) {
  const double cuts = m.cut.chance ? m.cut.chance(uses) : 0.0;
  const auto small = [&](double epsilon) {
    return profile_at(m, curve, epsilon, uses, 0.5).upper < std::max(1e-12, 2.0 * cuts * (1.0 + std::exp(epsilon)));
  };
  double low = 0.0;
  double high = 1e-3;
  while (high < 1e6 && !small(high)) {
    low = high;
    high *= 2.0;
  }
  for (int i = 0; i < 6; ++i) {
    const double middle = 0.5 * (low + high);
    (small(middle) ? high : low) = middle;
  }
  std::vector<double> grid;
  for (int i = 0; i <= 32; ++i) grid.push_back(high * i / 32.0);
  return grid;
}

/// The points of an answer as files.
void write_profile(const Json& answer, const std::string& title, const QueryOptions& query) {
  std::vector<double> epsilons;
  std::vector<double> lower;
  std::vector<double> upper;
  std::string csv = "epsilon,delta_lower,delta_upper\n";
  for (const auto& point : answer["profile"]) {
    epsilons.push_back(point["epsilon"]);
    lower.push_back(point["delta"]["lower"].is_null() ? 0.0 : point["delta"]["lower"].get<double>());
    upper.push_back(point["delta"]["upper"]);
    csv += cat(tsdp::exact(epsilons.back()), ",", tsdp::exact(lower.back()), ",", tsdp::exact(upper.back()), "\n");
  }
  if (query.csv) tsdp::write_file_atomically(*query.csv, csv);
  if (query.plot) tsdp::write_file_atomically(*query.plot, tsdp::cli::profile_plot(epsilons, lower, upper, title));
}

Answer profile(const Subject& subject, const QueryOptions& query) {
  tsdp::cli::check_plot_name(query.plot, query.csv);
  const auto m = subject.mechanism();
  const auto precision = precision_of(query);
  const auto count = steps_of(query, m).value_or(m.steps_of_uses(1));
  const auto uses = m.uses_of_steps(count);
  const auto complete = m.complete_uses(count);
  const auto curve = m.curve();
  const auto of_complete = complete < uses ? m.curve() : nullptr;
  Certificate why;
  auto grid = epsilons_of(query);
  if (grid.empty()) grid = default_grid(m, *curve, uses);
  Answer out;
  out.json["profile"] = Json::array();
  out.text = cat("profile of ", of_mechanism(m, count), "\nepsilon\tdelta, lower\tdelta, upper");
  std::optional<Interval> widest;
  for (const double epsilon : grid) {
    auto value = profile_at(m, *curve, epsilon, uses, precision);
    // As epsilon_after: from below only complete epochs count.
    if (complete < uses)
      value.lower = complete > 0 ? profile_at(m, *of_complete, epsilon, complete, precision).lower
                                 : std::max(0.0, -std::expm1(epsilon));
    const auto& of_point = value.why;
    // Points that rest on different methods: what may give them.
    if (out.json["profile"].empty()) why = of_point;
    else if (of_point.upper != why.upper || of_point.lower != why.lower) why = curve->methods();
    out.json["profile"].push_back({{"epsilon", epsilon}, {"delta", tsdp::cli::bracket_json(value, of_point)}});
    out.text += cat("\n", epsilon, "\t", of_point.lower.empty() ? "not known" : tsdp::rounded_down(value.lower, 7),
                    "\t", tsdp::rounded_up(value.upper, 7));
    const auto width = [](const Interval& i) { return i.upper > 0.0 ? 1.0 - i.lower / i.upper : 0.0; };
    if (!widest || width(value) > width(*widest)) widest = value;
  }
  put_subject(out.json, nullptr, {*widest, why}, subject, m, count, precision);
  out.text += reservations(subject, m, count);
  if (query.csv || query.plot) write_profile(out.json, cat("Privacy profile: ", of_mechanism(m, count)), query);
  return out;
}

/// The table of theorems, one line each.
Answer theorems() {
  Answer out;
  out.json["theorems"] = Json::array();
  out.text = "Theorems (id, bound, one use is, covers):\n";
  for (const auto& row : tsdp::privacy::theorem_table()) {
    out.text +=
        cat("  ", row.id, std::string(row.id.size() < 8 ? 8 - row.id.size() : 1, ' '), tsdp::name(row.bound), ", ",
            tsdp::name(row.unit), ": ", row.covers, row.ours ? cat(" (ours, docs/proofs/", row.proof, ")") : "", "\n");
    out.json["theorems"].push_back({{"id", row.id},
                                    {"bound", tsdp::name(row.bound)},
                                    {"composition_unit", tsdp::name(row.unit)},
                                    {"covers", row.covers},
                                    {"only_if_named", row.only_if_named}});
  }
  out.text +=
      "Numbers are those of Schuchardt et al. (ICML 2025); rows named series are for --relation series "
      "(docs/accounting.md). Rows that are optimistic, tsdp.1, tsdp.2, or about flat data sets are\n"
      "used only if named. Theorem 4.1 is no row: it says that of all lambda, 1 has the least exact profile of an "
      "epoch of\n"
      "deterministic iteration, at every alpha, with replacement and Poisson.";
  return out;
}

void give(const Answer& answer, bool json) {
  if (json) tsdp::cli::print_json(answer.json);
  else tsdp::cli::print(answer.text + "\n");
}

/// What the program is asked for.
struct Options {
  tsdp::cli::CommonOptions common;
  tsdp::cli::MechanismOptions mechanism;
  QueryOptions query;
  std::string figure_number, verified, budget_file;
  std::vector<std::string> totalled;
};

/// Runs a command; returns the exit code.
using Run = std::function<int(const CLI::App& command, const Options& options)>;

/// A command, with options of its own, and an example that runs.
struct Command {
  std::string name, description;
  bool about_a_mechanism;
  std::vector<std::string> options;  ///< and those
  std::string example;
  Run run;
};

/// One of the five questions about one mechanism.
using Question = Answer (*)(const Subject&, const QueryOptions&);

/// Prints the answer, or the estimate that --method asks for.
void answer(Question question, const CLI::App& command, const Options& o) {
  std::error_code ignored;
  for (const auto& [option, file] : {std::pair{"--csv", o.query.csv}, std::pair{"--plot", o.query.plot}})
    if (file && o.mechanism.config &&
        std::filesystem::equivalent(*file, tsdp::find_config_file(*o.mechanism.config), ignored))
      throw UsageError(cat(option, ": found '", *file, "', which is read, too; expected another file"));
  if (tsdp::cli::asks_for_estimate(o.mechanism)) {
    tsdp::cli::run_estimate(command.get_name(), command, o.mechanism, o.query, o.common.json);
    return;
  }
  // The published rule shares a delta between composition and hazards, whatever is asked for.
  if (question == delta && o.query.delta)
    throw UsageError(
        "--delta: not used by delta, but with --method estimate; expected the other numbers, as that is what is "
        "asked for");
  give(question(subject_of(command, o.mechanism), o.query), o.common.json);
}

Run answering(Question question) {
  return [question](const CLI::App& command, const Options& o) {
    answer(question, command, o);
    return 0;
  };
}

/// What a budget file holds: its target, what of it is spent and left, and by which runs.
int show_budget(const Options& o) {
  const auto budget = tsdp::mechanism::read_budget(o.budget_file);
  const double spent = budget.spent_epsilon();
  Json out = {{"target", budget.epsilon},
              {"delta", budget.delta},
              {"relation", budget.unit ? tsdp::mechanism::unit_json(*budget.unit) : Json(nullptr)},
              {"spent", spent},
              {"left", std::max(0.0, budget.epsilon - spent)},
              {"share_spent", budget.spent()},
              {"charges", Json::array()}};
  for (const auto& charge : budget.charges)
    out["charges"].push_back({{"run", charge.run}, {"theorem", charge.theorem}, {"compositions", charge.uses}});
  const auto covariates = budget.public_covariates();
  if (!covariates.empty()) out["public_covariates"] = covariates;
  std::string text =
      cat(o.budget_file, ": ", budget.charges.size(), budget.charges.size() == 1 ? " run" : " runs", " spent epsilon ",
          tsdp::rounded_up(spent, 5), " of ", budget.epsilon, " at delta ", budget.delta, ", ",
          tsdp::rounded_up(100.0 * budget.spent(), 3),
          " % of what the Rényi filter has to give; a further run may cost more or less than the rest. What is "
          "guaranteed, also if later runs are chosen by the models of earlier ones, is the whole: epsilon ",
          budget.epsilon, " (not if they are chosen by scores, losses or logs, which are computed from true values)",
          budget.unit ? cat("\n  Neighbours: relation ", tsdp::mechanism::unit_text(*budget.unit), ".") : std::string(),
          budget.spent() > 0.0 || budget.admits(std::vector<double>(tsdp::privacy::renyi_orders().size(), 0.0))
              ? std::string()
              : std::string("\n  It pays for no step of any run: make one of a larger epsilon or delta."));
  for (const auto& charge : budget.charges)
    text += cat("\n  run ", charge.run, ": Theorem ", charge.theorem, ", ", charge.uses, " compositions");
  if (!covariates.empty()) text += cat("\n  Not protected: the covariates (", tsdp::join(covariates, ", "), ").");
  give({std::move(out), std::move(text)}, o.common.json);
  return 0;
}

int make_budget(const CLI::App& command, const Options& o) {
  const bool of_unit = command.count("--relation") + command.count("--w") + command.count("--v") > 0;
  if (!of_unit && command.count("--epsilon") + command.count("--delta") == 0 && tsdp::is_there(o.budget_file))
    return show_budget(o);
  std::optional<tsdp::privacy::PrivacyUnit> unit;
  if (of_unit) {
    unit = {tsdp::named<tsdp::privacy::Relation>(o.mechanism.relation, "--relation"), o.mechanism.w, o.mechanism.v};
    if (unit->relation == tsdp::privacy::Relation::series && command.count("--w") + command.count("--v") > 0)
      throw UsageError("--w, --v: given with --relation series, which is about whole series; expected neither");
    if (unit->w < 1 || unit->w > tsdp::privacy::largest_count)
      throw UsageError(cat("--w: found ", unit->w, "; expected an integer from 1 to ", tsdp::privacy::largest_count));
    if (unit->v && (!(*unit->v > 0.0) || !std::isfinite(*unit->v)))
      throw UsageError(cat("--v: found ", *unit->v, "; expected a positive number"));
  }
  tsdp::mechanism::create_budget(o.budget_file, tsdp::cli::needed_epsilon(o.query, {}),
                                 tsdp::cli::needed_delta(o.query, {}), unit);
  if (o.common.json) return show_budget(o);
  return 0;
}

int make_figure(const CLI::App& command, const Options& o) {
  tsdp::cli::FigureOptions options;
  options.csv = o.query.csv;
  options.plot = o.query.plot;
  options.json = o.common.json;
  if (command.count("--precision") > 0) options.precision = precision_of(o.query);
  return tsdp::cli::run_figure(o.figure_number, options);
}

constexpr const char* example_of_windows =
    "--num-sequences 321 --sequence-length 5000 --context-length 168 --forecast-length 24 --batch-size 32 "
    "--noise-multiplier 4";

std::vector<Command> all_commands() {
  return {
      {"epsilon",
       "epsilon at --delta after --steps or --epochs",
       true,
       {"--delta", "--steps", "--epochs", "--precision"},
       cat(example_of_windows, " --delta 1e-7 --steps 1000"),
       answering(epsilon)},
      {"delta",
       "delta at --epsilon after --steps or --epochs",
       true,
       {"--epsilon", "--delta", "--steps", "--epochs", "--precision"},
       cat(example_of_windows, " --epsilon 1 --steps 1000"),
       answering(delta)},
      {"steps",
       "the most steps that stay within --epsilon at --delta",
       true,
       {"--epsilon", "--delta", "--precision"},
       cat(example_of_windows, " --epsilon 1 --delta 1e-7"),
       answering(steps)},
      {"sigma",
       "the least noise multiplier for --epsilon, --delta and --steps or --epochs",
       true,
       {"--epsilon", "--delta", "--steps", "--epochs", "--precision"},
       "--relation series --top-level balls_in_bins --batches 100 --epochs 10 --epsilon 1 --delta 1e-6",
       answering(sigma)},
      {"profile",
       "delta over the grid --epsilons, of one use or after --steps or --epochs",
       true,
       {"--epsilons", "--steps", "--epochs", "--precision", "--csv", "--plot"},
       cat(example_of_windows, " --steps 1000 --epsilons 0.1,0.5,1"),
       answering(profile)},
      {"theorems",
       "every row of the table of theorems, with what it covers",
       false,
       {},
       "",
       [](const CLI::App&, const Options& o) {
         give(theorems(), o.common.json);
         return 0;
       }},
      {"compare",
       "epsilon at --delta of every way of making batches of whole series, side by side",
       false,
       {"--batches", "--noise-multiplier", "--sampling-rate", "--relation", "--epochs", "--delta", "--precision",
        "--plot"},
       "--batches 100 --epochs 10 --noise-multiplier 1 --delta 1e-6",
       [](const CLI::App& command, const Options& o) {
         if (command.count("--relation") > 0 && o.mechanism.relation != "series")
           throw UsageError(cat("--relation: found ", o.mechanism.relation,
                                "; compare is about whole series: expected series, or no option"));
         tsdp::cli::run_compare(o.mechanism, o.query, o.common.json);
         return 0;
       }},
      {"strategy",
       "every mechanism of correlated noise for --steps in --epochs, side by side: its error, and with --epsilon and "
       "--delta the noise that it needs",
       false,
       {"--top-level", "--reshuffle", "--redraw", "--bands", "--buffers", "--steps", "--epochs", "--epsilon", "--delta",
        "--plot"},
       "--steps 200 --epochs 2",
       [](const CLI::App&, const Options& o) {
         tsdp::cli::run_strategy(o.mechanism, o.query, o.common.json);
         return 0;
       }},
      {"budget",
       "makes a file that tsdp-train --budget charges, of --epsilon at --delta; of one that is there: what is left",
       false,
       {"--relation", "--w", "--v", "--epsilon", "--delta"},
       "budget.json --epsilon 2 --delta 1e-6",
       make_budget},
      {"total",
       "epsilon at --delta of several runs on the same data together, whose settings were fixed beforehand",
       false,
       {"--delta", "--precision"},
       "runs/a runs/b --delta 1e-7",
       [](const CLI::App&, const Options& o) {
         tsdp::cli::run_total({o.totalled.begin(), o.totalled.end()}, tsdp::cli::needed_delta(o.query, {}),
                              precision_of(o.query), o.common.json);
         return 0;
       }},
      {"verify",
       "derives the epsilon of a run's or a model's ledger again from its own terms",
       false,
       {},
       "runs/a",
       [](const CLI::App&, const Options& o) { return tsdp::cli::run_verify(o.verified, o.common.json); }},
      {"figure",
       "the curves of the paper's numerical figure N, B1 to B7 of batch samplers, or C1 to C6 of correlated noise, as "
       "CSV and plot",
       false,
       {"--precision", "--csv", "--plot"},
       "4 --csv figure4.csv",
       make_figure},
  };
}

void add_commands(CLI::App& app, const std::vector<Command>& commands, Options& o) {
  app.require_subcommand(1);
  app.fallthrough();
  app.footer("Each command has its own options: tsdp-account COMMAND --help.");
  for (const auto& command : commands) {
    auto* added = app.add_subcommand(command.name, command.description);
    tsdp::cli::add_options(*added, o.mechanism, o.query, command.about_a_mechanism, command.options);
    if (command.name == "sigma") {
      added->remove_option(added->get_option("--noise-multiplier"));  // which it answers
      added
          ->add_flag("--sampled", o.mechanism.sampled,
                     "Of correlated noise in bins drawn once: found by sampling, which takes a minute or so and needs "
                     "less noise")
          ->group("Correlated noise (--relation series)");
    }
    if (command.name == "figure") added->add_option("N", o.figure_number, "number in the paper")->required();
    if (command.name == "verify")
      added->add_option("RUN", o.verified, "folder of a run, a privacy.json or an exported model")->required();
    if (command.name == "budget")
      added->add_option("FILE", o.budget_file, "new file, with --epsilon and --delta; or one that is there")
          ->required();
    if (command.name == "total")
      added->add_option("RUN", o.totalled, "folders of runs, privacy.json files or exported models")->required();
    if (!command.example.empty()) added->footer(cat("Example:\n  tsdp-account ", command.name, " ", command.example));
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Privacy numbers of structured subsampling: proven brackets, without training anything.",
               "tsdp-account");
  Options options;
  tsdp::cli::add_common_options(app, options.common);
  const auto commands = all_commands();
  add_commands(app, commands, options);
  return tsdp::cli::run(app, argc, argv, options.common, [&] {
    const auto* chosen = app.get_subcommands().front();
    return std::find_if(commands.begin(), commands.end(),
                        [&](const Command& one) { return one.name == chosen->get_name(); })
        ->run(*chosen, options);
  });
}
