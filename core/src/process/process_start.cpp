#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <coir/blocking.h>
#include <coir/process.h>

#include "base/fallback.h"
#include "blocking/file_steps.h"
#include "process/process_start.h"

extern char** environ;

namespace coir {

namespace {

// Descriptor closes its descriptor.
class Descriptor {
 public:
  Descriptor() noexcept = default;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { hold(-1); }
  int hold(int fd) noexcept {
    if (fd_ >= 0) ::close(fd_);
    return fd_ = fd;
  }
  int fd() const noexcept { return fd_; }
  int release() noexcept { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

// above_standard moves `fd` out of the way of 0, 1 and 2, which the child overwrites one after the other.
int above_standard(int fd) noexcept {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  ::close(fd);
  return moved;
}

// Start does the work of starting one process, and closes its descriptors at its end.
class Start {
 public:
  explicit Start(const Command& command) noexcept : command_(command) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
  }
  ~Start() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }

  std::expected<StartedChild, Error> run(const BlockingStop& stop) noexcept;

 private:
  int prepare(const BlockingStop& stop) noexcept;
  int hold_input(const BlockingStop& stop) noexcept;
  int fill_memory(std::span<const char> bytes, const BlockingStop& stop) noexcept;
  int hold_pipe(int slot, Descriptor& end) noexcept;
  int hold_output(int slot, const Output& output, Descriptor& reader) noexcept;
  int hold_copy(int slot, int fd) noexcept;
  int close_others() noexcept;
  int set_attributes() noexcept;

  const Command& command_;
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
  Descriptor child_[3];        // the child's future standard descriptors, all above 2; -1: inherited
  Descriptor in_, out_, err_;  // this process's ends of pipes
};

int Start::fill_memory(std::span<const char> bytes, const BlockingStop& stop) noexcept {
  if (child_[0].hold(above_standard(memfd_create("input", MFD_CLOEXEC))) < 0) return errno;
  if (auto written = write_pieces(child_[0].fd(), bytes, stop); !written) {
    return written.error().sys != 0 ? written.error().sys : ETIMEDOUT;
  }
  return lseek(child_[0].fd(), 0, SEEK_SET) == 0 ? 0 : errno;
}

int Start::hold_copy(int slot, int fd) noexcept {
  return child_[slot].hold(fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)) < 0 ? errno : 0;
}

int Start::hold_input(const BlockingStop& stop) noexcept {
  switch (command_.input.kind()) {
    case Input::Kind::none:
      return child_[0].hold(above_standard(::open("/dev/null", O_RDONLY | O_CLOEXEC))) < 0 ? errno : 0;
    case Input::Kind::inherit:
      return 0;
    case Input::Kind::bytes:
      return fill_memory(command_.input.content(), stop);
    case Input::Kind::file:
      return hold_copy(0, command_.input.fd());
    case Input::Kind::pipe:
      return hold_pipe(0, in_);
  }
  return EINVAL;
}

// hold_pipe makes a pipe, and `end` this process's end of it. Only that is non-blocking: the program does not expect
// EAGAIN.
int Start::hold_pipe(int slot, Descriptor& end) noexcept {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return errno;
  const int reads = above_standard(ends[0]), writes = above_standard(ends[1]);
  end.hold(slot == STDIN_FILENO ? writes : reads);
  child_[slot].hold(slot == STDIN_FILENO ? reads : writes);
  if (reads < 0 || writes < 0 || fcntl(end.fd(), F_SETFL, O_NONBLOCK) != 0) return errno;
  return 0;
}

int Start::hold_output(int slot, const Output& output, Descriptor& reader) noexcept {
  switch (output.kind()) {
    case Output::Kind::none:
      return child_[slot].hold(above_standard(::open("/dev/null", O_WRONLY | O_CLOEXEC))) < 0 ? errno : 0;
    case Output::Kind::inherit:
      return 0;
    case Output::Kind::pipe:
      return hold_pipe(slot, reader);
    case Output::Kind::file:
      return hold_copy(slot, output.fd());
    case Output::Kind::out:
      if (slot != STDERR_FILENO) return EINVAL;
      return hold_copy(slot, child_[STDOUT_FILENO].fd() >= 0 ? child_[STDOUT_FILENO].fd() : STDOUT_FILENO);
  }
  return EINVAL;
}

// close_others makes the child close all descriptors that this process inherited or opened without O_CLOEXEC.
int Start::close_others() noexcept {
  DIR* const open_files = opendir("/proc/self/fd");
  if (open_files == nullptr) return errno == ENOENT ? 0 : errno;
  int error = 0;
  while (const dirent* const entry = readdir(open_files)) {
    const int fd = atoi(entry->d_name);
    if (fd <= STDERR_FILENO) continue;
    const int flags = fcntl(fd, F_GETFD);
    if (flags < 0 || (flags & FD_CLOEXEC) != 0) continue;
    if (error = posix_spawn_file_actions_addclose(&actions_, fd); error != 0) break;
  }
  closedir(open_files);
  return error;
}

int Start::set_attributes() noexcept {
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  int error = posix_spawnattr_setsigmask(&attributes_, &none);
  if (error == 0) error = posix_spawnattr_setsigdefault(&attributes_, &all);
  if (error == 0) error = posix_spawnattr_setpgroup(&attributes_, 0);
  if (error != 0) return error;
  return posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
}

int Start::prepare(const BlockingStop& stop) noexcept {
  int error = hold_input(stop);
  if (error == 0) error = hold_output(STDOUT_FILENO, command_.out, out_);
  if (error == 0) error = hold_output(STDERR_FILENO, command_.err, err_);
  for (int slot = 0; slot < 3 && error == 0; ++slot) {
    if (child_[slot].fd() >= 0) error = posix_spawn_file_actions_adddup2(&actions_, child_[slot].fd(), slot);
  }
  if (error == 0) error = close_others();
  // Change the folder after opening the descriptors, whose paths are relative to this process's folder.
  if (error == 0 && command_.directory != nullptr) {
    error = posix_spawn_file_actions_addchdir_np(&actions_, command_.directory);
  }
  if (error == 0) error = set_attributes();
  return error;
}

std::expected<StartedChild, Error> Start::run(const BlockingStop& stop) noexcept {
  if (const int error = prepare(stop); error != 0) return std::unexpected(Error::from_errno(error));
  if (stop.wanted()) return std::unexpected(stop.why());
  StartedChild started;
  char* const* const environment =
      command_.environment != nullptr ? const_cast<char* const*>(command_.environment) : environ;
  const int error = posix_spawnp(&started.pid, command_.argv[0], &actions_, &attributes_,
                                 const_cast<char* const*>(command_.argv.data()), environment);
  if (error != 0) return std::unexpected(Error::from_errno(error));
#if defined(SYS_pidfd_open)
  started.pidfd = static_cast<int>(syscall(SYS_pidfd_open, started.pid, 0));
  if (started.pidfd < 0 && errno == ENOSYS) tell_fallback(Fallback::no_pidfd);
#endif
  started.in = in_.release();
  started.out = out_.release();
  started.err = err_.release();
  return started;
}

}  // namespace

// The C library's spawn has frames of some kilobytes: run it on a thread of the pool.
std::expected<StartedChild, Error> start_process(const Command& command, Deadline deadline) noexcept {
  const std::span<const char* const> argv = command.argv;
  if (argv.size() < 2 || argv.front() == nullptr || argv.back() != nullptr) {
    return std::unexpected(Error{ErrorCode::invalid, EINVAL});
  }
  return detail::blocking_for(
      detail::BlockingKind::processes, [&](const BlockingStop& stop) { return Start(command).run(stop); }, deadline);
}

}  // namespace coir
