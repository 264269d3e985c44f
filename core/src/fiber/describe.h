#pragma once

#include "fiber/control.h"

namespace coir {

// WaitWords says what is waited for, in one word and in a sentence. `after` stands behind the object's number; null
// where that means nothing to a reader.
struct WaitWords {
  const char* name;
  const char* before;
  const char* after;
};
extern const WaitWords kWaitWords[];  // in the order of WaitKind

// write_description writes a line to `fd`: id, name, state, what it waits for and where it was spawned. dump.cpp and
// report.cpp stand on it. Async-signal-safe.
void write_description(const FiberControl& fiber, int fd) noexcept;

// wait_name is one word for what is waited for, "readable" or "mutex"; "" for nothing.
const char* wait_name(WaitKind kind) noexcept;

}  // namespace coir
