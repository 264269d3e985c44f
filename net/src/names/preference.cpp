#include "names/preference.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>

#include "socket/kernel.h"

namespace coir::names {
namespace {

// Kind is a row of RFC 6724's table (section 2.1): the longest prefix that fits counts.
struct Kind {
  unsigned char prefix[2];
  std::uint8_t bits;  // 16 at most, but for ::1
  std::uint8_t precedence;
  std::uint8_t label;
};
constexpr Kind kKinds[] = {{{0x20, 0x02}, 16, 30, 2}, {{0xfe, 0x80}, 10, 40, 1}, {{0xfc, 0x00}, 7, 3, 13}};
constexpr Kind kOrdinary = {{}, 0, 40, 1}, kLoopback = {{}, 0, 50, 0};
constexpr int kOfIpv4 = 35, kOtherLabel = 1, kUnreachable = 0;

const Kind& kind_of(const in6_addr& address) noexcept {
  if (IN6_IS_ADDR_LOOPBACK(&address)) return kLoopback;
  for (const Kind& each : kKinds) {
    const unsigned mask = 0xffff0000u >> each.bits & 0xffff;
    const unsigned wanted = each.prefix[0] << 8u | each.prefix[1],
                   there = address.s6_addr[0] << 8u | address.s6_addr[1];
    if (((wanted ^ there) & mask) == 0) return each;
  }
  return kOrdinary;
}

// rank is higher for what is better: by the address from which the kernel would reach it.
int rank(const Address& to) noexcept {
  const int fd = ::socket(to.get()->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return kUnreachable;
  sockaddr_storage from{};
  socklen_t length = sizeof from;
  const Address somewhere = to.with_port(1);  // nothing is sent there
  const bool reached =
      kernel::connect(fd, somewhere.get(), somewhere.length()) == 0 && kernel::local_name(fd, from, length) == 0;
  ::close(fd);
  if (!reached) return kUnreachable;
  if (to.family() == Address::Family::ipv4) return kOfIpv4;
  const Kind& there = kind_of(reinterpret_cast<const sockaddr_in6*>(to.get())->sin6_addr);
  const Kind& here = kind_of(reinterpret_cast<const sockaddr_in6*>(&from)->sin6_addr);
  return there.label == here.label ? there.precedence : kOtherLabel;
}

}  // namespace

void put_best_first(Addresses& addresses) noexcept {
  int ranks[Addresses::kMost];
  bool families[2] = {};
  for (std::size_t i = 0; i < addresses.size(); ++i) families[addresses[i].family() == Address::Family::ipv4] = true;
  if (!families[0] || !families[1]) return;
  for (std::size_t i = 0; i < addresses.size(); ++i) ranks[i] = rank(addresses[i]);
  // Insertion, which keeps the order of equals.
  for (std::size_t i = 1; i < addresses.size(); ++i) {
    for (std::size_t at = i; at > 0 && ranks[at] > ranks[at - 1]; --at) {
      addresses.swap(at, at - 1);
      const int better = ranks[at];
      ranks[at] = ranks[at - 1];
      ranks[at - 1] = better;
    }
  }
}

}  // namespace coir::names
