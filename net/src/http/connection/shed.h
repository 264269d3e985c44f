#pragma once

#include <coir/error.h>
#include <coir/net/stream.h>

namespace coir::http {

// kernel_is_short tells whether a connection could not be accepted because descriptors or memory are short. It stays in
// the backlog, and asking again at once would spin.
inline bool kernel_is_short(Error error) noexcept {
  return error == ErrorCode::no_memory || error == ErrorCode::limit;
}

// Shed is why a connection is refused: there is no room for it, or one client has too many.
enum class Shed : bool { no_room, one_client };

// shed refuses a connection: by 503 or 429 with Retry-After, or by an alert where TLS is expected. It needs no session
// and never waits. The caller closes the stream.
void shed(Stream& stream, bool expects_handshake, Shed why = Shed::no_room) noexcept;

}  // namespace coir::http
