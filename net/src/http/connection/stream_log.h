#pragma once

#include <cstddef>
#include <cstdint>

namespace coir::http {

struct Connection;

// StreamLog is what the access log will say of a stream: an event stream, a WebSocket, a tunnel, or content that goes on
// without a fiber. Its line is made when it begins, for its request is not kept, and written when its connection ends
// or serves the next request; the numbers are put into the gaps then. The text stands behind it. Charged to
// account::streams, where there is an access log.
struct StreamLog {
  static constexpr std::size_t kNumbers = 48;  // the room for both
  static constexpr std::size_t kWhy = 24;      // and for a word

  std::int64_t began_ns;
  std::uint64_t sent;       // of content, before the stream began
  std::uint64_t delivered;  // to the kernel over this connection, before the stream began
  std::uint32_t size;       // of the text
  std::uint16_t sent_at;    // where the bytes are told in it
  std::uint16_t took_at;    // and the time
  const char* why;          // the stream was not ended as it should, where that is known; else null

  char* text() noexcept { return reinterpret_cast<char*>(this + 1); }
  std::size_t bytes() const noexcept { return sizeof *this + size + kNumbers + kWhy; }
};

// end_log writes the line of a connection that belongs to the caller, if it `logs`, and gives its record back. It comes
// before its stream is closed or reset. The bytes are those that the kernel was given for a TCP connection, of TLS with
// its framing; over a Unix socket only those before the stream rested are known.
void end_log(Connection& connection) noexcept;

}  // namespace coir::http
