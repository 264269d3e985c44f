#pragma once

#include <coir/error.h>

#include <cstring>
#include <expected>
#include <span>
#include <string_view>
#include <utility>

#include "base/buffer_pool.h"
#include "mcp/message/raw_json.h"

namespace coir::mcp::detail {

// GrowingText is a sink for JsonWriter in a buffer of the pool, which grows with the text, up to Buffer::kMost.
class GrowingText {
 public:
  GrowingText() noexcept = default;
  GrowingText(GrowingText&& other) noexcept : buffer_(std::move(other.buffer_)), used_(std::exchange(other.used_, 0)) {}
  GrowingText& operator=(GrowingText&& other) noexcept {
    buffer_ = std::move(other.buffer_);
    used_ = std::exchange(other.used_, 0);
    return *this;
  }

  // write adds text, all of it or nothing. Errors: no_memory, limit.
  [[nodiscard]] std::expected<void, Error> write(std::string_view text) noexcept {
    while (text.size() > buffer_.size() - used_) {
      if (!buffer_) {
        auto taken = Buffer::take(text.size());
        if (!taken) return std::unexpected(taken.error());
        buffer_ = std::move(*taken);
      } else if (auto grown = buffer_.grow(used_); !grown) {
        return grown;
      }
    }
    if (!text.empty()) std::memcpy(buffer_.data() + used_, text.data(), text.size());
    used_ += text.size();
    return {};
  }

  std::string_view view() const noexcept { return {buffer_.data(), used_}; }
  bool empty() const noexcept { return used_ == 0; }
  // end_line makes a line of JSON, with its end. Errors: as write.
  [[nodiscard]] std::expected<void, Error> end_line() noexcept {
    blank_ends_of_lines(buffer_.bytes().first(used_));
    return write("\n");
  }
  // clear keeps the buffer.
  void clear() noexcept { used_ = 0; }

 private:
  Buffer buffer_;
  std::size_t used_ = 0;
};

// TextParts adds one piece after the other and keeps the first failure.
class TextParts {
 public:
  explicit TextParts(GrowingText& text) noexcept : text_(text) {}
  TextParts& operator<<(std::string_view part) noexcept {
    if (outcome_) outcome_ = text_.write(part);
    return *this;
  }
  const std::expected<void, Error>& outcome() const noexcept { return outcome_; }

 private:
  GrowingText& text_;
  std::expected<void, Error> outcome_;
};

}  // namespace coir::mcp::detail
