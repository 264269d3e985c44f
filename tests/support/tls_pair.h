#pragma once

#include <coir/net/certificates.h>
#include <coir/tls.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string_view>

namespace coir::test {

// SocketPair is a connection within the process.
struct SocketPair {
  SocketPair() noexcept {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) __builtin_trap();
    server = TcpStream(ends[0]);
    client = TcpStream(ends[1]);
  }
  TcpStream server, client;
};

// Kept is a second descriptor of a connection, which lasts as long as either: an end that has been given up can still
// be written to.
class Kept {
 public:
  explicit Kept(const TcpStream& stream) noexcept : fd_(::dup(stream.fd())) {}
  ~Kept() { ::close(fd_); }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;

 private:
  int fd_;
};

// Authority is a certificate for "board.test" and "127.0.0.1" that is its own authority, with the contexts of a server
// that has it and of a client that trusts it.
struct Authority {
  explicit Authority(std::string_view name = "board.test") noexcept {
    const std::string_view names[] = {name, "127.0.0.1"};
    if (!make_self_signed(names, made)) __builtin_trap();
  }
  TlsCertificate certificate() const noexcept { return {.chain = made.certificate, .key = made.key}; }
  TlsContext server() const noexcept {
    const TlsCertificate own[] = {certificate()};
    auto context = TlsContext::server({.certificates = own});
    if (!context) __builtin_trap();
    return *context;
  }
  TlsContext client() const noexcept {
    auto context = TlsContext::client({.authorities = made.certificate});
    if (!context) __builtin_trap();
    return *context;
  }

  SelfSigned made;
};

// authority is one for board.test that is made once: a key takes its time under an emulator.
inline const Authority& authority() {
  static const Authority made;
  return made;
}

// patience is a deadline for an event that is sure to come.
inline Deadline patience() {
  return Deadline::after(std::chrono::seconds(100));
}

}  // namespace coir::test
