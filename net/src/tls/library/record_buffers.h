#pragma once

#include <coir/tls.h>

#include <cstddef>
#include <cstdint>

namespace coir::tls {

// RecordBuffers are a session's buffers while it reads or writes: mbedTLS's two, and a small one for reading ahead, so
// that a record that arrives whole costs one system call. The parts that small records touch lie together:
//
//   | header | read ahead | out, 4 KB | in, 16 KB ........ |
//   0                                 page 1 or 2          24 KB
struct RecordBuffers {
  static constexpr std::size_t kBytes = kTlsBufferBytes;
  static constexpr std::size_t kAhead = 1536;

  // How much of it holds data of the session: wiped before the next session gets it.
  std::size_t in_used = 0;
  std::size_t out_used = 0;
  char ahead[kAhead];

  unsigned char* out() noexcept { return reinterpret_cast<unsigned char*>(this + 1); }
  unsigned char* in() noexcept;
  // note_in and note_out record how many bytes mbedTLS has put there.
  void note_in(const unsigned char* end) noexcept {
    const auto used = static_cast<std::size_t>(end - in());
    if (used > in_used) in_used = used;
  }
  void note_out(const unsigned char* end) noexcept {
    const auto used = static_cast<std::size_t>(end - out());
    if (used > out_used) out_used = used;
  }
};

// take_buffers charges account::tls and returns buffers, or null; with `spare_only`, only buffers that lie idle
// already. give_buffers keeps as many as were needed lately, and frees the others. Any thread; also while pressure is
// relieved.
RecordBuffers* take_buffers(bool spare_only) noexcept;
void give_buffers(RecordBuffers* buffers) noexcept;

}  // namespace coir::tls
