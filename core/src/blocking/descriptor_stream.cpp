#include <coir/descriptor_stream.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coir/blocking.h>
#include <coir/budget.h>
#include <coir/format.h>
#include <coir/wait.h>

#include "wait/poll_events.h"

namespace coir {

using Use = detail::UsedDescriptor::Use;

namespace {

constexpr Error kClosed{ErrorCode::closed, EBADF};

// ready_now tells what poll(2) says of `events` without waiting; 0 where nothing is ready.
std::expected<short, Error> ready_now(int fd, short events) noexcept {
  pollfd entry = {.fd = fd, .events = events, .revents = 0};
  if (::poll(&entry, 1, 0) < 0 && errno != EINTR) return std::unexpected(Error::from_errno(errno));
  if ((entry.revents & POLLNVAL) != 0) return std::unexpected(Error{ErrorCode::closed, EBADF});
  return entry.revents;
}

}  // namespace

std::expected<DescriptorStream::Kind, Error> DescriptorStream::kind_of(int fd) noexcept {
  struct stat status;
  if (fstat(fd, &status) != 0) return std::unexpected(Error::from_errno(errno));
  if (S_ISDIR(status.st_mode)) return std::unexpected(Error{ErrorCode::unsupported, EISDIR});
  if (S_ISSOCK(status.st_mode)) return Kind::socket;
  return S_ISREG(status.st_mode) || S_ISBLK(status.st_mode) ? Kind::file : Kind::stream;
}

std::expected<DescriptorStream, Error> DescriptorStream::open(const char* path, const FileOptions& options,
                                                              Deadline deadline) noexcept {
  auto file = File::open(path, options, deadline);
  if (!file) return std::unexpected(file.error());
  auto stream = adopt(file->fd());
  if (stream) static_cast<void>(file->release());
  return stream;
}

std::expected<DescriptorStream, Error> DescriptorStream::adopt(int fd) noexcept {
  const auto kind = kind_of(fd);
  if (!kind) return std::unexpected(kind.error());
  if (*kind == Kind::stream) {
    const int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || ((flags & O_NONBLOCK) == 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0)) {
      return std::unexpected(Error::from_errno(errno));
    }
  }
  return DescriptorStream(fd, *kind);
}

std::expected<DescriptorStream, Error> DescriptorStream::share(int fd) noexcept {
  const auto kind = kind_of(fd);
  if (!kind) return std::unexpected(kind.error());
  int own;
  if (*kind == Kind::stream) {
    char path[32];
    format(path, "/proc/self/fd/", fd, '\0');
    const int flags = fcntl(fd, F_GETFL);
    own = ::open(path, (flags & (O_ACCMODE | O_APPEND)) | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  } else {
    own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  }
  if (own < 0) return std::unexpected(Error::from_errno(errno));
  return DescriptorStream(own, *kind);
}

// transfer repeats a call of the kernel's until it has moved bytes, or says 0.
template <class Call>
std::expected<std::size_t, Error> DescriptorStream::transfer(const Use& use, Direction direction, Call call,
                                                             Deadline deadline) noexcept {
  if (!use) return std::unexpected(kClosed);
  spend_budget(kSystemCallCost);
  if (kind_ == Kind::file) {
    // A file has its bytes at once: as with every stream, they come behind the deadline too.
    if (deadline.passed()) deadline = Deadline::never();
    return detail::blocking_for(
        detail::BlockingKind::files,
        [&](const BlockingStop& stop) -> std::expected<std::size_t, Error> {
          for (;;) {
            if (stop.wanted()) return std::unexpected(stop.why());
            if (const ssize_t moved = call(); moved >= 0) return static_cast<std::size_t>(moved);
            if (errno != EINTR) return std::unexpected(Error::from_errno(errno));
          }
        },
        deadline);
  }
  for (;;) {
    if (const ssize_t moved = call(); moved >= 0) return static_cast<std::size_t>(moved);
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return std::unexpected(Error::from_errno(errno));
    if (use.ended()) return std::unexpected(kClosed);
    if (auto ready = coir::wait(use.fd(), direction, deadline); !ready) return std::unexpected(ready.error());
  }
}

std::expected<std::size_t, Error> DescriptorStream::read(std::span<char> into, Deadline deadline) noexcept {
  if (into.empty()) return std::unexpected(Error{ErrorCode::invalid, EINVAL});
  const Use use(descriptor_);
  const auto got = transfer(
      use, Direction::readable,
      [&] {
        return kind_ == Kind::socket ? ::recv(use.fd(), into.data(), into.size(), MSG_DONTWAIT)
                                     : ::read(use.fd(), into.data(), into.size());
      },
      deadline);
  // The side of a terminal that a program holds open to another says so when the other is gone.
  const bool hung_up = !got && got.error().sys == EIO && isatty(use.fd()) == 1;
  if (hung_up || (got && *got == 0)) return std::unexpected(Error{ErrorCode::end_of_stream});
  return got;
}

std::expected<std::size_t, Error> DescriptorStream::write_some(std::string_view from, Deadline deadline) noexcept {
  if (from.empty()) return std::size_t{0};
  const Use use(descriptor_);
  return transfer(
      use, Direction::writable,
      [&] {
        return kind_ == Kind::socket ? ::send(use.fd(), from.data(), from.size(), MSG_DONTWAIT | MSG_NOSIGNAL)
                                     : ::write(use.fd(), from.data(), from.size());
      },
      deadline);
}

std::expected<void, Error> DescriptorStream::write(std::string_view from, Deadline deadline) noexcept {
  while (!from.empty()) {
    const auto written = write_some(from, deadline);
    if (!written) return std::unexpected(written.error());
    from.remove_prefix(*written);
  }
  return {};
}

// The descriptor is asked each time: an edge that an earlier wait took does not come again.
std::expected<void, Error> DescriptorStream::wait(Direction direction, Deadline deadline) noexcept {
  const Use use(descriptor_);
  spend_budget(kSystemCallCost);
  while (!use.ended()) {
    const auto ready = ready_now(use.fd(), poll_events(direction));
    if (!ready) return std::unexpected(ready.error());
    if (*ready != 0) return {};
    if (auto waited = coir::wait(use.fd(), direction, deadline); !waited) return waited;
  }
  return std::unexpected(kClosed);
}

std::expected<Direction, Error> DescriptorStream::wait_either(Deadline deadline) noexcept {
  const Use use(descriptor_);
  spend_budget(kSystemCallCost);
  while (!use.ended()) {
    const auto ready = ready_now(use.fd(), POLLIN | POLLOUT);
    if (!ready) return std::unexpected(ready.error());
    if ((*ready & ~POLLOUT) != 0) return Direction::readable;
    if (*ready != 0) return Direction::writable;
    const Awaited both[] = {{use.fd(), Direction::readable}, {use.fd(), Direction::writable}};
    if (auto waited = wait_several(both, deadline); !waited) return std::unexpected(waited.error());
  }
  return std::unexpected(kClosed);
}

void DescriptorStream::close() noexcept {
  descriptor_.close(end_waits);
}

}  // namespace coir
