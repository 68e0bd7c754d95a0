#include "tsdp/privacy/terms/scheme.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "privacy/terms/numbers.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::privacy {

SeriesLengths::SeriesLengths(std::vector<std::int64_t> each)
    : count_(static_cast<std::int64_t>(each.size())), distinct_(each), each_(std::move(each)) {
  std::sort(distinct_.begin(), distinct_.end());
  distinct_.erase(std::unique(distinct_.begin(), distinct_.end()), distinct_.end());
}

SeriesLengths::SeriesLengths(std::vector<std::int64_t> each, Owners owners) : SeriesLengths(std::move(each)) {
  grouped_ = std::move(owners);
  const auto& of = grouped_.of;
  if (of.size() != each_.size())
    throw UsageError(cat("owners: found ", of.size(), " of ", each_.size(), " series; expected one for each"));
  for (std::size_t s = 0; s < of.size(); ++s) {
    const auto next = static_cast<std::int64_t>(owned_.size());
    if (of[s] < 0 || of[s] > next)
      throw UsageError(cat("owners: found ", of[s], " for series ", s, "; expected an integer from 0 to ", next));
    if (of[s] == next) owned_.emplace_back();
    owned_[static_cast<std::size_t>(of[s])].push_back(static_cast<std::int64_t>(s));
  }
  owners_ = static_cast<std::int64_t>(owned_.size());
}

SeriesLengths SeriesLengths::between(std::int64_t count, std::int64_t shortest, std::int64_t longest,
                                     std::optional<std::int64_t> owners, std::string grouping) {
  SeriesLengths out;
  out.count_ = count;
  if (count > 0) out.distinct_.push_back(shortest);
  if (count > 1 && longest != shortest) out.distinct_.push_back(longest);
  if (owners && (*owners < 1 || *owners > count))
    throw UsageError(cat("owners: found ", *owners, " of ", count, " series; expected from 1 to as many"));
  out.owners_ = owners;
  out.grouped_.grouping = std::move(grouping);
  return out;
}

SeriesLengths SeriesLengths::of_variables(std::int64_t variables) const {
  if (variables < 1 || variables > largest_count)
    throw UsageError(cat("variables: found ", variables, "; expected an integer from 1 to ", largest_count));
  if (variables > 1 && has_owners())
    throw UsageError(
        cat("variables: found ", variables, " with owners of series, which is not implemented; expected 1"));
  auto out = *this;
  out.variables_ = variables;
  return out;
}

std::int64_t SeriesLengths::operator[](std::int64_t series) const {
  if (!each_.empty()) return each_.at(static_cast<std::size_t>(series));
  return series == count_ - 1 ? longest() : shortest();
}

SubsamplingScheme::SubsamplingScheme(Parameters parameters) : parameters_(std::move(parameters)) {
  const auto& p = parameters_;
  // The upper end keeps every product and sum of two of them inside 64 bits.
  const auto at_least_one = [](const char* what, std::int64_t value) {
    if (value < 1 || value > largest_count)
      throw UsageError(cat(what, ": found ", value, "; expected an integer from 1 to ", largest_count));
  };
  at_least_one("number of sequences", sequences());
  at_least_one("context length", p.context_length);
  at_least_one("forecast length", p.forecast_length);
  at_least_one("batch size", p.batch_size);
  at_least_one("subsequences per sequence", p.subsequences_per_sequence);
  if (!p.batches && !p.rate && p.subsequences_per_sequence > p.batch_size)  // before the sequences of a batch divide
    throw UsageError(cat("subsequences per sequence: found ", p.subsequences_per_sequence, " with batch size ",
                         p.batch_size, "; expected at most the batch size (lambda <= Lambda)"));
  check_series();
  check_groups();
  if (p.largest_batch && (static_cast<double>(*p.largest_batch) < expected_sequences() * (1.0 - 0x1p-40) ||
                          *p.largest_batch > sequences()))
    throw UsageError(cat("largest batch: found ", *p.largest_batch, " where ", rounded(expected_sequences(), 6), " of ",
                         sequences(), p.lengths.has_owners() ? " owners" : " series",
                         " are expected in a batch; expected from as many to all of them"));
  if (p.batches || p.rate)
    parameters_.batch_size =
        std::clamp<std::int64_t>(std::llround(expected_sequences() * static_cast<double>(p.subsequences_per_sequence)),
                                 p.subsequences_per_sequence, largest_count);
  if (!(p.context_noise >= 0.0) || !std::isfinite(p.context_noise) || !(p.forecast_noise >= 0.0) ||
      !std::isfinite(p.forecast_noise))
    throw UsageError(cat("augmentation noise: found ", p.context_noise, " and ", p.forecast_noise,
                         "; expected finite numbers of at least 0"));
  // What v bounds, one value or the norm of a step's change, would have to be said; nothing here does.
  if (has_noise_on_data() && variables() > 1)
    throw PrivacyError(cat("augmentation noise: found some with series of ", variables(),
                           " variables, which is not implemented; expected 0, or series of one variable"));
  for (const auto length : p.lengths.distinct()) at_least_one("sequence length", length);
  const auto shortest = p.lengths.shortest();
  if (shortest < p.forecast_length)
    throw PrivacyError(cat("sequence length: found ", shortest, " with forecast length ", p.forecast_length,
                           "; expected at least the forecast length (L >= L_F)"));
}

void SubsamplingScheme::check_series() const {
  const auto& p = parameters_;
  if (p.reshuffle == Reshuffle::once && p.top_level != TopLevel::shuffled)
    throw UsageError(cat("reshuffle: found once with top level ", name(p.top_level), "; only shuffled has an order"));
  if (p.redraw == Redraw::every_epoch && p.top_level != TopLevel::balls_in_bins)
    throw UsageError(
        cat("redraw: found every_epoch with top level ", name(p.top_level), "; only balls_in_bins has bins"));
  if (p.lengths.has_owners() && p.record != Record::series)
    throw UsageError("owners: found some with windows as records; expected records of whole series");
  if (p.largest_batch && (p.record != Record::series || !draws_each_series()))
    throw UsageError(cat("largest batch: found ", *p.largest_batch, " with ",
                         p.record == Record::series ? "whole series" : "windows", " as records and top level ",
                         name(p.top_level),
                         "; expected it with whole series and poisson, cyclic_poisson or balls_in_bins, as other "
                         "batches have one size"));
  if (!p.batches && !p.rate) return;
  if (p.record != Record::series)
    throw UsageError("batches, sampling rate: found one of them with windows as records; expected the batch size");
  if (p.batches && p.rate)
    throw UsageError(cat("sampling rate: found ", *p.rate, " and ", *p.batches, " batches; expected one of them"));
  if (p.rate) {
    if (p.top_level != TopLevel::poisson && p.top_level != TopLevel::cyclic_poisson)
      throw UsageError(cat("sampling rate: found ", *p.rate, " with top level ", name(p.top_level),
                           "; only poisson and cyclic_poisson have one"));
    if (!(*p.rate > 0.0) || !(*p.rate <= 1.0))
      throw UsageError(cat("sampling rate: found ", *p.rate, "; expected a number above 0 and at most 1"));
    return;
  }
  const auto* const records = p.lengths.has_owners() ? " owners" : " series";
  if (*p.batches < 1 || *p.batches > sequences())
    throw UsageError(cat("batches: found ", *p.batches, " of ", sequences(), records,
                         "; expected an integer from 1 to their number"));
  if (draws_each_series()) return;
  // Fixed batches of one size, except for ghosts in the last one.
  const auto size = sequences_per_batch();
  if (const auto made = (sequences() + size - 1) / size; made != *p.batches)
    throw UsageError(cat("batches: found ", *p.batches, " of ", sequences(), records, "; batches of one size are ",
                         made, " (of ", size, records, ") or ", (sequences() + size - 2) / (size - 1), " (of ",
                         size - 1, ")"));
}

void SubsamplingScheme::check_groups() const {
  const auto& p = parameters_;
  if (p.groups != 1 && p.top_level != TopLevel::cyclic_poisson)
    throw UsageError(
        cat("groups: found ", p.groups, " with top level ", name(p.top_level), "; only cyclic_poisson has groups"));
  if (p.top_level == TopLevel::cyclic_poisson && p.record != Record::series)
    throw PrivacyError(
        "top level cyclic_poisson with windows as records: nothing covers it; records of whole series are");
  if (p.groups < 1 || p.groups > steps_per_epoch())
    throw UsageError(cat("bands: found ", p.groups, " with ", steps_per_epoch(),
                         " steps of an epoch; cyclic_poisson expects from 1 to as many"));
}

std::int64_t SubsamplingScheme::sequences_per_batch() const noexcept {
  const auto& p = parameters_;
  if (draws_each_series()) return std::max<std::int64_t>(1, std::llround(expected_sequences()));
  if (p.batches) return (sequences() + *p.batches - 1) / *p.batches;
  return std::min(sequences(), p.batch_size / p.subsequences_per_sequence);
}

double SubsamplingScheme::drawn_share() const noexcept {
  const auto& p = parameters_;
  const auto n = static_cast<double>(sequences());
  switch (p.top_level) {
    case TopLevel::poisson:
    case TopLevel::cyclic_poisson: {
      // A quotient is off by 2^-53 of itself, which the next double makes up for.
      const double rate = p.rate
                              ? *p.rate
                              : std::nextafter(p.batches ? 1.0 / static_cast<double>(*p.batches)
                                                         : static_cast<double>(p.batch_size) /
                                                               (static_cast<double>(p.subsequences_per_sequence) * n),
                                               1.0);
      return of_53_bits(rate);
    }
    case TopLevel::balls_in_bins: return 1.0 / static_cast<double>(steps_per_epoch());
    case TopLevel::deterministic:
    case TopLevel::shuffled:
    case TopLevel::without_replacement: break;
  }
  return static_cast<double>(sequences_per_batch()) / n;
}

double SubsamplingScheme::coin() const noexcept { return cyclic_coin(drawn_share(), parameters_.groups); }

double SubsamplingScheme::expected_sequences() const noexcept {
  return draws_each_series() ? drawn_share() * static_cast<double>(sequences())
                             : static_cast<double>(sequences_per_batch());
}

std::int64_t SubsamplingScheme::steps_per_epoch() const noexcept {
  const auto& p = parameters_;
  if (p.batches) return *p.batches;
  // A rate raised by less than that is still 1/T.
  if (p.rate)
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::min(1.0 / *p.rate * (1.0 + 0x1p-40), 1e9)));
  if (p.record == Record::series && (p.top_level == TopLevel::deterministic || p.top_level == TopLevel::shuffled))
    return (sequences() + sequences_per_batch() - 1) / sequences_per_batch();
  return std::max<std::int64_t>(1, sequences() * p.subsequences_per_sequence / p.batch_size);
}

NewKey SubsamplingScheme::new_key() const noexcept {
  switch (parameters_.top_level) {
    case TopLevel::shuffled: return parameters_.reshuffle == Reshuffle::once ? NewKey::never : NewKey::at_next_epoch;
    case TopLevel::balls_in_bins: return parameters_.redraw == Redraw::once ? NewKey::never : NewKey::at_next_epoch;
    case TopLevel::deterministic:
    case TopLevel::without_replacement:
    case TopLevel::poisson:
    case TopLevel::cyclic_poisson: break;
  }
  return NewKey::at_any_step;
}

std::int64_t SubsamplingScheme::windows_of(std::int64_t sequence) const {
  const auto& lengths = parameters_.lengths;
  const auto of_one = [&](std::int64_t series) { return lengths[series] - parameters_.forecast_length + 1; };
  if (!lengths.has_owners()) return of_one(sequence);
  std::int64_t windows = 0;
  for (const auto series : lengths.series_of(sequence)) windows += of_one(series);
  return windows;
}

SubsamplingScheme::Window SubsamplingScheme::window_of(std::int64_t sequence, std::int64_t number) const {
  const auto& lengths = parameters_.lengths;
  if (!lengths.has_owners()) return {sequence, number};
  for (const auto series : lengths.series_of(sequence)) {
    const auto windows = lengths[series] - parameters_.forecast_length + 1;
    if (number < windows) return {series, number};
    number -= windows;
  }
  throw Error(ExitCode::failure, "a window beyond the last one of its owner");
}

std::int64_t SubsamplingScheme::parts_of_a_series() const noexcept {
  const auto lambda = parameters_.subsequences_per_sequence;
  if (parameters_.record == Record::series) return 1;
  return variables() >= 64 ? lambda : (lambda * variables() + 63) / 64;
}

std::int64_t SubsamplingScheme::expected_windows() const noexcept {
  // With replacement λ windows per series; Poisson T·min(1, λ/T) = min(T, λ), the same unless the series is tiny.
  // Raising a rate to a multiple of 2⁻⁵³ adds no window.
  return static_cast<std::int64_t>(std::ceil(
             expected_sequences() * static_cast<double>(parameters_.subsequences_per_sequence) * (1.0 - 0x1p-40))) *
         variables();
}

double SubsamplingScheme::mean_windows() const noexcept {
  const auto& p = parameters_;
  const bool dealt =
      p.record == Record::series && (p.top_level == TopLevel::deterministic || p.top_level == TopLevel::shuffled);
  const double drawn =
      dealt ? static_cast<double>(sequences()) / static_cast<double>(steps_per_epoch()) : expected_sequences();
  // That a rate was raised to a multiple of 2⁻⁵³ is nothing to tell.
  return std::round(drawn * static_cast<double>(p.subsequences_per_sequence) * 1e9) / 1e9;
}

std::optional<std::int64_t> SubsamplingScheme::most_windows() const noexcept {
  const auto& p = parameters_;
  if (p.bottom_level != BottomLevel::with_replacement || (draws_each_series() && !p.largest_batch)) return std::nullopt;
  return p.largest_batch.value_or(sequences_per_batch()) * p.subsequences_per_sequence * variables();
}

}  // namespace tsdp::privacy
