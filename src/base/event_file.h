// Scalars over training steps as an event file of TensorBoard.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace tsdp {

/// CRC-32C (Castagnoli; RFC 3720, appendix B.4) of `bytes`.
[[nodiscard]] std::uint32_t crc32c(std::string_view bytes);

/// A value under its tag, such as {"train/loss", 0.25}.
using TaggedScalar = std::pair<std::string, double>;

/// One event file, written for the owner alone (mode 0600) and only ever appended to.
///
/// The format is TensorFlow's: records of length, masked CRC-32C of the length, payload, masked CRC-32C of the payload
/// (tensorflow/core/lib/io/record_writer.h), each payload an Event message (tensorflow/core/util/event.proto) in the
/// wire format of protocol buffers. Every event is handed to the system in one piece as soon as it is added: a crash
/// costs at most the end of the last one, over which readers pass.
class EventFile {
 public:
  /// A new file in `folder`, named `events.out.tfevents.SECONDS.tsdp.NUMBER` so that it comes after those that are
  /// there (readers go by name). The name holds no host, and the file none either. Its first event says that steps from
  /// `first_step` on begin anew: readers drop what earlier files hold of them. Throws Error.
  EventFile(const std::filesystem::path& folder, std::uint64_t first_step);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  /// Appends one event. Values are rounded to single precision, as the format has it. Throws Error.
  void add(std::uint64_t step, std::span<const TaggedScalar> scalars);

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  void append(std::string_view event);

  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace tsdp
