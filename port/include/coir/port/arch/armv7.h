// armv7 (AAPCS with doubles in registers, ARM or Thumb state): the frame of a parked context, as switch.S and C++ both see
// it, and what else differs by CPU.

#ifndef COIR_PORT_ARCH_ARMV7_H
#define COIR_PORT_ARCH_ARMV7_H

#if !defined(__ARM_PCS_VFP) || !defined(__ARMEL__)
#error "coir supports little-endian armv7 with -mfloat-abi=hard only"
#endif

#define COIR_FRAME_R4 0
#define COIR_FRAME_LR 32
#define COIR_FRAME_FPSCR 36
#define COIR_FRAME_D8 40
#define COIR_FRAME_SIZE 112

#ifndef __ASSEMBLER__

#include <cstddef>
#include <cstdint>

namespace coir::port {

struct ParkedFrame {
  std::uint32_t r[8];  // r4 .. r11
  std::uint32_t lr;
  std::uint32_t fpscr;  // its control bits
  std::uint64_t d[8];   // d8 .. d15
  std::uint32_t unused[2];
};

static_assert(offsetof(ParkedFrame, r) == COIR_FRAME_R4);
static_assert(offsetof(ParkedFrame, lr) == COIR_FRAME_LR);
static_assert(offsetof(ParkedFrame, fpscr) == COIR_FRAME_FPSCR);
static_assert(offsetof(ParkedFrame, d) == COIR_FRAME_D8);
static_assert(sizeof(ParkedFrame) == COIR_FRAME_SIZE);

// The compiler's frame pointer is r7 in Thumb state and r11 in ARM state. A walk follows that of this build.
#ifdef __thumb__
inline constexpr std::size_t kFramePointerRegister = 7;
#else
inline constexpr std::size_t kFramePointerRegister = 11;
#endif

inline constexpr std::size_t kParkedPc = COIR_FRAME_LR;
inline constexpr std::size_t kParkedFramePointer = COIR_FRAME_R4 + 4 * (kFramePointerRegister - 4);

// A function with a frame pointer keeps its caller's, and its return address, at these distances from its own, in bytes.
inline constexpr std::ptrdiff_t kRecordFramePointer = 0;
inline constexpr std::ptrdiff_t kRecordReturnAddress = 4;

// kPcBits are the bits of a return address that tell an address: bit 0 tells the caller's state, 1 for Thumb.
inline constexpr std::uintptr_t kPcBits = ~std::uintptr_t{1};

// coir_context_start takes the entry from r4 and the argument from r5. The address of a function tells its state.
inline void lay_first_frame(ParkedFrame& frame, void (*start)() noexcept, void (*entry)(void*, void*),
                            void* argument) noexcept {
  frame.r[0] = reinterpret_cast<std::uint32_t>(entry);
  frame.r[1] = reinterpret_cast<std::uint32_t>(argument);
  frame.r[7 - 4] = 0;
  frame.r[11 - 4] = 0;
  frame.lr = reinterpret_cast<std::uint32_t>(start);
  frame.fpscr = 0;
}

// kStackGuardBytes is the size of the guard below each fiber's stack. A frame larger than it could step over it.
// Clang 19 cannot make large frames touch each of their pages, so guards are wider.
inline constexpr std::size_t kStackGuardBytes = 16384;

// The kernel's number of this CPU (AUDIT_ARCH_ARM), and the bit that marks system calls of another ABI of it (none: a
// kernel that takes calls of the old ABI filters none).
inline constexpr std::uint32_t kAuditArchitecture = 0x40000028;
inline constexpr std::uint32_t kForeignCallBit = 0;

// relax tells the CPU that the caller spins.
inline void relax() noexcept {
  asm volatile("yield");
}

}  // namespace coir::port

#endif  // __ASSEMBLER__
#endif  // COIR_PORT_ARCH_ARMV7_H
