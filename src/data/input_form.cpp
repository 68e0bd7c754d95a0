#include "tsdp/data/input_form.h"

#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::data {
namespace {

template <typename Parse>
auto parsed(const std::string& name, const std::string& text, Parse parse) {
  try {
    return parse(text);
  } catch (const UsageError& error) {
    throw UsageError(cat(name, ": ", error.what()));
  }
}

Frequency frequency_of(const std::filesystem::path& file, Format format, const std::string& stated,
                       const std::string& name, const std::optional<Frequency>& usual) {
  if (!stated.empty()) return parsed(name, stated, Frequency::parse);
  if (usual) return *usual;
  const auto own = format == Format::tsf ? tsf_frequency(file) : std::nullopt;
  if (own) return *own;
  throw UsageError(cat(name, ": not given, and ", file.string(), " (", data::name(format),
                       ") does not state it; expected a calendar step such as 10min, 1h, 1D, 1B"));
}

std::optional<Moment> start_of(const std::filesystem::path& file, Format format, const std::string& stated,
                               const std::string& name) {
  if (stated.empty()) {
    if (format != Format::lstnet) return std::nullopt;
    throw UsageError(cat(name, ": not given; ", file.string(),
                         " (lstnet) has no time stamps, so the moment of its first row is expected, such as 2015-01-01"));
  }
  Moment start = 0;
  if (!parse_moment(stated, start))
    throw UsageError(cat(name, ": found '", stated, "'; expected \"YYYY-MM-DD\" or \"YYYY-MM-DD hh:mm\""));
  return start;
}

}  // namespace

Format stated_format(const std::filesystem::path& file, const std::string& stated, const std::optional<Format>& by_name,
                     const std::string& name) {
  if (!stated.empty()) return parsed(name, stated, format_named);
  if (by_name) return *by_name;
  throw UsageError(cat(file.string(),
                       ": the name does not tell the form; expected one that ends in .txt (lstnet), .tsf, .csv or "
                       ".jsonl, also with .gz, or ",
                       name, " with one of ", join(format_names(), ", ")));
}

ReadOptions read_options_of(const std::filesystem::path& file, const StatedForm& stated, const FormNames& names,
                            const std::optional<Frequency>& usual) {
  ReadOptions options;
  const auto by_name = stated.format.empty() ? format_of_file(file) : std::nullopt;
  options.format = stated_format(file, stated.format, by_name, names.format);
  options.frequency = frequency_of(file, options.format, stated.frequency, names.frequency, usual);
  options.start = start_of(file, options.format, stated.start, names.start);
  return options;
}

}  // namespace tsdp::data
