#pragma once

#include "fiber/control.h"

namespace coir {

// open_to_waiting shows the joiner to the fiber; false when it has ended meanwhile.
bool open_to_waiting(FiberControl* fiber, Waiter* joiner) noexcept;

// leave_joining takes the joiner back. False: the fiber has ended meanwhile, and its claim of the joiner is over.
bool leave_joining(FiberControl* fiber) noexcept;

// fiber_main is a fiber's first frame: it runs the body, and ends the fiber.
void fiber_main(void* message, void* argument) noexcept;

// ends tells of a fiber's join word whether the fiber has ended or is about to leave its stack.
inline bool ends(std::uint32_t join) noexcept {
  return join != FiberControl::kOpen && join != FiberControl::kWaiting && join != FiberControl::kDetached;
}

}  // namespace coir
