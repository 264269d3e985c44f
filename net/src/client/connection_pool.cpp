#include "client/connection_pool.h"

#include "outbound/resting.h"

namespace coir::http {

std::expected<void, Error> ConnectionPool::enter(Deadline deadline) noexcept {
#if COIR_NO_ASYNC
  static_cast<void>(deadline);
  if (places_ == 0) return std::unexpected(Error{ErrorCode::limit});
  --places_;
  return {};
#else
  auto entered = places_.acquire(deadline);
  // On a plain thread of a build with one worker nobody else could give a place back meanwhile.
  if (!entered && entered.error() == ErrorCode::unsupported) return std::unexpected(Error{ErrorCode::limit});
  return entered;
#endif
}

void ConnectionPool::leave() noexcept {
#if COIR_NO_ASYNC
  ++places_;
#else
  places_.release();
#endif
}

void ConnectionPool::take_out(ClientConnection& connection) noexcept {
  list_.remove(connection);
  resting_.fetch_sub(1, std::memory_order_relaxed);
}

// Closing is a system call, which is no work for the lock's holder.
void ConnectionPool::close_all(Stack& gone) noexcept {
  while (ClientConnection* const connection = gone.front()) {
    gone.remove(*connection);
    ClientConnection::destroy(connection, true);
  }
}

ClientConnection* ConnectionPool::take(std::string_view key) noexcept {
  for (;;) {
    const std::int64_t now = monotonic_ns();
    Stack expired;
    ClientConnection* found = nullptr;
    {
      const Locked locked(lock_);
      for (ClientConnection* each = list_.front(); each != nullptr;) {
        ClientConnection& connection = *each;
        each = each->next;
        if (connection.rest_until_ns <= now) {
          take_out(connection);
          open_.fetch_sub(1, std::memory_order_relaxed);
          expired.push_front(connection);
        } else if (found == nullptr && connection.key() == key) {
          take_out(connection);
          found = &connection;
        }
      }
    }
    close_all(expired);
    if (found == nullptr) return nullptr;
    if (is_quiet(found->stream)) {
      found->reused = true;
      return found;
    }
    forget();
    ClientConnection::destroy(found, true);
  }
}

void ConnectionPool::admit() noexcept {
  ClientConnection* oldest = nullptr;
  {
    const Locked locked(lock_);
    if (open_.fetch_add(1, std::memory_order_relaxed) >= most_open_ && (oldest = list_.front()) != nullptr) {
      while (oldest->next != nullptr) oldest = oldest->next;
      take_out(*oldest);
      open_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  if (oldest != nullptr) ClientConnection::destroy(oldest, true);
}

void ConnectionPool::forget() noexcept {
  const Locked locked(lock_);
  open_.fetch_sub(1, std::memory_order_relaxed);
}

void ConnectionPool::rest(ClientConnection& connection, std::int64_t until_ns) noexcept {
  connection.rest_until_ns = until_ns;
  ClientConnection* oldest = nullptr;
  {
    const Locked locked(lock_);
    list_.push_front(connection);
    if (resting_.fetch_add(1, std::memory_order_relaxed) >= most_resting_) {
      oldest = list_.front();
      while (oldest->next != nullptr) oldest = oldest->next;
      take_out(*oldest);
      open_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  if (oldest != nullptr) ClientConnection::destroy(oldest, true);
}

std::size_t ConnectionPool::close_resting(std::size_t wanted, bool in_good_order) noexcept {
  std::size_t given = 0;
  while (given < wanted) {
    ClientConnection* oldest;
    {
      const Locked locked(lock_);
      oldest = list_.front();
      if (oldest == nullptr) break;
      while (oldest->next != nullptr) oldest = oldest->next;
      take_out(*oldest);
      open_.fetch_sub(1, std::memory_order_relaxed);
    }
    given += oldest->charged();
    ClientConnection::destroy(oldest, in_good_order);
  }
  return given;
}

}  // namespace coir::http
