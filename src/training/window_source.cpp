#include "tsdp/training/window_source.h"

namespace tsdp::training {

WindowSource::WindowSource(const data::WindowStore& store, const at::TensorOptions& options)
    : store_(store), options_(options) {
  if (options.device().is_cpu()) return;
  const auto width = store.window_length();
  const auto on_device = [&](std::span<const float> flat) {
    const auto size = static_cast<std::int64_t>(flat.size());
    auto all = at::from_blob(const_cast<float*>(flat.data()), {size}, at::kFloat).to(options);
    return all.as_strided({size - width + 1, width}, {1, 1});
  };
  device_values_ = on_device(store.values());
  device_observed_ = on_device(store.observed());
}

models::WindowBatch WindowSource::gather(std::span<const data::WindowIndex> indices, const Augment& augmented) {
  const auto rows = static_cast<std::int64_t>(indices.size());
  const auto past = store_.past_length();
  at::Tensor values;
  at::Tensor observed;
  if (device_values_.defined() && !augmented) {
    auto places = at::empty({rows}, at::kLong);
    auto* out = places.data_ptr<std::int64_t>();
    for (const auto& index : indices) *out++ = store_.offset(index);
    places = places.to(options_.device());
    values = device_values_.index_select(0, places);
    observed = device_observed_.index_select(0, places);
  } else {
    if (!values_.defined() || values_.size(0) != rows) {
      values_ = at::empty({rows, store_.window_length()}, at::kFloat);
      observed_ = at::empty_like(values_);
    }
    store_.gather(indices, values_.data_ptr<float>(), observed_.data_ptr<float>());
    if (augmented) augmented(values_.data_ptr<float>(), observed_.data_ptr<float>());
    values = values_.to(options_);
    observed = observed_.to(options_);
  }
  return {values.narrow(1, 0, past), observed.narrow(1, 0, past), values.narrow(1, past, store_.future_length()),
          observed.narrow(1, past, store_.future_length())};
}

}  // namespace tsdp::training
