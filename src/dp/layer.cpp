#include "tsdp/dp/layer.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>

#include "dp/device_kind.h"
#include "row_kernels.h"
#include "tsdp/base/error.h"

namespace tsdp::dp {
namespace {

std::atomic<int> plain_only = 0;

}  // namespace

PlainOperations::PlainOperations() { ++plain_only; }
PlainOperations::~PlainOperations() { --plain_only; }

bool kernels_serve(const at::Tensor& tensor) {
  return plain_only.load(std::memory_order_relaxed) == 0 && tensor.device().is_cpu() &&
         tensor.scalar_type() == at::kFloat;
}

Records Records::each_window(std::int64_t windows) {
  Records out;
  out.count_ = out.windows_ = windows;
  return out;
}

Records::Records(std::vector<std::int64_t> starts, std::int64_t expected)
    : starts_(std::move(starts)), expected_(expected) {
  if (starts_.empty() || starts_.front() != 0) throw Error(ExitCode::failure, "records begin with the first window");
  count_ = static_cast<std::int64_t>(starts_.size()) - 1;
  windows_ = starts_.back();
  for (std::int64_t r = 0; r < count_; ++r) {
    if (end(r) <= begin(r)) throw Error(ExitCode::failure, "a record has a window");
    largest_ = std::max(largest_, end(r) - begin(r));
  }
}

Records Records::range(std::int64_t first, std::int64_t last) const {
  if (starts_.empty()) return each_window(last - first);
  std::vector<std::int64_t> starts(starts_.begin() + first, starts_.begin() + last + 1);
  for (auto& start : starts) start -= begin(first);
  return Records(std::move(starts), expected_);
}

at::Tensor Records::places(std::int64_t stride, bool within, const at::Device& device) const {
  auto out = at::empty({windows_}, host_memory_for(device).dtype(at::kLong));
  auto* place = out.data_ptr<std::int64_t>();
  for (std::int64_t r = 0; r < count_; ++r)
    for (auto w = begin(r); w < end(r); ++w) *place++ = r * stride + (within ? w - begin(r) : 0);
  return out.to(device, /*non_blocking=*/true);
}

at::Tensor Records::side_by_side(const at::Tensor& rows) const {
  auto shape = rows.sizes().vec();
  shape[0] = count_ * largest_;
  auto all = rows;
  if (!all_as_large())
    all = at::zeros(shape, rows.options()).index_copy_(0, places(largest_, true, rows.device()), rows);
  if (shape.size() == 2) return all.reshape({count_, largest_, shape[1]});
  return all.reshape({count_, largest_ * shape[1], shape[2]});
}

at::Tensor Records::sums(const at::Tensor& rows) const {
  auto shape = rows.sizes().vec();
  shape[0] = count_;
  if (rows.device().is_cpu()) {
    // One window after the other, in an order that is the record's own.
    const auto all = rows.contiguous();
    auto out = at::empty(shape, rows.options());
    AT_DISPATCH_FLOATING_TYPES(rows.scalar_type(), "sums", [&] {
      const auto width = count_ == 0 ? 0 : out.numel() / count_;
      auto* sum = out.data_ptr<scalar_t>();
      for (std::int64_t r = 0; r < count_; ++r, sum += width) {
        const auto* row = all.const_data_ptr<scalar_t>() + begin(r) * width;
        std::copy_n(row, width, sum);
        for (auto w = begin(r) + 1; w < end(r); ++w) {
          row += width;
          for (std::int64_t j = 0; j < width; ++j) sum[j] += row[j];
        }
      }
    });
    return out;
  }
  if (!all_as_large()) return at::zeros(shape, rows.options()).index_add_(0, places(1, false, rows.device()), rows);
  shape.insert(shape.begin() + 1, largest_);
  return rows.reshape(shape).sum(1);
}

at::Tensor Records::for_windows(const at::Tensor& of_records) const {
  if (all_as_large()) return of_records.repeat_interleave(largest_);
  return of_records.index_select(0, places(1, false, of_records.device()));
}

at::Tensor& fitted(at::Tensor& buffer, at::IntArrayRef shape, const at::TensorOptions& options) {
  if (!buffer.defined() || buffer.sizes() != shape || buffer.options().dtype() != options.dtype() ||
      buffer.device() != options.device())
    buffer = at::empty(shape, options);
  return buffer;
}

at::Tensor squared_norms(const at::Tensor& vectors) {
  return at::linalg_vector_norm(vectors, 2, at::IntArrayRef{-1}, /*keepdim=*/false, at::kDouble).square_();
}

}  // namespace tsdp::dp
