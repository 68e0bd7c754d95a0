#include "device_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace tsdp::test::fake {
namespace {

constexpr std::size_t region = std::size_t{1} << 32;
constexpr std::size_t grain = 512;  // as CUDA's allocator

/// Numbers in every precision that are none: nobody may count on zeros, or read what was given back.
void forget(char* bytes, std::size_t count) { std::memset(bytes, 0xFF, count); }

char* reserved(int rights) {
  void* found = ::mmap(nullptr, region, rights, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  TORCH_CHECK(found != MAP_FAILED, "fake device: no address space");
  return static_cast<char*>(found);
}

}  // namespace

State& state() {
  static State one;
  return one;
}

void wait_for(const std::string& what) {
  auto& s = state();
  ++s.counts.waits;
  s.events.push_back("wait: " + what);
  TORCH_CHECK(s.recording == nullptr, "fake device: the host waits for the device while it records: ", what);
  TORCH_CHECK(!s.rules.waits, "fake device: the host waits for the device: ", what);
  pinned().settle();
}

void launch(const std::function<void()>& work) {
  auto& s = state();
  ++s.counts.launches;
  ++s.counts.kernels;
  work();
  if (s.recording != nullptr) s.recording->launched.push_back(work);
}

Memory::Memory() : addresses_(reserved(PROT_NONE)), bytes_(reserved(PROT_READ | PROT_WRITE)), used_(grain) {}

char* Memory::bytes(const void* address) const {
  if (address == nullptr) return nullptr;
  const auto* at = static_cast<const char*>(address);
  TORCH_CHECK(at >= addresses_ && at < addresses_ + region, "fake device: a tensor of the device lies on the host");
  return bytes_ + (at - addresses_);
}

c10::DataPtr Memory::allocate(std::size_t wanted) {
  const c10::Device here(device_type, 0);
  if (wanted == 0) return {nullptr, nullptr, &drop, here};
  auto& s = state();
  TORCH_CHECK(!s.rules.allocations, "fake device: ", wanted, " bytes are allocated");
  ++s.counts.allocations;
  const std::lock_guard lock(mutex_);
  const auto size = (wanted + grain - 1) / grain * grain;
  auto& free = free_[size];
  char* block = nullptr;
  if (free.empty()) {
    TORCH_CHECK(used_ + size + grain <= region, "fake device: out of memory");
    block = addresses_ + used_;
    used_ += size + grain;  // a gap between neighbours
    forget(bytes(block), size + grain);
  } else {
    block = free.back();
    free.pop_back();
  }
  // What is allocated while work is taken down stays that work's: its replays write there.
  blocks_[block] = {size, s.recording == nullptr ? 1 : 2};
  if (s.recording != nullptr) s.recording->blocks.push_back(block);
  return {block, block, &drop, here};
}

void Memory::release(char* block) {
  const std::lock_guard lock(mutex_);
  auto& found = blocks_.at(block);
  if (--found.holds > 0) return;
  forget(bytes(block), found.size);
  free_[found.size].push_back(block);
  blocks_.erase(block);
}

void Memory::drop(void* block) {
  if (block != nullptr) memory().release(static_cast<char*>(block));
}

void Memory::copy_data(void* to, const void* from, std::size_t count) const {
  std::memcpy(bytes(to), bytes(from), count);
}

std::vector<char> Memory::copy() const { return {bytes_, bytes_ + used_}; }

void Memory::put_back(const std::vector<char>& copy) {
  std::copy(copy.begin(), copy.end(), bytes_);
  forget(bytes_ + copy.size(), used_ - copy.size());
}

Memory& memory() {
  static auto* const one = new Memory;  // never destroyed: tensors may live longer than statics
  return *one;
}

c10::DataPtr Pinned::allocate(std::size_t size) {
  constexpr std::size_t alignment = 64;
  void* block = std::aligned_alloc(alignment, (std::max<std::size_t>(size, 1) + alignment - 1) / alignment * alignment);
  TORCH_CHECK(block != nullptr, "fake device: no memory");
  const std::lock_guard lock(mutex_);
  sizes_[static_cast<const char*>(block)] = size;
  return {block, block, &drop, c10::Device(c10::DeviceType::CPU)};
}

void Pinned::copy_data(void* to, const void* from, std::size_t count) const { std::memcpy(to, from, count); }

bool Pinned::holds(const void* address) {
  const std::lock_guard lock(mutex_);
  auto next = sizes_.upper_bound(static_cast<const char*>(address));
  if (next == sizes_.begin()) return false;
  --next;
  return static_cast<const char*>(address) < next->first + next->second;
}

void Pinned::reads(const void* from, std::size_t count) {
  const auto* bytes = static_cast<const char*>(from);
  read_.push_back({bytes, std::string(bytes, bytes + count)});
}

void Pinned::settle() {
  for (const auto& read : read_)
    disturbed_ = disturbed_ || std::memcmp(read.from, read.content.data(), read.content.size()) != 0;
  read_.clear();
  TORCH_CHECK(!std::exchange(disturbed_, false), "fake device: the host wrote to memory that a copy was reading");
}

void Pinned::release(char* block) {
  const std::lock_guard lock(mutex_);
  const auto* end = block + sizes_.at(block);
  // LibTorch hands such memory out again only after the copies that read it. Until now it had to stay as it was.
  std::erase_if(read_, [&](const Read& read) {
    if (read.from < block || read.from >= end) return false;
    disturbed_ = disturbed_ || std::memcmp(read.from, read.content.data(), read.content.size()) != 0;
    return true;
  });
  sizes_.erase(block);
  std::free(block);
}

void Pinned::drop(void* block) { pinned().release(static_cast<char*>(block)); }

Pinned& pinned() {
  static auto* const one = new Pinned;
  return *one;
}

Counts counts() { return state().counts; }
std::vector<std::string> events() { return state().events; }
void reset() {
  state().counts = {};
  state().events.clear();
}

Forbidden::Forbidden(Rules rules) : before_(std::exchange(state().rules, rules)) {}
Forbidden::~Forbidden() { state().rules = before_; }

void expect_copies_undisturbed() { pinned().settle(); }

}  // namespace tsdp::test::fake
