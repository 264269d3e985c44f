#include "proxy/upstream.h"

#include <coir/http/accounts.h>
#include <coir/http/server.h>
#include <coir/pressure.h>
#include <errno.h>
#include <stdlib.h>

#include <new>

#include "socket/kernel.h"

namespace coir::http {
namespace {

constexpr std::size_t kBytes = sizeof(UpstreamConnection) + kKernelBytesPerConnection;

bool is_quiet(UpstreamConnection& connection) noexcept {
  ssize_t seen;
  do {
    seen = kernel::peek(connection.stream.fd());
  } while (seen == -EINTR);
  return seen == -EAGAIN;
}

}  // namespace

UpstreamGroup::~UpstreamGroup() {
  while (UpstreamConnection* const each = resting_.front()) {
    resting_.remove(*each);
    destroy(*each, true);
  }
}

std::expected<UpstreamLease, Error> UpstreamGroup::take(const UpstreamChoice& choice, Deadline deadline) noexcept {
  while (!choice.must_be_new) {
    UpstreamConnection* found;
    {
      const Locked locked(lock_);
      found = resting_.front();
      if (found == nullptr) break;
      resting_.remove(*found);
    }
    if (is_quiet(*found)) {
      found->reused = true;
      return UpstreamLease(*found);
    }
    destroy(*found, true);
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

void UpstreamGroup::rest(UpstreamConnection& connection) noexcept {
  connection.stream.rest();
  const Locked locked(lock_);
  resting_.push_front(connection);
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
