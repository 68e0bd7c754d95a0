// tsdp-export: the model of a run, with its privacy statement inside.
#include <iostream>

#include "base/scratch_folder.h"
#include "export_format.h"
#include "program.h"
#include "run_model.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/text.h"

int main(int argc, char** argv) {
  using tsdp::cat;
  CLI::App app("Exports the model of a run, with the privacy ledger inside.", "tsdp-export");
  tsdp::cli::CommonOptions common;
  tsdp::cli::add_common_options(app, common);
  std::string run;
  std::string which;
  std::string output;
  app.add_option("--run", run, "Folder of a run")->required();
  app.add_option("--checkpoint", which, "last or best (default: training.checkpoint of the run)")
      ->check(CLI::IsMember(tsdp::all_names<tsdp::ExportedWeights>()));
  app.add_option("--output", output, "File to write")->required();
  std::string format;
  app.add_option(
         "--format", format,
         "torchscript, onnx or torch_export; the last two need Python with the package tsdp, and onnx the "
         "packages onnx and onnxscript, too (default: by the ending of --output: .onnx, .pt2, else torchscript)")
      ->check(CLI::IsMember(tsdp::all_names<tsdp::cli::ExportFormat>()));
  bool unfinished = false;
  app.add_flag("--unfinished", unfinished, "Export the model of a run that is not finished, too");

  return tsdp::cli::run(app, argc, argv, common, [&] {
    const tsdp::training::RunFolder folder{run};
    if (!tsdp::is_there(folder.config()))
      throw tsdp::UsageError(cat("--run: no ", folder.config().string(), "; expected the folder of an earlier run"));
    const auto config = tsdp::read_config(folder.config());
    auto kept = folder.needed();
    for (auto& file : tsdp::cli::files_read_by(config, folder.config())) kept.push_back(std::move(file));
    tsdp::cli::require_other_file("--output", output, kept);
    const auto model = tsdp::cli::model_of_run(
        folder, config,
        which.empty() ? config.training.checkpoint : tsdp::named<tsdp::ExportedWeights>(which, "--checkpoint"),
        unfinished ? tsdp::cli::Unfinished::allow : tsdp::cli::Unfinished::refuse);
    const auto chosen =
        format.empty() ? tsdp::cli::format_of_ending(output) : tsdp::named<tsdp::cli::ExportFormat>(format, "--format");
    if (chosen == tsdp::cli::ExportFormat::torchscript) {
      tsdp::exporting::save_model(*model.model, model.sampled_forecasts, model.metadata, output);
    } else {
      const tsdp::ScratchFolder scratch("export");
      const auto archive = scratch.path() / "model.pt";
      tsdp::exporting::save_model(*model.model, model.sampled_forecasts, model.metadata, archive);
      tsdp::cli::write_by_python(archive, output, chosen);
    }
    if (common.json) {
      nlohmann::ordered_json out = {{"output", output},
                                    {"format", tsdp::name(chosen)},
                                    {"model", model.metadata.model},
                                    {"privacy", model.metadata.privacy}};
      tsdp::cli::print_json(out);
    } else {
      tsdp::cli::print(cat(output, ": ", model.metadata.privacy.value("statement", std::string()), "\n",
                           tsdp::cli::unfinished_text(model.metadata)));
    }
    return 0;
  });
}
