#pragma once

#include <concepts>
#include <expected>
#include <utility>

#include <coir/error.h>
#include <coir/net/tcp.h>
#include <coir/sleep.h>

namespace coir {

// accept_each hands each connection of a listener to `body`, which spawns what serves it and returns:
//
//   Nursery clients{{.limit = 100}};                    // the hundred and first waits in the backlog
//   return accept_each(listener, [&](TcpStream client) {
//     clients.start([client = std::move(client)]() mutable { return serve(client); });
//   });
//
// It goes on where accept fails: a process that is out of descriptors or of memory asks again after 50 ms, and the
// connection waits in the backlog. It returns when the listener is closed, and when the caller is cancelled. From a
// fiber or a plain thread; a thread, and a build without fibers, serves the client in `body` itself. Errors: cancelled, timed_out (of a scope), unsupported (on a worker's own stack).
template <std::invocable<TcpStream&&> F>
[[nodiscard]] std::expected<void, Error> accept_each(TcpListener& listener, F&& body) {
  for (;;) {
    auto accepted = listener.accept();
    if (accepted) {
      body(std::move(*accepted));
    } else if (accepted.error() == ErrorCode::closed) {
      return {};
    } else if (auto slept = sleep(std::chrono::milliseconds(50)); !slept) {
      return slept;  // what has ended accept's wait for good ends this one as well
    }
  }
}

}  // namespace coir
