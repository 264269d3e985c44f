#pragma once

// The side of a descriptor that is waited for.
//
//   const Direction side = Direction::readable;
//   if (auto ready = wait(fd, side, deadline); !ready) return complain(ready.error());

#include <cstddef>

#include <coir/config.h>

namespace coir {

// Direction is the side of a file descriptor that is waited for. `urgent` is POLLPRI: a byte out of band, and what the
// kernel tells so of files of its own. A pin's value below /sys/class/gpio has changed by the edges that its file `edge`
// names; read it from its start, then wait again. The first wait may return at once.
enum class Direction : unsigned char { readable, writable, urgent };

// kDescriptorBytes is the memory for each descriptor that is waited on: an entry of the reactor's table, which stays
// for the next descriptor of that number; in a build without fibers an entry for poll(2). A program with many
// descriptors charges it to the ledger.
inline constexpr std::size_t kDescriptorBytes = COIR_NO_ASYNC ? 8 : 8 + 3 * sizeof(void*);

}  // namespace coir
