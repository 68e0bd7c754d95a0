#include "account_total.h"

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "ledger/total.h"
#include "ledger_file.h"
#include "program.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::cli {

void run_total(const std::vector<std::filesystem::path>& runs, double delta, double precision, bool json) {
  using Json = nlohmann::ordered_json;
  constexpr const char* assumption = "settings fixed beforehand";
  std::vector<mechanism::Ledger> ledgers;
  auto listed = Json::array();
  for (const auto& run : runs) {
    const auto found = ledger_of(run, "total");
    auto verified = mechanism::verify(found.ledger, found.file.string());
    if (!verified.agrees())
      throw PrivacyError(
          cat(found.file.string(), ": does not agree with its own terms: ", verified.differences.front()));
    const auto& ledger = *verified.terms;
    if (ledger.is_private())
      listed.push_back({{"run", run.string()},
                        {"id", ledger.run.id},
                        {"theorem", ledger.method.privacy()->theorem().theorem},
                        {"composition", name(ledger.method.privacy()->composition())},
                        {"compositions", ledger.accounted_uses()},
                        {"epsilon", {{"lower", verified.stated.lower}, {"upper", verified.stated.upper}}},
                        {"delta", ledger.cost->delta}});
    ledgers.push_back(std::move(*verified.terms));
  }
  const auto total = mechanism::total_of(ledgers);
  const auto [epsilon, certificate] = total.cost(delta, precision);
  const bool from_below = !certificate.lower.empty();
  if (json) {
    Json out;
    out["epsilon"] = {{"lower", from_below ? nlohmann::ordered_json(epsilon.lower) : nlohmann::ordered_json(nullptr)},
                      {"upper", epsilon.upper}};
    out["delta"] = delta;
    out["relation"] = mechanism::unit_json(total.unit);
    if (!total.covariates.empty())
      out["covariates"] = {{"names", total.covariates}, {"protected", total.protects_covariates}};
    out["runs"] = listed;
    out["earlier_runs"] = total.earlier;
    out["assumption"] = assumption;
    out["certificate"] = mechanism::certificate_json(certificate);
    print_json(out);
    return;
  }
  print(
      cat(from_below ? cat("epsilon in [", rounded_down(epsilon.lower, 7), ", ", rounded_up(epsilon.upper, 7), "]")
                     : cat("epsilon at most ", rounded_up(epsilon.upper, 7)),
          " at delta ", delta, " for all models of ", runs.size(), runs.size() == 1 ? " run" : " runs",
          total.earlier.empty() ? std::string()
                                : cat(" and the runs that their weights came from (", join(total.earlier, ", "), ")"),
          " together, relation ", mechanism::unit_text(total.unit), ".",
          mechanism::covariates_text(total.covariates, total.protects_covariates, total.unit.relation),
          "\nThis holds if the settings of all of them were fixed before the first one released anything, and all read "
          "the same data. Settings chosen after looking at an earlier model need a budget: tsdp-train --budget.\n"));
}

}  // namespace tsdp::cli
