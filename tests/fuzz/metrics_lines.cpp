// private/metrics.jsonl, whose last line a crash may have cut off: what is read is written and read again as the same.
#include "run/metrics_lines.h"
#include "fuzz.h"

using namespace tsdp;

TSDP_FUZZ(input) {
  const auto first = training::read_metrics(fuzz::put("metrics.jsonl", input));
  std::string text;
  for (const auto& line : first) text += line.dump() + "\n";
  fuzz::expect(training::read_metrics(fuzz::put("copy.jsonl", text)) == first, "lines read back");
}
