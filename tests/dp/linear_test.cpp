// The four operations of the linear layer against a loop over windows with autograd, in double precision.
#include <gtest/gtest.h>

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include "tsdp/dp/layers.h"
#include "tsdp/random/random.h"

namespace tsdp::dp {
namespace {

at::Tensor random(at::IntArrayRef shape, RandomStream& stream) {
  auto t = at::empty(shape, at::kDouble);
  for (std::int64_t i = 0; i < t.numel(); ++i) t.data_ptr<double>()[i] = 2.0 * stream.uniform() - 1.0;
  return t;
}

struct Sizes {
  std::int64_t batch, positions, inputs, outputs;  // positions 0: no time axis
};

/// Gradients of one window's Σ output·g with respect to weight and bias, by autograd.
std::pair<at::Tensor, at::Tensor> oracle(const at::Tensor& x, const at::Tensor& g, const at::Tensor& weight,
                                         const at::Tensor& bias) {
  auto w = weight.detach().clone().requires_grad_(true);
  auto b = bias.detach().clone().requires_grad_(true);
  const auto y = at::linear(x, w, b);
  const auto gradients = torch::autograd::grad({(y * g).sum()}, {w, b});
  return {gradients[0], gradients[1]};
}

void check(const Sizes& s, std::uint64_t seed) {
  SCOPED_TRACE("batch " + std::to_string(s.batch) + ", positions " + std::to_string(s.positions) + ", " +
               std::to_string(s.inputs) + " -> " + std::to_string(s.outputs));
  RandomStream stream(SecretKey::from_seed(seed), "test", 0);
  const auto weight = random({s.outputs, s.inputs}, stream);
  const auto bias = random({s.outputs}, stream);
  auto weight_gradient = at::zeros_like(weight);
  auto bias_gradient = at::zeros_like(bias);
  Linear layer(weight, bias, weight_gradient, bias_gradient);
  const auto shape = [&](std::int64_t last) {
    return s.positions == 0 ? std::vector<std::int64_t>{s.batch, last}
                            : std::vector<std::int64_t>{s.batch, s.positions, last};
  };
  const auto x = random(shape(s.inputs), stream);
  const auto g = random(shape(s.outputs), stream);
  EXPECT_TRUE(at::allclose(layer.forward(x), at::linear(x, weight, bias), 1e-12, 1e-12));
  EXPECT_TRUE(at::allclose(layer.backward({g}, true), at::matmul(g, weight), 1e-12, 1e-12));
  auto norms = at::zeros({s.batch}, at::kDouble);
  layer.add_squared_norms(norms);
  const auto factors = random({s.batch}, stream).abs();
  layer.add_gradient(factors);
  auto expected_weight = at::zeros_like(weight);
  auto expected_bias = at::zeros_like(bias);
  for (std::int64_t i = 0; i < s.batch; ++i) {
    const auto [gw, gb] = oracle(x[i], g[i], weight, bias);
    const double expected = (gw.square().sum() + gb.square().sum()).item<double>();
    EXPECT_NEAR(norms[i].item<double>(), expected, 1e-11 * (1.0 + expected));
    expected_weight += gw * factors[i];
    expected_bias += gb * factors[i];
  }
  EXPECT_TRUE(at::allclose(weight_gradient, expected_weight, 1e-11, 1e-11));
  EXPECT_TRUE(at::allclose(bias_gradient, expected_bias, 1e-11, 1e-11));
  // Without factors: the plain sum.
  weight_gradient.zero_();
  bias_gradient.zero_();
  layer.forward(x);
  layer.backward({g}, false);
  layer.add_gradient({});
  const auto [sum_weight, sum_bias] = oracle(x, g, weight, bias);
  EXPECT_TRUE(at::allclose(weight_gradient, sum_weight, 1e-11, 1e-11));
  EXPECT_TRUE(at::allclose(bias_gradient, sum_bias, 1e-11, 1e-11));
}

TEST(Linear, AgreesWithALoopOverWindows) {
  check({5, 0, 7, 3}, 1);
  check({5, 0, 3, 7}, 2);
  check({4, 6, 3, 2}, 3);    // window gradients are cheaper
  check({4, 2, 9, 8}, 4);    // Gram matrices are cheaper
  check({1, 1, 1, 1}, 5);
}

TEST(Linear, AgreesOverRandomSizes) {
  RandomStream sizes(SecretKey::from_seed(99), "sizes", 0);
  for (std::uint64_t trial = 0; trial < 60; ++trial) {
    const auto up_to = [&](std::uint64_t n) { return static_cast<std::int64_t>(1 + sizes.below(n)); };
    check({up_to(9), static_cast<std::int64_t>(sizes.below(12)), up_to(20), up_to(20)}, 100 + trial);
  }
}

TEST(Linear, DiscardedWindowsLeaveNothing) {
  RandomStream stream(SecretKey::from_seed(7), "test", 0);
  for (const std::int64_t positions : {0, 2, 9}) {
    const auto weight = random({4, 5}, stream);
    const auto bias = random({4}, stream);
    auto weight_gradient = at::zeros_like(weight);
    auto bias_gradient = at::zeros_like(bias);
    Linear layer(weight, bias, weight_gradient, bias_gradient);
    const auto shape = [&](std::int64_t last) {
      return positions == 0 ? std::vector<std::int64_t>{3, last} : std::vector<std::int64_t>{3, positions, last};
    };
    auto x = random(shape(5), stream);
    auto g = random(shape(4), stream);
    x[1].fill_(std::numeric_limits<double>::infinity());
    g[1].fill_(std::numeric_limits<double>::quiet_NaN());
    layer.forward(x);
    layer.backward({g}, false);
    auto norms = at::zeros({3}, at::kDouble);
    layer.add_squared_norms(norms);
    EXPECT_FALSE(std::isfinite(norms[1].item<double>()));
    layer.discard(at::arange(3).eq(1));
    layer.add_gradient(at::tensor({1.0, 0.0, 1.0}, at::kDouble));
    const auto [w0, b0] = oracle(x[0], g[0], weight, bias);
    const auto [w2, b2] = oracle(x[2], g[2], weight, bias);
    EXPECT_TRUE(at::allclose(weight_gradient, w0 + w2, 1e-12, 1e-12));
    EXPECT_TRUE(at::allclose(bias_gradient, b0 + b2, 1e-12, 1e-12));
  }
}

// Records of several windows, as the kernel keeps them and as further positions, against the sum of their windows'
// gradients.
TEST(Linear, JoinedWindowsAreTheSumOfTheirGradients) {
  RandomStream sizes(SecretKey::from_seed(98), "sizes", 0);
  for (std::uint64_t trial = 0; trial < 80; ++trial) {
    const auto up_to = [&](std::uint64_t n) { return static_cast<std::int64_t>(1 + sizes.below(n)); };
    const auto inputs = up_to(30);
    const auto outputs = up_to(30);
    const auto positions = static_cast<std::int64_t>(sizes.below(4));
    const bool equal = trial % 3 == 0;
    const auto each = up_to(5);
    std::vector<std::int64_t> starts = {0};
    for (std::int64_t r = up_to(6); r > 0; --r) starts.push_back(starts.back() + (equal ? each : up_to(7)));
    const Records records(starts);
    SCOPED_TRACE(std::to_string(records.count()) + " records of " + std::to_string(records.windows()) + " windows, " +
                 std::to_string(positions) + " positions, " + std::to_string(inputs) + " -> " +
                 std::to_string(outputs));
    RandomStream stream(SecretKey::from_seed(1000 + trial), "test", 0);
    const auto shape = [&](std::int64_t last) {
      return positions == 0 ? std::vector<std::int64_t>{records.windows(), last}
                            : std::vector<std::int64_t>{records.windows(), positions, last};
    };
    const auto weight = random({outputs, inputs}, stream);
    const auto bias = random({outputs}, stream);
    auto x = random(shape(inputs), stream);
    auto g = random(shape(outputs), stream);
    // Some windows nearly take another's gradient back.
    for (std::int64_t w = 1; w < records.windows(); w += 3) {
      x[w].copy_(x[w - 1]);
      g[w].copy_(g[w - 1] * (trial % 2 == 0 ? -1.0 : -1.0 + 1e-3));
    }
    const auto factors = random({records.count()}, stream).abs();
    for (const auto type : {at::kDouble, at::kFloat}) {
      auto weight_gradient = at::zeros_like(weight).to(type);
      auto bias_gradient = at::zeros_like(bias).to(type);
      Linear layer(weight.to(type), bias.to(type), weight_gradient, bias_gradient);
      layer.forward(x.to(type));
      layer.backward({g.to(type)}, false);
      layer.join(records);
      auto norms = at::zeros({records.count()}, at::kDouble);
      layer.add_squared_norms(norms);
      layer.add_gradient(factors.to(type));
      auto expected_weight = at::zeros_like(weight);
      auto expected_bias = at::zeros_like(bias);
      const double tolerance = type == at::kDouble ? 1e-11 : 4e-6;
      for (std::int64_t r = 0; r < records.count(); ++r) {
        const auto length = records.end(r) - records.begin(r);
        const auto [gw, gb] =
            oracle(x.narrow(0, records.begin(r), length), g.narrow(0, records.begin(r), length), weight, bias);
        const double expected = (gw.square().sum() + gb.square().sum()).item<double>();
        EXPECT_NEAR(norms[r].item<double>(), expected,
                    tolerance * (1.0 + 10.0 * static_cast<double>(length) + expected));
        expected_weight += gw * factors[r];
        expected_bias += gb * factors[r];
      }
      EXPECT_TRUE(at::allclose(weight_gradient.to(at::kDouble), expected_weight, 10 * tolerance, 10 * tolerance));
      EXPECT_TRUE(at::allclose(bias_gradient.to(at::kDouble), expected_bias, 10 * tolerance, 10 * tolerance));
    }
  }
}

// Where weights are not trained: the gradients of the bias alone, of windows and of records of several.
TEST(Linear, TheBiasAloneAgreesWithALoopOverRecords) {
  RandomStream sizes(SecretKey::from_seed(97), "sizes", 0);
  for (std::uint64_t trial = 0; trial < 60; ++trial) {
    const auto up_to = [&](std::uint64_t n) { return static_cast<std::int64_t>(1 + sizes.below(n)); };
    const auto inputs = up_to(20);
    const auto outputs = up_to(20);
    const auto positions = static_cast<std::int64_t>(sizes.below(4));
    std::vector<std::int64_t> starts = {0};
    for (std::int64_t r = up_to(6); r > 0; --r) starts.push_back(starts.back() + (trial % 2 == 0 ? 1 : up_to(5)));
    const Records records(starts);
    RandomStream stream(SecretKey::from_seed(2000 + trial), "test", 0);
    const auto shape = [&](std::int64_t last) {
      return positions == 0 ? std::vector<std::int64_t>{records.windows(), last}
                            : std::vector<std::int64_t>{records.windows(), positions, last};
    };
    const auto weight = random({outputs, inputs}, stream);
    const auto bias = random({outputs}, stream);
    const auto x = random(shape(inputs), stream);
    const auto g = random(shape(outputs), stream);
    const auto factors = random({records.count()}, stream).abs();
    auto bias_gradient = at::zeros_like(bias);
    Linear layer(weight, bias, {}, bias_gradient);
    layer.forward(x);
    EXPECT_TRUE(at::allclose(layer.backward({g}, true), at::matmul(g, weight), 1e-12, 1e-12));
    if (trial % 2 == 1) layer.join(records);
    auto norms = at::zeros({records.count()}, at::kDouble);
    layer.add_squared_norms(norms);
    layer.discard(at::arange(records.count()).eq(0));
    layer.add_gradient(factors);
    auto expected = at::zeros_like(bias);
    for (std::int64_t r = 0; r < records.count(); ++r) {
      const auto length = records.end(r) - records.begin(r);
      const auto own =
          oracle(x.narrow(0, records.begin(r), length), g.narrow(0, records.begin(r), length), weight, bias);
      EXPECT_NEAR(norms[r].item<double>(), own.second.square().sum().item<double>(), 1e-11);
      if (r > 0) expected += own.second * factors[r];
    }
    EXPECT_TRUE(at::allclose(bias_gradient, expected, 1e-11, 1e-11));
  }
}

// A record of two windows that nearly cancel adds the same beside records of two windows as beside one of many: another
// way of computing would round its small rest otherwise, by a large part of the clip norm.
TEST(Linear, AJoinedRecordIsComputedTheSameWhateverIsBesideIt) {
  for (const bool kernels : {true, false}) {
    std::optional<PlainOperations> plain;
    if (!kernels) plain.emplace();
    RandomStream stream(SecretKey::from_seed(29), "test", 0);
    const std::int64_t size = 32;
    const auto x0 = random({1, size}, stream).to(at::kFloat);
    const auto g0 = random({1, size}, stream).to(at::kFloat);
    // g₂ = −g₁, and x₂ a few units in the last place beside x₁.
    const auto own_x = at::cat(
        {x0, at::where(at::arange(size).remainder(2).eq(0), x0 * (1.0F + 0x1p-20F), x0 * (1.0F - 0x1p-20F))}, 0);
    const auto own_g = at::cat({g0, -g0}, 0);
    const auto added = [&](std::int64_t beside) {
      auto weight_gradient = at::zeros({size, size});
      auto bias_gradient = at::zeros({size});
      Linear layer(at::zeros({size, size}), at::zeros({size}), weight_gradient, bias_gradient);
      RandomStream others(SecretKey::from_seed(30), "test", 0);
      layer.forward(at::cat({own_x, random({beside, size}, others).to(at::kFloat)}, 0));
      layer.backward({at::cat({own_g, random({beside, size}, others).to(at::kFloat)}, 0)}, false);
      layer.join(Records({0, 2, 2 + beside}, 2));
      auto squared = at::zeros({2}, at::kDouble);
      layer.add_squared_norms(squared);
      const auto only = at::zeros({2});
      only[0] = static_cast<float>(1.0 / std::sqrt(squared[0].item<double>()));
      layer.add_gradient(only);
      return weight_gradient.to(at::kDouble);
    };
    const auto few = added(2);
    EXPECT_GT(few.norm().item<double>(), 0.95);
    for (const std::int64_t beside : {3, 16, 33, 64, 100})
      EXPECT_LT((added(beside) - few).norm().item<double>(), 1e-5) << beside << ", kernels " << kernels;
  }
}

// Windows of a record that cancel up to a small rest: what is added is never longer than what was measured, by more
// than 70 units.
TEST(Linear, JoinedWindowsThatCancelNeverPassTheClipNorm) {
  for (const double rest : {1e-1, 1e-3, 1e-5, 1e-7, 0.0})
    for (const std::int64_t each : {2, 4, 8}) {
      RandomStream stream(SecretKey::from_seed(23), "test", 0);
      const std::int64_t count = 16;
      std::vector<std::int64_t> starts;
      for (std::int64_t r = 0; r <= count; ++r) starts.push_back(r * each);
      auto weight_gradient = at::zeros({40, 60});
      auto bias_gradient = at::zeros({40});
      Linear layer(at::zeros({40, 60}), at::zeros({40}), weight_gradient, bias_gradient);
      auto x = random({count, 1, 60}, stream).repeat({1, each, 1});
      auto g = (random({count, 1, 40}, stream) * 100.0).repeat({1, each, 1});
      for (std::int64_t w = 1; w < each; w += 2) g.select(1, w).mul_(-1.0 + rest);
      layer.forward(x.to(at::kFloat).view({-1, 60}));
      layer.backward({g.to(at::kFloat).view({-1, 40})}, false);
      layer.join(Records(starts));
      auto squared = at::zeros({count}, at::kDouble);
      layer.add_squared_norms(squared);
      for (std::int64_t r = 0; r < count; ++r) {
        const auto only = at::zeros({count});
        only[r] = static_cast<float>(1.0 / std::sqrt(squared[r].item<double>()));
        weight_gradient.zero_();
        bias_gradient.zero_();
        layer.add_gradient(only);
        const double added = std::sqrt(weight_gradient.to(at::kDouble).square().sum().item<double>() +
                                       bias_gradient.to(at::kDouble).square().sum().item<double>());
        EXPECT_LE(added, 1.0 + 70.0 * 0x1p-24) << "rest " << rest << ", " << each << " windows";
        EXPECT_TRUE(rest < 1e-6 || added > 0.99) << added;
      }
    }
}

// Two positions that nearly cancel, in single precision: the Gram form loses the norm to rounding (1000 times too
// little would pass the clip norm), so it must err on the large side.
TEST(Linear, CancellingPositionsNeverPassTheClipNorm) {
  for (const double difference : {1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 0.0})
    for (const double magnitude : {1.0, 10.0, 100.0}) {
      RandomStream stream(SecretKey::from_seed(17), "test", 0);
      const std::int64_t batch = 64;
      auto weight = at::zeros({3, 64});
      auto bias = at::zeros({3});
      auto weight_gradient = at::zeros_like(weight);
      auto bias_gradient = at::zeros_like(bias);
      Linear layer(weight, bias, weight_gradient, bias_gradient);
      const auto x1 = random({batch, 1, 64}, stream).to(at::kFloat);
      const auto g1 = (random({batch, 1, 3}, stream) * magnitude).to(at::kFloat);
      const auto x = at::cat({x1, x1 * (1.0 + difference)}, 1);
      const auto g = at::cat({g1, -g1}, 1);
      layer.forward(x);
      layer.backward({g}, false);
      auto squared = at::zeros({batch}, at::kDouble);
      layer.add_squared_norms(squared);
      const auto norms = squared.sqrt();
      for (std::int64_t i = 0; i < batch; ++i) {
        // What the window adds on its own, clipped at 1.
        const auto only = at::zeros({batch});
        only[i] = std::min(1.0, 1.0 / norms[i].item<double>());
        weight_gradient.zero_();
        bias_gradient.zero_();
        layer.add_gradient(only);
        const double added = std::sqrt(weight_gradient.to(at::kDouble).square().sum().item<double>() +
                                       bias_gradient.to(at::kDouble).square().sum().item<double>());
        EXPECT_LE(added, 1.0 + 1e-5) << "difference " << difference << ", magnitude " << magnitude;
      }
    }
}

}  // namespace
}  // namespace tsdp::dp
