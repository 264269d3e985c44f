#pragma once

namespace coir {

// enter_heap_charges is coir::cxx's, see coir/heap.h; null in a program without it.
[[gnu::weak]] void enter_heap_charges() noexcept;

// enter_heap brings the ledger up to date with the heap. A thread calls it at the end of work for another, and the
// other when it takes the result.
inline void enter_heap() noexcept {
  if (&enter_heap_charges != nullptr) enter_heap_charges();
}

}  // namespace coir
