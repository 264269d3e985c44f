#pragma once

#include <coir/tcp.h>

namespace coir {

// is_own_address tells whether an address, its port aside, is one of this machine's: the one by which `by` was called,
// or any that a socket can be bound to. 0.0.0.0 and :: are none. Costs at most four system calls and a descriptor for a
// moment; without one, only the first counts.
bool is_own_address(const Address& address, const TcpStream& by) noexcept;

}  // namespace coir
