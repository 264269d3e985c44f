#pragma once

#include <coir/net/stream.h>
#include <coir/sleep.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>

#include "tests/support/far_end.h"
#include "tests/support/until.h"

namespace coir::test {

// A client that reads slowly, of a TCP connection within this process. until_narrow has the connection hold little, and returns
// once its server can send no more.
inline void until_narrow(int client) {
  constexpr int kSent = 512 * 1024, kReceived = 32 * 1024;
  const int server = far_end(client);
  setsockopt(server, SOL_SOCKET, SO_SNDBUF, &kSent, sizeof kSent);
  setsockopt(client, SOL_SOCKET, SO_RCVBUF, &kReceived, sizeof kReceived);
  until([&] {
    pollfd room = {.fd = server, .events = POLLOUT, .revents = 0};
    return poll(&room, 1, 0) == 0;
  });
}

// takes_slowly takes a little in each eighth of `timeout`, for twice as long: less than the server's kernel would report as room.
// False: the connection has ended.
template <class AnyStream>
bool takes_slowly(AnyStream& client, std::chrono::milliseconds timeout, Deadline patience) {
  constexpr std::size_t kLittle = 16 * 1024;
  const auto takes = [&](std::size_t left) {
    static char piece[kLittle];
    while (left > 0) {
      const auto got = client.read(std::span(piece).first(std::min(left, kLittle)), patience);
      if (!got) return false;
      left -= *got;
    }
    return true;
  };
  // More than the window was before it was narrow.
  bool stays = takes(8 * kLittle);
  for (int times = 0; times < 16 && stays; ++times) stays = sleep(timeout / 8) && takes(kLittle);
  return stays;
}

}  // namespace coir::test
