// tsdp-export: the TorchScript model of a run, with its privacy statement inside.
#include <iostream>

#include "program.h"
#include "run_model.h"
#include "tsdp/core/error.h"
#include "tsdp/core/text.h"

int main(int argc, char** argv) {
  using tsdp::cat;
  CLI::App app("Exports the model of a run as TorchScript, with the privacy ledger inside.", "tsdp-export");
  tsdp::cli::CommonOptions common;
  tsdp::cli::add_common_options(app, common);
  std::string run;
  std::string which = "last";
  std::string output;
  app.add_option("--run", run, "Folder of a run")->required();
  app.add_option("--checkpoint", which, "last or best")->check(CLI::IsMember({"last", "best"}))->capture_default_str();
  app.add_option("--output", output, "File to write")->required();

  return tsdp::cli::run(app, argc, argv, common, [&] {
    const tsdp::training::RunFolder folder{run};
    if (!std::filesystem::is_regular_file(folder.config()))
      throw tsdp::UsageError(cat("--run: no ", folder.config().string(), "; expected the folder of an earlier run"));
    const auto config = tsdp::read_config(folder.config());
    const auto model = tsdp::cli::model_of_run(folder, config, which);
    tsdp::exporting::save_module(model.module, model.metadata, output);
    if (common.json) {
      nlohmann::ordered_json out = {{"output", output}, {"model", model.metadata.model}, {"privacy", model.metadata.privacy}};
      std::cout << out.dump(2) << "\n";
    } else {
      std::cout << output << ": " << model.metadata.privacy.value("statement", std::string()) << "\n";
    }
    return 0;
  });
}
