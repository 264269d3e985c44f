#include <coir/budget.h>
#include <coir/net/datagram.h>
#include <coir/wait.h>
#include <errno.h>

#include "datagram/local_end.h"
#include "socket/kernel.h"

namespace coir {

std::expected<Datagram, Error> DatagramSocket::receive_from(std::span<char> into, Deadline deadline) noexcept {
  spend_budget(kSystemCallCost);
  const detail::UsedDescriptor::Use use(socket_);
  if (!use) return std::unexpected(Error{ErrorCode::closed});
  sockaddr_storage name;
  alignas(cmsghdr) unsigned char control[kLocalEndSpace];
  iovec part = {into.data(), into.size()};
  for (;;) {
    msghdr message = {};
    message.msg_name = &name;
    message.msg_namelen = sizeof name;
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    // A Unix peer's descriptors would come in otherwise.
    message.msg_control = family_ == AF_UNIX ? nullptr : control;
    message.msg_controllen = family_ == AF_UNIX ? 0 : sizeof control;
    const ssize_t got = kernel::receive_message(use.fd(), message);
    // A socket that was shut down answers as if an empty datagram had come.
    if (use.ended()) return std::unexpected(Error{ErrorCode::closed});
    if (got >= 0) return datagram_of(message, static_cast<std::size_t>(got));
    if (got == -EINTR) continue;
    if (got != -EAGAIN) return std::unexpected(datagram_error(static_cast<int>(-got)));
    if (auto ready = wait(use.fd(), Direction::readable, deadline); !ready) return std::unexpected(ready.error());
  }
}

std::expected<void, Error> DatagramSocket::wait_for_room(int fd, bool connected, Deadline deadline) noexcept {
  // The kernel reports no readiness of an unconnected Unix socket: it does not know whose queue is meant.
  if (family_ == AF_UNIX && !connected) return std::unexpected(Error{ErrorCode::queue_full});
  return wait(fd, Direction::writable, deadline);
}

std::expected<void, Error> DatagramSocket::send_message(std::string_view bytes, const Address* to, const LocalEnd& from,
                                                        Deadline deadline) noexcept {
  spend_budget(kSystemCallCost);
  const detail::UsedDescriptor::Use use(socket_);
  if (!use) return std::unexpected(Error{ErrorCode::closed});
  alignas(cmsghdr) unsigned char control[kLocalEndSpace];
  iovec part = {const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message = {};
  if (to != nullptr) {
    message.msg_name = const_cast<sockaddr*>(to->get());
    message.msg_namelen = to->length();
  }
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  const std::size_t told = put_local_end(from, use.fd(), family_, to != nullptr ? to->get() : nullptr, control);
  message.msg_control = told != 0 ? control : nullptr;
  message.msg_controllen = static_cast<decltype(message.msg_controllen)>(told);
  for (;;) {
    const ssize_t sent = kernel::send_message(use.fd(), message);
    if (sent >= 0) return {};
    if (use.ended()) return std::unexpected(Error{ErrorCode::closed});
    if (sent == -EINTR) continue;
    if (sent != -EAGAIN) return std::unexpected(datagram_error(static_cast<int>(-sent)));
    if (auto room = wait_for_room(use.fd(), to == nullptr, deadline); !room) return room;
  }
}

std::expected<void, Error> DatagramSocket::send_to(std::string_view bytes, const Address& to, const LocalEnd& from,
                                                   Deadline deadline) noexcept {
  return send_message(bytes, &to, from, deadline);
}

std::expected<void, Error> DatagramSocket::send(std::string_view bytes, Deadline deadline) noexcept {
  return send_message(bytes, nullptr, LocalEnd(), deadline);
}

std::expected<void, Error> DatagramSocket::answer(std::string_view bytes, const Datagram& to,
                                                  Deadline deadline) noexcept {
  LocalEnd from = to.local;
  // The way back need not be the way in. A link-local address means nothing without its interface.
  const bool link_local = family_ == AF_INET6 && from.address[0] == 0xfe && (from.address[1] & 0xc0) == 0x80;
  if (!from.group && !link_local) from.interface = 0;
  return send_message(bytes, &to.peer, from, deadline);
}

}  // namespace coir
