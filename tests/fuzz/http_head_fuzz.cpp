// A head that is accepted keeps every promise of request.h, and arrives at the same verdict however it is cut into
// pieces.

#include <coir/http/wire/request.h>

#include <algorithm>

#include "require.h"

namespace {

using namespace coir::http;

constexpr std::size_t kLines = 12;

bool visible(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; });
}

std::size_t count(const Request& request, std::string_view name) {
  return static_cast<std::size_t>(
      std::ranges::count_if(request.headers, [&](const Header& h) { return equals_ignoring_case(h.name, name); }));
}

void check_complete(std::string_view bytes, const Limits& limits, const ParseResult& result, const Request& request) {
  require(result.status == 0 && result.head_bytes <= bytes.size());
  const std::string_view head(bytes.data(), result.head_bytes);
  require(ends(head, "\r\n\r\n"));
  for (std::size_t at = 0; at < head.size(); ++at) {
    require(head[at] != '\n' || head[at - 1] == '\r');
    require(head[at] != '\r' || head[at + 1] == '\n');
    require(head[at] != '\0');
  }
  require(method_name(request.method) == (request.method == Method::other ? "" : request.method_text));
  require(request.target.size() <= limits.max_target && visible(request.target));
  require(request.target.find('#') == std::string_view::npos);
  require(request.target.find("%00") == std::string_view::npos);
  require(request.path == "*" ? request.method == Method::options : begins(request.path, "/"));
  require(request.path.find('?') == std::string_view::npos);
  require(request.minor <= 1);

  require(count(request, "host") == 1 || (request.minor == 0 && count(request, "host") == 0));
  require(request.minor == 0 || !request.authority.empty());
  require(visible(request.authority) && request.authority.find_first_of("/@,?#\\") == std::string_view::npos);
  for (const Header& line : request.headers) {
    require(!line.name.empty() && visible(line.name) &&
            line.name.find_first_of("()<>@,;:\\\"/[]?={}") == std::string_view::npos);
    require(line.value.empty() || (line.value.front() != ' ' && line.value.front() != '\t' &&
                                   line.value.back() != ' ' && line.value.back() != '\t'));
  }

  const std::size_t lengths = count(request, "content-length");
  const std::size_t codings = count(request, "transfer-encoding");
  require(lengths + codings <= 1);
  require((request.framing == Framing::length) == (lengths == 1));
  require((request.framing == Framing::chunked) == (codings == 1));
  if (lengths == 1) {
    const std::string_view value = request.header("Content-Length");
    require(!value.empty() && std::ranges::all_of(value, [](char c) { return c >= '0' && c <= '9'; }));
    require(request.content_length <= limits.max_body);
  }
  if (codings == 1) require(request.minor == 1 && equals_ignoring_case(request.header("Transfer-Encoding"), "chunked"));
}

bool same_view(std::string_view a, std::string_view b) {
  return (a.data() == nullptr) == (b.data() == nullptr) && a == b;
}

void check_same(const Request& a, const Request& b) {
  require(a.method == b.method && a.form == b.form && a.minor == b.minor && a.framing == b.framing);
  require(a.keep_alive == b.keep_alive && a.expects_continue == b.expects_continue && a.https == b.https);
  require(a.content_length == b.content_length && a.repeated == b.repeated && a.headers.size() == b.headers.size());
  require(same_view(a.path, b.path) && same_view(a.query, b.query) && same_view(a.authority, b.authority));
  require(same_view(a.range, b.range) && same_view(a.if_range, b.if_range) && same_view(a.if_match, b.if_match));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  Source source(data, size);
  const Limits limits = {.max_target = 8 + source.byte(), .max_head_bytes = 32 + 4 * source.byte(), .max_body = 1000};
  const std::size_t step = 1 + source.byte() % 64;

  const Exact whole(source.rest());
  Header lines[kLines];
  Request request;
  ParseResult at_once = parse_head(whole.view(), 0, lines, limits, request);
  if (at_once.state == ParseState::complete) check_complete(whole.view(), limits, at_once, request);
  require((at_once.state == ParseState::bad) == (at_once.status != 0));

  // A bad head may be found out at once or only when its end has come, depending on the pieces; so it gets one.
  std::size_t seen = 0;
  ParseResult slow;
  Request other;
  Header other_lines[kLines];
  while (slow.state == ParseState::incomplete && seen < whole.size()) {
    const std::size_t have = std::min(seen + step, whole.size());
    const Exact piece(std::string_view(whole.data(), have));
    slow = parse_head(piece.view(), seen, other_lines, limits, other);
    seen = have;
    if (slow.state == ParseState::complete) check_same(request, other);
  }
  if (at_once.state != slow.state && (at_once.state == ParseState::bad || slow.state == ParseState::bad)) {
    char* const bytes = static_cast<char*>(malloc(whole.size() + 4));
    memcpy(bytes, whole.data(), whole.size());
    memcpy(bytes + whole.size(), "\r\n\r\n", 4);
    const std::string_view ended(bytes, whole.size() + 4);
    if (slow.state == ParseState::incomplete) slow = parse_head(ended, seen, other_lines, limits, other);
    if (at_once.state == ParseState::incomplete) at_once = parse_head(ended, 0, lines, limits, request);
    free(bytes);
  }
  require(slow.state == at_once.state && slow.status == at_once.status && slow.head_bytes == at_once.head_bytes);
  return 0;
}
