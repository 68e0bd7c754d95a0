// Trains on the fake device as tsdp-train does on a GPU, for cli/kill_and_resume.py: fake_device_train --config FILE
// --output RUN [--set KEY=VALUE …], or --resume RUN. Exports nothing.
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/device.h"
#include "cli/program.h"
#include "fake_device.h"
#include "settings/setup.h"
#include "tsdp/base/error.h"
#include "tsdp/settings/auto_settings.h"
#include "tsdp/settings/config.h"
#include "tsdp/training/trainer.h"

namespace {

struct Options {
  tsdp::cli::CommonOptions common;
  std::string config, output, resume;
  std::vector<std::string> set;
  int threads = 1;
};

int train(const Options& o) {
  tsdp::cli::set_threads(o.threads);
  const bool resumes = !o.resume.empty();
  const tsdp::training::RunFolder folder{resumes ? o.resume : o.output};
  const auto file = resumes ? folder.config() : tsdp::find_config_file(o.config);
  auto data = tsdp::data::prepare_data(tsdp::read_config(file, o.set), file);
  auto settled = tsdp::mechanism::settle(data.config, data.training_lengths(), file);
  if (!resumes) settled.config.dataset.path = tsdp::find_data_file(settled.config.dataset.path, file).string();
  tsdp::training::Trainer trainer(settled, data, tsdp::test::fake::device(), folder);
  if (resumes) {
    trainer.resume();
  } else {
    trainer.begin();
  }
  tsdp::training::TrainOptions options;
  options.stop = &tsdp::cli::stop_on_signals();
  if (!trainer.run(options)) throw tsdp::Error(tsdp::ExitCode::interrupted, "interrupted");
  tsdp::test::fake::expect_copies_undisturbed();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  tsdp::cli::spin_briefly(argv);
  CLI::App app("Trains on the fake device", "fake_device_train");
  Options o;
  tsdp::cli::add_common_options(app, o.common);
  app.add_option("--config", o.config);
  app.add_option("--set", o.set)->allow_extra_args(false);
  app.add_option("--output", o.output);
  app.add_option("--resume", o.resume);
  app.add_option("--threads", o.threads);
  return tsdp::cli::run(app, argc, argv, o.common, [&] { return train(o); });
}
