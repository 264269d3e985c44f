#pragma once

#include "fiber/control.h"

namespace coir {

// fiber_main is a fiber's first frame: it runs the body, and ends the fiber.
void fiber_main(void* message, void* argument) noexcept;

// report_failure gives a failure that nobody handled to the fiber's nursery.
void report_failure(const FiberControl* fiber) noexcept;

}  // namespace coir
