#pragma once

#include <coir/error.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <utility>

namespace coir {

// Buffer is memory for bytes that are on their way: what a server, a client or a socket reads into and writes from. It
// is borrowed from the process's one pool and given back when nothing moves any more, so that what rests holds none.
//
//   auto buffer = Buffer::take(4096);
//   if (!buffer) return std::unexpected(buffer.error());
//   stream.read(buffer->bytes(), deadline) ...            // the destructor gives it back
//
// There are five sizes, whole pages each: 4, 16, 64, 256 KiB and 1 MiB. A few small ones that come back stay hot; under
// pressure they go too. Every buffer is charged to account::buffers. A value of one word, move-only; from fibers and
// threads. Nothing here parks.
//
// Cost: a lock and a few instructions; a system call or two where none is spare.
class Buffer {
 public:
  static constexpr std::size_t kLeast = 4096;
  static constexpr std::size_t kMost = 1024 * 1024;

  Buffer() noexcept = default;
  Buffer(Buffer&& other) noexcept : word_(std::exchange(other.word_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    if (this != &other) {
      give();
      word_ = std::exchange(other.word_, 0);
    }
    return *this;
  }
  ~Buffer() { give(); }

  // take borrows the smallest buffer that holds `bytes`. Its content is the last borrower's, or zero.
  // Without `may_relieve` no idle connection is closed for it: for a caller that holds a lock of one.
  // Errors: no_memory (the ledger or the kernel refuses), limit (`bytes` is over kMost).
  [[nodiscard]] static std::expected<Buffer, Error> take(std::size_t bytes, bool may_relieve = true) noexcept;

  // grow moves the first `used` bytes into the next larger buffer. On an error the buffer stays as it is.
  // Errors: as take.
  [[nodiscard]] std::expected<void, Error> grow(std::size_t used, bool may_relieve = true) noexcept;

  // give gives the buffer back. It does nothing where there is none.
  void give() noexcept;

  explicit operator bool() const noexcept { return word_ != 0; }
  char* data() const noexcept { return reinterpret_cast<char*>(word_ & ~kClass); }
  // size is 0 where there is none.
  std::size_t size() const noexcept { return word_ == 0 ? 0 : kLeast << 2 * (word_ & kClass); }
  std::span<char> bytes() const noexcept { return {data(), size()}; }

  // spare_bytes is how much of account::buffers nobody has borrowed.
  static std::size_t spare_bytes() noexcept;

 private:
  static constexpr std::uintptr_t kClass = 7;  // of the word: the size; the rest is the address

  explicit Buffer(std::uintptr_t word) noexcept : word_(word) {}

  std::uintptr_t word_ = 0;
};

static_assert(sizeof(Buffer) == sizeof(void*));

}  // namespace coir
