#include "tsdp/training/checkpoint.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <torch/serialize/archive.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <vector>

#include "tsdp/core/digest.h"
#include "tsdp/core/error.h"
#include "tsdp/core/file.h"
#include "tsdp/core/text.h"

namespace tsdp::training {
namespace {

constexpr const char* format_name = "tsdp-checkpoint-4";

/// Tells keys apart without showing them.
std::string print_of(const SecretKey& key) { return cat("key ", sha256(cat("tsdp charge ", key.hex())).substr(0, 16)); }

}  // namespace

void RunFolder::create() const {
  std::vector<std::filesystem::path> made;  // a folder is durable when its parent is
  for (auto path = std::filesystem::absolute(checkpoints()); !std::filesystem::exists(path) && path.has_relative_path();
       path = path.parent_path())
    made.push_back(path);
  std::error_code error;
  std::filesystem::create_directories(checkpoints(), error);
  if (error) throw Error(ExitCode::failure, cat(root.string(), ": cannot create the run's folder: ", error.message()));
  for (const auto& path : made) sync_folder(path.parent_path());
  protect();
}

void RunFolder::protect() const {
  ::chmod((root / "private").c_str(), 0700);
  ::chmod(checkpoints().c_str(), 0700);
  for (const auto& file : {last(), best(), charged(), charged_config()}) ::chmod(file.c_str(), 0600);  // if there
}

void save_checkpoint(const std::filesystem::path& file, const Checkpoint& c) {
  torch::serialize::OutputArchive archive;
  archive.write("format", at::IValue(std::string(format_name)));
  archive.write("step", at::IValue(static_cast<std::int64_t>(c.step)));
  archive.write("given_up", at::IValue(static_cast<std::int64_t>(c.given_up)));
  archive.write("key", at::IValue(c.key.hex()));
  archive.write("environment", at::IValue(c.environment));
  archive.write("threads", at::IValue(static_cast<std::int64_t>(c.threads)));
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
      throw DataError(cat(file.string(), ": found format '", read("format").toStringRef(), "', of another version of tsdp, which alone can "
                          "go on with it; expected ", format_name));
    Checkpoint c;
    c.step = static_cast<std::uint64_t>(read("step").toInt());
    c.given_up = static_cast<std::uint64_t>(read("given_up").toInt());
    c.key = SecretKey::from_hex(read("key").toStringRef());
    c.environment = read("environment").toStringRef();
    c.threads = static_cast<int>(read("threads").toInt());
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
    const std::string why = error.what_without_backtrace();
    throw DataError(cat(file.string(), ": damaged checkpoint (", why.substr(0, why.find_first_of(".\n")),
                        "); expected one that tsdp-train wrote"));
  }
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
  const auto lines = split(read_file(file_), '\n');
  if (lines.size() < 2 || !parse_int(trimmed(lines[0]), steps) || steps < 0)
    throw DataError(cat(file_.string(), ": found '", lines[0], "'; expected a count of steps and a line for the key"));
  steps_ = static_cast<std::uint64_t>(steps);
  key_print_ = lines[1];
  found_ = steps_;
}

Charge Charge::create(std::filesystem::path file, const SecretKey& key) {
  write_file_atomically(file, cat("0\n", print_of(key), "\n"), FileAccess::owner);
  return Charge(std::move(file));
}

bool Charge::is_under(const SecretKey& key) const { return key_print_ == print_of(key); }

void Charge::change_key(const SecretKey& key) {
  key_print_ = print_of(key);
  write(steps_);
}

void Charge::raise_to(std::uint64_t steps) {
  if (steps <= steps_) return;
  write(steps);
}

void Charge::settle(std::uint64_t taken) {
  if (const auto least = std::max(taken, found_); least < steps_) write(least);
}

void Charge::write(std::uint64_t steps) {
  write_file_atomically(file_, cat(steps, "\n", key_print_, "\n"), FileAccess::owner);
  steps_ = steps;
}

}  // namespace tsdp::training
