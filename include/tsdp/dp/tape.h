// The forward composition of layers, written once; the backward pass follows from it.
#pragma once

#include <cstddef>
#include <vector>

#include <ATen/ATen.h>

#include "tsdp/dp/layer.h"

namespace tsdp::dp {

/// Records a composition of layers and a few parameter-free operations, and runs it backwards. A layer may be applied
/// only once per recording, as it keeps one record.
class Tape {
 public:
  using Value = std::size_t;

  /// Forgets the last recording.
  void clear() { nodes_.clear(); }
  /// A value that no parameter influences: no gradient flows into it.
  Value constant(at::Tensor value);
  Value apply(Map& layer, Value input);
  Value relu(Value input);
  Value add(Value a, Value b);
  /// With the columns of a constant behind those of `input`, along the last axis.
  Value beside(Value input, const at::Tensor& constant);
  /// The same elements in another shape.
  Value view(Value input, std::vector<std::int64_t> shape);
  /// Attention with `heads` heads among every `tokens` rows of (B, D) in a row, without parameters of its own:
  /// softmax(q kᵀ / √(D / heads)) v. Rows of other groups do not matter.
  Value attention(Value query, Value key, Value value, std::int64_t tokens, std::int64_t heads);

  [[nodiscard]] const at::Tensor& operator[](Value value) const { return nodes_.at(value).value; }

  /// Runs backwards from the gradient of the summed loss with respect to `end`.
  void backward(Value end, const Gradient& gradient);

 private:
  enum class Kind {
    constant,
    layer,
    relu,
    add,
    beside,
    view,
    attention
  };
  struct Node {
    Kind kind = Kind::constant;
    at::Tensor value;
    Value first = 0, second = 0, third = 0;
    Map* layer = nullptr;
    at::Tensor weights;  // of attention: (G, heads, tokens, tokens)
    bool wants_gradient = false;
    Gradient gradient;
  };
  Value push(Node node);
  Value derived(Kind kind, at::Tensor value, Value first, Value second);
  void give(Value to, const Gradient& gradient);
  void attention_backward(const Node& node, const at::Tensor& gradient);

  std::vector<Node> nodes_;
};

}  // namespace tsdp::dp
