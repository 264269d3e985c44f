#include <coir/format.h>
#include <coir/http/authorization.h>

#include "http/message/origin.h"
#include "http/text/characters.h"
#include "mcp/server/incoming.h"

namespace coir::mcp {
namespace {

// gate.cpp: who may ask, for incoming.h.

using http::Request;

// challenge says where to get a token.
[[gnu::noinline]] void challenge(const McpServerOptions& options, http::Exchange& exchange, bool given,
                                 Verdict verdict) noexcept {
  char room[512];
  Formatter out(room);
  out.add("WWW-Authenticate: Bearer");
  const char* comma = " ";
  if (given) {
    out.add(comma, verdict == Verdict::forbidden ? "error=\"insufficient_scope\"" : "error=\"invalid_token\"");
    comma = ", ";
  }
  if (!options.scopes.empty()) {
    out.add(comma, "scope=\"");
    comma = "";
    for (const std::string_view scope : options.scopes) {
      out.add(comma, scope);
      comma = " ";
    }
    out.add("\"");
    comma = ", ";
  }
  if (!options.resource_url.empty()) {
    // https://host/path has its document at https://host/.well-known/oauth-protected-resource/path.
    const std::size_t scheme = options.resource_url.find("://");
    const std::size_t path = options.resource_url.find('/', scheme == std::string_view::npos ? 0 : scheme + 3);
    out.add(comma, "resource_metadata=\"", options.resource_url.substr(0, path),
            "/.well-known/oauth-protected-resource",
            path == std::string_view::npos ? std::string_view() : options.resource_url.substr(path), "\"");
  }
  out.add("\r\n");
  const bool forbidden = verdict == Verdict::forbidden;
  answer_plain(exchange, forbidden ? 403 : 401, {}, kInvalidRequest,
               forbidden ? "the token does not allow this" : "a token is wanted", {},
               out.fits() ? out.text() : std::string_view("WWW-Authenticate: Bearer\r\n"));
}

// turn_away answers a request that is not allowed.
[[gnu::noinline]] void turn_away(const McpServerOptions& options, http::Exchange& exchange, bool given, Verdict verdict,
                                 const Principal& who) noexcept {
  if (options.audit) {
    Audit line{.who = who.name(), .method = {}, .name = {}, .outcome = "unknown", .code = 401};
    if (verdict == Verdict::forbidden) line.outcome = "forbidden", line.code = 403;
    if (verdict == Verdict::unavailable) line.outcome = "unavailable", line.code = 503;
    options.audit(line);
  }
  if (verdict != Verdict::unavailable) return challenge(options, exchange, given, verdict);
  answer_plain(exchange, 503, {}, kBusy, "the token cannot be judged now: try again later", {}, "Retry-After: 1\r\n");
}

}  // namespace

AcceptedTypes accepted_types(const Request& request) noexcept {
  AcceptedTypes types{};
  bool any = false;
  const auto take = [&types](std::string_view range) {
    const auto fits = [range](std::string_view type) {
      return range == "*/*" || http::equals_ignoring_case(range, type) ||
             (range.ends_with("/*") && http::begins_ignoring_case(type, http::first(range, range.size() - 1)));
    };
    types.json = types.json || fits("application/json");
    types.events = types.events || fits("text/event-stream");
  };
  for (const http::Header& line : request.headers) {
    if (!http::equals_ignoring_case(line.name, "accept")) continue;
    any = true;
    // Byte by byte: the names are short.
    std::string_view rest = line.value;
    std::size_t name_bytes = 0;
    bool named = true;
    for (std::size_t at = 0; at < rest.size();) {
      const char c = rest[at++];
      if (c == ',') {
        take(http::trim(http::first(rest, name_bytes)));
        rest = http::after(rest, at);
        at = name_bytes = 0;
        named = true;
      } else if (c == ';') {
        named = false;
      } else if (named) {
        name_bytes = at;
      }
    }
    take(http::trim(http::first(rest, name_bytes)));
  }
  return any ? types : AcceptedTypes{.json = true, .events = true};
}

bool pass(ServerCore& core, http::Exchange& exchange, Principal& who) noexcept {
  const McpServerOptions& options = core.options;
  const Request& request = exchange.request();
  if (!http::is_allowed_origin(request, exchange.secure(), options.allow_origins)) {
    answer_plain(exchange, 403, {}, kInvalidRequest, "the origin is not allowed");
    return false;
  }
  if (options.authorize || !options.token.empty()) {
    const std::string_view token = http::bearer_token(request);
    Verdict verdict;
    if (options.authorize) {
      verdict = options.authorize(request, token, who);
    } else {
      verdict =
          token.data() != nullptr && http::same_secret(token, options.token) ? Verdict::allowed : Verdict::unknown;
    }
    if (verdict != Verdict::allowed) {
      turn_away(options, exchange, token.data() != nullptr, verdict, who);
      return false;
    }
  }
  if (core.may_ask(who)) return true;
  answer_plain(exchange, 429, {}, kBusy, kTooMany, {}, "Retry-After: 1\r\n");
  return false;
}

}  // namespace coir::mcp
