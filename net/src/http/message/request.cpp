#include <coir/http/wire/request.h>
#include <picohttpparser.h>

#include <algorithm>
#include <new>

#include "http/message/framing.h"
#include "http/message/head_error.h"
#include "http/message/target.h"
#include "http/text/characters.h"

namespace coir::http {
namespace {

// The parser writes its own records into the caller's storage; each is then replaced by a Header in the same place.
static_assert(sizeof(Header) >= sizeof(phr_header) && alignof(Header) >= alignof(phr_header));
static_assert(std::is_trivially_copyable_v<Header> && std::is_trivially_copyable_v<Request>);
static_assert(sizeof(void*) != 8 || sizeof(Request) == 216);

constexpr ParseResult bad(std::uint16_t status) {
  return {.state = ParseState::bad, .status = status};
}

// Fields collects, in one pass over the lines, what the checks after it need.
struct Fields {
  std::string_view host;
  std::string_view content_length;
  TransferCodings codings;
  unsigned hosts = 0;
  unsigned content_lengths = 0;
  bool close = false;
  bool stay = false;
  bool expects = false;
  bool expects_the_unknown = false;
};

// once records a field that may occur once: of two, neither counts, and an empty value is none.
void once(std::string_view& slot, std::string_view value) {
  slot = slot.data() == nullptr ? value : first(value, 0);
}

// list records the first line of a field that may have several.
void list(Request& request, std::string_view& slot, std::string_view value) {
  if (slot.data() == nullptr) {
    slot = value;
  } else {
    request.repeated = true;
  }
}

void connection(Fields& fields, std::string_view value) {
  if (value.size() == 10 && equals_ignoring_case(value, "keep-alive")) {
    fields.stay = true;
    return;
  }
  fields.close = fields.close || list_has_token(value, "close");
  fields.stay = fields.stay || list_has_token(value, "keep-alive");
}

// classify looks at the length of the name first, so that a field nobody asks about costs a jump.
void classify(Fields& fields, Request& request, const Header& line) {
  const char* const name = line.name.data();
  const std::string_view value = line.value;
  switch (line.name.size()) {
    case 4:
      if (same_name(name, "host")) {
        fields.host = value;
        ++fields.hosts;
      }
      break;
    case 5:
      if (same_name(name, "range")) once(request.range, value);
      break;
    case 6:
      if (same_name(name, "expect")) {
        fields.expects = true;
        if (!equals_ignoring_case(value, "100-continue")) fields.expects_the_unknown = true;
      }
      break;
    case 7:
      if (same_name(name, "upgrade") && list_has_token(value, "websocket")) request.asks_websocket = true;
      break;
    case 8:
      if (same_name(name, "if-match")) list(request, request.if_match, value);
      if (same_name(name, "if-range")) once(request.if_range, value);
      break;
    case 10:
      if (same_name(name, "connection")) connection(fields, value);
      break;
    case 13:
      if (same_name(name, "if-none-match")) list(request, request.if_none_match, value);
      break;
    case 14:
      if (same_name(name, "content-length")) {
        fields.content_length = value;
        ++fields.content_lengths;
      }
      break;
    case 17:
      if (same_name(name, "transfer-encoding")) fields.codings.add_line(value);
      if (same_name(name, "if-modified-since")) once(request.if_modified_since, value);
      break;
    case 19:
      if (same_name(name, "if-unmodified-since")) once(request.if_unmodified_since, value);
      break;
    default:
      break;
  }
}

// read_method is false where the method is none of those that have names.
bool read_method(std::string_view text, Method& method) {
  const auto is_method = [&](std::string_view token, Method value) {
    if (text != token) return false;
    method = value;
    return true;
  };
  switch (text.size()) {
    case 3:
      return is_method("GET", Method::get) || is_method("PUT", Method::put);
    case 4:
      return is_method("HEAD", Method::head) || is_method("POST", Method::post);
    case 5:
      return is_method("PATCH", Method::patch) || is_method("TRACE", Method::trace);
    case 6:
      return is_method("DELETE", Method::del);
    case 7:
      return is_method("OPTIONS", Method::options);
    default:
      return false;
  }
}

// read_lines turns the parser's records into Headers and refuses what the parser lets pass: folded lines and a bare LF
// as the end of a line. A bare LF is refused because a proxy in front that does not take it for a line end sees other
// fields than we.
bool read_lines(std::span<Header> lines, Fields& fields, Request& request) {
  for (Header& slot : lines) {
    const phr_header raw = *reinterpret_cast<const phr_header*>(&slot);
    if (raw.name == nullptr || raw.value[raw.value_len] != '\r') return false;
    std::size_t size = raw.value_len;
    while (size != 0 && is_space(raw.value[size - 1])) --size;
    Header* const line = ::new (&slot) Header{{raw.name, raw.name_len}, {raw.value, size}};
    classify(fields, request, *line);
  }
  return true;
}

// read_framing decides where the content ends. Framing that two readers could read differently is refused.
std::uint16_t read_framing(const Fields& fields, const Limits& limits, Request& request) {
  if (fields.codings.any()) {
    if (request.minor == 0 || fields.content_lengths != 0) return 400;
    if (const auto status = fields.codings.status()) return status;
    request.framing = Framing::chunked;
  } else if (fields.content_lengths != 0) {
    if (fields.content_lengths > 1 || !read_content_length(fields.content_length, request.content_length)) return 400;
    if (request.content_length > limits.max_body) return 413;
    request.framing = Framing::length;
  }
  return 0;
}

// read_expect: in HTTP/1.0 the field did not exist and is ignored (RFC 9110, 10.1.1).
std::uint16_t read_expect(const Fields& fields, Request& request) {
  if (!fields.expects || request.minor == 0) return 0;
  if (fields.expects_the_unknown) return 417;
  request.expects_continue = request.framing == Framing::chunked || request.content_length != 0;
  return 0;
}

// judge checks what the parser has cut into pieces: the request line, then the fields that matter.
std::uint16_t judge(std::span<Header> lines, const Limits& limits, Request& request) {
  Fields fields;
  if (!read_lines(lines, fields, request)) return 400;
  if (!read_method(request.method_text, request.method)) {
    if (!is_token(request.method_text)) return 400;
    // Its target is no path.
    if (request.method_text == "CONNECT") return 501;
    request.method = Method::other;
  }
  if (request.target.size() > limits.max_target) return 414;
  if (!read_target(request)) return 400;

  if (fields.hosts > 1 || (fields.hosts == 0 && request.minor != 0)) return 400;
  if (fields.hosts == 1) {
    if (!is_authority(fields.host)) return 400;
    if (request.authority.data() == nullptr) request.authority = fields.host;
  }
  request.keep_alive = !fields.close && (request.minor != 0 || fields.stay);
  if (const auto status = read_framing(fields, limits, request)) return status;
  return read_expect(fields, request);
}

// skip_empty_lines passes over at most two CRLF, which some clients send after a body (RFC 9112, 2.2). False: something
// else begins with CR or LF.
bool skip_empty_lines(std::string_view bytes, std::size_t& skipped) {
  for (int lines = 0; skipped < bytes.size() && (bytes[skipped] == '\r' || bytes[skipped] == '\n'); ++lines) {
    if (bytes[skipped] == '\n' || lines == 2) return false;
    if (skipped + 1 == bytes.size()) break;
    if (bytes[skipped + 1] != '\n') return false;
    skipped += 2;
  }
  return true;
}

// line_ends_early: the parser waits for the nine bytes of a version even where the line, and with it perhaps the head,
// has ended before them.
bool line_ends_early(std::string_view head, const char* target, std::size_t target_size) {
  if (target == nullptr) return false;
  constexpr std::size_t version_size = 9;
  const std::string_view rest = after(head, static_cast<std::size_t>(target - head.data()) + target_size);
  return rest.size() <= version_size && rest.find('\n') != std::string_view::npos;
}

}  // namespace

ParseResult parse_head(std::string_view bytes, std::size_t already_seen, std::span<Header> storage,
                       const Limits& limits, Request& request) noexcept {
  std::size_t skipped = 0;
  if (!skip_empty_lines(bytes, skipped)) return bad(400);
  const std::string_view head =
      first(after(bytes, skipped), std::min<std::size_t>(bytes.size() - skipped, limits.max_head_bytes));
  if (head.empty() || head[0] == '\r') return {};
  const std::size_t seen = already_seen > skipped ? std::min(already_seen - skipped, head.size()) : 0;

  const std::size_t max_headers = std::min<std::size_t>(storage.size(), 255);
  std::size_t lines = max_headers;
  const char* method;
  const char* target;
  std::size_t method_size;
  std::size_t target_size;
  int minor;
  const int size = phr_parse_request(head.data(), head.size(), &method, &method_size, &target, &target_size, &minor,
                                     reinterpret_cast<phr_header*>(storage.data()), &lines, seen);
  if (size == -2 && head.size() < limits.max_head_bytes && !line_ends_early(head, target, target_size)) return {};
  if (size < 0) return bad(head_error(head, limits, max_headers));

  // The version and its line end are what follows the target; the head's last line end is its last two bytes.
  constexpr std::size_t version_size = sizeof(" HTTP/1.1") - 1;
  const auto head_size = static_cast<std::uint32_t>(size);
  if (target[target_size + version_size] != '\r' || head[head_size - 2] != '\r') return bad(400);

  request = Request{};
  request.minor = minor == 0 ? 0 : 1;
  request.method_text = {method, method_size};
  request.target = {target, target_size};
  request.headers = storage.first(lines);
  if (const auto status = judge(storage.first(lines), limits, request)) return bad(status);
  return {.state = ParseState::complete, .head_bytes = static_cast<std::uint32_t>(skipped) + head_size};
}

std::string_view Request::header(std::string_view name) const noexcept {
  for (const Header& line : headers) {
    if (equals_ignoring_case(line.name, name)) return line.value;
  }
  return {};
}

std::string_view method_name(Method method) noexcept {
  static constexpr std::string_view names[] = {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", ""};
  return names[static_cast<std::size_t>(method)];
}

bool same_ignoring_case(std::string_view a, std::string_view b) noexcept {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), [&](char x, char y) { return x == y || lower(x) == lower(y); });
}

bool list_has_token(std::string_view list, std::string_view token) noexcept {
  for (;;) {
    const std::size_t comma = list.find(',');
    if (equals_ignoring_case(trim(until(list, ',')), token)) return true;
    if (comma == std::string_view::npos) return false;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace coir::http
