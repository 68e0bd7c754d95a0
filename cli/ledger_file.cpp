#include "ledger_file.h"

#include <utility>

#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/json.h"
#include "tsdp/base/text.h"
#include "tsdp/ledger/exported_model.h"

namespace tsdp::cli {

LedgerFile ledger_of(const std::filesystem::path& what, const std::string& command) {
  std::error_code ignored;
  if (!std::filesystem::exists(what, ignored))
    throw UsageError(cat(command, ": no '", what.string(),
                         "'; expected the folder of a run, its privacy.json or an exported model"));
  LedgerFile out;
  out.is_run = std::filesystem::is_directory(what, ignored);
  out.file = out.is_run ? what / "privacy.json" : what;
  if (out.is_run && !std::filesystem::exists(out.file, ignored))
    throw DataError(cat(what.string(), ": no privacy.json in it; expected the folder of a run"));
  if (out.file.extension() == ".json") {
    out.ledger = parse_json(read_file(out.file), out.file.string());
    return out;
  }
  auto carried = mechanism::carried_ledger(out.file);
  out.ledger = std::move(carried.privacy);
  out.ties_weights = carried.ties_weights;
  return out;
}

}  // namespace tsdp::cli
