// Parameters that describe a request to an application. Declared in fastcgi/fastcgi_exchange.h.
#include <coir/format.h>

#include <algorithm>

#include "fastcgi/fastcgi_exchange.h"
#include "http/session/engine.h"
#include "http/text/characters.h"
#include "proxy/field_kind.h"

namespace coir::http {
namespace {

constexpr std::size_t kBegin = 2 * kFastCgiHeader;  // a begin_request record
constexpr std::uint8_t kResponder = 1, kKeeps = 1;
constexpr std::size_t kMostName = 96;

constexpr bool is_upper(char c) noexcept {
  return c >= 'A' && c <= 'Z';
}

// write_name makes "HTTP_USER_AGENT" of "User-Agent"; empty: the name has no such form, or only one that others have too.
std::string_view write_name(std::string_view name, std::span<char, kMostName> into) noexcept {
  constexpr std::string_view kPrefix = "HTTP_";
  if (name.size() + kPrefix.size() > into.size()) return {};
  char* end = std::ranges::copy(kPrefix, into.data()).out;
  for (const char c : name) {
    if (c >= 'a' && c <= 'z') {
      *end++ = static_cast<char>(c - 'a' + 'A');
    } else if (is_upper(c) || is_digit(c)) {
      *end++ = c;
    } else if (c == '-') {
      *end++ = '_';
    } else {
      return {};
    }
  }
  return {into.data(), end};
}

// is_told tells whether a field becomes a parameter of its own.
bool is_told(const Request& request, const Header& field, bool names_fields) noexcept {
  const FieldKind kind = kind_of(field.name);
  if (kind != FieldKind::passed && kind != FieldKind::host && kind != FieldKind::via && kind != FieldKind::date) {
    return false;
  }
  if (equals_ignoring_case(field.name, "Proxy") || equals_ignoring_case(field.name, "Content-Type") ||
      equals_ignoring_case(field.name, "Content-Length")) {
    return false;
  }
  return !names_fields || !is_named(request.headers, field, kind);
}

}  // namespace

// is_given tells whether the program gives a parameter of that name itself. add leaves such a one to the program.
bool FastCgiExchange::is_given(std::string_view name) const noexcept {
  return std::ranges::any_of(rules.params, [&](const FastCgiParam& each) { return each.name == name; });
}

void FastCgiExchange::add(FastCgiParams& params, std::string_view name, std::string_view value) const noexcept {
  if (!is_given(name)) params.add(name, value);
}

// write_address says who asks.
void FastCgiExchange::write_address(FastCgiParams& params) noexcept {
  char text[64];
  const auto address = exchange.peer_address();
  if (!address || address->family() == Address::Family::unix_path) return add(params, "REMOTE_ADDR", "");
  const std::string_view whole = address->format(text);
  const std::size_t colon = std::min(whole.rfind(':'), whole.size());
  std::string_view host = whole.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  add(params, "REMOTE_ADDR", host);
  add(params, "REMOTE_PORT", after(whole, std::min(colon + 1, whole.size())));
}

// write_fields passes the request's fields on, those of one name as one.
void FastCgiExchange::write_fields(FastCgiParams& params) noexcept {
  bool names_fields = false;
  for (const Header& field : request.headers) {
    if (kind_of(field.name) == FieldKind::connection) names_fields = names_fields || names_any(field.value);
  }
  for (const Header& field : request.headers) {
    if (!is_told(request, field, names_fields)) continue;
    char memory[kMostName];
    const std::string_view name = write_name(field.name, memory);
    const auto same = [&](const Header& other) { return equals_ignoring_case(other.name, field.name); };
    if (name.empty() || is_given(name) || &*std::ranges::find_if(request.headers, same) != &field) continue;
    params.begin(name);
    const std::string_view separator = equals_ignoring_case(field.name, "Cookie") ? "; " : ", ";
    bool first = true;
    for (const Header& other : request.headers) {
      if (!same(other)) continue;
      if (!std::exchange(first, false)) params.append(separator);
      params.append(other.value);
    }
    params.end();
  }
}

std::string_view FastCgiExchange::write_beginning(std::span<char> into) noexcept {
  const std::size_t behind = kFastCgiHeader * 2;
  if (into.size() <= kBegin + kFastCgiHeader + behind) return {};
  const std::span<char> place = into.subspan(kBegin + kFastCgiHeader, into.size() - kBegin - kFastCgiHeader - behind);
  FastCgiParams params(place.first(std::min(place.size(), kMostFastCgiContent)));
  const auto add = [&](std::string_view name, std::string_view value) { this->add(params, name, value); };
  const auto join = [&](std::string_view name, std::initializer_list<std::string_view> parts) {
    if (is_given(name)) return;
    params.begin(name);
    for (const std::string_view part : parts) params.append(part);
    params.end();
  };
  const std::string_view query = request.query;
  const bool has_query = query.data() != nullptr;
  add("GATEWAY_INTERFACE", "CGI/1.1");
  add("SERVER_SOFTWARE", "coir");
  add("SERVER_PROTOCOL", request.minor == 0 ? "HTTP/1.0" : "HTTP/1.1");
  add("REQUEST_METHOD", request.method_text);
  join("REQUEST_URI", {request.path, has_query ? "?" : "", query});
  add("QUERY_STRING", query);
  add("SCRIPT_NAME", script.name);
  if (!script.info.empty()) add("PATH_INFO", script.info);
  add("DOCUMENT_ROOT", rules.root);
  join("SCRIPT_FILENAME", {rules.root, script.name});
  // php-cgi refuses to run without.
  add("REDIRECT_STATUS", "200");
  const bool secure = exchange.secure();
  add("REQUEST_SCHEME", secure ? "https" : "http");
  if (secure) add("HTTPS", "on");
  const std::string_view host = request.authority;
  const std::size_t colon = host.rfind(':');
  const bool has_port = colon != host.npos && host.find(']', colon) == host.npos;
  const std::string_view name = has_port ? host.substr(0, colon) : host;
  add("SERVER_NAME", name.empty() ? "localhost" : name);
  // A client chooses the text of Host, but not the listener's port. A Unix socket has no port.
  char digits[24];
  const auto own = session.connection_->stream.tcp().local_address();
  const bool by_port = own && own->family() != Address::Family::unix_path;
  add("SERVER_PORT", by_port ? format(digits, own->port()) : secure ? "443" : "80");
  write_address(params);
  const std::string_view type = request.header("Content-Type");
  if (!type.empty()) add("CONTENT_TYPE", type);
  if (request.framing != Framing::none) add("CONTENT_LENGTH", format(digits, input_bytes));
  write_fields(params);
  for (const FastCgiParam& each : rules.params) params.add(each.name, each.value);
  if (!params.fits()) return {};

  char* at = into.data();
  const auto record = [&](FastCgiType type_of, std::size_t bytes) {
    write_fastcgi_header(std::span<char, kFastCgiHeader>(at, kFastCgiHeader), type_of, id, bytes);
    at += kFastCgiHeader;
  };
  record(FastCgiType::begin_request, kFastCgiHeader);
  std::fill_n(at, kFastCgiHeader, '\0');
  at[1] = kResponder;
  at[2] = static_cast<char>(rules.keep ? kKeeps : 0);
  at += kFastCgiHeader;
  record(FastCgiType::params, params.size());
  at += params.size();
  record(FastCgiType::params, 0);
  if (input_bytes == 0) record(FastCgiType::input, 0);
  return {into.data(), at};
}

}  // namespace coir::http
