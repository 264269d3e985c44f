// Contexts for a debugger to look at: one parked three calls deep, one that never ran, one that is on the large stack,
// and two that park by the same call but round differently; then a fiber that is on its worker's stack. walk.py stops
// at the functions whose names begin with stop_.

#include <coir/port/context.h>
#include <coir/runtime.h>
#include <coir/worker_stack.h>

#include <cfenv>

namespace {

using coir::port::coir_call_on;
using coir::port::coir_switch;
using coir::port::make_context;

// The large stack lies above the contexts', as a worker's does: a debugger then meets a caller below its callee.
struct {
  alignas(16) char parked[16 * 1024];
  alignas(16) char fresh[16 * 1024];
  alignas(16) char twins[2][16 * 1024];
  alignas(16) char large[16 * 1024];
} stacks;

// Written after each call, so that none of them is a tail call.
volatile int depth;

}  // namespace

// Read by name from the debugger.
extern "C" {
void* main_context;
void* parked_context;
void* fresh_context;
void* twin_contexts[2];
}

extern "C" [[gnu::noinline]] void innermost() {
  coir_switch(&parked_context, main_context, nullptr);
  depth = 3;
}

extern "C" [[gnu::noinline]] void middle() {
  innermost();
  depth = 2;
}

extern "C" [[gnu::noinline]] void stop_on_large_stack() {
  depth = 4;
}

extern "C" void* on_large_stack(void*) {
  stop_on_large_stack();
  depth = 5;
  return nullptr;
}

extern "C" [[gnu::noinline]] void outermost() {
  middle();
  depth = 1;
  coir_call_on(stacks.large + sizeof(stacks.large), on_large_stack, nullptr);
  depth = 1;
}

extern "C" void parked_entry(void*, void*) {
  outermost();
  for (;;) coir_switch(&parked_context, main_context, nullptr);
}

extern "C" void fresh_entry(void*, void*) {
  for (;;) coir_switch(&fresh_context, main_context, nullptr);
}

extern "C" [[gnu::noinline]] void stop_twins_differ() {
  depth = 6;
}

extern "C" [[gnu::noinline]] void change_twins(int from) {
  coir_switch(&twin_contexts[from], twin_contexts[1 - from], nullptr);
  depth = 7;
}

extern "C" void first_twin(void*, void*) {
  change_twins(0);
  for (;;) coir_switch(&twin_contexts[0], main_context, nullptr);
}

extern "C" void second_twin(void*, void*) {
  std::fesetround(FE_UPWARD);
  stop_twins_differ();
  for (;;) change_twins(1);
}

extern "C" [[gnu::noinline]] void stop_all_parked() {
  depth = 0;
}

extern "C" [[gnu::noinline]] void resume(void* context) {
  coir_switch(&main_context, context, nullptr);
  depth = 0;
}

extern "C" [[gnu::noinline]] void stop_on_worker_stack() {
  depth = 8;
}

extern "C" [[gnu::noinline]] void leaves_its_stack() {
  coir::on_worker_stack([] {
    stop_on_worker_stack();
    depth = 9;
  });
  depth = 10;
}

extern "C" [[gnu::noinline]] void in_a_fiber() {
  leaves_its_stack();
  depth = 11;
}

int main() {
  parked_context = make_context(stacks.parked + sizeof(stacks.parked), parked_entry, nullptr);
  fresh_context = make_context(stacks.fresh + sizeof(stacks.fresh), fresh_entry, nullptr);
  resume(parked_context);
  stop_all_parked();
  resume(fresh_context);

  twin_contexts[0] = make_context(stacks.twins[0] + sizeof(stacks.twins[0]), first_twin, nullptr);
  twin_contexts[1] = make_context(stacks.twins[1] + sizeof(stacks.twins[1]), second_twin, nullptr);
  resume(twin_contexts[0]);

  resume(parked_context);
  return coir::run_until_idle({.workers = 1}, [] { in_a_fiber(); }) ? 0 : 1;
}
