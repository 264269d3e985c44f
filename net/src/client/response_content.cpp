// The content of a transfer's response. Declared in client/transfer.h.
#include <string.h>

#include <algorithm>

#include "client/transfer.h"
#include "http/text/characters.h"

namespace coir::http::detail {
namespace {

// is_coded_by knows a coding by its old name too (RFC 9110, 8.4.1): "x-gzip".
bool is_coded_by(std::string_view field, std::string_view coding) noexcept {
  const std::string_view name = trim(field);
  return equals_ignoring_case(begins_ignoring_case(name, "x-") ? after(name, 2) : name, coding);
}

}  // namespace

// begin_content follows a final head: what came behind it is content already, or nobody's.
Transfer::Outcome Transfer::begin_content() noexcept {
  raw = {room.data() + begin, have - begin};
  left = response.end == ContentEnd::length ? response.content_length : 0;
  chunks = ChunkedContent();
  silent_by = Deadline::never();
  if (response.end == ContentEnd::chunked && heads().size() - begin < ChunkedContent::kLeastWindow) {
    auto taken = Buffer::take(Buffer::kLeast);
    if (!taken) return std::unexpected(taken.error());
    window = std::move(*taken);
  }
  coded = asks_coding && response.end != ContentEnd::none &&
          is_coded_by(response.header("Content-Encoding"), core.options.coding->name);
  if (response.end == ContentEnd::none) end_content();
  return {};
}

std::expected<std::size_t, Error> Transfer::read_plain(std::span<char> into) noexcept {
  if (done) return std::unexpected(Error{ErrorCode::end_of_stream});
  if (into.empty()) return std::unexpected(Error{ErrorCode::invalid});
  if (connection == nullptr) return std::unexpected(Error{ErrorCode::closed});
  auto got = read_decoded(into);
  if (!got && !done) {
    if (got.error() == ErrorCode::end_of_stream) got = std::unexpected(Error{ErrorCode::truncated});
    got.error() = of(Phase::between_bytes, got.error());
    // After a wait in vain the caller may continue to read; after any other error nothing more can come.
    if (!(got.error() == ErrorCode::timed_out || got.error() == ErrorCode::cancelled)) {
      reusable = false;
      let_go();
    }
  }
  return got;
}

std::expected<std::size_t, Error> Transfer::read_decoded(std::span<char> into) noexcept {
  if (response.end == ContentEnd::chunked) {
    const auto taken = chunks.take(into, raw, window ? window.bytes() : heads().subspan(begin), kResponseChunks, {},
                                   [&](std::span<char> free) { return receive(free); });
    if (chunks.is_delivered()) end_content();
    if (!taken && chunks.status() != 0) {
      return std::unexpected(client_error(ErrorCode::protocol, ClientFault::bad_chunk));
    }
    return taken;
  }
  if (response.end == ContentEnd::length)
    into = into.first(static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), left)));
  std::size_t taken;
  if (!raw.empty()) {
    taken = std::min(raw.size(), into.size());
    memcpy(into.data(), raw.data(), taken);
    raw = raw.subspan(taken);
  } else {
    // Straight to its place, and never past the end of the content.
    const auto got = receive(into);
    if (!got) {
      if (response.end == ContentEnd::close && got.error() == ErrorCode::end_of_stream) end_content();
      return got;
    }
    taken = *got;
  }
  if (response.end == ContentEnd::length && (left -= taken) == 0) end_content();
  return taken;
}

// receive reads from the connection. A read that a scope ends does not end the server's silence: the next one waits for
// what is left of Timeouts::between_bytes. If nothing is left, it still returns what came while its caller was away.
std::expected<std::size_t, Error> Transfer::receive(std::span<char> into) noexcept {
  if (silent_by.is_never()) silent_by = until(Phase::between_bytes);
  const auto got = stream().read(into, silent_by.passed() ? Deadline::now() : silent_by);
  if (got || got.error().is_late()) silent_by = Deadline::never();
  return got;
}

// end_content gives the connection back with the last byte, not when the response's owner is done with it. Bytes behind
// the content are nobody's: such a connection is closed.
void Transfer::end_content() noexcept {
  done = true;
  if (!raw.empty()) reusable = false;
  let_go();
  if (std::exchange(in_place, false)) core.leave();
}

}  // namespace coir::http::detail
