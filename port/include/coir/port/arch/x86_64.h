// x86_64 (System V ABI): the frame of a parked context, as switch.S and C++ both see it, and what else differs by CPU.

#ifndef COIR_PORT_ARCH_X86_64_H
#define COIR_PORT_ARCH_X86_64_H

#define COIR_FRAME_MXCSR 0
#define COIR_FRAME_X87 4
#define COIR_FRAME_R12 8
#define COIR_FRAME_R13 16
#define COIR_FRAME_R14 24
#define COIR_FRAME_R15 32
#define COIR_FRAME_RBX 40
#define COIR_FRAME_RBP 48
#define COIR_FRAME_RIP 56
#define COIR_FRAME_SIZE 64

#ifndef __ASSEMBLER__

#include <cstddef>
#include <cstdint>

namespace coir::port {

struct ParkedFrame {
  std::uint32_t mxcsr;
  std::uint16_t x87_control;
  std::uint16_t unused;
  std::uint64_t r12, r13, r14, r15, rbx, rbp;
  std::uint64_t rip;
};

static_assert(offsetof(ParkedFrame, mxcsr) == COIR_FRAME_MXCSR);
static_assert(offsetof(ParkedFrame, x87_control) == COIR_FRAME_X87);
static_assert(offsetof(ParkedFrame, r12) == COIR_FRAME_R12);
static_assert(offsetof(ParkedFrame, r13) == COIR_FRAME_R13);
static_assert(offsetof(ParkedFrame, r14) == COIR_FRAME_R14);
static_assert(offsetof(ParkedFrame, r15) == COIR_FRAME_R15);
static_assert(offsetof(ParkedFrame, rbx) == COIR_FRAME_RBX);
static_assert(offsetof(ParkedFrame, rbp) == COIR_FRAME_RBP);
static_assert(offsetof(ParkedFrame, rip) == COIR_FRAME_RIP);
static_assert(sizeof(ParkedFrame) == COIR_FRAME_SIZE);

inline constexpr std::size_t kParkedPc = COIR_FRAME_RIP;
inline constexpr std::size_t kParkedFramePointer = COIR_FRAME_RBP;

// A function with a frame pointer keeps its caller's, and its return address, at these distances from its own, in bytes.
inline constexpr std::ptrdiff_t kRecordFramePointer = 0;
inline constexpr std::ptrdiff_t kRecordReturnAddress = 8;

// kPcBits are the bits of a return address that tell an address: all of them.
inline constexpr std::uintptr_t kPcBits = ~std::uintptr_t{0};

// coir_context_start takes the entry from r12 and the argument from r13. The control words are the ABI's initial ones.
inline void lay_first_frame(ParkedFrame& frame, void (*start)() noexcept, void (*entry)(void*, void*),
                            void* argument) noexcept {
  frame.mxcsr = 0x1f80;
  frame.x87_control = 0x037f;
  frame.r12 = reinterpret_cast<std::uint64_t>(entry);
  frame.r13 = reinterpret_cast<std::uint64_t>(argument);
  frame.rbp = 0;
  frame.rip = reinterpret_cast<std::uint64_t>(start);
}

// kStackGuardBytes is the size of the guard below each fiber's stack. A frame larger than it could step over it.
// The compiler makes larger frames touch each of their pages.
inline constexpr std::size_t kStackGuardBytes = 4096;

// The kernel's number of this CPU (AUDIT_ARCH_X86_64), and the bit that marks system calls of another ABI of it (x32's
// calls have it).
inline constexpr std::uint32_t kAuditArchitecture = 0xc000003e;
inline constexpr std::uint32_t kForeignCallBit = 0x40000000;

// relax tells the CPU that the caller spins.
inline void relax() noexcept {
  __builtin_ia32_pause();
}

}  // namespace coir::port

#endif  // __ASSEMBLER__
#endif  // COIR_PORT_ARCH_X86_64_H
