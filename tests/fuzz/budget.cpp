// A budget file: what is read says how much is spent, and admits nothing that costs more than all.
#include <limits>
#include <optional>
#include <vector>

#include "fuzz.h"
#include "ledger/budget.h"
#include "privacy/accountant/renyi.h"

using namespace tsdp;

TSDP_FUZZ(input) {
  const auto file = fuzz::put("budget.json", input);
  std::optional<mechanism::Budget> budget;
  if (!fuzz::accepted([&] { budget = mechanism::read_budget(file); }, {file.string() + ":"})) return;
  const double spent = budget->spent();
  fuzz::expect(spent >= 0.0 && spent <= 1.0, "a share is spent");
  const auto orders = privacy::renyi_orders().size();
  fuzz::expect(!budget->admits(std::vector<double>(orders, std::numeric_limits<double>::infinity())),
               "no budget pays for everything");
}
