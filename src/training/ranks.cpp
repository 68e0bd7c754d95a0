#include "training/ranks.h"

#include <arpa/inet.h>
#include <c10/util/Logging.h>
#include <netdb.h>
#include <sys/socket.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <array>
#include <cstdlib>
#include <cstring>
#include <future>
#include <thread>

#include "base/descriptor.h"
#include "training/relay.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::training {
namespace {

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? std::optional<std::string>(value) : std::nullopt;
}

std::string needed_variable(const char* name) {
  if (auto text = variable(name)) return *text;
  throw UsageError(cat(name, ": not set, with WORLD_SIZE ", variable("WORLD_SIZE").value_or(""),
                       "; expected RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as torchrun sets them"));
}

std::int64_t whole_variable(const char* name, std::int64_t least, std::int64_t most) {
  const auto text = needed_variable(name);
  long long value = 0;
  if (!parse_int(text, value) || value < least || value > most)
    throw UsageError(cat(name, ": found ", text, "; expected a whole number from ", least, " to ", most));
  return value;
}

/// Whether an address is of this machine or of a private network (RFC 1918, 4193, 3927, 4291, 6598).
bool is_private(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    const auto ip = ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr);
    return (ip >> 24) == 127 || (ip >> 24) == 10 || (ip >> 20) == 0xac1 || (ip >> 16) == 0xc0a8 ||
           (ip >> 16) == 0xa9fe || (ip >> 22) == 0x191;  // 100.64.0.0/10, as private networks over others have it
  }
  const auto& ip = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  const bool is_unique_local = (ip.s6_addr[0] & 0xfe) == 0xfc;
  return is_unique_local || IN6_IS_ADDR_LINKLOCAL(&ip) || IN6_IS_ADDR_LOOPBACK(&ip);
}

std::string text_of(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* ip = address->sa_family == AF_INET
                       ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(address)->sin_addr)
                       : static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
  return inet_ntop(address->sa_family, ip, text.data(), text.size()) != nullptr ? text.data() : "";
}

/// The address of this machine from which `host` is reached. Throws UsageError unless both are private, or public ones
/// are allowed.
std::string own_address(const std::string& host, const std::string& port, bool public_network) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0)
    throw UsageError(cat("MASTER_ADDR: found ", host, ", which has no address (", gai_strerror(error),
                         "); expected the name or address of rank 0's machine"));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, freeaddrinfo);
  const auto require_private = [&](const char* whose, const sockaddr* address) {
    if (!public_network && !is_private(address))
      throw UsageError(cat("MASTER_ADDR: found ", host, ", with ", whose, " ", text_of(address),
                           ", a public address; what ranks send is neither encrypted nor authenticated: expected an "
                           "address of a private network, or --public-network"));
  };
  for (const auto* one = addresses.get(); one != nullptr; one = one->ai_next)
    require_private("the address", one->ai_addr);
  // A datagram socket is connected without sending anything.
  const Descriptor datagrams(socket(addresses->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  const bool reached = datagrams && connect(datagrams.number(), addresses->ai_addr, addresses->ai_addrlen) == 0 &&
                       getsockname(datagrams.number(), reinterpret_cast<sockaddr*>(&own), &size) == 0;
  if (!reached)
    throw UsageError(cat("MASTER_ADDR: found ", host,
                         ", to which no network of this machine leads; expected the name "
                         "or address of rank 0's machine"));
  require_private("this machine's address", reinterpret_cast<const sockaddr*>(&own));
  return text_of(reinterpret_cast<const sockaddr*>(&own));
}

/// What Gloo or c10d says, without the place in its sources and what it guesses.
std::string reason_of(const std::exception& error) {
  std::string text = error.what();
  text = text.substr(0, text.find('\n'));
  if (text.starts_with('[') && text.find("] ") != std::string::npos) text = text.substr(text.find("] ") + 2);
  return text.substr(0, text.find(". "));
}

using Gloo = c10::intrusive_ptr<c10d::ProcessGroupGloo>;

/// The group of all ranks, at the latest after `timeout`. In a thread of its own, which is left behind where it waits
/// for longer: c10d waits without end for the answer of whoever else listens on the port.
Gloo met(const data::Rank& rank, const Ranks::Place& place, const std::string& own, std::chrono::seconds timeout) {
  std::packaged_task<Gloo()> meet([=, attempt = Ranks::restarts()] {
    c10d::TCPStoreOptions of_store;
    of_store.port = place.port;
    of_store.isServer = rank.number == 0 && !place.served;
    if (!place.served) of_store.numWorkers = static_cast<std::size_t>(rank.of);
    of_store.timeout = timeout;
    c10::intrusive_ptr<c10d::Store> store = c10::make_intrusive<c10d::TCPStore>(place.host, of_store);
    // An agent's store outlives the ranks; that of rank 0 is new with it.
    store = c10::make_intrusive<c10d::PrefixStore>(place.served ? cat("tsdp/attempt_", attempt) : "tsdp", store);
    auto of_group = c10d::ProcessGroupGloo::Options::create(timeout);
    of_group->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(own));
    return c10::make_intrusive<c10d::ProcessGroupGloo>(store, static_cast<int>(rank.number), static_cast<int>(rank.of),
                                                       of_group);
  });
  auto found = meet.get_future();
  std::thread(std::move(meet)).detach();
  if (found.wait_for(timeout + std::chrono::seconds(2)) != std::future_status::ready)
    throw Error(ExitCode::failure, "nobody answered");
  return found.get();
}

constexpr int tag = 0;
constexpr std::int64_t longest_text = 1 << 30;

std::int64_t checked_size(const at::Tensor& size) {
  const auto bytes = size.item<std::int64_t>();
  TORCH_CHECK(bytes >= 0 && bytes <= longest_text, "a text of ", bytes, " bytes");
  return bytes;
}

at::Tensor bytes_of(const std::string& text) {
  auto out = at::empty({static_cast<std::int64_t>(text.size())}, at::kByte);
  std::memcpy(out.data_ptr(), text.data(), text.size());
  return out;
}

std::string text_of(const at::Tensor& bytes) {
  return {static_cast<const char*>(bytes.const_data_ptr()), static_cast<std::size_t>(bytes.numel())};
}

class GlooGroup final : public RankGroup {
 public:
  GlooGroup(Gloo group, std::chrono::seconds timeout) : group_(std::move(group)), timeout_(timeout) {}

  void send(const at::Tensor& values) override {
    std::vector<at::Tensor> one{values};
    with(0, [&] { group_->send(one, 0, tag)->wait(); });
  }
  void receive(const at::Tensor& values, std::int64_t from) override {
    std::vector<at::Tensor> one{values};
    with(from, [&] { group_->recv(one, static_cast<int>(from), tag)->wait(); });
  }
  void broadcast(const at::Tensor& values) override {
    std::vector<at::Tensor> one{values};
    with(0, [&] { group_->broadcast(one)->wait(); });
  }

 private:
  /// Runs `work`, which waits for rank `other`.
  template <class Work>
  void with(std::int64_t other, const Work& work) const {
    try {
      work();
    } catch (const std::exception& error) {
      const auto whom = other == group_->getRank() ? std::string("another rank") : cat("rank ", other);
      const auto reason = reason_of(error);
      throw Error(ExitCode::failure,
                  cat("ranks: ", whom,
                      reason.starts_with("Timed out") ? cat(" has not answered within ", timeout_.count(), " s")
                                                      : cat(" has ended (", reason, ")"),
                      "; start all of them again, as torchrun --max-restarts does"));
    }
  }

  Gloo group_;
  std::chrono::seconds timeout_;
};

}  // namespace

void add_modulo(const at::Tensor& sum, const at::Tensor& other) {
  auto* to = reinterpret_cast<std::uint64_t*>(sum.data_ptr<std::int64_t>());
  const auto* from = reinterpret_cast<const std::uint64_t*>(other.const_data_ptr<std::int64_t>());
  for (std::int64_t i = 0; i < sum.numel(); ++i) to[i] += from[i];
}

Ranks::Ranks() = default;
Ranks::~Ranks() = default;
Ranks::Ranks(Ranks&&) noexcept = default;
Ranks& Ranks::operator=(Ranks&&) noexcept = default;

int Ranks::restarts() {
  long long count = 0;
  return parse_int(variable("TORCHELASTIC_RESTART_COUNT").value_or(""), count) ? static_cast<int>(count) : 0;
}

Ranks Ranks::from_environment(Options options) {
  if (options.relay && variable("WORLD_SIZE").value_or("1") == "1")
    throw UsageError(
        "--relay: given for one rank; expected RANK and a WORLD_SIZE of 2 or more in the environment, too");
  if (options.relay && options.public_network)
    throw UsageError(
        "--public-network: given with --relay, by which a rank sends nothing over a network; expected one");
  if (!variable("WORLD_SIZE")) {
    if (const auto rank = variable("RANK"))
      throw UsageError(cat("WORLD_SIZE: not set, with RANK ", *rank,
                           "; expected RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as torchrun sets them, or none"));
    return meet({}, {}, std::move(options));
  }
  data::Rank rank;
  rank.of = whole_variable("WORLD_SIZE", 1, most_files);
  rank.number = whole_variable("RANK", 0, rank.of - 1);
  Place place;
  if (rank.of > 1 && !options.relay) {
    place.host = needed_variable("MASTER_ADDR");
    place.port = static_cast<std::uint16_t>(whole_variable("MASTER_PORT", 1, 65535));
    place.served = variable("TORCHELASTIC_USE_AGENT_STORE") == "True";
  }
  return meet(rank, place, std::move(options));
}

Ranks Ranks::meet(data::Rank rank, const Place& place, Options options) {
  if (rank.number == 0 && options.mask_key)
    throw UsageError(
        "--mask-key: given on rank 0, from which it hides what other ranks add; expected it on all other ranks alone");
  Ranks out;
  out.rank_ = rank;
  out.options_ = std::move(options);
  if (out.alone()) return out;
  if (out.options_.relay) {
    const auto& o = out.options_;
    out.group_ = relayed(rank, *o.relay, o.timeout, o.sampling_key, o.stop);
    return out;
  }
  const auto own = own_address(place.host, std::to_string(place.port), out.options_.public_network);
  FLAGS_caffe2_log_level = 3;  // c10d prints traces of what is told below in a line
  try {
    out.group_ = std::make_unique<GlooGroup>(met(rank, place, own, out.options_.timeout), out.options_.timeout);
  } catch (const std::exception& error) {
    throw Error(ExitCode::failure, cat("ranks: rank ", rank.number, " of ", rank.of, " has not met the others at ",
                                       place.host, ":", place.port, " within ", out.options_.timeout.count(), " s (",
                                       reason_of(error), "); expected a free port, and all ranks to be started"));
  }
  return out;
}

std::vector<std::string> Ranks::gathered(const std::string& text) {
  if (!is_first()) {
    group_->send(at::full({1}, static_cast<std::int64_t>(text.size()), at::kLong));
    if (!text.empty()) group_->send(bytes_of(text));
    return {};
  }
  std::vector<std::string> out = {text};
  for (std::int64_t from = 1; from < rank_.of; ++from) {
    auto size = at::zeros({1}, at::kLong);
    group_->receive(size, from);
    auto bytes = at::empty({checked_size(size)}, at::kByte);
    if (bytes.numel() > 0) group_->receive(bytes, from);
    out.push_back(text_of(bytes));
  }
  return out;
}

std::vector<std::vector<double>> Ranks::gathered(std::span<const double> numbers) {
  std::vector<std::vector<double>> out;
  for (const auto& bytes : gathered(std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes()))) {
    out.emplace_back(bytes.size() / sizeof(double));
    if (!out.back().empty()) std::memcpy(out.back().data(), bytes.data(), out.back().size() * sizeof(double));
  }
  return out;
}

std::string Ranks::from_first(const std::string& text) {
  if (alone()) return text;
  auto size = at::full({1}, static_cast<std::int64_t>(text.size()), at::kLong);
  group_->broadcast(size);
  auto bytes = is_first() ? bytes_of(text) : at::empty({checked_size(size)}, at::kByte);
  if (bytes.numel() > 0) group_->broadcast(bytes);
  return text_of(bytes);
}

void Ranks::take_from_first(const at::Tensor& values) {
  if (!alone()) group_->broadcast(values);
}

void Ranks::add_up_at_first(const at::Tensor& sum) {
  TORCH_CHECK(sum.scalar_type() == at::kLong, "ranks add up whole numbers");
  if (!is_first()) {
    group_->send(sum);
    return;
  }
  auto other = at::empty_like(sum);
  for (std::int64_t from = 1; from < rank_.of; ++from) {
    group_->receive(other, from);
    add_modulo(sum, other);
  }
}

void Ranks::end() {
  if (group_) group_->end();
}

}  // namespace tsdp::training
