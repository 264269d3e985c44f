#include "no_room.h"

#include <coir/deadline.h>
#include <sys/socket.h>

#include <string_view>

namespace coir::http {
namespace {

constexpr std::string_view kNoRoom =
    "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
    "Content-Type: text/plain; charset=utf-8\r\nContent-Length: 24\r\n\r\n503 Service Unavailable\n";

}  // namespace

// The answer fits any socket buffer, and what has been received is read so that closing does not take the answer back.
void refuse_for_want_of_room(TcpStream& stream) noexcept {
  if (auto sent = stream.write(kNoRoom, Deadline::now()); !sent) return;
  stream.shutdown_write();
  char dropped[512];
  static_cast<void>(::recv(stream.fd(), dropped, sizeof dropped, MSG_DONTWAIT));
}

}  // namespace coir::http
