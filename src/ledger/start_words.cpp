#include "tsdp/base/error.h"
#include "tsdp/ledger/ledger.h"

namespace tsdp::mechanism {

std::string not_counted_of_start(StartOrigin origin) {
  switch (origin) {
    case StartOrigin::fresh:
    case StartOrigin::synthetic: return "";
    case StartOrigin::trained:
      return "the training of the weights that it started from (start.trained): it has a statement of its own, and for "
             "whoever is in both the two compose (tsdp-account total)";
    case StartOrigin::trained_without_privacy:
      return "the training of the weights that it started from (start.trained): it had no privacy, so nothing protects "
             "whoever is in its data";
  }
  throw Error(ExitCode::failure, "a start from nowhere");
}

std::string start_cited(StartOrigin origin) {
  switch (origin) {
    case StartOrigin::fresh:
    case StartOrigin::synthetic: return "epsilon 0: before any of your data";
    case StartOrigin::trained: return "trained on data before, at a cost of its own";
    case StartOrigin::trained_without_privacy: return "trained on data before, without privacy";
  }
  throw Error(ExitCode::failure, "a start from nowhere");
}

}  // namespace tsdp::mechanism
