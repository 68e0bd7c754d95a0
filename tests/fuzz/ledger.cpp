// privacy.json: terms that are read are written and read again as the same, and derived again without anything but a
// line.
#include <optional>

#include <nlohmann/json.hpp>

#include "fuzz.h"
#include "tsdp/ledger/ledger.h"

using namespace tsdp;

TSDP_FUZZ(input) {
  const auto json = nlohmann::ordered_json::parse(input, nullptr, false);
  std::optional<mechanism::Ledger> ledger;
  nlohmann::ordered_json again;
  if (!fuzz::accepted([&] { ledger = mechanism::read_ledger(json, "privacy.json"); }, {"privacy.json"})) return;
  if (!fuzz::accepted([&] { again = mechanism::document(*ledger); })) return;
  fuzz::expect(mechanism::document(mechanism::read_ledger(again, "again")) == again, "a ledger reads back");
  fuzz::expect(mechanism::statement(*ledger).find('\n') == std::string::npos, "a statement is one line");
}
