#include "outbound/resting.h"

#include <coir/http/percent.h>
#include <errno.h>

#include <algorithm>

#include "http/message/characters.h"
#include "socket/kernel.h"

namespace coir::http {

std::chrono::milliseconds rest_time(const ParsedResponse& response, std::chrono::milliseconds longest) noexcept {
  std::string_view field = response.header("Keep-Alive");
  while (!field.empty()) {
    const std::string_view entry = until(field, ',');
    field.remove_prefix(std::min(entry.size() + 1, field.size()));
    if (!begins_ignoring_case(trim(entry), "timeout=")) continue;
    const auto seconds = parse_integer(after(trim(entry), 8));
    if (!seconds || *seconds < 0 || *seconds >= 1'000'000) continue;
    return std::min<std::chrono::milliseconds>(longest, std::chrono::seconds(*seconds - 1));
  }
  return longest;
}

bool is_quiet(Stream& stream) noexcept {
  ssize_t seen;
  do {
    seen = kernel::peek(stream.fd());
  } while (seen == -EINTR);
  if (seen <= 0 || !stream.secure()) return seen == -EAGAIN;
  // TLS's own records, such as tickets, come at any time.
  char byte;
  stream.mark_readable();
  const auto read = stream.read({&byte, 1}, Deadline::now());
  stream.rest();
  return !read && read.error() == ErrorCode::timed_out;
}

}  // namespace coir::http
