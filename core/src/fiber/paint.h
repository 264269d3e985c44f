#pragma once

#include "fiber/control.h"

namespace coir {

// Builds with COIR_PAINT fill every fresh stack with a pattern. When the fiber ends, the overwritten part tells how
// deep it went; the deepest of each name is kept. Painting makes every page resident: use it to find the right stack
// class, not on the board.
#if defined(COIR_PAINT)
// paint_stack fills the stack below the fiber's first frame.
void paint_stack(FiberControl* fiber) noexcept;

// painted_peak is how deep a fiber has gone so far, in bytes with the control block; 0 in builds without paint.
std::size_t painted_peak(const FiberControl* fiber) noexcept;

// note_stack_use measures a fiber that has ended. From any worker.
void note_stack_use(const FiberControl* fiber) noexcept;

// write_stack_use appends a line for each name to the file that COIR_STACK_LOG names: the name, the class in KiB, the
// peak in bytes with the control block, the number of fibers.
void write_stack_use() noexcept;
#else
inline void paint_stack(FiberControl*) noexcept {}
inline std::size_t painted_peak(const FiberControl*) noexcept {
  return 0;
}
inline void note_stack_use(const FiberControl*) noexcept {}
inline void write_stack_use() noexcept {}
#endif

}  // namespace coir
