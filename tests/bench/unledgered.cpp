// A ledger that grants everything and counts nothing, put in the place of the real one by the linker.
#include <coir/ledger.h>

extern "C" {
bool __wrap__ZN4coir7Account6chargeEm(coir::Account*, std::size_t) noexcept;
void __wrap__ZN4coir7Account6refundEm(coir::Account*, std::size_t) noexcept;

bool __wrap__ZN4coir7Account6chargeEm(coir::Account*, std::size_t) noexcept {
  return true;
}

void __wrap__ZN4coir7Account6refundEm(coir::Account*, std::size_t) noexcept {}
}
