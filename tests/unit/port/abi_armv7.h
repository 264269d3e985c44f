// The registers that armv7's ABI preserves, in the order of abi_armv7.S. Part of context_abi.h, which includes it.

constexpr Register narrow(const char* name, unsigned index) {
  return {name, pattern(index, 0), pattern(index, 1), 0xffffffff};
}

inline constexpr Register kRegisters[] = {
    narrow("r4", 0),
    narrow("r5", 1),
    narrow("r6", 2),
    narrow("r7", 3),
    narrow("r8", 4),
    narrow("r9", 5),
    narrow("r10", 6),
    narrow("r11", 7),
    plain("d8", 8),
    plain("d9", 9),
    plain("d10", 10),
    plain("d11", 11),
    plain("d12", 12),
    plain("d13", 13),
    plain("d14", 14),
    plain("d15", 15),
    // Rounding, flush-to-zero, default NaN, the alternative half-precision format.
    {"fpscr", 0x00c00000, 0x07400000, 0x07c00000},
};
