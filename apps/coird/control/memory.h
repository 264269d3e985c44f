#pragma once

#include <coir/inspect.h>
#include <coir/net/log_line.h>

#include <cstddef>

#include "control.h"

// Memory is what one answer at a time is made in.
struct Control::Memory {
  static constexpr std::size_t kMostFibers = 64;

  coir::FiberInfo fibers[kMostFibers];
  coir::FiberCalls calls[kMostFibers];
  char log[coir::kRecentLogBytes];
  char answer[24 * 1024];
};
