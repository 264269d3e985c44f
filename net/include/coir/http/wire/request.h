#pragma once

// The head of a request, checked, in the caller's memory.
//
//   Header fields[16];
//   Request request;
//   const auto parsed = parse_head("GET / HTTP/1.1\r\nHost: board\r\n\r\n", 0, fields, {}, request);
//   show(parsed.state, request.path);

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace coir::http {

// Method is what a request asks for. Any token but CONNECT, which parse_head refuses with 501, is a method; for one that
// has no name here, such as PROPFIND, Request::method_text says which it is.
enum class Method : std::uint8_t { get, head, post, put, del, options, patch, trace, other };

// is_idempotent tells whether a request may be made again if it is unknown whether it has been carried out (RFC 9110,
// 9.2.2). It is false for a method without a name.
constexpr bool is_idempotent(Method method) noexcept {
  return method != Method::post && method != Method::patch && method != Method::other;
}

// Framing says how the end of a request's content is found. There is no "until close" for requests.
enum class Framing : std::uint8_t { none, length, chunked };

// Form is the shape of the request target (RFC 9112, 3.2). Authority-form belongs to CONNECT and is never accepted.
enum class Form : std::uint8_t { origin, absolute, asterisk };

// Header is one field line of the head. Both views point into the bytes given to parse_head; the value has no white
// space around it. An array of them is the caller's memory: 32 bytes each.
struct Header {
  std::string_view name;
  std::string_view value;
};

// Limits bounds one request. max_headers is the size of the storage given to parse_head.
struct Limits {
  std::uint32_t max_target = 4096;       // over it: 414
  std::uint32_t max_head_bytes = 8192;   // over it: 431, or 414 when the request line alone fills it
  std::uint64_t max_body = 1024 * 1024;  // a Content-Length over it: 413
};

// Request is a parsed and checked request head: nothing in it needs to be validated again. It owns nothing; every view
// points into the bytes given to parse_head and is valid as long as they stay where they are. A default view (data() ==
// nullptr) means absent. 216 bytes, trivially copyable.
struct Request {
  Method method = Method::get;
  Form form = Form::origin;
  std::uint8_t minor = 1;         // 0 or 1: HTTP/1.2 and later are treated as 1.1
  bool keep_alive = true;         // what version and Connection say; the server may still close
  bool expects_continue = false;  // only from an HTTP/1.1 client that has content to send
  bool https = false;             // an absolute-form target with this scheme: Server answers 421 over plain
  bool asks_websocket = false;    // Upgrade names it
  Framing framing = Framing::none;
  std::uint64_t content_length = 0;  // with Framing::length

  std::string_view method_text;
  std::string_view target;  // as received
  std::string_view path;    // begins with '/', still percent-encoded (well-formed, no %00); "*" with Form::asterisk
  std::string_view query;   // after the first '?', without it; absent when there is no '?'
  std::string_view
      authority;  // host and port: the target's in absolute-form, else the Host field's; absent only in HTTP/1.0
  std::span<const Header> headers;

  // The fields that steer a GET, found in the one pass over the head. If a field that may occur once occurs twice, its
  // view is present and empty, which is no valid date, range or tag: no reader can say which of the two was meant.
  // If-Match and If-None-Match are lists; `repeated` tells that one of them has more lines than the recorded first.
  std::string_view if_match;
  std::string_view if_none_match;
  std::string_view if_modified_since;
  std::string_view if_unmodified_since;
  std::string_view if_range;
  std::string_view range;
  bool repeated = false;

  // header returns the first value of the field called `name` (compared without case), or an absent view. Linear: for
  // what parse_head has not recorded already.
  std::string_view header(std::string_view name) const noexcept;
};

enum class ParseState : std::uint8_t { complete, incomplete, bad };

// ParseResult is what parse_head found. `status` is the response a bad head deserves: 400, 413, 414, 417, 431, 501 or
// 505. After a bad head the end of the request is unknown: answer and close. `head_bytes` is set when complete: content
// or the next request begins there.
struct ParseResult {
  ParseState state = ParseState::incomplete;
  std::uint16_t status = 0;
  std::uint32_t head_bytes = 0;
};

// parse_head reads one request head from the start of `bytes`, which may hold less than a head or more than one. Call
// it again with the same bytes and more as long as it returns incomplete; `already_seen` is how many bytes the previous
// call had (0 at first), so that a head delivered one byte at a time is not parsed quadratically. How the bytes were
// cut does not change the answer, only how soon a bad head is found out: at the latest when its end has come. Bytes
// after the head are neither read nor changed. `storage` receives the header lines (at most 255 are used; more lines
// than entries: 431). `request` has meaning only when complete.
//
// At most two empty lines before the request line are skipped. Every decision on RFC 9110 and 9112 stands in
// net/src/http/README.md and in a test named after it. From any context; no allocation; about 10 instructions a byte.
[[nodiscard]] ParseResult parse_head(std::string_view bytes, std::size_t already_seen, std::span<Header> storage,
                                     const Limits& limits, Request& request) noexcept;

// method_name returns the token of `method` ("DELETE"); empty for Method::other.
std::string_view method_name(Method method) noexcept;

// equals_ignoring_case compares ASCII text without case, as field names and most tokens are compared.
bool equals_ignoring_case(std::string_view a, std::string_view b) noexcept;

// list_has_token tells whether a comma-separated list (Connection, Upgrade) holds `token`, compared without case.
bool list_has_token(std::string_view list, std::string_view token) noexcept;

}  // namespace coir::http
