// Configuration files: the resolved configuration, written as config.yaml, is read as itself.
#include "tsdp/core/config.h"

#include "fuzz.h"

using namespace tsdp;

TSDP_FUZZ(input) {
  const auto file = fuzz::put("config.yaml", input);
  std::string text;
  if (!fuzz::accepted([&] { text = config_text(read_config(file)); }, {file.string() + ":"})) return;
  const auto resolved = fuzz::put("resolved.yaml", text);
  std::string again;
  fuzz::expect(fuzz::accepted([&] { again = config_text(read_config(resolved)); }), "what is written can be read");
  fuzz::expect(again == text, "config.yaml is read as what it was written from");
}
