// The values that the ABI test compares, without a test framework or a C library, so that it also runs without both.

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
#include COIR_ABI_REGISTERS  // abi_<cpu>.h

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
