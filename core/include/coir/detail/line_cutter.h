#pragma once

#include <errno.h>

#include <cstddef>
#include <cstring>
#include <expected>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <coir/error.h>

namespace coir::detail {

// LineCutter cuts bytes that arrive piece by piece into lines, in a buffer of the caller's. It is what FileLines and
// StreamLines have in common.
class LineCutter {
 public:
  explicit LineCutter(std::span<char> buffer) noexcept : buffer_(buffer) {}

  // next returns the next line, or an error: limit, of a line that does not fit, the rest of which is passed over;
  // end_of_stream after `ended`; invalid for an empty buffer. Nothing: more is wanted in room().
  std::optional<std::expected<std::string_view, Error>> next(bool ended) noexcept {
    if (buffer_.empty()) return std::unexpected(Error{ErrorCode::invalid, EINVAL});
    for (;;) {
      const std::string_view have(buffer_.data() + begin_, end_ - begin_);
      if (const std::size_t at = have.find('\n'); at != std::string_view::npos) {
        begin_ += at + 1;
        if (!std::exchange(skipping_, false)) return have.substr(0, at);
        continue;
      }
      if (ended) {
        begin_ = end_;
        if (have.empty() || std::exchange(skipping_, false)) return std::unexpected(Error{ErrorCode::end_of_stream});
        return have;
      }
      if (skipping_) begin_ = end_ = 0;
      if (have.size() < buffer_.size() || skipping_) return std::nullopt;
      skipping_ = true;
      return std::unexpected(Error{ErrorCode::limit});
    }
  }

  // room is where the next bytes go, of which add tells how many came. Never empty after next has returned nothing.
  std::span<char> room() noexcept {
    if (begin_ != 0) std::memmove(buffer_.data(), buffer_.data() + begin_, end_ -= begin_);
    begin_ = 0;
    return buffer_.subspan(end_);
  }
  void add(std::size_t bytes) noexcept { end_ += bytes; }

 private:
  std::span<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // of what was not cut yet
  bool skipping_ = false;            // inside a line that was too long
};

}  // namespace coir::detail
