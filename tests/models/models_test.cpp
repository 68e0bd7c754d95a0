// Every forecaster against a plain loop over windows with autograd, with kernels and with plain operations, and the
// independence of windows.
#include <gtest/gtest.h>

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include <cmath>
#include <numbers>
#include <optional>

#include "models/forecaster.h"
#include "support/clipped_sum.h"

namespace tsdp::models {
namespace {

struct Setting {
  std::string model;
  std::int64_t windows, context, horizon;
  std::vector<std::int64_t> lags = {};
  std::int64_t features = 0;
  Trainable trainable = Trainable::all;
  std::int64_t covariates = 0;  // of the features, those before the last one
  std::int64_t variables = 1;   // that itransformer forecasts together

  [[nodiscard]] ModelOptions options() const {
    ModelOptions out{context, horizon, lags, features, 0.7, 1};
    out.trainable = trainable;
    out.covariates = covariates;
    out.variables = variables;
    return out;
  }
  [[nodiscard]] std::string text() const {
    return model + ", " + std::to_string(windows) + " windows, " + std::to_string(context) + " + " +
           std::to_string(horizon) + ", " + std::string(name(trainable)) + ", " + std::to_string(variables) +
           " variables";
  }
};

/// Parameters by name, as leaves of autograd.
using Leaves = std::map<std::string, at::Tensor>;

WindowBatch random_batch(const Setting& s, std::int64_t past, RandomStream& stream, at::ScalarType type = at::kDouble) {
  const auto fill = [&](std::vector<std::int64_t> shape, bool mask) {
    auto t = at::empty(shape, at::kDouble);
    for (std::int64_t i = 0; i < t.numel(); ++i)
      t.data_ptr<double>()[i] = mask ? (stream.below(4) == 0 ? 0.0 : 1.0) : 10.0 * stream.uniform() - 3.0;
    return t.to(type);
  };
  WindowBatch b{fill({s.windows, past}, false),
                fill({s.windows, past}, true),
                fill({s.windows, s.horizon}, false),
                fill({s.windows, s.horizon}, true),
                {}};
  b.past_target.mul_(b.past_observed);
  b.future_target.mul_(b.future_observed);
  if (s.features > 0) b.time_features = fill({s.windows, past + s.horizon, s.features}, false).mul_(0.1);
  if (s.covariates > 0) b.time_features[0].narrow(0, 0, past / 2).zero_();  // before its series begins
  return b;
}

at::Tensor mean_scale_of(const at::Tensor& y, const at::Tensor& o, double default_scale) {
  const double n = o.sum().item<double>();
  return (n > 0 ? (y * o).abs().sum() / n : at::full({}, default_scale, y.options())).clamp_min(1e-10);
}

/// Steps of nll, (K), of hidden rows h (K, D) through the three maps `<prefix>.0` ….
at::Tensor nll(const Leaves& w, const std::string& prefix, const at::Tensor& h, const at::Tensor& y,
               const at::Tensor& a) {
  const auto map = [&](const char* i) {
    return at::linear(h, w.at(prefix + "." + i + ".weight"), w.at(prefix + "." + i + ".bias")).squeeze(-1);
  };
  const auto df = at::softplus(map("0")) + 2.0;
  const auto scale = at::softplus(map("2")).clamp_min(2.220446049250313e-16);
  const auto z = (y / a - map("1")) / scale;
  return a.log() + scale.log() + 0.5 * df.log() + 0.5 * std::log(std::numbers::pi) + at::lgamma(df / 2) -
         at::lgamma((df + 1) / 2) + (df + 1) / 2 * at::log1p(z * z / df);
}

at::Tensor linear(const Leaves& w, const std::string& name, const at::Tensor& x) {
  return at::linear(x, w.at(name + ".weight"), w.at(name + ".bias"));
}

/// Hidden rows (H, D) as the head reads them: beside each its covariates, less what they are on average in the past,
/// and that average.
at::Tensor with_covariates(const Setting& s, const at::Tensor& hidden, const WindowBatch& b, std::int64_t i) {
  if (s.covariates == 0) return hidden;
  std::vector<at::Tensor> rows, known;
  const auto all = b.time_features[i];
  const auto past = b.past_target.size(1);
  const auto told = [&](std::int64_t place) {
    return all[place].narrow(0, s.features - 1 - s.covariates, s.covariates);
  };
  for (std::int64_t place = 0; place < past; ++place)
    if (all[place][s.features - 1].item<double>() != 0.0) known.push_back(told(place));
  const auto mean = known.empty() ? at::zeros({s.covariates}, all.options()) : at::stack(known).mean(0);
  for (std::int64_t k = 0; k < s.horizon; ++k) rows.push_back(at::cat({hidden[k], told(past + k) - mean, mean}));
  return at::stack(rows);
}

/// Loss of one window by autograd operations, as the formulas of GluonTS read.
at::Tensor oracle_loss(const Setting& s, const Leaves& w, const WindowBatch& b, std::int64_t i) {
  const auto past = b.past_target[i];
  const auto seen = b.past_observed[i];
  const auto future = b.future_target[i];
  const auto o = b.future_observed[i];
  const auto H = s.horizon;
  if (s.model == "simple_ff") {
    const auto a = past.abs().mean().clamp_min(1e-5);
    const auto h = linear(w, "nn.2", at::relu(linear(w, "nn.0", past / a))).view({H, 64});
    return (o * nll(w, "args_proj.proj", with_covariates(s, h, b, i), future, a)).sum() / o.sum().clamp_min(1.0);
  }
  if (s.model == "dlinear") {
    const auto a = mean_scale_of(past, seen, 0.7);
    const auto u = past / a;
    std::vector<at::Tensor> trend;
    for (std::int64_t t = 0; t < s.context; ++t) {
      auto sum = at::zeros({}, u.options());
      for (std::int64_t k = t - 12; k <= t + 12; ++k) sum = sum + u[std::clamp<std::int64_t>(k, 0, s.context - 1)];
      trend.push_back(sum / 25.0);
    }
    const auto moving = at::stack(trend);
    const auto h = (linear(w, "linear_seasonal", u - moving) + linear(w, "linear_trend", moving)).view({H, 20});
    return (o * nll(w, "args_proj.proj", with_covariates(s, h, b, i), future, a)).sum() / o.sum().clamp_min(1.0);
  }
  if (s.model == "itransformer") {
    const auto norm = [&](const at::Tensor& x, const std::string& name) {
      return at::layer_norm(x, {32}, w.at(name + ".weight"), w.at(name + ".bias"), 1e-5);
    };
    const auto first = i / s.variables * s.variables;  // the tokens are the variables of its series
    std::vector<at::Tensor> tokens;
    for (std::int64_t v = first; v < first + s.variables; ++v) {
      const auto a = mean_scale_of(b.past_target[v], b.past_observed[v], 0.7);
      tokens.push_back(linear(w, "emebdding",
                              at::cat({b.past_target[v] / a, at::zeros({1}, past.options()), a.log().reshape({1})})));
    }
    for (const std::string l : {"0", "1"}) {
      const auto p = "encoder.layers." + l + ".";
      // Attention written out: logits, softmax over the tokens, four heads of eight columns.
      std::vector<at::Tensor> stacked, next;
      for (const auto& x : tokens)
        stacked.push_back(at::linear(x, w.at(p + "self_attn.in_proj_weight"), w.at(p + "self_attn.in_proj_bias")));
      for (std::size_t t = 0; t < tokens.size(); ++t) {
        std::vector<at::Tensor> heads;
        for (std::int64_t j = 0; j < 4; ++j) {
          std::vector<at::Tensor> logits;
          for (const auto& other : stacked)
            logits.push_back((stacked[t].narrow(0, 8 * j, 8) * other.narrow(0, 32 + 8 * j, 8)).sum() / std::sqrt(8.0));
          const auto weights = at::softmax(at::stack(logits), 0);
          auto sum = at::zeros({8}, past.options());
          for (std::size_t k = 0; k < stacked.size(); ++k)
            sum = sum + weights[static_cast<std::int64_t>(k)] * stacked[k].narrow(0, 64 + 8 * j, 8);
          heads.push_back(sum);
        }
        auto x = norm(tokens[t] + linear(w, p + "self_attn.out_proj", at::cat(heads)), p + "norm1");
        next.push_back(norm(x + linear(w, p + "linear2", at::relu(linear(w, p + "linear1", x))), p + "norm2"));
      }
      tokens = next;
    }
    const auto a = mean_scale_of(past, seen, 0.7);
    const auto h =
        linear(w, "projection", norm(tokens[static_cast<std::size_t>(i - first)], "encoder.norm")).view({H, 8});
    return (o * nll(w, "args_proj.proj", with_covariates(s, h, b, i), future, a)).sum() / static_cast<double>(H);
  }
  const auto P = past.size(0);
  const auto C = s.context;
  const auto a = mean_scale_of(past.narrow(0, P - C, C), seen.narrow(0, P - C, C), 0.7);
  const auto values = at::cat({past, future});
  const auto observed = at::cat({seen, o});
  std::vector<at::Tensor> state(2, at::zeros({40}, past.options()));
  std::vector<at::Tensor> cell = state;
  auto loss = at::zeros({}, past.options());
  for (std::int64_t k = 0; k < C + H - 1; ++k) {
    const auto place = P - C + 1 + k;
    std::vector<at::Tensor> parts;
    for (const auto lag : s.lags) parts.push_back((values[place - lag] / a).reshape({1}));
    parts.push_back(w.at("embedder._embedders.0.weight").reshape({1}));
    parts.push_back(at::zeros({1}, past.options()));
    parts.push_back(a.log().reshape({1}));
    parts.push_back(b.time_features[i][place]);
    auto x = at::cat(parts);
    for (std::size_t l = 0; l < 2; ++l) {
      const auto suffix = "_l" + std::to_string(l);
      const auto gates = at::linear(x, w.at("rnn.weight_ih" + suffix), w.at("rnn.bias_ih" + suffix)) +
                         at::linear(state[l], w.at("rnn.weight_hh" + suffix), w.at("rnn.bias_hh" + suffix));
      const auto gate = [&](std::int64_t g) { return gates.narrow(0, 40 * g, 40); };
      cell[l] = at::sigmoid(gate(1)) * cell[l] + at::sigmoid(gate(0)) * at::tanh(gate(2));
      state[l] = at::sigmoid(gate(3)) * at::tanh(cell[l]);
      x = state[l];
    }
    loss = loss + observed[place] * nll(w, "param_proj.proj", x.unsqueeze(0), values[place].reshape({1}), a)[0];
  }
  return loss / static_cast<double>(C + H - 1);
}

std::unique_ptr<Forecaster> make(const Setting& s, std::uint64_t seed, at::ScalarType type = at::kDouble) {
  auto model = make_model(s.model, s.options(), at::TensorOptions(type));
  RandomStream stream(SecretKey::from_seed(seed), "initial weights", 0);
  model->initialise(stream);
  // Off the initial values, so that zeros and ones (biases, norms) matter.
  for (std::int64_t i = 0; i < model->parameters().count(); ++i)
    model->parameters().values()[i] += 0.2 * stream.uniform() - 0.1;
  return model;
}

using test::clipped_sum;

/// Whether training changes a parameter if it is of the head alone.
bool is_of_the_head(const Setting& s, const std::string& name) {
  if (name.find("proj.") != std::string::npos && name.find("_proj.") != std::string::npos &&
      name.find("self_attn") == std::string::npos)
    return true;
  if (s.model == "deepar") return false;
  return name.ends_with("bias") || name.find("norm") != std::string::npos;
}

std::vector<Setting> settings(bool small) {
  std::vector<Setting> out;
  for (const auto* name : {"simple_ff", "dlinear", "itransformer"})
    for (const auto& [windows, context, horizon] :
         {std::tuple{5, 7, 3}, std::tuple{1, 1, 1}, std::tuple{3, 30, 12}, std::tuple{4, 5, 40}})
      out.push_back({name, windows, context, horizon});
  for (const auto* name : {"simple_ff", "dlinear", "itransformer"}) {
    out.push_back({name, 4, 6, 3, {}, 5, Trainable::all, 3});
    out.push_back({name, 2, 1, 2, {}, 2, Trainable::all, 1});
  }
  out.push_back({"deepar", 3, 4, 3, {1, 2, 5}, 2});
  out.push_back({"deepar", 2, 1, 1, {1}, 1});
  if (!small) out.push_back({"deepar", 3, 9, 7, {3, 1, 11, 4}, 5});
  for (std::size_t i = 0, all = out.size(); i < all; ++i) {
    out.push_back(out[i]);
    out.back().trainable = Trainable::head;
  }
  return out;
}

TEST(Models, AgreeWithALoopOverWindows) {
  std::uint64_t seed = 1;
  for (const auto& s : settings(false)) {
    SCOPED_TRACE(s.text());
    const auto model = make(s, seed);
    RandomStream stream(SecretKey::from_seed(seed++), "test", 0);
    const auto batch = random_batch(s, model->past_length(), stream);
    Leaves leaves;
    std::vector<at::Tensor> in_order;
    for (std::size_t i = 0; i < model->parameters().entries().size(); ++i) {
      in_order.push_back(model->parameters().value(i).detach().clone().requires_grad_(true));
      leaves[model->parameters().entries()[i].name] = in_order.back();
    }
    const double clip = 0.5;
    const auto losses = model->losses(batch);
    const auto norms = clipped_sum(*model, batch, {clip});
    auto expected = at::zeros_like(model->parameters().gradients());
    for (std::int64_t i = 0; i < s.windows; ++i) {
      const auto loss = oracle_loss(s, leaves, batch, i);
      EXPECT_NEAR(losses[i].item<double>(), loss.item<double>(), 1e-10);
      std::vector<at::Tensor> flat;
      for (const auto& g : torch::autograd::grad({loss}, in_order, {}, std::nullopt, false, /*allow_unused=*/true))
        flat.push_back(g.defined() ? g.reshape({-1}) : at::Tensor());
      std::vector<at::Tensor> trained;
      for (std::size_t p = 0; p < flat.size(); ++p) {
        if (!flat[p].defined()) flat[p] = at::zeros({in_order[p].numel()}, at::kDouble);
        if (s.trainable == Trainable::all || is_of_the_head(s, model->parameters().entries()[p].name))
          trained.push_back(flat[p]);
      }
      const auto gradient = at::cat(trained);
      const double norm = gradient.norm().item<double>();
      EXPECT_NEAR(norms[i].item<double>(), norm, 1e-9 * (1.0 + norm));
      expected += gradient * std::min(1.0, clip / norm);
    }
    for (const auto& entry : model->parameters().entries()) {
      EXPECT_EQ(entry.trained, s.trainable == Trainable::all || is_of_the_head(s, entry.name)) << entry.name;
      if (!entry.trained) continue;
      const auto part = [&](const at::Tensor& all) { return all.narrow(0, entry.offset, entry.count); };
      EXPECT_TRUE(at::allclose(part(model->parameters().gradients()), part(expected), 1e-8, 1e-10)) << entry.name;
    }
  }
}

// The variables of a series are forecast together and are one record; series do not touch each other.
TEST(Models, AgreeWithALoopOverSeriesOfSeveralVariables) {
  std::uint64_t seed = 500;
  for (const auto trainable : {Trainable::all, Trainable::head})
    for (const auto& [series, variables, context, horizon, covariates] :
         {std::tuple{3, 2, 7, 3, 0}, std::tuple{2, 5, 4, 2, 0}, std::tuple{2, 3, 6, 4, 2}}) {
      Setting s{"itransformer", series * variables, context, horizon};
      s.trainable = trainable;
      s.variables = variables;
      s.covariates = covariates;
      s.features = covariates > 0 ? covariates + 2 : 0;
      SCOPED_TRACE(s.text());
      const auto model = make(s, seed);
      RandomStream stream(SecretKey::from_seed(seed++), "test", 0);
      auto batch = random_batch(s, model->past_length(), stream);
      Leaves leaves;
      std::vector<at::Tensor> in_order;
      for (std::size_t i = 0; i < model->parameters().entries().size(); ++i) {
        in_order.push_back(model->parameters().value(i).detach().clone().requires_grad_(true));
        leaves[model->parameters().entries()[i].name] = in_order.back();
      }
      dp::Clipping clipping{0.5};
      clipping.joined = true;
      clipping.scale = 1.0 / variables;
      clipping.summed = s.windows;
      std::vector<std::int64_t> starts;
      for (std::int64_t w = 0; w <= s.windows; w += variables) starts.push_back(w);
      const auto losses = model->losses(batch).clone();
      model->parameters().gradients().zero_();
      model->backward();
      const auto norms = dp::add_clipped_sum(model->layers(), dp::Records(starts, variables), clipping,
                                             model->parameters().gradients().options());
      auto expected = at::zeros_like(model->parameters().gradients());
      for (std::int64_t r = 0; r < series; ++r) {
        auto loss = at::zeros({}, at::kDouble);
        for (std::int64_t i = r * variables; i < (r + 1) * variables; ++i) {
          const auto own = oracle_loss(s, leaves, batch, i);
          EXPECT_NEAR(losses[i].item<double>(), own.item<double>(), 1e-10);
          loss = loss + own / static_cast<double>(variables);
        }
        std::vector<at::Tensor> trained;
        const auto gradients = torch::autograd::grad({loss}, in_order, {}, std::nullopt, false, /*allow_unused=*/true);
        for (std::size_t p = 0; p < gradients.size(); ++p)
          if (s.trainable == Trainable::all || is_of_the_head(s, model->parameters().entries()[p].name))
            trained.push_back(gradients[p].defined() ? gradients[p].reshape({-1})
                                                     : at::zeros({in_order[p].numel()}, at::kDouble));
        const auto gradient = at::cat(trained);
        const double norm = gradient.norm().item<double>();
        EXPECT_NEAR(norms[r].item<double>(), norm, 1e-8 * (1.0 + norm));
        expected += gradient * std::min(1.0, 0.5 / norm);
      }
      EXPECT_TRUE(at::allclose(model->parameters().gradients(), expected, 1e-7, 1e-9));

      // What the other variables of a series do moves its forecast; other series do not.
      batch.future_observed.fill_(1.0);
      const auto before = model->losses(batch).clone();
      batch.past_target.narrow(0, 0, 1).fill_(std::numeric_limits<double>::infinity());
      batch.past_observed.narrow(0, 0, 1).fill_(1.0);
      const auto after = model->losses(batch);
      for (std::int64_t i = 0; i < s.windows; ++i)
        EXPECT_EQ(before[i].item<double>() == after[i].item<double>(), i >= variables) << i;
    }
}

// The CPU's kernels against the plain operations: losses, norms, clipped and plain sums, over random sizes.
TEST(Models, KernelsAgreeWithPlainOperations) {
  RandomStream sizes(SecretKey::from_seed(77), "sizes", 0);
  const auto up_to = [&](std::uint64_t n) { return static_cast<std::int64_t>(1 + sizes.below(n)); };
  for (int trial = 0; trial < 24; ++trial) {
    const auto name = model_names()[static_cast<std::size_t>(trial) % model_names().size()];
    Setting s{name, up_to(80), up_to(40), up_to(12)};
    if (trial / 4 % 2 == 1) s.trainable = Trainable::head;
    if (name == "deepar") {
      s.features = up_to(6);
      for (std::int64_t i = up_to(8); i > 0; --i) s.lags.push_back(up_to(30));
    } else if (trial / 8 == 1) {
      s.covariates = up_to(4);
      s.features = s.covariates + 2;
    }
    SCOPED_TRACE(s.text());
    const auto model = make(s, 100 + static_cast<std::uint64_t>(trial), at::kFloat);
    RandomStream stream(SecretKey::from_seed(static_cast<std::uint64_t>(trial)), "test", 0);
    const auto batch = random_batch(s, model->past_length(), stream, at::kFloat);
    const auto run = [&] {
      const auto losses = model->losses(batch).clone();
      const auto norms = clipped_sum(*model, batch, {0.3});
      const auto clipped = model->parameters().gradients().clone();
      model->parameters().gradients().zero_();
      model->losses(batch);
      model->backward();
      for (auto* layer : model->layers()) layer->add_gradient({});
      return std::tuple{losses, norms, clipped, model->parameters().gradients().clone()};
    };
    const auto [losses, norms, clipped, plain] = run();
    const dp::PlainOperations switched_off;
    const auto [losses2, norms2, clipped2, plain2] = run();
    const auto off = [](const at::Tensor& a, const at::Tensor& b) {
      return ((a - b).norm() / (b.norm() + 1e-30)).item<double>();
    };
    EXPECT_LT(off(losses, losses2), 5e-6);
    // The Gram form of the plain operations raises norms by what rounding could hide.
    EXPECT_TRUE(at::allclose(norms, norms2, 1e-4, 0.0));
    EXPECT_LT(off(clipped, clipped2), 2e-5);
    EXPECT_LT(off(plain, plain2), 2e-5);
  }
}

TEST(Models, WindowsDoNotTouchEachOther) {
  for (auto s : settings(true)) {
    for (const auto type : {at::kDouble, at::kFloat}) {
      s.windows = 6;
      SCOPED_TRACE(s.text());
      const auto model = make(s, 3, type);
      RandomStream stream(SecretKey::from_seed(8), "test", 0);
      auto batch = random_batch(s, model->past_length(), stream, type);
      batch.future_observed.fill_(1.0);
      const auto before = model->losses(batch).clone();
      const auto alone = clipped_sum(*model, batch.rows(3, 3), {0.1}).clone();
      const auto rest = model->parameters().gradients().clone();
      batch.past_target[2].fill_(std::numeric_limits<double>::infinity());
      batch.past_observed[2].fill_(1.0);
      batch.future_target[2].fill_(std::numeric_limits<double>::quiet_NaN());
      const auto after = model->losses(batch);
      for (const std::int64_t i : {0, 1, 3, 4, 5}) EXPECT_EQ(before[i].item<double>(), after[i].item<double>());
      // A window that is not finite is left out of the sum, and the others are as they were.
      const auto norms = clipped_sum(*model, batch.rows(2, 4), {0.1});
      EXPECT_FALSE(std::isfinite(norms[0].item<double>()));
      EXPECT_TRUE(at::allclose(norms.narrow(0, 1, 3), alone, 1e-6));
      EXPECT_TRUE(at::allclose(model->parameters().gradients(), rest, 1e-5, 1e-6));
    }
  }
}

TEST(Models, AnUnobservedFutureAndContextHaveNoLossAndNoGradient) {
  for (auto s : settings(true)) {
    s.windows = 2;
    SCOPED_TRACE(s.text());
    const auto model = make(s, 4);
    RandomStream stream(SecretKey::from_seed(9), "test", 0);
    auto batch = random_batch(s, model->past_length(), stream);
    batch.future_observed.zero_();
    batch.past_observed.zero_();  // DeepAR scores its context, too
    EXPECT_EQ(model->losses(batch).abs().sum().item<double>(), 0.0);
    const auto norms = clipped_sum(*model, batch, {1.0});
    EXPECT_EQ(norms.sum().item<double>(), 0.0);
    EXPECT_EQ(model->parameters().gradients().abs().sum().item<double>(), 0.0);
  }
}

TEST(Models, EveryKindOfClippingBoundsEveryWindow) {
  for (auto s : settings(true)) {
    s.windows = 1;
    SCOPED_TRACE(s.text());
    const auto model = make(s, 5, at::kFloat);
    RandomStream stream(SecretKey::from_seed(10), "test", 0);
    auto batch = random_batch(s, model->past_length(), stream, at::kFloat);
    batch.future_observed.fill_(1.0);
    for (const double clip : {1e-4, 1e-2, 1.0, 100.0})
      for (const auto factor : {dp::ClipFactor::exact, dp::ClipFactor::automatic})
        for (const bool per_layer : {false, true}) {
          const double norm = clipped_sum(*model, batch, {clip, factor, per_layer})[0].item<double>();
          const double added = model->parameters().gradients().to(at::kDouble).norm().item<double>();
          EXPECT_LE(added, clip);
          if (per_layer) continue;
          const double expected = factor == dp::ClipFactor::exact ? std::min(norm, clip) : clip * norm / (norm + 0.01);
          EXPECT_NEAR(added, expected, 3e-5 * added);  // the guard against rounding takes up to 1.1e-5
        }
  }
}

TEST(Models, InitialWeightsHaveTheStatedBounds) {
  for (const auto& s : settings(true)) {
    const auto model = make_model(s.model, s.options(), at::TensorOptions(at::kFloat));
    RandomStream stream(SecretKey::from_seed(1), "initial weights", 0);
    model->initialise(stream);
    for (std::size_t i = 0; i < model->parameters().entries().size(); ++i) {
      const auto& entry = model->parameters().entries()[i];
      const auto value = model->parameters().value(i);
      SCOPED_TRACE(entry.name);
      EXPECT_TRUE(value.isfinite().all().item<bool>());
      if (entry.name.find("embedder") != std::string::npos) continue;
      if (entry.name.find("norm") != std::string::npos) {
        EXPECT_TRUE(value.eq(entry.name.ends_with("weight") ? 1.0 : 0.0).all().item<bool>());
        continue;
      }
      EXPECT_LE(value.abs().max().item<double>(), 1.0);
      const bool zero =
          entry.name.ends_with("bias") && (entry.name.starts_with("nn.") || entry.name.starts_with("linear_") ||
                                           entry.name.find("self_attn") != std::string::npos);
      EXPECT_EQ(value.abs().max().item<double>() == 0.0, zero);
    }
  }
}

TEST(Registry, NamesTheModelsItKnows) {
  EXPECT_THROW(static_cast<void>(make_model("nonsense", {1, 1}, at::TensorOptions(at::kFloat))), std::exception);
  EXPECT_THROW(static_cast<void>(make_model("deepar", {8, 3}, at::TensorOptions(at::kFloat))), std::exception);
  for (const auto& name : model_names())
    EXPECT_EQ(make_model(name, {8, 3, {1, 2}, 5, 0.0, 1}, at::TensorOptions(at::kFloat))->name(), name);
}

}  // namespace
}  // namespace tsdp::models
