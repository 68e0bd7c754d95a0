// Every fixture that models.json lists: outputs, losses, per-window gradients, clipped sums, five private updates,
// replayed sample paths; with the CPU's kernels and with plain operations.
#include <set>

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

#include "models/forecaster.h"
#include "support/clipped_sum.h"
#include "support/golden.h"
#include "training/model_setup.h"
#include "tsdp/base/text.h"
#include "tsdp/evaluation/backtest.h"
#include "tsdp/export/torchscript.h"
#include "tsdp/training/trainer.h"

namespace tsdp {
namespace {

using Tensors = std::map<std::string, at::Tensor>;

/// Models that the product does not have yet.
const std::set<std::string> not_yet = {};

Tensors load(const std::filesystem::path& file) {
  Tensors out;
  const auto module = torch::jit::load(file.string());
  for (const auto& buffer : module.named_buffers(true)) out[buffer.name] = buffer.value;
  return out;
}

struct Fixture {
  std::string name;   // of the file
  std::string model;  // registered name
  models::ModelOptions options;
  Tensors tensors;
  Tensors steps;
};

/// The registered model whose name begins the fixture's name ("simple_ff_short" is a simple_ff); empty if none.
std::string model_of(const std::string& fixture, const std::set<std::string>& names) {
  for (const auto& name : names)
    if (fixture.rfind(name, 0) == 0) return name;
  return {};
}

/// All fixtures of available models; unknown kinds fail, those that are not there yet are named.
std::vector<Fixture> fixtures() {
  std::vector<Fixture> out;
  const auto listed = test::golden_entry("models/models.json", "/fixtures");
  if (!listed) return out;
  const auto available = models::model_names();
  for (const auto& [name, about] : listed->items()) {
    const auto model = model_of(name, {available.begin(), available.end()});
    if (model.empty()) {
      EXPECT_FALSE(model_of(name, not_yet).empty()) << "unknown kind of fixture: " << name;
      std::cout << name << ": not available yet, skipped\n";
      continue;
    }
    const auto folder = test::golden_folder() / "models";
    if (!std::filesystem::exists(folder / cat(name, ".pt"))) {
      test::say_absent(cat("models/", name, ".pt"));
      continue;
    }
    Fixture f;
    f.name = name;
    f.model = model;
    f.options.context_length = about["L_C"];
    f.options.prediction_length = about["L_F"];
    f.tensors = load(folder / cat(name, ".pt"));
    if (about.contains("lags")) f.options.lags = about["lags"].get<std::vector<std::int64_t>>();
    if (f.tensors.contains("inputs.past_time_feat"))
      f.options.time_features = f.tensors.at("inputs.past_time_feat").size(2);
    if (std::filesystem::exists(folder / cat(name, "_steps.pt"))) f.steps = load(folder / cat(name, "_steps.pt"));
    out.push_back(std::move(f));
  }
  return out;
}

std::unique_ptr<models::Forecaster> make(const Fixture& f, at::ScalarType type) {
  auto model = models::make_model(f.model, f.options, at::TensorOptions(type));
  const auto& parameters = model->parameters();
  for (std::size_t i = 0; i < parameters.entries().size(); ++i)
    parameters.value(i).copy_(f.tensors.at(cat("weights.", parameters.entries()[i].name)));
  return model;
}

models::WindowBatch batch_of(const Fixture& f, at::ScalarType type) {
  const auto input = [&](const char* name) { return f.tensors.at(cat("inputs.", name)).to(type); };
  models::WindowBatch batch{
      input("past_target"), input("past_observed"), input("future_target"), input("future_observed"), {}};
  if (f.options.time_features > 0)
    batch.time_features = at::cat({input("past_time_feat"), input("future_time_feat")}, 1);
  return batch;
}

/// Per-window gradients (windows, parameters), each window alone in its batch.
at::Tensor window_gradients(models::Forecaster& model, const models::WindowBatch& batch) {
  std::vector<at::Tensor> rows;
  for (std::int64_t i = 0; i < batch.size(); ++i) {
    model.parameters().gradients().zero_();
    model.losses(batch.rows(i, 1));
    model.backward();
    for (auto* layer : model.layers()) layer->add_gradient({});
    rows.push_back(model.parameters().gradients().clone());
  }
  return at::stack(rows);
}

using test::clipped_sum;

/// The fixture's gradients, clipped sums or weights, joined in the order of the buffer.
at::Tensor joined(const Fixture& f, const models::Forecaster& model, const std::string& group,
                  std::int64_t first_axis) {
  std::vector<at::Tensor> parts;
  for (const auto& entry : model.parameters().entries())
    parts.push_back(f.tensors.at(cat(group, ".", entry.name)).to(at::kDouble).reshape({first_axis, -1}));
  return at::cat(parts, 1);
}

void expect_close(const at::Tensor& found, const at::Tensor& expected, double relative, double absolute,
                  const char* what) {
  ASSERT_EQ(found.sizes(), expected.sizes()) << what;
  const auto difference = (found.to(at::kDouble) - expected.to(at::kDouble)).abs();
  const auto allowed = expected.to(at::kDouble).abs() * relative + absolute;
  EXPECT_TRUE((difference <= allowed).all().item<bool>())
      << what << ": off by up to " << (difference - allowed).max().item<double>() << " beyond what is allowed";
}

void expect_rows_close(const at::Tensor& found, const at::Tensor& expected, double relative, const char* what) {
  const auto error = (found.to(at::kDouble) - expected).norm(2, {1});
  const auto size = expected.norm(2, {1});
  EXPECT_TRUE((error <= size * relative + 1e-30).all().item<bool>())
      << what << ": " << (error / size).max().item<double>();
}

/// Whether layers take the CPU's kernels where there are some.
class GoldenModels : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (!GetParam()) plain_.emplace();
    fixtures_ = fixtures();
    TSDP_GOLDEN_OR_LEAVE(!fixtures_.empty(), "any fixture of an available model");
  }
  std::vector<Fixture> fixtures_;
  std::optional<dp::PlainOperations> plain_;
};

// What another golden folder lacks is skipped; the shipped one has every model, in all that it is compared by.
TEST(GoldenModelFiles, TheShippedFolderHasEveryModel) {
  const auto folder = test::own_golden_folder() / "models";
  std::ifstream in(folder / "models.json");
  ASSERT_TRUE(in.good()) << "models.json is absent from " << folder;
  const auto listed = nlohmann::json::parse(in)["fixtures"];
  std::map<std::string, int> with;  // how many models have what not all of them need
  for (const auto& name : models::model_names()) {
    SCOPED_TRACE(name);
    EXPECT_TRUE(listed.contains(name)) << "not in models.json";
    for (const auto* end : {".pt", "_steps.pt"})
      EXPECT_TRUE(std::filesystem::exists(folder / (name + end))) << name << end << " is absent from " << folder;
    if (!listed.contains(name) || !std::filesystem::exists(folder / (name + ".pt"))) continue;
    const auto tensors = load(folder / (name + ".pt"));
    for (const auto* group : {"expected.loss", "expected32.loss", "expected.grad_norm"})
      EXPECT_TRUE(tensors.contains(group)) << group;
    for (const auto* group : {"expected.quantiles", "expected.mean"}) with[group] += tensors.contains(group) ? 1 : 0;
    for (const auto* group : {"ancestral.samples", "ancestral32.samples"})
      with[group] += tensors.contains(group) ? 1 : 0;
  }
  EXPECT_GE(with["expected.quantiles"], 2);
  EXPECT_GE(with["expected.mean"], 2);
  EXPECT_GE(with["ancestral.samples"], 1);
  EXPECT_GE(with["ancestral32.samples"], 1);
}

TEST_P(GoldenModels, ParametersAreThoseOfTheReference) {
  const auto all = test::golden_json("models/models.json");
  for (const auto& f : fixtures_) {
    SCOPED_TRACE(f.name);
    const auto model = make(f, at::kDouble);
    EXPECT_EQ(model->parameters().count(), (*all)["fixtures"][f.name]["parameter_count"].get<std::int64_t>());
  }
}

TEST_P(GoldenModels, OutputsAndLosses) {
  for (const auto& f : fixtures_) {
    SCOPED_TRACE(f.name);
    for (const auto& [type, group, tolerance] :
         {std::tuple{at::kDouble, "expected.", 1e-10}, std::tuple{at::kFloat, "expected.", 2e-6},
          std::tuple{at::kFloat, "expected32.", 2e-6}}) {
      const auto model = make(f, type);
      const auto batch = batch_of(f, type);
      const auto expected = [&](const char* name) { return f.tensors.at(cat(group, name)); };
      const auto forecast = model->distribution(batch);
      const double looser = tolerance * (type == at::kFloat ? 5.0 : 1.0);
      expect_close(forecast.df, expected("df"), looser, 0.0, "df");
      // loc may be near 0: absolutely, in units of the scaled data.
      expect_close(forecast.loc, expected("loc"), 0.0, type == at::kFloat ? 1e-5 : 1e-10, "loc");
      expect_close(forecast.scale, expected("scale"), looser, 0.0, "scale");
      expect_close(forecast.affine_scale, expected("affine_scale"), looser, 0.0, "affine_scale");
      // All six windows in one batch must give what each gives alone: nothing couples them.
      expect_close(model->losses(batch), expected("loss"), tolerance, 0.0, "loss");
    }
  }
}

TEST_P(GoldenModels, WindowGradientsAndNorms) {
  for (const auto& f : fixtures_) {
    SCOPED_TRACE(f.name);
    for (const auto& [type, tolerance] : {std::tuple{at::kDouble, 1e-6}, std::tuple{at::kFloat, 1e-5}}) {
      const auto model = make(f, type);
      const auto batch = batch_of(f, type);
      const auto expected = joined(f, *model, "grads", batch.size());
      expect_rows_close(window_gradients(*model, batch), expected, tolerance, "gradients");
      const auto norms = clipped_sum(*model, batch, {1.0});
      expect_close(norms, f.tensors.at("expected.grad_norm"), type == at::kDouble ? 1e-9 : tolerance, 0.0, "norms");
    }
  }
}

TEST_P(GoldenModels, ClippedSums) {
  for (const auto& f : fixtures_) {
    SCOPED_TRACE(f.name);
    for (const auto& [type, tolerance] : {std::tuple{at::kDouble, 1e-6}, std::tuple{at::kFloat, 1e-5}}) {
      const auto model = make(f, type);
      const auto batch = batch_of(f, type);
      for (const auto& [entry, clip, kind] : {std::tuple{"clipped.exact_1em4", 1e-4, dp::ClipFactor::exact},
                                              std::tuple{"clipped.exact_1em2", 1e-2, dp::ClipFactor::exact},
                                              std::tuple{"clipped.exact_1", 1.0, dp::ClipFactor::exact},
                                              std::tuple{"clipped.opacus_1em4", 1e-4, dp::ClipFactor::opacus}}) {
        clipped_sum(*model, batch, {clip, kind});
        expect_rows_close(model->parameters().gradients().reshape({1, -1}), joined(f, *model, entry, 1), tolerance,
                          entry);
      }
    }
  }
}

// Five updates with a stand-in for the noise, sigma C sin(1 + j + 0.1 n), the divisor 8 (not the six windows).
TEST_P(GoldenModels, FivePrivateUpdates) {
  for (const auto& f : fixtures_) {
    SCOPED_TRACE(f.name);
    if (f.steps.empty()) {
      test::say_absent(cat("models/", f.name, "_steps.pt"));
      continue;
    }
    const auto model = make(f, at::kDouble);
    const auto batch = batch_of(f, at::kDouble);
    const auto& parameters = model->parameters();
    const auto start = parameters.values().clone();
    dp::Adam adam({1e-3, 1e-8, 0.9, 0.999, 1e-8}, parameters.values());
    const auto place = at::arange(parameters.count(), at::kDouble);
    for (int n = 1; n <= 5; ++n) {
      expect_close(model->losses(batch), f.steps.at(cat("losses_before_step_", n)), 1e-8, 0.0, "losses");
      clipped_sum(*model, batch, {1e-4, dp::ClipFactor::opacus});
      parameters.gradients().add_(0.5 * 1e-4 * at::sin(1.0 + place + 0.1 * n)).mul_(1.0 / 8.0);
      adam.step(parameters.values(), parameters.gradients());
      if (n != 1 && n != 5) continue;
      const auto delta = parameters.values() - start;
      for (std::size_t i = 0; i < parameters.entries().size(); ++i) {
        const auto& entry = parameters.entries()[i];
        const auto expected = f.steps.at(cat("delta_", n, ".", entry.name)).to(at::kDouble);
        // A step is about 1e-3; the reference is stored in single precision.
        expect_close(delta.narrow(0, entry.offset, entry.count).view(entry.shape), expected, 1e-6, 2e-9,
                     entry.name.c_str());
      }
    }
  }
}

TEST_P(GoldenModels, ExportedQuantilesAndMeans) {
  for (const auto& f : fixtures_) {
    SCOPED_TRACE(f.name);
    if (!f.tensors.contains("expected.quantiles")) continue;
    const auto model = make(f, at::kFloat);
    auto module = exporting::make_module(*model);
    const auto batch = batch_of(f, at::kFloat);
    RandomStream draws(SecretKey::from_seed(1), "test", 0);
    const auto found =
        evaluation::forecast(module, batch.past_target, batch.past_observed, {}, evaluation::default_levels(), draws);
    const auto scale = f.tensors.at("expected.affine_scale").to(at::kDouble);
    expect_close(found.quantiles / scale.unsqueeze(1), f.tensors.at("expected.quantiles") / scale.unsqueeze(1), 2e-5,
                 1e-5, "quantiles");
    expect_close(found.mean / scale, f.tensors.at("expected.mean") / scale, 2e-5, 1e-5, "mean");
  }
}

// Given sample paths are fed back step by step: the parameters each value was drawn from come out, from the training
// program's teacher-forced pass and from the exported module's ancestral one.
TEST_P(GoldenModels, ReplayedAncestralDraws) {
  for (const auto& f : fixtures_) {
    SCOPED_TRACE(f.name);
    if (!f.tensors.contains("ancestral.samples")) continue;
    for (const auto& [type, group, tolerance] :
         {std::tuple{at::kDouble, "ancestral.", 1e-10}, std::tuple{at::kFloat, "ancestral32.", 1e-5}}) {
      const auto model = make(f, type);
      const auto expected = [&](const char* name) { return f.tensors.at(cat(group, name)).to(at::kDouble); };
      // The last window was drawn with a scale borrowed from its batch: left out.
      const auto windows = std::min<std::int64_t>(5, f.tensors.at(cat(group, "samples")).size(0));
      const auto batch = batch_of(f, type).rows(0, windows);
      const auto samples = f.tensors.at(cat(group, "samples")).narrow(0, 0, windows).to(type);
      const auto paths = samples.size(1);
      const auto horizon = samples.size(2);
      const auto compare = [&](const at::Tensor& df, const at::Tensor& loc, const at::Tensor& scale) {
        expect_close(df, expected("df").narrow(0, 0, windows), tolerance, 0.0, "df");
        expect_close(loc, expected("loc").narrow(0, 0, windows), tolerance, tolerance, "loc");
        expect_close(scale, expected("scale").narrow(0, 0, windows), tolerance, 0.0, "scale");
      };
      const auto repeated = [&](const at::Tensor& t) { return t.repeat_interleave(paths, 0); };
      const auto future = samples.reshape({windows * paths, horizon});
      const auto forced = model->distribution({repeated(batch.past_target), repeated(batch.past_observed), future,
                                               at::ones_like(future), repeated(batch.time_features)});
      const auto last = [&](const at::Tensor& t) {
        return t.narrow(1, t.size(1) - horizon, horizon).reshape({windows, paths, horizon});
      };
      compare(last(forced.df), last(forced.loc), last(forced.scale));
      auto module = exporting::make_module(*model);
      const auto outputs = module
                               .get_method("ancestral")({batch.past_target, batch.past_observed, batch.time_features,
                                                         at::rand({windows, paths, horizon, 2}, type), samples})
                               .toTuple();
      const auto output = [&](std::size_t i) { return outputs->elements()[i].toTensor(); };
      compare(output(1), output(2), output(3));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, GoldenModels, testing::Bool(), [](const auto& setting) {
  return setting.param ? std::string("Kernels") : std::string("PlainOperations");
});

}  // namespace
}  // namespace tsdp
