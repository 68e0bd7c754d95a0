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

  /// Makes the folders, those under private/ for the owner alone. Throws Error.
  void create() const;
};

/// State after `step` steps.
struct Checkpoint {
  std::uint64_t step = 0;
  SecretKey key;
  std::string environment;  ///< what must be equal for steps to be replayed bit for bit
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

/// Device, thread count, processor and versions: equal texts mean that a step can be replayed to the same bits. Other
/// devices than the CPU never promise that: their text differs from process to process.
[[nodiscard]] std::string environment_of(const at::Device& device);

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

/// Steps charged ahead: a durable count that only grows. Steps may be taken only below it.
class Charge {
 public:
  /// A new count of 0; on disk when this returns.
  [[nodiscard]] static Charge create(std::filesystem::path file);
  /// Reads the count. Throws DataError if it is damaged or not there.
  explicit Charge(std::filesystem::path file);
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
  /// Raises the count to `steps`; on disk when this returns.
  void raise_to(std::uint64_t steps);

 private:
  std::filesystem::path file_;
  std::uint64_t steps_ = 0;
};

}  // namespace tsdp::training
