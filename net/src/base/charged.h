#pragma once

#include <coir/ledger.h>

#include <cstddef>
#include <new>
#include <utility>

// Memory with its account: what is charged, allocated, freed and refunded is one call.
namespace coir {

// take_charged returns `bytes` of memory and charges them, and `beside` bytes of somebody else's, as of the kernel's; where
// they do not fit, Pressure makes room first. Null: the ledger refuses, or there is no memory. give_charged frees
// and refunds all of it; null is nothing.
void* take_charged(Account& account, std::size_t bytes, std::size_t beside = 0) noexcept;
void give_charged(Account& account, void* memory, std::size_t bytes_and_beside) noexcept;

// construct_charged makes a T in such memory; null where there is none. destroy_charged ends it; null is nothing.
template <class T, class... Arguments>
[[nodiscard]] T* construct_charged(Account& account, Arguments&&... arguments) noexcept {
  void* const memory = take_charged(account, sizeof(T));
  return memory != nullptr ? ::new (memory) T(std::forward<Arguments>(arguments)...) : nullptr;
}
template <class T>
void destroy_charged(Account& account, T* made) noexcept {
  if (made == nullptr) return;
  made->~T();
  give_charged(account, made, sizeof(T));
}

}  // namespace coir
