// Memory for systems without mmap: what is reserved comes from the C library, zeroed, and counts as the library has it.
#include <coir/port/memory.h>
#include <stdlib.h>

namespace coir::port {

void* reserve(std::size_t bytes) noexcept {
  return calloc(1, bytes);
}

void release(void* start, std::size_t) noexcept {
  free(start);
}

bool give_back(void*, std::size_t) noexcept {
  return false;
}

}  // namespace coir::port
