#pragma once

#include <expected>

#include <coir/cancel_scope.h>

namespace coir {

// ambient is the innermost scope of whoever calls, in place: a fiber's lies in its control block, a plain thread's is
// thread-local.
detail::Scope*& ambient() noexcept;

// cancelled_scope returns the outermost cancelled scope that reaches in, or null.
inline const detail::Scope* cancelled_scope(const detail::Scope* scope) noexcept {
  const detail::Scope* found = nullptr;
  for (; scope != nullptr; scope = scope->outer) {
    // seq_cst pairs with the mark in cancel: see begin_scoped_wait.
    if (scope->cancelled.load(std::memory_order_seq_cst)) found = scope;
    if (scope->shield) break;
  }
  return found;
}

// lower makes `deadline` the scope's if that is earlier, and returns whose it is then; 0 when it stays.
inline std::uint16_t lower(const detail::Scope* scope, Deadline& deadline) noexcept {
  if (scope == nullptr || scope->deadline >= deadline) return 0;
  deadline = scope->deadline;
  return scope->deadline_id;
}

inline Error error_by(ErrorCode code, std::uint16_t scope) noexcept {
  Error error(code);
  error.scope = scope;
  return error;
}

// begin_scoped_wait is what a wait of a plain thread does first: it lowers `deadline` to the one in force, and is false
// when a scope is cancelled.
bool begin_scoped_wait(Deadline& deadline) noexcept;

// scoped_error is the error of the calling thread's latest wait.
Error scoped_error(ErrorCode code) noexcept;

}  // namespace coir
