#include <coir/http/proxy_table.h>
#include <coir/quantity.h>

#include <algorithm>

#include "http/text/characters.h"
#include "outbound/exchange.h"
#include "proxy/field_kind.h"
#include "proxy/routes/route_servers.h"
#include "proxy/routes/route_values.h"

namespace coir::http {

namespace {

using Result = std::expected<bool, RouteFault>;

std::unexpected<RouteFault> fault(std::string_view word, const char* what, const char* cure) noexcept {
  return std::unexpected(RouteFault{word, what, cure});
}

// next_word takes the next word off `rest`; empty at its end.
std::string_view next_word(std::string_view& rest) noexcept {
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  const std::string_view word = rest.substr(0, rest.find_first_of(" \t"));
  rest.remove_prefix(word.size());
  return word;
}

std::size_t items(std::string_view list) noexcept {
  return static_cast<std::size_t>(std::ranges::count(list, ',')) + 1;
}

constexpr char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool is_same_host(std::string_view a, std::string_view b) noexcept {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

bool has_empty_item(std::string_view list) noexcept {
  return list.empty() || list.front() == ',' || list.back() == ',' || list.find(",,") != list.npos;
}

// add_change takes "NAME" of a field that is dropped or "NAME:VALUE" of one that is set.
Result add_change(std::string_view word, std::string_view text, bool sets, FieldChanges& changes) noexcept {
  const std::size_t colon = sets ? text.find(':') : text.size();
  const std::string_view name = text.substr(0, colon);
  if (colon == text.npos || !is_token(name) || (sets && colon + 1 == text.size()))
    return fault(word, "not a field", sets ? "such as set-request=X-Board:7" : "such as drop-request=Cookie");
  if (kind_of(name) != FieldKind::passed)
    return fault(word, "the proxy makes this field itself", "leave it out; Host is changed by send-host=NAME");
  if (changes.count == FieldChanges::kMost)
    return fault(word, "more than 4 fields", "set or drop fewer fields, or let the server behind do it");
  changes.names[changes.count++] = name;
  if (!sets) return true;
  const std::string_view value = text.substr(colon + 1);
  if (name.size() + value.size() + 4 > FieldChanges::kLineBytes - changes.size)
    return fault(word, "the fields that are set take more than 128 bytes", "set fewer or shorter ones");
  for (const std::string_view part : {name, std::string_view(": "), value, std::string_view("\r\n")}) {
    std::ranges::copy(part, changes.memory + changes.size);
    changes.size += part.size();
  }
  return true;
}

Result add_weights(std::string_view word, std::string_view list, RouteLine& route) noexcept {
  if (items(list) != items(route.urls))
    return fault(word, "not a weight for each server", "such as weights=3,1 for two");
  for (std::size_t i = 0; i < items(route.urls); ++i) {
    const std::string_view digits = next_item(list);
    unsigned weight = 0;
    for (const char c : digits.substr(0, 4)) weight = is_digit(c) ? weight * 10 + static_cast<unsigned>(c - '0') : 1000;
    if (digits.empty() || weight < 1 || weight > 100) return fault(word, "not a weight", "1 to 100");
    route.weights[i] = static_cast<unsigned char>(weight);
  }
  return true;
}

// add_names takes a list of hosts, or one.
Result add_names(std::string_view word, std::string_view value, bool many, std::string_view& into) noexcept {
  if (!into.empty()) return fault(word, "given twice", "give it once, with commas between hosts");
  if (has_empty_item(value) || (!many && value.find(',') != value.npos))
    return fault(word, "not a host", "such as host=board.example");
  into = value;
  return true;
}

Result add_rate(std::string_view word, std::string_view value, RouteLine& route) noexcept {
  constexpr std::uint64_t kMost = 1'000'000;
  std::string_view rest = value;
  const auto rate = parse_number(next_item(rest), 1, kMost);
  const auto burst = value.find(',') == value.npos ? rate : parse_number(rest, 1, kMost);
  if (!rate || !burst) return fault(word, "not a rate", "such as rate=10 or, 30 of them at once, rate=10,30");
  route.rate = static_cast<std::uint32_t>(*rate);
  route.burst = static_cast<std::uint32_t>(*burst);
  return true;
}

Result add_balance(std::string_view word, std::string_view value, RouteLine& route) noexcept {
  if (value == "turn") {
    route.balance = Balance::round_robin;
  } else if (value == "least") {
    route.balance = Balance::least_connections;
  } else if (value == "client") {
    route.balance = Balance::hash;
  } else {
    return fault(word, "not a balance", "balance=turn, balance=least or balance=client");
  }
  return true;
}

Result add_time(std::string_view word, std::string_view value, std::chrono::milliseconds& into) noexcept {
  constexpr std::chrono::hours kLongest(7 * 24);
  const auto time = parse_time(value);
  if (!time || *time > kLongest) return fault(word, "not a time", "such as 500ms, 30s, 2m or 1h");
  into = *time;
  return true;
}

Result add_health(std::string_view word, std::string_view value, RouteLine& route) noexcept {
  if (!value.starts_with('/')) return fault(word, "not a path", "such as health=/healthz");
  if (std::ranges::any_of(value, [](char c) { return static_cast<unsigned char>(c) > 0x7f; }))
    return fault(word, "not a path", "write what is not ASCII as %XX");
  route.health = value;
  return true;
}

Result add_max_body(std::string_view word, std::string_view value, RouteLine& route) noexcept {
  const auto size = parse_size(value);
  if (!size) return fault(word, "not a size", "such as max-body=64K or max-body=1M");
  route.max_body = *size;
  return true;
}

Result add_head(std::string_view word, std::string_view value, RouteLine& route) noexcept {
  const auto size = parse_size(value);
  if (!size || *size < 4096 || *size > kMostHead) return fault(word, "not a size from 4K to 48K", "such as head=32K");
  route.max_head = static_cast<std::uint32_t>(*size);
  return true;
}

Result add_body_rate(std::string_view word, std::string_view value, RouteLine& route) noexcept {
  const auto rate = parse_size(value);
  if (!rate || *rate > UINT32_MAX) return fault(word, "not a rate", "such as body-rate=500 or body-rate=4K; 0 for any");
  route.body_rate = static_cast<std::uint32_t>(*rate);
  return true;
}

Result add_most(std::string_view word, std::string_view value, std::uint32_t& into) noexcept {
  const auto most = parse_number(value, 1, 1'000'000);
  if (!most) return fault(word, "not a number", "1 to 1000000, such as max-waiting=100 or max-connections=20");
  into = static_cast<std::uint32_t>(*most);
  return true;
}

Result add_auth(std::string_view word, std::string_view value, RouteLine& route) noexcept {
  constexpr std::size_t kMostPath = 255;
  if (value.empty() || value.size() > kMostPath)
    return fault(word, "not a file's name", "such as auth=/etc/coird.auth");
  route.auth = value;
  return true;
}

Result add_trust(std::string_view word, std::string_view value, RouteLine& route) noexcept {
  if (!is_trust_list(value))
    return fault(word, "not up to 8 addresses", "such as trust=127.0.0.1,10.0.0.0/8,fd00::/8 or trust=unix");
  route.trust = value;
  return true;
}

Result add_word(std::string_view word, RouteLine& route) noexcept {
  if (word == "request-id") {
    route.request_id = true;
    return true;
  }
  if (word == "forwarded") {
    route.forwarded = true;
    return true;
  }
  const std::size_t equals = word.find('=');
  const std::string_view key = word.substr(0, equals);
  const std::string_view value = equals == word.npos ? std::string_view() : word.substr(equals + 1);
  if (key == "host") return add_names(word, value, true, route.hosts);
  if (key == "send-host") return add_names(word, value, false, route.host);
  if (key == "weights") return add_weights(word, value, route);
  if (key == "set-request") return add_change(word, value, true, route.request);
  if (key == "drop-request") return add_change(word, value, false, route.request);
  if (key == "set-response") return add_change(word, value, true, route.response);
  if (key == "drop-response") return add_change(word, value, false, route.response);
  if (key == "health") return add_health(word, value, route);
  if (key == "health-interval") return add_time(word, value, route.health_interval);
  if (key == "slow-start") return add_time(word, value, route.slow_start);
  if (key == "balance") return add_balance(word, value, route);
  if (key == "rate") return add_rate(word, value, route);
  if (key == "auth") return add_auth(word, value, route);
  if (key == "max-body") return add_max_body(word, value, route);
  if (key == "head") return add_head(word, value, route);
  if (key == "body-timeout") return add_time(word, value, route.body_timeout);
  if (key == "body-rate") return add_body_rate(word, value, route);
  if (key == "trust") return add_trust(word, value, route);
  if (key == "connect") return add_time(word, value, route.connect);
  if (key == "first-byte") return add_time(word, value, route.first_byte);
  if (key == "idle") return add_time(word, value, route.idle);
  if (key == "max-waiting") return add_most(word, value, route.max_waiting);
  if (key == "max-connections") return add_most(word, value, route.max_connections);
  if (key == "rest-idle") return add_time(word, value, route.rest_idle);
  return fault(word, "no such key", "such as host=, balance= or rate=; coird's README.md lists all");
}

}  // namespace

bool RouteLine::admits(std::string_view authority) const noexcept {
  if (hosts.empty()) return true;
  // The port stands behind the last colon, unless that is one of an address in brackets.
  const std::size_t colon = authority.rfind(':');
  if (colon != authority.npos && authority.find(']', colon) == authority.npos) authority = authority.substr(0, colon);
  if (authority.ends_with('.')) authority.remove_suffix(1);
  for (std::string_view rest = hosts; !rest.empty();) {
    std::string_view each = next_item(rest);
    if (each.ends_with('.')) each.remove_suffix(1);
    if (is_same_host(each, authority)) return true;
  }
  return false;
}

Result parse_route_line(std::string_view line, RouteLine& route) noexcept {
  if (line.ends_with('\r')) line.remove_suffix(1);
  for (const char c : line) {
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f)
      return fault({}, "a control byte", "save the file as plain text");
  }
  route.prefix = next_word(line);
  if (route.prefix.empty() || route.prefix.front() == '#') return false;
  if (route.prefix.front() != '/')
    return fault(route.prefix, "not a path", "a line is PREFIX URL[,URL...] [KEY=VALUE]...");
  route.urls = next_word(line);
  if (has_empty_item(route.urls)) return fault(route.prefix, "no server", "such as /api http://127.0.0.1:8081");
  if (items(route.urls) > UpstreamServer::kMost) return fault(route.prefix, "more than 16 servers", "name fewer");
  while (true) {
    const std::string_view word = next_word(line);
    if (word.empty()) return true;
    if (const Result added = add_word(word, route); !added) return added;
  }
}

}  // namespace coir::http
