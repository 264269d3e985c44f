#include "schedule/trace.h"

#include <coir/config.h>

#if COIR_TRACE

#include <string.h>

#include <coir/deadline.h>
#include <coir/ledger.h>
#include <coir/port/memory.h>

#include "schedule/scheduler.h"
#include "schedule/trace_ring.h"

namespace coir {

namespace {

constexpr unsigned kMostRings = Scheduler::kMaxWorkers + 1;
constexpr std::size_t kMostNames = 256;
constexpr std::size_t kNameBytes = 32;

constinit TraceRing g_rings[kMostRings];
constinit unsigned g_count = 0;  // 0: no room, or no run
constinit std::size_t g_ring_bytes = 0;
constinit Spinlock g_outside_lock;  // of the last ring
constinit SharedAtomic<std::uint64_t> g_flows{0};

// Names are copied, because a trace may be written when their owner is gone. The first stands for names that did not
// fit.
constinit Spinlock g_names_lock;
constinit char g_names[kMostNames][kNameBytes] = {"fiber"};
constinit SharedAtomic<std::size_t> g_name_count{1};

std::uint16_t name_of(const char* name) noexcept {
  Locked hold(g_names_lock);
  const std::size_t count = g_name_count.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < count; ++i) {
    if (strncmp(g_names[i], name, kNameBytes - 1) == 0) return static_cast<std::uint16_t>(i);
  }
  if (count == kMostNames) return 0;
  memcpy(g_names[count], name, strnlen(name, kNameBytes - 1));
  // release pairs with the acquire in trace_name.
  g_name_count.store(count + 1, std::memory_order_release);
  return static_cast<std::uint16_t>(count);
}

std::uint64_t now() noexcept {
  return static_cast<std::uint64_t>(monotonic_ns());
}

void push(Worker* worker, const TraceEvent& event) noexcept {
  if (g_count == 0) return;
  if (worker != nullptr && worker->scheduler().isolated()) return;  // its index is another's
  if (worker != nullptr) return g_rings[worker->index()].push(event);
  Locked hold(g_outside_lock);
  g_rings[g_count - 1].push(event);
}

TraceEvent event_of(TraceKind kind, const FiberControl* fiber) noexcept {
  return {.at_ns = now(),
          .fiber = fiber->id.load(std::memory_order_relaxed),
          .kind = kind,
          .wait = WaitKind::nothing,
          .name = fiber->trace.name,
          .object = 0,
          .flow = 0,
          .since_ns = 0};
}

}  // namespace

void trace_begin(unsigned workers, std::size_t ring_bytes) noexcept {
  const std::size_t bytes = ring_bytes * (workers + 1);
  if (!account::trace.charge(bytes)) return;
  auto* const memory = static_cast<char*>(port::reserve(bytes));
  if (memory == nullptr) return account::trace.refund(bytes);
  for (unsigned i = 0; i <= workers; ++i) g_rings[i].use(memory + i * ring_bytes, ring_bytes);
  g_ring_bytes = ring_bytes;
  g_count = workers + 1;
}

void trace_end() noexcept {
  if (g_count == 0) return;
  const std::size_t bytes = g_ring_bytes * g_count;
  port::release(g_rings[0].memory(), bytes);
  account::trace.refund(bytes);
  g_count = 0;
}

unsigned trace_rings() noexcept {
  return g_count;
}
const TraceRing& trace_ring(unsigned index) noexcept {
  return g_rings[index];
}
const char* trace_name(std::uint16_t name) noexcept {
  return name < g_name_count.load(std::memory_order_acquire) ? g_names[name] : g_names[0];
}

void trace_spawned(Worker* worker, FiberControl* fiber) noexcept {
  fiber->trace = {.since_ns = 0, .flow = 0, .name = name_of(fiber->name.load(std::memory_order_relaxed))};
  TraceEvent event = event_of(TraceKind::spawned, fiber);
  event.object = fiber->parent_id.load(std::memory_order_relaxed);
  push(worker, event);
}

void trace_run(Worker* worker, FiberControl* fiber) noexcept {
  TraceEvent event = event_of(TraceKind::run, fiber);
  event.flow = fiber->trace.flow;
  fiber->trace.flow = 0;
  push(worker, event);
}

void trace_left(Worker* worker, FiberControl* fiber) noexcept {
  const FiberControl::State state = fiber->state.load(std::memory_order_relaxed);
  TraceEvent event = event_of(state == FiberControl::State::parked  ? TraceKind::parked
                              : state == FiberControl::State::ended ? TraceKind::ended
                                                                    : TraceKind::yielded,
                              fiber);
  event.wait = fiber->wait_kind.load(std::memory_order_relaxed);
  event.object = static_cast<std::uint64_t>(fiber->wait_object.load(std::memory_order_relaxed));
  fiber->trace.since_ns = static_cast<std::int64_t>(event.at_ns);
  push(worker, event);
}

void trace_woken(Worker* worker, FiberControl* fiber) noexcept {
  TraceEvent event = event_of(TraceKind::woken, fiber);
  event.wait = fiber->wait_kind.load(std::memory_order_relaxed);
  event.object = static_cast<std::uint64_t>(fiber->wait_object.load(std::memory_order_relaxed));
  event.since_ns = static_cast<std::uint64_t>(fiber->trace.since_ns);
  event.flow = g_flows.fetch_add(1, std::memory_order_relaxed) + 1;
  fiber->trace.flow = event.flow;
  push(worker, event);
}

void trace_stolen(Worker* worker, const FiberControl* fiber) noexcept {
  push(worker, event_of(TraceKind::stolen, fiber));
}

std::int64_t trace_idle_from() noexcept {
  return monotonic_ns();
}

void trace_idle(Worker* worker, std::int64_t from_ns) noexcept {
  constexpr std::int64_t kWorthTelling = 2'000;
  const std::int64_t until = monotonic_ns();
  if (until - from_ns < kWorthTelling) return;
  push(worker, {.at_ns = static_cast<std::uint64_t>(until),
                .fiber = 0,
                .kind = TraceKind::idle,
                .wait = WaitKind::nothing,
                .name = 0,
                .object = 0,
                .flow = 0,
                .since_ns = static_cast<std::uint64_t>(from_ns)});
}

}  // namespace coir

#endif
