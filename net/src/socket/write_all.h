#pragma once

#include <coir/deadline.h>
#include <coir/error.h>
#include <sys/uio.h>

#include <cstddef>
#include <expected>
#include <span>
#include <string_view>
#include <utility>

namespace coir {

// write_all implements `write` of every stream by its write_some.
template <class To>
std::expected<void, Error> write_all(To& to, std::string_view from, Deadline deadline) noexcept {
  while (!from.empty()) {
    const iovec part = {const_cast<char*>(from.data()), from.size()};
    const auto sent = to.write_some(std::span(&part, 1), deadline);
    if (!sent) return std::unexpected(sent.error());
    from.remove_prefix(*sent);
  }
  return {};
}

// take_sent takes `sent` bytes off the front of `parts`, and the parts behind them that are empty. The entries that it has
// passed have no length any more.
inline void take_sent(std::span<iovec>& parts, std::size_t sent) noexcept {
  while (!parts.empty() && sent >= parts.front().iov_len) {
    sent -= std::exchange(parts.front().iov_len, 0);
    parts = parts.subspan(1);
  }
  if (parts.empty()) return;
  parts.front().iov_base = static_cast<char*>(parts.front().iov_base) + sent;
  parts.front().iov_len -= sent;
}

}  // namespace coir
