#include "training/relay.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/digest.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::training {
namespace {

using Clock = std::chrono::steady_clock;

static_assert(std::endian::native == std::endian::little, "integers are sent as they lie in memory");

constexpr std::int64_t longest_message = std::int64_t{1} << 31;
constexpr std::int64_t most_messages_of_a_rank = 64;
constexpr std::int64_t other_has_ended = -1;
constexpr std::size_t tag_length = 32;
constexpr std::chrono::seconds patience_at_the_end{5};
constexpr std::chrono::milliseconds between_looks{200};

enum class State : std::int64_t {
  needs_more = 0,
  ended = 1,
  failed = 2
};

/// Ends an exchange, not the run: whoever has asked may ask again.
class LostConnection : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

[[noreturn]] void fail(const std::string& what) {
  throw Error(ExitCode::failure, cat("ranks: ", what, "; start all of them again"));
}

sockaddr_un address_of(const std::filesystem::path& socket) {
  sockaddr_un out{};
  out.sun_family = AF_UNIX;
  const auto& name = socket.native();
  if (name.empty() || name.size() >= sizeof out.sun_path)
    throw UsageError(
        cat("--relay: found '", name, "', a path of ", name.size(), " bytes; expected 1 to ", sizeof out.sun_path - 1));
  std::memcpy(out.sun_path, name.data(), name.size());
  return out;
}

/// Whether a socket at `address` was left behind: nobody listens on it.
bool is_left_behind(const sockaddr_un& address) {
  struct stat about{};
  if (::lstat(address.sun_path, &about) != 0 || !S_ISSOCK(about.st_mode)) return false;
  const Descriptor trial(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return ::connect(trial.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
         errno == ECONNREFUSED;
}

/// Listens on `socket`, which only this user may connect to.
Descriptor listening(const std::filesystem::path& socket) {
  const auto address = address_of(socket);
  const auto* plain = reinterpret_cast<const sockaddr*>(&address);
  Descriptor out(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto bound = [&] { return ::bind(out.number(), plain, sizeof address) == 0; };
  bool is_bound = bound();
  int error = errno;
  if (!is_bound && error == EADDRINUSE && is_left_behind(address)) {
    ::unlink(address.sun_path);
    is_bound = bound();
    error = errno;
  }
  if (is_bound) {
    // Nobody can connect before the rank listens.
    if (::chmod(address.sun_path, S_IRUSR | S_IWUSR) == 0 && ::listen(out.number(), 16) == 0) return out;
    error = errno;
    ::unlink(address.sun_path);
  }
  throw UsageError(cat("--relay: ", socket.string(), ": ", std::generic_category().message(error),
                       "; expected a new name in a folder that can be written to"));
}

class Relay final : public RankGroup {
 public:
  Relay(const data::Rank& rank, std::filesystem::path socket, std::chrono::seconds timeout,
        const std::optional<SecretKey>& key, const std::atomic<bool>* stop)
      : rank_(rank),
        socket_(std::move(socket)),
        timeout_(timeout),
        key_(key.value_or(SecretKey::from_seed(0))),
        stop_(stop),
        listening_(listening(socket_)),
        waiting_(static_cast<std::size_t>(rank.of)),
        next_of_(static_cast<std::size_t>(rank.of)) {
    ::lstat(socket_.c_str(), &own_);
    try {
      meet();
    } catch (...) {
      leave(State::failed);
      throw;
    }
  }

  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  ~Relay() override { leave(State::failed); }

  void send(const at::Tensor& values) override {
    TORCH_CHECK(values.is_contiguous(), "a rank sends tensors as they lie in memory");
    add({static_cast<const char*>(values.const_data_ptr()), values.nbytes()});
  }

  void receive(const at::Tensor& values, std::int64_t from) override {
    TORCH_CHECK(values.is_contiguous(), "a rank receives tensors as they lie in memory");
    const auto message = next_from(from);
    if (message.size() != values.nbytes())
      fail(cat("found a message of ", message.size(), " bytes from rank ", from, " where ", values.nbytes(),
               " were expected"));
    std::memcpy(values.data_ptr(), message.data(), message.size());
  }

  void broadcast(const at::Tensor& values) override {
    if (rank_.number == 0) send(values);
    else receive(values, 0);
  }

  void end() override { leave(State::ended); }

 private:
  /// Every rank tells rank 0 which one it is, with a number that it draws, and gets all of these numbers.
  void meet() {
    const auto greeting = [this](std::int64_t number) { return cat("tsdp relay 1, rank ", number, " of ", rank_.of); };
    const auto nonce = SecretKey::from_system().hex();
    if (rank_.number > 0) {
      add(cat(greeting(rank_.number), ", ", nonce));
      const auto all = next_from(0);
      const auto nonces = split(all, ' ');
      if (!all.starts_with(greeting(0)) ||
          std::find(nonces.begin(), nonces.end(), std::string_view(nonce)) == nonces.end())
        fail(cat("found '", all.substr(0, all.find(',', all.find(',') + 1)), "' where '", greeting(0),
                 "' was expected"));
      run_ = sha256(all);
      return;
    }
    auto all = cat(greeting(0), ", ", nonce);
    for (std::int64_t from = 1; from < rank_.of; ++from) {
      const auto said = next_from(from);
      const auto expected = cat(greeting(from), ", ");
      if (!said.starts_with(expected))
        fail(cat("found '", said.substr(0, said.rfind(',')), "' where '", greeting(from), "' was expected"));
      all += cat(" ", said.substr(expected.size()));
    }
    add(all);
    run_ = sha256(all);
  }

  std::string tag(std::int64_t sender, std::int64_t number, std::string_view message) const {
    return hmac_sha256(key_.bytes(), cat(run_, " ", sender, " ", number, " ", message));
  }

  void add(std::string_view message) {
    const auto tagged = tag(rank_.number, sent_, message);
    ++sent_;
    to_send_.push_back(cat(tagged, message));
  }

  /// The next message of a rank.
  std::string next_from(std::int64_t from) {
    auto& queue = waiting_.at(static_cast<std::size_t>(from));
    while (queue.empty()) next_exchange();
    const auto found = std::move(queue.front());
    queue.pop_front();
    auto& number = next_of_[static_cast<std::size_t>(from)];
    const auto message = std::string_view(found).substr(std::min(tag_length, found.size()));
    // Whoever can make a tag knows the key, so the time that a comparison takes tells nothing new.
    if (std::string_view(found).substr(0, tag_length) != tag(from, number, message))
      fail(cat("found a message that is not the next one of rank ", from,
               ": it was sent before, in another run, with another --sampling-key, by another rank, or was changed"));
    ++number;
    return std::string(message);
  }

  /// Answers the open exchange, if there is one, and reads what the next one gives.
  void next_exchange() {
    answer(State::needs_more, Clock::now() + timeout_);
    const auto until = Clock::now() + timeout_;
    for (;;) {
      connection_ = accepted(until);
      try {
        const auto number = read_integer(until);
        const bool again = number == answered_ - 1 && answered_ > 0;
        if (number != answered_ && !again)
          fail(cat("found exchange ", number, " of ", socket_.string(), " where ", answered_, " was expected"));
        auto given = read_messages(until);
        if (again) {  // its answer was lost
          write_all(last_answer_, until);
          connection_.close();
          continue;
        }
        for (auto& [from, message] : given) waiting_[from].push_back(std::move(message));
        // A rank answers when it waits for another one, to whom it has said something. At first nobody has.
        for (std::size_t from = 0; answered_ > 0 && from < waiting_.size(); ++from)
          if (talks_to_this(from) && waiting_[from].empty())
            fail(cat("found nothing from rank ", from, " in exchange ", number));
        return;
      } catch (const LostConnection&) { connection_.close(); }
    }
  }

  /// Answers the open exchange, if there is one.
  void answer(State state, Clock::time_point until) {
    if (!connection_) return;
    last_answer_.clear();
    const auto put = [this](std::int64_t value) {
      last_answer_.append(reinterpret_cast<const char*>(&value), sizeof value);
    };
    put(static_cast<std::int64_t>(state));
    put(static_cast<std::int64_t>(to_send_.size()));
    for (const auto& message : to_send_) {
      put(static_cast<std::int64_t>(message.size()));
      last_answer_ += message;
    }
    to_send_.clear();
    ++answered_;
    try {
      write_all(last_answer_, until);
    } catch (const LostConnection&) {}  // may be asked for again
    connection_.close();
  }

  /// Says how this rank ends, if it has not said so before, and removes its socket.
  void leave(State state) noexcept {
    if (!listening_) return;
    try {
      answer(state, Clock::now() + patience_at_the_end);
    } catch (const std::exception&) {}  // another reason is on its way
    struct stat there{};
    if (::lstat(socket_.c_str(), &there) == 0 && there.st_dev == own_.st_dev && there.st_ino == own_.st_ino)
      ::unlink(socket_.c_str());
    listening_.close();
  }

  std::vector<std::pair<std::size_t, std::string>> read_messages(Clock::time_point until) {
    const auto count = read_integer(until);
    if (count == other_has_ended) fail("another rank has ended");
    std::vector<std::pair<std::size_t, std::string>> out;
    check(count, most_messages_of_a_rank * rank_.of, "messages");
    for (std::int64_t i = 0; i < count; ++i) {
      const auto from = read_integer(until);
      check(from, rank_.of - 1, "as a rank's number");
      if (!talks_to_this(static_cast<std::size_t>(from)))
        fail(cat("found a message of rank ", from, " for rank ", rank_.number, "; only rank 0 talks to all others"));
      const auto size = read_integer(until);
      check(size, longest_message, "bytes");
      std::string message;
      // In pieces, so that a length alone takes no memory.
      for (std::int64_t read = 0; read < size;) {
        const auto piece = std::min(size - read, std::int64_t{1} << 24);
        message.resize(static_cast<std::size_t>(read + piece));
        read_all(message.data() + read, static_cast<std::size_t>(piece), until);
        read += piece;
      }
      out.emplace_back(static_cast<std::size_t>(from), std::move(message));
    }
    return out;
  }

  [[nodiscard]] bool talks_to_this(std::size_t from) const { return (from == 0) != (rank_.number == 0); }

  void check(std::int64_t found, std::int64_t most, const char* what) const {
    if (found < 0 || found > most) fail(cat(socket_.string(), ": found ", found, " ", what, "; expected 0 to ", most));
  }

  /// Waits until `descriptor` is ready for `events`.
  void wait(const Descriptor& descriptor, short events, Clock::time_point until) {
    for (;;) {
      const auto now = Clock::now();
      if (stop_ != nullptr && stop_->load() && !stopped_at_) stopped_at_ = now;
      if (stopped_at_ && now >= *stopped_at_ + patience_at_the_end)
        throw Error(
            ExitCode::interrupted,
            "interrupted while it waited for other ranks; go on with rank 0's --resume, and elsewhere as before");
      if (now >= until)
        fail(cat("nobody has come to ", socket_.string(), " with what is expected within ", timeout_.count(), " s"));
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now);
      pollfd waited{descriptor.number(), events, 0};
      if (::poll(&waited, 1, static_cast<int>(std::min(left, between_looks).count())) > 0) return;
    }
  }

  /// The next who connects.
  Descriptor accepted(Clock::time_point until) {
    for (;;) {
      wait(listening_, POLLIN, until);
      Descriptor out(::accept4(listening_.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (out) return out;
      if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
        fail(cat(socket_.string(), ": ", std::generic_category().message(errno)));
    }
  }

  std::int64_t read_integer(Clock::time_point until) {
    std::int64_t value = 0;
    read_all(reinterpret_cast<char*>(&value), sizeof value, until);
    return value;
  }

  void read_all(char* to, std::size_t size, Clock::time_point until) {
    while (size > 0) {
      wait(connection_, POLLIN, until);
      const auto read = ::recv(connection_.number(), to, size, 0);
      if (read < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (read <= 0) throw LostConnection("closed before its end");
      to += read;
      size -= static_cast<std::size_t>(read);
    }
  }

  void write_all(const std::string& bytes, Clock::time_point until) {
    for (std::size_t written = 0; written < bytes.size();) {
      wait(connection_, POLLOUT, until);
      const auto wrote = ::send(connection_.number(), bytes.data() + written, bytes.size() - written, MSG_NOSIGNAL);
      if (wrote < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (wrote <= 0) throw LostConnection("closed before its answer");
      written += static_cast<std::size_t>(wrote);
    }
  }

  data::Rank rank_;
  std::filesystem::path socket_;
  std::chrono::seconds timeout_;
  SecretKey key_;
  const std::atomic<bool>* stop_;
  std::optional<Clock::time_point> stopped_at_;  // when it was first seen that the process is to end
  Descriptor listening_;  // closed when this rank has left
  struct stat own_{};  // of the socket
  Descriptor connection_;  // of the exchange that is not answered yet
  std::int64_t answered_ = 0;  // exchanges
  std::string last_answer_;
  std::string run_;  // digest of what this start of all ranks is known by; "" until they have met
  std::int64_t sent_ = 0;  // messages
  std::vector<std::string> to_send_;
  std::vector<std::deque<std::string>> waiting_;  // messages by each rank
  std::vector<std::int64_t> next_of_;  // number of the next message of each rank
};

}  // namespace

std::unique_ptr<RankGroup> relayed(const data::Rank& rank, const std::filesystem::path& socket,
                                   std::chrono::seconds timeout, const std::optional<SecretKey>& key,
                                   const std::atomic<bool>* stop) {
  return std::make_unique<Relay>(rank, socket, timeout, key, stop);
}

}  // namespace tsdp::training
