#include "fetch_list.h"

#include <coir/format.h>
#include <coir/http/wire/query.h>
#include <coir/net/address.h>
#include <strings.h>

#include <optional>

namespace {

// Entry is a host, without brackets, and a port; 0: none was given.
struct Entry {
  std::string_view host;
  std::uint16_t port = 0;
};

std::optional<Entry> parse(std::string_view text) noexcept {
  Entry entry{.host = text};
  std::string_view port;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == text.npos) return {};
    entry.host = text.substr(1, end - 1);
    port = text.substr(end + 1);
    if (!port.empty() && port.front() != ':') return {};
  } else if (const std::size_t colon = text.find(':'); colon != text.npos && text.find(':', colon + 1) == text.npos) {
    entry.host = text.substr(0, colon);
    port = text.substr(colon);
  }
  if (!port.empty()) {
    const auto number = coir::http::parse_integer(port.substr(1));
    if (!number || *number < 1 || *number > 65535) return {};
    entry.port = static_cast<std::uint16_t>(*number);
  }
  if (entry.host.ends_with('.')) entry.host.remove_suffix(1);
  std::string_view name = entry.host;
  if (name == "*") return entry;
  if (name.starts_with("*.")) name.remove_prefix(2);
  if (name.empty() || name.find_first_of("*/@?#% ") != name.npos) return {};
  return entry;
}

bool same(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

// address_of reads a host that is an address, with that port.
std::optional<coir::Address> address_of(std::string_view host, std::uint16_t port) noexcept {
  char text[80];
  const bool is_v6 = host.find(':') != host.npos;
  coir::Formatter out(text);
  out.add(is_v6 ? "[" : "", host, is_v6 ? "]:" : ":", port);
  if (!out.fits()) return {};
  const auto address = coir::Address::parse(out.text());
  if (!address || address->family() == coir::Address::Family::unix_path) return {};
  return *address;
}

bool same(const coir::Address& a, const coir::Address& b) noexcept {
  char one[coir::Address::kMaxText], other[coir::Address::kMaxText];
  return a.format(one) == b.format(other);
}

bool admits_port(const Entry& entry, std::uint16_t port) noexcept {
  return entry.port == 0 ? port == 80 || port == 443 : port == entry.port;
}

}  // namespace

bool FetchList::is_entry(std::string_view text) noexcept {
  return parse(text).has_value();
}

bool FetchList::admits(std::string_view host, std::uint16_t port) const noexcept {
  if (host.ends_with('.')) host.remove_suffix(1);
  const auto address = address_of(host, port);
  for (const std::string_view text : entries_) {
    const auto entry = parse(text);
    if (!entry || !admits_port(*entry, port)) continue;
    if (entry->host == "*" || same(entry->host, host)) return true;
    if (address) {
      const auto listed = address_of(entry->host, port);
      if (listed && same(*listed, *address)) return true;
    } else if (entry->host.starts_with("*.")) {
      const std::string_view suffix = entry->host.substr(1);
      if (host.size() > suffix.size() && same(host.substr(host.size() - suffix.size()), suffix)) return true;
    }
  }
  return false;
}

bool FetchList::reaches(const coir::Address& address) const noexcept {
  if (coir::is_public(address)) return true;
  for (const std::string_view text : entries_) {
    const auto entry = parse(text);
    if (!entry || !admits_port(*entry, address.port())) continue;
    const auto listed = address_of(entry->host, address.port());
    if (listed && same(*listed, address)) return true;
  }
  return false;
}
