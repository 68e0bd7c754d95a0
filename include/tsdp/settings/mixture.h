// Forecasts that need no training, and their mixture with a network's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tsdp/base/names.h"

namespace tsdp {

/// A forecast from one series' own past; none but `start` needs training. With season m, S seasons and horizon H:
///   start: that of the network with the weights that training began with.
///   seasonal_quantiles: empirical quantiles of the same place of the last S seasons.
///   moved_quantiles: the same, each season moved so that its mean is that of the last one.
///   covariate_quantiles: seasonal_quantiles, each value y moved by b'(x − x'), where x are the covariates of the step
///     that is forecast and x' those of the value's step. The weights b are a ridge regression (0.01, in units of the
///     covariates' deviation) of the values of the S seasons on their covariates, both less their mean at the same
///     place. Where none of these values is negative, log(y + c) stands for y, with c a tenth of their mean or 1 if
///     that is 0. What x differs in from its mean at the place is taken as at most half of the range of such
///     differences outside that range, and the moved value as at most half of the values' range outside theirs, nor
///     below 0 where none of them is.
///   seasonal_naive_bands: the last season again, with the quantiles of what was wrong with that in the last S seasons.
///   last_value_bands: the same for m = 1: the last value, and S values.
///   seasonal_regression: the values j = ⌈k/m⌉ seasons ahead are regressed on those of the same place 0, 1, 2 and 6
///     seasons before the last one known, their mean over the last 7 seasons, the mean of the last season, the mean of
///     its last eighth, and 1; with the quantiles of the residuals of the same place over the S seasons it is fitted
///     to. Ridge 0.01, in units of the deviation of what is read, towards 0.3 of the last season and 0.7 of the mean of
///     seven. A missing value counts as the mean of its place, or of all, and is not fitted to.
enum class Candidate {
  start,
  seasonal_quantiles,
  moved_quantiles,
  seasonal_naive_bands,
  last_value_bands,
  seasonal_regression,
  covariate_quantiles
};
constexpr Names<Candidate, 7> names_of(Candidate) {
  return {{{Candidate::start, "start"},
           {Candidate::seasonal_quantiles, "seasonal_quantiles"},
           {Candidate::moved_quantiles, "moved_quantiles"},
           {Candidate::seasonal_naive_bands, "seasonal_naive_bands"},
           {Candidate::last_value_bands, "last_value_bands"},
           {Candidate::seasonal_regression, "seasonal_regression"},
           {Candidate::covariate_quantiles, "covariate_quantiles"}}};
}

/// The most values of a series that a candidate of longer seasons or steps reads for a forecast.
inline constexpr std::int64_t most_values_read = 20'000;

/// How many candidates model.candidates may name, those in the place of other_starts counted.
inline constexpr std::size_t most_candidates = 16;

/// In model.candidates: the networks of other kinds with the weights shipped for the same step, each a candidate.
inline constexpr std::string_view other_starts = "other_starts";

/// What a network's forecasts are mixed with. Candidate i forecasts the coming window, and each of the last J that
/// begin `stride` steps apart, from the values before it. Of these, window j counts if the series was there for its
/// longest season and its horizon before, with weight exp(−j/14); e_i is the mean of candidate i's quantile losses
/// (levels 0.1, …, 0.9, observed steps) on them. Of n windows that count, the mixture's quantile at every level is
/// Σ w_i q_i with w_i ∝ c_i e_i^−min(n, 8), where c_i is 2 for the networks and 1 for the others; it is then spread
/// about its median by s^(n/(n+3)), where s is the one of a grid that does best on the same windows with the same
/// weights. Levels further from the median than 0.25 and 0.75 are spread more: by T^x, where x goes from 0 there to 1
/// at 0.05 and 0.95, linear in the logit of the level, T is the greater of 1 and r^(n/(n+3)) 1.2^(3/(n+3)), and r is
/// the one of the grid that, on top of s^(n/(n+3)), does best at the levels 0.05 and 0.95 on the same windows, where
/// these levels go on from 0.1, 0.2 and 0.8, 0.9 in the logit. Of equal ones of the grid the least is taken. If no
/// window counts, w_i ∝ c_i. A candidate whose forecasts another program made has them of the windows that it was
/// given. It takes part in a forecast if it has the coming window and all that count; else w_i = 0. Where the mixture
/// was trained (training.trainable), w_i also has a factor exp(a_i + b_i x) at every step, x from −1 at the first to 1
/// at the last, s^(n/(n+3)) a factor t, of which r knows nothing, and then every level, the mean and every sample are
/// moved by Σ c_i d_i, where d_i is a quarter of how far candidate i's median is from the mixture's, cut at the least
/// of the e_i, so that no candidate that errs wildly moves a forecast far.
struct Mixture {
  struct Member {
    Candidate method = Candidate::seasonal_quantiles;
    std::int64_t season = 1;  ///< m ≥ 1, in steps
    std::int64_t seasons = 1;  ///< S ≥ 1

    /// How many seasons it reads for a forecast of `prediction_length` steps.
    [[nodiscard]] std::int64_t read(std::int64_t prediction_length) const {
      return seasons + (method == Candidate::seasonal_regression ? 6 : 0) + (prediction_length + season - 1) / season;
    }
    bool operator==(const Member&) const = default;
  };
  std::vector<Member> members = {};  ///< beside the network, from its own past
  std::vector<std::string> external = {};  ///< names of those that other programs forecast, each once
  std::int64_t windows = 0;  ///< J ≥ 1 unless the network forecasts alone
  std::int64_t stride = 1;  ///< at least the forecast length
  /// Values far from all others of the past that a forecast reads count as missing, in pasts of 100 known values or
  /// more: those further from its median than ten times as far as 99 % of them (data/oddities.h).
  bool skips_outliers = false;
  std::vector<std::string> networks = {};  ///< names of other networks that the model holds, each once
  std::int64_t covariates = 0;  ///< that covariate_quantiles reads: the last time features before the age of a step
  bool widens_tails = false;  ///< T above; else 1

  [[nodiscard]] bool empty() const {
    return members.empty() && networks.empty() && external.empty();
  }  ///< the network alone

  /// How many past values a forecast of `prediction_length` steps reads, where its networks read `network_past`.
  [[nodiscard]] std::int64_t past_length(std::int64_t network_past, std::int64_t prediction_length) const {
    auto longest = network_past;
    for (const auto& member : members) longest = std::max(longest, member.season * member.read(prediction_length));
    return empty() ? network_past : longest + windows * stride;
  }
  [[nodiscard]] bool has(Candidate method) const {
    return std::any_of(members.begin(), members.end(), [&](const Member& member) { return member.method == method; });
  }
  [[nodiscard]] std::int64_t longest_season() const {
    std::int64_t longest = 1;
    for (const auto& member : members) longest = std::max(longest, member.season);
    return longest;
  }
  /// How many values before a window are enough for every candidate, if one of them is known.
  [[nodiscard]] std::int64_t shortest_read() const {
    std::int64_t shortest = most_values_read;
    for (const auto& member : members)
      if (member.method != Candidate::start) shortest = std::min(shortest, member.season * member.seasons);
    return shortest;
  }
  bool operator==(const Mixture&) const = default;
};

/// How many covariates a series may have for `auto` to take covariate_quantiles: time and memory grow with their
/// number.
inline constexpr std::size_t most_told_covariates = 16;

/// The name of a candidate in model.candidates that is a file of weights of another network (hourly_dlinear for
/// starts/hourly_dlinear.safetensors), which the exported model will hold; none for any other.
[[nodiscard]] std::optional<std::string> network_name(const std::string& candidate);

/// Throws UsageError, begun with `where`, for model.candidates that have no such name, that are too many, or two of
/// which the model could not tell apart.
void check_candidates(const std::string& where, const std::vector<std::string>& candidates);

/// The name of a candidate in model.candidates whose forecasts are in a file (chronos for forecasts/chronos.jsonl), or
/// that is an exported model (flows for models/flows.pt); none for any other.
[[nodiscard]] std::optional<std::string> external_name(const std::string& candidate);

}  // namespace tsdp
