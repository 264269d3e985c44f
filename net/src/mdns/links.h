#pragma once

#include <coir/error.h>

#include <expected>
#include <span>

#include "mdns/interfaces.h"

namespace coir::mdns {

// scan_interfaces asks the kernel, by rtnetlink(7), for the interfaces and addresses of the machine. `room` holds one of
// its answers, 8 KB. It never waits: the kernel answers within the call.
// Errors: limit (no descriptor is left), no_memory, system.
std::expected<void, Error> scan_interfaces(Interfaces& into, std::span<char> room) noexcept;

// watch_links opens a socket that becomes readable when an interface or an address has changed; to be closed by
// close_fd. -1: the kernel tells of none; they are to be asked for now and then.
int watch_links() noexcept;

// links_changed takes what the socket has to tell and is true where there was anything, lost messages included.
bool links_changed(int watch, std::span<char> room) noexcept;

}  // namespace coir::mdns
