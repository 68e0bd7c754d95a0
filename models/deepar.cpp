#include "deepar.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "scalers.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::models {

DeepAR::DeepAR(const ModelOptions& options, const at::TensorOptions& tensor_options) : Forecaster(options) {
  if (options.lags.empty() || *std::min_element(options.lags.begin(), options.lags.end()) < 1)
    throw UsageError(
        "model.lags: deepar reads past values through lags alone; expected a list of numbers of 1 or more, such as [1, "
        "2, 3, 4, 5, 6, 7, 23, 24, 25] for hourly data");
  options_.covariates = 0;  // they are among its time features
  if (options.time_features < 1) throw UsageError("deepar needs time features; found none");
  const auto head = StudentTHead::declare(parameters_, "param_proj.proj", width());
  const auto embedding = parameters_.declare("embedder._embedders.0.weight", {1, 1}, trains_all());
  const auto rnn = dp::Lstm::declare(parameters_, "rnn", inputs(), width(), layer_count, trains_all());
  allocate(tensor_options, head, width());
  embedding_value_ = parameters_.value(embedding);
  embedding_ = std::make_unique<ConstantEmbedding>(parameters_.gradient(embedding));
  lstm_ = std::make_unique<dp::Lstm>(parameters_, rnn, layer_count, /*input_is_constant=*/true);
  if (trains_all()) {
    layer_list_.push_back(embedding_.get());
    layer_list_.push_back(lstm_.get());
  }

  std::vector<std::int64_t> places;
  for (std::int64_t k = 0; k < steps(); ++k)
    for (const auto lag : options.lags) places.push_back(past_length() - options.context_length + 1 + k - lag);
  lagged_places_ = at::tensor(places, at::TensorOptions(tensor_options.device()).dtype(at::kLong));
}

std::int64_t DeepAR::longest_season() const { return *std::max_element(options_.lags.begin(), options_.lags.end()); }

std::int64_t DeepAR::past_length() const {
  return options_.context_length + *std::max_element(options_.lags.begin(), options_.lags.end()) - 1;
}

void DeepAR::initialise(RandomStream& stream) {
  // PyTorch's defaults: uniform on ±1/sqrt(hidden) for the LSTM, ±1/sqrt(inputs) for the head, N(0, 1) for the
  // embedding.
  initialise_uniform(stream, [&](const auto&) { return 1.0 / std::sqrt(static_cast<double>(width())); });
  const double radius = std::sqrt(-2.0 * std::log(1.0 - stream.uniform()));
  embedding_value_.fill_(radius * std::cos(2.0 * std::numbers::pi * stream.uniform()));
  start_at_prior("param_proj.proj", {});
}

Forecaster::Hidden DeepAR::forward(const WindowBatch& batch) {
  const auto context = options_.context_length;
  const auto first = past_length() - context;
  const auto scale = mean_scale(batch.past_target.narrow(1, first, context),
                                batch.past_observed.narrow(1, first, context), options_.default_scale);
  if (options_.prior.kind == PriorKind::none)
    return {
        tape_.apply(*lstm_, tape_.constant(input_of(
                                batch, at::cat({batch.past_target, batch.future_target}, 1).div_(scale), scale.log()))),
        scale};
  // The naive forecast of every step is the value one step, or a season, before it. The centre of a walk is where the
  // scored steps begin, so that no step learns about a later one.
  const auto filled = filled_past(options_.prior, batch.past_target, batch.past_observed, context, scale);
  const auto future = at::where(batch.future_observed.gt(0.0), batch.future_target, filled.mean);
  const auto values = at::cat({filled.values, future}, 1);
  const auto centre = options_.prior.kind == PriorKind::last_value ? filled.values.narrow(1, first, 1) : filled.mean;
  const auto input = ((values - centre) / filled.scale).clamp_(-largest_input, largest_input);
  const auto naive = values.narrow(1, first + 1 - options_.prior.season, steps());
  return {tape_.apply(*lstm_, tape_.constant(input_of(batch, input, at::zeros_like(scale)))), filled.scale, naive};
}

at::Tensor DeepAR::input_of(const WindowBatch& batch, const at::Tensor& values, const at::Tensor& level) {
  if (dp::kernels_serve(values)) return input_by_kernel(batch, values, level);
  const auto rows = batch.size();
  const auto lag_count = static_cast<std::int64_t>(options_.lags.size());
  const auto first = past_length() - options_.context_length + 1;
  auto input = at::empty({rows, steps(), inputs()}, batch.past_target.options());
  input.narrow(2, 0, lag_count).copy_(values.index_select(1, lagged_places_).view({rows, steps(), lag_count}));
  input.select(2, lag_count).copy_(embedding_value_);
  input.select(2, lag_count + 1).zero_();
  input.select(2, lag_count + 2).copy_(level);
  input.narrow(2, lag_count + 3, options_.time_features).copy_(batch.time_features.narrow(1, first, steps()));
  return input;
}

at::Tensor DeepAR::input_by_kernel(const WindowBatch& batch, const at::Tensor& all_values, const at::Tensor& level) {
  const auto rows = batch.size();
  const auto past = past_length();
  const auto horizon = options_.prediction_length;
  dp::fitted(input_, {rows, steps(), inputs()}, batch.past_target.options());
  const auto features = batch.time_features.contiguous();
  const auto values = all_values.contiguous();
  const auto levels = level.contiguous();
  at::parallel_for(0, rows, 8, [&](std::int64_t begin, std::int64_t end) {
    const float embedding = embedding_value_.const_data_ptr<float>()[0];
    const auto first = past - options_.context_length + 1;
    for (auto row = begin; row < end; ++row) {
      const float log_a = levels.const_data_ptr<float>()[row];
      const auto* of_row = values.const_data_ptr<float>() + row * (past + horizon);
      auto* out = input_.data_ptr<float>() + row * steps() * inputs();
      const auto* calendar =
          features.const_data_ptr<float>() + (row * (past + horizon) + first) * options_.time_features;
      for (std::int64_t k = 0; k < steps(); ++k) {
        const auto* at = of_row + first + k;
        for (const auto lag : options_.lags) *out++ = at[-lag];
        *out++ = embedding;
        *out++ = 0.0F;
        *out++ = log_a;
        for (std::int64_t f = 0; f < options_.time_features; ++f) *out++ = *calendar++;
      }
    }
  });
  return input_;
}

std::int64_t DeepAR::preferred_chunk(bool is_private) const {
  // The CPU's kernel keeps the gradients of one chunk's windows in cache; elsewhere whole batches are best. If these
  // gradients are more than half of what a window needs otherwise (short contexts, wide layers), half a chunk keeps a
  // private step's memory below twice an ordinary one's.
  if (!dp::kernels_serve(parameters_.values())) return Forecaster::preferred_chunk(is_private);
  const auto gradient = 4 * parameters_.count();
  return is_private && 3 * gradient > bytes_per_window() ? dp::Lstm::preferred_chunk / 2 : dp::Lstm::preferred_chunk;
}

void DeepAR::backward() {
  if (!trains_all()) {
    static_cast<void>(head_->hidden_gradient());  // records its own; nothing below is trained
    return;
  }
  Forecaster::backward();
  embedding_->record(
      lstm_->summed_input_gradient().select(1, static_cast<std::int64_t>(options_.lags.size())).contiguous());
}

Forecaster::Scored DeepAR::scored(const WindowBatch& batch) const {
  const auto scored_context = options_.context_length - 1;
  const auto join = [&](const at::Tensor& past, const at::Tensor& future) {
    return at::cat({past.narrow(1, past_length() - scored_context, scored_context), future}, 1);
  };
  return {join(batch.past_target, batch.future_target),
          join(batch.past_observed, batch.future_observed).div_(static_cast<double>(steps()))};
}

std::int64_t DeepAR::bytes_per_window() const {
  // A step's inputs, and for each layer gates, their gradients, cell, state and its gradient; and the window's
  // gradient.
  return 4 * (steps() * (2 * inputs() + layer_count * 12 * width()) + parameters_.count());
}

namespace {

std::string cell_script() {
  std::string cell;
  for (const std::string l : {"0", "1"}) {
    const auto input = l == "0" ? std::string("x") : std::string("h0");
    cell += "    gates = torch.linear(" + input + ", self.rnn_weight_ih_l" + l + ", self.rnn_bias_ih_l" + l +
            ") + torch.linear(h" + l + ", self.rnn_weight_hh_l" + l + ", self.rnn_bias_hh_l" + l + ")\n";
    cell += "    i, f, g, o = torch.chunk(gates, 4, 1)\n";
    cell += "    c" + l + " = torch.sigmoid(f) * c" + l + " + torch.sigmoid(i) * torch.tanh(g)\n";
    cell += "    h" + l + " = torch.sigmoid(o) * torch.tanh(c" + l + ")\n";
  }
  return R"(
def cell(self, x: Tensor, h0: Tensor, c0: Tensor, h1: Tensor, c1: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
)" + cell +
         "    return h0, c0, h1, c1\n";
}

/// Values of a path in units of the window (set by `begin`, clamped by `cut`), and the naive forecast of every step in
/// these units.
struct UnitsScript {
  std::string begin;
  std::string naive = "torch.zeros_like(loc)";
  std::string cut;
};

UnitsScript units_script(const Prior& prior) {
  UnitsScript out;
  const std::string own_scale = "self.mean_scale(past_target[:, past - context:], past_observed[:, past - context:])";
  if (prior.kind == PriorKind::none) {
    out.begin = "    affine_scale = " + own_scale +
                "\n    values = past_target / affine_scale\n    centre = torch.zeros_like(affine_scale)\n    level = "
                "torch.log(affine_scale)\n";
  } else {
    out.begin =
        "    filled, mean, affine_scale = self.filled_past(past_target, past_observed, context, " + own_scale + ")\n";
    out.begin += prior.kind == PriorKind::last_value ? "    centre = filled[:, past - context:past - context + 1]\n"
                                                     : "    centre = mean\n";
    out.begin += "    values = (filled - centre) / affine_scale\n    level = torch.zeros_like(affine_scale)\n";
    out.naive = cat("values[:, values.size(1) - ", prior.season, "]");
    out.cut = cat(".clamp(min=-", largest_input, ", max=", largest_input, ")");
  }
  return out;
}

std::string ancestral_script(const Prior& prior) {
  const auto units = units_script(prior);
  return R"(
def ancestral(self, past_target: Tensor, past_observed: Tensor, time_features: Tensor, draws: Tensor, given: Optional[Tensor]) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    # Parameters of step k are those of the distribution that path value k is drawn from; `given` paths replace the draws.
    context = self.context_length
    past = past_target.size(1)
)" + units.begin +
         R"(    embedded = self.embedder__embedders_0_weight.expand(values.size(0), 1)
    static = torch.cat([embedded, torch.zeros_like(affine_scale), level], 1)
    h0 = torch.zeros([values.size(0), self.rnn_weight_hh_l0.size(1)], dtype=values.dtype, device=values.device)
    c0 = h0
    h1 = h0
    c1 = h0
    for k in range(context):
        place = past - context + 1 + k
        x = torch.cat([values.index_select(1, place - self.lags))" +
         units.cut + R"(, static, time_features[:, place]], 1)
        h0, c0, h1, c1 = self.cell(x, h0, c0, h1, c1)
    paths = draws.size(1)
    h0 = h0.repeat_interleave(paths, 0)
    c0 = c0.repeat_interleave(paths, 0)
    h1 = h1.repeat_interleave(paths, 0)
    c1 = c1.repeat_interleave(paths, 0)
    static = static.repeat_interleave(paths, 0)
    values = values.repeat_interleave(paths, 0)
    row_scale = affine_scale.repeat_interleave(paths, 0)
    row_centre = centre.repeat_interleave(paths, 0)
    draws = draws.reshape(values.size(0), draws.size(2), 2)
    dfs: List[Tensor] = []
    locs: List[Tensor] = []
    scales: List[Tensor] = []
    for k in range(draws.size(1)):
        if k > 0:
            place = past + k
            features = time_features[:, place].repeat_interleave(paths, 0)
            x = torch.cat([values.index_select(1, place - self.lags))" +
         units.cut + R"(, static, features], 1)
            h0, c0, h1, c1 = self.cell(x, h0, c0, h1, c1)
        df, loc, scale = self.step_distribution(h1)
        loc = loc + )" +
         units.naive + R"(
        if given is not None:
            value = (given.reshape(values.size(0), -1)[:, k] - row_centre[:, 0]) / row_scale[:, 0]
        else:
            value = loc + scale * self.student_t_draw(df, draws[:, k])
        values = torch.cat([values, value.unsqueeze(1)], 1)
        dfs.append(df)
        locs.append(loc + row_centre[:, 0] / row_scale[:, 0])
        scales.append(scale)
    shape = [past_target.size(0), paths, draws.size(1)]
    samples = (row_centre + values[:, past:] * row_scale).reshape(shape)
    return samples, torch.stack(dfs, 1).reshape(shape), torch.stack(locs, 1).reshape(shape), torch.stack(scales, 1).reshape(shape)
)";
}

}  // namespace

std::string DeepAR::script() const {
  return std::string(mean_scale_script()) + filled_past_script(options_.prior) + cell_script() + R"(
def step_distribution(self, steps: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
)" + student_t_script("param_proj_proj") +
         R"(    return df, loc, scale

def paths(self, past_target: Tensor, past_observed: Tensor, time_features: Tensor, draws: Tensor) -> Tensor:
    samples, df, loc, scale = self.ancestral(past_target, past_observed, time_features, draws, None)
    return samples
)" + ancestral_script(options_.prior);
}

}  // namespace tsdp::models
