// aarch64 (AAPCS64): the frame of a parked context, as switch.S and C++ both see it, and what else differs by CPU.

#ifndef COIR_PORT_ARCH_AARCH64_H
#define COIR_PORT_ARCH_AARCH64_H

#define COIR_FRAME_X29 0
#define COIR_FRAME_X30 8
#define COIR_FRAME_X19 16
#define COIR_FRAME_X20 24
#define COIR_FRAME_X21 32
#define COIR_FRAME_X23 48
#define COIR_FRAME_X25 64
#define COIR_FRAME_X27 80
#define COIR_FRAME_D8 96
#define COIR_FRAME_D10 112
#define COIR_FRAME_D12 128
#define COIR_FRAME_D14 144
#define COIR_FRAME_FPCR 160
#define COIR_FRAME_SIZE 176

#ifndef __ASSEMBLER__

#include <cstddef>
#include <cstdint>

namespace coir::port {

struct ParkedFrame {
  std::uint64_t x29, x30;
  std::uint64_t x19, x20, x21, x22, x23, x24, x25, x26, x27, x28;
  std::uint64_t d8, d9, d10, d11, d12, d13, d14, d15;
  std::uint64_t fpcr;
  std::uint64_t unused;
};

static_assert(offsetof(ParkedFrame, x29) == COIR_FRAME_X29);
static_assert(offsetof(ParkedFrame, x30) == COIR_FRAME_X30);
static_assert(offsetof(ParkedFrame, x19) == COIR_FRAME_X19);
static_assert(offsetof(ParkedFrame, x20) == COIR_FRAME_X20);
static_assert(offsetof(ParkedFrame, x21) == COIR_FRAME_X21);
static_assert(offsetof(ParkedFrame, x23) == COIR_FRAME_X23);
static_assert(offsetof(ParkedFrame, x25) == COIR_FRAME_X25);
static_assert(offsetof(ParkedFrame, x27) == COIR_FRAME_X27);
static_assert(offsetof(ParkedFrame, d8) == COIR_FRAME_D8);
static_assert(offsetof(ParkedFrame, d10) == COIR_FRAME_D10);
static_assert(offsetof(ParkedFrame, d12) == COIR_FRAME_D12);
static_assert(offsetof(ParkedFrame, d14) == COIR_FRAME_D14);
static_assert(offsetof(ParkedFrame, fpcr) == COIR_FRAME_FPCR);
static_assert(sizeof(ParkedFrame) == COIR_FRAME_SIZE);

inline constexpr std::size_t kParkedPc = COIR_FRAME_X30;
inline constexpr std::size_t kParkedFramePointer = COIR_FRAME_X29;

// A function with a frame pointer keeps its caller's, and its return address, at these distances from its own, in bytes.
inline constexpr std::ptrdiff_t kRecordFramePointer = 0;
inline constexpr std::ptrdiff_t kRecordReturnAddress = 8;

// kPcBits are the bits of a return address that tell an address: all of them.
inline constexpr std::uintptr_t kPcBits = ~std::uintptr_t{0};

// coir_context_start takes the entry from x19 and the argument from x20.
inline void lay_first_frame(ParkedFrame& frame, void (*start)() noexcept, void (*entry)(void*, void*),
                            void* argument) noexcept {
  frame.x29 = 0;
  frame.x30 = reinterpret_cast<std::uint64_t>(start);
  frame.x19 = reinterpret_cast<std::uint64_t>(entry);
  frame.x20 = reinterpret_cast<std::uint64_t>(argument);
  frame.fpcr = 0;
}

// kStackGuardBytes is the size of the guard below each fiber's stack. A frame larger than it could step over it.
// The compiler makes larger frames touch each of their pages.
inline constexpr std::size_t kStackGuardBytes = 4096;

// The kernel's number of this CPU (AUDIT_ARCH_AARCH64), and the bit that marks system calls of another ABI of it (no
// bit tells them).
inline constexpr std::uint32_t kAuditArchitecture = 0xc00000b7;
inline constexpr std::uint32_t kForeignCallBit = 0;

// relax tells the CPU that the caller spins.
inline void relax() noexcept {
  asm volatile("yield");
}

}  // namespace coir::port

#endif  // __ASSEMBLER__
#endif  // COIR_PORT_ARCH_AARCH64_H
