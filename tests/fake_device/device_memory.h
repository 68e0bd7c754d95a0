// The memory of the fake device, pinned memory of the host, and what is counted.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <c10/core/Allocator.h>

#include "fake_device.h"

namespace tsdp::test::fake {

constexpr auto device_type = c10::DeviceType::PrivateUse1;

/// Work that is taken down while it is done: what it launched, and the blocks of memory it took.
struct Recording {
  std::vector<std::function<void()>> launched;
  std::vector<char*> blocks;
};

struct State {
  Counts counts;
  std::vector<std::string> events;
  Forbidden::Rules rules{false, false};
  Recording* recording = nullptr;  // of the work being taken down, if any
};
[[nodiscard]] State& state();

/// Counts a wait; throws where none is allowed.
void wait_for(const std::string& what);

/// Does `work`, counts it as one launch, and takes it down where that is asked for. `work` holds no tensor of the
/// device: a replay finds what lies at its addresses then, as on a GPU.
void launch(const std::function<void()>& work);

/// Addresses without rights; the bytes lie a fixed distance away, so nothing is switched on and off while an operator
/// runs, and threads need not agree.
class Memory final : public c10::Allocator {
 public:
  Memory();
  c10::DataPtr allocate(std::size_t wanted) override;
  c10::DeleterFnPtr raw_deleter() const override { return &drop; }
  void copy_data(void* to, const void* from, std::size_t count) const override;

  /// Where the bytes of an address of the device are.
  [[nodiscard]] char* bytes(const void* address) const;
  /// Ends one of the holds on a block. Without one it is given back.
  void release(char* block);
  /// What all of the memory holds, and the same put back; blocks that are new since then hold no numbers again.
  [[nodiscard]] std::vector<char> copy() const;
  void put_back(const std::vector<char>& copy);

 private:
  struct Block {
    std::size_t size;
    int holds;
  };
  static void drop(void* block);

  std::mutex mutex_;
  char* addresses_;
  char* bytes_;
  std::size_t used_;
  std::map<std::size_t, std::vector<char*>> free_;  // by size
  std::unordered_map<char*, Block> blocks_;
};
[[nodiscard]] Memory& memory();

/// Memory of the host from which the device copies while the host goes on.
class Pinned final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t size) override;
  c10::DeleterFnPtr raw_deleter() const override { return &drop; }
  void copy_data(void* to, const void* from, std::size_t count) const override;

  [[nodiscard]] bool holds(const void* address);
  /// Remembers what a copy reads, until the host has waited for the device or the memory is gone.
  void reads(const void* from, std::size_t count);
  /// The host has waited: all copies are done. Throws if what they read had been changed by then.
  void settle();

 private:
  struct Read {
    const char* from;
    std::string content;
  };
  static void drop(void* block);
  void release(char* block);

  std::mutex mutex_;
  std::map<const char*, std::size_t> sizes_;  // by where they begin
  std::vector<Read> read_;
  bool disturbed_ = false;
};
[[nodiscard]] Pinned& pinned();

}  // namespace tsdp::test::fake
