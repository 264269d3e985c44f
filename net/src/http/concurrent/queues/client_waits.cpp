#include "http/concurrent/queues/client_waits.h"

#include <coir/fiber.h>
#include <poll.h>
#include <sys/socket.h>

#include "http/connection/coarse_clock.h"

namespace coir::http {
namespace {

// However many others wait, no client counts as slow before this.
constexpr std::int64_t kHeadGraceNs = 100'000'000;
constexpr std::int64_t kContentGraceNs = 2'000'000'000;

}  // namespace

void ClientWaits::begin(Connection& connection, Direction direction, Owes owes) noexcept {
  connection.eviction.store(Eviction::none, std::memory_order_relaxed);
  connection.owes = owes;
  connection.awaits = direction;
  Locked locked(lock_);
  list_.push_back(connection);
}

bool ClientWaits::end(Connection& connection) noexcept {
  for (;;) {
    {
      Locked locked(lock_);
      if (connection.eviction.load(std::memory_order_relaxed) == Eviction::none) {
        list_.remove(connection);
        return true;
      }
    }
    // acquire pairs with the release in shut_down: its system call is over, and the descriptor is ours again.
    if (connection.eviction.load(std::memory_order_acquire) == Eviction::ended) return false;
    yield();
  }
}

void ClientWaits::take(Connection& connection) noexcept {
  list_.remove(connection);
  connection.eviction.store(Eviction::running, std::memory_order_relaxed);
}

// has_done_its_part tells whether the fiber need only run to go on.
bool ClientWaits::has_done_its_part(const Connection& connection) noexcept {
  const bool reads = connection.awaits == Direction::readable;
  pollfd entry{.fd = connection.stream.fd(), .events = static_cast<short>(reads ? POLLIN : POLLOUT), .revents = 0};
  return poll(&entry, 1, 0) > 0;
}

// shut_down wakes the fiber that waits for the client: it finds the end of the stream.
void ClientWaits::shut_down(Connection& connection) noexcept {
  ::shutdown(connection.stream.fd(), connection.awaits == Direction::readable ? SHUT_RD : SHUT_RDWR);
  // release pairs with the acquire in end.
  connection.eviction.store(Eviction::ended, std::memory_order_release);
}

template <class Meant>
void ClientWaits::end_each(Meant is_meant) noexcept {
  for (;;) {
    Connection* one;
    {
      Locked locked(lock_);
      one = list_.front();
      while (one != nullptr && !is_meant(*one)) one = one->next;
      if (one == nullptr) return;
      take(*one);
    }
    shut_down(*one);
  }
}

void ClientWaits::end_slow_heads() noexcept {
  const std::int64_t not_after_ns = coarse_ns() - kHeadGraceNs;
  end_each([=](const Connection& each) {
    return (each.owes == Owes::head || each.owes == Owes::end) && each.since_ns <= not_after_ns;
  });
}

void ClientWaits::end_heads() noexcept {
  end_each([](const Connection& each) { return each.owes == Owes::head; });
}

void ClientWaits::end_all() noexcept {
  end_each([](Connection& each) {
    each.awaits = Direction::writable;
    return true;
  });
}

// Those that may be meant leave the list while their rates are found, which takes a system call each: not with the lock.
void ClientWaits::end_slowest_transfer(bool for_memory) noexcept {
  const std::int64_t now = coarse_ns();
  ConnectionList meant;
  {
    Locked locked(lock_);
    for (Connection *each = list_.front(), *next; each != nullptr; each = next) {
      next = each->next;
      const bool holds_it = each->owes == Owes::content || (for_memory && each->owes == Owes::lent_content);
      if (!holds_it || now - each->since_ns < kContentGraceNs) continue;
      take(*each);
      meant.push_back(*each);
    }
  }
  Connection* slowest = nullptr;
  std::uint64_t least = UINT64_MAX;
  for (Connection* each = meant.front(); each != nullptr; each = each->next) {
    const std::uint64_t rate = progress(*each) / static_cast<std::uint64_t>((now - each->since_ns) / 1'000'000);
    if (rate >= least) continue;
    least = rate;
    slowest = each;
  }
  if (slowest == nullptr) return;
  const bool ends = !has_done_its_part(*slowest);
  if (ends) meant.remove(*slowest);
  {
    Locked locked(lock_);
    while (Connection* const each = meant.front()) {
      meant.remove(*each);
      each->eviction.store(Eviction::none, std::memory_order_relaxed);
      list_.push_back(*each);
    }
  }
  if (!ends) return;
  counters_.evicted_slow.fetch_add(1, std::memory_order_relaxed);
  shut_down(*slowest);
}

}  // namespace coir::http
