#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>

#include <coir/atomic.h>

#include "sanitizer.h"
#include "waiter.h"

namespace coir {

class Worker;

// WaitKind says what a parked fiber waits for; reports print it.
enum class WaitKind : std::uint8_t { nothing, readable, writable, sleep, join, signal, blocking };

// FiberControl is all that the runtime knows of a fiber. It lies at the top of the fiber's own stack, so that a parked
// fiber holds one resident page:
//
//   slot   | guard page | stack, grows down ...... | closure, result | FiberControl |
//          ^ low                                                                  high ^
//
// A slot that nobody uses reads as zero or as its last owner left it; `id` is unique for the life of the runtime, so
// that a handle {control, id} is stale exactly when the ids differ.
struct alignas(64) FiberControl : Waiter {
  enum class State : std::uint8_t { free = 0, runnable, running, parked, ended };
  enum Join : std::uint32_t { kOpen, kWaiting, kLocked, kDone, kDetached };

  // What a dump of all fibers reads while others run is atomic: it may be of two fibers' lives, but never torn.

  // What every switch touches.
  void* sp;            // the saved context, while parked
  Worker* worker;      // who runs it, or ran it last
  FiberControl* next;  // link of the run queue, inbox or pool that holds it
  Atomic<std::uint64_t> id;
  Atomic<std::uint64_t> cancelled_id;  // equals id once the fiber is cancelled; written by cancel() alone
  Atomic<State> state;
  Atomic<WaitKind> wait_kind;
  std::uint8_t stack_class;
  bool guarded;  // its guard page is armed
  Atomic<std::uint32_t> join;
  Atomic<std::int64_t> wait_object;  // the fd or the fiber id that it waits for

  // What spawn and exit touch.
  Waiter* joiner;               // valid while join is kWaiting or kLocked
  void (*run)(void* storage);   // calls the closure, leaves the result
  void (*drop)(void* storage);  // destroys the result; null when there is nothing to destroy
  void* storage;                // closure and result, built in place
  std::uint64_t parent_id;
  Atomic<const char*> name;
  Atomic<std::source_location> where;  // of the spawn
  SanitizerContext sanitizer;

  FiberControl() = delete;  // slots are never constructed: spawn sets every field

  // cancelled tells of the fiber's own mark; Scheduler::cancelling of everybody's.
  bool cancelled() const noexcept {
    return cancelled_id.load(std::memory_order_seq_cst) == id.load(std::memory_order_relaxed);
  }
};

}  // namespace coir
