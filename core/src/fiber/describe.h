#pragma once

#include "fiber/control.h"

namespace coir {

// WaitWords describes a kind of wait by one word and by a sentence. `after` follows the object's number; null where the
// number means nothing to a reader.
struct WaitWords {
  const char* name;
  const char* before;
  const char* after;
};
extern const WaitWords kWaitWords[];  // in the order of WaitKind

// write_description writes a line to `fd`: id, name, state, what it waits for and where it was spawned. dump.cpp and
// report.cpp stand on it. Async-signal-safe.
void write_description(const FiberControl& fiber, int fd) noexcept;

// wait_name is one word for a kind of wait, such as "readable" or "mutex"; "" for none.
const char* wait_name(WaitKind kind) noexcept;

}  // namespace coir
