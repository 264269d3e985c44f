#pragma once

#include <coir/error.h>
#include <coir/net/stream.h>

namespace coir::http {

// kernel_is_short tells whether a connection could not be accepted because descriptors or memory are short. It stays in
// the backlog, and asking again at once would spin.
inline bool kernel_is_short(Error error) noexcept {
  return error == ErrorCode::no_memory || error == ErrorCode::limit;
}

// shed refuses a connection for which there is no room: by 503 with Retry-After, or by an alert where TLS is expected.
// It needs no session and never waits. The caller closes the stream.
void shed(Stream& stream, bool expects_handshake) noexcept;

}  // namespace coir::http
