#include "http/session/no_room.h"

#include <coir/deadline.h>
#include <sys/socket.h>

#include <string_view>

#include "http/message/head_error.h"

namespace coir::http {
namespace {

constexpr std::string_view kNoRoom =
    "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
    "Content-Type: text/plain; charset=utf-8\r\nContent-Length: 24\r\n\r\n503 Service Unavailable\n";
constexpr std::string_view kNoRoomContent = "503 Service Unavailable\n";
static_assert(kNoRoom.ends_with(kNoRoomContent) && kNoRoomContent.size() == 24);

// Where no handshake has been: a record of TLS with a fatal alert, internal_error.
constexpr std::string_view kInternalError{"\x15\x03\x03\x00\x02\x02\x50", 7};

}  // namespace

// The answer fits any socket buffer, and what has been received is read so that closing does not take the answer back.
void refuse_for_want_of_room(Stream& stream, bool expects_handshake) noexcept {
  // In the middle of a handshake there is no way to say anything.
  if (expects_handshake && stream.secure()) return;
  std::string_view answer = expects_handshake ? kInternalError : kNoRoom;
  char begun[8];
  if (!expects_handshake && !stream.secure()) {
    const ssize_t got = ::recv(stream.fd(), begun, sizeof begun, MSG_PEEK | MSG_DONTWAIT);
    if (got > 0 && asks_for_head({begun, static_cast<std::size_t>(got)})) answer.remove_suffix(kNoRoomContent.size());
  }
  if (auto sent = stream.write(answer, Deadline::now()); !sent) return;
  stream.shutdown_write();
  char dropped[512];
  for (int i = 0; i < 8 && ::recv(stream.fd(), dropped, sizeof dropped, MSG_DONTWAIT) == sizeof dropped; ++i) {
  }
}

}  // namespace coir::http
