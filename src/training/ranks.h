// The processes that train one model together.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include "training/rank_group.h"
#include "tsdp/random/random.h"
#include "tsdp/settings/configured.h"

namespace tsdp::training {

/// sum ← sum + other, 64-bit integers modulo 2^64.
void add_modulo(const at::Tensor& sum, const at::Tensor& other);

/// The processes that train one model together, each on files of its own: ranks 0 to W − 1. Rank 0 owns the run: its
/// folder, its noise and its weights. The others send sums to it, and to nobody else. One process alone is rank 0 of 1.
///
/// The ranks talk by PyTorch's c10d with Gloo, neither encrypted nor authenticated; or another program carries what
/// they send (relay.h). All functions wait for the ranks they need, and throw Error if one has ended or does not answer
/// in time.
class Ranks {
 public:
  struct Options {
    std::chrono::seconds timeout{300};
    /// Whether a public address may be used.
    bool public_network = false;
    /// What the ranks share, and nobody else knows: which windows a step uses follows from it.
    std::optional<SecretKey> sampling_key;
    /// What all ranks but the first share.
    std::optional<SecretKey> mask_key;
    /// The socket by which another program carries what this rank sends; none: c10d.
    std::optional<std::filesystem::path> relay = {};
    /// With a relay: set when the process is asked to end.
    const std::atomic<bool>* stop = nullptr;
  };
  /// As torchrun sets it: RANK, WORLD_SIZE, and without a relay MASTER_ADDR, MASTER_PORT; one process where WORLD_SIZE
  /// is not set. Meets the others. Throws UsageError where the environment is not as expected, Error where the others
  /// are not met.
  static Ranks from_environment(Options options);
  /// Where ranks meet: c10d's store, on rank 0's machine.
  struct Place {
    std::string host;
    std::uint16_t port = 0;
    bool served = false;  ///< by somebody else, as an agent of torchrun, not by rank 0
  };
  /// Meets the other ranks there, of which this is `rank`. Throws as from_environment does.
  static Ranks meet(data::Rank rank, const Place& place, Options options);

  Ranks();
  ~Ranks();
  Ranks(Ranks&&) noexcept;
  Ranks& operator=(Ranks&&) noexcept;

  [[nodiscard]] data::Rank rank() const noexcept { return rank_; }
  [[nodiscard]] bool is_first() const noexcept { return rank_.number == 0; }
  [[nodiscard]] bool alone() const noexcept { return rank_.of == 1; }
  /// How often torchrun has started these processes before.
  [[nodiscard]] static int restarts();
  [[nodiscard]] const std::optional<SecretKey>& sampling_key() const noexcept { return options_.sampling_key; }
  [[nodiscard]] const std::optional<SecretKey>& mask_key() const noexcept { return options_.mask_key; }

  /// On rank 0 the texts of all ranks, in their order; elsewhere none.
  [[nodiscard]] std::vector<std::string> gathered(const std::string& text);
  /// The same of numbers. A rank that keeps its own to itself gives none.
  [[nodiscard]] std::vector<std::vector<double>> gathered(std::span<const double> numbers);
  /// The text of rank 0.
  [[nodiscard]] std::string from_first(const std::string& text);
  /// Overwrites `values` with those of rank 0.
  void take_from_first(const at::Tensor& values);
  /// On rank 0, adds those of all other ranks to `sum` (64-bit integers), modulo 2^64. Elsewhere sends `sum` to rank 0.
  void add_up_at_first(const at::Tensor& sum);
  /// Says that this rank has ended well and needs nothing more from the others.
  void end();

 private:
  data::Rank rank_;
  Options options_;
  std::unique_ptr<RankGroup> group_;  // null: alone
};

}  // namespace tsdp::training
