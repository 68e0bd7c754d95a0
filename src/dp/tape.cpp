#include "tsdp/dp/tape.h"

#include <cmath>

namespace tsdp::dp {

Tape::Value Tape::push(Node node) {
  nodes_.push_back(std::move(node));
  return nodes_.size() - 1;
}

Tape::Value Tape::constant(at::Tensor value) {
  Node node;
  node.value = std::move(value);
  return push(std::move(node));
}

Tape::Value Tape::apply(Map& layer, Value input) {
  for (const auto& earlier : nodes_)
    TORCH_CHECK(earlier.layer != &layer, "a layer keeps one record: it may be applied once a recording");
  Node node;
  node.kind = Kind::layer;
  node.value = layer.forward(nodes_.at(input).value);
  node.first = input;
  node.layer = &layer;
  node.wants_gradient = true;
  return push(std::move(node));
}

Tape::Value Tape::derived(Kind kind, at::Tensor value, Value first, Value second) {
  Node node;
  node.kind = kind;
  node.value = std::move(value);
  node.first = first;
  node.second = second;
  node.wants_gradient = nodes_.at(first).wants_gradient || nodes_.at(second).wants_gradient;
  return push(std::move(node));
}

Tape::Value Tape::relu(Value input) { return derived(Kind::relu, at::relu(nodes_.at(input).value), input, input); }

Tape::Value Tape::add(Value a, Value b) { return derived(Kind::add, nodes_.at(a).value + nodes_.at(b).value, a, b); }

Tape::Value Tape::beside(Value input, const at::Tensor& constant) {
  return derived(Kind::beside, at::cat({nodes_.at(input).value, constant}, -1), input, input);
}

Tape::Value Tape::view(Value input, std::vector<std::int64_t> shape) {
  return derived(Kind::view, nodes_.at(input).value.view(shape), input, input);
}

namespace {

/// (B, D) as (G, heads, tokens, D / heads), and back.
at::Tensor by_head(const at::Tensor& rows, std::int64_t tokens, std::int64_t heads) {
  return rows.reshape({-1, tokens, heads, rows.size(1) / heads}).transpose(1, 2);
}
at::Tensor as_rows(const at::Tensor& of_heads) {
  return of_heads.transpose(1, 2).reshape({-1, of_heads.size(1) * of_heads.size(3)});
}

}  // namespace

Tape::Value Tape::attention(Value query, Value key, Value value, std::int64_t tokens, std::int64_t heads) {
  const auto part = [&](Value of) { return by_head(nodes_.at(of).value, tokens, heads); };
  const auto q = part(query);
  const auto weights =
      at::softmax(q.matmul(part(key).transpose(2, 3)).div_(std::sqrt(static_cast<double>(q.size(3)))), -1);
  const auto out = derived(Kind::attention, as_rows(weights.matmul(part(value))), query, key);
  auto& node = nodes_.back();
  node.third = value;
  node.weights = weights;
  node.wants_gradient = node.wants_gradient || nodes_.at(value).wants_gradient;
  return out;
}

void Tape::attention_backward(const Node& node, const at::Tensor& gradient) {
  const auto& p = node.weights;
  const auto part = [&](Value of) { return by_head(nodes_.at(of).value, p.size(2), p.size(1)); };
  const auto back = by_head(gradient, p.size(2), p.size(1));
  const auto by_weights = back.matmul(part(node.third).transpose(2, 3));
  const auto q = part(node.first);
  const auto by_logits =
      (p * (by_weights - (p * by_weights).sum(-1, true))).div_(std::sqrt(static_cast<double>(q.size(3))));
  give(node.first, {as_rows(by_logits.matmul(part(node.second)))});
  give(node.second, {as_rows(by_logits.transpose(2, 3).matmul(q))});
  give(node.third, {as_rows(p.transpose(2, 3).matmul(back))});
}

void Tape::give(Value to, const Gradient& gradient) {
  auto& node = nodes_[to];
  if (!node.wants_gradient) return;
  node.gradient = node.gradient.value.defined() ? Gradient{node.gradient.value + gradient.value} : gradient;
}

void Tape::backward(Value end, const Gradient& gradient) {
  give(end, gradient);
  for (Value i = end + 1; i-- > 0;) {
    auto& node = nodes_[i];
    if (!node.gradient.value.defined()) continue;
    const auto back = std::move(node.gradient);
    node.gradient = {};
    switch (node.kind) {
      case Kind::constant: break;
      case Kind::layer: {
        const auto input_gradient = node.layer->backward(back, nodes_[node.first].wants_gradient);
        if (input_gradient.defined()) give(node.first, {input_gradient});
        break;
      }
      case Kind::relu: give(node.first, {at::threshold_backward(back.value, node.value, 0.0)}); break;
      case Kind::add:
        give(node.first, back);
        give(node.second, back);
        break;
      case Kind::beside:
        give(node.first, {back.value.narrow(-1, 0, nodes_[node.first].value.size(-1)).contiguous()});
        break;
      case Kind::attention: attention_backward(node, back.value); break;
      case Kind::view: give(node.first, {back.value.view(nodes_[node.first].value.sizes()), back.window_norms}); break;
    }
  }
}

}  // namespace tsdp::dp
