#pragma once

#include <coir/file.h>
#include <coir/http/exchange.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>

namespace coir::http {

// SpoolFile is content in a file without a name, which goes with its descriptor. If its file system is RAM (tmpfs,
// ramfs), each page is charged to account::http before it is written, until the file is closed. On a fiber; its calls
// wait for the disk.
class SpoolFile {
 public:
  SpoolFile() noexcept = default;
  SpoolFile(const SpoolFile&) = delete;
  SpoolFile& operator=(const SpoolFile&) = delete;
  ~SpoolFile() { close(); }

  // open makes the file in `folder`. It returns -errno where it fails, else 0.
  int open(Exchange& exchange, const char* folder) noexcept;
  // write adds to the end. Errors: no_memory (the ledger refuses), File's.
  std::expected<void, Error> write(std::span<const char> bytes) noexcept;
  // read_at is File's.
  std::expected<std::size_t, Error> read_at(std::span<char> into, std::uint64_t at) const noexcept {
    return file_.read_at(into, at);
  }
  // close gives all back. Idempotent; it does not wait.
  void close() noexcept;
  bool is_open() const noexcept { return file_.is_open(); }

 private:
  File file_;
  std::size_t size_ = 0, charged_ = 0;
  bool in_ram_ = false;
};

}  // namespace coir::http
