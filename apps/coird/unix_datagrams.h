#pragma once

#include <string_view>

// connect_datagrams connects a socket, which never blocks, to the datagram socket "/path" or, in the abstract namespace,
// "@name". Returns it, or -1 with errno.
int connect_datagrams(std::string_view name) noexcept;
