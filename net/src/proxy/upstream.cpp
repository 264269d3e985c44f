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

UpstreamGroup::~UpstreamGroup() {
  // Behind the end of the run no wake runs any more.
  const bool runs = current().id() != 0;
  for (;;) {
    UpstreamConnection* each;
    {
      const Locked locked(lock_);
      each = resting_.front();
      if (each == nullptr) break;
      resting_.remove(*each);
      each->rests = false;
      if (!disarm_resting_wait(*each) && runs) {
        waking_.fetch_add(1, std::memory_order_relaxed);
        each = nullptr;
      }
    }
    if (each != nullptr) destroy(*each, true);
  }
  // acquire pairs with the release in woken, behind which nothing of the group is touched.
  while (runs && waking_.load(std::memory_order_acquire) != 0) yield();
}

std::expected<UpstreamLease, Error> UpstreamGroup::take(const UpstreamChoice& choice, Deadline deadline) noexcept {
  while (!choice.must_be_new) {
    const Locked locked(lock_);
    UpstreamConnection* const found = resting_.front();
    if (found == nullptr) break;
    resting_.remove(*found);
    found->rests = false;
    if (disarm_resting_wait(*found)) {
      found->reused = true;
      return UpstreamLease(*found);
    }
    // Its wake is about to run, and closes it.
    waking_.fetch_add(1, std::memory_order_relaxed);
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
