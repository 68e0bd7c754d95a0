// privacy.json: terms that are read are written and read again as the same, and derived again without anything but a line.
#include <nlohmann/json.hpp>

#include "fuzz.h"
#include "tsdp/sampling/ledger.h"

using namespace tsdp;

TSDP_FUZZ(input) {
  const auto json = nlohmann::ordered_json::parse(input, nullptr, false);
  sampling::Ledger ledger;
  nlohmann::ordered_json again;
  if (!fuzz::accepted([&] { ledger = sampling::read_ledger(json, "privacy.json"); }, {"privacy.json"})) return;
  if (ledger.sequences > 100'000) return;  // a length each in memory
  if (!fuzz::accepted([&] { again = sampling::document(ledger); })) return;
  fuzz::expect(sampling::document(sampling::read_ledger(again, "again")) == again, "a ledger reads back");
  fuzz::expect(sampling::statement(ledger).find('\n') == std::string::npos, "a statement is one line");
}
