#include "tsdp/export/torchscript.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/math/distributions/students_t.hpp>
#include <filesystem>
#include <fstream>

#include "tsdp/core/error.h"
#include "tsdp/core/random.h"

namespace tsdp::exporting {
namespace {

std::unique_ptr<models::Forecaster> make(std::int64_t context, std::int64_t horizon) {
  auto model = models::make_model("simple_ff", {context, horizon}, at::TensorOptions(at::kFloat));
  RandomStream stream(SecretKey::from_seed(5), "initial weights", 0);
  model->initialise(stream);
  return model;
}

TEST(StudentTQuantile, AgreesWithBoost) {
  const auto model = make(2, 1);
  auto module = make_module(*model);
  const std::vector<double> levels = {1e-6, 1e-3, 0.025, 0.1, 0.3, 0.4999, 0.5, 0.6, 0.9, 0.99, 0.999999};
  const std::vector<double> freedoms = {2.0000000000001, 2.3, 3, 4, 5.5, 10, 42, 300, 1e4, 1e6};
  const auto df = at::tensor(freedoms, at::kDouble).view({1, -1});
  const auto level = at::tensor(levels, at::kDouble).view({-1, 1});
  const auto found = module.get_method("student_t_quantile")({df, level}).toTensor();
  for (std::size_t i = 0; i < levels.size(); ++i)
    for (std::size_t j = 0; j < freedoms.size(); ++j) {
      const double expected = boost::math::quantile(boost::math::students_t(freedoms[j]), levels[i]);
      EXPECT_NEAR(found[static_cast<std::int64_t>(i)][static_cast<std::int64_t>(j)].item<double>(), expected,
                  1e-9 * std::abs(expected) + 1e-12)
          << "level " << levels[i] << ", df " << freedoms[j];
    }
}

TEST(Module, GivesTheModelsForecastAtAnyBatchSize) {
  const auto model = make(9, 4);
  auto module = make_module(*model);
  for (const std::int64_t batch : {1, 2, 7}) {
    const auto past = at::rand({batch, 9}) * 50.0;
    const auto observed = at::ones_like(past);
    const auto expected = model->predict(past, observed);
    const auto found = module.forward({past, observed, at::tensor({0.5, 0.9}, at::kDouble)}).toTuple();
    // The median of a symmetric distribution is its mean.
    const auto mean = expected.affine_scale * expected.loc;
    EXPECT_TRUE(at::allclose(found->elements()[1].toTensor(), mean, 1e-5, 1e-6));
    EXPECT_TRUE(at::allclose(found->elements()[0].toTensor().select(1, 0), mean, 1e-5, 1e-5));
    EXPECT_EQ(found->elements()[0].toTensor().sizes(), (at::IntArrayRef{batch, 2, 4}));
    EXPECT_TRUE((found->elements()[0].toTensor().select(1, 1) > mean).all().item<bool>());
  }
}

TEST(Module, CutsPadsAndMasksItsPast) {
  const auto model = make(6, 3);
  auto module = make_module(*model);
  const auto level = at::tensor({0.5}, at::kDouble);
  const auto mean = [&](const at::Tensor& past, const at::Tensor& observed) {
    return module.forward({past, observed, level}).toTuple()->elements()[1].toTensor().clone();
  };
  const auto past = at::tensor({1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F}).view({1, 6});
  const auto ones = at::ones({1, 6});
  const auto longer = at::cat({at::full({1, 4}, 99.0F), past}, 1);
  EXPECT_TRUE(at::equal(mean(longer, at::ones({1, 10})), mean(past, ones)));
  const auto padded = at::cat({at::zeros({1, 4}), past.narrow(1, 4, 2)}, 1);
  EXPECT_TRUE(at::equal(mean(past.narrow(1, 4, 2), ones.narrow(1, 4, 2)), mean(padded, padded.gt(0).to(at::kFloat))));
  auto with_gap = past.clone();
  with_gap[0][2] = std::numeric_limits<float>::quiet_NaN();
  auto zero_there = past.clone();
  zero_there[0][2] = 0.0F;
  EXPECT_TRUE(at::equal(mean(with_gap, ones), mean(zero_there, zero_there.gt(0).to(at::kFloat))));
}

TEST(SaveModule, CarriesTheLedger) {
  const auto file = std::filesystem::temp_directory_path() / ("tsdp_export_" + std::to_string(::getpid()) + ".pt");
  const auto model = make(4, 2);
  nlohmann::ordered_json about = {{"name", "simple_ff"}, {"past_length", 4}};
  nlohmann::ordered_json ledger = {{"delta", 1e-7}, {"epsilon", {{"lower", 0.5}, {"upper", 0.625}}}};
  save_module(make_module(*model), {about, ledger}, file);
  ModelMetadata found;
  auto module = load_module(file, at::kCPU, found);
  EXPECT_EQ(found.model, about);
  EXPECT_EQ(found.privacy, ledger);
  EXPECT_NO_THROW(module.forward({at::ones({1, 4}), at::ones({1, 4}), at::tensor({0.5}, at::kDouble)}));
  std::ofstream(file) << "not a model";
  EXPECT_THROW(static_cast<void>(load_module(file, at::kCPU, found)), DataError);
  std::filesystem::remove(file);
  EXPECT_THROW(static_cast<void>(load_module(file, at::kCPU, found)), DataError);
}

}  // namespace
}  // namespace tsdp::exporting
