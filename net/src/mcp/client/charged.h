#pragma once

#include <coir/pressure.h>
#include <stdlib.h>

#include <new>
#include <utility>

#include "mcp/client/account.h"

namespace coir::mcp::detail {

// construct makes a T in memory of account::mcp; null where there is none. destroy gives it back; null is nothing.
template <class T, class... Arguments>
T* construct(Arguments&&... arguments) noexcept {
  if (!Pressure::charge(account::mcp, sizeof(T))) return nullptr;
  void* const memory = malloc(sizeof(T));
  if (memory == nullptr) {
    account::mcp.refund(sizeof(T));
    return nullptr;
  }
  return ::new (memory) T(std::forward<Arguments>(arguments)...);
}
template <class T>
void destroy(T* made) noexcept {
  if (made == nullptr) return;
  made->~T();
  free(made);
  account::mcp.refund(sizeof(T));
}

}  // namespace coir::mcp::detail
