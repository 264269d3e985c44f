#pragma once

#include <coir/inspect.h>
#include <coir/net/log_line.h>

#include <cstddef>

#include "../board_parts.h"
#include "control.h"

// Memory is what one answer at a time is made in.
struct Control::Memory {
  static constexpr std::size_t kMostFibers = 64;
  static constexpr std::size_t kMostPins = 64;

  coir::FiberInfo fibers[kMostFibers];
  coir::FiberCalls calls[kMostFibers];
  BoardParts::Seen pins[kMostPins];
  char log[coir::kMostKeptOfLine];
  char answer[24 * 1024];
  char fault[256];
};
