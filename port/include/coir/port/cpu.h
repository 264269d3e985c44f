// The header of the CPU that this is compiled for: port/include/coir/port/arch/<cpu>.h.
//
//   COIR_RARELY void grow(int* table);       // a hot path that calls it keeps its registers

#pragma once

#if defined(__riscv) && __riscv_xlen == 64
#include <coir/port/arch/riscv64.h>
#elif defined(__x86_64__)
#include <coir/port/arch/x86_64.h>
#elif defined(__aarch64__)
#include <coir/port/arch/aarch64.h>
#elif defined(__arm__) && __ARM_ARCH == 7
#include <coir/port/arch/armv7.h>
#else
#error "coir does not know this CPU: see port/arch/README.md"
#endif

// COIR_RARELY marks a function that a hot path calls in rare cases: where the CPU's calling conventions allow it, the
// function saves the registers that it changes, and its callers keep theirs without a frame.
#if defined(__x86_64__) || defined(__aarch64__)
#define COIR_RARELY [[clang::preserve_most]]
#else
#define COIR_RARELY
#endif
