#include "socket/kernel.h"

#include <coir/port/spinning.h>
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bit>

namespace coir::kernel {
namespace {

template <class T>
T negative_errno(T result) noexcept {
  return result < 0 ? static_cast<T>(-errno) : result;
}

}  // namespace

[[gnu::noinline]] Error connection_error(int number) noexcept {
  return number == ETIMEDOUT ? Error{ErrorCode::closed, number} : Error::from_errno(number);
}

ssize_t receive(int fd, void* into, std::size_t size) noexcept {
  port::expect_no_spinlock("recv");
  return negative_errno(::recv(fd, into, size, 0));
}

[[gnu::noinline]] ssize_t receive_parts(int fd, const iovec* parts, std::size_t count) noexcept {
  return negative_errno(::readv(fd, parts, static_cast<int>(count)));
}

[[gnu::noinline]] ssize_t send(int fd, const void* from, std::size_t size, int flags) noexcept {
  port::expect_no_spinlock("send");
  return negative_errno(::send(fd, from, size, flags | MSG_NOSIGNAL));
}

[[gnu::noinline]] ssize_t send_parts(int fd, const iovec* parts, std::size_t count, int flags) noexcept {
  port::expect_no_spinlock("sendmsg");
  msghdr message = {};
  message.msg_iov = const_cast<iovec*>(parts);
  message.msg_iovlen = static_cast<decltype(message.msg_iovlen)>(count);
  return negative_errno(::sendmsg(fd, &message, flags | MSG_NOSIGNAL));
}

[[gnu::noinline]] ssize_t send_file(int fd, int file, std::uint64_t offset, std::size_t count) noexcept {
  off_t at = static_cast<off_t>(offset);
  return negative_errno(::sendfile(fd, file, &at, count));
}

[[gnu::noinline]] ssize_t read_at(int file, void* into, std::size_t size, std::uint64_t offset) noexcept {
  return negative_errno(::pread(file, into, size, static_cast<off_t>(offset)));
}

[[gnu::noinline]] ssize_t peek(int fd) noexcept {
  port::expect_no_spinlock("recv");
  char byte;
  return negative_errno(::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT));
}

[[gnu::noinline]] ssize_t peek(int fd, void* into, std::size_t size) noexcept {
  port::expect_no_spinlock("recv");
  return negative_errno(::recv(fd, into, size, MSG_PEEK | MSG_DONTWAIT));
}

[[gnu::noinline]] ssize_t skip(int fd, void* scratch, std::size_t size) noexcept {
  return negative_errno(::recv(fd, scratch, size, MSG_TRUNC | MSG_DONTWAIT));
}

bool has_input(int fd) noexcept {
  port::expect_no_spinlock("recv");
  char byte;
  return ::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

bool is_readable(int fd) noexcept {
  port::expect_no_spinlock("poll");
  pollfd entry = {.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&entry, 1, 0) != 0;
}

bool has_hung_up(int fd) noexcept {
  port::expect_no_spinlock("poll");
  pollfd entry = {.fd = fd, .events = POLLRDHUP, .revents = 0};
  return ::poll(&entry, 1, 0) > 0;
}

bool has_failed(int fd) noexcept {
  port::expect_no_spinlock("poll");
  pollfd entry = {.fd = fd, .events = 0, .revents = 0};
  return ::poll(&entry, 1, 0) > 0;
}

[[gnu::noinline]] int unsent(int fd) noexcept {
  port::expect_no_spinlock("ioctl");
  int bytes = 0;
  return ::ioctl(fd, SIOCOUTQ, &bytes) < 0 ? -errno : bytes;
}

std::uint64_t delivered(int fd) noexcept {
  // Offsets in tcp_info, which not every C library declares in full.
  struct {
    std::uint8_t before[144];
    std::uint32_t not_sent;
    std::uint8_t between[52];
    std::uint64_t sent, sent_again;
  } info;
  socklen_t size = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 || size < sizeof info) return 0;
  return info.sent - info.sent_again + info.not_sent;
}

void give_up_after(int fd, unsigned milliseconds) noexcept {
  static_cast<void>(setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof milliseconds));
}

void acknowledge_now(int fd) noexcept {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
}

bool is_unanswered(int fd, unsigned times) noexcept {
  // How tcp_info begins: its state, the congestion control's, and how often in a row one segment was sent again.
  std::uint8_t begin[4] = {};
  socklen_t size = sizeof begin;
  return ::getsockopt(fd, IPPROTO_TCP, TCP_INFO, begin, &size) == 0 && begin[2] >= times;
}

bool is_unacknowledged(int fd) noexcept {
  // Another kind of socket has only unread bytes in its queue.
  int value = 0;
  socklen_t size = sizeof value;
  return ::getsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &value, &size) == 0 && unsent(fd) > 0;
}

void probe_peer(int fd) noexcept {
  constexpr struct {
    int level, name, value;
  } kOptions[] = {{IPPROTO_TCP, TCP_KEEPIDLE, 60},
                  {IPPROTO_TCP, TCP_KEEPINTVL, 15},
                  {IPPROTO_TCP, TCP_KEEPCNT, 4},
                  {IPPROTO_TCP, TCP_USER_TIMEOUT, 120'000},
                  {SOL_SOCKET, SO_KEEPALIVE, 1}};
  for (const auto& each : kOptions) {
    // A Unix socket has no such options, and its peer does not vanish.
    if (setsockopt(fd, each.level, each.name, &each.value, sizeof each.value) != 0) return;
  }
}

void reset_on_close(int fd) noexcept {
  const linger at_once = {.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

[[gnu::noinline]] int file_status(int file, struct stat& status) noexcept {
  return negative_errno(::fstat(file, &status));
}

[[gnu::noinline]] int stream_socket(int family) noexcept {
  return negative_errno(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

[[gnu::noinline]] int accept(int fd) noexcept {
  return negative_errno(::accept4(fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

[[gnu::noinline]] int connect(int fd, const sockaddr* to, socklen_t length) noexcept {
  return negative_errno(::connect(fd, to, length));
}

[[gnu::noinline]] int socket_error(int fd) noexcept {
  int outcome = 0;
  socklen_t size = sizeof outcome;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &outcome, &size) != 0) return -errno;
  return -outcome;
}

[[gnu::noinline]] int local_name(int fd, sockaddr_storage& name, socklen_t& length) noexcept {
  length = sizeof name;
  return negative_errno(::getsockname(fd, reinterpret_cast<sockaddr*>(&name), &length));
}

[[gnu::noinline]] int peer_name(int fd, sockaddr_storage& name, socklen_t& length) noexcept {
  length = sizeof name;
  return negative_errno(::getpeername(fd, reinterpret_cast<sockaddr*>(&name), &length));
}

[[gnu::noinline]] int datagram_socket(int family) noexcept {
  return negative_errno(::socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

[[gnu::noinline]] int bind(int fd, const sockaddr* at, socklen_t length) noexcept {
  return negative_errno(::bind(fd, at, length));
}

[[gnu::noinline]] int set_option(int fd, int level, int name, const void* value, socklen_t size) noexcept {
  return negative_errno(::setsockopt(fd, level, name, value, size));
}

[[gnu::noinline]] ssize_t receive_message(int fd, msghdr& message) noexcept {
  return negative_errno(::recvmsg(fd, &message, MSG_TRUNC));
}

[[gnu::noinline]] ssize_t send_message(int fd, const msghdr& message) noexcept {
  return negative_errno(::sendmsg(fd, &message, MSG_NOSIGNAL));
}

[[gnu::noinline]] int receive_messages(int fd, mmsghdr* messages, unsigned count) noexcept {
  return negative_errno(::recvmmsg(fd, messages, count, MSG_TRUNC, nullptr));
}

// musl's sendmmsg makes a call for each message, for its lengths have half of the kernel's width and padding behind
// them: with that zero both are the same on little-endian machines.
static_assert(std::endian::native == std::endian::little);
[[gnu::noinline]] int send_messages(int fd, mmsghdr* messages, unsigned count) noexcept {
  return static_cast<int>(negative_errno(::syscall(SYS_sendmmsg, fd, messages, count, MSG_NOSIGNAL)));
}

}  // namespace coir::kernel
