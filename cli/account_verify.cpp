#include "account_verify.h"

#include "ledger_file.h"
#include "program.h"

#include <iostream>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/digest.h"
#include "base/log.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/text.h"
#include "tsdp/ledger/exported_model.h"
#include "tsdp/ledger/ledger.h"

namespace tsdp::cli {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

}  // namespace

int run_verify(const fs::path& what, bool json) {
  std::error_code ignored;
  const auto [file, ledger, is_run, ties_weights] = ledger_of(what, "verify");
  auto found = mechanism::verify(ledger, file.string());
  if (is_run && found.terms) {
    if (fs::exists(what / "config.yaml", ignored) &&
        sha256(read_file(what / "config.yaml")) != found.terms->run.configuration)
      found.differences.emplace_back("run: config.yaml is not the configuration that the ledger names");
    if (fs::exists(what / "model.pt", ignored) &&
        mechanism::read_exported_model(what / "model.pt", mechanism::LedgerCheck::unverified).privacy != ledger)
      found.differences.emplace_back("run: model.pt carries another ledger");
  }
  const auto interval = [](const privacy::Interval& i) { return Json{{"lower", i.lower}, {"upper", i.upper}}; };
  const mechanism::Cost* cost = found.terms && found.terms->cost ? &*found.terms->cost : nullptr;
  if (json) {
    Json out;
    out["agrees"] = found.agrees();
    out["epsilon"] = cost != nullptr ? interval(found.epsilon) : Json(nullptr);
    out["stated"] = cost != nullptr ? interval(found.stated) : Json(nullptr);
    out["delta"] = cost != nullptr ? Json(cost->delta) : Json(nullptr);
    out["theorem"] = ledger.value("theorem", Json(nullptr));
    out["reproducible"] = ledger.value("reproducible", Json(nullptr));
    out["state"] = ledger.value("state", Json(nullptr));
    out["statement"] = found.agrees() ? Json(mechanism::statement(*found.terms)) : Json(nullptr);
    out["texts_checked"] = found.texts_checked;
    out["ties_weights"] = ties_weights ? Json(*ties_weights) : Json(nullptr);
    out["differences"] = found.differences;
    print_json(out);
  } else if (found.agrees()) {
    std::cout << file.string() << ": agrees";
    if (cost != nullptr)
      std::cout << ": epsilon in [" << rounded_down(found.epsilon.lower, 7) << ", "
                << rounded_up(found.epsilon.upper, 7) << "] follows from its terms, ["
                << rounded_down(found.stated.lower, 7) << ", " << rounded_up(found.stated.upper, 7) << "] is stated";
    std::cout << "\n" << mechanism::statement(*found.terms) << "\n";
    if (found.terms->state != mechanism::RunState::finished)
      std::cout << "The run is not finished: " << found.terms->steps_taken << " of " << found.terms->steps_planned
                << " steps are taken.\n";
    if (ties_weights == false)
      std::cout << "The weights in this file are not tied to this ledger: either could have been replaced. A model.pt "
                   "has both under one checksum.\n";
    if (!found.texts_checked) std::cout << "Texts that explain are not checked: another version of tsdp wrote them.\n";
  }
  if (found.agrees()) return 0;
  log::error(cat(file.string(), ": does not agree with its own terms: ", join(found.differences, "; ")));
  return static_cast<int>(ExitCode::privacy);
}

}  // namespace tsdp::cli
