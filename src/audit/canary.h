// The audit's own forecaster, whose gradients are as telling as the theorems allow.
#pragma once

#include <atomic>
#include <memory>

#include "audit/neighbours.h"
#include "dp/given_gradients.h"
#include "models/forecaster.h"
#include "tsdp/data/dataset.h"

namespace tsdp::audit {

/// How data sets carry marks to the canary. Values are multiples of `unit`. Without noise on the data, `unit` is a
/// power of two no larger than v, and marks are exact: 0: another series; 1: the changed series; 2: a changed place on
/// D; 3: one on D′. With noise it is v, rounded down to single precision, and only the changed places are observed
/// (marks of missing values are public and get no noise): 0 on D, 1 on D′. Where records are series, the changed one
/// has no values on D, and 3 everywhere on D′.
struct MarkCode {
  CanaryKind kind = CanaryKind::substituted;
  double unit = 1.0;
  bool noised = false;
  double context_noise = 0.0;   ///< standard deviations in multiples of `unit`
  double forecast_noise = 0.0;
};

/// The code for a scheme and a relation. Throws UsageError for v too small for single precision.
[[nodiscard]] MarkCode mark_code(const privacy::SubsamplingScheme& scheme, const privacy::PrivacyUnit& unit);

/// The values of series `series` of length `length` on D or (second) D′.
[[nodiscard]] std::vector<float> marked_values(const MarkCode& code, const Neighbours& neighbours, std::int64_t series,
                                               std::int64_t length, bool second);

/// Reads a window's marks and makes its gradient from them, far longer than the clip norm (or 0); see CanaryKind. Eight
/// parameters: place 0 is `along`, place 1 `across`; in the others every gradient is 0. The loss is 0, and the weights
/// mean nothing.
class Canary final : public models::Forecaster {
 public:
  /// Of the options, only context_length (all past steps that windows carry), prediction_length and parameter_values
  /// matter. `touched` counts, over all replicas, the touched windows whose losses were taken.
  Canary(const models::ModelOptions& options, const at::TensorOptions& tensor_options, const MarkCode& code,
         double clip_norm, std::shared_ptr<std::atomic<std::int64_t>> touched);

  [[nodiscard]] std::string name() const override { return "canary"; }
  [[nodiscard]] std::int64_t bytes_per_window() const override { return 64; }
  [[nodiscard]] std::unique_ptr<Forecaster> replica() const override;
  void initialise(RandomStream& stream) override { static_cast<void>(stream); }  // zeros
  [[nodiscard]] std::string script() const override { return {}; }  // never exported
  void backward() override {}  // `forward` left the gradients

 private:
  Hidden forward(const models::WindowBatch& batch) override;
  [[nodiscard]] Scored scored(const models::WindowBatch& batch) const override;

  MarkCode code_;
  double clip_norm_;
  std::shared_ptr<std::atomic<std::int64_t>> touched_;
  std::unique_ptr<dp::GivenGradients> layer_;
};

}  // namespace tsdp::audit
