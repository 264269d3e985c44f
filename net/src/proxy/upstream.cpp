#include "proxy/upstream.h"

#include <coir/fiber.h>
#include <coir/http/accounts.h>
#include <coir/http/server.h>
#include <coir/pressure.h>
#include <stdlib.h>

#include <new>
#include <utility>

namespace coir::http {
namespace {

constexpr std::size_t kBytes = sizeof(UpstreamConnection) + kKernelBytesPerConnection;

}  // namespace

UpstreamGroup::UpstreamGroup(const Address& address) noexcept
    : address_(address), relief_(Pressure::caches, give, this) {
  Pressure::add(relief_);
}

UpstreamGroup::~UpstreamGroup() {
  Pressure::remove(relief_);
  while (UpstreamConnection* const each = take_resting()) destroy(*each, true);
  // Behind the end of the run no wake runs any more. acquire pairs with the release in woken, behind which nothing of the
  // group is touched.
  while (current().id() != 0 && waking_.load(std::memory_order_acquire) != 0) yield();
}

std::size_t UpstreamGroup::give(void* group, std::size_t wanted) noexcept {
  std::size_t given = 0;
  for (; given < wanted; given += kBytes) {
    UpstreamConnection* const each = static_cast<UpstreamGroup*>(group)->take_resting();
    if (each == nullptr) break;
    destroy(*each, true);
  }
  return given;
}

// take_resting takes out the one that was used last, of those that sleep still.
UpstreamConnection* UpstreamGroup::take_resting() noexcept {
  const Locked locked(lock_);
  while (UpstreamConnection* const found = resting_.front()) {
    resting_.remove(*found);
    found->rests = false;
    if (disarm_resting_wait(*found)) return found;
    // Its wake is about to run, and closes it.
    waking_.fetch_add(1, std::memory_order_relaxed);
  }
  return nullptr;
}

std::expected<UpstreamLease, Error> UpstreamGroup::take(const UpstreamChoice& choice, Deadline deadline) noexcept {
  if (UpstreamConnection* const found = choice.must_be_new ? nullptr : take_resting()) {
    found->reused = true;
    return UpstreamLease(*found);
  }
  if (!Pressure::charge(account::connections, kBytes)) return std::unexpected(Error{ErrorCode::limit});
  void* const memory = malloc(sizeof(UpstreamConnection));
  if (memory == nullptr) {
    account::connections.refund(kBytes);
    return std::unexpected(Error{ErrorCode::limit});
  }
  auto* const connection = ::new (memory) UpstreamConnection;
  connection->group = this;
  auto tcp = TcpStream::connect(address_, deadline);
  if (!tcp) {
    destroy(*connection, true);
    return std::unexpected(tcp.error());
  }
  connection->stream = Stream(std::move(*tcp));
  return UpstreamLease(*connection);
}

// rest makes a system call only where nobody has waited on the connection yet.
void UpstreamGroup::rest(UpstreamConnection& connection) noexcept {
  connection.stream.rest();
  connection.wake = woken;
  {
    const Locked locked(lock_);
    if (connection.stream.drained() && arm_resting_wait(connection, connection.stream.fd())) {
      connection.rests = true;
      resting_.push_front(connection);
      return;
    }
  }
  destroy(connection, true);
}

// woken runs on a worker's own stack: what has come is an end, or an answer to nothing.
void UpstreamGroup::woken(RestingWait& resting) noexcept {
  auto& connection = static_cast<UpstreamConnection&>(resting);
  UpstreamGroup& self = *connection.group;
  bool taken_out;
  {
    const Locked locked(self.lock_);
    taken_out = !std::exchange(connection.rests, false);
    if (!taken_out) self.resting_.remove(connection);
  }
  destroy(connection, true);
  // release pairs with the acquire in the destructor.
  if (taken_out) self.waking_.fetch_sub(1, std::memory_order_release);
}

void UpstreamGroup::destroy(UpstreamConnection& connection, bool in_good_order) noexcept {
  if (!in_good_order) connection.stream.abandon();
  connection.~UpstreamConnection();
  free(&connection);
  account::connections.refund(kBytes);
}

void UpstreamLease::give_back(bool reusable) noexcept {
  if (connection_ == nullptr) return;
  UpstreamConnection& connection = *std::exchange(connection_, nullptr);
  if (reusable) return connection.group->rest(connection);
  UpstreamGroup::destroy(connection, true);
}

void UpstreamLease::failed(UpstreamFault) noexcept {
  if (connection_ != nullptr) UpstreamGroup::destroy(*std::exchange(connection_, nullptr), false);
}

}  // namespace coir::http
