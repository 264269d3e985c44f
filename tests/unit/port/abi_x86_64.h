// The registers that x86_64's ABI preserves, in the order of abi_x86_64.S. Part of context_abi.h, which includes it.

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
