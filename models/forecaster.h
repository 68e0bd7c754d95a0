// What every forecaster is: losses of windows, a recorded backward pass, and a TorchScript form.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include "tsdp/core/random.h"
#include "tsdp/dp/layer.h"
#include "tsdp/dp/parameters.h"

namespace tsdp::models {

/// Sizes that a model is built for.
struct ModelOptions {
  std::int64_t context_length = 1;     ///< C ≥ 1
  std::int64_t prediction_length = 1;  ///< H ≥ 1
};

/// A batch of windows, P = `Forecaster::past_length()`. Unobserved values are 0.
struct WindowBatch {
  at::Tensor past_target;      ///< (B, P)
  at::Tensor past_observed;    ///< (B, P), 1 or 0
  at::Tensor future_target;    ///< (B, H)
  at::Tensor future_observed;  ///< (B, H), 1 or 0
};

/// Parameters of Y = affine_scale · T, T ~ t(df, loc, scale), at each step of each window.
struct StudentT {
  at::Tensor df, loc, scale;  ///< (B, H)
  at::Tensor affine_scale;    ///< (B, 1)
};

/// Nothing in `losses` or `predict` couples two windows of a batch.
class Forecaster {
 public:
  virtual ~Forecaster() = default;

  [[nodiscard]] virtual std::string name() const = 0;
  /// P: how many past values a window carries. All of them can influence its gradient, so this is the context length
  /// that the accountant must be told.
  [[nodiscard]] virtual std::int64_t past_length() const = 0;
  [[nodiscard]] const ModelOptions& options() const noexcept { return options_; }

  [[nodiscard]] const dp::ParameterBuffer& parameters() const noexcept { return parameters_; }
  /// Parametric layers whose records make up the per-window gradients.
  [[nodiscard]] const std::vector<dp::Layer*>& layers() const noexcept { return layer_list_; }

  /// Draws the initial weights from `stream`.
  virtual void initialise(RandomStream& stream) = 0;

  /// Loss of each window (B): negative log-likelihood as GluonTS has it. Records activations.
  virtual at::Tensor losses(const WindowBatch& batch) = 0;
  /// Backward pass of seed · Σ_i loss_i through everything `losses` recorded.
  virtual void backward(double seed) = 0;
  /// Forecast distribution of each step.
  virtual StudentT predict(const at::Tensor& past_target, const at::Tensor& past_observed) = 0;

  /// TorchScript source of a method
  ///   def distribution(self, past_target: Tensor, past_observed: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]
  /// that gives df, loc, scale (B, H) and affine_scale (B, 1) from the parameters `self.<name with _ for .>`.
  [[nodiscard]] virtual std::string script() const = 0;

 protected:
  explicit Forecaster(ModelOptions options) : options_(options) {}

  ModelOptions options_;
  dp::ParameterBuffer parameters_;
  std::vector<dp::Layer*> layer_list_;
};

/// Builds a forecaster; all tensors have `tensor_options`.
using Factory = std::function<std::unique_ptr<Forecaster>(const ModelOptions&, const at::TensorOptions& tensor_options)>;

/// Names of all registered forecasters.
[[nodiscard]] std::vector<std::string> model_names();
/// Throws UsageError that names the known models if `name` is none.
[[nodiscard]] std::unique_ptr<Forecaster> make_model(const std::string& name, const ModelOptions& options,
                                                     const at::TensorOptions& tensor_options);

}  // namespace tsdp::models
