// Messages between ranks that another program carries.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>

#include "training/rank_group.h"
#include "tsdp/random/random.h"
#include "tsdp/settings/configured.h"

namespace tsdp::training {

/// A rank whose messages a program carries that connects to `socket`, a Unix socket for this user alone: an engine of
/// federated learning, for example (tsdp.federated in Python). Each connection is one exchange. All integers are 64-bit
/// and little-endian.
///
///     to the rank:    number of the exchange, from 0; count; then count times: the sender's rank, bytes, the bytes.
///                     A count of −1 says that another rank has ended too early.
///     from the rank:  0 if it needs more, 1 if it has ended well, 2 if it has not; count; then count times: bytes, the
///                     bytes. Those of rank 0 are for all others, those of any other for rank 0.
///
/// A rank answers as soon as it needs a message that it has not got. While it runs, whoever asks for the last exchange
/// again gets the same answer, and what it gives is dropped.
///
/// What carries messages is not trusted to leave them as they are: each ends with an HMAC by `key` of the run, its
/// sender, its number among the sender's, and itself. `key` is one that the ranks share; none guards against mistakes
/// alone. A run is known by numbers that every rank draws, so messages of an earlier start are none of this one's.
///
/// Meets the others. Throws UsageError if the rank cannot listen on `socket`, where a socket that nobody listens on any
/// more is replaced; Error if a message does not come within `timeout`, or is not the next one of its sender. `stop`,
/// if not null: set when the process is asked to end, after which messages are waited for but a few seconds.
[[nodiscard]] std::unique_ptr<RankGroup> relayed(const data::Rank& rank, const std::filesystem::path& socket,
                                                 std::chrono::seconds timeout, const std::optional<SecretKey>& key,
                                                 const std::atomic<bool>* stop);

}  // namespace tsdp::training
