// Everything of a run that is on disk: its identity, lock, charge, checkpoints and ledger, and what ties them together.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/file_lock.h"
#include "run/charge.h"
#include "run/checkpoint.h"
#include "tsdp/ledger/ledger.h"
#include "tsdp/run/run_folder.h"
#include "tsdp/settings/config.h"
#include "tsdp/settings/configured.h"

namespace tsdp::training {

/// One run's files. Either `begin` or `take_up` comes first; from then on the run is locked.
class RunStore {
 public:
  explicit RunStore(RunFolder folder) : folder_(std::move(folder)) {}

  [[nodiscard]] const RunFolder& folder() const noexcept { return folder_; }
  /// RunIdentity::id; empty before the run is begun or taken up.
  [[nodiscard]] const std::string& run() const noexcept { return run_; }
  /// Steps charged, and print of the key they are charged under; before that, 0 and empty.
  [[nodiscard]] std::uint64_t charged() const { return charge_ ? charge_->steps() : 0; }
  [[nodiscard]] std::string charged_key() const { return charge_ ? charge_->print() : std::string(); }

  /// Throws UsageError if the folder holds a run, or files that a run would overwrite. Then gives the run its identity
  /// and lock.
  void claim();
  /// Writes the coefficients of a strategy matrix next to the configuration; returns the name to state there.
  [[nodiscard]] std::string keep_coefficients(const privacy::NoiseRecursion& recursion) const;
  /// Likewise writes weights as NAME.safetensors; returns the name to state.
  [[nodiscard]] std::string keep_weights(const std::string& name, const std::string& bytes) const;
  /// Begins the claimed run: all of it is there when this returns, or none of it. `first` is the checkpoint before any
  /// step, `planned` the steps of its plan, which are kept: another program may plan more steps.
  void begin(const Config& config, const data::PreparedData& data, const SecretKey& key, const Checkpoint& first,
             std::uint64_t planned);

  /// Takes up the run in the folder, whose plan has `planned` steps: its files belong to one run, and were charged for
  /// `config` and `data`. Returns the last checkpoint if there is one. Throws PrivacyError if what counts the budget is
  /// gone or more is charged than planned, and DataError if files are damaged or belong to different runs.
  [[nodiscard]] std::optional<Checkpoint> take_up(const Config& config, const data::PreparedData& data,
                                                  std::uint64_t planned);
  /// Steps of the plan that the run began with, according to the count of charged steps and to privacy.json: the
  /// smaller of the two; none if neither says so.
  [[nodiscard]] std::optional<std::uint64_t> planned() const;
  /// Reads privacy.json, which no charge may fall below, and returns whether it names the key of this print. Throws
  /// PrivacyError if it is gone though steps are charged, or if it states more charged steps than are planned;
  /// DataError if it is of another run, of other terms or of another start.
  bool ask_the_ledger(const Config& config, std::uint64_t planned, const std::string& print,
                      const mechanism::Start& start);

  /// Raises the count of charged steps; on disk when this returns. The ledger must be written next.
  void charge_to(std::uint64_t steps) { charge_->raise_to(steps); }
  /// See Charge.
  void settle(std::uint64_t taken) { charge_->settle(taken); }
  void change_key(const SecretKey& key) { charge_->change_key(key); }
  void write_last(const Checkpoint& checkpoint) const { save_checkpoint(folder_.last(), checkpoint); }
  void write_best(const Checkpoint& checkpoint) const { save_checkpoint(folder_.best(), checkpoint); }
  void write_ledger(const mechanism::Ledger& ledger) const;
  /// Removes files left by crashes that may hold the key.
  void tidy() const { folder_.remove_leftovers(); }

 private:
  /// Throws DataError unless `found`, from `file`, is this run.
  void require_run(const std::filesystem::path& file, const std::string& found) const;
  void lock();

  RunFolder folder_;
  std::string run_;
  std::optional<FileLock> lock_;
  std::optional<Charge> charge_;
};

}  // namespace tsdp::training
