// Resumable state of a run, and the count of steps that are charged, both durable before they are relied upon.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include "tsdp/core/random.h"
#include "tsdp/training/plateau_schedule.h"

namespace tsdp::training {

/// Folders and files of a run (interface: what may be released and what not).
struct RunFolder {
  std::filesystem::path root;

  [[nodiscard]] std::filesystem::path config() const { return root / "config.yaml"; }
  [[nodiscard]] std::filesystem::path ledger() const { return root / "privacy.json"; }
  [[nodiscard]] std::filesystem::path model() const { return root / "model.pt"; }
  [[nodiscard]] std::filesystem::path metrics() const { return root / "private" / "metrics.jsonl"; }
  [[nodiscard]] std::filesystem::path tensorboard() const { return root / "private" / "tensorboard"; }
  [[nodiscard]] std::filesystem::path report() const { return root / "private" / "report.html"; }
  [[nodiscard]] std::filesystem::path checkpoints() const { return root / "private" / "checkpoints"; }
  [[nodiscard]] std::filesystem::path last() const { return checkpoints() / "last.pt"; }
  [[nodiscard]] std::filesystem::path best() const { return checkpoints() / "best.pt"; }
  [[nodiscard]] std::filesystem::path charged() const { return checkpoints() / "charged"; }
  /// The configuration the run began with: what was charged was charged for this one.
  [[nodiscard]] std::filesystem::path charged_config() const { return checkpoints() / "config.yaml"; }

  /// Makes the folders, durably, and protects them. Throws Error.
  void create() const;
  /// Takes private/ and the files of checkpoints() from all but the owner, as far as it may.
  void protect() const;
};

/// State after `step` steps of the plan, `given_up` of which were charged and not taken, or taken and lost.
struct Checkpoint {
  std::uint64_t step = 0;
  std::uint64_t given_up = 0;
  SecretKey key;
  std::string environment;  ///< environment_of where it was made
  int threads = 1;          ///< with so many of the CPU
  double best_loss = 0.0;   ///< of the validation part, or of training
  at::Tensor loss_sum;      ///< losses of the windows since the last look at them, and their number
  PlateauSchedule schedule; ///< of the learning rate
  at::Tensor values;
  std::vector<at::Tensor> optimizer;
};

/// Atomic and durable; mode 0600.
void save_checkpoint(const std::filesystem::path& file, const Checkpoint& checkpoint);
/// None if there is no such file. Throws DataError if it is damaged.
[[nodiscard]] std::optional<Checkpoint> load_checkpoint(const std::filesystem::path& file);

/// Keeps other processes from training in the same folder, for as long as it lives.
class FolderLock {
 public:
  /// Throws Error if another process holds the lock.
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_;
};

/// Steps charged ahead: a durable count, below which alone steps may be taken.
class Charge {
 public:
  /// A new count of 0 under `key`; on disk when this returns.
  [[nodiscard]] static Charge create(std::filesystem::path file, const SecretKey& key);
  /// Reads the count. Throws DataError if it is damaged or not there.
  explicit Charge(std::filesystem::path file);
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
  /// Whether the steps beyond the last checkpoint were charged under `key`: under another one they would be new releases.
  [[nodiscard]] bool is_under(const SecretKey& key) const;
  /// Charges further steps under another key; on disk when this returns.
  void change_key(const SecretKey& key);
  /// Raises the count to `steps`; on disk when this returns.
  void raise_to(std::uint64_t steps);
  /// Gives back what was charged ahead and not taken, at a clean stop: `taken` says how many steps of the plan this
  /// process has taken or found taken. The count never falls below what it was when this object read it, since another
  /// process may have taken those. On disk when this returns.
  void settle(std::uint64_t taken);

 private:
  void write(std::uint64_t steps);

  std::filesystem::path file_;
  std::uint64_t steps_ = 0;
  std::string key_print_;
  std::uint64_t found_ = 0;  // when it was read
};

}  // namespace tsdp::training
