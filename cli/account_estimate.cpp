#include "account_estimate.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "account_strategy.h"
#include "program.h"
#include "research/correlated_estimates.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/random/random.h"

namespace tsdp::cli {
namespace {

using Json = nlohmann::ordered_json;
using privacy::Direction;

/// An estimated number and what is said about it.
struct Estimated {
  double value = 0.0;
  std::optional<double> standard_error;  ///< of δ; ε has none
  std::string how;
};

Estimated drawn(const PlannedSeries& planned, double sigma, const MechanismOptions& o, const QueryOptions& query,
                bool asks_epsilon) {
  const auto samples = o.samples.value_or(100'000);
  const auto seed = o.seed.value_or(1);
  if (seed < 0) throw UsageError(cat("--seed: found ", seed, "; expected an integer of at least 0"));
  Estimated out;
  if (asks_epsilon && needed_delta(query, {}) * static_cast<double>(samples) < 10.0)
    throw UsageError(cat("--samples: found ", samples, " for delta ", *query.delta, ", which ", samples,
                         " draws cannot tell from 0; expected at least ", std::ceil(10.0 / *query.delta)));
  for (const auto direction : {Direction::remove, Direction::add}) {
    if (planned.direction && *planned.direction != direction) continue;
    RandomStream normals(SecretKey::from_seed(static_cast<std::uint64_t>(seed)), cat("losses, ", name(direction)), 0);
    RandomStream bins(SecretKey::from_seed(static_cast<std::uint64_t>(seed)), cat("bins, ", name(direction)), 0);
    std::uint64_t used = 0;
    const privacy::Draws draws{[&](std::span<double> piece) {
                                 normals.normals(used, piece);
                                 used += piece.size();
                               },
                               [&](std::uint64_t n) { return bins.below(n); }};
    const privacy::SampledProfile profile(*planned.strategy, planned.law.batches, planned.epochs, sigma, direction,
                                          samples, draws);
    if (asks_epsilon) {
      out.value = std::max(out.value, profile.epsilon(needed_delta(query, {})));
    } else if (const auto found = profile.delta(needed_epsilon(query, {}));
               !out.standard_error || found.value > out.value) {
      out.value = found.value;
      out.standard_error = found.standard_error;
    }
  }
  out.how = cat("from ", samples, " drawn losses a direction",
                !asks_epsilon && out.value == 0.0
                    ? cat(", none of which is above epsilon: delta may be some ", 1.0 / static_cast<double>(samples))
                    : "");
  return out;
}

Estimated published(const PlannedSeries& planned, double sigma, const QueryOptions& query, bool asks_epsilon) {
  if (planned.direction) throw UsageError("--direction: found one; --method estimate is of both");
  const double delta = needed_delta(query, {});
  return {asks_epsilon
              ? privacy::published_epsilon(*planned.strategy, planned.law.batches, planned.epochs, sigma, delta)
              : privacy::published_delta(*planned.strategy, planned.law.batches, planned.epochs, sigma,
                                         needed_epsilon(query, {}), 0.5 * delta),
          {},
          "by the published rule for later epochs, which shares the chance of a failure as if only one step of an "
          "epoch could fail"};
}

}  // namespace

void run_estimate(const std::string& command, const CLI::App& app, const MechanismOptions& o, const QueryOptions& query,
                  bool json) {
  const bool asks_epsilon = command == "epsilon";
  if (!asks_epsilon && command != "delta")
    throw UsageError(cat("--method ", *o.method, ": an estimate, which ", command,
                         " cannot rest on; expected epsilon or delta, or --method auto"));
  if (o.relation != "series") throw UsageError("--method: used with --relation series alone");
  if (query.steps) throw UsageError("--steps: not used with an estimate; expected --epochs");
  if (!o.noise_multiplier) throw UsageError("--noise-multiplier: not given; expected a positive number");
  const bool draws = *o.method == monte_carlo_method;
  if (!draws && (o.samples || o.seed))
    throw UsageError(cat(o.samples ? "--samples" : "--seed", ": used by --method ", monte_carlo_method, " alone"));
  if (o.largest_batch) throw UsageError("--largest-batch: not used with an estimate; expected none");
  const auto planned = planned_series_of(app, o);
  if (planned.law.sampler != privacy::TopLevel::balls_in_bins || planned.law.redraw != privacy::Redraw::once)
    throw PrivacyError(cat("--method ", *o.method, ": found top level ", name(planned.law.sampler),
                           planned.law.redraw == privacy::Redraw::once ? "" : " drawn anew in every epoch",
                           "; only balls_in_bins is estimated",
                           planned.law.redraw == privacy::Redraw::once ? "" : ", drawn once"));
  if (!draws && !asks_epsilon && !query.delta)
    throw UsageError("--delta: not given; --method estimate takes half of it for the chance that a hazard fails");
  const double sigma = *o.noise_multiplier;
  static_cast<void>(privacy::series_theorem(planned.law, sigma));  // its checks of the law and of sigma
  // Before anything is drawn.
  static_cast<void>(asks_epsilon ? needed_delta(query, {}) : needed_epsilon(query, {}));
  const auto found =
      draws ? drawn(planned, sigma, o, query, asks_epsilon) : published(planned, sigma, query, asks_epsilon);
  if (json) {
    Json out;
    Json value = {{"lower", nullptr}, {"upper", nullptr}, {"estimate", found.value}};
    if (found.standard_error) value["standard_error"] = *found.standard_error;
    out["epsilon"] = asks_epsilon ? value : Json(*query.epsilon);
    out["delta"] = asks_epsilon ? Json(*query.delta) : value;
    out["noise_multiplier"] = sigma;
    out["epochs"] = planned.epochs;
    out["relation"] = "series";
    out["direction"] = o.direction.value_or("both");
    out["noise"] = strategy_json(*planned.strategy);
    out["estimate"] = found.how;
    return print_json(out);
  }
  print(cat(command, " about ", rounded(found.value, 7),
            found.standard_error ? cat(" (standard error ", rounded(*found.standard_error, 2), ")") : "",
            asks_epsilon ? cat(" at delta ", *query.delta) : cat(" at epsilon ", *query.epsilon), ", an estimate ",
            found.how, ": no bound, and nothing to state of a model\n"));
}

}  // namespace tsdp::cli
