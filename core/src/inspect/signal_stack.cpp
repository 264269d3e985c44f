#include "schedule/hooks.h"

#include <signal.h>

#include <new>

#include <coir/port/memory.h>

namespace coir {

namespace {

constexpr std::size_t kSignalStackBytes = 64 * 1024;

}  // namespace

// SignalStack is the signal stack of a thread; touched only when a report is written.
struct SignalStack {
  char room[kSignalStackBytes - sizeof(stack_t)];
  stack_t before;
};

// The thread's signal stack of before, if the program has one, is noted in the last bytes of the new one.
SignalStack* add_signal_stack() noexcept {
  void* const memory = port::reserve(sizeof(SignalStack));
  if (memory == nullptr) return nullptr;
  auto* const added = new (memory) SignalStack;
  stack_t stack{};
  stack.ss_sp = added->room;
  stack.ss_size = sizeof added->room;
  if (sigaltstack(&stack, &added->before) == 0) return added;
  port::release(memory, sizeof(SignalStack));
  return nullptr;
}

void remove_signal_stack(SignalStack* added) noexcept {
  if (added == nullptr) return;
  stack_t now{};
  sigaltstack(nullptr, &now);
  // If the program has set another one meanwhile, that one stays.
  if (now.ss_sp == added->room) sigaltstack(&added->before, nullptr);
  port::release(added, sizeof(SignalStack));
}

}  // namespace coir
