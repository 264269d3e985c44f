#pragma once

// A list of all fibers, with the event that each waits for.
//
//   static FiberInfo fibers[64];
//   const std::size_t count = list_fibers(fibers);
//   for (const FiberInfo& each : std::span(fibers, std::min<std::size_t>(count, 64))) show(each.name);
//   if (auto set = dump_fibers_on(SIGUSR1); !set) return complain(set.error());      // all of them, to standard error

#include <coir/port/needs_fibers.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <source_location>
#include <span>
#include <string_view>

#include <coir/deadline.h>
#include <coir/detail/fiber_handle.h>
#include <coir/error.h>

namespace coir {

// FiberState: a `runnable` fiber waits for a worker, a `running` one has it, a `parked` one waits for something else.
enum class FiberState : std::uint8_t { runnable, running, parked };

// state_name is what a state is called: "runnable", "running" or "parked".
constexpr std::string_view state_name(FiberState state) noexcept {
  return state == FiberState::parked ? "parked" : state == FiberState::running ? "running" : "runnable";
}

// FiberInfo is a snapshot of a fiber. While its worker runs on, the parts may be a few instructions apart.
struct FiberInfo {
  std::uint64_t id = 0;
  std::uint64_t parent = 0;  // the id of the fiber that spawned it; 0 for a plain thread
  const char* name = "";
  std::source_location where;  // of the spawn
  FiberState state = FiberState::runnable;
  const char* waits_for = "";          // one word, "readable", "mutex", "sleep"; "" unless parked
  std::int64_t wait_object = 0;        // the descriptor, or the id of the fiber, that it waits for
  std::chrono::nanoseconds waited{0};  // since it parked; may lag by 64 switches of its worker, and by 20 ms
  std::size_t stack_bytes = 0;         // with what the runtime keeps on it
  std::size_t stack_peak_bytes = 0;    // how deep it went: measured where built with COIR_PAINT, else by resident pages
  bool stack_measured = false;         // which of the two
};

// inspect describes one fiber. Error: stale. Any thread, any fiber. Cost: a system call, for the resident pages.
[[nodiscard]] std::expected<FiberInfo, Error> inspect(const FiberRef& fiber) noexcept;

// FiberCalls are the calls on a fiber's stack, the innermost first: addresses as the program's file has them, for
// llvm-symbolizer or addr2line.
struct FiberCalls {
  static constexpr std::size_t kMost = 12;

  std::uintptr_t calls[kMost] = {};
  std::size_t count = 0;  // 0: it runs on, or its code keeps no frame pointers
};

// list_fibers fills `into` with the live fibers, as many as fit, and `calls` with the calls of the first ones of these. It
// returns how many fibers there are; fibers that come and go meanwhile may be missing. As inspect.
std::size_t list_fibers(std::span<FiberInfo> into, std::span<FiberCalls> calls = {}) noexcept;

// dump_fibers writes all fibers to `fd`: id, name, state, what each waits for, where it was spawned; for how long, its
// parent, its stack; and its backtrace, as addresses for llvm-symbolizer or addr2line. A fiber that has ended with an
// error and whose handle nobody has asked yet is a line that says "failed, not awaited". Allocates nothing, takes no
// lock, and needs 2 KB of stack. Any thread, any fiber, signal handlers; the fibers of other workers go on meanwhile,
// but for a signal (SIGURG) that asks each running one where it is.
void dump_fibers(int fd) noexcept;

// dump_fibers_on makes a signal do the same at any moment: even a fiber that never gives its worker back, or a worker
// that hangs in a call to the kernel, is shown then. The handler is the process's for `signal` and stays; it writes to
// `fd` directly, past stdio's buffers. Errors: invalid, system.
[[nodiscard]] std::expected<void, Error> dump_fibers_on(int signal, int fd = 2) noexcept;

}  // namespace coir
