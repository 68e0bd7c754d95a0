#include "data/describe.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "text_file.h"
#include "tsdp/base/text.h"

namespace tsdp::data {
namespace {

using Json = nlohmann::ordered_json;

/// Values known before the first range to forecast.
std::int64_t known_values(std::int64_t length, const DescribeOptions& options) {
  const auto known = options.split ? first_test_place(length, *options.split) : length - options.prediction_length;
  return std::max<std::int64_t>(0, known);
}

double median(std::vector<std::int64_t> lengths) {
  const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
  std::nth_element(lengths.begin(), middle, lengths.end());
  if (lengths.size() % 2 == 1) return static_cast<double>(*middle);
  return 0.5 * static_cast<double>(*middle + *std::max_element(lengths.begin(), middle));
}

double missing_share(const Description& d) { return static_cast<double>(d.missing) / static_cast<double>(d.places); }

/// JSON text must be UTF-8, but an id that did not come from a reader need not be.
std::string id_of(const Dataset& dataset, std::int64_t series) {
  return detail::to_utf8(dataset.series[static_cast<std::size_t>(series)].id);
}

/// The same in quotes on one line.
std::string shown_id(const Dataset& dataset, std::int64_t series) {
  std::string id = id_of(dataset, series);
  std::replace_if(id.begin(), id.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
  return cat("'", id, "'");
}

}  // namespace

Description describe(const Dataset& dataset, const DescribeOptions& options) {
  Description d;
  d.season_length = options.season_length;
  d.least_length = std::max<std::int64_t>(1, options.prediction_length + options.context_length);
  if (options.split) d.least_length = std::max(d.least_length, least_length(*options.split));
  d.first = std::numeric_limits<Moment>::max();
  d.last = std::numeric_limits<Moment>::min();
  d.least = std::numeric_limits<float>::infinity();
  d.greatest = -std::numeric_limits<float>::infinity();
  std::vector<std::int64_t> lengths;
  for (std::size_t i = 0; i < dataset.series.size(); ++i) {
    const auto& series = dataset.series[i];
    const auto number = static_cast<std::int64_t>(i);
    const auto length = static_cast<std::int64_t>(series.values.size());
    lengths.push_back(length);
    const auto places = length + series.cut;
    std::int64_t missing = series.cut;
    float least = std::numeric_limits<float>::infinity();
    float greatest = -least;
    for (const float value : series.values) {
      if (std::isnan(value)) {
        ++missing;
        continue;
      }
      least = std::min(least, value);
      greatest = std::max(greatest, value);
    }
    d.places += places;
    d.missing += missing;
    d.first = std::min(d.first, series.start);
    d.last = std::max(d.last, series.at(dataset.frequency, length - 1));
    d.least = std::min(d.least, least);
    d.greatest = std::max(d.greatest, greatest);
    if (const auto outliers = outliers_of(series).size(); outliers > 0)
      d.outlying.push_back({number, static_cast<double>(outliers)});
    if (length < d.least_length) d.too_short.push_back({number, static_cast<double>(length)});
    if (least == greatest && series.lost == 0) d.constant.push_back({number, static_cast<double>(least)});
    if (2 * missing > places)
      d.mostly_missing.push_back({number, static_cast<double>(missing) / static_cast<double>(places)});
    if (const auto known = known_values(length, options); known < options.season_length)
      d.without_season.push_back({number, static_cast<double>(known)});
  }
  d.shortest = *std::min_element(lengths.begin(), lengths.end());
  d.longest = *std::max_element(lengths.begin(), lengths.end());
  d.median_length = median(std::move(lengths));
  d.odd = oddities_of(dataset);
  return d;
}

Json description_json(const Dataset& dataset, const Description& d) {
  const auto findings = [&](const std::vector<Finding>& list, const char* what) {
    Json out = Json::array();
    for (const auto& finding : list) {
      Json row = {{"series", id_of(dataset, finding.series)}, {"index", finding.series}};
      const auto whole = static_cast<std::int64_t>(finding.number);
      if (&list == &d.too_short || &list == &d.without_season || &list == &d.outlying) {
        row[what] = whole;
      } else {
        row[what] = finding.number;
      }
      out.push_back(row);
    }
    return out;
  };
  Json out;
  out["name"] = detail::to_utf8(dataset.name);
  out["series"] = dataset.series.size();  // each variable of a series counts
  if (!dataset.variables.empty()) out["variables"] = dataset.variables;
  out["frequency"] = dataset.frequency.text();
  out["first"] = moment_text(d.first);
  out["last"] = moment_text(d.last);
  out["length"] = {{"min", d.shortest}, {"median", d.median_length}, {"max", d.longest}};
  out["values"] = d.places - d.missing;
  out["missing_share"] = missing_share(d);
  out["range"] = {{"min", static_cast<double>(d.least)}, {"max", static_cast<double>(d.greatest)}};
  out["least_length"] = d.least_length;
  out["season_length"] = d.season_length;
  out["seasonal_naive"] = d.without_season.empty();
  out["too_short"] = findings(d.too_short, "length");
  out["constant"] = findings(d.constant, "value");
  out["mostly_missing"] = findings(d.mostly_missing, "missing_share");
  out["without_season"] = findings(d.without_season, "known_values");
  out["outlying"] = findings(d.outlying, "values");
  const auto pairs = [&](const std::vector<SeriesPair>& list) {
    Json all = Json::array();
    for (const auto& pair : list)
      all.push_back({{"series", id_of(dataset, pair.series)},
                     {"index", pair.series},
                     {"earlier", id_of(dataset, pair.earlier)},
                     {"earlier_index", pair.earlier}});
    return all;
  };
  const auto numbers = [&](const std::vector<std::int64_t>& list) {
    Json all = Json::array();
    for (const auto i : list) all.push_back({{"series", id_of(dataset, i)}, {"index", i}});
    return all;
  };
  out["same_name"] = pairs(d.odd.same_name);
  out["alike_name"] = pairs(d.odd.alike_name);
  out["same_values"] = pairs(d.odd.same_values);
  out["not_told_apart"] = numbers(d.odd.not_told_apart);
  out["excessive"] = numbers(d.odd.excessive);
  return out;
}

std::string description_text(const Dataset& dataset, const Description& d) {
  const auto number = [](double value) { return rounded(value, 6); };
  std::string out = cat(dataset.name, ": ", counted_series(dataset), ", steps of ", dataset.frequency.text(),
                        "\n  time: ", moment_text(d.first), " to ", moment_text(d.last), "\n  length: ", d.shortest,
                        " to ", d.longest, ", median ", d.median_length, "\n  values: ", d.places - d.missing,
                        ", from ", number(static_cast<double>(d.least)), " to ",
                        number(static_cast<double>(d.greatest)), "; missing: ", d.missing, " (",
                        number(100 * missing_share(d)), " %)\n  seasonal naive, season of ", d.season_length, ": ");
  out += d.without_season.empty()
             ? "possible for all series\n"
             : cat("too few known values in ", d.without_season.size(), " of ", dataset.series.size(), " series\n");
  const auto put = [&](const std::vector<Finding>& list, const std::string& title, const auto& what) {
    if (list.empty()) return;
    out += cat("  ", title, ": ", list.size(), "\n");
    for (const auto& finding : list)
      out += cat("    series ", shown_id(dataset, finding.series), " (number ", finding.series, "): ", what(finding),
                 "\n");
  };
  put(d.too_short, "too short", [&](const Finding& f) {
    return cat(static_cast<std::int64_t>(f.number), " values, at least ", d.least_length, " are needed");
  });
  put(d.constant, "constant", [&](const Finding& f) { return cat("all values are ", number(f.number)); });
  put(d.mostly_missing, "mostly missing",
      [&](const Finding& f) { return cat(number(100 * f.number), " % are missing"); });
  put(d.without_season, "less than a season known", [&](const Finding& f) {
    return cat(static_cast<std::int64_t>(f.number), " known values, at least ", d.season_length, " make a season");
  });
  put(d.outlying, "values far from all others of the series; one is scored by what it is, and may decide a score",
      [&](const Finding& f) {
        const auto& series = dataset.series[static_cast<std::size_t>(f.series)];
        const auto places = outliers_of(series);
        const auto size = [&](std::int64_t place) { return std::abs(series.values[static_cast<std::size_t>(place)]); };
        const auto largest = *std::max_element(places.begin(), places.end(),
                                               [&](std::int64_t a, std::int64_t b) { return size(a) < size(b); });
        return cat(places.size(), ", such as ", number(series.values[static_cast<std::size_t>(largest)]), " at ",
                   moment_text(series.at(dataset.frequency, largest)));
      });
  const auto put_pairs = [&](const std::vector<SeriesPair>& list, const std::string& title) {
    if (list.empty()) return;
    out += cat("  ", title, ": ", list.size(), "\n");
    for (const auto& pair : list)
      out += cat("    series ", shown_id(dataset, pair.series), " (number ", pair.series, "), as ",
                 shown_id(dataset, pair.earlier), " (number ", pair.earlier, ")\n");
  };
  put_pairs(d.odd.same_name, "one name again");
  put_pairs(d.odd.alike_name, "names that differ by case or outer spaces alone");
  put_pairs(d.odd.same_values, "the same values, or their beginning, again");
  const auto put_numbers = [&](const std::vector<std::int64_t>& list, const std::string& title, const auto& what) {
    if (list.empty()) return;
    out += cat("  ", title, ": ", list.size(), "\n");
    for (const auto i : list)
      out += cat("    series ", shown_id(dataset, i), " (number ", i,
                 "): ", what(dataset.series[static_cast<std::size_t>(i)]), "\n");
  };
  put_numbers(d.odd.not_told_apart, "not told apart in single precision, which has 7 digits", [](const Series& series) {
    return cat(series.lost, " of ", series.changes, " changes from a value to the next are lost: subtract a constant");
  });
  put_numbers(d.odd.excessive, "values too large to train on", [](const Series&) {
    return cat("a magnitude of ", rounded(static_cast<double>(least_excessive), 6), " or more");
  });
  return out;
}

}  // namespace tsdp::data
