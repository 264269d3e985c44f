#include "proxy/relayed_content.h"

#include <errno.h>
#include <string.h>

#include <algorithm>

#include "socket/kernel.h"

namespace coir::http {
namespace {

// skip takes so many bytes, which are there, out of a socket.
bool skip(int fd, std::size_t bytes, std::span<char> scratch) noexcept {
  while (bytes != 0) {
    const ssize_t got = kernel::skip(fd, scratch.data(), std::min(bytes, scratch.size()));
    if (got == -EINTR) continue;
    if (got <= 0) return false;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace

std::optional<std::size_t> RelayedContent::unframe(std::span<char> bytes, std::span<char> trailers) noexcept {
  if (end == ContentEnd::chunked) {
    const ChunkedResult decoded = decoder.decode(bytes, kResponseChunks, trailers);
    if (decoded.state == ChunkedState::bad) return {};
    whole = decoded.state == ChunkedState::done;
    used = decoded.consumed;
    strays = decoded.consumed < bytes.size();
    return decoded.data_bytes;
  }
  if (end == ContentEnd::close) return used = bytes.size();
  const auto content = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), left));
  left -= content;
  whole = left == 0;
  strays = content < bytes.size();
  return used = content;
}

void RelayedContent::advance(const RelayedContent& seen, int fd, std::size_t found, std::size_t taken,
                             std::span<char> scratch) noexcept {
  if (taken == found) {
    *this = seen;
    broken = !skip(fd, used, scratch);
    return;
  }
  if (end != ContentEnd::chunked) {
    if (end == ContentEnd::length) left -= taken;
    broken = !skip(fd, taken, scratch);
    return;
  }
  // No more bytes are read than content is missing, so that they hold no more.
  while (taken != 0) {
    const ssize_t got = kernel::receive(fd, scratch.data(), std::min(taken, scratch.size()));
    if (got == -EINTR) continue;
    const auto content = got > 0 ? unframe(scratch.first(static_cast<std::size_t>(got))) : std::nullopt;
    if (broken = !content; broken) return;
    taken -= *content;
  }
}

void OwedFraming::owe(std::string_view framing) noexcept {
  if (!framing.empty()) memcpy(text, framing.data(), framing.size());
  bytes = static_cast<std::uint8_t>(framing.size());
}

std::size_t OwedFraming::took(std::size_t sent, std::string_view front, std::size_t content_bytes,
                              std::string_view behind, std::uint64_t chunk) noexcept {
  // A chunk that was offered has begun, even if nothing of it has been sent: TLS may have encrypted it.
  const std::size_t of_front = std::min(sent, front.size());
  const std::size_t taken = std::min(sent - of_front, content_bytes);
  if (of_front < front.size()) {
    owe(front.substr(of_front));
  } else if (taken == content_bytes) {
    owe(behind.substr(sent - of_front - taken));
  }
  if (chunk != 0) content = chunk - taken;
  return taken;
}

}  // namespace coir::http
