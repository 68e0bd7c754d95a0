#include "dp/private_step.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/_fused_adam.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "dp/device_kind.h"
#include "row_kernels.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::dp {

double rounding_guard(at::ScalarType type, std::int64_t summed, bool joined) {
  const double unit = type == at::kDouble ? 0x1p-53 : 0x1p-24;
  const auto m = static_cast<double>(summed);
  return joined ? (1.0 - (96.0 + 2.0 * m) * unit) / (1.0 + 3.0 * m * (m - 1.0) * unit)
                : (1.0 - 96.0 * unit) / (1.0 + 2.0 * m * (m - 1.0) * unit);
}

namespace {

/// Factors below this are taken as 0: single precision would round them coarsely, or up.
constexpr double least_factor = 0x1p-100;

/// The same on the CPU in one pass: a step needs few numbers, and twelve operations on them would cost more.
template <class T>
void factors_on_cpu(const double* squared_norms, std::int64_t count, const Clipping& clipping, double guarded,
                    T* factors) {
  for (std::int64_t i = 0; i < count; ++i) {
    const double norm = clipping.scale * std::sqrt(squared_norms[i]);
    double factor = 0.0;
    if (clipping.factor == ClipFactor::exact) factor = std::min(guarded / clipping.norm, guarded / norm);
    if (clipping.factor == ClipFactor::opacus) factor = std::min(guarded / clipping.norm, guarded / (norm + 1e-6));
    if (clipping.factor == ClipFactor::automatic) factor = guarded / (norm + 0.01);
    factor *= clipping.scale;
    factors[i] = std::isfinite(norm) && factor >= least_factor ? static_cast<T>(factor) : T{0};
  }
}

}  // namespace

at::Tensor clip_factors(const at::Tensor& squared_norms, const Clipping& clipping, at::ScalarType type) {
  // Squared norms are good to 70 units (half an epsilon each) of the recorded values' type, so norms to 35 and products
  // of two to 70 at most; three more for the factor itself and for scaling by it. All windows are scaled down alike,
  // those within the clip norm as well: what the guard allows for does not depend on who is clipped.
  const double guarded = clipping.norm * rounding_guard(type, clipping.summed, clipping.joined);
  if (squared_norms.device().is_cpu() && squared_norms.scalar_type() == at::kDouble && squared_norms.is_contiguous()) {
    auto found = at::empty(squared_norms.sizes(), squared_norms.options().dtype(type));
    AT_DISPATCH_FLOATING_TYPES(type, "clip_factors", [&] {
      factors_on_cpu(squared_norms.const_data_ptr<double>(), found.numel(), clipping, guarded,
                     found.data_ptr<scalar_t>());
    });
    return found;
  }
  const auto norms = squared_norms.sqrt().mul_(clipping.scale);
  at::Tensor factors;
  switch (clipping.factor) {
    case ClipFactor::exact: factors = at::reciprocal(norms).mul_(guarded).clamp_max_(guarded / clipping.norm); break;
    case ClipFactor::opacus:
      factors = at::reciprocal(norms + 1e-6).mul_(guarded).clamp_max_(guarded / clipping.norm);
      break;
    case ClipFactor::automatic: factors = at::reciprocal(norms + 0.01).mul_(guarded); break;
  }
  factors.mul_(clipping.scale);
  return at::where(at::isfinite(norms) & factors.ge(least_factor), factors, at::zeros_like(factors)).to(type);
}

void require_full_precision(const at::Device& device) {
  for (const auto* variable :
       {"NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "CUBLAS_EMULATE_SINGLE_PRECISION",
        "CUBLAS_EMULATE_DOUBLE_PRECISION", "ONEDNN_DEFAULT_FPMATH_MODE"})
    if (const char* value = std::getenv(variable);
        value != nullptr && *value != '\0' && std::string_view(value) != "0" && std::string_view(value) != "STRICT")
      throw PrivacyError(cat(variable, ": found ", value,
                             ", which lets matrix products round to fewer digits than single precision has; a private "
                             "run needs all of them: unset it"));
  const auto refuse = [&] {
    throw PrivacyError(cat("matrix products on ", device.str(),
                           " round to fewer digits than single precision has (TF32 or bfloat16 is switched on); a "
                           "private run needs all of them: switch it off"));
  };
  if (at::globalContext().float32MatmulPrecision() != at::Float32MatmulPrecision::HIGHEST) refuse();
  for (const std::int64_t n : {8, 64, 256}) {
    // Values with 24 bits, times a permutation: exact, in whatever order sums are made.
    const auto k = at::arange(n * n, at::kLong).mul(2654435761).remainder(1 << 23).view({n, n});
    const auto values = k.to(at::kDouble).mul(0x1p-23).add(1.0);
    const auto there = values.to(at::kFloat).to(device);
    const auto permutation = at::eye(n, at::kFloat).flip(0).to(device);
    // By every product that steps are made of: libraries may choose other code for each.
    const auto none = at::zeros({n}, there.options());
    for (const auto& product :
         {there.matmul(permutation), permutation.t().matmul(there.t()).t(), at::addmm(none, there, permutation),
          at::bmm(there.unsqueeze(0), permutation.unsqueeze(0))[0]})
      if (!at::equal(product.to(at::kCPU).to(at::kDouble), values.flip(1))) refuse();
    for (const auto& column :
         {at::mv(there, permutation.select(1, 0)), at::addmv(none, there, permutation.select(1, 0))})
      if (!at::equal(column.to(at::kCPU).to(at::kDouble), values.select(1, n - 1))) refuse();
    // Against itself: off by at most γ_n of the sum of products, all positive.
    const auto exact = values.matmul(values.t());
    const auto off = (there.matmul(there.t()).to(at::kCPU).to(at::kDouble) - exact).abs() / exact;
    if (!(off.max().item<double>() <= 1.1 * static_cast<double>(n) * 0x1p-24)) refuse();
  }
}

at::Tensor add_clipped_sum(const std::vector<Layer*>& layers, const Records& records, const Clipping& clipping,
                           const at::TensorOptions& options, const at::Tensor& kept) {
  const auto type = c10::typeMetaToScalarType(options.dtype());
  const auto count = records.count();
  const auto zeros = [&] { return at::zeros({count}, options.dtype(at::kDouble)); };
  auto squared = zeros();
  if (count == 0) return squared;
  TORCH_CHECK(records.windows() <= clipping.summed || count == 1,
              "more windows are summed at a time than the guard against rounding allows for");
  if (count < records.windows()) {
    TORCH_CHECK(clipping.joined, "the guard against rounding is for records of one window");
    for (auto* layer : layers) layer->join(records);
  }
  std::vector<at::Tensor> by_layer;
  for (auto* layer : layers) {
    if (!clipping.per_layer) {
      layer->add_squared_norms(squared);
      continue;
    }
    by_layer.push_back(zeros());
    layer->add_squared_norms(by_layer.back());
    squared.add_(by_layer.back());
  }
  // A window that is not finite somewhere is left out everywhere. Whether there is one is asked only where that costs
  // nothing: elsewhere the host would have to wait for the answer.
  const auto* on_cpu = squared.device().is_cpu() ? squared.const_data_ptr<double>() : nullptr;
  if (on_cpu == nullptr || !std::all_of(on_cpu, on_cpu + count, [](double n) { return std::isfinite(n); })) {
    const auto bad = squared.isfinite().logical_not_();
    for (auto* layer : layers) layer->discard(bad);
    for (auto& norms : by_layer) norms.masked_fill_(bad, std::numeric_limits<double>::infinity());
  }
  const auto factors_of = [&](const at::Tensor& norms, const Clipping& of) {
    auto factors = clip_factors(norms, of, type);
    return kept.defined() ? factors.mul_(kept) : factors;
  };
  if (!clipping.per_layer) {
    const auto factors = factors_of(squared, clipping);
    for (auto* layer : layers) layer->add_gradient(factors);
  } else {
    auto share = clipping;
    share.norm = clipping.norm / std::sqrt(static_cast<double>(layers.size()));
    for (std::size_t i = 0; i < layers.size(); ++i) layers[i]->add_gradient(factors_of(by_layer[i], share));
  }
  return squared.sqrt_().mul_(clipping.scale);
}

namespace {

constexpr std::int64_t coordinates_a_thread = 8192;

/// out_j ← (y_j + offset − offset) · scale, y_j = Σ parts_j + deviation · z_j; parts are in single or double precision,
/// each as it comes.
template <class T>
void finish_on_cpu(T* out, std::int64_t count, const std::vector<at::Tensor>& parts, double deviation,
                   const RandomStream* stream, double offset, double scale, const Correlate& correlate) {
  const auto factor = static_cast<T>(scale);
  // Normals are drawn by place, so the split over threads does not matter.
  at::parallel_for(0, count, coordinates_a_thread, [&](std::int64_t begin, std::int64_t end) {
    const auto finish = [&](std::int64_t place, std::span<double> sums) {
      const auto length = static_cast<std::int64_t>(sums.size());
      for (const auto& part : parts)
        AT_DISPATCH_FLOATING_TYPES(part.scalar_type(), "finish_sum",
                                   [&] { rows::add(part.const_data_ptr<scalar_t>() + place, length, sums.data()); });
      rows::store(sums.data(), length, offset, factor, out + place);
    };
    if (deviation == 0.0) {
      std::array<double, 1024> sums;
      for (auto place = begin; place < end; place += static_cast<std::int64_t>(sums.size())) {
        sums.fill(0.0);
        finish(place,
               std::span(sums).first(static_cast<std::size_t>(std::min<std::int64_t>(sums.size(), end - place))));
      }
      return;
    }
    stream->normals(static_cast<std::uint64_t>(begin), static_cast<std::uint64_t>(end - begin),
                    [&](std::uint64_t place, std::span<double> normals) {
                      rows::scale(normals.data(), static_cast<std::int64_t>(normals.size()), deviation);
                      if (correlate) correlate(static_cast<std::int64_t>(place), normals);
                      finish(static_cast<std::int64_t>(place), normals);
                    });
  });
}

/// `stream` is null where the deviation is 0.
void finish(const at::Tensor& gradient, const std::vector<at::Tensor>& parts, double deviation,
            const RandomStream* stream, double scale, const Correlate& correlate = {}) {
  TORCH_CHECK(deviation >= 0.0 && std::isfinite(deviation), "a standard deviation is finite and not negative");
  TORCH_CHECK(gradient.is_contiguous(), "the gradient buffer is contiguous");
  for (const auto& part : parts)
    TORCH_CHECK(part.is_contiguous() && part.numel() == gradient.numel() && part.device() == gradient.device(),
                "a part of the gradient is laid out as the whole");
  const auto count = gradient.numel();
  const double offset = noise_grid_offset(deviation);
  if (gradient.device().is_cpu()) {
    AT_DISPATCH_FLOATING_TYPES(gradient.scalar_type(), "finish_sum", [&] {
      finish_on_cpu(gradient.data_ptr<scalar_t>(), count, parts, deviation, stream, offset, scale, correlate);
    });
    return;
  }
  auto sum = at::zeros({count}, gradient.options().dtype(at::kDouble));
  if (deviation > 0.0) {
    // The same normals travel; they are drawn here, where the key is. From pinned memory the copy does not make the
    // host wait.
    auto noise = at::empty({count}, host_memory_for(gradient.device()).dtype(at::kDouble));
    draw_noise(noise, deviation, *stream, correlate);
    sum.copy_(noise, /*non_blocking=*/true);
  }
  for (const auto& part : parts) sum.add_(part);
  finish_noised(gradient, sum, deviation, scale);
}

}  // namespace

void draw_noise(const at::Tensor& noise, double deviation, const RandomStream& stream, const Correlate& correlate) {
  TORCH_CHECK(noise.is_cpu() && noise.is_contiguous(), "noise is drawn on the CPU");
  // Not on the grid yet: if it were, rounding the sum with it would round the gradient, which is no post-processing but
  // a larger sensitivity.
  finish_on_cpu(noise.data_ptr<double>(), noise.numel(), {}, deviation, &stream, /*offset=*/0.0, 1.0, correlate);
}

void finish_noised(const at::Tensor& gradient, at::Tensor sum, double deviation, double scale) {
  const double offset = noise_grid_offset(deviation);
  sum.add_(offset).sub_(offset);
  gradient.copy_(sum).mul_(scale);
}

void finish_sum(const at::Tensor& gradient, const std::vector<at::Tensor>& parts, double deviation,
                const RandomStream& stream, double scale, const Correlate& correlate) {
  finish(gradient, parts, deviation, &stream, scale, correlate);
}

void add_up(const at::Tensor& gradient, const std::vector<at::Tensor>& parts, double scale) {
  finish(gradient, parts, 0.0, nullptr, scale);
}

Adam::Adam(Options options, const at::Tensor& values)
    : options_(options),
      first_(at::zeros_like(values)),
      second_(at::zeros_like(values)),
      steps_(at::zeros({}, values.options().dtype(at::kFloat))) {}

void Adam::step(const at::Tensor& values, const at::Tensor& gradient) {
  // The count is a float by the operator's contract; it is exact to 2^24 and saturates there, where both bias
  // corrections are 1.
  steps_.add_(1.0);
  at::_fused_adam_({values}, {gradient}, {first_}, {second_}, {}, {steps_}, options_.learning_rate, options_.beta1,
                   options_.beta2, options_.weight_decay, options_.epsilon, /*amsgrad=*/false, /*maximize=*/false);
}

}  // namespace tsdp::dp
