#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>

#include <coir/atomic.h>
#include <coir/config.h>
#include <coir/error.h>

#include "fiber/sanitizer.h"
#include "fiber/trace_mark.h"
#include "fiber/waiter.h"

namespace coir {

class Worker;
namespace detail {
class NurseryBase;
struct Code;
struct LocalNode;
struct Scope;
struct SiblingLinks;
struct WaitNode;
}  // namespace detail

// WaitKind says what a parked fiber waits for; reports print it. The first three are those of Direction, in order.
enum class WaitKind : std::uint8_t {
  nothing,
  readable,
  writable,
  urgent,
  sleep,
  join,
  signal,
  nursery,
  admission,
  mutex,
  condition,
  semaphore,
  event,
  wait_group,
  once,
  shared_lock,
  exclusive_lock,
  receive,
  send,
  select,
  job,
  backlog,
  blocking,
};

// FiberControl holds everything that the runtime knows of a fiber. It lies at the top of the fiber's own stack, so that
// a parked fiber holds one resident page:
//
//   slot   | guard page | stack, grows down ...... | closure, result | FiberControl |
//          ^ low                                                                  high ^
//
// An unused slot reads as zero or as its last owner left it. `id` is unique for the life of the runtime, so that a
// handle {control, id} is stale exactly when the ids differ.
struct alignas(64) FiberControl : Waiter {
  // `failed`: it has ended with an error, and its handle is held.
  enum class State : std::uint8_t { free = 0, runnable, running, parked, ended, failed };
  // How far the fiber and its handle have come: scope/join.h.
  enum Join : std::uint32_t { kOpen, kWaiting, kListing, kLocked, kDone, kTaken, kFailed, kDetached };

  // The fields that a dump reads while other fibers run are atomic: they may mix two fibers' lives, but are never torn.

  // The fields that every switch touches.
  void* sp;            // the saved context, while parked
  Worker* worker;      // the one that runs it, or ran it last
  FiberControl* next;  // link of the run queue, inbox or pool that holds it
  Atomic<std::uint64_t> id;
  Atomic<std::uint64_t> cancelled_id;  // equals id once the fiber is cancelled; written by cancel() alone
  Atomic<State> state;
  Atomic<WaitKind> wait_kind;
  std::uint8_t stack_class;
  bool guarded : 1;  // its guard page is armed
  bool fails : 1;    // once it has ended: `failure` counts, and is not merely the answer to a cancellation
  bool taken : 1;    // once it has ended: one that waited takes the outcome
  Atomic<std::uint32_t> join;
  Atomic<std::int64_t> wait_object;  // the fd or the fiber id that it waits for; once it has failed, the Error
  std::uint64_t ticket;         // id, and above it how many shields are up: what its waits are armed with; owner only
  Atomic<std::uint32_t> since;  // the tick at which it parked last; see tick.h
  std::uint16_t mutexes_held;   // owner only
  std::uint16_t late;           // whose deadline the latest wait in a scope had, 0 for its own; owner only

  // The fields that spawn and exit touch.
  detail::WaitNode* waiting;  // who waits for its end; once it has ended, who is to be woken of them
  const detail::Code* code;   // how the closure is called and the result destroyed, at storage_of(fiber)
  Atomic<std::uint64_t> parent_id;
  Atomic<const char*> name;
  Atomic<std::source_location> where;  // of the spawn

  // The fields of nurseries and cancel scopes.
  detail::NurseryBase* nursery;       // whose child it is; null: the root's
  detail::NurseryBase* nurseries;     // that it has made, but for those behind a shield; see NurseryBase::made
  detail::LocalNode* locals;          // its fiber-local values, the innermost first; owner only
  detail::Scope* current_scope;       // its innermost scope; null: none. Owner only
  const Error* failure;               // once it has ended: the error in its result, or null
  FiberControl *elder, *younger;      // in the nursery's set, under its lock
  Atomic<const char*> cancel_reason;  // means something once the fiber is cancelled
  [[no_unique_address]] SanitizerContext sanitizer;
  [[no_unique_address]] TraceMark trace;

  // The step of a ticket for each shield that is up, at most 15: a claim by a ticket from outside then misses the waits
  // inside.
  static constexpr std::uint64_t kShieldStep = std::uint64_t{1} << 52;
  static constexpr std::uint64_t kMostShields = 15;

  FiberControl() = delete;  // slots are never constructed: spawn sets every field

  // cancelled tells whether this fiber is marked and no shield is up; Scheduler::cancelling whether all are. Owner
  // only.
  bool cancelled() const noexcept { return cancelled_id.load(std::memory_order_seq_cst) == ticket; }
  bool shielded() const noexcept { return ticket >= kShieldStep; }
};
static_assert(COIR_ASAN || COIR_TSAN || kTracing || sizeof(FiberControl) == (sizeof(void*) == 8 ? 192 : 128));

// SiblingLinks are a child's in its nursery's set.
struct detail::SiblingLinks {
  static FiberControl*& next(FiberControl& child) noexcept { return child.younger; }
  static FiberControl*& previous(FiberControl& child) noexcept { return child.elder; }
};

}  // namespace coir
