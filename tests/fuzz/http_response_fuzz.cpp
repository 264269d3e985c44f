// A response's head that is accepted keeps every promise of response_parser.h, and arrives at the same verdict however
// it is cut into pieces.

#include "http/message/response_parser.h"

#include <algorithm>

#include "require.h"

namespace {

using namespace coir::http;

constexpr std::size_t kLines = 12;

std::size_t count(const ParsedResponse& response, std::string_view name) {
  return static_cast<std::size_t>(
      std::ranges::count_if(response.headers, [&](const Header& h) { return equals_ignoring_case(h.name, name); }));
}

void check_complete(std::string_view bytes, const ResponseResult& result, const ParsedResponse& response) {
  require(result.head_bytes <= bytes.size());
  const std::string_view head(bytes.data(), result.head_bytes);
  require(ends(head, "\r\n\r\n"));
  for (std::size_t at = 0; at < head.size(); ++at) {
    require(head[at] != '\n' || head[at - 1] == '\r');
    require(head[at] != '\0');
  }
  require(response.status >= 100 && response.status <= 599 && response.minor <= 1);
  require(count(response, "content-length") <= 1);
  require(count(response, "content-length") == 0 || count(response, "transfer-encoding") == 0);
  require(response.end != ContentEnd::chunked || count(response, "transfer-encoding") == 1);
  require(response.end != ContentEnd::length || count(response, "content-length") == 1);
  require(response.end != ContentEnd::close || !response.keep_alive);
  require((response.status >= 200 && response.status != 204 && response.status != 304) ||
          response.end == ContentEnd::none);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  Source source(data, size);
  const bool no_content = source.byte() % 4 == 0;
  const std::size_t step = 1 + source.byte() % 64;
  const Exact whole(source.rest());
  Header lines[kLines];
  ParsedResponse response;
  const ResponseResult at_once = parse_response(whole.view(), 0, lines, no_content, response);
  if (at_once.state == ResponseState::complete) check_complete(whole.view(), at_once, response);

  ResponseResult slow;
  ParsedResponse other;
  Header other_lines[kLines];
  for (std::size_t seen = 0; slow.state == ResponseState::incomplete && seen < whole.size();) {
    const std::size_t have = std::min(seen + step, whole.size());
    const Exact piece(std::string_view(whole.data(), have));
    slow = parse_response(piece.view(), seen, other_lines, no_content, other);
    seen = have;
    if (slow.state == ResponseState::complete) {
      require(other.status == response.status && other.end == response.end && other.keep_alive == response.keep_alive &&
              other.content_length == response.content_length && other.headers.size() == response.headers.size());
    }
  }
  // A bad head may be found out at once, or only at its end, and by another of its faults.
  require((slow.state == ResponseState::complete) == (at_once.state == ResponseState::complete));
  require(slow.state != ResponseState::complete || slow.head_bytes == at_once.head_bytes);
  return 0;
}
