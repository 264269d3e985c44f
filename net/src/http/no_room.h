#pragma once

#include <coir/net/stream.h>

namespace coir::http {

// refuse_for_want_of_room answers 503 with Retry-After, as well as it can be done without a session and without
// waiting. The caller closes the stream.
void refuse_for_want_of_room(Stream& stream, bool expects_handshake) noexcept;

}  // namespace coir::http
