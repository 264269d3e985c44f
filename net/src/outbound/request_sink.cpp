// How a request is sent. Declared in outbound/exchange.h.
#include <coir/http/wire/chunked.h>
#include <coir/wait.h>
#include <string.h>

#include <algorithm>
#include <utility>

#include "outbound/exchange.h"
#include "outbound/fault.h"
#include "socket/kernel.h"

namespace coir::http {
namespace {

using namespace std::chrono_literals;

constexpr auto kBetweenLooks = 1s;

// So often in a row the same is sent again to a peer that is then taken for gone: twice takes the kernel a second or less, five
// times six seconds or more. A request that may not be repeated has lasted through a short break of the network.
constexpr unsigned kUnansweredRepeatable = 2, kUnanswered = 5;

}  // namespace

std::string_view frame_chunk(char* content, std::size_t bytes) noexcept {
  char line[kBeforeChunk];
  const std::string_view size = write_chunk_size(bytes, line);
  char* const begin = content - size.size();
  memcpy(begin, size.data(), size.size());
  memcpy(content + bytes, "\r\n", kBehindChunk);
  return {begin, size.size() + bytes + kBehindChunk};
}

OutboundRequest::Outcome OutboundRequest::send_beginning(std::string_view head, std::string_view content,
                                                         Pace pace) noexcept {
  while (!head.empty()) {
    const iovec parts[] = {{const_cast<char*>(head.data()), head.size()},
                           {const_cast<char*>(content.data()), content.size()}};
    const auto sent = stream().write_some(std::span(parts, content.empty() ? 1 : 2), pace.next());
    if (!sent) return std::unexpected(sent.error());
    sent_any = true;
    const std::size_t of_head = std::min(*sent, head.size());
    head.remove_prefix(of_head);
    content.remove_prefix(*sent - of_head);
  }
  return send_content(content, pace);
}

OutboundRequest::Outcome OutboundRequest::send_content(std::string_view bytes, Pace pace) noexcept {
  Deadline in_time;
  for (bool moved = true; !bytes.empty();) {
    const iovec part = {const_cast<char*>(bytes.data()), bytes.size()};
    const auto sent = stream().write_some({&part, 1}, Deadline::now());
    if (sent) {
      bytes.remove_prefix(*sent);
      moved = true;
      continue;
    }
    if (!sent.error().is_late()) return std::unexpected(sent.error());
    // Read first what the peer has sent before: a wait hears only of more, and none comes while its socket is full.
    if (!stream().drained()) moved = true;
    if (std::exchange(moved, false)) in_time = pace.next();
    if (stream().drained()) {
      const int fd = stream().fd();
      const Awaited either[] = {{fd, Direction::readable}, {fd, Direction::writable}};
      const Deadline look = next_look(in_time);
      auto ready = wait_several(either, look);
      if (!ready && look != in_time && ready.error().is_late()) ready = look_at_peer();
      if (!ready) return ready;
    }
    const auto heard = hear();
    if (!heard) return std::unexpected(heard.error());
    if (*heard) return {};
    stream().mark_writable();
  }
  return {};
}

std::expected<std::size_t, Error> OutboundRequest::read(std::span<char> into, Deadline until) noexcept {
  for (;;) {
    const Deadline look = next_look(until);
    const auto got = stream().read(into, look);
    if (got) heard_any = true;
    if (got || look == until || !got.error().is_late()) return got;
    if (auto is_there = look_at_peer(); !is_there) return std::unexpected(is_there.error());
  }
}

OutboundRequest::Outcome OutboundRequest::await(Deadline until) noexcept {
  for (;;) {
    const Deadline look = next_look(until);
    const auto ready = wait(stream().fd(), Direction::readable, look);
    if (ready) stream().mark_readable();
    if (ready || look == until || !ready.error().is_late()) return ready;
    if (auto is_there = look_at_peer(); !is_there) return is_there;
  }
}

bool OutboundRequest::may_repeat(Error error) const noexcept {
  return reused && !heard_any && !unrepeatable && is_hang_up(error) && (idempotent || !sent_any);
}

// next_look is when a peer that may have vanished while its connection rested is looked at, at the latest `until`.
Deadline OutboundRequest::next_look(Deadline until) const noexcept {
  return reused && !heard_any ? std::min(until, Deadline::after(kBetweenLooks)) : until;
}

// A peer that is there and reads nothing acknowledges no more than fits, but nothing is sent again.
bool OutboundRequest::is_in_doubt(bool is_early) const noexcept {
  const int fd = stream().fd();
  return reused && !heard_any && kernel::is_unacknowledged(fd) &&
         (is_early || is_repeatable() || kernel::is_unanswered(fd, 1));
}

OutboundRequest::Outcome OutboundRequest::look_at_peer() const noexcept {
  if (!kernel::is_unanswered(stream().fd(), is_repeatable() ? kUnansweredRepeatable : kUnanswered)) return {};
  return std::unexpected(Error{ErrorCode::closed});
}

}  // namespace coir::http
