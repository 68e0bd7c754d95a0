// DeepAR of GluonTS 0.15.1: two LSTM layers of 40, lagged inputs, calendar features, Student-t outputs.
#pragma once

#include "dp/lstm.h"
#include "forecaster.h"

namespace tsdp::models {

/// One learnt number that every window reads at every step: GluonTS's embedding of the one category 0.
class ConstantEmbedding final : public dp::Layer {
 public:
  ConstantEmbedding(at::Tensor gradient) : gradient_(std::move(gradient)) {}
  /// Takes every window's gradient (B).
  void record(at::Tensor window_gradients) { window_gradients_ = std::move(window_gradients); }

  void join(const dp::Records& records) override { window_gradients_ = records.sums(window_gradients_); }
  void add_squared_norms(at::Tensor& norms) override { norms.add_(window_gradients_.to(at::kDouble).square()); }
  void discard(const at::Tensor& windows) override { window_gradients_ = window_gradients_.masked_fill(windows, 0.0); }
  void add_gradient(const at::Tensor& factors) override {
    gradient_.add_(factors.defined() ? window_gradients_.dot(factors) : window_gradients_.sum());
  }

 private:
  at::Tensor gradient_;          // (1, 1)
  at::Tensor window_gradients_;  // (B)
};

/// Step k of C + H − 1 forecasts place P − C + 1 + k of the window from [lagged values / a, embedding, 0, log a, time
/// features and age of that place]; a is the mean scale of the last C past values. The context's steps are scored, too.
/// P = C + max(lag) − 1.
class DeepAR final : public Forecaster {
 public:
  static constexpr std::int64_t standard_width = 40;
  static constexpr std::int64_t layer_count = 2;

  /// Throws UsageError without lags, or without time features.
  DeepAR(const ModelOptions& options, const at::TensorOptions& tensor_options);

  [[nodiscard]] std::string name() const override { return "deepar"; }
  [[nodiscard]] std::int64_t past_length() const override;
  [[nodiscard]] std::int64_t longest_season() const override;
  [[nodiscard]] bool reads_time_features() const override { return true; }
  [[nodiscard]] bool samples_paths() const override { return true; }
  [[nodiscard]] std::int64_t bytes_per_window() const override;
  [[nodiscard]] std::int64_t preferred_chunk(bool is_private) const override;
  void initialise(RandomStream& stream) override;
  void backward() override;
  [[nodiscard]] std::string script() const override;

 private:
  Hidden forward(const WindowBatch& batch) override;
  [[nodiscard]] Scored scored(const WindowBatch& batch) const override;
  [[nodiscard]] std::int64_t width() const { return width_or(standard_width); }
  [[nodiscard]] std::int64_t steps() const { return options_.context_length + options_.prediction_length - 1; }
  [[nodiscard]] std::int64_t inputs() const {
    return static_cast<std::int64_t>(options_.lags.size()) + 3 + options_.time_features;
  }

  /// The LSTM's input (B, steps, inputs) of a batch, from the window's values (B, P + H) as the model reads them and
  /// what it is told about their level (B, 1).
  [[nodiscard]] at::Tensor input_of(const WindowBatch& batch, const at::Tensor& values, const at::Tensor& level);
  [[nodiscard]] at::Tensor input_by_kernel(const WindowBatch& batch, const at::Tensor& values, const at::Tensor& level);

  at::Tensor embedding_value_;  // (1, 1)
  at::Tensor lagged_places_;  // (steps · lags): places of the window
  at::Tensor input_;  // kept for its memory
  std::unique_ptr<ConstantEmbedding> embedding_;
  std::unique_ptr<dp::Lstm> lstm_;
};

}  // namespace tsdp::models
