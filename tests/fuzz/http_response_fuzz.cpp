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

void check_complete(std::string_view bytes, const ResponseResult& result, AnswerTo to, const ParsedResponse& response) {
  require(result.head_bytes <= bytes.size());
  const std::string_view head(bytes.data(), result.head_bytes);
  require(ends(head, "\r\n\r\n"));
  for (std::size_t at = 0; at < head.size(); ++at) {
    require(head[at] != '\n' || head[at - 1] == '\r');
    require(head[at] != '\0');
  }
  require(response.status >= 100 && response.status <= 999 && response.minor <= 1);
  for (const Header& field : response.headers) {
    require(!field.name.empty() && memchr(field.value.data(), '\r', field.value.size()) == nullptr);
    require(memchr(field.value.data(), '\n', field.value.size()) == nullptr);
  }
  if (to == AnswerTo::connect && response.status >= 200 && response.status < 300) {
    require(response.end == ContentEnd::none);
    return;
  }
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
  const AnswerTo to = static_cast<AnswerTo>(source.byte() % 3);
  const std::size_t step = 1 + source.byte() % 64;
  const Exact whole(source.rest());
  Header lines[kLines];
  ParsedResponse response;
  const ResponseResult at_once = parse_response({whole.data(), whole.size()}, 0, lines, to, response);
  if (at_once.state == ResponseState::complete) check_complete(whole.view(), at_once, to, response);

  ResponseResult slow;
  ParsedResponse other;
  Header other_lines[kLines];
  for (std::size_t seen = 0; slow.state == ResponseState::incomplete && seen < whole.size();) {
    const std::size_t have = std::min(seen + step, whole.size());
    // As it came: a head is changed once it is whole.
    const Exact piece(std::string_view(source.rest().data(), have));
    slow = parse_response({piece.data(), piece.size()}, seen, other_lines, to, other);
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
