// Writes, for every forecaster, an exported model and what the training program makes of a batch, for Python to
// compare:
//   parity_cases FOLDER
// <name>.pt is the export; <name>_case.pt a module whose buffers are inputs, uniform draws and expected outputs.
#include <torch/csrc/jit/api/module.h>

#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <numbers>

#include "support/ledger.h"
#include "tsdp/export/torchscript.h"

namespace {

using namespace tsdp;

constexpr std::int64_t rows = 7;
constexpr std::int64_t context = 12;
constexpr std::int64_t horizon = 5;
constexpr std::int64_t paths = 3;

models::WindowBatch random_windows(const models::Forecaster& model, RandomStream& stream) {
  const auto past = model.past_length();
  const auto fill = [&](std::vector<std::int64_t> shape) {
    auto t = at::empty(shape, at::kDouble);
    for (std::int64_t i = 0; i < t.numel(); ++i) t.data_ptr<double>()[i] = stream.uniform();
    return t.to(at::kFloat);
  };
  const auto observed = fill({rows, past}).gt(0.15).to(at::kFloat);
  observed[1].narrow(0, 0, past / 2).zero_();  // padding
  observed[2].zero_();                         // nothing known
  models::WindowBatch batch{fill({rows, past}).mul_(40.0).sub_(5.0).mul_(observed),
                            observed,
                            at::zeros({rows, horizon}),
                            at::zeros({rows, horizon}),
                            {}};
  if (model.reads_time_features())
    batch.time_features = fill({rows, past + horizon, model.options().time_features}).sub_(0.5);
  return batch;
}

void write_case(const std::string& name, const std::filesystem::path& folder) {
  models::ModelOptions options{context, horizon, {}, 5, 0.0};
  if (name == "deepar") options.lags = {1, 2, 3, 24};
  const auto model = models::make_model(name, options, at::TensorOptions(at::kFloat));
  RandomStream weights(SecretKey::from_seed(1), "initial weights", 0);
  model->initialise(weights);
  RandomStream stream(SecretKey::from_seed(2), "parity", 0);
  const auto batch = random_windows(*model, stream);
  auto draws = at::empty({rows, paths, horizon, 2}, at::kDouble);
  for (std::int64_t i = 0; i < draws.numel(); ++i) draws.data_ptr<double>()[i] = 1.0 - stream.uniform();
  draws = draws.to(at::kFloat);

  // Paths by the training program alone: a step's distribution given the values drawn before it, step after step.
  const auto repeated = [&](const at::Tensor& t) { return t.defined() ? t.repeat_interleave(paths, 0) : t; };
  models::WindowBatch forced{repeated(batch.past_target), repeated(batch.past_observed),
                             at::zeros({rows * paths, horizon}), at::ones({rows * paths, horizon}),
                             repeated(batch.time_features)};
  for (std::int64_t k = 0; k < horizon; ++k) {
    const auto d = model->distribution(forced);
    const auto at_step = [&](const at::Tensor& t) { return t.select(1, t.size(1) - horizon + k).to(at::kDouble); };
    const auto u = draws.to(at::kDouble).reshape({rows * paths, horizon, 2}).select(1, k);
    const auto df = at_step(d.df);
    const auto t =
        (df * at::expm1(-2.0 / df * u.select(1, 0).log())).sqrt() * (2.0 * std::numbers::pi * u.select(1, 1)).cos();
    forced.future_target.select(1, k).copy_(d.affine_scale.select(1, 0).to(at::kDouble) *
                                            (at_step(d.loc) + at_step(d.scale) * t));
  }
  const auto samples = forced.future_target.reshape({rows, paths, horizon});

  torch::jit::Module expected("Case");
  const auto put = [&](const std::string& entry, const at::Tensor& value) {
    expected.register_buffer(entry, value.contiguous());
  };
  put("past_target", batch.past_target);
  put("past_observed", batch.past_observed);
  put("time_features", batch.time_features.defined() ? batch.time_features : at::zeros({0}));
  put("draws", draws);
  put("samples", samples);
  if (!model->samples_paths()) {
    const auto d = model->distribution(batch);
    put("mean", d.affine_scale * d.loc);
    auto quantiles = at::empty({rows, 9, horizon}, at::kDouble);
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t k = 0; k < horizon; ++k)
        for (std::int64_t q = 0; q < 9; ++q) {
          const boost::math::students_t distribution(d.df[i][k].item<double>());
          quantiles[i][q][k] =
              d.affine_scale[i][0].item<double>() *
              (d.loc[i][k].item<double>() +
               d.scale[i][k].item<double>() * boost::math::quantile(distribution, 0.1 * static_cast<double>(q + 1)));
        }
    put("quantiles", quantiles);
  }
  expected.save((folder / (name + "_case.pt")).string());
  exporting::save_model(*model, false, {{{"name", name}, {"frequency", "1h"}}, test::ledger(false)},
                        folder / (name + ".pt"));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "parity_cases FOLDER\n";
    return 2;
  }
  for (const auto& name : models::model_names()) write_case(name, argv[1]);
  return 0;
}
