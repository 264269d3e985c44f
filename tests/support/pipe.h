#pragma once

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <coir/wait.h>

namespace coir::test {

// Pipe is a non-blocking pair of descriptors, closed by coir::close_fd: a pipe, or a pair of connected sockets.
struct Pipe {
  enum class Kind { pipe, sockets };

  int reader = -1;
  int writer = -1;

  explicit Pipe(Kind kind = Kind::pipe) noexcept {
    int ends[2] = {-1, -1};
    if (kind == Kind::pipe) {
      [[maybe_unused]] const int made = pipe2(ends, O_NONBLOCK | O_CLOEXEC);
    } else {
      [[maybe_unused]] const int made = socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends);
    }
    reader = ends[0];
    writer = ends[1];
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close_reader();
    close_writer();
  }

  void close_reader() noexcept { close_end(reader); }
  void close_writer() noexcept { close_end(writer); }

  // put and get move one byte without waiting.
  bool put(char byte = 'x') noexcept { return write(writer, &byte, 1) == 1; }
  bool get() noexcept {
    char byte;
    return ::read(reader, &byte, 1) == 1;
  }
  void fill() noexcept {
    char bytes[4096] = {};
    while (write(writer, bytes, sizeof bytes) > 0) {
    }
  }
  void drain() noexcept {
    char bytes[4096];
    while (::read(reader, bytes, sizeof bytes) > 0) {
    }
  }

 private:
  static void close_end(int& fd) noexcept {
    if (fd >= 0) close_fd(fd);
    fd = -1;
  }
};

// count_fds tells how many descriptors the process has open.
inline int count_fds() noexcept {
  int count = 0;
  if (DIR* const listed = opendir("/proc/self/fd"); listed != nullptr) {
    while (const dirent* const entry = readdir(listed)) count += entry->d_name[0] != '.';
    closedir(listed);
    return count - 1;  // without the one that has listed them
  }
  // No descriptor is free to list them: the table is full, or the limit is low. Each number is tried.
  for (int fd = 0; fd < 65536; ++fd) count += fcntl(fd, F_GETFD) != -1;
  return count;
}

}  // namespace coir::test
