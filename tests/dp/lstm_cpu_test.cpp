#include "src/dp/lstm_cpu.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace tsdp::dp::lstm_cpu {
namespace {

using Values = std::vector<double>;

/// One window by the definition, in double precision.
struct Reference {
  Values h;         // (T, U) of the top layer
  Values gradient;  // P
  Values dx_sum;    // F
  double dx_scale;  // the largest sum over steps of absolute values: what rounding errors of a sum go by
};

Reference reference(const Plan& plan, const float* parameters, const float* x, const float* dh) {
  const auto T = static_cast<std::size_t>(plan.steps);
  const auto U = static_cast<std::size_t>(plan.hidden);
  const auto layers = static_cast<std::size_t>(plan.layers);
  struct Layer {
    std::size_t inputs, offset;
    Values x, gates, c, h;
  };
  std::vector<Layer> stack(layers);
  const auto sigmoid = [](double z) { return 1.0 / (1.0 + std::exp(-z)); };
  Values below(x, x + T * static_cast<std::size_t>(plan.inputs));
  std::size_t offset = 0;
  for (std::size_t l = 0; l < layers; ++l) {
    auto& layer = stack[l];
    layer.inputs = l == 0 ? static_cast<std::size_t>(plan.inputs) : U;
    layer.offset = offset;
    layer.x = below;
    layer.gates.assign(T * 4 * U, 0.0);
    layer.c.assign(T * U, 0.0);
    layer.h.assign(T * U, 0.0);
    const std::size_t F = layer.inputs;
    const float* ih = parameters + offset;
    const float* hh = ih + 4 * U * F;
    const float* bias = hh + 4 * U * U;
    for (std::size_t t = 0; t < T; ++t) {
      for (std::size_t r = 0; r < 4 * U; ++r) {
        double z = static_cast<double>(bias[r]) + static_cast<double>(bias[4 * U + r]);
        for (std::size_t k = 0; k < F; ++k) z += static_cast<double>(ih[r * F + k]) * layer.x[t * F + k];
        for (std::size_t k = 0; t > 0 && k < U; ++k) z += static_cast<double>(hh[r * U + k]) * layer.h[(t - 1) * U + k];
        layer.gates[t * 4 * U + r] = r / U == 2 ? std::tanh(z) : sigmoid(z);
      }
      for (std::size_t j = 0; j < U; ++j) {
        const double* gate = &layer.gates[t * 4 * U];
        const double before = t > 0 ? layer.c[(t - 1) * U + j] : 0.0;
        layer.c[t * U + j] = gate[U + j] * before + gate[j] * gate[2 * U + j];
        layer.h[t * U + j] = gate[3 * U + j] * std::tanh(layer.c[t * U + j]);
      }
    }
    below = layer.h;
    offset += 4 * U * (F + U + 2);
  }

  Reference result{below, Values(offset, 0.0), {}, 0.0};
  Values above(dh, dh + T * U);
  for (std::size_t l = layers; l-- > 0;) {
    const auto& layer = stack[l];
    const std::size_t F = layer.inputs;
    const float* ih = parameters + layer.offset;
    const float* hh = ih + 4 * U * F;
    double* d_ih = &result.gradient[layer.offset];
    double* d_hh = d_ih + 4 * U * F;
    double* d_bias = d_hh + 4 * U * U;
    Values dx(T * F, 0.0);
    Values later(U, 0.0);
    Values dc(U, 0.0);
    for (std::size_t t = T; t-- > 0;) {
      Values d(4 * U);
      for (std::size_t j = 0; j < U; ++j) {
        const double* gate = &layer.gates[t * 4 * U];
        const double i = gate[j];
        const double f = gate[U + j];
        const double g = gate[2 * U + j];
        const double o = gate[3 * U + j];
        const double tanh_c = std::tanh(layer.c[t * U + j]);
        const double total = above[t * U + j] + later[j];
        const double cell = dc[j] + total * o * (1.0 - tanh_c * tanh_c);
        d[j] = cell * g * i * (1.0 - i);
        d[U + j] = t > 0 ? cell * layer.c[(t - 1) * U + j] * f * (1.0 - f) : 0.0;
        d[2 * U + j] = cell * i * (1.0 - g * g);
        d[3 * U + j] = total * tanh_c * o * (1.0 - o);
        dc[j] = cell * f;
      }
      std::fill(later.begin(), later.end(), 0.0);
      for (std::size_t r = 0; r < 4 * U; ++r) {
        for (std::size_t k = 0; k < F; ++k) {
          d_ih[r * F + k] += d[r] * layer.x[t * F + k];
          dx[t * F + k] += d[r] * static_cast<double>(ih[r * F + k]);
        }
        for (std::size_t k = 0; k < U; ++k) {
          if (t > 0) d_hh[r * U + k] += d[r] * layer.h[(t - 1) * U + k];
          later[k] += d[r] * static_cast<double>(hh[r * U + k]);
        }
        d_bias[r] += d[r];
        d_bias[4 * U + r] += d[r];
      }
    }
    above = dx;
  }
  const auto F = static_cast<std::size_t>(plan.inputs);
  result.dx_sum.assign(F, 0.0);
  for (std::size_t k = 0; k < F; ++k) {
    double scale = 0.0;
    for (std::size_t t = 0; t < T; ++t) {
      result.dx_sum[k] += above[t * F + k];
      scale += std::abs(above[t * F + k]);
    }
    result.dx_scale = std::max(result.dx_scale, scale);
  }
  return result;
}

std::vector<float> normals(std::mt19937& random, std::int64_t count, float deviation) {
  std::normal_distribution<float> normal(0.0F, deviation);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (auto& value : values) value = normal(random);
  return values;
}

/// What the kernels give for a group.
struct Result {
  std::vector<float> h, dx_sum, rows, sum;
  std::vector<double> squared;
};

Result run(const Plan& plan, std::int64_t count, const float* parameters, const float* x, const float* dh,
           Weights& weights, Record& record) {
  const std::int64_t P = plan.parameters();
  const std::int64_t stride = P + 3;
  Result result;
  constexpr float untouched = 77.0F;
  result.h.assign(static_cast<std::size_t>(count * plan.steps * plan.hidden + 1), untouched);
  result.dx_sum.assign(static_cast<std::size_t>(count * plan.inputs + 1), untouched);
  result.rows.assign(static_cast<std::size_t>(count * stride), untouched);
  result.sum.assign(static_cast<std::size_t>(P + 1), 0.5F);
  result.squared.assign(static_cast<std::size_t>(count), -1.0);
  prepare(plan, parameters, weights);
  forward(plan, weights, record, count, x, result.h.data());
  backward(plan, weights, record, count, dh, result.dx_sum.data());
  window_gradients(plan, record, count, x, result.h.data(), result.rows.data(), stride, result.squared.data());
  add_gradients(plan, record, count, x, result.h.data(), result.sum.data());
  EXPECT_EQ(result.h.back(), untouched);
  EXPECT_EQ(result.dx_sum.back(), untouched);
  EXPECT_EQ(result.sum.back(), 0.5F);
  for (std::int64_t w = 0; w < count; ++w) {
    for (std::int64_t p = P; p < stride; ++p)
      EXPECT_EQ(result.rows[static_cast<std::size_t>(w * stride + p)], untouched);
  }
  return result;
}

/// Largest error over the largest value, or over `scale` if that is larger.
double error(const float* values, const Values& expected, double scale = 0.0) {
  double most = 0.0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::abs(static_cast<double>(values[i]) - expected[i]);
    most = difference <= most ? most : difference;  // a NaN stays
    scale = std::max(scale, std::abs(expected[i]));
  }
  return scale > 0.0 ? most / scale : most;
}

void compare(const Plan& plan, std::int64_t count, std::mt19937& random, Weights& weights, Record& record) {
  SCOPED_TRACE(::testing::Message() << "inputs " << plan.inputs << " hidden " << plan.hidden << " layers "
                                    << plan.layers << " steps " << plan.steps << " lanes " << plan.lanes << " windows "
                                    << count << " isa " << static_cast<int>(plan.isa));
  const std::int64_t P = plan.parameters();
  const auto parameters = normals(random, P, 1.0F / std::sqrt(static_cast<float>(plan.hidden)));
  const auto x = normals(random, count * plan.steps * plan.inputs, 1.0F);
  const auto dh = normals(random, count * plan.steps * plan.hidden, 1.0F);
  const auto result = run(plan, count, parameters.data(), x.data(), dh.data(), weights, record);
  Values sum(static_cast<std::size_t>(P), 0.5);
  for (std::int64_t w = 0; w < count; ++w) {
    const auto expected = reference(plan, parameters.data(), x.data() + w * plan.steps * plan.inputs,
                                    dh.data() + w * plan.steps * plan.hidden);
    EXPECT_LT(error(result.h.data() + w * plan.steps * plan.hidden, expected.h), 5e-6);
    EXPECT_LT(error(result.dx_sum.data() + w * plan.inputs, expected.dx_sum, expected.dx_scale), 1e-5);
    const float* row = result.rows.data() + w * (P + 3);
    EXPECT_LT(error(row, expected.gradient), 1e-5);
    double square = 0.0;
    for (std::size_t p = 0; p < sum.size(); ++p) {
      sum[p] += expected.gradient[p];
      square += static_cast<double>(row[p]) * static_cast<double>(row[p]);
    }
    EXPECT_NEAR(result.squared[static_cast<std::size_t>(w)] / square, 1.0, 1e-6);
  }
  EXPECT_LT(error(result.sum.data(), sum), 1e-5);
}

std::vector<Isa> available() {
  std::vector<Isa> isas{Isa::portable};
  if (best_isa() != Isa::portable) isas.push_back(Isa::avx2);
  if (best_isa() == Isa::avx512) isas.push_back(Isa::avx512);
  return isas;
}

TEST(LstmCpu, AgreesWithTheDefinition) {
  std::mt19937 random(7);
  const auto pick = [&](int from, int to) { return std::uniform_int_distribution<std::int64_t>(from, to)(random); };
  for (const Isa isa : available()) {
    // Reused from size to size, as buffers are from step to step.
    Weights weights;
    Record record;
    for (int round = 0; round < 60; ++round) {
      Plan plan;
      plan.inputs = pick(1, 40);
      plan.hidden = pick(1, 48);
      plan.layers = pick(1, 3);
      plan.steps = pick(1, 30);
      plan.lanes = pick(0, 1) == 0 ? 16 : 32;
      plan.isa = isa;
      compare(plan, pick(1, static_cast<int>(plan.lanes)), random, weights, record);
    }
    for (const std::int64_t hidden : {1, 2, 3, 4, 5, 8, 16, 31, 32, 40, 48, 100}) {
      Plan plan;
      plan.inputs = hidden == 40 ? 36 : hidden;
      plan.hidden = hidden;
      plan.layers = 2;
      plan.steps = 5;
      plan.isa = isa;
      compare(plan, plan.lanes, random, weights, record);
    }
  }
}

TEST(LstmCpu, ABrokenWindowIsSeenAndAloneInIt) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  std::mt19937 random(3);
  for (const Isa isa : available()) {
    Plan plan;
    plan.inputs = 5;
    plan.hidden = 7;
    plan.layers = 2;
    plan.steps = 6;
    plan.isa = isa;
    constexpr std::int64_t count = 19;
    const auto size = static_cast<std::size_t>(plan.steps * plan.inputs);
    const std::int64_t P = plan.parameters();
    const auto parameters = normals(random, P, 0.4F);
    auto x = normals(random, count * plan.steps * plan.inputs, 1.0F);
    auto dh = normals(random, count * plan.steps * plan.hidden, 1.0F);
    Weights weights;
    Record record;
    const auto whole = run(plan, count, parameters.data(), x.data(), dh.data(), weights, record);
    x[2 * size + 3] = std::numeric_limits<float>::quiet_NaN();
    x[5 * size + 8] = inf;
    dh[static_cast<std::size_t>(8 * plan.steps * plan.hidden) + 4] = -inf;
    auto result = run(plan, count, parameters.data(), x.data(), dh.data(), weights, record);
    std::vector<float> factors(count, 1.0F);
    for (std::size_t w = 0; w < count; ++w) {
      const bool broken = w == 2 || w == 5 || w == 8;
      EXPECT_EQ(std::isfinite(result.squared[w]), !broken) << w;
      if (broken) factors[w] = 0.0F;
      else EXPECT_EQ(result.squared[w], whole.squared[w]) << w;
      for (std::size_t p = 0; !broken && p < static_cast<std::size_t>(P + 3); ++p)
        EXPECT_EQ(result.rows[w * static_cast<std::size_t>(P + 3) + p],
                  whole.rows[w * static_cast<std::size_t>(P + 3) + p]);
    }
    std::vector<float> sum(static_cast<std::size_t>(P), 0.0F);
    weighted_sum(isa, count, factors.data(), result.rows.data(), P + 3, 0, P, sum.data());
    for (const float value : sum) EXPECT_TRUE(std::isfinite(value));
    // The next group is not touched by what this one left in the buffers.
    x[2 * size + 3] = 0.0F;
    x[5 * size + 8] = 0.0F;
    dh[static_cast<std::size_t>(8 * plan.steps * plan.hidden) + 4] = 0.0F;
    result = run(plan, 11, parameters.data(), x.data(), dh.data(), weights, record);
    for (const float value : result.rows) EXPECT_TRUE(std::isfinite(value));
    for (const float value : result.sum) EXPECT_TRUE(std::isfinite(value));
  }
}

TEST(LstmCpu, SumsRowsByWeight) {
  std::mt19937 random(5);
  for (const Isa isa : available()) {
    for (const std::int64_t windows : {0, 1, 3, 4, 31, 64, 300}) {
      constexpr std::int64_t P = 3333;
      auto rows = normals(random, windows * P, 1.0F);
      auto factors = normals(random, windows, 1.0F);
      Values expected(P, 0.25);
      for (std::int64_t w = 0; w < windows; ++w) {
        if (w % 5 == 2) {
          factors[static_cast<std::size_t>(w)] = 0.0F;
          rows[static_cast<std::size_t>(w * P + 9)] = std::numeric_limits<float>::quiet_NaN();
          continue;
        }
        for (std::int64_t p = 5; p < P - 1; ++p)
          expected[static_cast<std::size_t>(p)] += static_cast<double>(factors[static_cast<std::size_t>(w)]) *
                                                   static_cast<double>(rows[static_cast<std::size_t>(w * P + p)]);
      }
      std::vector<float> sum(P, 0.25F);
      weighted_sum(isa, windows, factors.data(), rows.data(), P, 5, P - 1, sum.data());
      EXPECT_LT(error(sum.data(), expected), 2e-6);
    }
  }
}

TEST(LstmCpu, RefusesWhatItCannotDo) {
  Weights weights;
  Plan plan;
  EXPECT_THROW(prepare(plan, nullptr, weights), std::invalid_argument);
  plan.inputs = plan.hidden = plan.layers = plan.steps = 1;
  plan.lanes = 8;
  EXPECT_THROW(prepare(plan, nullptr, weights), std::invalid_argument);
  plan.lanes = 16;
  Record record;
  EXPECT_THROW(forward(plan, weights, record, 17, nullptr, nullptr), std::invalid_argument);
}

}  // namespace
}  // namespace tsdp::dp::lstm_cpu
