// What carries a rank's messages to the other ranks.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace tsdp::training {

/// Carries whole tensors: from every rank to rank 0, and from rank 0 to all others. Throws Error if another rank has
/// ended or does not answer in time.
class RankGroup {
 public:
  RankGroup() = default;
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;
  virtual ~RankGroup() = default;

  /// On another rank than 0: to rank 0.
  virtual void send(const at::Tensor& values) = 0;
  /// On rank 0: overwrites `values` with the next ones that rank `from` has sent.
  virtual void receive(const at::Tensor& values, std::int64_t from) = 0;
  /// Overwrites `values` with those of rank 0.
  virtual void broadcast(const at::Tensor& values) = 0;
  /// Says that this rank has ended well and needs nothing more from the others.
  virtual void end() {}
};

}  // namespace tsdp::training
