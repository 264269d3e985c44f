// The registers that aarch64's ABI preserves, in the order of abi_aarch64.S. Part of context_abi.h, which includes it.

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
