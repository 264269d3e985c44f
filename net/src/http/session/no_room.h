#pragma once

#include <coir/error.h>
#include <coir/net/stream.h>

namespace coir::http {

// kernel_is_short tells whether a connection could not be accepted for want of descriptors or memory: it stays in the
// backlog, and asking again at once would spin.
inline bool kernel_is_short(Error error) noexcept {
  return error == ErrorCode::no_memory || error == ErrorCode::limit;
}

// refuse_for_want_of_room answers 503 with Retry-After, as well as it can be done without a session and without
// waiting. The caller closes the stream.
void refuse_for_want_of_room(Stream& stream, bool expects_handshake) noexcept;

}  // namespace coir::http
