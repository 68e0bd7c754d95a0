// Runs that are made on a device and on the CPU.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "training_fixture.h"

namespace tsdp::training {

class DeviceRuns : public TrainingFixture {
 protected:
  std::unique_ptr<Trainer> on(const at::Device& device, const std::string& name, const Config& config) const {
    return std::make_unique<Trainer>(settled(config, data_), data_, device, folder(name));
  }
  at::Tensor weights_of_run(const at::Device& device, const std::string& name, const Config& config) const {
    const auto t = on(device, name, config);
    t->begin();
    EXPECT_TRUE(t->run({}));
    return t->model().parameters().values().cpu();
  }
};

using KindOfRun = std::pair<std::string, Config>;

/// As GoogleTest wants names.
inline std::string name_of_kind(const testing::TestParamInfo<KindOfRun>& kind) {
  auto name = kind.param.first;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

/// One of each kind of step: replayed whole batches, batches of every size, records of several windows; noise that is
/// fresh and noise that is taken back.
inline std::vector<KindOfRun> kinds_of_runs() {
  std::vector<KindOfRun> out;
  const auto add = [&](const std::string& name, const std::string& model, auto&&... changes) {
    auto config = small_training_of(model);
    config.training.max_epochs = 10;
    config.training.reproducible = true;
    (changes(config), ...);
    out.emplace_back(name, config);
  };
  const auto series = [](Config& c) {
    c.privacy.relation = privacy::Relation::series;
    c.sampling.subsequences_per_sequence = 3;
    c.privacy.noise_multiplier = 60.0;
  };
  for (const auto& model : models::model_names()) add(model, model);
  add("poisson", "simple_ff", [](Config& c) { c.sampling.top_level = privacy::TopLevel::poisson; });
  add("not private", "simple_ff", [](Config& c) { c.privacy.enabled = false; });
  add("a learning rate that changes", "simple_ff", [](Config& c) {
    c.privacy.enabled = false;
    c.optimizer.gradient_norm_bound = 0.01;
    c.optimizer.plateau_looks = 1;
    c.training.validate_every = 1;
  });
  add("many pieces", "simple_ff", [](Config& c) {
    c.sampling.batch_size = 900;
    c.sampling.subsequences_per_sequence = 150;
    c.privacy.noise_multiplier = 150.0;
  });
  add("per layer", "itransformer", [](Config& c) { c.privacy.clipping = privacy::ClippingKind::per_layer; });
  add("automatic", "dlinear", [](Config& c) { c.privacy.clipping = privacy::ClippingKind::automatic; });
  for (const std::string model : {"deepar", "itransformer"}) add("series " + model, model, series);
  const auto bins = [](Config& c) {
    c.sampling.top_level = privacy::TopLevel::balls_in_bins;
    c.sampling.batch_size.reset();
    c.sampling.batches = 3;
    c.privacy.noise_multiplier = 8.0;  // of which the exact profile is quickly made
  };
  add("balls in bins", "simple_ff", series, bins);
  add("blt", "simple_ff", series, bins, [](Config& c) {
    c.privacy.noise_multiplier = 20.0;
    c.privacy.noise_mechanism = privacy::StrategyKind::blt;
    c.privacy.noise_bands = 3;
    c.training.max_epochs = 4;
  });
  add("bins of every epoch", "simple_ff", series, bins, [](Config& c) {
    c.sampling.redraw = privacy::Redraw::every_epoch;
    c.training.max_epochs = 4;
  });
  add("cyclic coins", "dlinear", series, bins, [](Config& c) {
    c.sampling.top_level = privacy::TopLevel::cyclic_poisson;
    c.privacy.noise_mechanism = privacy::StrategyKind::band_mf;
    c.privacy.noise_bands = 2;
    c.privacy.noise_multiplier = 4.0;
    c.training.max_epochs = 3;
  });
  for (const std::string model : {"simple_ff", "deepar"})
    add("head of " + model, model, [](Config& c) { c.training.trainable = Trainable::head; });
  add("last value", "simple_ff", [](Config& c) { c.model.prior = PriorKind::last_value; });
  add("noise on the data", "deepar", [](Config& c) {
    c.privacy.v = 0.5;
    c.augmentation.context_noise = c.augmentation.forecast_noise = 2.0;
  });
  return out;
}

}  // namespace tsdp::training
