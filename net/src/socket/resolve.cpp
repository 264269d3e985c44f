#include <coir/config.h>
#include <coir/net/resolve.h>

#include <arpa/inet.h>
#include <coir/blocking.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

namespace coir {

namespace {

constexpr std::size_t kLongestName = 254;  // with the dot at its end (RFC 1035)

Error error_of_lookup(int code, int number) noexcept {
  switch (code) {
    case EAI_NONAME:
#if defined(EAI_NODATA)
    case EAI_NODATA:
#endif
      return {ErrorCode::not_found};
    case EAI_AGAIN:
      return {ErrorCode::temporary};
    case EAI_MEMORY:
      return {ErrorCode::no_memory};
    case EAI_SYSTEM:
      return Error::from_errno(number);
    default:
      return {ErrorCode::system, EPROTO};
  }
}

// Lookup owns everything that its thread reads: its caller may be gone before it ends.
class Lookup {
 public:
  Lookup(std::string_view host, std::uint16_t port) noexcept : port_(port) {
    memcpy(host_, host.data(), host.size());
    host_[host.size()] = '\0';
  }

  std::expected<Addresses, Error> operator()() const noexcept {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;  // one of each address, not one for each protocol
    addrinfo* found = nullptr;
    errno = 0;
    if (const int failed = getaddrinfo(host_, nullptr, &hints, &found); failed != 0) {
      return std::unexpected(error_of_lookup(failed, errno));
    }
    Addresses addresses;
    addresses.set_port(port_);
    for (const addrinfo* at = found; at != nullptr; at = at->ai_next) addresses.add(at->ai_addr);
    freeaddrinfo(found);
    if (addresses.size() == 0) return std::unexpected(Error{ErrorCode::not_found});
    return addresses;
  }

  // numeric is true where the host is an address, which needs no lookup.
  bool numeric(Addresses& addresses) const noexcept {
    sockaddr_in in{};
    sockaddr_in6 in6{};
    in.sin_family = AF_INET;
    in6.sin6_family = AF_INET6;
    addresses.set_port(port_);
    if (inet_pton(AF_INET, host_, &in.sin_addr) == 1) return addresses.add(reinterpret_cast<const sockaddr*>(&in));
    if (inet_pton(AF_INET6, host_, &in6.sin6_addr) == 1) return addresses.add(reinterpret_cast<const sockaddr*>(&in6));
    return false;
  }

 private:
  char host_[kLongestName + 1];
  std::uint16_t port_;
};

}  // namespace

bool Addresses::add(const sockaddr* address) noexcept {
  if (count_ == kMost) return false;
  Entry entry{};
  if (address->sa_family == AF_INET) {
    memcpy(entry.bytes, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, sizeof(in_addr));
  } else if (address->sa_family == AF_INET6) {
    const auto& in6 = *reinterpret_cast<const sockaddr_in6*>(address);
    memcpy(entry.bytes, &in6.sin6_addr, sizeof(in6_addr));
    entry.scope = in6.sin6_scope_id;
    entry.ipv6 = true;
  } else {
    return false;
  }
  entries_[count_++] = entry;
  return true;
}

Address Addresses::operator[](std::size_t index) const noexcept {
  const Entry& entry = entries_[index];
  if (!entry.ipv6) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(port_);
    memcpy(&in.sin_addr, entry.bytes, sizeof in.sin_addr);
    return Address::from_sockaddr(reinterpret_cast<const sockaddr*>(&in), sizeof in);
  }
  sockaddr_in6 in6{};
  in6.sin6_family = AF_INET6;
  in6.sin6_port = htons(port_);
  in6.sin6_scope_id = entry.scope;
  memcpy(&in6.sin6_addr, entry.bytes, sizeof in6.sin6_addr);
  return Address::from_sockaddr(reinterpret_cast<const sockaddr*>(&in6), sizeof in6);
}

std::expected<Addresses, Error> resolve(std::string_view host, std::uint16_t port, Deadline deadline) noexcept {
  if (host.empty() || host.size() > kLongestName || host.find('\0') != host.npos) {
    return std::unexpected(Error{ErrorCode::invalid});
  }
  const Lookup lookup(host, port);
  if (Addresses addresses; lookup.numeric(addresses)) return addresses;
  if constexpr (!COIR_NO_ASYNC) {
    if (detail::may_run_elsewhere()) {
      detail::OwnedCall<Lookup> call(lookup);
      call.kind = detail::BlockingKind::names;
      return call.go(deadline);
    }
  }
  return lookup();
}

}  // namespace coir
