#pragma once

#include <coir/net/tls.h>

#include <cstddef>
#include <cstdint>

namespace coir::tls {

// RecordBuffers is what a session reads and writes through, while it does: mbedTLS's two buffers, and a little that is
// read ahead, so that a record that arrives whole costs one system call. What small records touch lies together:
//
//   | header | read ahead | out, 4 KB | in, 16 KB ........ |
//   0                                 page 1 or 2          24 KB
struct RecordBuffers {
  static constexpr std::size_t kBytes = kTlsBufferBytes;
  static constexpr std::size_t kAhead = 1536;

  RecordBuffers* next = nullptr;
  // How much of it holds what was said: wiped before the next session gets it.
  std::size_t in_used = 0;
  std::size_t out_used = 0;
  char ahead[kAhead];

  unsigned char* out() noexcept { return reinterpret_cast<unsigned char*>(this + 1); }
  unsigned char* in() noexcept;
  // note_in and note_out tell of bytes that mbedTLS has in its hands.
  void note_in(const unsigned char* end) noexcept {
    const auto used = static_cast<std::size_t>(end - in());
    if (used > in_used) in_used = used;
  }
  void note_out(const unsigned char* end) noexcept {
    const auto used = static_cast<std::size_t>(end - out());
    if (used > out_used) out_used = used;
  }
};

// take_buffers charges account::tls and returns buffers, or null; with `spare_only`, only such as lie idle already.
// give_buffers keeps them for the next, as far as was needed lately. Any thread; on the way to relieve pressure too.
RecordBuffers* take_buffers(bool spare_only) noexcept;
void give_buffers(RecordBuffers* buffers) noexcept;

}  // namespace coir::tls
