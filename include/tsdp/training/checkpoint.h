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

/// Folders and files of a run (docs/runs.md: what may be released and what not).
struct RunFolder {
  std::filesystem::path root;

  [[nodiscard]] std::filesystem::path config() const { return root / "config.yaml"; }
  [[nodiscard]] std::filesystem::path ledger() const { return root / "privacy.json"; }
  [[nodiscard]] std::filesystem::path model() const { return root / "model.pt"; }
  [[nodiscard]] std::filesystem::path metrics() const { return priv() / "metrics.jsonl"; }
  [[nodiscard]] std::filesystem::path tensorboard() const { return priv() / "tensorboard"; }
  [[nodiscard]] std::filesystem::path report() const { return priv() / "report.html"; }
  [[nodiscard]] std::filesystem::path priv() const { return root / "private"; }
  [[nodiscard]] std::filesystem::path checkpoints() const { return priv() / "checkpoints"; }
  [[nodiscard]] std::filesystem::path last() const { return checkpoints() / "last.pt"; }
  [[nodiscard]] std::filesystem::path best() const { return checkpoints() / "best.pt"; }
  [[nodiscard]] std::filesystem::path charged() const { return checkpoints() / "charged"; }
  /// The configuration the run began with: what was charged was charged for this one.
  [[nodiscard]] std::filesystem::path charged_config() const { return checkpoints() / "config.yaml"; }

  /// Where a new run's checkpoints() are made before they get their name.
  [[nodiscard]] RunFolder staging() const { return {priv() / "beginning"}; }

  /// Makes the folders around checkpoints(), durably, and protects them. Throws Error.
  void create() const;
  /// Takes private/ and the files of checkpoints() from all but the owner, as far as it may.
  void protect() const;
  /// Removes what crashes in the middle of writing left in checkpoints(): such files may hold the key. Throws Error.
  void remove_leftovers() const;
};

/// What tells keys apart without showing them: 16 hexadecimal digits of a SHA-256.
[[nodiscard]] std::string key_print(const SecretKey& key);

/// State after `step` steps of the plan, `given_up` of which were charged and not taken, or taken and lost.
struct Checkpoint {
  std::string run;  ///< RunIdentity::id of the run it belongs to
  std::uint64_t step = 0;
  std::uint64_t given_up = 0;
  std::optional<SecretKey> key;  ///< none once the run is finished (nothing is left to replay), and in best()
  std::string environment;  ///< environment_of where it was made
  int threads = 1;          ///< with so many of the CPU
  double best_loss = 0.0;   ///< of the validation part, or of training
  at::Tensor loss_sum;      ///< losses of the windows since the last look at them, and their number
  PlateauSchedule schedule; ///< of the learning rate
  at::Tensor values;
  std::vector<at::Tensor> optimizer;
};

/// Atomic and durable; mode 0600. A tensor file (core/tensor_file.h): data alone, under one checksum.
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
  /// A new count of 0 under `key`, of the run `run`; on disk when this returns.
  static void create(const std::filesystem::path& file, const SecretKey& key, const std::string& run);
  /// Reads the count. Throws DataError if it is damaged or not there.
  explicit Charge(std::filesystem::path file);
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
  /// RunIdentity::id of the run it belongs to.
  [[nodiscard]] const std::string& run() const noexcept { return run_; }
  /// key_print of the key that the steps beyond the last checkpoint were charged under: under another one they would be
  /// new releases.
  [[nodiscard]] const std::string& print() const noexcept { return key_print_; }
  /// Charges further steps under another key; on disk when this returns.
  void change_key(const SecretKey& key);
  /// Raises the count to `steps`, which an earlier process may have taken, if it is below; on disk when this returns.
  void at_least(std::uint64_t steps);
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
  std::string run_;
  std::uint64_t found_ = 0;  // when it was read
};

}  // namespace tsdp::training
