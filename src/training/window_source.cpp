#include "training/window_source.h"

#include <c10/core/GradMode.h>

#include <algorithm>

#include "base/floor_divide.h"
#include "dp/device_kind.h"

namespace tsdp::training {
namespace {

constexpr std::int64_t rows_of_losses = 256;        // windows whose loss is taken at a time on the CPU
constexpr std::int64_t more_rows_of_losses = 1024;  // elsewhere, where every launch costs more

/// A buffer of the host's, from which `device` copies. Off the CPU it is a new one each time: the device may not have
/// read the last one yet.
at::Tensor& with_rows(at::Tensor& buffer, std::int64_t rows, std::int64_t width, const at::Device& device) {
  if (!device.is_cpu() || !buffer.defined() || buffer.size(0) != rows)
    buffer = at::empty({rows, width}, dp::host_memory_for(device).dtype(at::kFloat));
  return buffer;
}

}  // namespace

WindowSource::WindowSource(const data::WindowStore& store, std::optional<data::FeatureStore> features,
                           const at::TensorOptions& options)
    : store_(store), features_(std::move(features)), options_(options) {
  if (options.device().is_cpu() && !dp::can_record(options.device())) return;
  const auto on_device = [&](std::span<const float> flat, std::int64_t width) {
    const auto size = static_cast<std::int64_t>(flat.size());
    auto all = at::from_blob(const_cast<float*>(flat.data()), {size}, at::kFloat).to(options);
    return all.as_strided({size - width + 1, width}, {1, 1});
  };
  device_values_ = on_device(store.values(), store.window_length());
  device_observed_ = on_device(store.observed(), store.window_length());
  if (features_)
    device_features_ = on_device(features_->values(), features_->window_length() * features_->feature_count());
}

WindowSource::LossSum WindowSource::losses(models::Forecaster& model, std::span<const data::WindowIndex> indices) {
  const c10::NoGradGuard no_autograd;
  const auto rows = static_cast<std::size_t>(
      whole_groups(options_.device().is_cpu() ? rows_of_losses : more_rows_of_losses, model.variables()));
  LossSum out;
  for (std::size_t begin = 0; begin < indices.size(); begin += rows) {
    const auto batch = gather(indices.subspan(begin, std::min(rows, indices.size() - begin)));
    // A window of which nothing was observed has loss 0, and no say.
    out.windows += static_cast<double>(batch.future_observed.gt(0.0).any(1).sum().item<std::int64_t>());
    out.sum += model.losses(batch).sum(at::kDouble).item<double>();
  }
  return out;
}

at::Tensor WindowSource::places(std::span<const data::WindowIndex> indices, std::int64_t rows) const {
  auto out = at::zeros({2, rows}, dp::host_memory_for(options_.device()).dtype(at::kLong));
  auto* of_values = out.data_ptr<std::int64_t>();
  for (const auto& index : indices) *of_values++ = store_.offset(index);
  if (!features_) return out;
  auto* of_features = out.data_ptr<std::int64_t>() + rows;
  for (const auto& index : indices) *of_features++ = features_->offset(index);
  return out;
}

at::Tensor WindowSource::trial_places(std::int64_t rows) const {
  const auto there = features_ ? std::min(device_values_.size(0), device_features_.size(0)) : device_values_.size(0);
  const auto apart = std::max<std::int64_t>(1, there / rows);
  return at::arange(rows, device_values_.options().dtype(at::kLong))
      .mul_(apart)
      .remainder_(there)
      .expand({2, rows})
      .clone();
}

models::WindowBatch WindowSource::gather_at(const at::Tensor& places) const {
  return parted(device_values_.index_select(0, places[0]), device_observed_.index_select(0, places[0]),
                features_ ? device_features_.index_select(0, places[1]) : at::Tensor());
}

models::WindowBatch WindowSource::parted(const at::Tensor& values, const at::Tensor& observed,
                                         const at::Tensor& flat_features) const {
  const auto past = store_.past_length();
  return {values.narrow(1, 0, past), observed.narrow(1, 0, past), values.narrow(1, past, store_.future_length()),
          observed.narrow(1, past, store_.future_length()),
          features_ ? flat_features.view({values.size(0), features_->window_length(), features_->feature_count()})
                    : flat_features};
}

at::Tensor WindowSource::gather_features(std::span<const data::WindowIndex> indices) {
  if (!features_) return {};
  const auto rows = static_cast<std::int64_t>(indices.size());
  const auto width = features_->window_length() * features_->feature_count();
  features_->gather(indices, with_rows(feature_rows_, rows, width, options_.device()).data_ptr<float>());
  return feature_rows_.to(options_, /*non_blocking=*/true);
}

models::WindowBatch WindowSource::gather(std::span<const data::WindowIndex> indices, const Augment& augmented) {
  if (device_values_.defined() && !augmented)
    return gather_at(
        places(indices, static_cast<std::int64_t>(indices.size())).to(options_.device(), /*non_blocking=*/true));
  const auto rows = static_cast<std::int64_t>(indices.size());
  auto* out = with_rows(values_, rows, store_.window_length(), options_.device()).data_ptr<float>();
  auto* marks = with_rows(observed_, rows, store_.window_length(), options_.device()).data_ptr<float>();
  const bool in_double = augmented && store_.has_exact();
  if (in_double) {
    exact_.resize(static_cast<std::size_t>(rows * store_.window_length()));
    store_.gather(indices, exact_.data(), marks);
  } else {
    store_.gather(indices, out, marks);
  }
  if (augmented) augmented(in_double ? exact_.data() : nullptr, out, marks);
  return parted(values_.to(options_, /*non_blocking=*/true), observed_.to(options_, /*non_blocking=*/true),
                gather_features(indices));
}

}  // namespace tsdp::training
