#include "onnx_metadata.h"

#include <cstdint>
#include <limits>

namespace tsdp::mechanism {
namespace {

constexpr std::uint64_t metadata_props = 14;  // of a ModelProto
constexpr std::uint64_t key_field = 1, value_field = 2;  // of a StringStringEntryProto

/// One field of a message.
struct Field {
  std::uint64_t number;
  std::optional<std::string_view> text;  ///< none: its wire type is that of a number
};

/// The fields of one message, in order.
class Message {
 public:
  explicit Message(std::string_view bytes) : rest_(bytes) {}

  [[nodiscard]] bool done() const { return rest_.empty(); }
  /// None if the bytes are no field.
  [[nodiscard]] std::optional<Field> next() {
    const auto tag = varint();
    if (!tag || *tag >> 3 == 0 || *tag > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
    const auto number = *tag >> 3;
    switch (*tag & 7) {
      case 0: return varint() ? std::optional(Field{number, std::nullopt}) : std::nullopt;
      case 1: return take(8) ? std::optional(Field{number, std::nullopt}) : std::nullopt;
      case 5: return take(4) ? std::optional(Field{number, std::nullopt}) : std::nullopt;
      case 2:
        if (const auto size = varint())
          if (const auto text = take(*size)) return Field{number, text};
        return std::nullopt;
      default: return std::nullopt;  // groups, which ONNX never had
    }
  }

 private:
  std::optional<std::string_view> take(std::uint64_t size) {
    if (size > rest_.size()) return std::nullopt;
    const auto out = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return out;
  }
  std::optional<std::uint64_t> varint() {
    std::uint64_t out = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      out |= static_cast<std::uint64_t>(byte & 127) << shift;
      if (byte < 128) return out;
    }
    return std::nullopt;
  }

  std::string_view rest_;
};

struct Entry {
  std::optional<std::string_view> key, value;
};

std::optional<Entry> entry_of(std::string_view bytes) {
  Entry out;
  for (Message message(bytes); !message.done();) {
    const auto field = message.next();
    if (!field) return std::nullopt;
    if (field->number != key_field && field->number != value_field) continue;
    auto& part = field->number == key_field ? out.key : out.value;
    if (part || !field->text) return std::nullopt;
    part = field->text;
  }
  return out;
}

}  // namespace

std::optional<std::vector<std::string_view>> onnx_texts(std::string_view bytes, std::string_view key) {
  std::vector<std::string_view> out;
  for (Message model(bytes); !model.done();) {
    const auto field = model.next();
    if (!field) return std::nullopt;
    if (field->number != metadata_props) continue;
    const auto entry = field->text ? entry_of(*field->text) : std::nullopt;
    if (!entry) return std::nullopt;
    if (entry->key.value_or("") == key) out.push_back(entry->value.value_or(""));
  }
  return out;
}

}  // namespace tsdp::mechanism
