// All parameters of a model as views of one flat buffer, and their gradients as views of another.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/ATen.h>

namespace tsdp::dp {

/// One flat buffer of values and one of gradients. Parameters that are trained come first, then those that stay as they
/// are, both in the order in which they were declared, without gaps; coordinate j of the noise belongs to place j of
/// the buffer.
class ParameterBuffer {
 public:
  struct Entry {
    std::string name;
    std::vector<std::int64_t> shape;
    std::int64_t offset;  ///< known after `allocate`
    std::int64_t count;
    bool trained;
  };

  /// Declares a parameter and returns its place. To be called before `allocate`.
  std::size_t declare(std::string name, std::vector<std::int64_t> shape, bool trained = true);
  /// Allocates zeros; `shared`, if defined (count), becomes the buffer of values instead. Invalidates the views handed
  /// out before.
  void allocate(const at::TensorOptions& options, const at::Tensor& shared = {});

  [[nodiscard]] const std::vector<Entry>& entries() const noexcept { return entries_; }
  [[nodiscard]] std::int64_t count() const noexcept { return count_; }
  [[nodiscard]] std::int64_t trained_count() const noexcept { return trained_count_; }
  [[nodiscard]] const at::Tensor& values() const noexcept { return values_; }  ///< (count)
  /// All that a step may change: (trained_count), the first places of `values`.
  [[nodiscard]] at::Tensor trained_values() const { return values_.narrow(0, 0, trained_count_); }
  [[nodiscard]] const at::Tensor& gradients() const noexcept { return gradients_; }  ///< (trained_count)
  [[nodiscard]] at::Tensor value(std::size_t entry) const { return view(values_, entry); }
  /// Undefined for a parameter that is not trained.
  [[nodiscard]] at::Tensor gradient(std::size_t entry) const {
    return entries_.at(entry).trained ? view(gradients_, entry) : at::Tensor();
  }

 private:
  [[nodiscard]] at::Tensor view(const at::Tensor& flat, std::size_t entry) const;

  std::vector<Entry> entries_;
  std::int64_t count_ = 0, trained_count_ = 0;
  at::Tensor values_;
  at::Tensor gradients_;
};

}  // namespace tsdp::dp
