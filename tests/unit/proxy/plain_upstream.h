#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <cstdint>
#include <string_view>

#include "tests/support/faults.h"
#include "tests/unit/client/scripted_server.h"

namespace coir::test {

// PlainUpstream serves each connection on a thread, by blocking sockets whose calls never fail. `serve` closes nothing: when
// it returns the connection ends.
class PlainUpstream {
 public:
  using Serve = void (*)(int fd);

  explicit PlainUpstream(Serve serve)
      : server_([serve](Peer& peer) { serve(peer.fd()); }, nullptr, &spare_this_thread) {}
  std::uint16_t port() const { return server_.port(); }

  static bool say(int fd, std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  // hear reads so many bytes.
  static bool hear(int fd, void* into, std::size_t bytes) {
    for (std::size_t have = 0; have < bytes;) {
      const ssize_t got = ::recv(fd, static_cast<char*>(into) + have, bytes - have, 0);
      if (got <= 0) return false;
      have += static_cast<std::size_t>(got);
    }
    return true;
  }
  // pause returns once the other side has had time to let the response rest, or is gone.
  static void pause(int fd) {
    pollfd entry{.fd = fd, .events = POLLRDHUP, .revents = 0};
    ::poll(&entry, 1, 5);
  }

 private:
  const ScriptedServer server_;
};

}  // namespace coir::test
