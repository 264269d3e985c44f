#include <coir/port/poller.h>

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <coir/port/memory.h>
#include <coir/port/spinning.h>

namespace coir::port {

namespace {
constexpr std::size_t kBatch = 128;

// The time that epoll_pwait2 takes on every CPU. libc's timespec may have padding where the kernel reads nanoseconds.
struct KernelTime {
  std::int64_t seconds, nanoseconds;
};

timespec span_of(std::int64_t ns) noexcept {
  return {.tv_sec = static_cast<time_t>(ns / 1'000'000'000), .tv_nsec = static_cast<long>(ns % 1'000'000'000)};
}
}  // namespace

int Poller::open(bool want_ppoll, std::size_t max_fds) noexcept {
  wakeup_fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wakeup_fd_ < 0) return errno;
  if (!want_ppoll) {
    epoll_fd_ = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd_ >= 0) {
      kind_ = Kind::epoll;
      if (const int error = add(wakeup_fd_, 0); error != 0) {
        close();
        return error;
      }
      return 0;
    }
    if (errno != ENOSYS) {
      const int error = errno;
      close();
      return error;
    }
  }
  kind_ = Kind::ppoll;
  auto* entries = static_cast<pollfd*>(reserve((max_fds + 1) * sizeof(pollfd)));
  if (entries == nullptr) {
    close();
    return ENOMEM;
  }
  watched_ = {entries, max_fds + 1};
  return 0;
}

void Poller::close() noexcept {
  if (epoll_fd_ >= 0) ::close(epoll_fd_);
  if (wakeup_fd_ >= 0) ::close(wakeup_fd_);
  if (!watched_.empty()) release(watched_.data(), watched_.size_bytes());
  epoll_fd_ = wakeup_fd_ = -1;
  watched_ = {};
  kind_ = Kind::closed;
}

epoll_event Poller::event_of(int fd, std::uint32_t tag) noexcept {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLRDHUP | EPOLLET;
  event.data.u64 = static_cast<std::uint64_t>(tag) << 32 | static_cast<std::uint32_t>(fd);
  return event;
}

bool Poller::watches(int fd, std::uint32_t tag) noexcept {
  expect_no_spinlock("epoll_ctl");
  epoll_event event = event_of(fd, tag);
  return epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) != 0;
}

int Poller::add(int fd, std::uint32_t tag) noexcept {
  expect_no_spinlock("epoll_ctl");
  if (kind_ != Kind::epoll) return 0;
  epoll_event event = event_of(fd, tag);
  if (epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) == 0) return 0;
  // A descriptor that outlived an earlier registration of its number takes the new tag.
  if (errno == EEXIST && epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, fd, &event) == 0) return 0;
  return errno;
}

std::size_t Poller::wait(std::span<PollEvent> events, std::int64_t timeout_ns, Collect collect,
                         void* context) noexcept {
  expect_no_spinlock("epoll_wait");
  if (kind_ == Kind::epoll) return wait_epoll(events, timeout_ns);
  return wait_ppoll(events, timeout_ns, collect, context);
}

// sleep_in_epoll is epoll_wait with a timeout in nanoseconds: by epoll_pwait2, since Linux 5.11, or by a ppoll before it.
// A long timeout ends up to a millisecond early there, which spares the second call for what comes before.
int Poller::sleep_in_epoll(epoll_event* raw, int room, std::int64_t timeout_ns) noexcept {
  constexpr std::int64_t kMs = 1'000'000, kLongNs = 20 * kMs, kMostMs = 0x7fffffff;
  if (timeout_ns <= 0) return epoll_wait(epoll_fd_, raw, room, timeout_ns < 0 ? -1 : 0);
  if (has_pwait2_) {
    const KernelTime limit{.seconds = timeout_ns / 1'000'000'000, .nanoseconds = timeout_ns % 1'000'000'000};
    const long n = syscall(SYS_epoll_pwait2, epoll_fd_, raw, room, &limit, nullptr, std::size_t{0});
    if (n >= 0 || (errno != ENOSYS && errno != EPERM)) return static_cast<int>(n);
    has_pwait2_ = false;
  }
  if (timeout_ns >= kLongNs) {
    const std::int64_t ms = timeout_ns / kMs;
    return epoll_wait(epoll_fd_, raw, room, static_cast<int>(ms < kMostMs ? ms : kMostMs));
  }
  pollfd any{.fd = epoll_fd_, .events = POLLIN, .revents = 0};
  const timespec limit = span_of(timeout_ns);
  if (ppoll(&any, 1, &limit, nullptr) <= 0) return 0;
  return epoll_wait(epoll_fd_, raw, room, 0);
}

std::size_t Poller::wait_epoll(std::span<PollEvent> events, std::int64_t timeout_ns) noexcept {
  epoll_event raw[kBatch];
  const std::size_t room = events.size() < kBatch ? events.size() : kBatch;
  const int n = sleep_in_epoll(raw, static_cast<int>(room), timeout_ns);
  std::size_t kept = 0;
  for (int i = 0; i < n; ++i) {
    const std::uint64_t data = raw[i].data.u64;
    const int fd = static_cast<int>(static_cast<std::uint32_t>(data));
    if (fd == wakeup_fd_) continue;  // each write is an edge, read or not
    const std::uint32_t bits = raw[i].events;
    const bool hung_up = (bits & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    events[kept++] = {.fd = fd,
                      .tag = static_cast<std::uint32_t>(data >> 32),
                      .readable = (bits & EPOLLIN) != 0 || hung_up,
                      .writable = (bits & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0,
                      .urgent = (bits & EPOLLPRI) != 0,
                      .hung_up = hung_up};
  }
  return kept;
}

std::size_t Poller::wait_ppoll(std::span<PollEvent> events, std::int64_t timeout_ns, Collect collect,
                               void* context) noexcept {
  watched_[0] = {.fd = wakeup_fd_, .events = POLLIN, .revents = 0};
  const std::size_t count = 1 + collect(context, watched_.subspan(1));
  const timespec limit = span_of(timeout_ns < 0 ? 0 : timeout_ns);
  int ready = ppoll(watched_.data(), static_cast<nfds_t>(count), timeout_ns < 0 ? nullptr : &limit, nullptr);
  if (ready > 0 && watched_[0].revents != 0) {
    drain_wakeup();
    --ready;
  }
  std::size_t kept = 0;
  for (std::size_t i = 1; i < count && ready > 0 && kept < events.size(); ++i) {
    const int bits = watched_[i].revents;
    if (bits == 0) continue;
    --ready;
    const bool broken = (bits & (POLLHUP | POLLERR | POLLNVAL)) != 0;
    // Level-triggered: a hang-up is reported again at the next wait, so nothing needs to be remembered.
    events[kept++] = {.fd = watched_[i].fd,
                      .tag = 0,
                      .readable = (bits & POLLIN) != 0 || broken,
                      .writable = (bits & POLLOUT) != 0 || broken,
                      .urgent = (bits & (POLLPRI | POLLRDHUP)) != 0 || broken,
                      .hung_up = false};
  }
  return kept;
}

void Poller::interrupt() noexcept {
  expect_no_spinlock("write");
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = write(wakeup_fd_, &one, sizeof one);
}

void Poller::drain_wakeup() noexcept {
  std::uint64_t count;
  [[maybe_unused]] const ssize_t n = read(wakeup_fd_, &count, sizeof count);
}

}  // namespace coir::port
