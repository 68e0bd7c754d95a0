// iTransformer of GluonTS 0.15.1: d = 32, 4 heads, feed-forward 128, 2 layers, ReLU, no dropout.
#pragma once

#include <array>

#include "forecaster.h"

namespace tsdp::models {

/// Tokens are variables: the window of each is a token [u_1 … u_C, 0, log a], and the V of a series attend to each
/// other. Over one token softmax is identically 1, so self-attention is its value and output projections, and the
/// gradients of the query and key parameters are exactly 0 (they are parameters all the same: noise and weight decay
/// act on them).
class ITransformer final : public Forecaster {
 public:
  static constexpr std::int64_t standard_width = 32;
  static constexpr std::int64_t standard_feed_forward = 128;
  static constexpr std::int64_t heads = 4;

  ITransformer(const ModelOptions& options, const at::TensorOptions& tensor_options);

  [[nodiscard]] std::string name() const override { return "itransformer"; }
  [[nodiscard]] std::int64_t bytes_per_window() const override;
  void initialise(RandomStream& stream) override;
  [[nodiscard]] std::string script() const override;

 private:
  Hidden forward(const WindowBatch& batch) override;
  [[nodiscard]] Scored scored(const WindowBatch& batch) const override;
  [[nodiscard]] std::int64_t width() const { return width_or(standard_width); }
  [[nodiscard]] std::int64_t feed_forward() const { return width() * (standard_feed_forward / standard_width); }
  [[nodiscard]] std::int64_t step_width() const { return width() / heads; }

  struct Encoder {
    std::unique_ptr<dp::Linear> query, key;  // none for one variable
    std::unique_ptr<dp::Linear> value, out, up, down;
    std::unique_ptr<dp::LayerNorm> first_norm, second_norm;
  };
  std::unique_ptr<dp::Linear> embedding_, projection_;
  std::array<Encoder, 2> encoders_;
  std::unique_ptr<dp::LayerNorm> norm_;
};

}  // namespace tsdp::models
