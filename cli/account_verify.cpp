#include "account_verify.h"

#include <iostream>
#include <optional>

#include <nlohmann/json.hpp>

#include "tsdp/core/digest.h"
#include "tsdp/core/error.h"
#include "tsdp/core/file.h"
#include "tsdp/core/log.h"
#include "tsdp/core/tensor_file.h"
#include "tsdp/core/text.h"
#include "tsdp/core/zip_file.h"
#include "tsdp/sampling/ledger.h"

namespace tsdp::cli {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr std::size_t largest_data = std::size_t{1} << 32;

Json parsed(const std::string& text, const std::string& where) {
  auto json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) throw DataError(cat(where, ": not JSON; expected a ledger that tsdp-train wrote"));
  return json;
}

/// The ledger inside an exported model, from its checksummed data.
Json ledger_of_model(const fs::path& file) {
  const auto where = file.string();
  const auto data = read_tensor_file(read_zip_member(file, "extra/tsdp.safetensors", largest_data), where);
  for (const auto* entry : {"model.json", "privacy.json"})
    if (read_zip_member(file, cat("extra/", entry), largest_data) != data.text(entry, where))
      throw DataError(cat(where, ": extra/", entry, " is not what its checksummed copy says; expected a model that tsdp-export or "
                          "tsdp-train wrote"));
  return parsed(data.text("privacy.json", where), where);
}

}  // namespace

int run_verify(const fs::path& what, bool json) {
  std::error_code ignored;
  if (!fs::exists(what, ignored))
    throw UsageError(cat("verify: no '", what.string(), "'; expected the folder of a run, its privacy.json or an exported model"));
  const bool is_run = fs::is_directory(what, ignored);
  const auto file = is_run ? what / "privacy.json" : what;
  if (is_run && !fs::exists(file, ignored))
    throw DataError(cat(what.string(), ": no privacy.json in it; expected the folder of a run"));
  const auto ledger = file.extension() == ".json" ? parsed(read_file(file), file.string()) : ledger_of_model(file);
  auto found = sampling::verify(ledger, file.string());
  const auto terms = sampling::read_ledger(ledger, file.string());
  if (is_run) {
    if (fs::exists(what / "config.yaml", ignored) && sha256(read_file(what / "config.yaml")) != terms.run.configuration)
      found.differences.emplace_back("run: config.yaml is not the configuration that the ledger names");
    if (fs::exists(what / "model.pt", ignored) && ledger_of_model(what / "model.pt") != ledger)
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
    out["differences"] = found.differences;
    std::cout << out.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  } else if (found.agrees()) {
    std::cout << file.string() << ": agrees";
    if (is_private)
      std::cout << ": epsilon in [" << rounded_down(found.epsilon.lower, 7) << ", " << rounded_up(found.epsilon.upper, 7)
                << "] follows from its terms, [" << rounded_down(found.stated.lower, 7) << ", " << rounded_up(found.stated.upper, 7)
                << "] is stated";
    std::cout << "\n" << sampling::statement(terms) << "\n";
  }
  if (found.agrees()) return 0;
  log::error(cat(file.string(), ": does not agree with its own terms: ", join(found.differences, "; ")));
  return static_cast<int>(ExitCode::privacy);
}

}  // namespace tsdp::cli
