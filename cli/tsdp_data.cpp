// tsdp-data: look-alike data sets for benchmarks and smoke tests.
#include <iostream>

#include "program.h"
#include "tsdp/core/error.h"
#include "tsdp/core/text.h"
#include "tsdp/data/generate.h"

int main(int argc, char** argv) {
  CLI::App app("Makes data sets.", "tsdp-data");
  tsdp::cli::CommonOptions common;
  tsdp::cli::add_common_options(app, common, /*with_json=*/false);
  app.require_subcommand(1);
  app.fallthrough();
  auto* generate = app.add_subcommand("generate", "Writes seeded look-alike series as LSTNet text");
  std::string kind;
  std::string output;
  tsdp::data::GenerateOptions options;
  generate->add_option("kind", kind, "traffic-like")->required()->check(CLI::IsMember({"traffic-like"}));
  generate->add_option("--series", options.series, "Number of series")->check(CLI::Range(1, 10'000'000))->capture_default_str();
  generate->add_option("--length", options.length, "Hours of each series")->check(CLI::Range(1, 100'000'000))->capture_default_str();
  generate->add_option("--seed", options.seed, "Seed")->capture_default_str();
  generate->add_option("--output", output, "File to write; compressed if its name ends in .gz")->required();
  return tsdp::cli::run(app, argc, argv, common, [&] {
    tsdp::data::write_lstnet(tsdp::data::generate_traffic_like(options), output);
    std::cout << output << ": " << options.series << " series of " << options.length << " hours\n";
    return 0;
  });
}
