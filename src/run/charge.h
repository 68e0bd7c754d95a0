// The count of charged steps, durable before any of them is taken.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "tsdp/random/random.h"

namespace tsdp::training {

/// Tells keys apart without showing them: 16 hexadecimal digits of a SHA-256.
[[nodiscard]] std::string key_print(const SecretKey& key);

/// Steps charged ahead: a durable count. Only steps below it may be taken.
class Charge {
 public:
  /// A new count of 0 under `key`, for the run `run`, whose plan has `planned` steps; on disk when this returns.
  static void create(const std::filesystem::path& file, const SecretKey& key, const std::string& run,
                     std::uint64_t planned);
  /// Reads the count. Throws DataError if it is damaged or missing.
  explicit Charge(std::filesystem::path file);
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
  /// Steps of the plan that the run began with, which a budget was charged for; none in folders made before it was
  /// kept.
  [[nodiscard]] std::optional<std::uint64_t> planned() const noexcept { return planned_; }
  /// RunIdentity::id of the run it belongs to.
  [[nodiscard]] const std::string& run() const noexcept { return run_; }
  /// key_print of the key under which the steps beyond the last checkpoint were charged: under another key they would
  /// be new releases.
  [[nodiscard]] const std::string& print() const noexcept { return key_print_; }
  /// Charges further steps under another key; on disk when this returns.
  void change_key(const SecretKey& key);
  /// Raises the count to `steps`, which an earlier process may have taken, if it is lower; on disk when this returns.
  void at_least(std::uint64_t steps);
  /// Raises the count to `steps`; on disk when this returns.
  void raise_to(std::uint64_t steps);
  /// At a clean stop, gives back what was charged ahead and not taken: `taken` says how many steps of the plan this
  /// process has taken or found taken. The count never falls below its value when this object read it, since another
  /// process may have taken those steps. On disk when this returns.
  void settle(std::uint64_t taken);

 private:
  void write(std::uint64_t steps);

  std::filesystem::path file_;
  std::uint64_t steps_ = 0;
  std::optional<std::uint64_t> planned_;
  std::string key_print_;
  std::string run_;
  std::uint64_t found_ = 0;  // when the count was read
};

}  // namespace tsdp::training
