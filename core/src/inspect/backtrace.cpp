#include "inspect/backtrace.h"

#include <algorithm>

#include <coir/config.h>
#include <coir/port/cpu.h>

#include "base/line.h"
#include "inspect/program_header.h"
#if !COIR_NO_ASYNC
#include <coir/port/context.h>
#include <coir/stack_size.h>

#include "fiber/control.h"
#endif

namespace coir {

namespace {

// Races by intent: the values read are checked afterwards. The sanitizers must not look.
[[gnu::noinline, clang::disable_sanitizer_instrumentation]] std::uintptr_t word_at(std::uintptr_t address) noexcept {
  return __atomic_load_n(reinterpret_cast<const std::uintptr_t*>(address), __ATOMIC_RELAXED);
}

#if COIR_NO_ASYNC
bool is_outermost(std::uintptr_t) noexcept {
  return false;
}
#else
// is_outermost tells a return address in coir_context_start.
bool is_outermost(std::uintptr_t pc) noexcept {
  return pc - (reinterpret_cast<std::uintptr_t>(&port::coir_context_arrive) & port::kPcBits) < 32;
}
#endif

// walk appends the return addresses from the frame that `frame` points to. True: it reached the outermost.
bool walk(const StackBounds& stack, std::uintptr_t frame, Backtrace& trace) noexcept {
  std::uintptr_t before = 0;
  while (trace.count < Backtrace::kMost) {
    const std::uintptr_t record = frame + static_cast<std::uintptr_t>(port::kRecordFramePointer);
    if (record <= before || !stack.holds(record, 2 * sizeof(std::uintptr_t))) return false;
    const std::uintptr_t pc = word_at(record + sizeof(std::uintptr_t)) & port::kPcBits;
    if (is_outermost(pc)) return true;
    trace.pc[trace.count++] = pc;
    before = record;
    frame = word_at(record);
  }
  return true;
}
static_assert(port::kRecordReturnAddress - port::kRecordFramePointer == sizeof(std::uintptr_t));

// link_address is the address in the program's file of the code at `address`: a position-independent program counts
// from its start.
std::uintptr_t link_address(std::uintptr_t address) noexcept {
  return __ehdr_start.e_type == ET_DYN ? address - reinterpret_cast<std::uintptr_t>(&__ehdr_start) : address;
}

}  // namespace

void Backtrace::of_thread(const StackBounds& stack, const port::Interrupted& at) noexcept {
  pc[0] = at.pc + 1;  // as if it were a return address
  count = 1;
  complete = walk(stack, at.frame_pointer, *this);
}

std::span<const std::uintptr_t> Backtrace::link_addresses() noexcept {
  for (std::size_t i = 0; i < count; ++i) pc[i] = link_address(pc[i] - 1);
  return {pc, count};
}

void Backtrace::write(int fd) const noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    Line line;
    line.text("coir:     ").address(link_address(pc[i] - 1)).text("\n").send(fd);
  }
}

#if !COIR_NO_ASYNC
namespace {

[[gnu::noinline, clang::disable_sanitizer_instrumentation]] std::uint8_t class_of(const FiberControl& fiber) noexcept {
  const std::uint8_t stack_class = __atomic_load_n(&fiber.stack_class, __ATOMIC_RELAXED);
  return stack_class < kStackClassCount ? stack_class : 0;
}

bool walk_saved(const StackBounds& stack, const FiberControl& fiber, Backtrace& trace) noexcept {
  trace.count = 0;
  const std::uintptr_t sp = word_at(reinterpret_cast<std::uintptr_t>(&fiber.sp));
  if (!stack.holds(sp, sizeof(port::ParkedFrame))) return false;
  trace.pc[trace.count++] = word_at(sp + port::kParkedPc) & port::kPcBits;
  if (is_outermost(trace.pc[0])) return true;  // it never ran
  return walk(stack, word_at(sp + port::kParkedFramePointer), trace);
}

bool same(const Backtrace& a, const Backtrace& b) noexcept {
  if (a.count != b.count) return false;
  for (std::size_t i = 0; i < a.count; ++i) {
    if (a.pc[i] != b.pc[i]) return false;
  }
  return true;
}

}  // namespace

StackBounds Backtrace::stack_of(const FiberControl& fiber) noexcept {
  const auto high = reinterpret_cast<std::uintptr_t>(&fiber);
  return {high + sizeof(FiberControl) - nominal_stack_bytes(class_of(fiber)) * kStackInflation, high};
}

bool Backtrace::of_parked(const FiberControl& fiber) noexcept {
  const StackBounds stack = stack_of(fiber);
  const std::uint64_t id = fiber.id.load(std::memory_order_acquire);
  for (int attempt = 0; attempt < 3; ++attempt) {
    Backtrace again;
    complete = walk_saved(stack, fiber, *this) && walk_saved(stack, fiber, again) && same(*this, again);
    if (complete && fiber.id.load(std::memory_order_acquire) == id) return true;
  }
  complete = false;
  return false;
}

void Backtrace::of_caller(const FiberControl& fiber) noexcept {
  count = 0;
  complete = walk(stack_of(fiber), reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)), *this);
}

void Backtrace::of_interrupted(const FiberControl& fiber, const port::Interrupted& at) noexcept {
  const StackBounds stack = stack_of(fiber);
  pc[0] = at.pc + 1;  // as if it were a return address
  count = 1;
  complete = walk(stack, at.frame_pointer, *this);
  // Only the right frame leads to the outermost one, so that the first that does is taken.
  // At an overflow it lies below the stack.
  for (std::uintptr_t record = std::max(at.stack_pointer, stack.low);
       !complete && stack.holds(record, 2 * sizeof(std::uintptr_t)); record += sizeof(std::uintptr_t)) {
    count = 1;
    complete = walk(stack, record - static_cast<std::uintptr_t>(port::kRecordFramePointer), *this);
  }
  if (!complete) count = 1;
}

#endif

}  // namespace coir
