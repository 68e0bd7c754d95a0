#include "train_plan.h"

#include <cctype>

#include "mechanism/known_batches.h"
#include "privacy/theorems/bound_of_run.h"
#include "program.h"
#include "tsdp/base/text.h"

namespace tsdp::cli {
namespace {

/// Whether a network is trained whose forecasts are mixed with others, which read all that it reads: not what other
/// variables of a series tell, of which candidates know nothing.
bool beside_candidates(const mechanism::Settled& run) {
  return !run.config.model.candidates.empty() && run.config.training.trainable != Trainable::mixture &&
         joined_variables(run.config) == 1;
}

/// Whether training is expected to add to what is released without it: with at least a tenth of what it could add to
/// a network that forecasts alone. The mixture with candidates has most of that already (docs/results.md).
bool pays(const mechanism::Settled& run) { return run.expected->share >= 0.1 && !beside_candidates(run); }

/// Of what more would help: a record that is whole hides no better for being longer.
std::string more_records(const Config& config) {
  if (config.privacy.relation != privacy::Relation::series) return "more or longer series";
  return config.dataset.has_owners() ? "more owners" : "more series";
}

std::string why_it_pays_or_not(const mechanism::Settled& run) {
  if (!run.config.privacy.enabled) return "privacy.enabled is false: training costs no epsilon";
  if (!run.expected)
    return run.config.privacy.target_epsilon == 0.0
               ? "privacy.target_epsilon is 0: nothing is trained, and nothing is spent"
               : "no rule is known for training from random weights; compare the scores with the best that is free";
  const auto& expected = *run.expected;
  const double percent = 100.0 * expected.share;
  const auto share = cat(percent < 0.01 ? std::string("less than 0.01") : rounded(percent, 3), " % of what it could");
  const auto signal = cat("signal to noise ", rounded(expected.signal, 3), ", where ", expected.enough, " is enough");
  if (pays(run)) return cat("training is expected to add to the start (", share, "): ", signal);
  const auto without = mechanism::rests_on_data(run.start_origin())
                           ? ""
                           : "; privacy.target_epsilon=0 releases the start and spends nothing";
  if (beside_candidates(run))
    return cat(
        "training is expected to add little: model.candidates learn most of it from each series' own past, for no "
        "epsilon; the network alone (model.candidates=[]) would gain ",
        share, ", ", signal, without);
  return cat("training is expected to add little to the start (", share, "): ", signal, "; ", more_records(run.config),
             ", or a larger privacy.target_epsilon, would help", without);
}

}  // namespace

Json expectation_json(const mechanism::Settled& run,
                      const std::optional<std::vector<mechanism::Alternative>>& alternatives) {
  const bool known = run.expected && run.config.privacy.enabled;
  Json out{{"pays", known ? Json(pays(run)) : Json(nullptr)}, {"why", why_it_pays_or_not(run)}};
  if (known) {
    out["signal_to_noise"] = run.expected->signal;
    out["enough"] = run.expected->enough;
    out["share"] = run.expected->share;
  }
  if (!alternatives) return out;
  out["instead"] = Json::array();
  for (const auto& other : *alternatives)
    out["instead"].push_back({{"what", other.what},
                              {"noise_multiplier", other.noise_multiplier},
                              {"signal_to_noise", other.signal},
                              {"share", other.share}});
  return out;
}

/// Of plans whose training.reproducible is true.
constexpr const char* noise_is_known = "; not for release: the noise follows from training.seed";

Json plan_json(const Config& config, const training::Trainer& trainer, models::Forecaster& model,
               const Json& expectation, mechanism::StartOrigin origin) {
  const auto& plan = trainer.plan();
  const auto& method = trainer.method();
  Json out;
  out["steps"] = plan.steps;
  out["epochs"] = static_cast<double>(plan.steps) / static_cast<double>(plan.steps_per_epoch);
  out["steps_per_epoch"] = plan.steps_per_epoch;
  out["ends_by"] = plan.limited_by_epsilon ? "target_epsilon" : "max_epochs";
  const auto& lengths = method.scheme().parameters().lengths;
  out["sequences"] = method.scheme().sequences();
  if (lengths.has_owners()) out["owned_series"] = lengths.count();
  const auto variables = lengths.variables();
  if (variables > 1) out["variables"] = variables;
  // A window of all variables counts once.
  out["windows_per_step"] = method.scheme().mean_windows();
  if (const auto most = method.scheme().most_windows()) out["most_windows_per_step"] = *most / variables;
  out["model"] = model.name();
  // A mixture that is trained has parameters of its own beside those of the network.
  out["parameters"] =
      model.parameters().count() + (&model.network() == &model ? 0 : model.network().parameters().count());
  out["trained_parameters"] = model.parameters().trained_count();
  out["memory_mb"] = static_cast<double>(trainer.memory()) / 1e6;
  if (method.privacy()) {
    const auto& theorem = method.privacy()->theorem();
    out["theorem"] = theorem.theorem;
    out["bound"] = name(privacy::bound_of_run(theorem));
    out["composition"] = name(theorem.composition);
    out["composition_unit"] = name(theorem.unit);
    out["compositions"] = theorem.uses_of_steps(plan.steps);
    out["noise_multiplier"] = method.privacy()->noise().multiplier;
    out["delta"] = config.privacy.delta;
    out["target_epsilon"] = config.privacy.target_epsilon;
    out["epsilon"] = {{"lower", plan.epsilon.lower}, {"upper", plan.epsilon.upper}};
    if (config.dataset.has_ranks()) {
      std::optional<double> known;  // whoever knows the seed knows the noise
      if (!config.training.reproducible)
        known = mechanism::epsilon_of_known_batches(*method.privacy(), plan.steps, config.privacy.delta);
      out["ranks"] = {{"epsilon", known ? Json(*known) : Json(nullptr)}};
    }
    if (const auto what = mechanism::not_counted_of_start(origin); !what.empty()) out["not_counted"] = what;
    out["reproducible"] = config.training.reproducible;
    out["unused"] = nullptr;
    if (const auto unused = training::unused_budget(config, method, plan)) {
      const auto or_null = [](const auto& value) { return value ? Json(*value) : Json(nullptr); };
      out["unused"] = {{"epsilon", unused->epsilon},
                       {"max_epochs", or_null(unused->max_epochs)},
                       {"noise_multiplier", or_null(unused->noise_multiplier)}};
    }
  } else {
    out["epsilon"] = nullptr;
  }
  out["expectation"] = expectation;
  return out;
}

std::string unused_text(const Json& plan, const char* would_use) {
  const auto unused = plan.value("unused", Json());
  if (unused.is_null()) return {};
  std::string by;
  if (!unused["max_epochs"].is_null())
    by = cat("training.max_epochs=", unused["max_epochs"].get<std::int64_t>(), " or ");
  by += unused["noise_multiplier"].is_null()
            ? std::string("privacy.noise_multiplier=auto")
            : cat("privacy.noise_multiplier=", rounded_up(unused["noise_multiplier"].get<double>(), 5), " with ",
                  "privacy.composition=", plan["composition"].get<std::string>());
  return cat("leaves ", rounded_down(unused["epsilon"].get<double>(), 3), " of the target epsilon ",
             plan["target_epsilon"].get<double>(), " unused: ", by, " ", would_use, " it");
}

std::string plan_text(const Json& p) {
  std::string text = cat(
      p["steps"].get<std::uint64_t>(), " steps (", rounded(p["epochs"].get<double>(), 6), " epochs of ",
      p["steps_per_epoch"].get<std::uint64_t>(), "), ends by ", p["ends_by"].get<std::string>(), "; ",
      p.contains("owned_series")
          ? cat(p["owned_series"].get<std::int64_t>(), " series of ", p["sequences"].get<std::int64_t>(), " owners, ")
          : cat(p["sequences"].get<std::int64_t>(), " series",
                p.contains("variables") ? cat(" of ", p["variables"].get<std::int64_t>(), " variables") : std::string(),
                ", "),
      rounded(p["windows_per_step"].get<double>(), 4), p["windows_per_step"] == 1.0 ? " window" : " windows",
      p.contains("variables") ? " of all variables a step; " : " a step; ", p["model"].get<std::string>(), " with ",
      p["parameters"].get<std::int64_t>(), " parameters, ",
      p["trained_parameters"] == p["parameters"]
          ? std::string()
          : cat(p["trained_parameters"].get<std::int64_t>(), " of them trained, "),
      "about ", rounded(p["memory_mb"].get<double>(), 3), " MB");
  if (!p["epsilon"].is_null())
    text += cat(
        "; Theorem ", p["theorem"].get<std::string>(),
        privacy::composition_cited(named<privacy::StepComposition>(p["composition"].get<std::string>(), "composition")),
        ", noise multiplier ", rounded(p["noise_multiplier"].get<double>(), 5), ": epsilon at the end in [",
        rounded_down(p["epsilon"]["lower"].get<double>(), 6), ", ", rounded_up(p["epsilon"]["upper"].get<double>(), 6),
        "] at delta ", p["delta"].get<double>());
  if (p.contains("ranks"))
    text += cat("; against whoever operates a rank other than 0: ",
                p["ranks"]["epsilon"].is_null()
                    ? std::string(p["reproducible"] == true ? "nothing protects" : "no bound is known")
                    : cat("epsilon ", rounded_up(p["ranks"]["epsilon"].get<double>(), 4)));
  if (p.contains("budget"))
    text += cat("; of the budget ", p["budget"]["file"].get<std::string>(), " ",
                rounded_up(100.0 * p["budget"]["share_spent"].get<double>(), 3), " % would be spent with it");
  if (p.value("reproducible", false)) text += noise_is_known;
  if (p.contains("not_counted")) text += cat("; not counted: ", p["not_counted"].get<std::string>());
  if (const auto unused = unused_text(p, "would use"); !unused.empty()) text += cat("; ", unused);
  if (p["expectation"]["pays"] == false) text += cat("; ", p["expectation"]["why"].get<std::string>());
  return text;
}

void print_advice(const mechanism::Settled& settled, const training::Plan& plan, double step_seconds,
                  const std::vector<mechanism::Alternative>& alternatives, bool json) {
  const double seconds = step_seconds * static_cast<double>(plan.steps);
  const bool is_private = settled.config.privacy.enabled;
  const auto not_counted = is_private ? mechanism::not_counted_of_start(settled.start_origin()) : std::string();
  if (json) {
    Json out;
    out["settings"] = Json::object();
    for (const auto& setting : settled.chosen)
      out["settings"][setting.key] = {{"value", setting.value}, {"why", setting.why}};
    out["expected"] = {{"steps", plan.steps},
                       {"seconds", seconds},
                       {"epsilon", is_private ? Json(plan.epsilon.upper) : Json(nullptr)}};
    if (is_private) out["expected"]["reproducible"] = settled.config.training.reproducible;
    if (!not_counted.empty()) out["expected"]["not_counted"] = not_counted;
    out["expectation"] = expectation_json(settled, alternatives);
    print_json(out);
    return;
  }
  if (settled.chosen.empty()) print("No setting is auto: nothing is chosen.\n");
  for (const auto& setting : settled.chosen) print(cat(setting.key, ": ", setting.value, "    # ", setting.why, "\n"));
  print(cat("Expected: ", plan.steps, " steps, about ", rounded(seconds, 2), " s of training on this machine",
            is_private ? cat(", epsilon at most ", rounded_up(plan.epsilon.upper, 4), " at the end") : std::string(),
            is_private && settled.config.training.reproducible ? noise_is_known : "", ".\n",
            not_counted.empty() ? std::string() : cat("Not counted in epsilon: ", not_counted, ".\n")));
  if (is_private) {
    auto why = why_it_pays_or_not(settled);
    if (why.find('.') > why.find(' '))  // else it begins with a key
      why.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(why.front())));
    print(cat(why, ".\n"));
  }
  if (alternatives.empty()) return;
  print(cat("Signal to noise ", rounded(settled.expected->signal, 3), ", noise multiplier ",
            rounded(*settled.config.privacy.noise_multiplier, 4), ", ", rounded(100.0 * settled.expected->share, 2),
            " % of what it could learn. It would be:\n"));
  for (const auto& other : alternatives)
    print(cat("  ", rounded(other.signal, 3), ", ", rounded(other.noise_multiplier, 4), ", ",
              rounded(100.0 * other.share, 2), " %: ", other.what, "\n"));
}

}  // namespace tsdp::cli
