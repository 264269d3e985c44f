#pragma once

#include <string.h>
#include <sys/socket.h>

#include <cstdint>
#include <string_view>

#include "tests/unit/client/scripted_server.h"

namespace coir::test {

using namespace std::string_view_literals;

inline constexpr std::string_view kConsent = "\x20\2\0\0"sv, kConsentToSession = "\x20\2\1\0"sv;

// BrokerSide takes apart what a client sends over one connection of a ScriptedServer, with nothing of coir's codec.
class BrokerSide {
 public:
  explicit BrokerSide(Peer& peer) : peer_(peer) {}

  // hear reads a packet, and returns its first byte; 0 at the end of the connection.
  unsigned hear() {
    unsigned char first, digit;
    if (!take(&first, 1)) return 0;
    size_ = 0;
    unsigned shift = 0;
    do {
      if (!take(&digit, 1)) return 0;
      size_ |= std::size_t{digit & 0x7fu} << shift;
      shift += 7;
    } while (digit >= 0x80);
    if (size_ > sizeof body_ || !take(body_, size_)) return 0;
    return first;
  }
  // hear_type reads on to the next packet of a type, and returns its first byte.
  unsigned hear_type(unsigned type) {
    for (;;) {
      const unsigned first = hear();
      if (first == 0 || first >> 4 == type) return first;
    }
  }
  std::string_view body() const { return {body_, size_}; }
  // The identifier of a PUBLISH of QoS 1.
  std::string_view topic() const { return body().substr(2, number(0)); }
  unsigned id() const { return number(2 + number(0)); }
  std::string_view payload() const { return body().substr(4 + number(0)); }
  unsigned number(std::size_t at) const {
    return static_cast<unsigned char>(body_[at]) * 256u + static_cast<unsigned char>(body_[at + 1]);
  }

  bool consent(std::string_view answer = kConsent) { return hear() == 0x10 && peer_.say(answer); }
  bool acknowledge(unsigned id, unsigned type = 0x40) {
    const char packet[] = {static_cast<char>(type), 2, static_cast<char>(id >> 8), static_cast<char>(id)};
    return peer_.say({packet, sizeof packet});
  }
  // grant answers the SUBSCRIBE that was heard last, of one filter.
  bool grant(unsigned code = 1) {
    const char packet[] = {'\x90', 3, body_[0], body_[1], static_cast<char>(code)};
    return peer_.say({packet, sizeof packet});
  }

 private:
  bool take(void* into, std::size_t size) {
    auto* to = static_cast<char*>(into);
    while (size != 0) {
      const ssize_t got = ::recv(peer_.fd(), to, size, 0);
      if (got <= 0) return false;
      to += got;
      size -= static_cast<std::size_t>(got);
    }
    return true;
  }

  Peer& peer_;
  std::size_t size_ = 0;
  char body_[8192];
};

}  // namespace coir::test
