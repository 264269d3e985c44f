#include <coir/net/address.h>

#include <netinet/in.h>
#include <string.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/buffer_pool.h"
#include "names/dns_message.h"
#include "names/name_cache.h"
#include "names/name_files.h"
#include "names/preference.h"
#include "names/servers.h"

namespace coir {
namespace names {
namespace {

constexpr std::size_t kLongestName = 254;  // with the dot at its end (RFC 1035)

// Lookup is what one call needs beside the stack: in a buffer of the pool's.
struct Lookup {
  NameServers servers;
  Name name;
  union {
    char file[2048];
    AskingRoom asking;
  };

  Lookup() noexcept {}

  std::expected<void, Error> run(std::string_view host, Addresses& found, Deadline deadline) noexcept;
  std::expected<void, Error> look_up(Addresses& found, Deadline deadline) noexcept;
};
static_assert(sizeof(Lookup) <= Buffer::kLeast);

// is_local is true for "localhost" and what lies below it.
bool is_local(std::string_view host) noexcept {
  constexpr std::string_view kLocal = "localhost";
  if (host.ends_with('.')) host.remove_suffix(1);
  if (host.size() < kLocal.size()) return false;
  const std::size_t before = host.size() - kLocal.size();
  return strncasecmp(host.data() + before, kLocal.data(), kLocal.size()) == 0 &&
         (before == 0 || host[before - 1] == '.');
}

std::expected<void, Error> Lookup::run(std::string_view host, Addresses& found, Deadline deadline) noexcept {
  if (!name.set(host)) return std::unexpected(Error{ErrorCode::invalid});
  if (find_in_hosts(host, found, file)) return put_best_first(found), std::expected<void, Error>();
  if (is_local(host)) {
    add_literal("127.0.0.1", found);
    add_literal("::1", found);
    return {};
  }
  servers.read(file);
  if (!host.ends_with('.') && std::ranges::count(host, '.') < static_cast<std::ptrdiff_t>(servers.dots)) {
    std::string_view search = servers.search();
    for (std::string_view domain = next_word(search); !domain.empty(); domain = next_word(search)) {
      if (!name.set(host) || !name.append(domain)) continue;
      if (auto done = look_up(found, deadline); done || done.error() != ErrorCode::not_found) return done;
    }
    name.set(host);
  }
  return look_up(found, deadline);
}

// look_up has `found` hold what `name` stands for.
std::expected<void, Error> Lookup::look_up(Addresses& found, Deadline deadline) noexcept {
  if (!recall(name, found)) {
    const auto seconds = ask_servers(name, servers, asking, found, deadline);
    if (!seconds) return std::unexpected(seconds.error());
    put_best_first(found);
    remember(name, found, *seconds);
    PackedAddresses::set_valid_until(found, Deadline::after(std::chrono::seconds(*seconds)));
  }
  if (found.size() == 0) return std::unexpected(Error{ErrorCode::not_found});
  return {};
}

}  // namespace
}  // namespace names

bool Addresses::add(const sockaddr* address) noexcept {
  if (count_ == kMost) return false;
  Entry entry{};
  if (address->sa_family == AF_INET) {
    memcpy(entry.bytes, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, sizeof(in_addr));
    entry.scope = Entry::kIpv4;
  } else if (address->sa_family == AF_INET6) {
    const auto& in6 = *reinterpret_cast<const sockaddr_in6*>(address);
    memcpy(entry.bytes, &in6.sin6_addr, sizeof(in6_addr));
    entry.scope = in6.sin6_scope_id;
  } else {
    return false;
  }
  entries_[count_++] = entry;
  return true;
}

void Addresses::swap(std::size_t one, std::size_t other) noexcept {
  std::swap(entries_[one], entries_[other]);
}

Address Addresses::operator[](std::size_t index) const noexcept {
  const Entry& entry = entries_[index];
  if (entry.scope == Entry::kIpv4) {
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
  if (host.empty() || host.size() > names::kLongestName || host.find('\0') != host.npos) {
    return std::unexpected(Error{ErrorCode::invalid});
  }
  Addresses found;
  found.set_port(port);
  if (names::add_literal(host, found)) return found;
  auto room = Buffer::take(sizeof(names::Lookup));
  if (!room) return std::unexpected(room.error());
  auto& lookup = *new (static_cast<void*>(room->data())) names::Lookup;
  if (auto done = lookup.run(host, found, deadline); !done) return std::unexpected(done.error());
  return found;
}

}  // namespace coir
