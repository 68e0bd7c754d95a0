#include "run/metrics_log.h"

#include <sys/stat.h>

#include <array>
#include <optional>
#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/json.h"
#include "tsdp/base/text.h"

namespace tsdp::training {
namespace {

/// A number of a line and its name there.
struct Entry {
  std::optional<double> Metrics::* value;
  const char* name;
};
constexpr std::array<Entry, 6> entries = {{
    {&Metrics::loss, "loss"},
    {&Metrics::gradient_norm_median, "gradient_norm_median"},
    {&Metrics::clipped_share, "clipped_share"},
    {&Metrics::training_loss, "training_loss"},
    {&Metrics::validation_loss, "validation_loss"},
    {&Metrics::epsilon_upper, "epsilon_upper"},
}};

/// Rewrites `file` without the lines of steps beyond `step`, and without lines that a crash cut off.
void truncate(const std::filesystem::path& file, std::uint64_t step) {
  if (!is_there(file)) return;
  std::istringstream in(read_file(file));
  std::string kept;
  for (std::string line; std::getline(in, line);) {
    const auto entry = nlohmann::json::parse(line, nullptr, false);
    if (!entry.is_object() || !entry.contains("step") || !entry["step"].is_number() ||
        entry["step"].get<double>() > static_cast<double>(step))
      break;
    kept += line + "\n";
  }
  write_file_atomically(file, kept, FileAccess::owner);
}

}  // namespace

MetricsLog::MetricsLog(const RunFolder& folder, std::uint64_t step) {
  truncate(folder.metrics(), step);
  lines_.open(folder.metrics(), std::ios::app);
  if (!lines_) throw Error(ExitCode::failure, cat(folder.metrics().string(), ": cannot be written"));
  ::chmod(folder.metrics().c_str(), 0600);
}

void MetricsLog::add(const Metrics& metrics) {
  nlohmann::ordered_json line = {{"step", metrics.step}, {"epoch", metrics.epoch}};
  for (const auto& [value, name] : entries)
    if (metrics.*value) line[name] = *(metrics.*value);
  lines_ << json_text(line) << "\n";
}

}  // namespace tsdp::training
