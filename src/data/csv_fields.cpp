#include "csv_fields.h"

#include <algorithm>

#include "tsdp/base/text.h"

namespace tsdp::data::detail {

std::vector<std::string> csv_fields(const TextFile& file, std::string_view line, const char* expected) {
  std::vector<std::string> fields;
  std::size_t at = 0;
  while (true) {
    std::string field;
    std::size_t begin = line.find_first_not_of(" \t", at);
    if (begin != std::string_view::npos && line[begin] == '"') {
      for (at = begin + 1;; ++at) {
        if (at >= line.size())
          file.fail(static_cast<std::int64_t>(fields.size()) + 1,
                    cat("found ", in_quotes(line.substr(begin)), " without a closing quote; expected ", expected));
        if (line[at] == '"') {
          if (at + 1 >= line.size() || line[at + 1] != '"') break;
          ++at;
        }
        field += line[at];
      }
      const std::size_t comma = std::min(line.find(',', at), line.size());
      if (!trimmed(line.substr(at + 1, comma - at - 1)).empty())
        file.fail(
            static_cast<std::int64_t>(fields.size()) + 1,
            cat("found ", in_quotes(line.substr(begin, comma - begin)), "; expected a comma after the closing quote"));
      at = comma;
    } else {
      const std::size_t comma = std::min(line.find(',', at), line.size());
      field = trimmed(line.substr(at, comma - at));
      at = comma;
    }
    fields.push_back(std::move(field));
    if (at >= line.size()) return fields;
    ++at;
  }
}

Moment time_stamp(const TextFile& file, std::int64_t column, std::string_view text) {
  Moment moment = 0;
  if (!parse_moment(text, moment))
    file.fail(column,
              cat("found ", in_quotes(text), "; expected a time stamp such as 2015-01-31 or 2015-01-31 13:00:00"));
  return moment;
}

bool is_long_header(const std::vector<std::string>& names) {
  const auto has = [&](const char* name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  return has("unique_id") && has("ds") && has("y");
}

}  // namespace tsdp::data::detail
