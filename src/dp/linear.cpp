#include "tsdp/dp/layers.h"

#include <algorithm>
#include <limits>

#include "dp/device_kind.h"
#include "row_kernels.h"

namespace tsdp::dp {
namespace {

/// A window whose inputs have a squared norm above this is left out: factors are folded into one side of the product,
/// and what that loses to numbers below the normal range must not be blown up by the other side.
constexpr double most_input_norm = 0x1p160;

/// At most this many windows of a record are summed in single precision with those of others: a piece of a step has no
/// more.
constexpr std::int64_t most_joined = 128;

}  // namespace

LinearRecord::LinearRecord(at::Tensor weight_gradient, at::Tensor bias_gradient)
    : weight_gradient_(std::move(weight_gradient)), bias_gradient_(std::move(bias_gradient)) {}

void LinearRecord::set(at::Tensor input, Gradient output_gradient) {
  input_ = std::move(input);
  output_gradient_ = std::move(output_gradient.value);
  output_gradient_norms_ = std::move(output_gradient.window_norms);
  window_gradients_.reset();
  records_.reset();
  own_positions_.reset();
  chosen_for_ = input_.dim() == 2 ? 1 : input_.size(1);
}

void LinearRecord::join(const Records& records) {
  chosen_for_ *= records.expected();
  // Rows stay as they are: each record is computed by its own products, whatever is next to it.
  if (input_.dim() == 2 && kernels_serve(input_) && input_.is_contiguous() && output_gradient_.is_contiguous()) {
    records_ = records;
    return;
  }
  const auto each = input_.dim() == 2 ? 1 : input_.size(1);
  auto own = at::empty({records.count()}, host_memory_for(input_.device()).dtype(at::kDouble));
  for (std::int64_t r = 0; r < records.count(); ++r)
    own.data_ptr<double>()[r] = static_cast<double>((records.end(r) - records.begin(r)) * each);
  own_positions_ = own.to(input_.device(), /*non_blocking=*/true);
  input_ = records.side_by_side(input_);
  output_gradient_ = records.side_by_side(output_gradient_);
  output_gradient_norms_.reset();
}

void LinearRecord::add_squared_norms_of_records(at::Tensor& norms) {
  auto* sums = norms.data_ptr<double>();
  const auto p = output_gradient_.size(1);
  const auto d = input_.size(1);
  const auto* gradients = output_gradient_.const_data_ptr<float>();
  const auto* inputs = input_.const_data_ptr<float>();
  cancelling_.assign(static_cast<std::size_t>(records_->count()), 0);
  for (std::int64_t r = 0; r < records_->count(); ++r) {
    const auto first = records_->begin(r);
    const auto windows = records_->end(r) - first;
    const auto found = rows::norm_of_products(gradients + first * p, p, inputs + first * d, d, windows);
    // Input so large that a factor folded into one side would lose what the other blows up: see most_input_norm.
    sums[r] += found.largest_input > most_input_norm ? std::numeric_limits<double>::infinity() : found.squared_norm;
    cancelling_[static_cast<std::size_t>(r)] =
        windows > most_joined ||
        found.sum_of_norms * found.sum_of_norms > static_cast<double>(windows * windows) * found.squared_norm;
  }
}

void LinearRecord::add_gradient_of_records(const at::Tensor& factors) {
  fitted(window_factors_, {records_->windows()}, factors.options());
  auto* of_window = window_factors_.data_ptr<float>();
  const auto* of_record = factors.const_data_ptr<float>();
  for (std::int64_t r = 0; r < records_->count(); ++r) {
    const auto first = records_->begin(r);
    const auto windows = records_->end(r) - first;
    const auto factor = of_record[r];
    const bool cancels = cancelling_[static_cast<std::size_t>(r)] != 0;
    std::fill_n(of_window + first, windows, cancels ? 0.0F : factor);
    if (!cancels || factor == 0.0F) continue;
    const auto gradients = output_gradient_.narrow(0, first, windows).to(at::kDouble).mul_(static_cast<double>(factor));
    bias_gradient_.add_(gradients.sum(0));
    weight_gradient_.add_(at::mm(gradients.t(), input_.narrow(0, first, windows).to(at::kDouble)));
  }
  add_products(input_, output_gradient_, window_factors_);
}

void LinearRecord::add_products(at::Tensor x, at::Tensor g, const at::Tensor& factors) {
  bias_gradient_.addmv_(g.t(), factors);
  // The factors go into whichever side is smaller.
  auto& side = x.size(1) < g.size(1) ? x : g;
  fitted(scaled_, side.sizes(), side.options());
  at::mul_out(scaled_, side, factors.view({-1, 1}));
  side = scaled_;
  weight_gradient_.addmm_(g.t(), x);
}

void LinearRecord::add_squared_norms(at::Tensor& norms) {
  if (records_) return add_squared_norms_of_records(norms);
  if (input_.dim() == 2) {
    // One position: ‖g xᵀ‖² + ‖g‖² = ‖g‖² (‖x‖² + 1).
    if (kernels_serve(input_) && input_.is_contiguous() && output_gradient_.is_contiguous()) {
      const auto windows = input_.size(0);
      const auto norms_of = [&](const at::Tensor& side, std::vector<double>& out) {
        out.resize(static_cast<std::size_t>(windows));
        rows::squared_norms(side.const_data_ptr<float>(), windows, side.size(1), side.size(1), out.data());
      };
      norms_of(input_, input_norms_);
      if (!output_gradient_norms_.defined()) norms_of(output_gradient_, gradient_norms_);
      const auto* of_gradient =
          output_gradient_norms_.defined() ? output_gradient_norms_.const_data_ptr<double>() : gradient_norms_.data();
      auto* sums = norms.data_ptr<double>();
      for (std::int64_t i = 0; i < windows; ++i) {
        const double of_input = input_norms_[static_cast<std::size_t>(i)];
        sums[i] +=
            of_input > most_input_norm ? std::numeric_limits<double>::infinity() : of_gradient[i] * (of_input + 1.0);
      }
      return;
    }
    const auto of_gradient =
        output_gradient_norms_.defined() ? output_gradient_norms_ : squared_norms(output_gradient_);
    auto of_input = squared_norms(input_);
    of_input.masked_fill_(of_input.gt(most_input_norm), std::numeric_limits<double>::infinity());
    norms.addcmul_(of_gradient, of_input.add_(1.0));
    return;
  }
  const auto batch = input_.size(0);
  const auto positions = input_.size(1);
  const auto p = output_gradient_.size(2);
  const auto d = input_.size(2);
  if (p * d <= chosen_for_ * (p + d)) {
    // What is measured here is what `add_gradient` scales and adds.
    window_gradients_ = at::bmm(output_gradient_.transpose(1, 2), input_);
    window_bias_gradients_ = output_gradient_.sum(1);
    norms.add_(squared_norms(window_gradients_.view({batch, -1}))).add_(squared_norms(window_bias_gradients_));
    return;
  }
  // ‖Σ_t g_t x_tᵀ‖² = Σ_{t,s} (g_t·g_s)(x_t·x_s). Positions may cancel: the sum is then far smaller than its terms, and
  // their rounding may be larger than the sum. So both this and the contraction that adds the gradient are made in
  // double precision, and the norm is raised by what rounding can still hide, γ (Σ_t ‖g_t‖ ‖x_t‖)² and γ (Σ_t ‖g_t‖)²:
  // a window is then clipped too much rather than too little. With u the unit roundoff, products of length n are off by
  // at most n u ‖·‖‖·‖, so the Gram matrices take (p + d) u of it, the sum of their entries at most T² u, and the
  // gradient that is added, off by T u Σ_t ‖g_t‖ ‖x_t‖, twice T u; a few more for what is of second order.
  input_ = input_.to(at::kDouble);
  output_gradient_ = output_gradient_.to(at::kDouble);
  const auto gram_x = at::bmm(input_, input_.transpose(1, 2));
  const auto gram_g = at::bmm(output_gradient_, output_gradient_.transpose(1, 2));
  const auto g_sizes = squared_norms(output_gradient_).sqrt_();
  const auto x_sizes = squared_norms(input_).sqrt_();
  const auto own =
      own_positions_.defined() ? own_positions_ : at::full({batch}, static_cast<double>(positions), norms.options());
  const auto gamma = (own * (own + 2.0)).add_(static_cast<double>(p + d + 8)).mul_(0x1p-53);
  norms.add_(gram_x.mul(gram_g).sum(at::IntArrayRef({1, 2})).clamp_min_(0.0));
  norms.add_((g_sizes * x_sizes).sum(1).square_().mul_(gamma));
  norms.add_(squared_norms(output_gradient_.sum(1))).add_(g_sizes.sum(1).square_().mul_(gamma));
}

void LinearRecord::discard(const at::Tensor& marked) {
  const auto windows = records_ ? records_->for_windows(marked) : marked;
  const auto cleared = [&](const at::Tensor& recorded) {
    return recorded.dim() == 2 ? recorded.masked_fill(windows.unsqueeze(1), 0.0)
                               : recorded.masked_fill(windows.unsqueeze(1).unsqueeze(2), 0.0);
  };
  input_ = cleared(input_);
  output_gradient_ = cleared(output_gradient_);
  output_gradient_norms_.reset();
  if (window_gradients_.defined()) {
    window_gradients_ = cleared(window_gradients_);
    window_bias_gradients_ = cleared(window_bias_gradients_);
  }
}

void LinearRecord::add_gradient(const at::Tensor& factors) {
  if (records_ && factors.defined()) return add_gradient_of_records(factors);
  const auto p = output_gradient_.size(-1);
  const auto d = input_.size(-1);
  if (factors.defined() && window_gradients_.defined()) {
    weight_gradient_.add_(at::mv(window_gradients_.view({-1, p * d}).t(), factors).view({p, d}));
    bias_gradient_.add_(at::mv(window_bias_gradients_.t(), factors));
    return;
  }
  if (factors.defined() && input_.dim() == 2) return add_products(input_, output_gradient_, factors);
  const auto& x = input_;
  auto g = output_gradient_;
  if (factors.defined()) {
    g = g * factors.view({-1, 1, 1}).to(g.scalar_type());
    bias_gradient_.add_(g.sum(at::IntArrayRef({0, 1})));
  } else {
    bias_gradient_.add_(g.reshape({-1, p}).sum(0));
  }
  const auto flat_g = g.reshape({-1, p});
  const auto flat_x = x.reshape({-1, d});
  if (flat_x.scalar_type() == weight_gradient_.scalar_type()) {
    weight_gradient_.addmm_(flat_g.t(), flat_x);
  } else {
    weight_gradient_.add_(at::mm(flat_g.t(), flat_x));
  }
}

void BiasRecord::set(const Gradient& output_gradient) {
  const auto& g = output_gradient.value;
  of_windows_ = g.dim() == 2 ? g : g.sum(1);
}

void BiasRecord::add_gradient(const at::Tensor& factors) const {
  if (factors.defined()) gradient_.addmv_(of_windows_.t(), factors);
  else gradient_.add_(of_windows_.sum(0));
}

Linear::Linear(at::Tensor weight, at::Tensor bias, at::Tensor weight_gradient, at::Tensor bias_gradient)
    : weight_(std::move(weight)), bias_(std::move(bias)), record_(BiasRecord(bias_gradient)) {
  if (weight_gradient.defined()) record_.emplace<LinearRecord>(std::move(weight_gradient), std::move(bias_gradient));
}

const at::Tensor& Linear::forward(const at::Tensor& input) {
  input_ = input;
  auto shape = input.sizes().vec();
  shape.back() = weight_.size(0);
  fitted(output_, shape, input.options());
  auto flat = output_.view({-1, weight_.size(0)});
  at::addmm_out(flat, bias_, input.reshape({-1, weight_.size(1)}), weight_.t());
  return output_;
}

at::Tensor Linear::backward(const Gradient& arrived, bool want_input_gradient) {
  if (auto* bias = std::get_if<BiasRecord>(&record_)) bias->set(arrived);
  else std::get<LinearRecord>(record_).set(input_, arrived);
  const auto& output_gradient = arrived.value;
  if (!want_input_gradient) return {};
  fitted(input_gradient_, input_.sizes(), input_.options());
  auto flat = input_gradient_.view({-1, weight_.size(1)});
  at::mm_out(flat, output_gradient.reshape({-1, weight_.size(0)}), weight_);
  return input_gradient_;
}

}  // namespace tsdp::dp
