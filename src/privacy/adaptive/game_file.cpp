#include "game_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adaptive_game.h"
#include "base/descriptor.h"
#include "base/digest.h"
#include "game_sources.h"
#include "tsdp/base/text.h"

namespace tsdp::privacy {
namespace {

constexpr std::size_t largest_file = std::size_t{1} << 26;
constexpr std::int64_t most_bytes = std::int64_t{1} << 28;  // of all files; most have some 10 KiB
constexpr std::size_t digest_length = 64;
constexpr std::uint64_t most_rounds = 1024;
constexpr std::size_t name_length = 32;
constexpr std::string_view suffix = ".game";

/// Owned by the user, and nobody else may write to it.
bool is_own(const struct stat& s) { return s.st_uid == ::geteuid() && (s.st_mode & (S_IWGRP | S_IWOTH)) == 0; }

/// Opens the cache folder, creating it if needed. Returns a number below 0 if it is not to be trusted.
int open_folder() {
  const auto folder = cache_folder();
  if (!folder) return -1;
  std::error_code ignored;
  std::filesystem::create_directories(folder->parent_path(), ignored);
  ::mkdir(folder->c_str(), S_IRWXU);
  const int out = ::open(folder->c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  struct stat s{};
  if (out < 0 || (::fstat(out, &s) == 0 && is_own(s))) return out;
  ::close(out);
  return -1;
}

/// What a file must begin with: what the game depends on, including the program's sources that play it.
std::string heading(double q, double sigma) {
  const auto bits = [](double x) { return std::bit_cast<std::uint64_t>(x); };
  const GameSettings s;
  return cat("tsdp game 1 sources ", TSDP_GAME_SOURCES, " doubles ", bits(q), " ", bits(sigma), " ", bits(s.cover), " ",
             bits(s.step), " ", bits(s.spacing), "\n");
}

std::string name_of(double q, double sigma) {
  return sha256(heading(q, sigma)).substr(0, name_length) + std::string(suffix);
}

template <typename T>
void put(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// Reads numbers from bytes; `failed` where there are too few.
struct Reader {
  std::string_view rest;
  bool failed = false;

  template <typename T>
  T take() {
    T value{};
    if (rest.size() < sizeof value) {
      failed = true;
      return value;
    }
    std::memcpy(&value, rest.data(), sizeof value);
    rest.remove_prefix(sizeof value);
    return value;
  }
};

std::string bytes_of(double q, double sigma, const GameProfiles& profiles) {
  std::string out = heading(q, sigma);
  put(out, profiles.step());
  put(out, profiles.deviation());
  put(out, static_cast<std::uint64_t>(profiles.rounds()));
  for (std::size_t t = 1; t <= profiles.rounds(); ++t) {
    const auto& row = profiles.rows()[t];
    put(out, row.stride);
    put(out, row.error);
    put(out, static_cast<std::uint64_t>(row.values.size()));
    for (const double value : row.values) put(out, value);
  }
  return out + sha256(out);
}

/// Null where the bytes are not those of such a file.
std::shared_ptr<const GameProfiles> profiles_of(std::string_view bytes, double q, double sigma) {
  const auto expected = heading(q, sigma);
  if (bytes.size() < expected.size() + digest_length || !bytes.starts_with(expected)) return nullptr;
  const auto content = bytes.substr(0, bytes.size() - digest_length);
  if (sha256(content) != bytes.substr(content.size())) return nullptr;
  Reader in{content.substr(expected.size())};
  const auto step = in.take<double>();
  const auto deviation = in.take<double>();
  const auto rounds = in.take<std::uint64_t>();
  if (in.failed || rounds > most_rounds) return nullptr;
  GameProfiles out(step, deviation);
  for (std::uint64_t t = 1; t <= rounds; ++t) {
    GameProfiles::Row row;
    row.stride = in.take<std::int64_t>();
    row.error = in.take<double>();
    const auto count = in.take<std::uint64_t>();
    if (in.failed || count > in.rest.size() / sizeof(double)) return nullptr;
    row.values.resize(static_cast<std::size_t>(count));
    for (auto& value : row.values) value = in.take<double>();
    out.add(std::move(row));
  }
  return in.rest.empty() ? std::make_shared<const GameProfiles>(std::move(out)) : nullptr;
}

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

/// Whether name_of could give this name.
bool is_name(std::string_view name) {
  return name.size() == name_length + suffix.size() && name.ends_with(suffix) &&
         name.substr(0, name_length).find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// Whether it is the name of a file being written: by another process, or by one that did not finish.
bool is_temporary_name(std::string_view name) {
  const auto end = 1 + name_length + suffix.size();
  return name.size() > end && name.front() == '.' && is_name(name.substr(1, end - 1)) && name[end] == '.';
}

/// Removes the oldest files of this kind beyond `most_bytes`, and files left unfinished for an hour.
void remove_oldest(int folder) {
  const int copy = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0) return;
  DIR* const list = ::fdopendir(copy);
  if (list == nullptr) {
    ::close(copy);
    return;
  }
  struct Kept {
    std::time_t written;
    std::string name;
    std::int64_t bytes;
  };
  std::vector<Kept> files;
  while (const auto* entry = ::readdir(list)) {
    const std::string name = entry->d_name;
    struct stat s{};
    const bool temporary = is_temporary_name(name);
    if ((!temporary && !is_name(name)) || ::fstatat(folder, name.c_str(), &s, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(s.st_mode))
      continue;
    if (!temporary) files.push_back({s.st_mtime, name, static_cast<std::int64_t>(s.st_size)});
    else if (s.st_mtime + 3600 < std::time(nullptr)) ::unlinkat(folder, name.c_str(), 0);
  }
  ::closedir(list);
  std::sort(files.begin(), files.end(), [](const Kept& a, const Kept& b) { return a.written > b.written; });
  std::int64_t bytes = 0;
  for (const auto& file : files)
    if ((bytes += file.bytes) > most_bytes) ::unlinkat(folder, file.name.c_str(), 0);
}

}  // namespace

std::optional<std::filesystem::path> cache_folder() {
  const auto absolute = [](const char* value, const char* below) -> std::optional<std::filesystem::path> {
    const std::filesystem::path base = value;
    return base.is_absolute() ? std::optional(base / below) : std::nullopt;
  };
  if (const char* own = std::getenv("TSDP_CACHE_DIR"); own != nullptr) {
    const std::filesystem::path folder = own;
    return folder.is_absolute() ? std::optional(folder) : std::nullopt;
  }
  if (const char* caches = std::getenv("XDG_CACHE_HOME"); caches != nullptr && *caches != '\0')
    return absolute(caches, "tsdp");
  if (const char* home = std::getenv("HOME"); home != nullptr) return absolute(home, ".cache/tsdp");
  return std::nullopt;
}

std::shared_ptr<const GameProfiles> read_game(double q, double sigma) {
  try {
    const Descriptor folder(open_folder());
    if (!folder) return nullptr;
    // A pipe in place of the file must not be waited for.
    const Descriptor file(
        ::openat(folder.number(), name_of(q, sigma).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat s{};
    if (!file || ::fstat(file.number(), &s) != 0 || !S_ISREG(s.st_mode) || !is_own(s) || s.st_size < 0 ||
        static_cast<std::size_t>(s.st_size) > largest_file)
      return nullptr;
    std::string bytes(static_cast<std::size_t>(s.st_size), '\0');
    for (std::size_t done = 0; done < bytes.size();) {
      const auto count = ::read(file.number(), bytes.data() + done, bytes.size() - done);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return nullptr;
      done += static_cast<std::size_t>(count);
    }
    return profiles_of(bytes, q, sigma);
  } catch (const std::bad_alloc&) { throw; } catch (const std::exception&) {
    return nullptr;
  }
}

void keep_game(double q, double sigma, const GameProfiles& profiles) {
  try {
    const auto bytes = bytes_of(q, sigma, profiles);
    if (bytes.size() > largest_file || profiles.rounds() > most_rounds) return;
    const Descriptor folder(open_folder());
    if (!folder) return;
    const auto name = name_of(q, sigma);
    // A name of this process alone. O_EXCL: nobody else's file can have it.
    const auto temporary = cat(".", name, ".", ::getpid());
    ::unlinkat(folder.number(), temporary.c_str(), 0);
    bool whole = false;
    {
      const Descriptor file(::openat(folder.number(), temporary.c_str(),
                                     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
      if (!file) return;
      whole = write_all(file.number(), bytes);
    }
    if (!whole || ::renameat(folder.number(), temporary.c_str(), folder.number(), name.c_str()) != 0)
      ::unlinkat(folder.number(), temporary.c_str(), 0);
    remove_oldest(folder.number());
  } catch (const std::bad_alloc&) { throw; } catch (const std::exception&) {
    // A game that is not kept is played again.
  }
}

}  // namespace tsdp::privacy
