#include "wait/current_scope.h"
#include "wait/owner.h"

namespace coir {

namespace {

constinit detail::Scope* g_ambient = nullptr;
constinit std::uint16_t g_late = 0;

}  // namespace

detail::Scope*& current_scope() noexcept {
  return g_ambient;
}

bool begin_scoped_wait(Deadline& deadline, Shielded shielded) noexcept {
  const detail::Scope* const scope = shielded == Shielded::yes ? nullptr : g_ambient;
  g_late = lower(scope, deadline);
  return cancelled_scope(scope) == nullptr;
}

Error scoped_error(ErrorCode code) noexcept {
  if (code == ErrorCode::timed_out) return error_by(code, g_ambient == nullptr ? std::uint16_t{0} : g_late);
  const detail::Scope* const by = cancelled_scope(g_ambient);
  return error_by(code, by == nullptr ? std::uint16_t{0} : by->id);
}

bool cancelled() noexcept {
  return cancelled_scope(g_ambient) != nullptr;
}

std::expected<void, Error> check_cancelled() noexcept {
  Error error;
  if (g_ambient != nullptr && detail::ended(*g_ambient, error)) return std::unexpected(error);
  return {};
}

const char* cancel_reason() noexcept {
  const detail::Scope* const by = cancelled_scope(g_ambient);
  return by == nullptr ? nullptr : by->reason.load(std::memory_order_relaxed);
}

namespace detail {

void own(Scope&) noexcept {}
void mark_and_wake(Scope& scope, const char* reason) noexcept {
  mark(scope, reason);
}
void raise_shield(const std::source_location&) noexcept {}
void lower_shield() noexcept {}

}  // namespace detail

}  // namespace coir
