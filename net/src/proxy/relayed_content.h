#pragma once

#include <coir/http/wire/chunked.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "http/message/response_parser.h"

namespace coir::http {

// RelayedContent is how the content of a response is framed on its way from the upstream, and how much of it has come.
//
// Content of a socket without TLS is peeked at, and taken out of the socket as far as the client has taken it. A slow client
// leaves the rest in the kernel, so that nothing of it is kept here:
//
//   RelayedContent seen = content;                               // of `got` bytes that were peeked at
//   const auto found = seen.unframe(bytes.first(got));
//   sent = ...                                                   // so much of *found has been sent
//   content.advance(seen, fd, *found, sent, bytes);
struct RelayedContent {
  ContentEnd end = ContentEnd::close;
  bool whole = false;      // it has come to its end
  bool strays = false;     // bytes have come behind it
  bool broken = false;     // the socket has failed: where it stands is not known
  std::uint64_t left = 0;  // of content with a length
  std::size_t used = 0;    // of the bytes that were given to unframe last
  ChunkedDecoder decoder;

  // unframe takes the framing off the next bytes, in place, and returns how many bytes of content lie at their front then;
  // nothing if they are malformed. With `trailers`, the fields behind chunked content are kept there.
  std::optional<std::size_t> unframe(std::span<char> bytes, std::span<char> trailers = {}) noexcept;

  // advance takes the first `taken` bytes of content out of the socket, of `found` that `seen` has found there. It uses
  // `scratch`.
  void advance(const RelayedContent& seen, int fd, std::size_t found, std::size_t taken,
               std::span<char> scratch) noexcept;
};

// kEndOfChunks follows the content of a last chunk.
inline constexpr std::string_view kEndOfChunks = "\r\n0\r\n\r\n";

// OwedFraming is what a client still has to be sent of a chunk that has begun: framing, which lies here and comes first, and
// content, which lies in the upstream's socket. A client that is not sent chunks is owed nothing.
struct OwedFraming {
  static constexpr std::size_t kMost = 18;  // the size of a chunk; "\r\n0\r\n\r\n" is shorter

  std::uint64_t content = 0;
  char text[kMost];
  std::uint8_t bytes = 0;  // of `text`: they come next

  // took notes that only the first `sent` bytes of `front`, `content_bytes` of content and `behind` have been sent, and
  // returns how many of them are content. `chunk` is how much of its chunk was unsent before; 0: there are no chunks.
  std::size_t took(std::size_t sent, std::string_view front, std::size_t content_bytes, std::string_view behind,
                   std::uint64_t chunk) noexcept;
  void owe(std::string_view framing) noexcept;
};

}  // namespace coir::http
