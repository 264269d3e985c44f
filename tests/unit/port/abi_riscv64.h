// The registers that riscv64's ABI preserves, in the order of abi_riscv64.S. Part of context_abi.h, which includes it.

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
