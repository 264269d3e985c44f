#pragma once

#include <coir/spinlock.h>
#include <sys/socket.h>

#include "http/session/connection.h"

namespace coir::http {

// DetachedConnections are those that belong to handlers' own fibers (coir/http/detail/detached.h), so that a server
// that stops can tell these.
class DetachedConnections {
 public:
  void add(Connection& connection) noexcept {
    Locked locked(lock_);
    list_.push_back(connection);
  }
  // remove comes before the connection is closed.
  void remove(Connection& connection) noexcept {
    Locked locked(lock_);
    list_.remove(connection);
  }

  // end_reading has every fiber that waits for its client, or will, find the end of the stream.
  void end_reading() noexcept {
    Locked locked(lock_);
    for (const Connection* each = list_.front(); each != nullptr; each = each->next) {
      ::shutdown(each->stream.fd(), SHUT_RD);
    }
  }

 private:
  Spinlock lock_;
  ConnectionList list_;  // guarded by lock_
};

}  // namespace coir::http
