#include "tsdp/privacy/theorems/theorems.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "privacy/terms/checks.h"
#include "privacy/theorems/series_law.h"
#include "theorem_rows.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::privacy {

std::int64_t touched_windows(std::int64_t length, std::int64_t context_length, std::int64_t forecast_length,
                             const PrivacyUnit& unit) {
  if (unit.w < 1 || unit.w > largest_count)
    throw UsageError(cat("w: found ", unit.w, "; expected an integer from 1 to ", largest_count));
  if (length < forecast_length)
    throw PrivacyError(cat("sequence length: found ", length, " with forecast length ", forecast_length,
                           "; expected at least the forecast length (L >= L_F)"));
  if (unit.w > length)
    throw PrivacyError(cat("w: found ", unit.w, " with a sequence of length ", length,
                           "; expected at most the length of the shortest sequence (w <= L)"));
  const std::int64_t windows = length - forecast_length + 1;
  const std::int64_t reach = context_length + forecast_length;
  if (unit.relation == Relation::event) return std::min(reach + unit.w - 1, windows);
  // w · reach could overflow; once it passes T only T matters.
  return unit.w > windows / reach ? windows : std::min(unit.w * reach, windows);
}

double touched_share(const SubsamplingScheme& scheme, const PrivacyUnit& unit) {
  const auto& p = scheme.parameters();
  double largest = 0.0;
  for (const auto length : p.lengths.distinct()) {
    const auto touched = touched_windows(length, p.context_length, p.forecast_length, unit);
    largest = std::max(largest, static_cast<double>(touched) / static_cast<double>(length - p.forecast_length + 1));
  }
  return largest;
}

const std::vector<TheoremSummary>& theorem_table() {
  static const auto all = [] {
    std::vector<TheoremSummary> out;
    for (const auto& row : table()) out.push_back(row.summary);
    for (const auto& row : flat_table()) out.push_back(row.summary);
    out.insert(out.end(), series_table().begin(), series_table().end());
    return out;
  }();
  return all;
}

const TheoremSummary& theorem_row(const std::string& id) {
  std::vector<std::string> known;
  for (const auto& row : theorem_table()) {
    if (row.id == id) return row;
    if (std::find(known.begin(), known.end(), row.id) == known.end()) known.push_back(row.id);
  }
  throw PrivacyError(cat("theorem: found '", id, "'; available are ", join(known, ", ")));
}

namespace {

/// Throws PrivacyError unless the unit is about the variables that the series have.
void check_variables(const SubsamplingScheme& scheme, const PrivacyUnit& unit) {
  if (unit.variables != scheme.variables())
    throw PrivacyError(cat("variables: found a unit of ", unit.variables, " with series of ", scheme.variables(),
                           "; expected the same number"));
  if (unit.v && unit.variables > 1)
    throw PrivacyError(cat("v: found ", *unit.v, " with series of ", unit.variables,
                           " variables, which is not implemented; expected none"));
}

}  // namespace

AppliedTheorem apply_theorem(const SubsamplingScheme& scheme, const PrivacyUnit& unit, const Noise& noise,
                             std::optional<std::string> theorem) {
  if (noise.kind == NoiseKind::independent) return apply_theorem(scheme, unit, noise.multiplier, std::move(theorem));
  check_variables(scheme, unit);
  check_noise_multiplier_of_mechanism(noise.multiplier);
  if (unit.relation != Relation::series || scheme.parameters().record != Record::series)
    throw PrivacyError(cat("correlated noise with relation ", name(unit.relation),
                           ": nothing covers it; relation series with top level balls_in_bins is the nearest that is "
                           "covered, or independent noise"));
  auto out = series_theorem(series_law_of(scheme), noise);
  if (theorem && *theorem != out.theorem)
    throw PrivacyError(cat("Theorem ", *theorem, " does not cover correlated noise; ", out.theorem, " does"));
  return out;
}

namespace {

/// Throws unless `theorem` is about values of series of which windows are drawn.
void check_named_theorem(const std::string& theorem) {
  const auto row = theorem_row(theorem);
  if (row.flat())
    throw PrivacyError(
        cat("Theorem ", theorem, " is about one flat data set, not about series of which windows are drawn"));
  if (row.whole_series())
    throw PrivacyError(
        cat("Theorem ", theorem, " is about whole series, not about values of one: expected with it relation series"));
}

/// The row's bound; where it is tight for other schemes only, an upper one.
Bound bound_of(const Row& row, const SubsamplingScheme& scheme, const PrivacyUnit& unit) {
  const auto& p = scheme.parameters();
  auto bound = row.summary.bound;
  if (bound == Bound::tight && p.bottom_level == BottomLevel::poisson &&
      !largest_poisson_reach(scheme, unit).of_one_series)
    bound = Bound::upper;
  if (bound == Bound::tight && leaves_out_a_series(scheme) && p.lengths.shortest() != p.lengths.longest())
    bound = Bound::upper;
  return bound;
}

}  // namespace

AppliedTheorem apply_theorem(const SubsamplingScheme& scheme, const PrivacyUnit& unit, double noise_multiplier,
                             std::optional<std::string> theorem) {
  check_noise_multiplier_of_mechanism(noise_multiplier);
  if ((unit.relation == Relation::series) != (scheme.parameters().record == Record::series))
    throw PrivacyError(cat("relation: found ", name(unit.relation), " with ", name(scheme.parameters().record),
                           "s as records; expected series where whole series are clipped as one, and there alone"));
  check_variables(scheme, unit);
  if (unit.relation == Relation::series) {
    auto out = series_theorem(series_law_of(scheme), noise_multiplier);
    if (theorem && *theorem != out.theorem)
      throw PrivacyError(cat("Theorem ", *theorem, " does not cover whole series with top level ",
                             name(scheme.parameters().top_level), "; ", out.theorem, " does"));
    return out;
  }
  if (unit.v && (!(*unit.v > 0.0) || !std::isfinite(*unit.v)))
    throw UsageError(cat("v: found ", *unit.v, "; expected a positive finite number"));
  const auto& p = scheme.parameters();
  if ((p.context_noise > 0.0 || p.forecast_noise > 0.0) && !unit.v)
    throw PrivacyError(
        "noise on context or forecast amplifies privacy only if a value changes by at most v: no finite v is given; "
        "set privacy.v (--v), or both noises to 0");
  if (theorem) check_named_theorem(*theorem);
  std::vector<std::string> nearest;  // refusals with the fewest objections, one for each kind of them
  std::vector<std::vector<std::string>> kinds;
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  std::string extension;
  for (const auto& row : table()) {
    // Unless a row is named, only proven upper bounds count: training rests on this.
    const bool candidate = theorem ? *theorem == row.summary.id : !row.summary.only_if_named;
    if (!candidate && !row.summary.ours) continue;
    const auto objections = row.objections(scheme, unit);
    if (!candidate) {
      if (objections.empty()) extension = row.summary.id;
      continue;
    }
    if (objections.empty()) {
      return {row.summary.id,   bound_of(row, scheme, unit),
              row.summary.unit, scheme.steps_per_epoch(),
              noise_multiplier, row.pair(scheme, unit, noise_multiplier)};
    }
    if (objections.size() < fewest) nearest.clear();
    fewest = std::min(fewest, objections.size());
    if (objections.size() == fewest && std::find(kinds.begin(), kinds.end(), objections) == kinds.end())
      nearest.push_back(row.refusal(objections));
    kinds.push_back(objections);
  }
  if (!extension.empty() && (p.context_noise > 0.0 || p.forecast_noise > 0.0))
    nearest.push_back(cat("an extension of the paper covers it: tsdp-account --theorem ", extension,
                          " (docs/proofs/augmentation.md)"));
  throw PrivacyError(
      cat("no theorem covers this subsampling", theorem ? " as asked for: " : "; the nearest: ", join(nearest, "; ")));
}

AppliedTheorem flat_baseline(const std::string& theorem, const FlatSampling& sampling, double noise_multiplier) {
  check_noise_multiplier_of_mechanism(noise_multiplier);
  if (!theorem_row(theorem).flat())
    throw PrivacyError(
        cat("Theorem ", theorem, " is about series of which windows are drawn, not about one flat data set"));
  const auto one_to = [](const char* what, std::int64_t value, std::int64_t most, const char* meaning) {
    if (value < 1 || value > most)
      throw UsageError(cat(what, ": found ", value, "; expected an integer from 1 to ", meaning, most));
  };
  one_to("number of records", sampling.records, largest_count, "");
  one_to("batch size", sampling.batch_size, sampling.records, "the number of records ");
  one_to("window length", sampling.window_length, sampling.records, "the number of records ");
  for (const auto& row : flat_table())
    if (row.summary.id == theorem)
      return {theorem,
              row.summary.bound,
              row.summary.unit,
              std::max<std::int64_t>(1, sampling.records / sampling.batch_size),
              noise_multiplier,
              row.pair(sampling, noise_multiplier),
              row.valid_for_time_series};
  throw PrivacyError(cat("theorem: found '", theorem, "'"));  // theorem_row knew it
}

}  // namespace tsdp::privacy
