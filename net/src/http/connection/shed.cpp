#include "http/connection/shed.h"

#include <coir/deadline.h>
#include <sys/socket.h>

#include <string_view>

#include "http/message/head_error.h"

namespace coir::http {
namespace {

constexpr std::string_view kRefusal =
    "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
    "Content-Type: text/plain; charset=utf-8\r\nContent-Length: 24\r\n\r\n503 Service Unavailable\n";
constexpr std::string_view kRefusalContent = "503 Service Unavailable\n";
static_assert(kRefusal.ends_with(kRefusalContent) && kRefusalContent.size() == 24);
constexpr std::string_view kLimited =
    "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nConnection: close\r\n"
    "Content-Type: text/plain; charset=utf-8\r\nContent-Length: 22\r\n\r\n429 Too Many Requests\n";
constexpr std::string_view kLimitedContent = "429 Too Many Requests\n";
static_assert(kLimited.ends_with(kLimitedContent) && kLimitedContent.size() == 22);

// The answer where no handshake has begun: a TLS record with the fatal alert internal_error.
constexpr std::string_view kInternalError{"\x15\x03\x03\x00\x02\x02\x50", 7};

}  // namespace

// The answer fits any socket buffer. Received bytes are read, because closing with unread bytes would reset the
// connection, and the client could lose the answer.
void shed(Stream& stream, bool expects_handshake, Shed why) noexcept {
  // In the middle of a handshake nothing can be said.
  if (expects_handshake && stream.secure()) return;
  std::string_view answer = expects_handshake ? kInternalError : why == Shed::no_room ? kRefusal : kLimited;
  char begun[8];
  if (!expects_handshake && !stream.secure()) {
    const ssize_t got = ::recv(stream.fd(), begun, sizeof begun, MSG_PEEK | MSG_DONTWAIT);
    if (got > 0 && asks_for_head({begun, static_cast<std::size_t>(got)}))
      answer.remove_suffix((why == Shed::no_room ? kRefusalContent : kLimitedContent).size());
  }
  if (auto sent = stream.write(answer, Deadline::now()); !sent) return;
  stream.shutdown_write();
  char dropped[512];
  for (int i = 0; i < 8 && ::recv(stream.fd(), dropped, sizeof dropped, MSG_DONTWAIT) == sizeof dropped; ++i) {
  }
}

}  // namespace coir::http
