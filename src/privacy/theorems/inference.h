// Inference-time privacy: noise for a series that a model is applied to (Schuchardt et al. 2025, Appendix H).
//
// Each step of the input is kept with probability r, kept steps get Gaussian noise of standard deviation s, dropped
// ones are imputed from the others. Neighbouring inputs differ in w steps by at most v each; noise in multiples of v.
// This is about one forecast: forecasts of the same steps compose. Training is accounted for elsewhere.
#pragma once

#include <cstdint>

namespace tsdp::privacy {

/// The paper refers to Koga et al. (2022), Thm. 3.2, without restating it; the readings are derived here.
enum class DropPattern {
  /// Whoever sees the forecast may know which steps were kept, as when imputed steps get no noise. Exact for that case:
  ///   δ(ε) = Σ_{i ≤ w} Bin(i; w, r) δ_G(ε; √i v/s),   δ_G(ε; μ) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ).
  visible,
  /// Dropped steps look like kept ones; w = 1 only. Amplification by subsampling of the Gaussian mechanism's (ε₀, δ₀):
  ///   ε = log(1 + r (e^{ε₀} − 1)),   δ = r δ₀.
  /// With A the law where the step is dropped and B, B′ those where it is kept, this rests on
  /// H_{α′}(B ‖ (1 − β) A + β B′) ≤ δ₀ (Prop. D.2), so also on H_{α′}(B ‖ A) ≤ δ₀: imputed steps must get the same
  /// noise, and every imputed value must lie within v of both values it may replace (as where all values of a series
  /// lie in an interval of width v). Otherwise the pattern has to be treated as visible.
  hidden,
};

struct InferenceMechanism {
  std::int64_t changed = 1;  ///< w ≥ 1
  double keep = 1.0;  ///< r in (0, 1]
  DropPattern pattern = DropPattern::visible;
};

/// δ(ε), 0 ≤ ε ≤ 1e6, with noise s/v > 0; relative error below 1e-10 for values above 1e-30. Throws PrivacyError for
/// parameters out of range, and for a hidden pattern with w > 1, which nothing covers.
[[nodiscard]] double inference_delta(const InferenceMechanism& mechanism, double epsilon, double noise_over_v);

/// The least s/v with δ(ε) ≤ delta, 1e-25 ≤ delta < 1, from the safe side: at most a factor 1 + 1e-9 above it where δ
/// falls with the noise as fast as 1/s or faster, and never below it. 0 if dropping alone is enough.
[[nodiscard]] double inference_noise(const InferenceMechanism& mechanism, double epsilon, double delta);

}  // namespace tsdp::privacy
