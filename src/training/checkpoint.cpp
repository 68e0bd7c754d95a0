#include "tsdp/training/checkpoint.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "tsdp/core/digest.h"
#include "tsdp/core/error.h"
#include "tsdp/core/file.h"
#include "tsdp/core/tensor_file.h"
#include "tsdp/core/text.h"
#include "tsdp/dp/stored_tensor.h"

namespace tsdp::training {
namespace {

constexpr const char* format_name = "tsdp-checkpoint-5";
constexpr std::size_t optimizer_tensors = 3;  // of Adam: both moments, the number of steps

/// Values of one kind under one name, in a fixed order.
at::Tensor counts_of(std::initializer_list<std::int64_t> counts) { return at::tensor(at::ArrayRef<std::int64_t>(counts), at::kLong); }

}  // namespace

std::string key_print(const SecretKey& key) { return sha256(cat("tsdp charge ", key.hex())).substr(0, 16); }

void RunFolder::create() const {
  std::vector<std::filesystem::path> made;  // a folder is durable when its parent is
  for (auto path = std::filesystem::absolute(priv()); !is_there(path) && path.has_relative_path();
       path = path.parent_path())
    made.push_back(path);
  std::error_code error;
  std::filesystem::create_directories(priv(), error);
  if (error) throw Error(ExitCode::failure, cat(root.string(), ": cannot create the run's folder: ", error.message()));
  for (const auto& path : made) sync_folder(path.parent_path());
  protect();
}

void RunFolder::protect() const {
  ::chmod(priv().c_str(), 0700);
  ::chmod(checkpoints().c_str(), 0700);
  for (const auto& file : {last(), best(), charged(), charged_config()}) ::chmod(file.c_str(), 0600);  // if there
}

void RunFolder::remove_leftovers() const {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoints(), error))
    if (entry.path().extension() == ".part") std::filesystem::remove(entry.path(), error);
  if (error) throw Error(ExitCode::failure, cat(checkpoints().string(), ": cannot be tidied: ", error.message()));
}

void save_checkpoint(const std::filesystem::path& file, const Checkpoint& c) {
  TensorFile out;
  out.texts = {{"format", format_name}, {"run", c.run}, {"key", c.key ? c.key->hex() : ""}, {"environment", c.environment}};
  out.tensors = {
      dp::stored("counts", counts_of({static_cast<std::int64_t>(c.step), static_cast<std::int64_t>(c.given_up), c.threads,
                                      c.schedule.looks_since})),
      dp::stored("numbers", at::tensor({c.best_loss, c.schedule.factor, c.schedule.least_loss}, at::kDouble)),
      dp::stored("loss_sum", c.loss_sum),
      dp::stored("values", c.values),
  };
  for (std::size_t i = 0; i < c.optimizer.size(); ++i)
    out.tensors.push_back(dp::stored(cat("optimizer_", i), c.optimizer[i]));
  write_file_atomically(file, tensor_file_bytes(out), FileAccess::owner);
}

std::optional<Checkpoint> load_checkpoint(const std::filesystem::path& file) {
  if (!is_there(file)) return std::nullopt;
  const auto where = file.string();
  const auto found = read_tensor_file(read_file(file), where);
  if (const auto& format = found.text("format", where); format != format_name)
    throw DataError(cat(where, ": found format '", format, "', of another version of tsdp, which alone can go on with it; expected ",
                        format_name));
  const auto tensor = [&](const std::string& name, const char* type, std::int64_t count) {
    const auto& stored = found.tensor(name, where);
    const auto value = dp::tensor_of(stored);
    if (stored.type != type || (count >= 0 && (value.dim() != 1 || value.numel() != count)))
      throw DataError(cat(where, ": tensor '", name, "' has another type or shape; expected a checkpoint that tsdp-train wrote"));
    return value;
  };
  Checkpoint c;
  c.run = found.text("run", where);
  if (const auto& key = found.text("key", where); !key.empty()) c.key = SecretKey::from_hex(key);
  c.environment = found.text("environment", where);
  const auto counts = tensor("counts", "I64", 4);
  const auto* count = counts.const_data_ptr<std::int64_t>();
  if (count[0] < 0 || count[1] < 0 || count[1] > count[0] || count[2] < 1 || count[2] > 4096 || count[3] < 0)
    throw DataError(cat(where, ": found ", count[0], " steps, ", count[1], " given up, ", count[2], " threads; expected a checkpoint "
                        "that tsdp-train wrote"));
  c.step = static_cast<std::uint64_t>(count[0]);
  c.given_up = static_cast<std::uint64_t>(count[1]);
  c.threads = static_cast<int>(count[2]);
  const auto numbers = tensor("numbers", "F64", 3);
  const auto* number = numbers.const_data_ptr<double>();
  c.best_loss = number[0];
  c.schedule = {number[1], number[2], count[3]};
  c.loss_sum = tensor("loss_sum", "F64", 2);
  c.values = tensor("values", "F32", -1);
  for (std::size_t i = 0; i < optimizer_tensors; ++i) c.optimizer.push_back(tensor(cat("optimizer_", i), "F32", -1));
  return c;
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

namespace {

std::string charge_text(std::uint64_t steps, const std::string& print, const std::string& run) {
  return cat(steps, "\nkey ", print, "\nrun ", run, "\n");
}

}  // namespace

Charge::Charge(std::filesystem::path file) : file_(std::move(file)) {
  long long steps = 0;
  const auto lines = split(read_file(file_), '\n');
  if (lines.size() != 4 || !parse_int(lines[0], steps) || steps < 0 || !lines[1].starts_with("key ") ||
      !lines[2].starts_with("run ") || !lines[3].empty())
    throw DataError(cat(file_.string(), ": found '", lines[0], "' and ", lines.size() - 1, " lines; expected a count of steps, a line "
                        "for the key and one for the run"));
  steps_ = static_cast<std::uint64_t>(steps);
  key_print_ = lines[1].substr(4);
  run_ = lines[2].substr(4);
  found_ = steps_;
}

void Charge::create(const std::filesystem::path& file, const SecretKey& key, const std::string& run) {
  write_file_atomically(file, charge_text(0, training::key_print(key), run), FileAccess::owner);
}

void Charge::change_key(const SecretKey& key) {
  key_print_ = training::key_print(key);
  write(steps_);
}

void Charge::at_least(std::uint64_t steps) {
  raise_to(steps);
  found_ = std::max(found_, steps);
}

void Charge::raise_to(std::uint64_t steps) {
  if (steps <= steps_) return;
  write(steps);
}

void Charge::settle(std::uint64_t taken) {
  if (const auto least = std::max(taken, found_); least < steps_) write(least);
}

void Charge::write(std::uint64_t steps) {
  write_file_atomically(file_, charge_text(steps, key_print_, run_), FileAccess::owner);
  steps_ = steps;
}

}  // namespace tsdp::training
