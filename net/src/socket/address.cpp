#include <arpa/inet.h>
#include <coir/format.h>
#include <coir/net/address.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/un.h>

#include <charconv>
#include <iterator>

namespace coir {
namespace {

constexpr std::size_t kPathOffset = offsetof(sockaddr_un, sun_path);
// AddressFault is what parse finds wrong. An error carries it in `sys`, above every errno.
enum class AddressFault : int {
  empty_path,
  nul_in_path,
  long_path,
  no_port,
  open_bracket,
  bad_port,
  bad_ipv6,
  bare_ipv6,
  bad_ipv4
};
constexpr int kFirstAddressFault = 0x4a000000;

// In the order of AddressFault.
constexpr const char* kAddressPhrases[] = {
    "the path after 'unix:' is empty",
    "the path contains a NUL",
    "the path is longer than 107 bytes",
    "the port is missing (ADDRESS:PORT)",
    "']' or the port after it is missing",
    "the port is not a number from 0 to 65535",
    "the text in brackets is not an IPv6 address",
    "an IPv6 address needs brackets: [ADDRESS]:PORT",
    "the address is not an IPv4 address (names are not looked up)",
};
static_assert(std::size(kAddressPhrases) == static_cast<std::size_t>(AddressFault::bad_ipv4) + 1);

// phrase_of_address is what describe says of it.
const char* phrase_of_address(Error error) noexcept {
  const int fault = error.sys - kFirstAddressFault;
  return fault >= 0 && fault < static_cast<int>(std::size(kAddressPhrases)) ? kAddressPhrases[fault] : nullptr;
}

std::unexpected<Error> bad_address(AddressFault fault) noexcept {
  detail::add_phrase(phrase_of_address);
  return std::unexpected(Error(ErrorCode::invalid, kFirstAddressFault + static_cast<int>(fault)));
}

bool parse_port(std::string_view text, std::uint16_t& port) noexcept {
  if (text.empty() || text[0] < '0' || text[0] > '9') return false;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), port);
  return fault == std::errc() && end == text.data() + text.size();
}

// with_nul gives inet_pton the terminated string it wants; false when the text cannot be an address for its length
// alone.
bool with_nul(std::string_view text, std::span<char> out) noexcept {
  if (text.empty() || text.size() >= out.size() || text.find('\0') != text.npos) return false;
  memcpy(out.data(), text.data(), text.size());
  out[text.size()] = '\0';
  return true;
}

// These two replace inet_ntop, which in musl goes through printf and needs more stack than a small fiber has.
void add_ipv4(Formatter& writer, const unsigned char* bytes) noexcept {
  for (int i = 0; i < 4; ++i) {
    if (i != 0) writer.add(".");
    writer.add(bytes[i]);
  }
}

// add_ipv6 writes the canonical form (RFC 5952): lower case, the longest run of zero groups as "::", the first of
// equals.
void add_ipv6(Formatter& writer, const unsigned char* bytes) noexcept {
  constexpr int kGroups = 8;
  unsigned groups[kGroups];
  int start = kGroups, length = 1, run = 0;
  for (int i = 0; i < kGroups; ++i) {
    groups[i] = static_cast<unsigned>(bytes[2 * i] << 8 | bytes[2 * i + 1]);
    run = groups[i] == 0 ? run + 1 : 0;
    if (run > length) {
      length = run;
      start = i + 1 - run;
    }
  }
  const bool mapped = start == 0 && length == 5 && groups[5] == 0xffff;
  for (int i = 0; i < kGroups; ++i) {
    if (i == start) {
      writer.add("::");
      i += length - 1;
      continue;
    }
    if (i != 0 && i != start + length) writer.add(":");
    if (mapped && i == 6) return add_ipv4(writer, bytes + 12);
    writer.add(hex(groups[i]));
  }
}

}  // namespace

Address Address::ip(Family family, const void* bytes, std::uint16_t port, bool any) noexcept {
  Address made;
  made.family_ = family;
  made.any_ = any;
  if (family == Family::ipv4) {
    sockaddr_in in = {};
    in.sin_family = AF_INET;
    in.sin_port = htons(port);
    memcpy(&in.sin_addr, bytes, sizeof in.sin_addr);
    memcpy(made.storage_, &in, sizeof in);
    made.length_ = sizeof in;
  } else {
    sockaddr_in6 in = {};
    in.sin6_family = AF_INET6;
    in.sin6_port = htons(port);
    memcpy(&in.sin6_addr, bytes, sizeof in.sin6_addr);
    memcpy(made.storage_, &in, sizeof in);
    made.length_ = sizeof in;
  }
  return made;
}

std::expected<Address, Error> Address::parse(std::string_view text) noexcept {
  if (text.starts_with("unix:")) {
    const std::string_view path = text.substr(5);
    if (path.empty()) return bad_address(AddressFault::empty_path);
    if (path.find('\0') != path.npos) return bad_address(AddressFault::nul_in_path);
    if (path.size() >= sizeof(sockaddr_un::sun_path)) return bad_address(AddressFault::long_path);
    Address made;
    made.family_ = Family::unix_path;
    sockaddr_un un = {};
    un.sun_family = AF_UNIX;
    memcpy(un.sun_path, path.data(), path.size());
    const bool abstract = path[0] == '@';
    if (abstract) un.sun_path[0] = '\0';
    memcpy(made.storage_, &un, sizeof un);
    made.length_ = static_cast<std::uint8_t>(kPathOffset + path.size() + (abstract ? 0 : 1));
    return made;
  }

  const std::size_t colon = text.rfind(':');
  if (colon == text.npos) return bad_address(AddressFault::no_port);
  const std::string_view host = text.substr(0, colon);
  std::uint16_t port = 0;
  if (!host.empty() && host.front() == '[' && host.back() != ']') return bad_address(AddressFault::open_bracket);
  if (!parse_port(text.substr(colon + 1), port)) return bad_address(AddressFault::bad_port);

  unsigned char bytes[16] = {};
  if (host.empty() || host == "*") return ip(Family::ipv6, bytes, port, true);
  char terminated[INET6_ADDRSTRLEN];
  if (host.front() == '[') {
    if (!with_nul(host.substr(1, host.size() - 2), terminated) || inet_pton(AF_INET6, terminated, bytes) != 1) {
      return bad_address(AddressFault::bad_ipv6);
    }
    return ip(Family::ipv6, bytes, port, false);
  }
  if (host.find(':') != host.npos) return bad_address(AddressFault::bare_ipv6);
  if (!with_nul(host, terminated) || inet_pton(AF_INET, terminated, bytes) != 1) {
    return bad_address(AddressFault::bad_ipv4);
  }
  return ip(Family::ipv4, bytes, port, false);
}

Address Address::from_sockaddr(const sockaddr* address, socklen_t length) noexcept {
  Address made;
  if (length > sizeof made.storage_) length = sizeof made.storage_;
  memcpy(made.storage_, address, length);
  made.length_ = static_cast<std::uint8_t>(length);
  const sa_family_t family = length >= sizeof(sa_family_t) ? address->sa_family : sa_family_t(AF_UNIX);
  made.family_ = family == AF_INET ? Family::ipv4 : family == AF_INET6 ? Family::ipv6 : Family::unix_path;
  return made;
}

Address Address::as_ipv4_any() const noexcept {
  const unsigned char bytes[4] = {};
  return ip(Family::ipv4, bytes, port(), true);
}

// sin_port and sin6_port stand at the same place.
static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));

Address Address::with_port(std::uint16_t port) const noexcept {
  Address changed = *this;
  const std::uint16_t raw = htons(port);
  memcpy(changed.storage_ + offsetof(sockaddr_in, sin_port), &raw, sizeof raw);
  return changed;
}

std::uint16_t Address::port() const noexcept {
  if (family_ == Family::unix_path) return 0;
  std::uint16_t raw;
  memcpy(&raw, storage_ + offsetof(sockaddr_in, sin_port), sizeof raw);
  return ntohs(raw);
}

std::string_view Address::unix_path() const noexcept {
  if (family_ != Family::unix_path || length_ <= kPathOffset) return {};
  const char* path = reinterpret_cast<const char*>(storage_) + kPathOffset;
  const std::size_t size = length_ - kPathOffset;
  return path[0] == '\0' ? std::string_view(path, size) : std::string_view(path, strnlen(path, size));
}

std::string_view Address::format(std::span<char> out) const noexcept {
  Formatter writer(out);
  if (family_ == Family::unix_path) {
    writer.add("unix:");
    const std::string_view path = unix_path();
    if (!path.empty() && path[0] == '\0') {
      writer.add("@");
      writer.add(path.substr(1));
    } else {
      writer.add(path);
    }
    return writer.fits() ? writer.text() : std::string_view();
  }
  if (any_) {
    writer.add("*");
  } else if (family_ == Family::ipv4) {
    add_ipv4(writer, storage_ + offsetof(sockaddr_in, sin_addr));
  } else {
    writer.add("[");
    add_ipv6(writer, storage_ + offsetof(sockaddr_in6, sin6_addr));
    writer.add("]");
  }
  writer.add(":");
  writer.add(port());
  return writer.fits() ? writer.text() : std::string_view();
}

}  // namespace coir
