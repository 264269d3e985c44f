#pragma once

#include <coir/error.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string_view>

namespace coir::mcp {

// Text is a text that grows: first in the caller's memory, then on the heap, charged to account::mcp. A sink for
// JsonWriter. A failure is kept: what follows is dropped.
class Text {
 public:
  // `room` outlives the text. It grows to `most` bytes.
  explicit Text(std::span<char> room, std::size_t most) noexcept
      : memory_(room.data()), size_(within(room.size())), most_(within(most)) {}
  ~Text();
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;

  // write adds a text, or nothing of it. Errors: limit (more than `most`), no_memory.
  [[nodiscard]] std::expected<void, Error> write(std::string_view text) noexcept;
  // take returns room for `bytes` at the end, to be filled, or null: then the failure is kept.
  char* take(std::size_t bytes) noexcept;

  std::string_view view() const noexcept { return {memory_, used_}; }
  std::size_t size() const noexcept { return used_; }
  // cut drops what lies behind `size`.
  void cut(std::size_t size) noexcept { used_ = within(size); }
  bool failed() const noexcept { return failure_ != ErrorCode{}; }
  Error failure() const noexcept { return failure_; }

 private:
  // A call that waits holds five texts: 32 bits are enough for each.
  using Size = std::uint32_t;
  static constexpr Size within(std::size_t size) noexcept {
    return static_cast<Size>(std::min<std::size_t>(size, UINT32_MAX / 2));
  }
  bool grow(std::size_t needed) noexcept;

  char* memory_;
  Size size_;
  Size most_;
  Size used_ = 0;
  ErrorCode failure_{};  // 0: none
  bool owned_ = false;
};

}  // namespace coir::mcp
