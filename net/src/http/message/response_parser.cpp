#include "http/message/response_parser.h"

#include <picohttpparser.h>

#include <algorithm>
#include <new>
#include <optional>

#include "http/message/framing.h"
#include "http/text/characters.h"

namespace coir::http {
namespace {

// The parser writes its own records into the caller's storage; each is then replaced by a Header in the same place.
static_assert(sizeof(Header) >= sizeof(phr_header) && alignof(Header) >= alignof(phr_header));

constexpr ResponseResult kBad{.state = ResponseState::bad};

struct StatusLine {
  ResponseState state = ResponseState::bad;
  std::size_t bytes = 0;  // when complete: the fields begin there
};

// read_status_line reads "HTTP/1.1 200 OK", of which the reason, with or without the blank in front, may be missing.
StatusLine read_status_line(std::string_view bytes, ParsedResponse& response) noexcept {
  constexpr std::string_view form = "HTTP/1.d ddd";
  const std::size_t known = std::min(bytes.size(), form.size());
  for (std::size_t at = 0; at < known; ++at) {
    if (form[at] == 'd' ? !is_digit(bytes[at]) : bytes[at] != form[at]) return {};
  }
  std::size_t end = form.size();
  if (end < bytes.size() && bytes[end] != ' ' && bytes[end] != '\r') return {};
  // A reason is text: blanks, visible characters and what lies beyond ASCII.
  while (end < bytes.size() && (is_space(bytes[end]) || static_cast<unsigned char>(bytes[end]) > ' ') &&
         bytes[end] != '\x7f') {
    ++end;
  }
  if ((end < bytes.size() && bytes[end] != '\r') || (end + 1 < bytes.size() && bytes[end + 1] != '\n')) return {};
  if (end + 1 >= bytes.size()) return {.state = ResponseState::incomplete};
  response.minor = bytes[7] == '0' ? 0 : 1;
  response.status = static_cast<std::uint16_t>((bytes[9] - '0') * 100 + (bytes[10] - '0') * 10 + (bytes[11] - '0'));
  if (response.status < 100) return {};
  response.reason = trim(first(after(bytes, form.size()), end - form.size()));
  return {.state = ResponseState::complete, .bytes = end + 2};
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
bool read_framing(const Framed& framed, AnswerTo to, ParsedResponse& response) noexcept {
  response.end = ContentEnd::none;
  if (to == AnswerTo::connect && response.status >= 200 && response.status < 300) return true;
  if (framed.lengths > 1 || (framed.lengths != 0 && framed.codings.any())) return false;
  if (framed.lengths != 0 && !read_content_length(framed.length, response.content_length)) return false;
  if (framed.codings.any() && (response.minor == 0 || framed.codings.status() != 0)) return false;
  if (to == AnswerTo::head || response.status < 200 || response.status == 204 || response.status == 304) return true;
  if (framed.codings.any()) {
    response.end = ContentEnd::chunked;
  } else if (framed.lengths == 0) {
    response.end = ContentEnd::close;
    response.keep_alive = false;
  } else if (response.content_length != 0) {
    response.end = ContentEnd::length;
  }
  return true;
}

// read_fields turns the parser's records, of which each is a line, into fields; what continues a line is joined to it.
// No value: a line ends in a bare LF.
std::optional<std::size_t> read_fields(std::span<Header> lines) noexcept {
  std::size_t count = 0;
  for (Header& slot : lines) {
    const phr_header raw = *reinterpret_cast<const phr_header*>(&slot);
    if (raw.value[raw.value_len] != '\r') return std::nullopt;
    std::string_view name(raw.name, raw.name_len), value(raw.value, raw.value_len);
    if (raw.name == nullptr) {
      const Header& before = lines[--count];
      name = before.name;
      // The bytes between are a line's end and blanks: they are the caller's to be written to.
      for (const char* at = before.value.data() + before.value.size(); at != raw.value; ++at) {
        if (!is_space(*at)) *const_cast<char*>(at) = ' ';
      }
      value = {before.value.data(), static_cast<std::size_t>(raw.value + raw.value_len - before.value.data())};
    }
    ::new (&lines[count++]) Header{name, value};
  }
  return count;
}

}  // namespace

ResponseResult parse_response(std::span<char> room, std::size_t already_seen, std::span<Header> storage, AnswerTo to,
                              ParsedResponse& response) noexcept {
  const std::string_view bytes(room.data(), room.size());
  response = ParsedResponse{};
  const StatusLine line = read_status_line(bytes, response);
  if (line.state != ResponseState::complete) return {line.state};
  const std::string_view rest = after(bytes, line.bytes);
  // The parser looks for the end of the head in what it has not seen. A head without fields ends in its first bytes.
  const std::size_t seen = already_seen > line.bytes && !rest.starts_with('\r') ? already_seen - line.bytes : 0;
  const std::size_t most = std::min<std::size_t>(storage.size(), 255);
  std::size_t count = most;
  const int size =
      phr_parse_headers(rest.data(), rest.size(), reinterpret_cast<phr_header*>(storage.data()), &count, seen);
  if (size == -2) return {};
  if (size < 0) return count == most ? ResponseResult{ResponseState::too_many_fields} : kBad;
  // The head ends in CRLF CRLF, the first of which may be the status line's.
  const std::size_t head_size = line.bytes + static_cast<std::size_t>(size);
  if (bytes[head_size - 2] != '\r') return kBad;
  const auto fields = read_fields(storage.first(count));
  if (!fields) return kBad;
  response.headers = storage.first(*fields);
  Framed framed;
  for (Header& field : storage.first(*fields)) {
    field.value = trim(field.value);
    classify(framed, field);
  }
  response.keep_alive = !framed.close && (response.minor != 0 || framed.stay);
  if (!read_framing(framed, to, response)) return kBad;
  return {ResponseState::complete, static_cast<std::uint32_t>(head_size)};
}

std::string_view ParsedResponse::header(std::string_view name) const noexcept {
  for (const Header& line : headers) {
    if (line.name.size() == name.size() && equals_ignoring_case(line.name, name)) return line.value;
  }
  return {};
}

}  // namespace coir::http
