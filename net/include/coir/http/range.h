#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace coir::http {

// Range is what a Range field asks of a representation of known size: all of it (200), the bytes first to last, both
// included (206), or nothing that exists (416).
struct Range {
  enum class Kind : std::uint8_t { whole, part, unsatisfiable };

  Kind kind = Kind::whole;
  std::uint64_t first = 0;
  std::uint64_t last = 0;

  std::uint64_t bytes() const noexcept { return last - first + 1; }  // of a part
};

// parse_range evaluates the value of a Range field against `size`. An absent or malformed value, another unit than
// bytes and a list of several ranges mean whole, as RFC 9110, 14.2 lets a server do. Positions past any number are as
// good as infinite. Range has meaning for GET only: the caller asks for no other method.
Range parse_range(std::string_view value, std::uint64_t size) noexcept;

inline constexpr std::size_t kContentRangeBytes = 72;

// write_content_range writes the value of Content-Range for a part ("bytes 0-99/1234") or an unsatisfiable range
// ("bytes */1234") and returns it. Not for whole.
std::string_view write_content_range(const Range& range, std::uint64_t size,
                                     std::span<char, kContentRangeBytes> out) noexcept;

}  // namespace coir::http
