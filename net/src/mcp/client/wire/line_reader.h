#pragma once

#include <coir/error.h>

#include <cstddef>
#include <expected>
#include <optional>
#include <string_view>
#include <utility>

#include "base/buffer_pool.h"

namespace coir::mcp::detail {

// LineReader cuts what a program writes into lines, in a buffer that grows with the longest. A line over the ceiling is
// passed over and counted; between lines a large buffer is given back.
class LineReader {
 public:
  explicit LineReader(std::size_t most) noexcept : most_(most) {}

  // fill reads what `fd`, which is non-blocking, has now. Errors: end_of_stream, no_memory, timed_out (it has nothing),
  // those of read(2).
  [[nodiscard]] std::expected<void, Error> fill(int fd) noexcept;

  // next is the next whole line without its end, valid until fill.
  std::optional<std::string_view> next() noexcept;

  // too_long counts since the last call.
  std::size_t take_too_long() noexcept { return std::exchange(too_long_, 0); }

 private:
  std::size_t most_;
  Buffer buffer_;
  std::size_t begin_ = 0, end_ = 0;  // of what was not cut yet
  std::size_t searched_ = 0;         // of that, without a line's end
  bool skipping_ = false;
  std::size_t too_long_ = 0;
};

}  // namespace coir::mcp::detail
