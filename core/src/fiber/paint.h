#pragma once

#include <coir/config.h>

#include "fiber/control.h"

namespace coir {

// In builds with COIR_PAINT every fresh stack is filled with a pattern, and when its fiber ends the part that is no
// longer there tells how deep it went. The deepest of each name is kept. Painting makes every page resident: it is for
// finding the right class, not for the board.
#if COIR_PAINT
// paint_stack fills the stack below the fiber's first frame.
void paint_stack(FiberControl* fiber) noexcept;

// painted_peak is how deep a fiber has gone so far, in bytes with the control block; 0 in builds without paint.
std::size_t painted_peak(const FiberControl* fiber) noexcept;

// note_stack_use measures a fiber that runs no more. From any worker.
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
