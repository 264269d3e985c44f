// The head of a request as an upstream is sent it. Declared in proxy/forwarding.h.
#include <netinet/in.h>
#include <string.h>

#include <algorithm>

#include "http/session/engine.h"
#include "http/text/characters.h"
#include "proxy/forward_keeper.h"
#include "proxy/forwarding.h"

namespace coir::http {
namespace {

bool is_request_id(std::string_view name) noexcept {
  return equals_ignoring_case(name, "X-Request-ID");
}

}  // namespace

std::string_view Forwarding::pseudonym() const noexcept {
  return rules.pseudonym.empty() ? keeper.pseudonym() : rules.pseudonym;
}

int Forwarding::refusal() noexcept {
  std::string_view wanted;
  bool upgrades = false;
  for (const Header& field : request.headers) {
    switch (kind_of(field.name)) {
      case FieldKind::connection:
        upgrades = upgrades || list_has_token(field.value, "upgrade");
        names_fields = names_fields || names_any(field.value);
        break;
      case FieldKind::upgrade:
        wanted = wanted.data() == nullptr ? field.value : "";  // one field, not several
        break;
      case FieldKind::te:
        takes_trailers = takes_trailers || list_has_token(field.value, "trailers");
        break;
      case FieldKind::via:
        if (!loops()) break;
        note(ForwardFailure::loop);
        keeper.counters.loops.fetch_add(1, std::memory_order_relaxed);
        return 508;
      case FieldKind::passed:
        if (field.name.find('_') != field.name.npos && is_twin(request.headers, field.name, rules.request_drops)) {
          return 400;
        }
        break;
      default:
        break;
    }
  }
  if (request.framing == Framing::length && request.content_length > rules.max_body) return 413;
  asks_upgrade = upgrades && !wanted.empty() && request.minor == 1 && request.framing == Framing::none &&
                 request.method != Method::head && is_tunnel(wanted);
  return 0;
}

// choose_request_id notes the name of the request: the only X-Request-ID of a trusted peer, or a new one.
void Forwarding::choose_request_id() noexcept {
  constexpr std::size_t kMost = 64;
  std::string_view given;
  for (const Header& field : request.headers) {
    if (own.trusts_peer && is_request_id(field.name)) given = given.data() == nullptr ? field.value : "";
  }
  const auto sound = [](char c) { return c > ' ' && c < 0x7f && c != '"' && c != '\\' && c != ','; };
  if (given.empty() || given.size() > kMost || !std::ranges::all_of(given, sound)) {
    keeper.make_id(session.made_id_);
    given = {session.made_id_, sizeof session.made_id_};
  }
  session.log_id_ = given;
}

// loops tells whether the request has been here before.
bool Forwarding::loops() const noexcept {
  return std::ranges::any_of(request.headers, [this](const Header& field) {
    if (kind_of(field.name) != FieldKind::via) return false;
    std::string_view list = field.value;
    while (!list.empty()) {
      const std::string_view entry = until(list, ',');
      list.remove_prefix(std::min(entry.size() + 1, list.size()));
      // "1.1 name (comment)"
      const std::string_view rest = trim(entry);
      const std::string_view name = trim(after(rest, std::min(rest.find(' ') + 1, rest.size())));
      if (equals_ignoring_case(until(name, ' '), pseudonym())) return true;
    }
    return false;
  });
}

// client_name writes the peer's address without its port: "192.0.2.1", "[2001:db8::1]", or "unknown" of a Unix socket.
std::string_view Forwarding::client_name(std::span<char> text) noexcept {
  const auto address = exchange.peer_address();
  if (!address || address->family() == Address::Family::unix_path) return "unknown";
  if (address->family() == Address::Family::ipv4) {
    unsigned char parts[4];
    memcpy(parts, &reinterpret_cast<const sockaddr_in*>(address->get())->sin_addr, sizeof parts);
    char* end = text.data();
    for (const unsigned char part : parts) {
      end = write_decimal(end, part);
      *end++ = '.';
    }
    return {text.data(), end - 1};
  }
  const std::string_view whole = address->format(text);
  return first(whole, std::min(whole.rfind(':'), whole.size()));
}

// write_forwarded tells the upstream who asks, by what name and over what. Only a trusted peer is believed when it says
// so itself.
void Forwarding::write_forwarded(ResponseHead& head) noexcept {
  char text[64];
  const std::string_view name = client_name(text);
  const bool v6 = !name.empty() && name.front() == '[';
  const auto pass = [&](FieldKind kind, std::string_view separator) {
    bool any = false;
    if (!own.trusts_peer) return any;
    for (const Header& field : request.headers) {
      if (kind_of(field.name) != kind || field.value.empty()) continue;
      if (any && separator.empty()) break;
      if (any) head.fixed(separator);
      head.fixed(field.value);
      any = true;
    }
    return any;
  };
  head.fixed("X-Forwarded-For: ");
  if (pass(FieldKind::forwarded_for, ", ")) head.fixed(", ");
  head.fixed(v6 ? name.substr(1, name.size() - 2) : name);
  head.fixed("\r\nX-Forwarded-Proto: ");
  if (!pass(FieldKind::forwarded_proto, {})) head.fixed(exchange.secure() ? "https" : "http");
  head.fixed("\r\n");
  if (!request.authority.empty()) {
    head.fixed("X-Forwarded-Host: ");
    if (!pass(FieldKind::forwarded_host, {})) head.fixed(request.authority);
    head.fixed("\r\n");
  }
  if (!rules.sends_forwarded) return;
  head.fixed("Forwarded: ");
  if (pass(FieldKind::forwarded, ", ")) head.fixed(", ");
  head.fixed(v6 ? "for=\"" : "for=");
  head.fixed(name);
  head.fixed(v6 ? "\"" : "");
  if (!request.authority.empty()) {
    head.fixed(";host=\"");
    head.fixed(request.authority);
    head.fixed("\"");
  }
  head.fixed(exchange.secure() ? ";proto=https\r\n" : ";proto=http\r\n");
}

// write_request_head returns the head, or nothing where it does not fit.
std::string_view Forwarding::write_request_head(std::span<char> into) noexcept {
  ResponseHead head(into);
  head.fixed(request.method_text);
  head.fixed(" ");
  head.fixed(own.base);
  if (own.joins) head.fixed("/");
  head.fixed(request.path.substr(own.replaced));
  if (request.query.data() != nullptr) {
    head.fixed("?");
    head.fixed(request.query);
  }
  head.fixed(" HTTP/1.1\r\nHost: ");
  const std::string_view host = rules.host.empty() ? request.authority : rules.host;
  head.fixed(host.empty() ? "localhost" : host);
  head.fixed("\r\n");
  for (const Header& field : request.headers) {
    const FieldKind kind = kind_of(field.name);
    const bool passes = kind == FieldKind::passed || kind == FieldKind::via || kind == FieldKind::date ||
                        (kind == FieldKind::trailer && request.framing == Framing::chunked) ||
                        (kind == FieldKind::upgrade && asks_upgrade) ||
                        (kind == FieldKind::forwarded && own.trusts_peer && !rules.sends_forwarded) ||
                        (kind == FieldKind::forwarded_other && own.trusts_peer);
    if (!passes) continue;
    if (names_fields && is_named(request.headers, field, kind)) continue;
    if (!rules.request_drops.empty() && is_among(field.name, rules.request_drops)) continue;
    if (rules.request_id && is_request_id(field.name)) continue;
    head.field(field.name, field.value);
  }
  write_forwarded(head);
  head.fixed("Via: ");
  head.fixed(request.minor == 0 ? "1.0 " : "1.1 ");
  head.fixed(pseudonym());
  head.fixed("\r\n");
  head.fixed(rules.request_lines);
  if (rules.request_id) head.field("X-Request-ID", session.log_id_);
  if (request.framing == Framing::chunked) {
    head.fixed("Transfer-Encoding: chunked\r\n");
  } else if (request.framing == Framing::length || request.method == Method::post || request.method == Method::put ||
             request.method == Method::patch) {
    head.content_length(request.framing == Framing::length ? request.content_length : 0);
  }
  if (request.expects_continue) head.fixed("Expect: 100-continue\r\n");
  if (asks_upgrade) {
    head.fixed("Connection: Upgrade\r\n");
  } else if (takes_trailers) {
    head.fixed("TE: trailers\r\nConnection: TE\r\n");
  }
  return head.finish();
}

}  // namespace coir::http
