#include "log_file.h"

#include <coir/file.h>
#include <coir/format.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

LogFile::~LogFile() {
  close();
}

void LogFile::name(const char* path, std::uint64_t most_bytes, unsigned kept) noexcept {
  path_ = path;
  most_ = most_bytes;
  kept_ = kept;
}

void LogFile::close() noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

int LogFile::open() noexcept {
  close();
  // A named pipe without a reader is an error, and no reason to wait.
  const coir::UnsharedFile file = coir::open_unshared(path_, O_RDWR | O_APPEND | O_NONBLOCK | O_NOCTTY, 0640);
  if (file.error != 0) return file.error;
  fd_ = file.fd;
  created_ = file.created;
  const int error = mend();
  if (error != 0) close();
  return error;
}

int LogFile::give_to(uid_t user, gid_t group) const noexcept {
  return !created_ || ::fchown(fd_, user, group) == 0 ? 0 : errno;
}

// mend cuts off what follows the last end of a line: a kill, or a loss of power, may break a write off.
int LogFile::mend() noexcept {
  char part[512];
  off_t end = ::lseek(fd_, 0, SEEK_END);
  const off_t size = end;
  while (end > 0) {
    const off_t begin = std::max<off_t>(0, end - static_cast<off_t>(sizeof part));
    const ssize_t got = ::pread(fd_, part, static_cast<std::size_t>(end - begin), begin);
    if (got != end - begin) return got < 0 ? errno : EIO;
    const std::size_t last = std::string_view(part, static_cast<std::size_t>(got)).rfind('\n');
    if (last != std::string_view::npos) {
      end = begin + static_cast<off_t>(last) + 1;
      break;
    }
    end = begin;
  }
  return end == size || ::ftruncate(fd_, end) == 0 ? 0 : errno;
}

int LogFile::rotate() noexcept {
  char from[512], to[512];
  for (unsigned number = kept_; number != 0; --number) {
    coir::Formatter source(from), target(to);
    source.add(path_);
    if (number > 1) source.add(".", number - 1);
    if (!source.add('\0').fits() || !target.add(path_, ".", number, '\0').fits()) return ENAMETOOLONG;
    if (::rename(from, to) != 0 && errno != ENOENT) return errno;
  }
  return open();
}

int LogFile::make_ready(std::size_t bytes) noexcept {
  struct stat named, opened;
  const bool same = fd_ >= 0 && ::stat(path_, &named) == 0 && ::fstat(fd_, &opened) == 0 &&
                    named.st_ino == opened.st_ino && named.st_dev == opened.st_dev;
  if (!same) {
    if (const int error = open(); error != 0) return error;
    if (::fstat(fd_, &opened) != 0) return errno;
  }
  const bool full = opened.st_size != 0 && static_cast<std::uint64_t>(opened.st_size) + bytes > most_;
  return full ? rotate() : 0;
}

int LogFile::write(std::string_view lines) noexcept {
  if (const int error = make_ready(lines.size()); error != 0) return error;
  const off_t before = ::lseek(fd_, 0, SEEK_END);
  while (!lines.empty()) {
    const ssize_t written = ::write(fd_, lines.data(), lines.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const int error = written < 0 ? errno : EIO;
      if (before >= 0) static_cast<void>(::ftruncate(fd_, before));
      return error;
    }
    lines.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}
