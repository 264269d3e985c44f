// The content of a transfer's response. Declared in client/transfer.h.
#include <string.h>

#include <algorithm>

#include "client/transfer.h"

namespace coir::http::detail {

std::expected<std::size_t, Error> Transfer::read_plain(std::span<char> into) noexcept {
  if (done) return std::unexpected(Error{ErrorCode::end_of_stream});
  if (into.empty()) return std::unexpected(Error{ErrorCode::invalid});
  if (connection == nullptr) return std::unexpected(Error{ErrorCode::closed});
  auto got = read_decoded(into);
  if (!got && !done) {
    if (got.error() == ErrorCode::end_of_stream) got = std::unexpected(Error{ErrorCode::truncated});
    got.error() = of(Phase::between_bytes, got.error());
    // Who waited in vain may read on; after anything else nothing more can come.
    if (!(got.error() == ErrorCode::timed_out || got.error() == ErrorCode::cancelled)) {
      reusable = false;
      let_go();
    }
  }
  return got;
}

std::expected<std::size_t, Error> Transfer::read_decoded(std::span<char> into) noexcept {
  if (response.end == ContentEnd::chunked) {
    const ChunkedLimits limits = {.max_body = INT64_MAX};
    while (content_at == content_end) {
      if (chunks_done) {
        end_content();
        return std::unexpected(Error{ErrorCode::end_of_stream});
      }
      if (raw_at == have) {
        raw_at = have = content_begin;
        const auto got = stream().read(room().subspan(have), until(Phase::between_bytes));
        if (!got) return got;
        have += static_cast<std::uint32_t>(*got);
      }
      const ChunkedResult decoded = decoder.decode({in.data() + raw_at, have - raw_at}, limits);
      content_at = raw_at;
      content_end = raw_at + static_cast<std::uint32_t>(decoded.data_bytes);
      raw_at += static_cast<std::uint32_t>(decoded.consumed);
      if (decoded.state == ChunkedState::bad) {
        return std::unexpected(client_error(ErrorCode::protocol, ClientFault::bad_chunk));
      }
      chunks_done = decoded.state == ChunkedState::done;
    }
    const std::size_t taken = take_content(into);
    if (content_at == content_end && chunks_done) end_content();
    return taken;
  }
  if (response.end == ContentEnd::length)
    into = into.first(static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), left)));
  std::size_t taken;
  if (raw_at < have) {
    taken = std::min<std::size_t>(have - raw_at, into.size());
    memcpy(into.data(), in.data() + raw_at, taken);
    raw_at += static_cast<std::uint32_t>(taken);
  } else {
    // Straight to its place, and never past the end of the content.
    const auto got = stream().read(into, until(Phase::between_bytes));
    if (!got) {
      if (response.end == ContentEnd::close && got.error() == ErrorCode::end_of_stream) end_content();
      return got;
    }
    taken = *got;
  }
  if (response.end == ContentEnd::length && (left -= taken) == 0) end_content();
  return taken;
}

std::size_t Transfer::take_content(std::span<char> into) noexcept {
  const std::size_t taken = std::min<std::size_t>(content_end - content_at, into.size());
  memcpy(into.data(), in.data() + content_at, taken);
  content_at += static_cast<std::uint32_t>(taken);
  return taken;
}

// end_content gives the connection back with the last byte, not when the response's owner is done with it. Bytes behind
// the content are nobody's: such a connection is closed.
void Transfer::end_content() noexcept {
  done = true;
  if (raw_at != have) reusable = false;
  let_go();
  if (std::exchange(in_place, false)) core.pool.leave();
}

}  // namespace coir::http::detail
