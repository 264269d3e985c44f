#pragma once

#include <coir/heap.h>

#include <cstddef>
#include <cstdint>

namespace coir::test {

// entered is what the ledger holds for the heap, once this thread owes it nothing.
inline std::size_t entered() noexcept {
  enter_heap_charges();
  return account::heap.used();
}

// Limited sets a ceiling for the heap that leaves `room` bytes, until its end.
class Limited {
 public:
  explicit Limited(std::size_t room) noexcept { account::heap.set_ceiling(entered() + room); }
  ~Limited() { account::heap.set_ceiling(SIZE_MAX); }
  Limited(const Limited&) = delete;
  Limited& operator=(const Limited&) = delete;
};

}  // namespace coir::test
