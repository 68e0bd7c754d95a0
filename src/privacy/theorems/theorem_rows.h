// The rows of the table of theorems: what each covers, and its pair.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tsdp/privacy/theorems/theorems.h"

namespace tsdp::privacy {

/// Noise on the data that a row accounts for.
enum class InputNoise {
  none,
  equal,  ///< σ_C = σ_F
  split,  ///< any for w = 1 and T ≥ L_C + L_F, else equal
  any,
};

/// A theorem about values of series of which windows are drawn.
struct Row {
  TheoremSummary summary;
  bool one_window;  ///< λ = 1 only
  InputNoise noise;
  std::function<privacy::DominatingPair(const SubsamplingScheme&, const PrivacyUnit&, double)> pair;

  Row(std::string id, Bound bound, TopLevel top, BottomLevel bottom, bool only_one_window, InputNoise input_noise,
      std::function<privacy::DominatingPair(const SubsamplingScheme&, const PrivacyUnit&, double)> make_pair,
      std::string proof = {});

  /// The parts of the scheme that the row does not cover, one text each; empty if it covers the scheme.
  [[nodiscard]] std::vector<std::string> objections(const SubsamplingScheme& scheme, const PrivacyUnit& unit) const;

  [[nodiscard]] std::string refusal(const std::vector<std::string>& objections) const;
};

/// m and the rate min(1, λ/T) of the Poisson rows.
struct PoissonReach {
  std::int64_t touched = 1;
  double rate = 1.0;
  bool of_one_series = true;  ///< some series has both
};

/// The worst of m and of the rate, each by itself: short series have the larger rate, long ones the larger m. The law
/// of the number of drawn touched windows of every series, Bin(m, rate), is then stochastically dominated by the
/// answer's (Prop. E.13), and H_α of E.8's pair grows with it (Prop. E.14): an upper bound for whichever series is
/// changed.
[[nodiscard]] PoissonReach largest_poisson_reach(const SubsamplingScheme& scheme, const PrivacyUnit& unit);

/// Whether epochs that take series in turn end before every series is read: N mod N′ of them never are, and the worst
/// series may be one of these.
[[nodiscard]] bool leaves_out_a_series(const SubsamplingScheme& scheme);

/// All rows, in the order in which they are tried.
[[nodiscard]] const std::vector<Row>& table();

/// Rows about one flat data set (paper, Appendix C.3).
struct FlatRow {
  TheoremSummary summary;
  bool valid_for_time_series;
  std::function<privacy::DominatingPair(const FlatSampling&, double)> pair;
};

[[nodiscard]] const std::vector<FlatRow>& flat_table();

}  // namespace tsdp::privacy
