#include "tsdp/training/checkpoint.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <torch/serialize/archive.h>
#include <torch/version.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "tsdp/core/error.h"
#include "tsdp/core/file.h"
#include "tsdp/core/text.h"
#include "tsdp/core/version.h"

namespace tsdp::training {
namespace {

constexpr const char* format_name = "tsdp-checkpoint-3";

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.rfind("model name", 0) == 0) return std::string(trimmed(line.substr(line.find(':') + 1)));
  return "unknown processor";
}

}  // namespace

void RunFolder::create() const {
  std::error_code error;
  std::filesystem::create_directories(checkpoints(), error);
  if (error) throw Error(ExitCode::failure, cat(root.string(), ": cannot create the run's folder: ", error.message()));
  ::chmod((root / "private").c_str(), 0700);
  ::chmod(checkpoints().c_str(), 0700);
}

void save_checkpoint(const std::filesystem::path& file, const Checkpoint& c) {
  torch::serialize::OutputArchive archive;
  archive.write("format", at::IValue(std::string(format_name)));
  archive.write("step", at::IValue(static_cast<std::int64_t>(c.step)));
  archive.write("key", at::IValue(c.key.hex()));
  archive.write("environment", at::IValue(c.environment));
  archive.write("best_loss", at::IValue(c.best_loss));
  archive.write("loss_sum", c.loss_sum.cpu());
  archive.write("rate_factor", at::IValue(c.schedule.factor));
  archive.write("rate_least_loss", at::IValue(c.schedule.least_loss));
  archive.write("rate_looks_since", at::IValue(c.schedule.looks_since));
  archive.write("values", c.values.cpu());
  archive.write("optimizer_size", at::IValue(static_cast<std::int64_t>(c.optimizer.size())));
  for (std::size_t i = 0; i < c.optimizer.size(); ++i) archive.write(cat("optimizer_", i), c.optimizer[i].cpu());
  std::ostringstream out;
  archive.save_to(out);
  write_file_atomically(file, out.str(), FileAccess::owner);
}

std::optional<Checkpoint> load_checkpoint(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return std::nullopt;
  try {
    torch::serialize::InputArchive archive;
    archive.load_from(file.string());
    const auto read = [&](const std::string& name) {
      at::IValue value;
      archive.read(name, value);
      return value;
    };
    if (read("format").toStringRef() != format_name)
      throw DataError(cat(file.string(), ": found format '", read("format").toStringRef(), "'; expected ", format_name));
    Checkpoint c;
    c.step = static_cast<std::uint64_t>(read("step").toInt());
    c.key = SecretKey::from_hex(read("key").toStringRef());
    c.environment = read("environment").toStringRef();
    c.best_loss = read("best_loss").toDouble();
    archive.read("loss_sum", c.loss_sum);
    c.schedule = {read("rate_factor").toDouble(), read("rate_least_loss").toDouble(), read("rate_looks_since").toInt()};
    archive.read("values", c.values);
    const auto size = read("optimizer_size").toInt();
    for (std::int64_t i = 0; i < size; ++i) {
      at::Tensor state;
      archive.read(cat("optimizer_", i), state);
      c.optimizer.push_back(state);
    }
    return c;
  } catch (const c10::Error& error) {
    throw DataError(cat(file.string(), ": damaged checkpoint (", error.what_without_backtrace(),
                        "); expected one that tsdp-train wrote"));
  }
}

std::string environment_of(const at::Device& device) {
  return cat("tsdp ", version(), ", LibTorch ", TORCH_VERSION, ", ", device.str(), ", ", at::get_num_threads(),
             " threads, ", processor_name(), ", ", at::get_cpu_capability(),
             device.is_cpu() ? std::string() : cat(", process ", SecretKey::from_system().hex().substr(0, 16)));
}

FolderLock::FolderLock(const std::filesystem::path& folder)
    : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (descriptor_ < 0 || ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    const std::string reason = std::strerror(errno);
    if (descriptor_ >= 0) ::close(descriptor_);
    throw Error(ExitCode::failure, cat(folder.string(), ": another process trains in this folder (", reason,
                                       "); wait for it, or begin a run in another folder"));
  }
}

FolderLock::~FolderLock() { ::close(descriptor_); }

Charge::Charge(std::filesystem::path file) : file_(std::move(file)) {
  long long steps = 0;
  const auto text = read_file(file_);
  if (!parse_int(trimmed(text), steps) || steps < 0)
    throw DataError(cat(file_.string(), ": found '", std::string(trimmed(text)), "'; expected a count of steps"));
  steps_ = static_cast<std::uint64_t>(steps);
}

Charge Charge::create(std::filesystem::path file) {
  write_file_atomically(file, "0\n", FileAccess::owner);
  return Charge(std::move(file));
}

void Charge::raise_to(std::uint64_t steps) {
  if (steps <= steps_) return;
  write_file_atomically(file_, cat(steps, "\n"), FileAccess::owner);
  steps_ = steps;
}

}  // namespace tsdp::training
