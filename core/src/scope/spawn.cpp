#include <bit>
#include <new>

#include <coir/detail/nursery_base.h>
#include <coir/fiber.h>

#include "fiber/paint.h"
#include "scope/fiber_main.h"
#include "wait/owner.h"
#include "wait/park.h"

namespace coir {

namespace {

// class_for is the smallest class of at least `bytes`, or kStackClassCount and above for what none can hold.
std::size_t class_for(std::size_t bytes) noexcept {
  return static_cast<std::size_t>(std::bit_width((bytes - 1) >> 13));
}
static_assert(nominal_stack_bytes(0) == std::size_t{1} << 13);

struct Identity {
  std::uint64_t id;
  std::uint64_t parent_id;
  Worker* worker;
  detail::NurseryBase* nursery;
};

// lay_out sets every field of a slot and its first frame.
inline void lay_out(FiberControl* control, const Identity& identity, const SpawnOptions& options,
                    const detail::Code& code, std::source_location where) noexcept {
  control->reset(&wake_fiber, identity.id);
  control->worker = identity.worker;
  control->id.store(identity.id, std::memory_order_relaxed);
  control->cancelled_id.store(0, std::memory_order_relaxed);
  control->wait_kind.store(WaitKind::nothing, std::memory_order_relaxed);
  control->join.store(FiberControl::kOpen, std::memory_order_relaxed);
  control->waiting = nullptr;
  control->code = &code;
  control->parent_id.store(identity.parent_id, std::memory_order_relaxed);
  control->mutexes_held = 0;
  control->name.store(options.name, std::memory_order_relaxed);
  control->where.store(where, std::memory_order_relaxed);
  control->nursery = identity.nursery;
  control->nurseries = nullptr;
  control->locals = nullptr;
  control->current_scope = identity.nursery != nullptr ? &identity.nursery->scope() : nullptr;
  control->ticket = identity.id;
  control->failure = nullptr;
  const std::size_t stack_bytes = nominal_stack_bytes(control->stack_class) * kStackInflation;
  control->sanitizer.fiber_stack(StackArena::low_end(control, stack_bytes), stack_bytes - sizeof(FiberControl));
  control->sp = port::make_context(detail::storage_of(control, code.bytes), &fiber_main, control);
  paint_stack(control);
}

// prepare_outside serves plain threads, which have no pool of their own. From its success until launch the run does not
// end.
detail::NewFiber prepare_outside(detail::NurseryBase* nursery, const SpawnOptions& options, const detail::Code& code,
                                 std::source_location where) noexcept {
  Scheduler* const isolated = Scheduler::isolated_here();
  if (isolated == nullptr && !door::enter_with_fiber()) return detail::NewFiber::failed(ErrorCode::unsupported);
  Scheduler* const scheduler = isolated != nullptr ? isolated : Scheduler::of_process();
  const auto refuse = [=](Error why) {
    if (isolated == nullptr) {
      door::brought();
      scheduler->wake_if_idle();
      door::leave();
    }
    return detail::NewFiber::failed(why);
  };
  if (!scheduler->takes_outsiders()) return refuse(ErrorCode::unsupported);
  const std::size_t stack_class = class_for(options.stack != 0 ? options.stack : scheduler->default_stack());
  if (stack_class >= kStackClassCount || code.bytes > nominal_stack_bytes(stack_class) / 2) {
    return refuse(ErrorCode::invalid);
  }
  Error error{};
  FiberControl* control = scheduler->stacks.arena(stack_class).acquire(error);
  if (control == nullptr) control = scheduler->reclaim_stack(stack_class, error);
  if (control == nullptr) return refuse(error);
  const std::uint64_t id = Scheduler::id_block();
  lay_out(control, {.id = id, .parent_id = 0, .worker = &scheduler->worker(0), .nursery = nursery}, options, code,
          where);
  trace_spawned(nullptr, control);
  return {control, id};
}

[[gnu::always_inline]] inline detail::NewFiber prepare_on(Worker* worker, detail::NurseryBase* nursery,
                                                          const SpawnOptions& options, const detail::Code& code,
                                                          std::source_location where) noexcept {
  Scheduler& scheduler = worker->scheduler();
  const std::size_t stack_class = class_for(options.stack != 0 ? options.stack : scheduler.default_stack());
  if (stack_class >= kStackClassCount || code.bytes > nominal_stack_bytes(stack_class) / 2) [[unlikely]] {
    return detail::NewFiber::failed(ErrorCode::invalid);
  }
  Error error{};
  FiberControl* control = worker->stacks().acquire(scheduler.stacks, stack_class, error);
  if (control == nullptr) [[unlikely]]
    control = scheduler.reclaim_stack(stack_class, error);
  if (control == nullptr) [[unlikely]]
    return detail::NewFiber::failed(error);
  const FiberControl* const parent = worker->acting();
  const std::uint64_t id = worker->next_id();
  bump(worker->counters.spawned);
  lay_out(control,
          {.id = id,
           .parent_id = parent != nullptr ? parent->id.load(std::memory_order_relaxed) : 0,
           .worker = worker,
           .nursery = nursery},
          options, code, where);
  trace_spawned(worker, control);
  return {control, id};
}

}  // namespace

namespace detail {

NewFiber prepare(CurrentNursery, const SpawnOptions& options, const Code& code, std::source_location where) noexcept {
  Worker* const worker = this_worker();
  const Scope* const scope =
      worker != nullptr && worker->acting() != nullptr ? worker->acting()->current_scope : current_scope();
  if (scope != nullptr && scope->nursery != nullptr && !options.detached) [[unlikely]]
    return prepare(GivenNursery{scope->nursery, true}, options, code, where);
  if (worker == nullptr) [[unlikely]]
    return prepare_outside(nullptr, options, code, where);
  return prepare_on(worker, nullptr, options, code, where);
}

NewFiber prepare(GivenNursery given, const SpawnOptions& options, const Code& code,
                 std::source_location where) noexcept {
  if (options.detached) return prepare(CurrentNursery{}, options, code, where);
  if (auto admitted = given.nursery->admit(given.wait); !admitted) return NewFiber::failed(admitted.error());
  // The wait may have moved the caller to another worker.
  Worker* const worker = this_worker();
  const NewFiber made = worker != nullptr ? prepare_on(worker, given.nursery, options, code, where)
                                          : prepare_outside(given.nursery, options, code, where);
  if (made.control != nullptr) {
    given.nursery->link(made.control);
  } else {
    given.nursery->dismiss();
  }
  return made;
}

void launch(FiberControl* control) noexcept {
  control->state.store(FiberControl::State::runnable, std::memory_order_relaxed);
  Worker* const worker = this_worker();
  if (worker == nullptr) [[unlikely]]
    return control->worker->scheduler().inject_new(control);
  Scheduler& scheduler = worker->scheduler();
  if (scheduler.migrate()) [[unlikely]]
    return scheduler.hand_to((worker->index() + 1) % scheduler.worker_count(), control);
  worker->push_new(control);
}

}  // namespace detail

}  // namespace coir
