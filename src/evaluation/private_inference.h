// Forecasts from privatised pasts: what the model and seasonal naive are given, and what is said about it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "sampling/private_context.h"
#include "tsdp/data/dataset.h"
#include "tsdp/data/windows.h"
#include "tsdp/random/random.h"

namespace tsdp::evaluation {

/// The randomiser and the key of its streams. Use number u draws from (key, …, u).
struct PrivateInference {
  sampling::PrivateContext mechanism;
  SecretKey key;
  bool reproducible = false;  ///< whether the key follows from a seed that others may know: not for release
};

/// Past values of windows as given to forecasters, privatised or as they are.
///
/// With `privacy`, one release of the last R = max(P, m) values before a window is all that is read of its series: the
/// model is given the last P of them, seasonal naive all R, each with dropped values imputed from what it is given. So
/// both forecasts of a window are one use. Noise is put on values as they were read, in double precision.
class PastSource {
 public:
  /// `past_length`: P ≥ 1, what the model reads; `season_length`: m ≥ 1, of seasonal naive. `dataset` and `privacy`
  /// must outlive the source; null `privacy`: without privacy. Throws Error with `privacy` for a data set read without
  /// Series::exact: in single precision its neighbours may lie further apart than v.
  PastSource(const data::Dataset& dataset, std::int64_t past_length, std::int64_t season_length,
             const PrivateInference* privacy);

  /// R with privacy, else P.
  [[nodiscard]] std::int64_t read_length() const noexcept { return store_.past_length(); }

  /// The pasts before the places `indices`, as uses `first_use`, `first_use` + 1, …; valid until the next call.
  void gather(std::span<const data::WindowIndex> indices, std::uint64_t first_use);
  [[nodiscard]] const at::Tensor& target() const noexcept { return target_; }  ///< (B, P), 0 where unobserved
  [[nodiscard]] const at::Tensor& observed() const noexcept { return observed_; }  ///< (B, P), 1 or 0
  /// What seasonal naive forecasts window i from: R values, fewer at the start of a series; without privacy everything
  /// before the window. NaN if missing.
  [[nodiscard]] std::span<const float> naive_past(std::size_t i) const { return naive_[i]; }

 private:
  void privatise(std::size_t row, std::int64_t place, std::uint64_t use);

  const data::Dataset& dataset_;
  const PrivateInference* privacy_;
  std::int64_t past_length_;
  data::WindowStore store_;
  at::Tensor values_, marks_;  // (B, read length)
  std::vector<double> exact_;  // the same places with privacy, else empty
  at::Tensor target_, observed_;
  std::vector<std::vector<float>> private_naive_;
  std::vector<std::span<const float>> naive_;
};

/// "inference_privacy" of the programs' JSON: epsilon, delta, v, w, keep_probability, noise_multiplier
/// (s over (1 + 2⁻¹⁹) v), noise (s), theorem, derivation, relation, what one use is, how uses compose, randomness, what
/// is not covered, and a statement. `uses`: at most how many uses read a value touched by one change.
[[nodiscard]] nlohmann::ordered_json inference_privacy(const PrivateInference& privacy, std::int64_t uses);

/// Throws UsageError if covariates are to be protected, by the configuration or by the model's training (the ledger
/// inside it): a private forecast reads those of the past as they are.
void require_public_covariates(bool asked, const nlohmann::ordered_json& ledger);

/// How the guarantee of forecasts adds to that of training, from the ledger inside a model: text, and epsilon and delta
/// of both together (null if the model was trained without privacy).
[[nodiscard]] nlohmann::ordered_json with_training(const PrivateInference& privacy,
                                                   const nlohmann::ordered_json& ledger);

}  // namespace tsdp::evaluation
