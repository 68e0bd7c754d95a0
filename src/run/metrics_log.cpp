#include "run/metrics_log.h"

#include <sys/stat.h>

#include <array>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/json.h"
#include "tsdp/base/text.h"

namespace tsdp::training {
namespace {

/// A number of a line: its name in metrics.jsonl, and TensorBoard's tag for it.
struct Entry {
  std::optional<double> Metrics::* value;
  const char* name;
  const char* tag;
};
constexpr std::array<Entry, 6> entries = {{
    {&Metrics::loss, "loss", "train/loss"},
    {&Metrics::gradient_norm_median, "gradient_norm_median", "train/gradient_norm_median"},
    {&Metrics::clipped_share, "clipped_share", "train/clipped_share"},
    {&Metrics::training_loss, "training_loss", "train/mean_loss"},
    {&Metrics::validation_loss, "validation_loss", "validation/loss"},
    {&Metrics::epsilon_upper, "epsilon_upper", "privacy/epsilon_upper"},
}};

/// Rewrites `file` without the lines of steps beyond `step`, and without what a crash cut off.
void truncate(const std::filesystem::path& file, std::uint64_t step) {
  if (!is_there(file)) return;
  std::istringstream in(read_file(file));
  std::string kept;
  for (std::string line; std::getline(in, line);) {
    const auto entry = nlohmann::json::parse(line, nullptr, false);
    if (!entry.is_object() || !entry.contains("step") || !entry["step"].is_number() || entry["step"].get<double>() > static_cast<double>(step)) break;
    kept += line + "\n";
  }
  write_file_atomically(file, kept, FileAccess::owner);
}

std::filesystem::path made_for_owner(std::filesystem::path folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw Error(ExitCode::failure, cat(folder.string(), ": cannot be made: ", error.message()));
  ::chmod(folder.c_str(), 0700);
  return folder;
}

}  // namespace

MetricsLog::MetricsLog(const RunFolder& folder, std::uint64_t step)
    : events_(made_for_owner(folder.tensorboard()), step + 1) {
  truncate(folder.metrics(), step);
  lines_.open(folder.metrics(), std::ios::app);
  if (!lines_) throw Error(ExitCode::failure, cat(folder.metrics().string(), ": cannot be written"));
  ::chmod(folder.metrics().c_str(), 0600);
}

void MetricsLog::add(const Metrics& metrics) {
  nlohmann::ordered_json line = {{"step", metrics.step}, {"epoch", metrics.epoch}};
  std::vector<TaggedScalar> scalars;
  for (const auto& [value, name, tag] : entries) {
    if (!(metrics.*value)) continue;
    line[name] = *(metrics.*value);
    scalars.emplace_back(tag, *(metrics.*value));
  }
  lines_ << json_text(line) << "\n";
  if (!scalars.empty()) events_.add(metrics.step, scalars);
}

}  // namespace tsdp::training
