#include "base/charged.h"

#include <coir/pressure.h>
#include <stdlib.h>

namespace coir {

void* take_charged(Account& account, std::size_t bytes, std::size_t beside) noexcept {
  if (!Pressure::charge(account, bytes + beside)) return nullptr;
  void* const memory = malloc(bytes);
  if (memory == nullptr) account.refund(bytes + beside);
  return memory;
}

void give_charged(Account& account, void* memory, std::size_t bytes_and_beside) noexcept {
  if (memory == nullptr) return;
  free(memory);
  account.refund(bytes_and_beside);
}

}  // namespace coir
