#pragma once

#include <coir/config.h>
#include <coir/deadline.h>
#include <coir/detail/intrusive_list.h>
#include <coir/net/stream.h>
#include <coir/pressure.h>
#include <coir/spinlock.h>
#if !COIR_NO_ASYNC
#include <coir/resting_wait.h>
#endif

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string_view>

namespace coir::http {

class ConnectionPool;
struct ParsedResponse;

#if COIR_NO_ASYNC
struct RestingWatch {};  // nothing is woken in such a build
#else
using RestingWatch = RestingWait;
#endif

// PooledConnection is a connection to a server or a proxy, in use or resting in its pool, charged to
// account::connections. While it rests it has no buffer: this record, with its key behind it, is all of it beside the
// kernel's share.
struct PooledConnection : RestingWatch {
  std::string_view key() const noexcept { return {reinterpret_cast<const char*>(this + 1), key_size}; }

  // hear_keep_alive has it rest a second less than the server keeps it, by the response's Keep-Alive ("timeout=5,
  // max=100").
  void hear_keep_alive(const ParsedResponse& response) noexcept;

  Stream stream;
  ConnectionPool* pool = nullptr;
  PooledConnection* next = nullptr;
  PooledConnection* previous = nullptr;
  std::int64_t until_ns = 0;   // of its rest
  std::uint32_t rest_ms = 0;   // how long it may rest
  std::uint16_t key_size = 0;  // what it is good for, in the owner's words
  std::uint8_t era = 0;        // UpstreamMember::era when its lease began
  bool reused = false;         // it has carried a request before
};

// ConnectionPool keeps connections between requests, the latest used first, and counts all that are open. Connections
// that rest in it are closed when memory is short. From fibers and threads; a pool that watches, from fibers of one run
// alone, and it is destroyed inside that run or behind its end.
class ConnectionPool {
 public:
  struct Rules {
    std::uint32_t most_resting;  // for one more, the longest resting is closed
    std::chrono::milliseconds idle_time;
    std::uint32_t most_open = UINT32_MAX;  // a new one above has the longest resting closed; it is open all the same
    bool watches = false;                  // a connection that its server ends, or speaks on, is closed at once
  };

  explicit ConnectionPool(const Rules& rules) noexcept;
  ConnectionPool(const ConnectionPool&) = delete;
  ConnectionPool& operator=(const ConnectionPool&) = delete;
  ~ConnectionPool();

  // make returns a record without a connection yet. Errors: no_memory, limit (the key is longer than 64 KB).
  std::expected<PooledConnection*, Error> make(std::string_view key = {}) noexcept;
  // close ends a connection of this pool that does not rest: in good order, or so that the peer sees that not all was
  // said.
  static void close(PooledConnection& connection, bool in_good_order) noexcept;

  // take returns a resting connection of that key, or null. It has been looked at, which costs a system call: it has not
  // ended, and nothing has come that nobody asked for. Others that are met are closed. take and rest also close all that
  // has rested too long, whatever its key; no timer does.
  PooledConnection* take(std::string_view key = {}) noexcept;
  // rest keeps a connection that may carry another request, for rest_ms, or closes it.
  void rest(PooledConnection& connection) noexcept;

  // close_resting closes the longest resting until `wanted` bytes were refunded, and returns how many were.
  std::size_t close_resting(std::size_t wanted, bool in_good_order) noexcept;

  std::size_t resting() const noexcept { return resting_.load(std::memory_order_relaxed); }
  std::size_t open() const noexcept { return open_.load(std::memory_order_relaxed); }

 private:
  using Bytes = std::size_t;

  PooledConnection* take_expired(std::int64_t now) noexcept;
  void close_expired() noexcept;
  PooledConnection* take_out(PooledConnection* connection) noexcept;
  void put_in(PooledConnection& connection) noexcept;
  bool keep(PooledConnection& connection) noexcept;
  Bytes close_longest(bool in_good_order) noexcept;
  static Bytes free(PooledConnection& connection, bool in_good_order) noexcept;
  static std::size_t give(void* pool, std::size_t wanted) noexcept;
#if !COIR_NO_ASYNC
  enum class Slept : std::uint8_t { yes, has_edge, no };
  Slept put_to_sleep(PooledConnection& connection) noexcept;
  static void woken(RestingWait& resting) noexcept;
#endif

  const Rules rules_;
  mutable Spinlock lock_;
  coir::detail::IntrusiveList<PooledConnection> list_;  // the latest used first
  std::int64_t soonest_ns_ = INT64_MAX;                 // no rest ends before; under lock_
  Atomic<std::size_t> resting_{0};                      // changes under lock_
  Atomic<std::size_t> open_{0};
  Relief relief_;
};

}  // namespace coir::http
