#include "no_room.h"

#include <coir/deadline.h>
#include <sys/socket.h>

#include <string_view>

namespace coir::http {
namespace {

constexpr std::string_view kNoRoom =
    "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
    "Content-Type: text/plain; charset=utf-8\r\nContent-Length: 24\r\n\r\n503 Service Unavailable\n";

// Where no handshake has been: a record of TLS with a fatal alert, internal_error.
constexpr std::string_view kInternalError{"\x15\x03\x03\x00\x02\x02\x50", 7};

}  // namespace

// The answer fits any socket buffer, and what has been received is read so that closing does not take the answer back.
void refuse_for_want_of_room(Stream& stream, bool expects_handshake) noexcept {
  // In the middle of a handshake there is no way to say anything.
  if (expects_handshake && stream.secure()) return;
  if (auto sent = stream.write(expects_handshake ? kInternalError : kNoRoom, Deadline::now()); !sent) return;
  stream.shutdown_write();
  char dropped[512];
  for (int i = 0; i < 8 && ::recv(stream.fd(), dropped, sizeof dropped, MSG_DONTWAIT) == sizeof dropped; ++i) {
  }
}

}  // namespace coir::http
