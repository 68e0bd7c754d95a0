#include "data/owners.h"

#include <map>
#include <optional>
#include <utility>

#include "csv_fields.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::data {
namespace {

/// The column of names: the one that is stated, the first of a usual name, or the first that is not the owners'.
std::size_t place_of_names(const detail::CsvRows& rows, const std::string& stated, std::size_t owners) {
  if (const auto place = stated.empty() ? std::nullopt : rows.place_of(stated)) return *place;
  for (const auto& name : detail::known_names(detail::Role::item))
    if (const auto place = rows.place_of(name); place && *place != owners) return *place;
  const auto first = rows.first();
  return first == owners ? first + 1 : first;
}

}  // namespace

std::vector<std::int64_t> read_owners(const std::filesystem::path& file, const Dataset& dataset,
                                      const std::string& item, const std::string& column, const std::string& key) {
  detail::TextFile text(file);
  detail::CsvRows rows(text, "a header with columns for the series and their owners", "a series and its owner");
  const auto owners = rows.place_of(column);
  if (!owners || rows.names().size() < 2)
    throw UsageError(cat(key, ": found '", column, "', which is no column of ", file.string(),
                         " beside the names of the series; expected one of: ", join(rows.names(), ", ")));
  const auto names = place_of_names(rows, item, *owners);
  struct Known {
    std::string owner;
    std::int64_t line;
  };
  std::map<std::string, Known, std::less<>> known;
  while (rows.next()) {
    const auto& fields = rows.fields();
    const auto owner = fields[*owners];
    const auto [place, added] = known.try_emplace(std::string(fields[names]), Known{std::string(owner), text.line()});
    if (owner.empty())
      text.fail(static_cast<std::int64_t>(*owners) + 1,
                cat("found no owner of series ", detail::in_quotes(fields[names]), "; expected one for each series"));
    if (!added && place->second.owner != owner)
      text.fail(static_cast<std::int64_t>(*owners) + 1,
                cat("found the owner ", detail::in_quotes(owner), " of series ", detail::in_quotes(fields[names]),
                    ", and ", detail::in_quotes(place->second.owner), " in line ", place->second.line,
                    "; expected one owner for each series"));
  }
  std::map<std::string, std::int64_t, std::less<>> number_of;
  std::vector<std::int64_t> out;
  for (const auto& series : dataset.series) {
    const auto found = known.find(series.id);
    if (found == known.end())
      throw DataError(cat(file.string(), ": found no row of series ", detail::in_quotes(series.id),
                          "; expected the owner of each series, by names as ", dataset.name, " has them"));
    out.push_back(
        number_of.try_emplace(found->second.owner, static_cast<std::int64_t>(number_of.size())).first->second);
  }
  return out;
}

}  // namespace tsdp::data
