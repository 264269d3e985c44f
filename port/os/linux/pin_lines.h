#pragma once

// Lines of the character device /dev/gpiochipN.

#include <coir/port/pins.h>

namespace coir::port {

// look_at_line asks a chip for a line; 0 or an errno.
int look_at_line(int chip, std::uint32_t line, PinStatus& status) noexcept;

// read_line returns the level of a taken line, or -errno; write_line returns 0 or an errno.
int read_line(int fd) noexcept;
int write_line(int fd, bool high) noexcept;

// read_edge takes the next edge of a taken line; 0 or an errno. `seen` is the number of the latest edge.
int read_edge(int fd, std::uint32_t& seen, PinEdge& edge) noexcept;

}  // namespace coir::port
