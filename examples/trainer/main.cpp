// Trains this program's own forecaster with privacy. ../forecaster/autoregression.cpp, which is linked in, registers it
// by name.
#include <exception>
#include <filesystem>
#include <iostream>

#include "tsdp/base/file.h"
#include "tsdp/base/json.h"
#include "tsdp/evaluation/backtest.h"
#include "tsdp/export/torchscript.h"
#include "tsdp/settings/auto_settings.h"
#include "tsdp/settings/configured.h"
#include "tsdp/training/trainer.h"

namespace {

void train(const std::filesystem::path& config_file, const std::filesystem::path& output) {
  const auto data =
      tsdp::data::prepare_data(tsdp::read_config(config_file, {"model.name=autoregression"}), config_file);
  // `auto` is settled by public facts: lengths, and no value of a series.
  const auto settled = tsdp::mechanism::settle(data.config, data.split.training_length, config_file);
  const tsdp::training::RunFolder folder{output};
  tsdp::training::Trainer trainer(settled, data, at::kCPU, folder);
  trainer.begin();
  trainer.run({});

  const auto ledger = tsdp::parse_json(tsdp::read_file(folder.ledger()), folder.ledger().string());
  std::cout << trainer.step() << " steps: " << ledger["statement"].get<std::string>() << "\n";
  // Computed from true values, so epsilon does not cover it.
  auto module = tsdp::exporting::make_module(trainer.model(), /*sampled_forecasts=*/false);
  const auto scores =
      tsdp::evaluation::backtest(module, data.dataset, data.split.test, settled.config.dataset.season_length, at::kCPU);
  std::cout << "CRPS on the test windows " << scores.model.mean_weighted_quantile_loss();
  for (const auto& free : scores.baselines)
    std::cout << ", of " << tsdp::name(free.baseline) << " " << free.all.mean_weighted_quantile_loss();
  std::cout << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: trainer CONFIG OUTPUT\n";
    return 2;
  }
  try {
    train(argv[1], argv[2]);
  } catch (const std::exception& error) {
    std::cerr << "trainer: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
