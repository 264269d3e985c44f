#include "outbound/connection_pool.h"

#include <coir/detail/accounts.h>
#include <coir/http/server.h>
#include <coir/http/wire/query.h>
#include <errno.h>
#include <string.h>

#include <algorithm>
#include <new>
#if !COIR_NO_ASYNC
#include <coir/fiber.h>
#endif

#include "base/charged.h"
#include "http/message/response_parser.h"
#include "http/text/characters.h"
#include "socket/kernel.h"

namespace coir::http {
namespace {

constexpr std::size_t record_bytes(std::size_t key_size) noexcept {
  return sizeof(PooledConnection) + key_size;
}

// is_quiet looks at a connection that has rested.
bool is_quiet(Stream& stream) noexcept {
  ssize_t seen;
  do {
    seen = kernel::peek(stream.fd());
  } while (seen == -EINTR);
  if (seen <= 0 || !stream.secure()) return seen == -EAGAIN;
  // TLS's own records, such as tickets, come at any time.
  char byte;
  stream.mark_readable();
  const auto read = stream.read({&byte, 1}, Deadline::now());
  stream.rest();
  return !read && read.error() == ErrorCode::timed_out;
}

}  // namespace

void PooledConnection::hear_keep_alive(const ParsedResponse& response) noexcept {
  std::string_view field = response.header("Keep-Alive");
  while (!field.empty()) {
    const std::string_view entry = until(field, ',');
    field.remove_prefix(std::min(entry.size() + 1, field.size()));
    if (!begins_ignoring_case(trim(entry), "timeout=")) continue;
    const auto seconds = parse_integer(after(trim(entry), 8));
    if (!seconds || *seconds < 0 || *seconds >= 1'000'000) continue;
    rest_ms = static_cast<std::uint32_t>(std::clamp<std::int64_t>((*seconds - 1) * 1000, 0, rest_ms));
    return;
  }
}

ConnectionPool::ConnectionPool(const Rules& rules) noexcept : rules_(rules), relief_(Pressure::caches, &give, this) {
  Pressure::add(relief_);
}

ConnectionPool::~ConnectionPool() {
  Pressure::remove(relief_);
  close_resting(SIZE_MAX, true);
#if !COIR_NO_ASYNC
  // The connections left have a wake that is about to run; after the end of the run none does.
  const bool runs = current().id() != 0;
  for (;;) {
    PooledConnection* left;
    {
      const Locked locked(lock_);
      left = list_.front();
      if (left != nullptr && !runs) list_.remove(*left);
    }
    if (left == nullptr) return;
    if (runs) {
      yield();
    } else {
      free(*left, true);
    }
  }
#endif
}

std::expected<PooledConnection*, Error> ConnectionPool::make(std::string_view key) noexcept {
  if (key.size() > UINT16_MAX) return std::unexpected(Error{ErrorCode::limit});
  void* const memory = take_charged(account::connections, record_bytes(key.size()), kKernelBytesPerConnection);
  if (memory == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  auto* const connection = ::new (memory) PooledConnection;
  connection->pool = this;
  connection->rest_ms = static_cast<std::uint32_t>(std::clamp<std::int64_t>(rules_.idle_time.count(), 0, UINT32_MAX));
  connection->key_size = static_cast<std::uint16_t>(key.size());
  if (!key.empty()) memcpy(connection + 1, key.data(), key.size());
  // Counted before the comparison: several threads that make the last one would find room for all.
  if (open_.fetch_add(1, std::memory_order_relaxed) >= rules_.most_open) close_longest(true);
  return connection;
}

void ConnectionPool::close(PooledConnection& connection, bool in_good_order) noexcept {
  connection.pool->open_.fetch_sub(1, std::memory_order_relaxed);
  free(connection, in_good_order);
}

ConnectionPool::Bytes ConnectionPool::free(PooledConnection& connection, bool in_good_order) noexcept {
  if (!in_good_order) connection.stream.abandon();
  const std::size_t charged = record_bytes(connection.key_size) + kKernelBytesPerConnection;
  connection.~PooledConnection();
  give_charged(account::connections, &connection, charged);
  return charged;
}

PooledConnection* ConnectionPool::take(std::string_view key) noexcept {
  const std::int64_t now = monotonic_ns();
  for (;;) {
    PooledConnection* found = nullptr;
    {
      const Locked locked(lock_);
      found = take_expired(now);
      for (PooledConnection* each = list_.front(); found == nullptr && each != nullptr; each = each->next) {
        if (each->key() == key) found = take_out(each);
      }
    }
    if (found == nullptr) return nullptr;
    if (found->until_ns > now && is_quiet(found->stream)) {
      found->reused = true;
      return found;
    }
    close(*found, true);
  }
}

// take_expired takes one out that has rested for its time, whatever its key, under lock_. Null: there is none.
PooledConnection* ConnectionPool::take_expired(std::int64_t now) noexcept {
  if (now < soonest_ns_) return nullptr;
  PooledConnection* found = nullptr;
  soonest_ns_ = INT64_MAX;
  for (PooledConnection *next, *each = list_.front(); each != nullptr; each = next) {
    next = each->next;
    if (found == nullptr && each->until_ns <= now && (found = take_out(each)) != nullptr) continue;
    soonest_ns_ = std::min(soonest_ns_, each->until_ns);
  }
  return found;
}

// take_out takes a connection out of the list, under lock_. Null: its wake is about to run, and closes it.
PooledConnection* ConnectionPool::take_out(PooledConnection* connection) noexcept {
#if !COIR_NO_ASYNC
  if (rules_.watches && !disarm_resting_wait(*connection)) return nullptr;
#endif
  list_.remove(*connection);
  resting_.fetch_sub(1, std::memory_order_relaxed);
  return connection;
}

void ConnectionPool::put_in(PooledConnection& connection) noexcept {
  list_.push_front(connection);
  soonest_ns_ = std::min(soonest_ns_, connection.until_ns);
  resting_.fetch_add(1, std::memory_order_relaxed);
}

void ConnectionPool::rest(PooledConnection& connection) noexcept {
  if (connection.rest_ms == 0 || connection.stream.midway()) return close(connection, true);
  close_expired();
  connection.stream.rest();
  connection.until_ns = monotonic_ns() + std::int64_t{connection.rest_ms} * 1'000'000;
  if (!keep(connection)) return close(connection, true);
  if (resting() > rules_.most_resting) close_longest(true);
}

void ConnectionPool::close_expired() noexcept {
  for (const std::int64_t now = monotonic_ns();;) {
    PooledConnection* found;
    {
      const Locked locked(lock_);
      found = take_expired(now);
    }
    if (found == nullptr) return;
    close(*found, true);
  }
}

bool ConnectionPool::keep(PooledConnection& connection) noexcept {
#if !COIR_NO_ASYNC
  if (rules_.watches) {
    connection.wake = woken;
    const int fd = connection.stream.fd();
    const Stream& stream = connection.stream;
    // One that was peeked at, or whose last read filled its place, knows too little.
    if (!stream.drained() && (stream.secure() || kernel::peek(fd) != -EAGAIN)) return false;
    // The edge of what has been read already may be known still, and there are two at most.
    for (int edges = 0; edges < 4; ++edges) {
      const Slept slept = put_to_sleep(connection);
      if (slept == Slept::yes) return true;
      if (slept == Slept::no || kernel::peek(fd) != -EAGAIN) break;
    }
    return false;
  }
#endif
  const Locked locked(lock_);
  put_in(connection);
  return true;
}

#if !COIR_NO_ASYNC
ConnectionPool::Slept ConnectionPool::put_to_sleep(PooledConnection& connection) noexcept {
  ArmingUnderLock arming(connection.stream.fd());
  const Locked locked(lock_);
  if (const auto armed = arming.arm(connection); !armed)
    return armed.error() == ErrorCode::busy ? Slept::has_edge : Slept::no;
  put_in(connection);
  return Slept::yes;
}

// woken runs on a worker's own stack: what has come is an end, or an answer to nothing.
void ConnectionPool::woken(RestingWait& resting) noexcept {
  auto& connection = static_cast<PooledConnection&>(resting);
  ConnectionPool& self = *connection.pool;
  {
    const Locked locked(self.lock_);
    self.list_.remove(connection);
    self.resting_.fetch_sub(1, std::memory_order_relaxed);
    self.open_.fetch_sub(1, std::memory_order_relaxed);
  }
  // The pool may have been destroyed: nothing of it is touched from here on.
  free(connection, true);
}
#endif

// close_longest closes the connection that has rested for longest and returns the bytes that this refunds; 0: none.
ConnectionPool::Bytes ConnectionPool::close_longest(bool in_good_order) noexcept {
  PooledConnection* found = nullptr;
  {
    const Locked locked(lock_);
    for (PooledConnection* each = list_.back(); found == nullptr && each != nullptr; each = each->previous)
      found = take_out(each);
    if (found == nullptr) return 0;
    // Under the lock: an owner that finds nothing resting and one open takes that for a connection in use.
    open_.fetch_sub(1, std::memory_order_relaxed);
  }
  return free(*found, in_good_order);
}

std::size_t ConnectionPool::close_resting(std::size_t wanted, bool in_good_order) noexcept {
  std::size_t given = 0;
  while (given < wanted) {
    const std::size_t more = close_longest(in_good_order);
    if (more == 0) break;
    given += more;
  }
  return given;
}

std::size_t ConnectionPool::give(void* pool, std::size_t wanted) noexcept {
  return static_cast<ConnectionPool*>(pool)->close_resting(wanted, false);
}

}  // namespace coir::http
