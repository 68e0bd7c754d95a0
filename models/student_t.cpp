#include "student_t.h"

#include <ATen/Parallel.h>

#include <limits>
#include <numbers>

#include "student_t_cpu.h"

namespace tsdp::models {
namespace {

double machine_epsilon(const at::Tensor& like) {
  return like.scalar_type() == at::kDouble ? std::numeric_limits<double>::epsilon()
                                           : static_cast<double>(std::numeric_limits<float>::epsilon());
}

}  // namespace

std::size_t StudentTHead::declare(dp::ParameterBuffer& parameters, const std::string& prefix, std::int64_t width) {
  std::size_t first = 0;
  for (int i = 0; i < 3; ++i) {
    const auto place = parameters.declare(prefix + "." + std::to_string(i) + ".weight", {1, width});
    parameters.declare(prefix + "." + std::to_string(i) + ".bias", {1});
    if (i == 0) first = place;
  }
  return first;
}

StudentTHead::StudentTHead(const dp::ParameterBuffer& parameters, std::size_t first, std::int64_t width) {
  const auto offset = parameters.entries().at(first).offset;
  const auto weight = [&](const at::Tensor& flat) { return flat.as_strided({3, width}, {width + 1, 1}, offset); };
  const auto bias = [&](const at::Tensor& flat) { return flat.as_strided({3}, {width + 1}, offset + width); };
  maps_ = std::make_unique<dp::Linear>(weight(parameters.values()), bias(parameters.values()),
                                       weight(parameters.gradients()), bias(parameters.gradients()));
  values_ = parameters.values().narrow(0, offset, 3 * (width + 1));
  gradients_ = parameters.gradients().narrow(0, offset, 3 * (width + 1));
}

at::Tensor StudentTHead::losses(const at::Tensor& hidden, const at::Tensor& target, const at::Tensor& affine_scale,
                                const at::Tensor& weights) {
  by_kernel_ = dp::kernels_serve(hidden);
  if (by_kernel_) return losses_by_kernel(hidden, target, affine_scale, weights);
  auto result = student_t_loss(raw(hidden), target, affine_scale, weights);
  raw_gradient_ = std::move(result.raw_gradient);
  return result.losses;
}

at::Tensor StudentTHead::losses_by_kernel(const at::Tensor& hidden_rows, const at::Tensor& targets,
                                          const at::Tensor& affine_scales, const at::Tensor& all_weights) {
  const auto hidden = hidden_rows.contiguous();
  const auto target = dp::with_dense_rows(targets);
  const auto weights = dp::with_dense_rows(all_weights);
  const auto affine_scale = affine_scales.contiguous();
  const auto windows = hidden.size(0);
  const auto positions = hidden.size(1);
  const auto width = hidden.size(2);
  auto losses = at::empty({windows}, hidden.options());
  dp::fitted(hidden_gradient_, hidden.sizes(), hidden.options());
  dp::fitted(window_gradients_, {windows, 3 * (width + 1)}, hidden.options());
  dp::fitted(squared_norms_, {windows}, hidden.options().dtype(at::kDouble));
  dp::fitted(hidden_norms_, {windows}, hidden.options().dtype(at::kDouble));
  at::parallel_for(0, windows, 4, [&](std::int64_t begin, std::int64_t end) {
    const auto window = positions * width;
    student_t_cpu::Head<float> head;
    head.maps = values_.const_data_ptr<float>();
    head.hidden = hidden.const_data_ptr<float>() + begin * window;
    head.hidden_stride = window;
    head.windows = end - begin;
    head.positions = positions;
    head.width = width;
    student_t_cpu::Loss<float> loss;
    loss.target = target.const_data_ptr<float>() + begin * target.stride(0);
    loss.target_stride = target.stride(0);
    loss.affine_scale = affine_scale.const_data_ptr<float>() + begin;
    loss.weights = weights.const_data_ptr<float>() + begin * weights.stride(0);
    loss.weights_stride = weights.stride(0);
    student_t_cpu::Gradients<float> gradients;
    gradients.losses = losses.data_ptr<float>() + begin;
    gradients.hidden_gradient = hidden_gradient_.data_ptr<float>() + begin * window;
    gradients.hidden_gradient_stride = window;
    gradients.hidden_squared_norms = hidden_norms_.data_ptr<double>() + begin;
    gradients.window_head_gradients = window_gradients_.data_ptr<float>() + begin * 3 * (width + 1);
    gradients.window_head_gradients_stride = 3 * (width + 1);
    gradients.head_squared_norms = squared_norms_.data_ptr<double>() + begin;
    student_t_cpu::loss_and_gradient(head, loss, gradients);
  });
  return losses;
}

dp::Gradient StudentTHead::hidden_gradient() {
  if (by_kernel_) return {hidden_gradient_, hidden_norms_};
  return {maps_->backward({raw_gradient_}, true)};
}

void StudentTHead::join(const dp::Records& records) {
  if (!by_kernel_) return maps_->join(records);
  window_gradients_ = records.sums(window_gradients_);
  squared_norms_ = dp::squared_norms(window_gradients_);
}

void StudentTHead::add_squared_norms(at::Tensor& norms) {
  if (!by_kernel_) return maps_->add_squared_norms(norms);
  norms.add_(squared_norms_);
}

void StudentTHead::discard(const at::Tensor& windows) {
  if (!by_kernel_) return maps_->discard(windows);
  window_gradients_.masked_fill_(windows.unsqueeze(1), 0.0);
}

void StudentTHead::add_gradient(const at::Tensor& factors) {
  if (!by_kernel_) return maps_->add_gradient(factors);
  if (factors.defined()) {
    gradients_.addmv_(window_gradients_.t(), factors);
  } else {
    gradients_.add_(window_gradients_.sum(0));
  }
}

StudentT student_t_of(const at::Tensor& raw, const at::Tensor& affine_scale) {
  return {at::softplus(raw.select(-1, 0)).add_(2.0), raw.select(-1, 1).clone(),
          at::softplus(raw.select(-1, 2)).clamp_min_(machine_epsilon(raw)), affine_scale};
}

StudentTLoss student_t_loss(const at::Tensor& raw, const at::Tensor& target, const at::Tensor& affine_scale,
                            const at::Tensor& weights) {
  const auto raw_df = raw.select(-1, 0);
  const auto raw_scale = raw.select(-1, 2);
  const auto df = at::softplus(raw_df).add_(2.0);
  const auto unclamped = at::softplus(raw_scale);
  const double least = machine_epsilon(raw);
  const auto scale = unclamped.clamp_min(least);
  const auto z = target.div(affine_scale).sub_(raw.select(-1, 1)).div_(scale);
  const auto share = z.square().div_(df);  // z²/df
  const auto log_share = share.log1p();
  const auto half = df * 0.5;
  const auto half_up = half + 0.5;
  auto nll = half_up * log_share;
  nll.add_(at::lgamma(half)).sub_(at::lgamma(half_up)).add_(scale.log()).add_(half.log(), 0.5);
  // ½ log df + ½ log π = ½ log(df/2) + ½ log 2π.
  nll.add_(affine_scale.log().add_(0.5 * std::log(2.0 * std::numbers::pi)));
  const auto counted = weights.ne(0);
  const auto none = at::zeros({}, raw.options());
  auto losses = at::where(counted, nll.mul_(weights), none).sum(1);

  // With t = (z²/df)/(1 + z²/df): ∂/∂loc = −(df+1) t/(z scale), ∂/∂scale = (1 − (df+1) t)/scale,
  // ∂/∂df = ½[1/df + ψ(df/2) − ψ((df+1)/2) + log1p(z²/df) − (df+1) t/df].
  const auto up_t = share.div(share + 1.0).mul_(half_up).mul_(2.0);
  const auto by_loc = z.mul(half_up).mul_(-2.0).div_(df).div_(share + 1.0).div_(scale);
  const auto by_scale = up_t.neg().add_(1.0).div_(scale).mul_(at::sigmoid(raw_scale)).mul_(unclamped.gt(least));
  auto by_df = at::digamma(half).sub_(at::digamma(half_up)).add_(log_share).add_(up_t.neg().add_(1.0).div_(df));
  by_df.mul_(at::sigmoid(raw_df)).mul_(0.5);
  auto gradient = at::stack({by_df, by_loc, by_scale}, -1).mul_(weights.unsqueeze(-1));
  return {losses, at::where(counted.unsqueeze(-1), gradient, none)};
}

std::string student_t_script(const std::string& prefix) {
  const auto joined = [&](const char* kind) {
    std::string parts;
    for (const char* i : {"0", "1", "2"}) parts += "self." + prefix + "_" + i + "_" + kind + ", ";
    return "torch.cat([" + parts + "])";
  };
  return "    raw = torch.linear(steps, " + joined("weight") + ", " + joined("bias") + R"()
    df = 2.0 + torch.softplus(raw[..., 0])
    loc = raw[..., 1]
    scale = torch.softplus(raw[..., 2]).clamp(min=self.machine_epsilon)
)";
}

}  // namespace tsdp::models
