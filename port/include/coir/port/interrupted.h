#pragma once

// The place at which a signal has interrupted a thread.
//
//   void handle(int, siginfo_t*, void* context) { show(interrupted_at(context).pc); }

#include <cstdint>

namespace coir::port {

// Interrupted is where a thread was when a signal came.
struct Interrupted {
  std::uintptr_t pc, stack_pointer, frame_pointer;
};

// interrupted_at reads it from the third argument of an SA_SIGINFO handler. Async-signal-safe.
Interrupted interrupted_at(const void* signal_context) noexcept;

}  // namespace coir::port
