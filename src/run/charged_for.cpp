#include "run/charged_for.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "data/covariates.h"
#include "settings/setup.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/text.h"

namespace tsdp::training {
namespace {

constexpr std::string_view training_values_line = "training values, SHA-256: ";
constexpr std::string_view run_line = "run: ";
constexpr std::string_view covariates_line = "covariates, SHA-256: ";
constexpr std::string_view owners_line = "owners, SHA-256: ";
constexpr std::string_view coefficients_line = "noise coefficients, SHA-256: ";
constexpr std::string_view sampling_line = "shared sampling key, print: ";

/// A line for the covariates of the series' own steps, which later ones may follow, or for all of them; none if there
/// are none.
std::string covariates_text(const data::Dataset& dataset, bool all_rows = false) {
  const auto& known = dataset.covariates;
  if (known.names.empty()) return {};
  Digest digest;
  if (known.of_each_series()) {
    for (std::size_t s = 0; s < dataset.series.size(); ++s) {
      const data::KnownSteps steps(dataset, s);
      for (std::size_t i = 0; i < dataset.series[s].values.size(); ++i)
        digest.add(std::as_bytes(steps.at(static_cast<std::int64_t>(i))));
    }
  } else {
    const auto& table = known.tables.front();
    const auto count = static_cast<std::int64_t>(table.values.size() / known.names.size());
    std::int64_t rows = all_rows ? count : 0;
    for (std::size_t s = 0; s < dataset.series.size(); ++s)
      rows = std::max(
          rows, data::KnownSteps(dataset, s).first() + static_cast<std::int64_t>(dataset.series[s].values.size()));
    rows = std::clamp<std::int64_t>(rows, 0, count);
    digest.add(std::as_bytes(std::span(table.values).first(static_cast<std::size_t>(rows) * known.names.size())));
    digest.add(std::as_bytes(std::span(&table.start, 1)));
  }
  return cat(covariates_line, digest.hex(), "\n");
}

/// A line for the coefficients of the noise, whose file the configuration only names; none if there are none.
std::string coefficients_text(const Config& config) {
  return config.privacy.noise_recursion
             ? cat(coefficients_line, sha256(privacy::coefficients_text(*config.privacy.noise_recursion)), "\n")
             : std::string();
}

/// A line for whose the series are; none if nobody owns several.
std::string owners_text(const Config& config, const data::PreparedData& data) {
  const auto owners = mechanism::unit_of(config, data.training_lengths()).owners;
  return owners.empty() ? owners : cat(owners_line, owners, "\n");
}

/// The line after the configuration.
std::size_t values_at(const std::vector<std::string>& lines) {
  const auto found = std::find_if(lines.begin(), lines.end(),
                                  [](const std::string& line) { return line.starts_with(training_values_line); });
  return static_cast<std::size_t>(found - lines.begin());
}

/// The names of the configuration's options, sections among them.
std::vector<std::string> options_in(const std::vector<std::string>& lines) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < values_at(lines); ++i) out.push_back(lines[i].substr(0, lines[i].find(':')));
  return out;
}

}  // namespace

std::string charged_for(const Config& config, const data::PreparedData& data, const std::string& run) {
  if (const auto& shards = data.shards) {
    // The digests of all files: the same for any number of ranks, each of which has read some of them.
    std::string digests;
    for (const auto& file : shards->files) digests += file.digest;
    const auto series = sha256(digests);
    return cat(config_text(config), training_values_line, series, "\n",
               covariates_text(data.dataset, /*all_rows=*/true), coefficients_text(config),
               shards->sampling_print.empty() ? "" : cat(sampling_line, shards->sampling_print, "\n"),
               training_series_line, series, "\n", run_line, run, "\n");
  }
  Digest values, series_alone, starts;
  for (std::size_t s = 0; s < data.dataset.series.size(); ++s) {
    const auto& series = data.dataset.series[s];
    const auto length = static_cast<std::size_t>(data.split.training_length[s]);
    values.add(std::as_bytes(std::span(series.values).first(length)));
    series_alone.add(std::as_bytes(std::span(series.values).first(length)));
    if (!series.exact.empty()) values.add(std::as_bytes(std::span(series.exact).first(length)));
    starts.add(std::as_bytes(std::span(&series.start, 1)));  // models read the calendar
  }
  values.add(std::as_bytes(std::span(data.split.training_length)));
  series_alone.add(std::as_bytes(std::span(data.split.training_length)));
  return cat(config_text(config), training_values_line, values.hex(), "\nstart times, SHA-256: ", starts.hex(), "\n",
             covariates_text(data.dataset), owners_text(config, data), coefficients_text(config), training_series_line,
             series_alone.hex(), "\n", run_line, run, "\n");
}

std::string run_charged_for(const RunFolder& folder) {
  for (const auto& line : split(read_file(folder.charged_config()), '\n'))
    if (line.starts_with(run_line)) return line.substr(run_line.size());
  throw DataError(cat(folder.charged_config().string(), ": names no run; expected what tsdp-train wrote"));
}

std::string config_charged_for(const RunFolder& folder) {
  auto lines = split(read_file(folder.charged_config()), '\n');
  lines.resize(values_at(lines));
  return join(lines, "\n") + "\n";
}

void put_config_back(const RunFolder& folder) {
  const auto text = config_charged_for(folder);
  if (!is_there(folder.config()) || read_file(folder.config()) != text) write_file_atomically(folder.config(), text);
}

void refuse_what_was_not_charged_for(const RunFolder& folder, const Config& config, const data::PreparedData& data) {
  // The line of the training series says nothing that the values do not say, and older folders have none.
  const auto lines_of = [](const std::string& text) {
    auto lines = split(text, '\n');
    std::erase_if(lines, [](const std::string& line) { return line.starts_with(training_series_line); });
    return lines;
  };
  const auto began = lines_of(read_file(folder.charged_config()));
  const auto now = lines_of(charged_for(config, data, run_charged_for(folder)));
  // A program writes all of its options, so only another program's are others.
  if (options_in(began) != options_in(now))
    throw DataError(cat(folder.charged_config().string(),
                        ": has other options than this version of tsdp; expected a run that it began, as only the "
                        "version that began a run goes on with it"));
  // Before the digests, which the key is part of.
  const auto sampling_in = [](const std::vector<std::string>& lines) {
    const auto found = std::find_if(lines.begin(), lines.end(),
                                    [](const std::string& line) { return line.starts_with(sampling_line); });
    return found == lines.end() ? std::string() : *found;
  };
  if (sampling_in(began) != sampling_in(now))
    throw UsageError(
        "--sampling-key: found another key than the run began with, or none; expected its own, since steps may be "
        "replayed with the same noise");
  for (std::size_t i = 0; i < std::max(began.size(), now.size()); ++i) {
    const auto line = [&](const std::vector<std::string>& lines) {
      return i < lines.size() ? lines[i] : std::string();
    };
    if (line(began) == line(now)) continue;
    if (line(began).starts_with(covariates_line) || line(now).starts_with(covariates_line))
      throw UsageError(
          cat("dataset.covariates.file: found ", config.dataset.covariates.value_or("none"),
              " with other values than the run began with, and a resumed run keeps its configuration and data"));
    if (line(began).starts_with(owners_line) || line(now).starts_with(owners_line))
      throw UsageError(
          "dataset.owner: found other owners of the series than the run began with, and a resumed run keeps its "
          "configuration and data");
    if (line(began).starts_with(coefficients_line) || line(now).starts_with(coefficients_line))
      throw UsageError(
          cat("privacy.noise.coefficients: found ", config.privacy.noise_coefficients.value_or("none"),
              " with other numbers than the run was charged for, and a resumed run keeps its configuration and data"));
    if (i >= values_at(began))
      throw UsageError(cat("dataset.path: found ", config.dataset.path, " with other ",
                           i == values_at(began) ? "training values" : "start times",
                           " than the run began with, and a resumed run keeps its configuration and data"));
    throw UsageError(cat(folder.config().string(), ": found '", std::string(trimmed(line(now))),
                         "'; the run began with '", std::string(trimmed(line(began))),
                         "', and a resumed run keeps its configuration and data"));
  }
}

}  // namespace tsdp::training
