#pragma once

#include <cstddef>

#include <coir/config.h>

namespace coir {

// Direction is the side of a file descriptor that is waited for.
enum class Direction : unsigned char { readable, writable };

// kDescriptorBytes is what a descriptor costs that is waited on: an entry of the reactor's table, which stays for the
// next descriptor of that number, or of poll's in a build without fibers. Whoever has many charges it with them.
inline constexpr std::size_t kDescriptorBytes = COIR_NO_ASYNC ? 8 : 24;

}  // namespace coir
