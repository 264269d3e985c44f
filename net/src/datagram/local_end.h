#pragma once

#include <coir/net/datagram.h>

// A datagram's local end as the kernel tells and takes it: control data, IP_PKTINFO or IPV6_PKTINFO.
namespace coir {

using detail::kLocalEndSpace;

// local_end reads what a message that was received tells; all zero where it tells nothing.
LocalEnd local_end(const msghdr& message) noexcept;

// put_local_end writes control data for what a socket of `family` sends to `to`, and returns its length, 0 if `from` names
// nothing. `control` has kLocalEndSpace bytes and is aligned as cmsghdr. Costs a system call for an interface alone.
std::size_t put_local_end(const LocalEnd& from, int fd, int family, const sockaddr* to,
                          unsigned char* control) noexcept;

// datagram_of is what a message tells that was received whole or in part; `size` is the whole datagram's.
Datagram datagram_of(const msghdr& message, std::size_t size) noexcept;

// datagram_error is what the caller is told of a send or a receive that failed by `number`.
Error datagram_error(int number) noexcept;

}  // namespace coir
