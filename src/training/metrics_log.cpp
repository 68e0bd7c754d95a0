#include "tsdp/training/metrics_log.h"

#include <sys/stat.h>

#include <array>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tsdp/core/error.h"
#include "tsdp/core/file.h"
#include "tsdp/core/json.h"
#include "tsdp/core/text.h"

namespace tsdp::training {
namespace {

/// Names in metrics.jsonl and TensorBoard's tags for them.
constexpr std::array<std::pair<const char*, const char*>, 6> tags = {{
    {"loss", "train/loss"},
    {"training_loss", "train/mean_loss"},
    {"gradient_norm_median", "train/gradient_norm_median"},
    {"clipped_share", "train/clipped_share"},
    {"validation_loss", "validation/loss"},
    {"epsilon_upper", "privacy/epsilon_upper"},
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

void MetricsLog::add(std::uint64_t step, const nlohmann::ordered_json& values) {
  nlohmann::ordered_json line = {{"step", step}};
  line.update(values);
  lines_ << json_text(line) << "\n";
  std::vector<TaggedScalar> scalars;
  for (const auto& [name, tag] : tags)
    if (const auto found = values.find(name); found != values.end() && found->is_number())
      scalars.emplace_back(tag, found->get<double>());
  if (!scalars.empty()) events_.add(step, scalars);
}

}  // namespace tsdp::training
