#include "training/window_source.h"

namespace tsdp::training {
namespace {

at::Tensor& with_rows(at::Tensor& buffer, std::int64_t rows, std::int64_t width) {
  if (!buffer.defined() || buffer.size(0) != rows) buffer = at::empty({rows, width}, at::kFloat);
  return buffer;
}

/// Where windows begin in the flat buffer of a store.
template <class Store>
at::Tensor places_of(const Store& store, std::span<const data::WindowIndex> indices, const at::Device& device) {
  auto places = at::empty({static_cast<std::int64_t>(indices.size())}, at::kLong);
  auto* out = places.data_ptr<std::int64_t>();
  for (const auto& index : indices) *out++ = store.offset(index);
  return places.to(device);
}

}  // namespace

WindowSource::WindowSource(const data::WindowStore& store, std::optional<data::FeatureStore> features,
                           const at::TensorOptions& options)
    : store_(store), features_(std::move(features)), options_(options) {
  if (options.device().is_cpu()) return;
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

at::Tensor WindowSource::gather_features(std::span<const data::WindowIndex> indices) {
  if (!features_) return {};
  const auto rows = static_cast<std::int64_t>(indices.size());
  const auto width = features_->window_length() * features_->feature_count();
  at::Tensor flat;
  if (device_features_.defined()) {
    flat = device_features_.index_select(0, places_of(*features_, indices, options_.device()));
  } else {
    features_->gather(indices, with_rows(feature_rows_, rows, width).data_ptr<float>());
    flat = feature_rows_.to(options_);
  }
  return flat.view({rows, features_->window_length(), features_->feature_count()});
}

models::WindowBatch WindowSource::gather(std::span<const data::WindowIndex> indices, const Augment& augmented) {
  const auto rows = static_cast<std::int64_t>(indices.size());
  const auto past = store_.past_length();
  at::Tensor values;
  at::Tensor observed;
  if (device_values_.defined() && !augmented) {
    const auto places = places_of(store_, indices, options_.device());
    values = device_values_.index_select(0, places);
    observed = device_observed_.index_select(0, places);
  } else {
    auto* out = with_rows(values_, rows, store_.window_length()).data_ptr<float>();
    auto* marks = with_rows(observed_, rows, store_.window_length()).data_ptr<float>();
    const bool in_double = augmented && store_.has_exact();
    if (in_double) {
      exact_.resize(static_cast<std::size_t>(rows * store_.window_length()));
      store_.gather(indices, exact_.data(), marks);
    } else {
      store_.gather(indices, out, marks);
    }
    if (augmented) augmented(in_double ? exact_.data() : nullptr, out, marks);
    values = values_.to(options_);
    observed = observed_.to(options_);
  }
  return {values.narrow(1, 0, past), observed.narrow(1, 0, past), values.narrow(1, past, store_.future_length()),
          observed.narrow(1, past, store_.future_length()), gather_features(indices)};
}

}  // namespace tsdp::training
