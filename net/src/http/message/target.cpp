#include "http/message/target.h"

#include "http/text/characters.h"

namespace coir::http {
namespace {

// split_origin checks what begins with '/' and parts it at the first '?'. The path must be well percent-encoded, for
// somebody will decode it; in a query a stray '%' is common and harmless. %00 is refused in both: sooner or later it
// meets a C string.
bool split_origin(std::string_view text, Request& request) noexcept {
  const char* const end = text.data() + text.size();
  const char* question = nullptr;
  for (const char* at = text.data(); at != end; ++at) {
    if (!is(*at, kTargetStop)) [[likely]]
      continue;
    if (*at == '%') {
      const int byte = escaped_byte({at, end});
      if (byte == 0 || (byte < 0 && question == nullptr)) return false;
    } else if (*at == '?') {
      if (question == nullptr) question = at;
    } else {
      return false;
    }
  }
  request.path = text;
  if (question != nullptr) {
    request.path = {text.data(), question};
    request.query = {question + 1, end};
  }
  return true;
}

// A name of DNS has 253 bytes at most (RFC 1035, 2.3.4).
constexpr std::ptrdiff_t kMostHost = 255;

// An empty path means "/", but "*" for OPTIONS, which is how a client asks through a proxy about the server as a whole
// (RFC 9112, 3.2.4).
bool read_absolute(Request& request) noexcept {
  std::string_view rest = request.target;
  if (begins_ignoring_case(rest, "http://")) {
    rest.remove_prefix(7);
  } else if (begins_ignoring_case(rest, "https://")) {
    rest.remove_prefix(8);
    request.https = true;
  } else {
    return false;
  }
  const std::size_t authority_end = std::min(rest.find_first_of("/?"), rest.size());
  request.authority = first(rest, authority_end);
  if (!is_authority(request.authority)) return false;
  rest.remove_prefix(authority_end);
  request.form = Form::absolute;
  if (!split_origin(rest, request)) return false;
  if (request.path.empty()) request.path = "/";
  if (rest.empty() && request.method == Method::options) {
    request.form = Form::asterisk;
    request.path = "*";
  }
  return true;
}

}  // namespace

bool read_target(Request& request) noexcept {
  const std::string_view target = request.target;
  if (target.empty()) return false;
  if (target[0] == '/') [[likely]] {
    request.form = Form::origin;
    return split_origin(target, request);
  }
  if (target == "*") {
    request.form = Form::asterisk;
    request.path = target;
    return request.method == Method::options;
  }
  return read_absolute(request);
}

bool is_authority(std::string_view text) noexcept {
  const char* at = text.data();
  const char* const end = at + text.size();
  const char* const host = at;
  if (at != end && *at == '[') {
    int colons = 0;
    for (++at; at != end && (is(*at, kHex) || *at == ':' || *at == '.'); ++at) colons += *at == ':';
    if (at == end || *at != ']' || colons < 2) return false;
    ++at;
  } else {
    for (;; at += 3) {
      while (at != end && is(*at, kHostName)) ++at;
      if (at == end || *at == ':') break;
      if (escaped_byte({at, end}) <= 0) return false;
    }
  }
  if (at == host || at - host > kMostHost) return false;
  if (at == end) return true;
  if (*at++ != ':' || end - at > 5) return false;
  unsigned port = 0;
  for (; at != end; ++at) {
    if (!is_digit(*at)) return false;
    port = port * 10 + static_cast<unsigned>(*at - '0');
  }
  return port <= 65535;
}

}  // namespace coir::http
