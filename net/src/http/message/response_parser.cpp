#include "http/message/response_parser.h"

#include <picohttpparser.h>

#include <algorithm>
#include <new>

#include "http/message/characters.h"
#include "http/message/framing.h"

namespace coir::http {
namespace {

// The parser writes its own records into the caller's storage; each is then replaced by a Header in the same place.
static_assert(sizeof(Header) >= sizeof(phr_header) && alignof(Header) >= alignof(phr_header));

constexpr ResponseResult kBad{.state = ResponseState::bad};

// begins_as_one tells whether these may be the first bytes of a response; the parser waits for nine of them.
bool begins_as_one(std::string_view bytes) noexcept {
  constexpr std::string_view begin = "HTTP/1.";
  const std::size_t size = std::min(bytes.size(), begin.size());
  return first(bytes, size) == first(begin, size) &&
         first(bytes, std::min<std::size_t>(bytes.size(), 9)).find('\n') == std::string_view::npos;
}

struct Framed {
  TransferCodings codings;
  std::string_view length;
  unsigned lengths = 0;
  bool close = false;
  bool stay = false;
};

void classify(Framed& framed, const Header& line) noexcept {
  const char* const name = line.name.data();
  if (line.name.size() == 14 && same_name(name, "content-length")) {
    framed.length = line.value;
    ++framed.lengths;
  } else if (line.name.size() == 17 && same_name(name, "transfer-encoding")) {
    framed.codings.add_line(line.value);
  } else if (line.name.size() == 10 && same_name(name, "connection")) {
    framed.close = framed.close || list_has_token(line.value, "close");
    framed.stay = framed.stay || list_has_token(line.value, "keep-alive");
  }
}

// read_framing decides where the content ends. False: two readers could find two ends.
bool read_framing(const Framed& framed, bool no_content, ParsedResponse& response) noexcept {
  if (framed.lengths > 1 || (framed.lengths != 0 && framed.codings.any())) return false;
  if (framed.lengths != 0 && !read_content_length(framed.length, response.content_length)) return false;
  if (framed.codings.any() && (response.minor == 0 || framed.codings.status() != 0)) return false;
  if (no_content || response.status < 200 || response.status == 204 || response.status == 304) {
    response.end = ContentEnd::none;
  } else if (framed.codings.any()) {
    response.end = ContentEnd::chunked;
  } else if (framed.lengths != 0) {
    response.end = response.content_length != 0 ? ContentEnd::length : ContentEnd::none;
  } else {
    response.end = ContentEnd::close;
    response.keep_alive = false;
  }
  return true;
}

}  // namespace

ResponseResult parse_response(std::string_view bytes, std::size_t already_seen, std::span<Header> storage,
                              bool no_content, ParsedResponse& response) noexcept {
  if (!begins_as_one(bytes)) return kBad;
  const std::size_t most = std::min<std::size_t>(storage.size(), 255);
  std::size_t lines = most;
  int minor = 0;
  int status = 0;
  const char* reason = nullptr;
  std::size_t reason_size = 0;
  const int size = phr_parse_response(bytes.data(), bytes.size(), &minor, &status, &reason, &reason_size,
                                      reinterpret_cast<phr_header*>(storage.data()), &lines, already_seen);
  if (size == -2) return {};
  if (size < 0) return reason != nullptr && lines == most ? ResponseResult{ResponseState::too_many_fields} : kBad;
  // The head ends in CRLF CRLF, and the line of the status in CRLF.
  if (status < 100 || status > 999 || bytes[static_cast<std::size_t>(size) - 2] != '\r' ||
      reason[reason_size] != '\r') {
    return kBad;
  }

  response = ParsedResponse{};
  response.status = static_cast<std::uint16_t>(status);
  response.minor = minor == 0 ? 0 : 1;
  response.reason = {reason, reason_size};
  response.headers = storage.first(lines);
  Framed framed;
  for (Header& slot : storage.first(lines)) {
    const phr_header raw = *reinterpret_cast<const phr_header*>(&slot);
    if (raw.name == nullptr || raw.value[raw.value_len] != '\r') return kBad;
    std::size_t value_size = raw.value_len;
    while (value_size != 0 && is_space(raw.value[value_size - 1])) --value_size;
    const Header* const line = ::new (&slot) Header{{raw.name, raw.name_len}, {raw.value, value_size}};
    classify(framed, *line);
  }
  response.keep_alive = !framed.close && (response.minor != 0 || framed.stay);
  if (!read_framing(framed, no_content, response)) return kBad;
  return {ResponseState::complete, static_cast<std::uint32_t>(size)};
}

std::string_view ParsedResponse::header(std::string_view name) const noexcept {
  for (const Header& line : headers) {
    if (line.name.size() == name.size() && equals_ignoring_case(line.name, name)) return line.value;
  }
  return {};
}

}  // namespace coir::http
