#pragma once

#include <coir/tcp.h>

namespace coir {

// begin_connection opens a socket and has it connect, without waiting. Returns 0 when it is connected, -EINPROGRESS
// while it is under way, else -errno.
int begin_connection(const Address& to, TcpStream& stream) noexcept;

// connection_outcome looks at a connection under way, with the same answers. Ask when the socket may be writable.
int connection_outcome(int fd) noexcept;

}  // namespace coir
