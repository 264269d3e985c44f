#pragma once

#include <coir/net/tcp.h>

namespace coir::http {

// refuse_for_want_of_room answers 503 with Retry-After, as well as it can be done without a session and without
// waiting. The caller closes the stream.
void refuse_for_want_of_room(TcpStream& stream) noexcept;

}  // namespace coir::http
