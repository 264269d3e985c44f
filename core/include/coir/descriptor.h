#pragma once

#include <cstddef>

#include <coir/config.h>

namespace coir {

// Direction is the side of a file descriptor that is waited for.
enum class Direction : unsigned char { readable, writable };

// kDescriptorBytes is the memory for each descriptor that is waited on: an entry of the reactor's table, which stays
// for the next descriptor of that number; in a build without fibers an entry for poll(2). A program with many
// descriptors charges it to the ledger.
inline constexpr std::size_t kDescriptorBytes = COIR_NO_ASYNC ? 8 : 8 + 2 * sizeof(void*);

}  // namespace coir
