#include "privacy/theorems/series_law.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "privacy/accountant/root_finding.h"
#include "privacy/terms/checks.h"
#include "privacy/terms/numbers.h"
#include "privacy/theorems/structured_pairs.h"
#include "privacy/whole_series/allocation_renyi.h"
#include "privacy/whole_series/bounded_batches.h"
#include "privacy/whole_series/epoch_bounds.h"
#include "privacy/whole_series/gaussian_curve.h"
#include "privacy/whole_series/poisson_curve.h"
#include "privacy/whole_series/random_allocation_curve.h"
#include "privacy/whole_series/redrawn_bins_curve.h"
#include "privacy/whole_series/shuffled_curve.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/privacy/accountant/accountant.h"

namespace tsdp::privacy {
namespace {

constexpr const char* matrix_row = "series.matrix";
constexpr const char* cyclic_row = "series.cyclic_poisson";
constexpr const char* redrawn_row = "series.bins_redrawn";
/// The most that a series may move sums by under correlated noise, in clip norms and as the root of an epoch's share:
/// beyond, nothing is private.
constexpr double most_share = 1e9;

/// The upper ends of one curve, and the lower ends of another; none without it.
class UpperCurve final : public PrivacyCurve {
 public:
  UpperCurve(std::unique_ptr<PrivacyCurve> of, std::string why, std::unique_ptr<PrivacyCurve> lower = nullptr)
      : of_(std::move(of)), lower_(std::move(lower)), why_(std::move(why)) {}

  bool certifies(double epsilon, double delta, std::uint64_t uses, double precision) override {
    return of_->certifies(epsilon, delta, uses, precision);
  }
  double upper_delta(double epsilon, std::uint64_t uses, double precision) override {
    return of_->upper_delta(epsilon, uses, precision);
  }
  double upper_epsilon(double delta, std::uint64_t uses, double precision) override {
    return of_->upper_epsilon(delta, uses, precision);
  }
  [[nodiscard]] Certificate methods() const override { return {why_, lower_ ? why_ : "", {}}; }

 protected:
  Interval find_delta(double epsilon, std::uint64_t uses, double precision, Certificate&) override {
    return in_order(
        {lower_ ? lower_->delta(epsilon, uses, precision).lower : 0.0, of_->delta(epsilon, uses, precision).upper});
  }
  Interval find_epsilon(double delta, std::uint64_t uses, double precision, Certificate&) override {
    return in_order(
        {lower_ ? lower_->epsilon(delta, uses, precision).lower : 0.0, of_->epsilon(delta, uses, precision).upper});
  }
  std::uint64_t search_uses(double epsilon, double delta, std::uint64_t limit, double precision) override {
    return of_->max_uses(epsilon, delta, limit, precision);
  }

 private:
  std::unique_ptr<PrivacyCurve> of_, lower_;
  std::string why_;
};

bool tosses_coins(TopLevel sampler) { return sampler == TopLevel::poisson || sampler == TopLevel::cyclic_poisson; }

/// Steps that draw a series by a coin.
std::unique_ptr<PrivacyCurve> curve_of_coins(double rate, double sigma, std::optional<Direction> direction) {
  if (direction) return std::make_unique<Accountant>(poisson_step(rate, sigma), *direction);
  return std::make_unique<PoissonCurve>(rate, sigma);
}

std::unique_ptr<PrivacyCurve> curve_of(const SeriesLaw& law, double rate, double sigma,
                                       std::optional<Direction> direction) {
  switch (law.sampler) {
    case TopLevel::deterministic: return std::make_unique<GaussianCurve>(sigma);  // the same in both directions
    case TopLevel::shuffled:
      // No lower bound of an addition is known.
      if (direction == Direction::add)
        return std::make_unique<UpperCurve>(std::make_unique<GaussianCurve>(sigma),
                                            "deterministic batches (Chua et al. 2024, Theorem 4.1)");
      return std::make_unique<ShuffledCurve>(law.batches, sigma, law.reshuffle);
    case TopLevel::poisson:
    case TopLevel::cyclic_poisson: return curve_of_coins(rate, sigma, direction);
    case TopLevel::without_replacement:
      return std::make_unique<UpperCurve>(std::make_unique<Accountant>(one_window_pair(rate, sigma)),
                                          "sample without replacement, another series in the absent one's place "
                                          "(Schuchardt et al. 2025, Theorem 4.4 with r = 1)");
    case TopLevel::balls_in_bins:
      if (law.redraw == Redraw::every_epoch) return std::make_unique<RedrawnBinsCurve>(law.batches, sigma, direction);
      return std::make_unique<RandomAllocationCurve>(law.batches, sigma, direction);
  }
  throw Error(ExitCode::failure, "a sampler that no row is about");
}

/// The probability of a coin, or of a sample.
double rate_of(const SeriesLaw& law) {
  return law.rate.value_or(static_cast<double>(law.groups) / static_cast<double>(law.batches));
}

/// The chance that some batch of `uses` uses has more series than are allowed, at most: a union over batches, each
/// binomial. Groups of cyclic batches differ by one series, so the largest counts; bins drawn once are cut alike in
/// every epoch.
double chance_of_cuts(const SeriesLaw& law, double rate, std::uint64_t uses) {
  const auto series = law.bounded->series;
  const auto largest = law.bounded->largest;
  const auto batches = static_cast<double>(law.batches);
  const auto of = [&](std::int64_t drawn_from, double probability, double count) {
    return std::min(1.0, chance_of_excess(drawn_from, probability, largest) * count * (1.0 + 1e-15));
  };
  const auto count = static_cast<double>(uses);
  switch (law.sampler) {
    case TopLevel::poisson: return of(series, rate, count);
    case TopLevel::cyclic_poisson:
      return of((series + law.groups - 1) / law.groups, rate, count * static_cast<double>(law.groups));
    case TopLevel::balls_in_bins:
      return of(series, std::min(1.0, up(1.0 / batches)), law.redraw == Redraw::once ? batches : count * batches);
    case TopLevel::deterministic:
    case TopLevel::shuffled:
    case TopLevel::without_replacement: break;
  }
  throw Error(ExitCode::failure, "batches of one size that are cut");
}

void check_bounded(const SeriesLaw& law) {
  if (!law.bounded) return;
  if (!tosses_coins(law.sampler) && law.sampler != TopLevel::balls_in_bins)
    throw UsageError(cat("largest batch: found ", law.bounded->largest, " with top level ", name(law.sampler),
                         ", whose batches have one size; expected none"));
  if (law.bounded->largest > law.bounded->series)
    throw UsageError(cat("largest batch: found ", law.bounded->largest, " of ", law.bounded->series,
                         "; expected at most as many as there are"));
  for (const auto value : {law.bounded->series, law.bounded->largest})
    if (value < 1 || value > largest_count)
      throw UsageError(
          cat("largest batch, or number of series: found ", value, "; expected an integer from 1 to ", largest_count));
}

/// Upper bounds of the Rényi divergences of `epochs` epochs of balls in bins with a strategy C ≥ 0, of an addition or
/// of a removal, whichever is larger: RenyiAdd, and renyi_remove, which has whole orders; divergences grow with the
/// order, so the next whole one bounds the others. +∞ for orders and numbers of bins that would take long.
std::vector<double> bins_renyi(const Strategy& strategy, std::int64_t bins, double sigma, std::uint64_t epochs,
                               std::span<const double> orders) {
  constexpr std::int64_t most_bins = 4096;
  constexpr double most_work = 1e8;  // tenths of a second per bandwidth
  std::vector<double> out(orders.size(), std::numeric_limits<double>::infinity());
  const auto count = static_cast<double>(bins);
  if (epochs == 0) return std::vector<double>(orders.size(), 0.0);
  if (bins > most_bins || static_cast<double>(epochs) * count * count > Gram::most_work) return out;
  const Gram gram(strategy, bins, static_cast<std::int64_t>(epochs), Gram::Side::upper);
  const double most = std::ceil(*std::max_element(orders.begin(), orders.end()));
  std::vector<double> removal(static_cast<std::size_t>(most) + 1, std::numeric_limits<double>::infinity());
  for (const std::int64_t bands : {1, 2, 3, 4, 6, 8, 13, 20}) {
    const auto order = affordable_order(gram, bands, most_work, static_cast<std::int64_t>(most));
    if (order >= 2) {
      const auto found = renyi_remove(gram, sigma, bands, order);
      for (std::size_t a = 2; a < found.size(); ++a) removal[a] = std::min(removal[a], found[a]);
    }
    if (gram.largest_beyond(bands) == 0.0) break;
  }
  const RenyiAdd addition(gram, sigma);
  for (std::size_t i = 0; i < orders.size(); ++i)
    out[i] = std::max(addition(orders[i]), removal[static_cast<std::size_t>(std::max(2.0, std::ceil(orders[i])))]);
  return out;
}

}  // namespace

const std::vector<TheoremSummary>& series_table() {
  const auto row = [](const char* id, const char* covers, Bound bound, CompositionUnit unit, TopLevel sampler,
                      const char* source) {
    TheoremSummary out{id, covers, bound, unit};
    out.top_level = sampler;
    out.source = source;
    return out;
  };
  constexpr auto chua = "Chua et al., How Private are DP-SGD Implementations?, ICML 2024";
  static const std::vector<TheoremSummary> rows = {
      row("series.deterministic", "fixed batches of whole series, in turn", Bound::tight, CompositionUnit::epoch,
          TopLevel::deterministic, chua),
      row("series.shuffled", "batches of whole series in random order", Bound::upper, CompositionUnit::epoch,
          TopLevel::shuffled, chua),
      row("series.poisson", "every series by a coin of its own", Bound::tight, CompositionUnit::step, TopLevel::poisson,
          chua),
      row(cyclic_row, "every series by a coin of its own in every p-th step; noise of p bands", Bound::tight,
          CompositionUnit::round, TopLevel::cyclic_poisson,
          "Choquette-Choo et al., (Amplified) Banded Matrix Factorization, NeurIPS 2023"),
      row("series.wor", "batches of whole series without replacement", Bound::upper, CompositionUnit::step,
          TopLevel::without_replacement, ""),
      row("series.balls_in_bins", "every series in one bin, drawn once", Bound::tight, CompositionUnit::epoch,
          TopLevel::balls_in_bins,
          "Choquette-Choo et al., Near-Exact Privacy Amplification for Matrix Mechanisms, ICLR 2025"),
      row(redrawn_row, "every series in one bin, drawn anew in every epoch", Bound::tight, CompositionUnit::epoch,
          TopLevel::balls_in_bins,
          "Choquette-Choo et al., Near-Exact Privacy Amplification for Matrix Mechanisms, ICLR 2025; composed: Zhu et "
          "al., Optimal Accounting of Differential Privacy via Characteristic Function, AISTATS 2022"),
      row(matrix_row, "correlated noise: bins, fixed or shuffled batches", Bound::upper, CompositionUnit::epoch,
          TopLevel::balls_in_bins,
          "Schuchardt and Kalinin, Sampling-Free Privacy Accounting for Matrix Mechanisms under Random Allocation, "
          "2026"),
  };
  return rows;
}

namespace {

/// Cyclic Poisson batches with noise of a p-banded C: a round moves CG by at most ‖c‖ in the p rows that only this
/// round's part of a series reaches, with the probability of its coin (docs/proofs/cyclic-poisson.md). Rounding: ‖c‖ up
/// for upper ends, down for lower ends.
AppliedTheorem banded_rounds(AppliedTheorem out, const SeriesLaw& law, const Strategy& strategy,
                             std::optional<Direction> direction) {
  if (strategy.bands() > law.groups)
    throw PrivacyError(cat("correlated noise of ", strategy.bands(), " bands with top level cyclic_poisson of ",
                           law.groups, " groups: nothing covers it, as parts of a series would meet; expected at most ",
                           law.groups, " bands (bsr, band_mf, or a file of so many coefficients)"));
  const double upper = std::sqrt(squared_sensitivity(strategy, strategy.steps(), 1)) * (1.0 + 1e-15);
  const double lower = std::sqrt(squared_sensitivity(strategy, strategy.steps(), 1, Gram::Side::lower)) * (1.0 - 1e-15);
  if (!(upper <= most_share))
    throw PrivacyError(cat("coefficients: one series moves the sums by up to ", upper, " times the clip norm; at most ",
                           most_share, " is accounted for"));
  const double rate = rate_of(law);
  const double least = out.noise_multiplier / upper * (1.0 - 1e-15);
  const double most = out.noise_multiplier / lower * (1.0 + 1e-15);
  out.pair = poisson_step(rate, least);
  out.own_curve = [=] {
    const auto one = [&](double sigma) -> std::unique_ptr<PrivacyCurve> {
      if (rate == 1.0) return std::make_unique<GaussianCurve>(sigma);  // every coin shows heads
      return curve_of_coins(rate, sigma, direction);
    };
    return std::make_unique<UpperCurve>(one(least),
                                        "composition of the exact pair of a round of cyclic Poisson batches with "
                                        "banded noise (Choquette-Choo et al. 2023)",
                                        one(most));
  };
  return out;
}

}  // namespace

AppliedTheorem series_theorem(const SeriesLaw& law, const Noise& noise, std::optional<Direction> direction,
                              CorrelatedMethod method) {
  if (noise.sampled &&
      (noise.kind == NoiseKind::independent || law.sampler != TopLevel::balls_in_bins || law.redraw != Redraw::once))
    throw PrivacyError(
        "noise by sampling: found without balls_in_bins drawn once and correlated noise; other batches and independent "
        "noise are accounted for without it");
  if (noise.sampled && law.bounded)
    throw PrivacyError(
        "noise by sampling: found with a largest batch; its test spends all of delta, of which cuts would need a "
        "share");
  if (noise.kind == NoiseKind::independent) return series_theorem(law, noise.multiplier, direction);
  if (noise.strategy == nullptr) throw Error(ExitCode::failure, "correlated noise without a strategy matrix");
  // The checks of numbers are those of independent noise.
  auto out = series_theorem(law, noise.multiplier, direction);
  if (law.sampler == TopLevel::cyclic_poisson) return banded_rounds(std::move(out), law, *noise.strategy, direction);
  const bool own_orders = has_own_orders(law.sampler, law.reshuffle, law.redraw);
  const auto probe = CorrelatedNoiseCurve(noise.strategy, law.sampler, law.batches, noise.multiplier, direction, method,
                                          {}, own_orders);
  const auto epochs = probe.planned();
  const double share = std::sqrt(probe.squared_reach(epochs) / static_cast<double>(epochs));
  if (!(share <= most_share))
    throw PrivacyError(cat("coefficients: one series moves the sums by up to ", share, " times the clip norm; at most ",
                           most_share,
                           " is accounted for: expected coefficients that are not so far above the first one"));
  out.theorem = matrix_row;
  out.bound = Bound::upper;
  out.unit = CompositionUnit::epoch;
  out.pair = DominatingPair({{share * (1.0 + 1e-14), 1.0}}, noise.multiplier);
  out.own_renyi = nullptr;  // that of independent noise
  if (law.sampler == TopLevel::balls_in_bins && !own_orders)
    out.own_renyi = [=, strategy = noise.strategy, sigma = noise.multiplier](std::uint64_t uses,
                                                                             std::span<const double> orders) {
      return bins_renyi(*strategy, law.batches, sigma, uses, orders);
    };
  out.own_curve = [=] {
    return std::make_unique<CorrelatedNoiseCurve>(noise.strategy, law.sampler, law.batches, noise.multiplier, direction,
                                                  method, noise.sampled, own_orders);
  };
  return out;
}

std::vector<SeriesLaw> all_series_laws(std::int64_t batches, std::optional<double> rate) {
  std::vector<SeriesLaw> out;
  for (const auto& [sampler, unused] : names_of(TopLevel{})) {
    SeriesLaw law{sampler, batches};
    if (sampler == TopLevel::poisson) law.rate = rate;
    if (sampler == TopLevel::cyclic_poisson) continue;  // needs the bands of a mechanism
    out.push_back(law);
    if (sampler == TopLevel::shuffled) law.reshuffle = Reshuffle::once;
    else if (sampler == TopLevel::balls_in_bins) law.redraw = Redraw::every_epoch;
    else continue;
    out.push_back(law);
  }
  return out;
}

std::vector<SeriesLaw> cyclic_laws(const SeriesLaw& law) {
  constexpr std::int64_t most_groups = 64;
  std::vector<SeriesLaw> out;
  for (std::int64_t groups = 1; groups <= std::min(law.batches, most_groups); groups *= 2) {
    out.push_back(law);
    out.back().groups = groups;
    if (law.rate) out.back().rate = cyclic_coin(*law.rate, groups);
  }
  return out;
}

SeriesLaw series_law_of(const SubsamplingScheme& scheme) {
  const auto& p = scheme.parameters();
  SeriesLaw law{p.top_level, scheme.steps_per_epoch(), {}, p.reshuffle, p.redraw, p.groups};
  if (tosses_coins(p.top_level)) law.rate = scheme.coin();
  if (p.top_level == TopLevel::without_replacement) law.rate = scheme.drawn_share();
  if (p.largest_batch) law.bounded = {scheme.sequences(), *p.largest_batch};
  return law;
}

AppliedTheorem series_theorem(const SeriesLaw& law, double noise_multiplier, std::optional<Direction> direction) {
  check_noise_multiplier_of_mechanism(noise_multiplier);
  if (law.batches < 1 || law.batches > largest_count)
    throw UsageError(cat("batches: found ", law.batches, "; expected an integer from 1 to ", largest_count));
  if (law.rate && !tosses_coins(law.sampler) && law.sampler != TopLevel::without_replacement)
    throw UsageError(cat("sampling rate: found ", *law.rate, " with top level ", name(law.sampler),
                         "; only poisson, cyclic_poisson and wor have one"));
  if (law.rate && (!(*law.rate > 0.0) || !(*law.rate <= 1.0)))
    throw UsageError(cat("sampling rate: found ", *law.rate, "; expected a number above 0 and at most 1"));
  if (law.reshuffle == Reshuffle::once && law.sampler != TopLevel::shuffled)
    throw UsageError(cat("reshuffle: found once with top level ", name(law.sampler), "; only shuffled has an order"));
  if (law.redraw == Redraw::every_epoch && law.sampler != TopLevel::balls_in_bins)
    throw UsageError(
        cat("redraw: found every_epoch with top level ", name(law.sampler), "; only balls_in_bins has bins"));
  if (law.groups != 1 && law.sampler != TopLevel::cyclic_poisson)
    throw UsageError(
        cat("groups: found ", law.groups, " with top level ", name(law.sampler), "; only cyclic_poisson has groups"));
  if (law.groups < 1 || law.groups > law.batches)
    throw UsageError(
        cat("bands: found ", law.groups, " with ", law.batches, " batches; cyclic_poisson expects from 1 to as many"));
  check_bounded(law);
  const auto& rows = series_table();
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& r) {
    return *r.top_level == law.sampler && (r.id == redrawn_row) == (law.redraw == Redraw::every_epoch);
  });
  const double rate = rate_of(law);
  auto pair = tosses_coins(law.sampler)                      ? poisson_step(rate, noise_multiplier)
              : law.sampler == TopLevel::without_replacement ? one_window_pair(rate, noise_multiplier)
                                                             : DominatingPair({{1.0, 1.0}}, noise_multiplier);
  AppliedTheorem out{row->id, row->bound, row->unit, law.batches, noise_multiplier, std::move(pair)};
  out.steps_per_round = law.groups;
  out.own_curve = [=] { return curve_of(law, rate, noise_multiplier, direction); };
  if (law.bounded) {
    out.bound = Bound::upper;
    out.cut = {[=](std::uint64_t uses) { return chance_of_cuts(law, rate, uses); },
               cat("batches cut to at most ", law.bounded->largest, " of ", law.bounded->series,
                   " records (tsdp docs/proofs/bounded-batches.md)")};
  }
  if (law.sampler == TopLevel::balls_in_bins)
    out.own_renyi = [=](std::uint64_t uses, std::span<const double> orders) {
      if (static_cast<double>(uses) * static_cast<double>(law.batches) > static_cast<double>(Strategy::most_steps))
        return std::vector<double>(orders.size(), std::numeric_limits<double>::infinity());
      if (law.redraw == Redraw::every_epoch) {
        auto divergences = bins_renyi(Strategy(StrategyKind::identity, {}, law.batches), law.batches, noise_multiplier,
                                      std::min<std::uint64_t>(uses, 1), orders);
        for (auto& divergence : divergences) divergence *= static_cast<double>(uses) * (1.0 + 1e-15);
        return divergences;
      }
      const auto steps = std::max<std::int64_t>(1, law.batches * static_cast<std::int64_t>(uses));
      return bins_renyi(Strategy(StrategyKind::identity, {}, steps), law.batches, noise_multiplier, uses, orders);
    };
  return out;
}

namespace {

/// The least ε′ ≥ start found for which (1 + e^ε′) δ(ε′) ≤ delta is certified; infinite if there is none.
double half_way(PrivacyCurve& curve, std::uint64_t uses, double delta, double start, double precision) {
  constexpr double most = 1e4;
  const auto excess = [&](double e) {
    const double at = curve.upper_delta(e, uses, precision);
    return std::log(std::max(at, 1e-320)) + e + std::log1p(std::exp(-e)) - std::log(delta) + 1e-12;
  };
  double low = start;
  double at_low = excess(low);
  if (at_low <= 0.0) return low;
  double high = std::max(1.25 * start, 0.05);
  double at_high = excess(high);
  while (at_high > 0.0) {
    if (high > most) return std::numeric_limits<double>::infinity();
    low = high;
    at_low = at_high;
    high *= 1.25;
    at_high = excess(high);
  }
  return bracket_root(excess, low, at_low, high, at_high, 0.1 * precision).second;
}

/// 2ε′ by two neighbours in a row, at the same δ.
double two_in_a_row(const AppliedTheorem& theorem, std::uint64_t uses, double delta, double start, double precision) {
  try {
    return 2.0 * half_way(*theorem.curve(), uses, delta, start, precision);
  } catch (const PrivacyError&) {
    return std::numeric_limits<double>::infinity();  // out of reach
  }
}

}  // namespace

Substitution substitution_of(const SeriesLaw& law, const Noise& noise, std::uint64_t uses, double epsilon, double delta,
                             double precision) {
  if (uses == 0) return {0.0, delta};
  if (law.sampler == TopLevel::without_replacement) return {epsilon, delta};
  double least = std::numeric_limits<double>::infinity();
  // Given batches, bins or coins, whose law is the same in both data sets, sums move by at most 2 wherever the series
  // takes part, also where batches are cut, as the same places stay; divergences are jointly convex.
  // With correlated noise that is one Gaussian mechanism for all epochs, or, of cyclic batches, one for every round.
  const bool by_use = noise.kind == NoiseKind::independent || law.sampler == TopLevel::cyclic_poisson;
  const double reached =
      noise.kind == NoiseKind::independent      ? 1.0
      : law.sampler == TopLevel::cyclic_poisson ? squared_sensitivity(*noise.strategy, noise.strategy->steps(), 1)
      : has_own_orders(law.sampler, law.reshuffle, law.redraw)
          ? squared_sensitivity_of_own_orders(*noise.strategy, law.batches, static_cast<std::int64_t>(uses))
          : squared_sensitivity(*noise.strategy, law.batches, static_cast<std::int64_t>(uses));
  const double sensitivity = noise.kind == NoiseKind::independent ? 2.0 : 2.0 * std::sqrt(reached) * (1.0 + 1e-15);
  try {
    least = GaussianCurve(noise.multiplier, sensitivity).epsilon(delta, by_use ? uses : 1).upper;
  } catch (const PrivacyError&) {
    // No ε that large is stated.
  }
  // Amplified laws may gain more from two neighbours. With correlated noise, by Rényi divergences, which do not take
  // seconds. What is left out is one of several upper bounds, so that the least of the others holds.
  constexpr double most_of_use = 20.0;
  if ((tosses_coins(law.sampler) || law.sampler == TopLevel::balls_in_bins) && epsilon <= most_of_use) {
    auto uncut = law;
    uncut.bounded.reset();
    const auto theorem = series_theorem(uncut, noise, std::nullopt, CorrelatedMethod::renyi);
    const double cuts = law.bounded ? chance_of_cuts(law, rate_of(law), uses) : 0.0;
    try {
      least = std::min(least, epsilon_with_cuts(delta, cuts, 0.1 * precision, [&](double left) {
                         const double found = two_in_a_row(theorem, uses, left, epsilon, precision);
                         if (!std::isfinite(found)) throw PrivacyError("two neighbours in a row are out of reach");
                         return found;
                       }));
    } catch (const PrivacyError&) {}  // then the other bound stands
  }
  // `epsilon` may be that of one direction, and a replaced series takes both: nothing follows from it.
  return std::isfinite(least) ? Substitution{least, delta} : Substitution{2.0 * epsilon, 1.0};
}

Substitution substitution_of(const SeriesLaw& law, double noise_multiplier, std::uint64_t uses, double epsilon,
                             double delta) {
  return substitution_of(law, noise_by(nullptr, noise_multiplier), uses, epsilon, delta);
}

Certificate asked_certificate(const AppliedTheorem& theorem, double delta, std::uint64_t uses) {
  const auto curve = theorem.curve();
  if (uses == 0 || !theorem_row(theorem.theorem).whole_series())
    return curve->methods();  // (others say the same of every answer)
  return curve->epsilon(delta, uses).why;
}

}  // namespace tsdp::privacy
