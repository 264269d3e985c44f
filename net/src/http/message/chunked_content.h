#pragma once

#include <coir/error.h>
#include <coir/http/wire/chunked.h>
#include <string.h>

#include <algorithm>
#include <expected>
#include <span>

namespace coir::http {

// ChunkedContent delivers content that comes in chunks, decoded in the buffer that also holds the head of its message:
// a request's in a server's session, a response's in a client's transfer.
//
//   |  head  |  decoded, not delivered  |  raw  |  free  |
//            ^ the window begins behind the head
//
// The window may be smaller than what came along with the head, and elsewhere; it has kLeastWindow bytes or more, so
// that a head that fills its buffer neither leaves nothing to read into nor costs a system call for each byte.
class ChunkedContent {
 public:
  static constexpr std::size_t kLeastWindow = 1024;

  // take delivers decoded content to `into`, or drops it where `into` has no memory. `raw` is what has come and is not
  // decoded; once that is used up, `fill_window` reads to it. Behind the end, `raw` is what follows the content.
  // Errors: end_of_stream (the content is whole), limit (it is longer than the limits allow), protocol (it is
  // malformed; status() tells both), those of `fill_window`.
  template <class FillWindow>
  std::expected<std::size_t, Error> take(std::span<char> into, std::span<char>& raw, std::span<char> window,
                                         const ChunkedLimits& limits, std::span<char> trailers,
                                         FillWindow fill_window) noexcept {
    while (content_.empty()) {
      if (is_done_) return std::unexpected(Error{ErrorCode::end_of_stream});
      if (raw.empty()) {
        const std::expected<std::size_t, Error> got = fill_window(window);
        if (!got) return got;
        raw = window.first(*got);
      }
      const ChunkedResult decoded = decoder_.decode(raw, limits, trailers);
      content_ = raw.first(decoded.data_bytes);
      raw = raw.subspan(decoded.consumed);
      status_ = decoded.status;
      if (decoded.state == ChunkedState::bad) {
        return std::unexpected(Error{status_ == 413 ? ErrorCode::limit : ErrorCode::protocol});
      }
      is_done_ = decoded.state == ChunkedState::done;
    }
    std::size_t taken = content_.size();
    if (into.data() != nullptr) {
      taken = std::min(taken, into.size());
      memcpy(into.data(), content_.data(), taken);
    }
    content_ = content_.subspan(taken);
    return taken;
  }

  // has_some tells whether take needs no more bytes.
  bool has_some() const noexcept { return !content_.empty() || is_done_; }
  // is_delivered tells whether the end has come and all content before it has been delivered.
  bool is_delivered() const noexcept { return content_.empty() && is_done_; }
  // trailer_bytes is how much of `trailers` is filled; 0 before the end has come.
  std::uint32_t trailer_bytes() const noexcept { return is_done_ ? decoder_.trailer_bytes() : 0; }
  // has_trailers tells whether some of `trailers` is filled, which may be a part of them.
  bool has_trailers() const noexcept { return decoder_.trailer_bytes() != 0; }
  // content_bytes is how much content has come, delivered or not.
  std::uint64_t content_bytes() const noexcept { return decoder_.content_bytes(); }
  // status is what answers content that is malformed or too long: 400, 413 or 431.
  int status() const noexcept { return status_; }

 private:
  std::span<char> content_;
  ChunkedDecoder decoder_;
  std::uint16_t status_ = 0;
  bool is_done_ = false;
};

}  // namespace coir::http
