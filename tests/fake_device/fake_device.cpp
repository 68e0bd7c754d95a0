#include "fake_device.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/ops/_reshape_alias_cpu_dispatch.h>
#include <ATen/ops/as_strided_cpu_dispatch.h>
#include <ATen/ops/unfold_cpu_dispatch.h>
#include <ATen/ops/view_cpu_dispatch.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/library.h>

#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "device_lstm.h"
#include "device_memory.h"

namespace tsdp::test::fake {

at::Tensor bytes_of(const at::Tensor& t) {
  void* at = t.numel() == 0 ? nullptr : memory().bytes(t.const_data_ptr());
  return at::from_blob(at, t.sizes(), t.strides(), t.options().device(at::kCPU).requires_grad(false));
}

namespace {

thread_local c10::StreamId stream_now = 0;  // 0 is the device's default stream

struct Guard final : c10::impl::DeviceGuardImplInterface {
  static constexpr c10::DeviceType static_type = device_type;
  static c10::Stream stream(c10::StreamId id) {
    return c10::Stream(c10::Stream::UNSAFE, c10::Device(device_type, 0), id);
  }

  c10::DeviceType type() const override { return static_type; }
  c10::Device exchangeDevice(c10::Device) const override { return {static_type, 0}; }
  c10::Device getDevice() const override { return {static_type, 0}; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const override { return stream(stream_now); }
  c10::Stream getDefaultStream(c10::Device) const override { return stream(0); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override { return stream(1); }
  c10::Stream exchangeStream(c10::Stream to) const override { return stream(std::exchange(stream_now, to.id())); }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  void synchronizeStream(const c10::Stream&) const override { wait_for("a stream"); }
  void synchronizeDevice(const c10::DeviceIndex) const override { wait_for("the device"); }
};

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  void setCurrentDevice(c10::DeviceIndex) const override {}
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex) const override { return 0; }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex) const override { return 0; }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
    static const auto generator = at::detail::createCPUGenerator();  // at::manual_seed wants one
    return generator;
  }
  bool isPinnedPtr(const void* address) const override { return pinned().holds(address); }
  at::Allocator* getPinnedMemoryAllocator() const override { return &pinned(); }
};

bool on_device(const at::Tensor& t) { return t.defined() && t.device().type() == device_type; }

at::Tensor like_on_device(const at::Tensor& cpu) {
  return at::empty_strided(cpu.sizes(), cpu.strides(), cpu.options().device(c10::Device(device_type, 0)));
}

std::string name_of(const c10::FunctionSchema& schema) {
  const auto name = schema.name().substr(schema.name().find("::") + 2);
  return schema.overload_name().empty() ? name : name + "." + schema.overload_name();
}

/// Operators that CUDA refuses where results may not vary from run to run.
void refuse_what_varies(const std::string& name) {
  static const std::set<std::string> varies = {
      "bincount", "cumsum.out", "histc", "kthvalue.values", "median.dim_values", "put_",
  };
  TORCH_CHECK(!at::globalContext().deterministicAlgorithms() || !varies.contains(name), "fake device: ", name,
              " varies from run to run");
}

/// The size of its result is known only when the device is done.
bool asks_for_a_size(const std::string& name, const std::vector<c10::IValue>& given) {
  static const std::set<std::string> asks = {"nonzero",  "masked_select", "repeat_interleave.Tensor",
                                             "_unique2", "unique_dim",    "bincount"};
  const bool told = name == "repeat_interleave.Tensor" && given.size() > 1 && given[1].isInt();
  return asks.contains(name) && !told;
}

/// One call of an operator, as the CPU takes it.
class Call {
 public:
  Call(const c10::OperatorHandle& op, const std::vector<c10::IValue>& given) : op_(op), given_(given) {
    for (std::size_t i = 0; i < given.size(); ++i) stack_.push_back(taken(given[i], op.schema().arguments()[i]));
  }

  std::vector<c10::IValue> run() {
    const auto name = name_of(op_.schema());
    refuse_what_varies(name);
    std::vector<c10::IValue> found;
    auto& s = state();
    auto* const recording = std::exchange(s.recording, nullptr);  // it is taken down below, with its results
    launch([&] {
      found = stack_;
      op_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &found);
    });
    s.recording = recording;
    for (auto& [ours, theirs] : resized_) {
      ours.resize_(theirs.sizes());
      bytes_of(ours).copy_(theirs);
    }
    auto out = results(name, found);
    if (asks_for_a_size(name, given_)) wait_for(name + ", the size of its result");
    if (recording != nullptr) recording->launched.push_back(again(out));
    return out;
  }

 private:
  c10::IValue taken(const c10::IValue& value, const c10::Argument& argument) {
    if (value.isTensor()) return tensor(value.toTensor(), argument, false);
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& t : value.toTensorList()) list.push_back(tensor(t, argument, true));
      return list;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const std::optional<at::Tensor> t : value.toOptionalTensorList())
        list.push_back(t ? std::optional(tensor(*t, argument, true)) : t);
      return list;
    }
    if (value.isDevice()) return c10::Device(at::kCPU);
    return value;
  }

  at::Tensor tensor(const at::Tensor& t, const c10::Argument& argument, bool in_list) {
    if (!t.defined()) return t;
    const bool written = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
    if (!on_device(t)) {
      // As CUDA has it: a number may lie on the host, and is read when the call is made.
      TORCH_CHECK(t.dim() == 0 && !written && !in_list, "fake device: ", name_of(op_.schema()),
                  " is given a tensor of shape ", t.sizes(), " on ", t.device(), ": argument ", argument.name());
      return t.clone();
    }
    if (!written || t.numel() > 0) return bytes_of(t);
    resized_.emplace_back(t, at::empty({0}, t.options().device(at::kCPU)));
    return resized_.back().second;
  }

  std::vector<c10::IValue> results(const std::string& name, const std::vector<c10::IValue>& found) {
    const auto& schema = op_.schema();
    TORCH_CHECK(found.size() == schema.returns().size(), "fake device: results of ", name);
    std::vector<c10::IValue> out;
    for (std::size_t r = 0; r < found.size(); ++r) {
      if (const auto* alias = schema.returns()[r].alias_info()) {
        out.push_back(in_place(name, *alias));
      } else if (found[r].isTensorList()) {
        c10::List<at::Tensor> list;
        for (const at::Tensor& t : found[r].toTensorList()) list.push_back(made(t));
        out.emplace_back(list);
      } else if (found[r].isTensor()) {
        out.emplace_back(made(found[r].toTensor()));
      } else {
        wait_for(name + ", whose result is no tensor");
        out.push_back(found[r]);
      }
    }
    return out;
  }

  [[nodiscard]] c10::IValue in_place(const std::string& name, const c10::AliasInfo& alias) const {
    TORCH_CHECK(alias.isWrite(), "fake device: the view ", name, " is not registered");
    for (std::size_t i = 0; i < given_.size(); ++i) {
      const auto* other = op_.schema().arguments()[i].alias_info();
      if (other != nullptr && other->beforeSets() == alias.beforeSets()) return given_[i];
    }
    TORCH_CHECK(false, "fake device: ", name, " returns nothing that it was given");
  }

  static at::Tensor made(const at::Tensor& cpu) {
    if (!cpu.defined()) return cpu;
    auto out = like_on_device(cpu);
    if (cpu.numel() > 0) bytes_of(out).copy_(cpu);
    return out;
  }

  /// The same on the same addresses.
  [[nodiscard]] std::function<void()> again(const std::vector<c10::IValue>& out) const {
    TORCH_CHECK(resized_.empty() || resized_.size() == 1, "fake device: several results are resized");
    std::vector<std::pair<std::size_t, at::Tensor>> made_here;
    for (std::size_t r = 0; r < out.size(); ++r) {
      if (op_.schema().returns()[r].alias_info() != nullptr) continue;
      TORCH_CHECK(out[r].isTensor(), "fake device: a list of results cannot be recorded");
      if (out[r].toTensor().defined() && out[r].toTensor().numel() > 0)
        made_here.emplace_back(r, bytes_of(out[r].toTensor()));
    }
    auto stack = stack_;
    for (const auto& [ours, theirs] : resized_)
      for (auto& value : stack)
        if (value.isTensor() && value.toTensor().is_same(theirs)) value = bytes_of(ours);
    return [op = op_, stack, made_here] {
      auto found = stack;
      op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &found);
      for (const auto& [r, bytes] : made_here) bytes.copy_(found[r].toTensor());
    };
  }

  c10::OperatorHandle op_;
  const std::vector<c10::IValue>& given_;
  torch::jit::Stack stack_;
  std::vector<std::pair<at::Tensor, at::Tensor>> resized_;  // ours, and an empty one that takes what comes
};

void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto count = op.schema().arguments().size();
  const std::vector<c10::IValue> given(stack->end() - static_cast<std::ptrdiff_t>(count), stack->end());
  const auto found = Call(op, given).run();
  torch::jit::drop(*stack, count);
  stack->insert(stack->end(), found.begin(), found.end());
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  if (to.numel() == 0) return to;
  if (!on_device(from) || !on_device(to)) {
    auto& s = state();
    const auto& host = on_device(from) ? to : from;
    const bool is_pinned = pinned().holds(host.const_data_ptr());
    const auto what = c10::str("a copy of ", to.scalar_type(), " ", to.sizes(), " from ", from.device(), " to ",
                               to.device(), is_pinned ? ", pinned" : ", pageable");
    s.events.push_back(what);
    ++(on_device(to) ? s.counts.to_device : s.counts.to_host);
    if (!is_pinned) ++s.counts.pageable;
    TORCH_CHECK(s.recording == nullptr || on_device(to), "fake device: a record reads what only a replay writes");
    if (!is_pinned || !non_blocking) wait_for(what);
    else if (on_device(to)) pinned().reads(from.const_data_ptr(), from.numel() * from.itemsize());
  }
  launch([from = on_device(from) ? bytes_of(from) : from, to = on_device(to) ? bytes_of(to) : to] { to.copy_(from); });
  return to;
}

at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                 std::optional<at::Device>, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  return at::Tensor(at::detail::empty_generic(size, &memory(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                              c10::dtype_or_default(dtype), format));
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>) {
  return at::Tensor(at::detail::empty_strided_generic(
      size, stride, &memory(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), c10::dtype_or_default(dtype)));
}

const at::Tensor& resize(const at::Tensor& self, at::IntArrayRef size, std::optional<at::MemoryFormat>) {
  auto bytes = self.itemsize();
  for (const auto n : size) bytes *= static_cast<std::size_t>(n);
  auto* impl = self.unsafeGetTensorImpl();
  auto* storage = impl->unsafe_storage().unsafeGetStorageImpl();
  if (storage->nbytes() < bytes) {
    storage->set_data_ptr_noswap(memory().allocate(bytes));
    storage->set_nbytes(bytes);
  }
  impl->set_sizes_contiguous(size);
  return self;
}

at::Scalar number_of(const at::Tensor& self) {
  wait_for("a number");
  ++state().counts.to_host;
  return bytes_of(self).item();
}

class Graph final : public dp::DeviceGraph {
 public:
  Graph() = default;
  ~Graph() override {
    for (auto* block : recording_.blocks) memory().release(block);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void record(const std::function<void()>& work) override {
    TORCH_CHECK(stream_now != 0, "fake device: nothing can be recorded on the default stream");
    // CUDA takes work down without doing it. Here it is done, for its results' shapes, and then undone.
    const auto before = memory().copy();
    const auto counts = state().counts;
    state().recording = &recording_;
    try {
      work();
    } catch (...) {
      state().recording = nullptr;
      throw;
    }
    state().recording = nullptr;
    memory().put_back(before);
    const auto allocations = state().counts.allocations;
    state().counts = counts;
    state().counts.allocations = allocations;
  }
  void replay() override {
    auto& counts = state().counts;
    ++counts.launches;
    counts.kernels += static_cast<std::int64_t>(recording_.launched.size());
    for (const auto& work : recording_.launched) work();
  }

 private:
  Recording recording_;
};

void install() {
  c10::register_privateuse1_backend("fake");
  static auto* const hooks = new Hooks;
  at::RegisterPrivateUse1HooksInterface(hooks);
  c10::SetAllocator(device_type, &memory());
  dp::register_device_kind(device_type, {graph, [](const at::Device&) { return "fake device"; }, lstm_kernels()});
}

}  // namespace

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("resize_", &resize);
  library.impl("_copy_from", &copy_from);
  library.impl("_local_scalar_dense", &number_of);
  library.impl("as_strided",
               [](const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride,
                  std::optional<std::int64_t> offset) { return at::cpu::as_strided(self, size, stride, offset); });
  library.impl("view", [](const at::Tensor& self, at::IntArrayRef size) { return at::cpu::view(self, size); });
  library.impl("_reshape_alias", [](const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride) {
    return at::cpu::_reshape_alias(self, size, stride);
  });
  library.impl("unfold", [](const at::Tensor& self, std::int64_t dim, std::int64_t size, std::int64_t step) {
    return at::cpu::unfold(self, dim, size, step);
  });
  library.impl("_thnn_fused_lstm_cell", &fused_cell);
  library.impl("_thnn_fused_lstm_cell_backward_impl", &fused_cell_backward);
}

at::Device device() {
  static std::once_flag once;
  std::call_once(once, install);
  return {device_type, 0};
}

std::unique_ptr<dp::DeviceGraph> graph() { return std::make_unique<Graph>(); }

}  // namespace tsdp::test::fake
