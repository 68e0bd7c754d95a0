#include "base/event_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp {
namespace {

constexpr std::string_view name_begin = "events.out.tfevents.";

constexpr std::array<std::uint32_t, 256> crc_table = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1U) ^ ((value & 1U) != 0U ? 0x82F63B78U : 0U);
    table[i] = value;
  }
  return table;
}();

/// A CRC as records carry it: rotated and shifted, so that one of text that holds CRCs is no trivial function of them.
std::uint32_t masked_crc(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xA282EAD8U; }

template <class Unsigned>
void put_fixed(std::string& out, Unsigned value) {
  for (std::size_t i = 0; i < sizeof value; ++i) out += static_cast<char>((value >> (8U * i)) & 0xFFU);
}

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80U; value >>= 7U) out += static_cast<char>((value & 0x7FU) | 0x80U);
  out += static_cast<char>(value);
}

/// Fields of a protocol-buffer message, by wire type.
enum class Wire : unsigned {
  varint = 0,
  fixed64 = 1,
  bytes = 2,
  fixed32 = 5
};
void put_key(std::string& out, unsigned field, Wire wire) {
  put_varint(out, field << 3U | static_cast<unsigned>(wire));
}
void put_bytes(std::string& out, unsigned field, std::string_view bytes) {
  put_key(out, field, Wire::bytes);
  put_varint(out, bytes.size());
  out += bytes;
}

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

/// Event: wall_time = 1, step = 2.
std::string event_begin(std::uint64_t step) {
  std::string event;
  put_key(event, 1, Wire::fixed64);
  put_fixed(event, std::bit_cast<std::uint64_t>(now()));
  put_key(event, 2, Wire::varint);
  put_varint(event, step);
  return event;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const char c : bytes) crc = crc_table[(crc ^ static_cast<unsigned char>(c)) & 0xFFU] ^ (crc >> 8U);
  return ~crc;
}

EventFile::EventFile(const std::filesystem::path& folder, std::uint64_t first_step) {
  // After all that are there, even if the clock was set back in between.
  auto seconds = static_cast<long long>(now());
  long long number = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const auto name = entry.path().filename().string();
    if (!name.starts_with(name_begin)) continue;
    ++number;
    long long other = 0;
    if (parse_int(name.substr(name_begin.size(), name.find('.', name_begin.size()) - name_begin.size()), other))
      seconds = std::max(seconds, other);
  }
  std::array<char, 64> name{};
  std::snprintf(name.data(), name.size(), "%s%010lld.tsdp.%06lld", name_begin.data(), seconds, number);
  path_ = folder / name.data();
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
  if (descriptor_ < 0) throw Error(ExitCode::failure, cat(path_.string(), ": cannot be made: ", std::strerror(errno)));

  auto version = event_begin(0);
  put_bytes(version, 3, "brain.Event:2");  // file_version
  append(version);
  auto start = event_begin(first_step);
  std::string session;
  put_key(session, 1, Wire::varint);  // status
  put_varint(session, 1);             // START
  put_bytes(start, 7, session);       // session_log
  append(start);
}

EventFile::~EventFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void EventFile::add(std::uint64_t step, std::span<const TaggedScalar> scalars) {
  std::string summary;
  for (const auto& [tag, value] : scalars) {
    std::string entry;
    put_bytes(entry, 1, tag);
    put_key(entry, 2, Wire::fixed32);  // simple_value
    put_fixed(entry, std::bit_cast<std::uint32_t>(static_cast<float>(value)));
    put_bytes(summary, 1, entry);
  }
  auto event = event_begin(step);
  put_bytes(event, 5, summary);
  append(event);
}

void EventFile::append(std::string_view event) {
  std::string record;
  put_fixed(record, static_cast<std::uint64_t>(event.size()));
  put_fixed(record, masked_crc(record));
  record += event;
  put_fixed(record, masked_crc(event));
  for (std::size_t done = 0; done < record.size();) {
    const auto wrote = ::write(descriptor_, record.data() + done, record.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) throw Error(ExitCode::failure, cat(path_.string(), ": cannot write: ", std::strerror(errno)));
    done += static_cast<std::size_t>(wrote);
  }
}

}  // namespace tsdp
