#include <coir/worker_stack.h>

#include "schedule/switching.h"

namespace coir {

// While a fiber runs, the worker's loop is parked, and the stack below its stack pointer is free. During the call no
// fiber is current: to the code it calls, it is the worker's own code, which never parks. `acting` names the
// fiber whose scopes are in force there, and whose nursery owns what is spawned.
//
//   worker's stack   | loop ... | parked frame | call, nested calls ...
//                                loop_sp_ ^
struct Worker::OnOwnStack {
  void (*fn)(void*);
  void* argument;
  Worker* worker;
  FiberControl* fiber;

  // The sanitizer's view changes in the middle of this function, so it must not be instrumented.
  __attribute__((disable_sanitizer_instrumentation, noinline)) static void* enter(void* opaque) noexcept {
    auto* const call = static_cast<OnOwnStack*>(opaque);
    SanitizerContext::after_switch(call->worker->sanitizer_);
    call->fn(call->argument);
    SanitizerContext::before_switch(&call->worker->sanitizer_, call->fiber->sanitizer);
    return nullptr;
  }
};

void Worker::call_on_own_stack(void (*fn)(void*), void* argument) noexcept {
  OnOwnStack call{fn, argument, this, current_};
  current_ = nullptr;
  caller_ = call.fiber;
  SanitizerContext::before_switch(&call.fiber->sanitizer, sanitizer_);
  port::coir_call_on(loop_sp_, OnOwnStack::enter, &call);
  SanitizerContext::after_switch(call.fiber->sanitizer);
  caller_ = nullptr;
  current_ = call.fiber;
}

void detail::call_on_worker_stack(void (*fn)(void*), void* argument) noexcept {
  Worker* const worker = this_worker();
  if (worker == nullptr || worker->current() == nullptr) return fn(argument);
  check_canary(worker->current());
  worker->call_on_own_stack(fn, argument);
}

}  // namespace coir
