// riscv64 (ABIs lp64d and lp64): the frame of a parked context, as switch.S and C++ both see it, and what else differs
// by CPU.

#ifndef COIR_PORT_ARCH_RISCV64_H
#define COIR_PORT_ARCH_RISCV64_H

#define COIR_FRAME_RA 0
#define COIR_FRAME_S0 8
#define COIR_FRAME_S1 16
#define COIR_FRAME_S2 24

#if defined(__riscv_float_abi_double)
#define COIR_FRAME_FS0 104
#define COIR_FRAME_FRM 200
#define COIR_FRAME_SIZE 208
#elif defined(__riscv_float_abi_soft)
#define COIR_FRAME_FRM 104
#define COIR_FRAME_SIZE 112
#else
#error "coir supports the riscv64 ABIs lp64d and lp64 only"
#endif

#ifndef __ASSEMBLER__

#include <cstddef>
#include <cstdint>

namespace coir::port {

struct ParkedFrame {
  std::uint64_t ra;
  std::uint64_t s[12];
#ifdef __riscv_float_abi_double
  std::uint64_t fs[12];
#endif
  std::uint64_t frm;  // unused where the CPU has no floating point
};

static_assert(offsetof(ParkedFrame, ra) == COIR_FRAME_RA);
static_assert(offsetof(ParkedFrame, s) == COIR_FRAME_S0);
#ifdef __riscv_float_abi_double
static_assert(offsetof(ParkedFrame, fs) == COIR_FRAME_FS0);
#endif
static_assert(offsetof(ParkedFrame, frm) == COIR_FRAME_FRM);
static_assert(sizeof(ParkedFrame) == COIR_FRAME_SIZE);

inline constexpr std::size_t kParkedPc = COIR_FRAME_RA;
inline constexpr std::size_t kParkedFramePointer = COIR_FRAME_S0;

// A function with a frame pointer keeps its caller's, and its return address, at these distances from its own, in bytes.
inline constexpr std::ptrdiff_t kRecordFramePointer = -16;
inline constexpr std::ptrdiff_t kRecordReturnAddress = -8;

// kPcBits are the bits of a return address that tell an address: all of them.
inline constexpr std::uintptr_t kPcBits = ~std::uintptr_t{0};

// coir_context_start takes the entry from s1 and the argument from s2.
inline void lay_first_frame(ParkedFrame& frame, void (*start)() noexcept, void (*entry)(void*, void*),
                            void* argument) noexcept {
  frame.ra = reinterpret_cast<std::uint64_t>(start);
  frame.s[0] = 0;
  frame.s[1] = reinterpret_cast<std::uint64_t>(entry);
  frame.s[2] = reinterpret_cast<std::uint64_t>(argument);
  frame.frm = 0;
}

// kStackGuardBytes is the size of the guard below each fiber's stack. A frame larger than it could step over it.
// Clang 19 cannot make large frames touch each of their pages, so guards are wider.
inline constexpr std::size_t kStackGuardBytes = 16384;

// The kernel's number of this CPU (AUDIT_ARCH_RISCV64), and the bit that marks system calls of another ABI of it (no
// bit tells them).
inline constexpr std::uint32_t kAuditArchitecture = 0xc00000f3;
inline constexpr std::uint32_t kForeignCallBit = 0;

// relax tells the CPU that the caller spins.
inline void relax() noexcept {
  asm volatile(".4byte 0x0100000f");  // pause: a hint that CPUs without Zihintpause take for a fence of nothing
}

}  // namespace coir::port

#endif  // __ASSEMBLER__
#endif  // COIR_PORT_ARCH_RISCV64_H
