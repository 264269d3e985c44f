// The ABI test for riscv64's lp64, for which no C library is built: exits with 0, or with 1 and the register's name.

#include "context_abi.h"

namespace {

long system_call(long number, long a, long b, long c) {
  register long a0 asm("a0") = a;
  register long a1 asm("a1") = b;
  register long a2 asm("a2") = c;
  register long a7 asm("a7") = number;
  asm volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a7) : "memory");
  return a0;
}

constexpr long kWrite = 64;
constexpr long kExitGroup = 94;

alignas(16) char stack[16 * 1024];
context_abi::Pair pair;

void expect_unchanged(const char* changed) {
  if (changed == nullptr) return;
  long length = 0;
  while (changed[length] != '\0') ++length;
  system_call(kWrite, 2, reinterpret_cast<long>(changed), length);
  system_call(kWrite, 2, reinterpret_cast<long>(" changed across a switch\n"), 25);
  system_call(kExitGroup, 1, 0, 0);
}

}  // namespace

extern "C" [[noreturn]] void _start() {
  context_abi::exchange(pair, stack + sizeof(stack));
  expect_unchanged(pair.here.changed());
  expect_unchanged(pair.there.changed());
  for (;;) system_call(kExitGroup, 0, 0, 0);
}
