#include "http/connection/half_head.h"

#include <coir/detail/accounts.h>
#include <string.h>

#include <new>

#include "base/charged.h"
#include "http/connection/connection.h"

namespace coir::http {

bool HalfHead::keep(Connection& connection, std::string_view text) noexcept {
  void* const memory = take_charged(account::buffers, sizeof(HalfHead) + text.size());
  if (memory == nullptr) return false;
  connection.half = ::new (memory) HalfHead{connection.since_ns, static_cast<std::uint32_t>(text.size())};
  memcpy(connection.half + 1, text.data(), text.size());
  connection.has_half_head = true;
  return true;
}

std::size_t HalfHead::take(Connection& connection, std::span<char> into) noexcept {
  if (!connection.has_half_head) return 0;
  const std::size_t bytes = connection.half->bytes;
  memcpy(into.data(), connection.half + 1, bytes);
  connection.since_ns = connection.half->began_ns;
  drop(connection);
  return bytes;
}

void HalfHead::drop(Connection& connection) noexcept {
  if (!connection.has_half_head) return;
  give_charged(account::buffers, connection.half, sizeof(HalfHead) + connection.half->bytes);
  connection.has_half_head = false;
  connection.transferred = 0;
}

}  // namespace coir::http
