#pragma once

#include <cstddef>
#include <cstdint>

#include "fiber/describe.h"
#include "schedule/scheduler.h"
#include "schedule/tick.h"

namespace coir {

// DebuggerView tells a debugger where the fibers are and how to read them, even in a program without type information.
// scripts/gdb/coir.py reads it by the symbol coir_debugger_view, field by field, in this order, each as large as a pointer;
// `version` changes with the order. Offsets are in bytes.
struct DebuggerView {
  std::size_t version;
  const void* arenas;
  const void* scheduler;   // where the pointer to it lies
  const void* wait_words;  // WaitWords for each WaitKind
  std::size_t arena_count, arena_bytes, arena_base, arena_stride, arena_used, arena_cold;
  std::size_t control_bytes, control_sp, control_worker, control_id, control_parent, control_state, control_wait_kind;
  std::size_t control_wait_object, control_since, control_name, control_where;
  std::size_t worker_thread_id, wait_words_bytes, tick_shift;

  static constexpr DebuggerView of(const void* arenas, const void* scheduler) noexcept;
};

// The classes are not standard-layout, which offsetof formally demands; this compiler supports it for them.
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Winvalid-offsetof"
constexpr DebuggerView DebuggerView::of(const void* arenas, const void* scheduler) noexcept {
  return {.version = 1,
          .arenas = arenas,
          .scheduler = scheduler,
          .wait_words = kWaitWords,
          .arena_count = kStackClassCount,
          .arena_bytes = sizeof(StackArena),
          .arena_base = offsetof(StackArena, base_),
          .arena_stride = offsetof(StackArena, stride_),
          .arena_used = offsetof(StackArena, used_),
          .arena_cold = offsetof(StackArena, cold_),
          .control_bytes = sizeof(FiberControl),
          .control_sp = offsetof(FiberControl, sp),
          .control_worker = offsetof(FiberControl, worker),
          .control_id = offsetof(FiberControl, id),
          .control_parent = offsetof(FiberControl, parent_id),
          .control_state = offsetof(FiberControl, state),
          .control_wait_kind = offsetof(FiberControl, wait_kind),
          .control_wait_object = offsetof(FiberControl, wait_object),
          .control_since = offsetof(FiberControl, since),
          .control_name = offsetof(FiberControl, name),
          .control_where = offsetof(FiberControl, where),
          .worker_thread_id = offsetof(Worker, thread_id_),
          .wait_words_bytes = sizeof(WaitWords),
          .tick_shift = kTickShift};
}
#pragma clang diagnostic pop

}  // namespace coir
