// gzip by zlib: of the libraries that read it the one that takes memory by the caller's functions, and says beforehand how much.
#include <coir/detail/accounts.h>
#include <coir/http/client.h>
#include <coir/http/detail/content_coding.h>
#include <zlib.h>

#include <new>

#include "base/charged.h"

namespace coir::http {
namespace {

// 16: gzip, neither zlib's own format nor raw. The window is what the format allows at most, 32 KB.
constexpr int kGzipWindow = 16 + MAX_WBITS;

// Each piece is charged, and has its size in front.
struct alignas(16) Piece {
  std::size_t bytes;
};

void* take(std::size_t bytes) noexcept {
  bytes += sizeof(Piece);
  void* const memory = take_charged(account::http, bytes);
  return memory != nullptr ? ::new (memory) Piece{bytes} + 1 : nullptr;
}

void give(void* memory) noexcept {
  Piece* const piece = static_cast<Piece*>(memory) - 1;
  give_charged(account::http, piece, piece->bytes);
}

voidpf zlib_takes(voidpf, uInt items, uInt size) {
  return take(std::size_t{items} * size);
}
void zlib_gives(voidpf, voidpf memory) {
  give(memory);
}

void* begin() noexcept {
  void* const memory = take(sizeof(z_stream));
  if (memory == nullptr) return nullptr;
  auto* const stream = ::new (memory) z_stream{};
  stream->zalloc = zlib_takes;
  stream->zfree = zlib_gives;
  if (inflateInit2(stream, kGzipWindow) == Z_OK) return stream;
  give(memory);
  return nullptr;
}

void end(void* state) noexcept {
  inflateEnd(static_cast<z_stream*>(state));
  give(state);
}

// zlib's callbacks for memory do not park and go a few hundred bytes deep: the fiber's own stack suffices.
ContentCoding::Progress decode(void* state, std::span<const char>& from, std::span<char>& into) noexcept {
  using enum ContentCoding::Progress;
  auto& stream = *static_cast<z_stream*>(state);
  stream.next_in = reinterpret_cast<const Bytef*>(from.data());
  stream.avail_in = static_cast<uInt>(from.size());
  stream.next_out = reinterpret_cast<Bytef*>(into.data());
  stream.avail_out = static_cast<uInt>(into.size());
  const int outcome = inflate(&stream, Z_SYNC_FLUSH);
  from = from.last(stream.avail_in);
  into = into.last(stream.avail_out);
  switch (outcome) {
    case Z_OK:
    case Z_BUF_ERROR:  // it has neither taken nor put anything: it needs the other side
      return goes_on;
    case Z_STREAM_END:
      // Another may follow right behind (RFC 1952, 2.2).
      return inflateReset(&stream) == Z_OK ? ended : malformed;
    case Z_MEM_ERROR:
      return no_memory;
    default:
      return malformed;
  }
}

}  // namespace

constinit const ContentCoding kGzip = {.name = "gzip", .begin = begin, .end = end, .decode = decode};

}  // namespace coir::http
