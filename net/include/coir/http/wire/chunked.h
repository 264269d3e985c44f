#pragma once

// The chunked coding, taken off in place.
//
//   ChunkedDecoder decoder;
//   const ChunkedResult result = decoder.decode(buffer, {});
//   show(std::string_view(buffer, result.data_bytes));

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace coir::http {

// ChunkedLimits bounds what a chunked body may carry besides its content and how much content. Extensions and trailer
// fields are checked; the former are dropped, the latter too where nobody keeps them.
struct ChunkedLimits {
  std::uint64_t max_body = 1024 * 1024;      // over it: 413
  std::uint32_t max_extension_bytes = 4096;  // of all chunks together, or of each; over it: 400
  std::uint32_t max_trailer_bytes = 4096;    // of all trailer lines together; over it: 431
  bool extensions_count_apart = false;       // of each chunk
  bool allows_blanks = false;  // behind a size, as some servers write it to a fixed width; a request may have none
};

// kResponseChunks is for responses, whose content is bounded by who takes it: a server may sign each chunk in its
// extension.
inline constexpr ChunkedLimits kResponseChunks = {
    .max_body = INT64_MAX, .extensions_count_apart = true, .allows_blanks = true};

enum class ChunkedState : std::uint8_t { more, done, bad };

// ChunkedResult: the first data_bytes of the buffer are content now; `consumed` bytes of what was in the buffer have
// been used up. With `more`, that is all of them. With `done`, what stood behind them is the next request, untouched at
// buffer[consumed]. With `bad`, `status` is 400, 413 or 431, and the connection can only be closed after it.
struct ChunkedResult {
  ChunkedState state = ChunkedState::more;
  std::uint16_t status = 0;
  std::size_t data_bytes = 0;
  std::size_t consumed = 0;
};

// ChunkedDecoder takes the chunked transfer coding off a request body (RFC 9112, 7.1), in place and in whatever pieces
// the bytes arrive.
//
// Strict where laxness lets two parsers disagree about where a request ends: every line ends in CRLF, a size is 1 to 16
// hexadecimal digits followed by CRLF or ';' at once but for ChunkedLimits::allows_blanks, extensions keep to their
// grammar, and content is followed by CRLF at once. How the bytes are cut does not change the outcome. 32 bytes of
// state; no allocation.
class ChunkedDecoder {
 public:
  // decode works on the next bytes of the body. After `done` or `bad` it must not be called again.
  // With `trailers`, the same memory in each call, the trailer fields are kept there as "Name: value\r", one behind the
  // other; those that do not fit are 431.
  [[nodiscard]] ChunkedResult decode(std::span<char> buffer, const ChunkedLimits& limits,
                                     std::span<char> trailers = {}) noexcept;

  // trailer_bytes is how much of `trailers` is filled.
  std::uint32_t trailer_bytes() const noexcept { return trailer_bytes_; }

  // content_bytes is how much content has been decoded so far.
  std::uint64_t content_bytes() const noexcept { return total_; }

 private:
  enum class At : std::uint8_t;

  std::uint16_t framing_byte(char c, const ChunkedLimits& limits, std::span<char> trailers) noexcept;
  bool extension_byte(char c) noexcept;

  std::uint64_t left_ = 0;   // of the chunk being read
  std::uint64_t total_ = 0;  // content of all chunks, the announced rest of this one excluded
  std::uint32_t extension_bytes_ = 0;
  std::uint32_t trailer_bytes_ = 0;
  std::uint8_t digits_ = 0;
  At at_{};
};

// write_chunk_size writes the line that precedes `size` (> 0) bytes of a chunked response and returns it; CRLF follows
// the content, and kLastChunk the last one.
std::string_view write_chunk_size(std::uint64_t size, std::span<char, 18> out) noexcept;

inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace coir::http
