#pragma once

#include <coir/http/wire/request.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace coir::http {

// ContentEnd says how the end of a response's content is found (RFC 9112, 6.3).
enum class ContentEnd : std::uint8_t { none, length, chunked, close };

// AnswerTo is the method that is answered, as far as it changes where content ends.
enum class AnswerTo : std::uint8_t { other, head, connect };

// ParsedResponse is a response head, parsed and checked. Its views point into the bytes given to parse_response.
struct ParsedResponse {
  std::uint16_t status = 0;  // 100 to 999
  std::uint8_t minor = 1;    // 0 or 1
  ContentEnd end = ContentEnd::none;
  bool keep_alive = false;           // what version and Connection say
  std::uint64_t content_length = 0;  // with ContentEnd::length
  std::string_view reason;
  std::span<const Header> headers;

  // header returns the first value of the field called `name`, compared without case, or an absent view.
  std::string_view header(std::string_view name) const noexcept;
};

enum class ResponseState : std::uint8_t { complete, incomplete, bad, too_many_fields };

struct ResponseResult {
  ResponseState state = ResponseState::incomplete;
  std::uint32_t head_bytes = 0;  // when complete: content begins there
};

// parse_response reads one response head from the start of `bytes`, as parse_head reads a request's: called again with
// the same bytes and more until it answers something else than incomplete, `already_seen` bytes of them known from
// before. `storage` receives the fields, 255 at most. A field of several lines becomes one (RFC 9112, 5.2): its line ends
// turn into blanks, in `bytes`. A status line may end behind the status.
//
// A response with a bare LF, two lengths (equal ones too), a length beside a coding, a coding other than `chunked` alone,
// or a coding in HTTP/1.0 is bad: whoever stands between might find its end elsewhere. None of that counts where a
// proxy consents to CONNECT, by 2xx: no content is behind it (RFC 9110, 9.3.6). No allocation.
[[nodiscard]] ResponseResult parse_response(std::span<char> bytes, std::size_t already_seen, std::span<Header> storage,
                                            AnswerTo to, ParsedResponse& response) noexcept;

}  // namespace coir::http
