#include "account_verify.h"

#include "program.h"

#include <iostream>
#include <optional>

#include <nlohmann/json.hpp>

#include "tsdp/core/digest.h"
#include "tsdp/core/error.h"
#include "tsdp/core/file.h"
#include "tsdp/core/json.h"
#include "tsdp/core/log.h"
#include "tsdp/core/text.h"
#include "tsdp/sampling/exported_model.h"
#include "tsdp/sampling/ledger.h"

namespace tsdp::cli {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

}  // namespace

int run_verify(const fs::path& what, bool json) {
  std::error_code ignored;
  if (!fs::exists(what, ignored))
    throw UsageError(cat("verify: no '", what.string(), "'; expected the folder of a run, its privacy.json or an exported model"));
  const bool is_run = fs::is_directory(what, ignored);
  const auto file = is_run ? what / "privacy.json" : what;
  if (is_run && !fs::exists(file, ignored))
    throw DataError(cat(what.string(), ": no privacy.json in it; expected the folder of a run"));
  const auto ledger = file.extension() == ".json" ? parse_json(read_file(file), file.string())
                                                  : sampling::read_exported_model(file, sampling::LedgerCheck::unverified).privacy;
  auto found = sampling::verify(ledger, file.string());
  const auto terms = sampling::read_ledger(ledger, file.string());
  if (is_run) {
    if (fs::exists(what / "config.yaml", ignored) && sha256(read_file(what / "config.yaml")) != terms.run.configuration)
      found.differences.emplace_back("run: config.yaml is not the configuration that the ledger names");
    if (fs::exists(what / "model.pt", ignored) && sampling::read_exported_model(what / "model.pt", sampling::LedgerCheck::unverified).privacy != ledger)
      found.differences.emplace_back("run: model.pt carries another ledger");
  }
  const auto interval = [](const privacy::Interval& i) { return Json{{"lower", i.lower}, {"upper", i.upper}}; };
  const bool is_private = terms.privacy.has_value();
  if (json) {
    Json out;
    out["agrees"] = found.agrees();
    out["epsilon"] = is_private ? interval(found.epsilon) : Json(nullptr);
    out["stated"] = is_private ? interval(found.stated) : Json(nullptr);
    out["delta"] = is_private ? Json(terms.privacy->delta) : Json(nullptr);
    out["theorem"] = is_private ? Json(terms.privacy->theorem) : Json(nullptr);
    out["reproducible"] = terms.reproducible;
    out["state"] = ledger["state"];
    out["texts_checked"] = found.texts_checked;
    out["differences"] = found.differences;
    print_json(out);
  } else if (found.agrees()) {
    std::cout << file.string() << ": agrees";
    if (is_private)
      std::cout << ": epsilon in [" << rounded_down(found.epsilon.lower, 7) << ", " << rounded_up(found.epsilon.upper, 7)
                << "] follows from its terms, [" << rounded_down(found.stated.lower, 7) << ", " << rounded_up(found.stated.upper, 7)
                << "] is stated";
    std::cout << "\n" << sampling::statement(terms) << "\n";
    if (!found.texts_checked) std::cout << "Texts that explain are not checked: another version of tsdp wrote them.\n";
  }
  if (found.agrees()) return 0;
  log::error(cat(file.string(), ": does not agree with its own terms: ", join(found.differences, "; ")));
  return static_cast<int>(ExitCode::privacy);
}

}  // namespace tsdp::cli
