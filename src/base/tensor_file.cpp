#include "tsdp/base/tensor_file.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <set>

#include <nlohmann/json.hpp>

#include "base/digest.h"
#include "tsdp/base/error.h"
#include "tsdp/base/json.h"
#include "tsdp/base/text.h"

namespace tsdp {
namespace {

using Json = nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little, "values are written as they lie in memory");

constexpr const char* checksum_name = "sha256";
constexpr std::size_t checksum_size = 32;
constexpr std::size_t length_size = 8;
constexpr std::size_t largest_header = 100'000'000;  // as safetensors has it

std::optional<std::size_t> size_of_type(std::string_view type) {
  if (type == "F64" || type == "I64") return 8;
  if (type == "F32") return 4;
  if (type == "U8") return 1;
  return std::nullopt;
}

/// Bytes of a tensor; none if the type is unknown, a length is negative or the product does not fit.
std::optional<std::uint64_t> size_of(std::string_view type, const std::vector<std::int64_t>& shape) {
  const auto unit = size_of_type(type);
  if (!unit) return std::nullopt;
  std::uint64_t size = *unit;
  for (const auto length : shape) {
    if (length < 0) return std::nullopt;
    const auto wide = static_cast<std::uint64_t>(length);
    if (wide != 0 && size > std::numeric_limits<std::uint64_t>::max() / 2 / wide) return std::nullopt;
    size *= wide;
  }
  return size;
}

/// The 32 bytes of a digest.
std::string checksum(std::string_view bytes) {
  const auto hex = sha256(bytes);
  std::string out;
  const auto value = [](char digit) { return digit <= '9' ? digit - '0' : digit - 'a' + 10; };
  for (std::size_t i = 0; i < hex.size(); i += 2) out += static_cast<char>(value(hex[i]) * 16 + value(hex[i + 1]));
  return out;
}

}  // namespace

bool TensorFile::has(const std::string& name) const {
  return std::any_of(tensors.begin(), tensors.end(), [&](const StoredTensor& t) { return t.name == name; });
}

const StoredTensor& TensorFile::tensor(const std::string& name, const std::string& where) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const auto& t) { return t.name == name; });
  if (found == tensors.end())
    throw DataError(cat(where, ": holds no tensor '", name, "'; expected a file that tsdp wrote"));
  return *found;
}

const std::string& TensorFile::text(const std::string& name, const std::string& where) const {
  const auto found = texts.find(name);
  if (found == texts.end())
    throw DataError(cat(where, ": holds no text '", name, "'; expected a file that tsdp wrote"));
  return found->second;
}

std::string tensor_file_bytes(const TensorFile& content) {
  Json header = Json::object();
  header["__metadata__"] = content.texts;
  std::uint64_t place = 0;
  std::set<std::string> names;
  const auto add = [&](const StoredTensor& tensor, std::uint64_t bytes) {
    if (!names.insert(tensor.name).second)
      throw Error(ExitCode::failure, cat("two tensors are called '", tensor.name, "'"));
    if (size_of(tensor.type, tensor.shape) != bytes)
      throw Error(ExitCode::failure,
                  cat("tensor '", tensor.name, "' has ", bytes, " bytes, which do not fit its type and shape"));
    header[tensor.name] = {{"dtype", tensor.type}, {"shape", tensor.shape}, {"data_offsets", {place, place + bytes}}};
    place += bytes;
  };
  for (const auto& tensor : content.tensors) add(tensor, tensor.bytes.size());
  add({checksum_name, "U8", {checksum_size}, {}}, checksum_size);
  auto text = json_text(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // values are aligned
  std::string out;
  for (std::size_t i = 0; i < length_size; ++i) out += static_cast<char>(text.size() >> (8 * i) & 0xff);
  out += text;
  for (const auto& tensor : content.tensors) out += tensor.bytes;
  out += checksum(out);
  return out;
}

TensorFile read_tensor_file(std::string_view bytes, const std::string& where) {
  const auto damaged = [&](const auto&... what) {
    return DataError(cat(where, ": damaged (", what..., "); expected a file that tsdp wrote"));
  };
  if (bytes.size() < length_size + checksum_size) throw damaged("found ", bytes.size(), " bytes");
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < length_size; ++i)
    length |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  if (length > largest_header || length > bytes.size() - length_size - checksum_size)
    throw damaged("or another kind of file: no header");
  // Checked first of all, so that nothing below reads what a flipped bit made.
  if (checksum(bytes.substr(0, bytes.size() - checksum_size)) != bytes.substr(bytes.size() - checksum_size))
    throw damaged("its checksum does not fit");
  const auto values = bytes.substr(length_size + length);
  const auto header = parse_json(bytes.substr(length_size, length), where);
  if (!header.is_object()) throw damaged("no header");
  TensorFile out;
  std::uint64_t place = 0;
  for (const auto& item : header.items()) {
    const auto& name = item.key();
    const auto& about = item.value();
    if (name == "__metadata__") {
      if (!about.is_object()) throw damaged("no texts");
      for (const auto& [key, text] : about.items()) {
        if (!text.is_string()) throw damaged("text '", key, "' is none");
        out.texts[key] = text.template get<std::string>();
      }
      continue;
    }
    const auto part = [&](const char* key) { return about.is_object() ? about.value(key, Json()) : Json(); };
    const auto type = part("dtype"), shape = part("shape"), offsets = part("data_offsets");
    const auto counts = [](const Json& list) {
      return list.is_array() && std::all_of(list.begin(), list.end(), [](const Json& n) {
               return n.is_number_unsigned() && n <= std::uint64_t{1} << 62;
             });
    };
    if (!type.is_string() || !counts(shape) || !counts(offsets) || offsets.size() != 2 || shape.size() > 8)
      throw damaged("tensor '", name, "' has no type, shape or place");
    StoredTensor tensor{name, type.get<std::string>(), shape.get<std::vector<std::int64_t>>(), {}};
    const auto begin = offsets[0].get<std::uint64_t>(), end = offsets[1].get<std::uint64_t>();
    // One after the other, without gaps, so that every byte has one meaning.
    if (begin != place || end < begin || end > values.size() || size_of(tensor.type, tensor.shape) != end - begin)
      throw damaged("tensor '", name, "' does not lie where its shape says");
    place = end;
    if (name == checksum_name) continue;
    tensor.bytes = values.substr(begin, end - begin);
    out.tensors.push_back(std::move(tensor));
  }
  if (place != values.size() || !header.contains(checksum_name)) throw damaged("bytes that belong to no tensor");
  return out;
}

}  // namespace tsdp
