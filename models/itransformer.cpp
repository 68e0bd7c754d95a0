#include "itransformer.h"

#include <cmath>

#include "scalers.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::models {

ITransformer::ITransformer(const ModelOptions& options, const at::TensorOptions& tensor_options) : Forecaster(options) {
  if (width() % heads != 0)
    throw UsageError(
        cat("model.width: found ", width(), "; expected a multiple of ", heads, ", the heads of itransformer"));
  const auto declare_norm = [&](const std::string& prefix) {
    const auto place = parameters_.declare(prefix + ".weight", {width()});
    parameters_.declare(prefix + ".bias", {width()});
    return place;
  };
  // In the order of GluonTS's module: "emebdding" is its spelling.
  const auto embedding = declare_linear("emebdding", width(), options.context_length + 2);
  struct Places {
    std::size_t in, out, up, down, first_norm, second_norm;
  };
  std::array<Places, 2> places{};
  for (std::size_t l = 0; l < places.size(); ++l) {
    const auto prefix = "encoder.layers." + std::to_string(l) + ".";
    auto& p = places[l];
    p.in = parameters_.declare(prefix + "self_attn.in_proj_weight", {3 * width(), width()}, trains_all());
    parameters_.declare(prefix + "self_attn.in_proj_bias", {3 * width()});
    p.out = declare_linear(prefix + "self_attn.out_proj", width(), width());
    p.up = declare_linear(prefix + "linear1", feed_forward(), width());
    p.down = declare_linear(prefix + "linear2", width(), feed_forward());
    p.first_norm = declare_norm(prefix + "norm1");
    p.second_norm = declare_norm(prefix + "norm2");
  }
  const auto norm = declare_norm("encoder.norm");
  const auto projection = declare_linear("projection", step_width() * options.prediction_length, width());
  allocate(tensor_options, StudentTHead::declare(parameters_, "args_proj.proj", head_inputs(step_width())),
           head_inputs(step_width()));

  embedding_ = linear(embedding);
  for (std::size_t l = 0; l < places.size(); ++l) {
    const auto& p = places[l];
    auto& e = encoders_[l];
    // Rows 0 … d − 1 of the stacked weights are the query's, then come the key's, then the value's.
    const auto part = [&](std::int64_t place) {
      const auto rows = [&](const at::Tensor& stacked) {
        return stacked.defined() ? stacked.narrow(0, place * width(), width()) : stacked;
      };
      auto out = std::make_unique<dp::Linear>(rows(parameters_.value(p.in)), rows(parameters_.value(p.in + 1)),
                                              rows(parameters_.gradient(p.in)), rows(parameters_.gradient(p.in + 1)));
      layer_list_.push_back(out.get());
      return out;
    };
    if (variables() > 1) {
      e.query = part(0);
      e.key = part(1);
    }
    e.value = part(2);
    e.out = linear(p.out);
    e.up = linear(p.up);
    e.down = linear(p.down);
    e.first_norm = layer_norm(p.first_norm);
    e.second_norm = layer_norm(p.second_norm);
  }
  norm_ = layer_norm(norm);
  projection_ = linear(projection);
}

void ITransformer::initialise(RandomStream& stream) {
  std::int64_t inputs = 0;  // of the layer whose weight came last: its bias follows
  initialise_uniform(stream, [&](const dp::ParameterBuffer::Entry& entry) {
    const auto& name = entry.name;
    if (name.find("norm") != std::string::npos) return 0.0;
    if (name.ends_with("in_proj_weight")) return std::sqrt(6.0 / static_cast<double>(4 * width()));  // Xavier, stacked
    if (name.ends_with("in_proj_bias") || name.ends_with("out_proj.bias")) return 0.0;
    if (entry.shape.size() == 2) inputs = entry.shape[1];
    return 1.0 / std::sqrt(static_cast<double>(inputs));
  });
  start_at_prior("args_proj.proj", {"projection."});
  const auto& entries = parameters_.entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto& name = entries[i].name;
    if (name.ends_with("norm.weight") || name.ends_with("norm1.weight") || name.ends_with("norm2.weight"))
      parameters_.value(i).fill_(1.0);
    // PyTorch's encoder begins with identical copies of one layer.
    if (!name.starts_with("encoder.layers.1.")) continue;
    for (std::size_t j = 0; j < i; ++j)
      if (entries[j].name == "encoder.layers.0." + name.substr(17)) parameters_.value(i).copy_(parameters_.value(j));
  }
}

Forecaster::Hidden ITransformer::forward(const WindowBatch& batch) {
  const auto scale = mean_scale(batch.past_target, batch.past_observed, options_.default_scale);
  const auto own = frame(batch, scale);
  // With a prior the level says nothing: a forecast is the same in any units.
  const auto token =
      at::cat({own.input, at::zeros_like(scale), own.naive.defined() ? at::zeros_like(scale) : scale.log()}, 1);
  auto x = tape_.apply(*embedding_, tape_.constant(token));
  for (auto& e : encoders_) {
    auto attended = tape_.apply(*e.value, x);
    if (variables() > 1)
      attended = tape_.attention(tape_.apply(*e.query, x), tape_.apply(*e.key, x), attended, variables(), heads);
    x = tape_.apply(*e.first_norm, tape_.add(x, tape_.apply(*e.out, attended)));
    x = tape_.apply(*e.second_norm, tape_.add(x, tape_.apply(*e.down, tape_.relu(tape_.apply(*e.up, x)))));
  }
  const auto steps = tape_.apply(*projection_, tape_.apply(*norm_, x));
  return {with_covariates(steps, batch), own.scale, own.naive, own.growth};
}

Forecaster::Scored ITransformer::scored(const WindowBatch& batch) const {
  return {batch.future_target, batch.future_observed / static_cast<double>(options_.prediction_length)};
}

std::int64_t ITransformer::bytes_per_window() const {
  return 2 * 4 *
         (options_.context_length + 2 +
          2 * (2 * feed_forward() + 8 * width() + (variables() > 1 ? 8 * width() + 4 * heads * variables() : 0)) +
          (head_inputs(step_width()) + 3) * options_.prediction_length);
}

std::string ITransformer::script() const {
  std::string body;
  for (const std::string l : {"0", "1"}) {
    const auto p = "self.encoder_layers_" + l + "_";
    if (variables() == 1)
      body += "    value = torch.linear(x, " + p + "self_attn_in_proj_weight[2 * d:], " + p +
              "self_attn_in_proj_bias[2 * d:])\n";
    else
      body += "    value = self.attention(torch.linear(x, " + p + "self_attn_in_proj_weight, " + p +
              "self_attn_in_proj_bias))\n";
    body += "    x = x + torch.linear(value, " + p + "self_attn_out_proj_weight, " + p + "self_attn_out_proj_bias)\n";
    body += "    x = torch.layer_norm(x, [d], " + p + "norm1_weight, " + p + "norm1_bias)\n";
    body += "    up = torch.relu(torch.linear(x, " + p + "linear1_weight, " + p + "linear1_bias))\n";
    body += "    x = x + torch.linear(up, " + p + "linear2_weight, " + p + "linear2_bias)\n";
    body += "    x = torch.layer_norm(x, [d], " + p + "norm2_weight, " + p + "norm2_bias)\n";
  }
  const bool alone = options_.prior.kind == PriorKind::none;
  std::string attention;
  if (variables() > 1)
    attention = cat(R"(
def attention(self, stacked: Tensor) -> Tensor:
    # (B, 3 D): query, key and value. The variables of a series attend to each other.
    d = stacked.size(1) // 3
    parts = stacked.reshape(-1, )",
                    variables(), ", 3, ", heads, ", d // ", heads, R"().permute(2, 0, 3, 1, 4)
    weights = torch.softmax(torch.matmul(parts[0], parts[1].transpose(2, 3)) / )",
                    exact(std::sqrt(static_cast<double>(step_width()))), R"(, -1)
    return torch.matmul(weights, parts[2]).transpose(1, 2).reshape(-1, d)
)");
  return std::string(mean_scale_script()) + script_methods() + attention + R"(
def distribution(self, past_target: Tensor, past_observed: Tensor, time_features: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
)" + script_frame("self.mean_scale(past_target, past_observed)") +
         "    token = torch.cat([scaled, torch.zeros_like(affine_scale), torch." + (alone ? "log" : "zeros_like") +
         R"((affine_scale)], 1)
    x = torch.linear(token, self.emebdding_weight, self.emebdding_bias)
    d = x.size(1)
)" + body +
         R"(
    x = torch.layer_norm(x, [d], self.encoder_norm_weight, self.encoder_norm_bias)
    steps = torch.linear(x, self.projection_weight, self.projection_bias)
)" + script_steps() +
         student_t_script("args_proj_proj") + script_end();
}

}  // namespace tsdp::models
