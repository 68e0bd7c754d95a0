// Sweep files: every setting that one holds is one that --set takes as it is written in the commands of its runs.
#include "fuzz.h"
#include "sweep/sweep_file.h"
#include "tsdp/settings/config.h"

using namespace tsdp;

TSDP_FUZZ(input) {
  static const auto base = fuzz::put("base.yaml", "model: {context_length: 8}\n");
  const auto file = fuzz::put("sweep.yaml", input);
  sweep::SweepFile read;
  if (!fuzz::accepted([&] { read = sweep::read_sweep_file(file); }, {file.string() + ":"})) return;
  fuzz::expect(!read.rows.empty() && !read.columns.empty() && !read.seeds.empty(),
               "a grid has rows, columns and seeds");
  const auto check = [](const std::vector<sweep::Setting>& settings) {
    for (const auto& one : settings)
      fuzz::expect(fuzz::accepted([&] { check_setting("", one.key, one.value); }), "settings are as --set takes them");
  };
  check(read.set);
  check(read.smoke);
  for (const auto* axes : {&read.rows, &read.columns})
    for (const auto& axis : *axes) check(axis.set);
}
