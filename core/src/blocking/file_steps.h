#pragma once

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <expected>
#include <span>

#include <coir/blocking.h>
#include <coir/error.h>

namespace coir {

// file.cpp, file_replace.cpp and the record of ends share these steps.

// kFilePiece is how much is read or written between two looks at whether the caller still wants it, in bytes.
inline constexpr std::size_t kFilePiece = std::size_t{64} * 1024;

// write_pieces writes all of `bytes`. Blocks.
inline std::expected<void, Error> write_pieces(int fd, std::span<const char> bytes, const BlockingStop& stop) noexcept {
  while (!bytes.empty()) {
    if (stop.wanted()) return std::unexpected(stop.why());
    const ssize_t n = ::write(fd, bytes.data(), std::min(bytes.size(), kFilePiece));
    if (n >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    } else if (errno != EINTR) {
      return std::unexpected(Error::from_errno(errno));
    }
  }
  return {};
}

// sync_file is fsync, which file systems without storage answer with EINVAL. Blocks.
inline std::expected<void, Error> sync_file(int fd) noexcept {
  while (fsync(fd) != 0) {
    if (errno == EINVAL) break;
    if (errno != EINTR) return std::unexpected(Error::from_errno(errno));
  }
  return {};
}

// lock_soon is flock without LOCK_NB, for up to 100 ms: anybody who can read the file can hold its lock, mostly for a moment.
// False: errno has the reason, EWOULDBLOCK if another still holds the lock. Blocks.
inline bool lock_soon(int fd, int how) noexcept {
  for (int ms = 0; ::flock(fd, how | LOCK_NB) != 0; ++ms) {
    if (errno != EWOULDBLOCK || ms == 100) return false;
    ::usleep(1000);
  }
  return true;
}

// sync_folder syncs the folder at `path`, with the names in it. Returns 0 or errno. Blocks.
inline int sync_folder(const char* path) noexcept {
  const int fd = ::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno;
  const auto synced = sync_file(fd);
  ::close(fd);
  return synced ? 0 : synced.error().sys;
}

}  // namespace coir
