#include <coir/file.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include <coir/blocking.h>
#include <coir/pressure.h>

#include "blocking/file_steps.h"

namespace coir {

std::expected<void, Error> FileBytes::make_room(std::size_t bytes) noexcept {
  if (bytes <= room_) return {};
  if (!Pressure::charge(*account_, bytes - room_)) return std::unexpected(Error{ErrorCode::limit});
  auto* const grown = static_cast<char*>(realloc(data_, bytes));
  if (grown == nullptr) {
    account_->refund(bytes - room_);
    return std::unexpected(Error{ErrorCode::no_memory, ENOMEM});
  }
  data_ = grown;
  room_ = bytes;
  return {};
}

FileBytes::~FileBytes() {
  free(data_);
  if (room_ != 0) account_->refund(room_);
}

std::expected<File, Error> File::open(const char* path, const FileOptions& options, Deadline deadline) noexcept {
  // O_NONBLOCK keeps a pipe without a writer from holding the thread for ever. On files it has no effect.
  int flags = O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  const bool write = options.write || options.append;
  flags |= !write ? O_RDONLY : options.read ? O_RDWR : O_WRONLY;
  if (options.create) flags |= O_CREAT;
  if (options.exclusive) flags |= O_EXCL;
  if (options.truncate) flags |= O_TRUNC;
  if (options.append) flags |= O_APPEND;
  return detail::blocking_for(
      detail::BlockingKind::files,
      [&](const BlockingStop&) -> std::expected<File, Error> {
        int fd;
        do {
          fd = ::open(path, flags, options.mode);
        } while (fd < 0 && errno == EINTR);
        if (fd < 0) return std::unexpected(Error::from_errno(errno));
        return File(fd);
      },
      deadline);
}

namespace {

// read_until_end is read_at that returns 0 at the end, for those who read on until then.
std::expected<std::size_t, Error> read_until_end(int fd, std::span<char> into, std::uint64_t offset,
                                                 Deadline deadline) noexcept {
  if (into.empty()) return std::size_t{0};
  return detail::blocking_for(
      detail::BlockingKind::files,
      [&](const BlockingStop& stop) -> std::expected<std::size_t, Error> {
        std::size_t done = 0;
        while (done < into.size()) {
          if (stop.wanted()) return std::unexpected(stop.why());
          const std::size_t piece = std::min(into.size() - done, kFilePiece);
          const ssize_t n = ::pread(fd, into.data() + done, piece, static_cast<off_t>(offset + done));
          if (n == 0) break;
          if (n > 0) {
            done += static_cast<std::size_t>(n);
          } else if (errno != EINTR) {
            return std::unexpected(Error::from_errno(errno));
          }
        }
        return done;
      },
      deadline);
}

}  // namespace

std::expected<std::size_t, Error> File::read_at(std::span<char> into, std::uint64_t offset,
                                                Deadline deadline) const noexcept {
  const auto done = read_until_end(fd_, into, offset, deadline);
  if (done && *done == 0 && !into.empty()) return std::unexpected(Error{ErrorCode::end_of_stream});
  return done;
}

std::expected<std::size_t, Error> File::read_all(std::span<char> into, Deadline deadline) const noexcept {
  auto done = read_until_end(fd_, into, 0, deadline);
  if (!done || *done < into.size()) return done;
  char more;
  const auto beyond = read_until_end(fd_, {&more, 1}, *done, deadline);
  if (!beyond) return beyond;
  if (*beyond != 0) return std::unexpected(Error{ErrorCode::limit, EFBIG});
  return done;
}

std::expected<FileBytes, Error> File::read_all(Account& account, std::size_t most, Deadline deadline) const noexcept {
  // The size is a hint: files of /proc have none, and others grow meanwhile. One byte more finds the end.
  const auto hint = size();
  if (!hint) return std::unexpected(hint.error());
  if (*hint > most) return std::unexpected(Error{ErrorCode::limit, EFBIG});
  FileBytes out(account);
  std::size_t room = std::max<std::size_t>(static_cast<std::size_t>(*hint) + 1, 512);
  for (;;) {
    // Ask for at most one byte beyond `most`: its arrival shows that the file is too long.
    room = std::min(room, most < SIZE_MAX ? most + 1 : most);
    if (auto made = out.make_room(room); !made) return std::unexpected(made.error());
    const auto n = read_until_end(fd_, {out.data_ + out.size_, out.room_ - out.size_}, out.size_, deadline);
    if (!n) return std::unexpected(n.error());
    out.size_ += *n;
    if (out.size_ > most) return std::unexpected(Error{ErrorCode::limit, EFBIG});
    if (out.size_ < out.room_) return out;
    room = out.room_ * 2;
  }
}

std::expected<void, Error> File::write_all(std::span<const char> bytes, Deadline deadline) noexcept {
  return detail::blocking_for(
      detail::BlockingKind::files, [&](const BlockingStop& stop) { return write_pieces(fd_, bytes, stop); }, deadline);
}

std::expected<void, Error> File::sync(Deadline deadline) noexcept {
  return detail::blocking_for(
      detail::BlockingKind::files, [&](const BlockingStop&) { return sync_file(fd_); }, deadline);
}

std::expected<std::uint64_t, Error> File::size() const noexcept {
  struct stat status;
  if (fstat(fd_, &status) != 0) return std::unexpected(Error::from_errno(errno));
  return static_cast<std::uint64_t>(status.st_size);
}

std::expected<void, Error> File::close() noexcept {
  // On Linux the descriptor is gone whatever close says, EINTR included.
  if (const int fd = std::exchange(fd_, -1); fd >= 0 && ::close(fd) != 0 && errno != EINTR) {
    return std::unexpected(Error::from_errno(errno));
  }
  return {};
}

std::expected<void, Error> append_to(const char* path, std::span<const char> bytes, Deadline deadline) noexcept {
  auto file = File::open(path, {.create = true, .append = true}, deadline);
  if (!file) return std::unexpected(file.error());
  if (auto written = file->write_all(bytes, deadline); !written) return written;
  return file->close();
}

std::expected<std::string_view, Error> FileLines::next(Deadline deadline) noexcept {
  for (;;) {
    if (auto line = cutter_.next(ended_)) return *line;
    const auto room = cutter_.room();
    const auto n = read_until_end(file_.fd(), room, offset_, deadline);
    if (!n) return std::unexpected(n.error());
    offset_ += *n;
    cutter_.add(*n);
    ended_ = *n < room.size();
  }
}

}  // namespace coir
