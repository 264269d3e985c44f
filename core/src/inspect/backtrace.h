#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <coir/port/interrupted.h>

namespace coir {

struct FiberControl;

// StackBounds is the part of a stack that may be read.
struct StackBounds {
  std::uintptr_t low, high;

  bool holds(std::uintptr_t address, std::size_t bytes) const noexcept {
    return address % sizeof(std::uintptr_t) == 0 && address >= low && address < high && high - address >= bytes;
  }
};

// Backtrace is the calls on a fiber's stack, innermost first, found along the frame pointers: that costs some
// nanoseconds a call, needs no tables, and is async-signal-safe.
//
// Other fibers' stacks may be walked while they run. That is safe because a fiber's stack is mapped as long as the
// runtime lives, and a walk reads nothing outside it: each frame lies above the previous one and below the control
// block. The result is right because the walk of a saved context ends at the outermost frame of every context, and
// counts only if a second walk finds the same and the fiber still lives.
struct Backtrace {
  static constexpr std::size_t kMost = 32;

  std::uintptr_t pc[kMost];  // return addresses: what lies before each is a call
  std::size_t count = 0;
  bool complete = false;  // down to the first frame, or to kMost

  // of_parked walks a fiber that is not running. False: it ran meanwhile, or its code keeps no frame pointers.
  bool of_parked(const FiberControl& fiber) noexcept;

  // of_caller walks the fiber that calls, from the function that calls this.
  void of_caller(const FiberControl& fiber) noexcept;

  // of_interrupted walks the fiber that a signal handler has interrupted on its own thread. In code without frame
  // pointers, such as the C library's, it searches the stack for the innermost frame that has one.
  void of_interrupted(const FiberControl& fiber, const port::Interrupted& at) noexcept;

  // stack_of is the fiber's stack; others may be writing to it.
  static StackBounds stack_of(const FiberControl& fiber) noexcept;

  // of_thread walks a stack that is no fiber's and that nothing else writes to, as far as its frames have frame pointers.
  void of_thread(const StackBounds& stack, const port::Interrupted& at) noexcept;

  // link_addresses makes the calls addresses as the program's file has them, once: as write writes them.
  std::span<const std::uintptr_t> link_addresses() noexcept;

  // write writes a line for each call to `fd`: its address as the program's file has it, for llvm-symbolizer or
  // addr2line.
  void write(int fd) const noexcept;
};

}  // namespace coir
