#include "plain_words.h"

#include <cmath>
#include <limits>

#include "plot/ticks.h"
#include "tsdp/base/text.h"

namespace tsdp::exporting {

using Json = nlohmann::ordered_json;

const Json& part(const Json& object, const char* name) {
  static const Json none;
  if (!object.is_object()) return none;
  const auto found = object.find(name);
  return found != object.end() ? *found : none;
}

std::string text_in(const Json& object, const char* name) {
  const auto& found = part(object, name);
  return found.is_string() ? found.get<std::string>() : std::string();
}

double number_in(const Json& object, const char* name) {
  const auto& found = part(object, name);
  return found.is_number() ? found.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

std::string protected_unit(const Json& ledger) {
  const auto& relation = part(ledger, "relation");
  const double w = number_in(relation, "w");
  const double v = number_in(relation, "v");
  const auto count = std::isfinite(w) ? cat(static_cast<long long>(w)) : std::string("some");
  const auto kind = text_in(relation, "kind");
  const double variables = number_in(relation, "variables");
  const auto all = variables > 1.0 ? cat("all ", static_cast<long long>(variables), " variables") : std::string();
  if (kind == "owner") return "all series of any one owner, there or not";
  if (kind == "series")
    return cat("any one whole series", all.empty() ? std::string() : cat(", with ", all), ", there or not");
  if (!all.empty())
    return cat("the values of ", all, " of any one series ",
               w == 1.0          ? std::string("at any single step")
               : kind == "event" ? cat("within any ", count, " steps in a row")
                                 : cat("at any ", count, " steps, wherever they are"));
  std::string text = w == 1.0          ? std::string("any single value of any one series")
                     : kind == "event" ? cat("the values within any ", count, " steps in a row of any one series")
                                       : cat("any ", count, " values of any one series, wherever they are");
  if (std::isfinite(v)) text += cat(", each changed by at most ", v);
  return text;
}

std::string about_start(mechanism::StartOrigin origin) {
  switch (origin) {
    case mechanism::StartOrigin::fresh:
    case mechanism::StartOrigin::synthetic: return "";
    case mechanism::StartOrigin::trained:
      return "The weights that this run started from were trained on data, too, at a cost of their own. What stands "
             "here is of this run alone; for whoever is in both, the two compose (tsdp-account total).";
    case mechanism::StartOrigin::trained_without_privacy:
      return "The weights that this run started from were trained on data without privacy. What stands here is of this "
             "run alone; nothing protects whoever is in that data.";
  }
  return "";
}

std::vector<std::string> promise_in_words(const Json& ledger, mechanism::StartOrigin origin) {
  std::vector<std::string> out;
  const auto start = about_start(origin);
  const auto emphasised_start = start.empty() ? std::string() : cat("**", start, "**");
  const auto& is_private = part(ledger, "private");
  if (!is_private.is_boolean() || !is_private.get<bool>()) {
    const char* what = "This run trained on **synthetic series alone**, which are no data of anyone.";
    if (part(ledger, "synthetic_data").is_null())
      what =
          "**No privacy.** This model was trained without clipping and noise. It may give away values that it was "
          "trained on; whoever may not see the data should not get the model either.";
    out.emplace_back(what);
    if (!start.empty()) out.push_back(emphasised_start);
    return out;
  }
  const auto& reproducible = part(ledger, "reproducible");
  if (reproducible.is_boolean() && reproducible.get<bool>())
    out.emplace_back(
        "**Not for release: the randomness follows from the seed.** Whoever knows the seed can remove the noise. What "
        "follows holds only for those who do not know it.");
  const auto& covariates = part(ledger, "covariates");
  const auto of_steps =
      text_in(part(ledger, "relation"), "kind") == "event" || text_in(part(ledger, "relation"), "kind") == "user";
  out.push_back(cat("Think of two versions of the data that are the same but for **", protected_unit(ledger), "**",
                    covariates.is_null()                          ? ""
                    : part(covariates, "protected") != Json(true) ? " (the covariates are public, the same in both)"
                    : of_steps                                    ? " (and, in the same places, the covariates)"
                                                                  : " (with its covariates)",
                    ". Whoever sees the model, and even every noisy step of its training, can hardly tell which of "
                    "the two versions it was trained on, whatever else they know and however much they compute."));
  if (!start.empty()) out.push_back(emphasised_start);
  const double epsilon = number_in(part(ledger, "epsilon"), "upper");
  const double delta = number_in(ledger, "delta");
  if (std::isfinite(epsilon) && !std::isfinite(std::exp(epsilon)))
    out.push_back(cat("In numbers: ε ≤ ", rounded_up(epsilon, 4), ", which is so large that it promises nothing."));
  else if (std::isfinite(epsilon))
    out.push_back(cat("In numbers, ε and δ: whatever one looks for in the model, finding it is at most ",
                      rounded_up(std::exp(epsilon), 3), " times as likely (e to the power ε, ε ≤ ",
                      rounded_up(epsilon, 4), ") with one version as with the other, but for a remainder of at most ",
                      std::isfinite(delta) ? tick_label(delta, AxisScale::linear) : std::string("?"),
                      " (δ). With ε = δ = 0 the model would not depend on such a change at all."));
  const auto& attack = part(ledger, "attack");
  const double advantage = number_in(attack, "advantage");
  if (!std::isfinite(advantage)) return out;
  auto attacker =
      cat("So take the best possible attacker, who knows all other values and has both versions as candidates. "
          "Guessing by a coin is right in 50 of 100 cases; with the model in hand it is right in at most **",
          rounded_up(50.0 + 50.0 * advantage, 4), " of 100**.");
  const double alarms = number_in(attack, "false_positive_rate");
  const double hits = number_in(attack, "true_positive_rate");
  if (std::isfinite(alarms) && std::isfinite(hits))
    attacker += cat(" One who raises a false alarm in only ", rounded(100.0 * alarms, 3),
                    " % of all cases finds a true one in at most ", rounded_up(100.0 * hits, 3), " %.");
  const auto& gaussian = part(ledger, "gaussian");
  const double mu = number_in(gaussian, "mu");
  const double regret = number_in(gaussian, "regret");
  if (std::isfinite(mu) && std::isfinite(regret))
    attacker +=
        cat(" At every share of false alarms: the two versions are at least as hard to tell apart as a single "
            "draw of a normal law from one of the same law moved by μ = ",
            rounded_up(mu, 4), " standard deviations, but for δ (Gaussian differential privacy, regret ",
            rounded_up(regret, 2), ").");
  out.push_back(std::move(attacker));
  return out;
}

std::vector<std::string> not_covered(const Json& ledger) {
  const auto& relation = part(ledger, "relation");
  std::vector<std::string> out;
  if (number_in(part(ledger, "epsilon"), "upper") != 0.0)  // else nothing of the data reached the model
    out.push_back(cat("at a time more than ", protected_unit(ledger), ": ",
                      text_in(relation, "kind") == "owner"
                          ? "several owners, or what their series have in common, are protected less or not at all"
                      : text_in(relation, "kind") == "series"
                          ? "several series, or what they have in common, are protected less or not at all"
                          : "a whole series, or what many values have in common, is protected less or not at all"));
  for (const auto& entry : part(ledger, "not_covered"))
    if (entry.is_string()) out.push_back(entry.get<std::string>());
  return out;
}

}  // namespace tsdp::exporting
