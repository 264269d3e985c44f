// A context is a stack and the callee-saved registers of the code parked on it; one pointer, its stack pointer, names
// it.
//
//   alignas(16) static char stack[16384];
//   void* main_context;                                                    // where the caller waits meanwhile
//   void* other = make_context(stack + sizeof stack, [](void* question, void*) { show(question); }, nullptr);
//   void* answer = coir_switch(&main_context, other, buffer);              // the body runs until it switches back
//   show(answer);
//
// State that belongs to a context and is kept across a switch: the callee-saved registers of the CPU's C calling
// convention, the stack pointer, and the floating-point control word (rounding mode, flush-to-zero, trap masks), so
// that fesetround() in one context is not felt in another. State of the thread: thread-local storage, errno, the signal
// mask. State of nobody: all other registers and the floating-point status flags, as with any function call.
//
// port/arch/README.md pictures the frames and says how to walk a parked context with a debugger.

#pragma once

#include <coir/port/needs_fibers.h>

#include <cstddef>
#include <cstdint>
#include <new>

#include <coir/port/cpu.h>

namespace coir::port {

// ContextEntry is the function a context begins with. `message` is what the first switch to it carried. It never
// returns: a context ends by switching away for good, and an entry that does return is stopped by a trapping
// instruction.
using ContextEntry = void (*)(void* message, void* argument);

extern "C" {

// coir_switch parks the running context, leaves its stack pointer in *save_sp, and takes up the one parked at next_sp.
// Returns, once something switches back, the message that switch carried. The context taken up sees `message` in turn.
//
// *save_sp is written before anything of the other context runs, so that whatever publishes it must run on the far
// side. Not for signal handlers. Costs what the README tells; least where all contexts park by the same call of
// coir_switch, for the processor then predicts the return (a noinline function around the only call is the way).
[[gnu::visibility("hidden")]] void* coir_switch(void** save_sp, void* next_sp, void* message) noexcept;

// coir_call_on calls fn(argument) on the stack below stack_top and returns what it returns. The caller waits on its own
// stack; debuggers walk across both. fn must not switch away, and no two calls may use one stack at a time: a nested
// call needs a stack of its own, or none.
[[gnu::visibility("hidden")]] void* coir_call_on(void* stack_top, void* (*fn)(void*), void* argument) noexcept;

// coir_context_arrive is where the first switch to a new context arrives. It lies in coir_context_start, which calls
// the entry and is the outermost frame in every backtrace of a context. Never called from C++.
[[gnu::visibility("hidden")]] void coir_context_arrive() noexcept;

}  // extern "C"

// kStackAlignment is what the ABI demands of a stack pointer at a call, on every CPU here.
inline constexpr std::size_t kStackAlignment = 16;

// make_context lays the first frame below stack_top (rounded down to 16 bytes) and returns the context: the first
// switch to it calls entry(message, argument) with a rounding mode of nearest and every floating-point trap masked. It
// writes sizeof(ParkedFrame) bytes at most and allocates nothing; the stack remains the caller's.
[[nodiscard]] inline void* make_context(void* stack_top, ContextEntry entry, void* argument) noexcept {
  std::uintptr_t const top = reinterpret_cast<std::uintptr_t>(stack_top) & ~(kStackAlignment - 1);
  auto* const frame = ::new (reinterpret_cast<void*>(top - sizeof(ParkedFrame))) ParkedFrame;
  lay_first_frame(*frame, coir_context_arrive, entry, argument);
  return frame;
}

// ParkedView is what a backtrace of a parked context begins with.
struct ParkedView {
  std::uintptr_t pc;             // where it goes on: inside the caller of coir_switch, or coir_context_arrive
  std::uintptr_t frame_pointer;  // of that caller; 0 in a context that never ran
  std::uintptr_t stack_pointer;  // as it will be there
};

// view_parked reads the frame of a context that is parked and stays so meanwhile.
[[nodiscard]] inline ParkedView view_parked(const void* context) noexcept {
  auto const* const bytes = static_cast<const char*>(context);
  return {
      .pc = *reinterpret_cast<const std::uintptr_t*>(bytes + kParkedPc) & kPcBits,
      .frame_pointer = *reinterpret_cast<const std::uintptr_t*>(bytes + kParkedFramePointer),
      .stack_pointer = reinterpret_cast<std::uintptr_t>(bytes) + sizeof(ParkedFrame),
  };
}

static_assert(sizeof(ParkedFrame) % kStackAlignment == 0);

// shadow_stack_active tells whether the calling thread keeps a second, protected stack of return addresses (x86 SHSTK,
// RISC-V Zicfiss, Arm GCS). A switch of stacks is an attack to it, so the runtime refuses to start where this is true.
// Each CPU's folder has it in shadow_stack.cpp.
[[nodiscard]] bool shadow_stack_active() noexcept;

}  // namespace coir::port
