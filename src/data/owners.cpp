#include "data/owners.h"

#include <map>
#include <optional>
#include <utility>

#include "base/log.h"
#include "csv_fields.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::data {
namespace {

/// The column of names: the one that is stated, the one of a usual name or, in a file of two columns, the other one.
std::size_t place_of_names(const detail::CsvRows& rows, const std::string& stated, std::size_t owners) {
  const auto refuse = [&](const std::string& found) {
    rows.fail_header(cat(found,
                         "; expected two columns, or the names of the series in the column of "
                         "dataset.columns.item, or in one of ",
                         join(detail::known_names(detail::Role::item), ", ")));
  };
  if (!stated.empty()) {
    if (const auto place = rows.place_of(stated); place && *place != owners) return *place;
    refuse(cat(" without a column ", detail::in_quotes(stated), " of names beside that of owners"));
  }
  std::vector<std::size_t> known;
  for (const auto& name : detail::known_names(detail::Role::item))
    if (const auto place = rows.place_of(name); place && *place != owners) known.push_back(*place);
  if (known.size() > 1) refuse(" with several columns of names");
  if (known.size() == 1) return known.front();
  if (rows.names().size() != 2 || rows.names()[1 - owners].empty()) refuse(" without a column of names that is known");
  return 1 - owners;
}

/// Warns of owners that are two by their spelling alone.
void warn_of_alike(const std::filesystem::path& file, const std::map<std::string, std::int64_t, std::less<>>& owners) {
  std::map<std::string, std::string> by_form;
  for (const auto& [owner, number] : owners)
    if (const auto [place, added] = by_form.try_emplace(detail::lower_case(trimmed(owner)), owner); !added)
      log::warning(cat(file.string(), ": owners ", detail::in_quotes(place->second), " and ", detail::in_quotes(owner),
                       " differ by case or outer spaces alone; if they are one, the guarantee counts it as two"));
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
    const auto [place, added] =
        known.try_emplace(detail::to_utf8(fields[names]), Known{detail::to_utf8(owner), text.line()});
    if (detail::says_nothing(owner))
      text.fail(static_cast<std::int64_t>(*owners) + 1,
                cat("found no owner of series ", detail::in_quotes(fields[names]), "; expected one for each series"));
    if (!added && place->second.owner != detail::to_utf8(owner))
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
  warn_of_alike(file, number_of);
  return out;
}

}  // namespace tsdp::data
