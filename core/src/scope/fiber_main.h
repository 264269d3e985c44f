#pragma once

#include <coir/fiber.h>

#include "fiber/control.h"

namespace coir {

// storage_of is where the closure and the result of a fiber lie, built in place.
inline void* storage_of(FiberControl* fiber) noexcept {
  return detail::storage_of(fiber, fiber->code->bytes);
}

// fiber_main is a fiber's first frame: it runs the body, and ends the fiber.
void fiber_main(void* message, void* argument) noexcept;

// report_failure gives a failure that nobody handled to the fiber's nursery.
void report_failure(const FiberControl* fiber) noexcept;

}  // namespace coir
