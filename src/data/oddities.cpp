#include "data/oddities.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>

#include "base/log.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "values.h"

namespace tsdp::data {
namespace {

using detail::begins;
using detail::in_quotes;

const Series& at(const Dataset& dataset, std::int64_t i) { return dataset.series[static_cast<std::size_t>(i)]; }

bool is_excessive(float value) { return std::abs(value) >= least_excessive; }

/// Whether it has four different values or more; sparse sales, or switches, may be the same by chance.
bool is_varied(const Series& series) {
  std::set<float> different;
  for (const float value : series.values)
    if (!std::isnan(value) && different.insert(value).second && different.size() == 4) return true;
  return false;
}

/// Varied, or long and not of one value: worth comparing with others.
bool tells_itself(const Series& series) {
  constexpr std::size_t least = 8;
  const auto& v = series.values;
  return is_varied(series) || (v.size() >= least && std::any_of(v.begin(), v.end(), [&](float x) {
                                 return !std::isnan(x) && x != v.front();
                               }));
}

void find_same_values(const Dataset& dataset, Oddities& found) {
  std::vector<std::int64_t> order;
  for (std::size_t i = 0; i < dataset.series.size(); ++i)
    if (tells_itself(dataset.series[i])) order.push_back(static_cast<std::int64_t>(i));
  // In this order a series that is the beginning of another is the beginning of the next.
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t i, std::int64_t j) {
    const auto &a = at(dataset, i), &b = at(dataset, j);
    if (a.start != b.start) return a.start < b.start;
    if (a.month_day != b.month_day) return a.month_day < b.month_day;
    const auto common = std::min(a.values.size(), b.values.size());
    const int way = std::memcmp(a.values.data(), b.values.data(), common * sizeof(float));
    return way != 0 ? way < 0 : a.values.size() < b.values.size();
  });
  std::set<std::int64_t> records;
  for (const auto i : order) records.insert(dataset.record_of(i));
  found.compared = records.size();
  auto& out = found.same_values;
  std::optional<std::int64_t> before;  // the last one of another record
  for (std::size_t k = 1; k < order.size(); ++k) {
    if (dataset.record_of(order[k - 1]) != dataset.record_of(order[k])) before = order[k - 1];
    if (before && begins(at(dataset, *before), at(dataset, order[k])))
      out.push_back({std::max(*before, order[k]), std::min(*before, order[k])});
  }
  std::sort(out.begin(), out.end(), [](const SeriesPair& a, const SeriesPair& b) { return a.series < b.series; });
}

/// "series 'a' and 'b', and 3 more such pairs".
std::string shown(const Dataset& dataset, const std::vector<SeriesPair>& pairs) {
  const auto& first = pairs.front();
  return cat("series ", in_quotes(at(dataset, first.earlier).id), " (number ", first.earlier, ") and ",
             in_quotes(at(dataset, first.series).id), " (number ", first.series, ")",
             pairs.size() > 1 ? cat(", and ", pairs.size() - 1, " more such pairs,") : std::string());
}

/// Why a series must not be there twice.
std::string guarantee_of(const Dataset& dataset) {
  return dataset.owner.empty() ? "since the guarantee is about values of one series: "
                               : "since the guarantee is about the series of one owner: ";
}

[[noreturn]] void refuse_repeated(const Dataset& dataset, const std::vector<SeriesPair>& pairs) {
  const auto &series = at(dataset, pairs.front().series), &earlier = at(dataset, pairs.front().earlier);
  const bool grows = std::all_of(pairs.begin(), pairs.end(), [&](const SeriesPair& pair) {
    const auto &a = at(dataset, pair.series), &b = at(dataset, pair.earlier);
    return begins(a, b) || begins(b, a);
  });
  const auto copies = 1 + std::count_if(pairs.begin(), pairs.end(), [&](const SeriesPair& pair) {
                        return at(dataset, pair.series).id == series.id;
                      });
  throw DataError(
      cat(dataset.name, ": found the name ", in_quotes(series.id), " ", copies, " times (series of ",
          earlier.values.size(), " and ", series.values.size(), " values, …)",
          grows ? ", each the beginning of the next, as GluonTS stores the rolling windows of a test split" : "",
          "; expected each series once, ", guarantee_of(dataset),
          grows ? "give the longest of each name alone (dataset.split: last with test_windows makes the rolling "
                  "windows), or the train file"
                : "rename or join them"));
}

/// Series with the same values under different names, or without names: copies, or rolling windows of a test split.
[[noreturn]] void refuse_same_values(const Dataset& dataset, const std::vector<SeriesPair>& pairs) {
  const bool grows = std::any_of(pairs.begin(), pairs.end(), [&](const SeriesPair& pair) {
    return at(dataset, pair.series).values.size() != at(dataset, pair.earlier).values.size();
  });
  throw DataError(
      cat(dataset.name, ": found ", shown(dataset, pairs), " with the same values from the same time on",
          grows ? ", some the beginning of others, as GluonTS stores the rolling windows of a test split" : "",
          "; expected each series once, ", guarantee_of(dataset),
          grows ? "give the longest of each alone (dataset.split: last with test_windows makes the rolling windows), "
                  "or the train file"
          : dataset.variables.empty()
              ? "leave the copies out"
              : "leave the copies out; a variable that all series share may be a covariate (dataset.covariates)"));
}

/// Whether half or more of the records whose values can be told from others (series, with all of their variables; or
/// owners, all of them) have such a copy.
bool are_half(const Dataset& dataset, const Oddities& found, const std::vector<SeriesPair>& copies) {
  if (dataset.owner.empty() && dataset.variables.empty()) return 2 * copies.size() >= found.compared;
  std::set<std::int64_t> with_copies;
  for (const auto& pair : copies) with_copies.insert(dataset.record_of(pair.series));
  return 2 * with_copies.size() >= (dataset.owner.empty()
                                        ? found.compared
                                        : std::set<std::int64_t>(dataset.owner.begin(), dataset.owner.end()).size());
}

/// The pairs that are not due to chance: those of varied series or, if half of the series or more are longer than
/// others that they begin with, and these pairs are more, all of these.
std::vector<SeriesPair> certain_copies(const Dataset& dataset, const Oddities& found) {
  std::vector<SeriesPair> out, beginnings;
  for (const auto& pair : found.same_values) {
    const auto &a = at(dataset, pair.series), &b = at(dataset, pair.earlier);
    if (a.values.size() != b.values.size()) beginnings.push_back(pair);
    if (is_varied(a.values.size() < b.values.size() ? a : b)) out.push_back(pair);
  }
  return are_half(dataset, found, beginnings) && beginnings.size() > out.size() ? beginnings : out;
}

void warn_of_copies(const Dataset& dataset, const Oddities& found, bool is_private) {
  const auto warn = [&](const std::vector<SeriesPair>& pairs, const char* what) {
    if (pairs.empty()) return;
    log::warning(cat(dataset.name, ": ", shown(dataset, pairs), " ", what,
                     !is_private ? ""
                     : dataset.owner.empty()
                         ? "; if they are one series, each of its values is in several, which the guarantee does "
                           "not count"
                         : "; if they are one series, it has several owners, which the guarantee does not count"));
  };
  warn(found.same_name, "have one name");
  warn(found.alike_name, "have names that differ by case or outer spaces alone");
  warn(found.same_values, "have the same values from the same time on");
}

}  // namespace

std::vector<std::int64_t> outliers_of(const Series& series) {
  constexpr std::size_t least_values = 100;
  constexpr double far = 10.0;
  std::vector<double> sorted;
  for (const float value : series.values)
    if (!std::isnan(value)) sorted.push_back(static_cast<double>(value));
  if (sorted.size() < least_values) return {};
  const auto nth = [&](std::size_t place) {
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(place), sorted.end());
    return sorted[place];
  };
  const double median = nth(sorted.size() / 2);
  for (auto& value : sorted) value = std::abs(value - median);
  const double usual = nth(99 * sorted.size() / 100);
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i < series.values.size() && usual > 0.0; ++i)
    if (std::abs(static_cast<double>(series.values[i]) - median) > far * usual)
      out.push_back(static_cast<std::int64_t>(i));
  return out;
}

Oddities oddities_of(const Dataset& dataset) {
  Oddities out;
  std::map<std::string, std::int64_t> by_name, by_form;
  for (std::size_t i = 0; i < dataset.series.size(); ++i) {
    const auto& series = dataset.series[i];
    const auto number = static_cast<std::int64_t>(i);
    const auto [named, is_new] = by_name.emplace(series.id, number);
    const auto [alike, is_new_form] = by_form.emplace(detail::lower_case(trimmed(series.id)), number);
    if (!is_new) {
      out.same_name.push_back({number, named->second});
    } else if (!is_new_form) {
      out.alike_name.push_back({number, alike->second});
    }
    if (series.lost > 0 && 20 * series.lost >= series.changes) out.not_told_apart.push_back(number);
    if (std::any_of(series.values.begin(), series.values.end(), is_excessive)) out.excessive.push_back(number);
  }
  find_same_values(dataset, out);
  return out;
}

void require_magnitudes(const Dataset& dataset) {
  for (const auto& series : dataset.series) {
    const auto found = std::find_if(series.values.begin(), series.values.end(), is_excessive);
    if (found == series.values.end()) continue;
    throw DataError(cat(dataset.name, ": series ", in_quotes(series.id), ": found the value ",
                        rounded(static_cast<double>(*found), 6), " at ",
                        moment_text(series.at(dataset.frequency, found - series.values.begin())),
                        "; expected magnitudes below ", rounded(static_cast<double>(least_excessive), 6),
                        ", which single precision can add and square (what is missing, as maps and climate data write "
                        "it with such numbers, is an empty field here)"));
  }
}

void require_one_variable(const Dataset& dataset, const std::string& what) {
  if (!dataset.variables.empty())
    throw UsageError(cat(dataset.name, ": found ", counted_series(dataset), ", which ", what,
                         " is not implemented for; expected one column of values"));
}

void treat_copies(const Dataset& dataset, Copies copies) {
  auto found = oddities_of(dataset);
  // An owner's series, and the variables of one series, are one record, whatever they have in common.
  std::erase_if(found.alike_name, [&](const SeriesPair& pair) {
    return dataset.record_of(pair.series) == dataset.record_of(pair.earlier);
  });
  if (copies != Copies::told) {
    if (!found.same_name.empty()) refuse_repeated(dataset, found.same_name);
    const auto certain = certain_copies(dataset, found);
    if (!certain.empty() && (copies == Copies::refused || are_half(dataset, found, certain)))
      refuse_same_values(dataset, certain);
  }
  warn_of_copies(dataset, found, copies != Copies::told);
}

void require_distinct(const Dataset& dataset, Copies copies) {
  require_magnitudes(dataset);
  for (const auto& series : dataset.series)
    if (2 * series.lost > series.changes)
      throw DataError(cat(dataset.name, ": series ", in_quotes(series.id), ": found ", series.lost, " of ",
                          series.changes,
                          " changes from a value to the next that single precision, which has 7 digits, does not hold; "
                          "expected values without a large common part: subtract a constant from all of them"));
  treat_copies(dataset, copies);
}

}  // namespace tsdp::data
