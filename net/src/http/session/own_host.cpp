#include "http/session/own_host.h"

#include <coir/config.h>
#include <coir/format.h>
#include <unistd.h>

#include "http/session/engine.h"
#include "http/text/characters.h"
#include "socket/own_address.h"

#if COIR_TLS
#include <coir/tls.h>
#endif

namespace coir::http {
namespace {

// host_of is an authority without its port, and without the dot that may end a name.
std::string_view host_of(std::string_view authority) noexcept {
  const std::size_t bracket = authority.starts_with('[') ? authority.find(']') : authority.npos;
  std::string_view host = bracket != authority.npos ? first(authority, bracket + 1) : until(authority, ':');
  if (host.size() > 1 && host.ends_with('.')) host.remove_suffix(1);
  return host;
}

std::string_view without_brackets(std::string_view host) noexcept {
  return host.size() > 2 && host.starts_with('[') ? host.substr(1, host.size() - 2) : host;
}

bool is_allowed(std::span<const std::string_view> allowed, std::string_view host) noexcept {
  for (const std::string_view each : allowed) {
    if (each == "*" || equals_ignoring_case(without_brackets(each), without_brackets(host))) return true;
  }
  return false;
}

// A host name may be told with its domain: "board.example" is board.local too.
[[gnu::noinline]] bool is_host_name(std::string_view host) noexcept {
  constexpr std::string_view kLocal = ".local";
  char room[256] = {};
  if (::gethostname(room, sizeof room - 1) != 0 || room[0] == '\0') return false;
  const std::string_view name = room;
  if (equals_ignoring_case(host, name)) return true;
  const std::string_view label = until(name, '.');
  return host.size() == label.size() + kLocal.size() && begins_ignoring_case(host, label) &&
         equals_ignoring_case(after(host, label.size()), kLocal);
}

[[gnu::noinline]] bool is_own_literal(std::string_view host, const TcpStream& by) noexcept {
  char room[Address::kMaxText];
  Formatter text(room);
  text.add(host, ":0");
  if (!text.fits()) return false;
  const auto address = Address::parse(text.text());
  return address && !address->is_any() && is_own_address(*address, by);
}

bool is_certified([[maybe_unused]] const Engine& engine, [[maybe_unused]] std::string_view host) noexcept {
#if COIR_TLS
  for (const TlsContextSlot* const slot : engine.contexts) {
    if (slot != nullptr && slot->current().is_for(host)) return true;
  }
#endif
  return false;
}

bool by_unix_socket(const TcpStream& by) noexcept {
  const auto local = by.local_address();
  return local && local->family() == Address::Family::unix_path;
}

}  // namespace

bool is_own_host(std::string_view authority, const Engine& engine, const TcpStream& by) noexcept {
  if (authority.data() == nullptr) return true;
  const std::string_view host = host_of(authority);
  return equals_ignoring_case(host, "localhost") || is_allowed(engine.options.allow_hosts, host) ||
         is_own_literal(host, by) || is_host_name(host) || is_certified(engine, host) || by_unix_socket(by);
}

}  // namespace coir::http
