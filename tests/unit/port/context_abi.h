// What the ABI test compares, without a test framework or a C library, so that it also runs where there is neither.

#pragma once

#include <coir/port/context.h>

#include <cstddef>
#include <cstdint>

namespace context_abi {

// Register is one that a call must preserve: two values to tell two contexts apart by, and the bits of it that count.
struct Register {
  const char* name;
  std::uint64_t here;
  std::uint64_t there;
  std::uint64_t mask = ~std::uint64_t{0};
};

// pattern differs in every byte from its neighbours' and from the other context's, so that a swap shows as well as a
// loss.
constexpr std::uint64_t pattern(unsigned index, unsigned context) {
  return 0x0101010101010101u * (index + 1) ^ (context ? 0xf0e1d2c3b4a59687u : 0x0f1e2d3c4b5a6978u);
}

constexpr Register plain(const char* name, unsigned index) {
  return {name, pattern(index, 0), pattern(index, 1)};
}

// The control words differ in rounding and in all else that may be set without trapping.
#if defined(__x86_64__)
inline constexpr Register kRegisters[] = {
    plain("rbx", 0),
    plain("rbp", 1),
    plain("r12", 2),
    plain("r13", 3),
    plain("r14", 4),
    plain("r15", 5),
    // Rounding, flush-to-zero, denormals-are-zero, exception masks; the low six bits are status.
    {"mxcsr", 0x7f80, 0xafc0, 0xffc0},
    {"x87 control word", 0x0f7f, 0x065f, 0x0f3f},
};
#elif defined(__aarch64__)
inline constexpr Register kRegisters[] = {
    plain("x19", 0),
    plain("x20", 1),
    plain("x21", 2),
    plain("x22", 3),
    plain("x23", 4),
    plain("x24", 5),
    plain("x25", 6),
    plain("x26", 7),
    plain("x27", 8),
    plain("x28", 9),
    plain("x29", 10),
    plain("d8", 11),
    plain("d9", 12),
    plain("d10", 13),
    plain("d11", 14),
    plain("d12", 15),
    plain("d13", 16),
    plain("d14", 17),
    plain("d15", 18),
    // Rounding, flush-to-zero, default NaN.
    {"fpcr", 0x00c00000, 0x03400000, 0x03c00000},
};
#elif defined(__riscv)
inline constexpr Register kRegisters[] = {
    plain("s0", 0),   plain("s1", 1),   plain("s2", 2),   plain("s3", 3),   plain("s4", 4),    plain("s5", 5),
    plain("s6", 6),   plain("s7", 7),   plain("s8", 8),   plain("s9", 9),   plain("s10", 10),  plain("s11", 11),
#ifdef __riscv_flen
    {"frm", 1, 3},
#else
    {"frm", 0, 0},
#endif
#ifdef __riscv_float_abi_double
    plain("fs0", 12), plain("fs1", 13), plain("fs2", 14), plain("fs3", 15), plain("fs4", 16),  plain("fs5", 17),
    plain("fs6", 18), plain("fs7", 19), plain("fs8", 20), plain("fs9", 21), plain("fs10", 22), plain("fs11", 23),
#endif
};
#endif

inline constexpr std::size_t kCount = sizeof(kRegisters) / sizeof(kRegisters[0]);

// Written in abi_<cpu>.S.
extern "C" void abi_probe(void** save_sp, void* next_sp, const std::uint64_t* fill, std::uint64_t* seen);

// Side is one context's view: what it put into the registers, and what it found in them when it was switched back to.
struct Side {
  std::uint64_t fill[kCount] = {};
  std::uint64_t seen[kCount] = {};

  // changed returns the name of the first register that came back different, or nullptr.
  [[nodiscard]] const char* changed() const {
    for (std::size_t i = 0; i < kCount; ++i) {
      if (((fill[i] ^ seen[i]) & kRegisters[i].mask) != 0) return kRegisters[i].name;
    }
    return nullptr;
  }
};

struct Pair {
  Side here, there;
  void* here_context = nullptr;
  void* there_context = nullptr;
};

inline void there_entry(void*, void* argument) {
  auto& pair = *static_cast<Pair*>(argument);
  for (;;) abi_probe(&pair.there_context, pair.here_context, pair.there.fill, pair.there.seen);
}

// exchange has two contexts fill every register with values of their own, switch to each other twice, and look. In the
// second round both are contexts that have been parked before.
inline void exchange(Pair& pair, void* stack_top) {
  for (std::size_t i = 0; i < kCount; ++i) {
    pair.here.fill[i] = kRegisters[i].here;
    pair.there.fill[i] = kRegisters[i].there;
  }
  pair.there_context = coir::port::make_context(stack_top, there_entry, &pair);
  abi_probe(&pair.here_context, pair.there_context, pair.here.fill, pair.here.seen);
  abi_probe(&pair.here_context, pair.there_context, pair.here.fill, pair.here.seen);
}

}  // namespace context_abi
