// Assignments of --set, one a line: they leave a configuration that is written and read as itself, and what one alone
// is refused for, check_setting refuses too.
#include <vector>

#include "fuzz.h"
#include "tsdp/base/text.h"
#include "tsdp/settings/config.h"

using namespace tsdp;

TSDP_FUZZ(input) {
  static const auto base = fuzz::put("base.yaml",
                                     "dataset: {path: data.txt, format: lstnet, frequency: 1h, start: \"2015-01-01\", "
                                     "prediction_length: 4, season_length: 24}\n"
                                     "model: {context_length: 8}\nsampling: {batch_size: 2}\n");
  const auto assignments = split(input, '\n');
  std::string text;
  if (!fuzz::accepted([&] { text = config_text(read_config(base, assignments)); }, {"--set", base.string() + ":"}))
    return;
  for (const auto& one : assignments) {
    const auto equals = one.find('=');
    fuzz::expect(fuzz::accepted([&] { check_setting("", one.substr(0, equals), one.substr(equals + 1)); }),
                 "what a run takes, a sweep takes");
  }
  const auto resolved = fuzz::put("resolved.yaml", text);
  fuzz::expect(config_text(read_config(resolved)) == text, "config.yaml is read as what it was written from");
}
