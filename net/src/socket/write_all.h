#pragma once

#include <coir/deadline.h>
#include <coir/error.h>
#include <sys/uio.h>

#include <expected>
#include <span>
#include <string_view>

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

}  // namespace coir
