#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string_view>

namespace coir::test {

// receive_head reads from a blocking socket up to the empty line that ends a head, and no byte behind it. It returns the size,
// at most that of `into`; 0 if the connection has ended before, or -1 with errno.
inline ssize_t receive_head(int fd, std::span<char> into) noexcept {
  constexpr std::string_view kEnd = "\r\n\r\n";
  std::size_t have = 0;
  while (have < into.size()) {
    // To look first, and to take what is the head's, is two system calls instead of one for each byte.
    const ssize_t seen = ::recv(fd, into.data() + have, into.size() - have, MSG_PEEK);
    if (seen <= 0) return seen;
    const std::size_t from = have < kEnd.size() ? 0 : have - (kEnd.size() - 1);
    const std::size_t known = have + static_cast<std::size_t>(seen);
    const std::size_t end = std::string_view(into.data(), known).find(kEnd, from);
    const std::size_t upto = end == std::string_view::npos ? known : end + kEnd.size();
    const ssize_t got = ::recv(fd, into.data() + have, upto - have, 0);
    if (got <= 0) return got;
    have += static_cast<std::size_t>(got);
    if (have == upto && end != std::string_view::npos) break;
  }
  return static_cast<ssize_t>(have);
}

}  // namespace coir::test
