#include <coir/port/memory.h>
#include <coir/port/probe.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>

namespace coir::port {
namespace {

// opens closes what a system call returned and tells whether it returned anything.
bool opens(long fd) noexcept {
  if (fd < 0) return false;
  ::close(static_cast<int>(fd));
  return true;
}

bool has_madvise() noexcept {
  void* page = reserve(kPageBytes);
  if (page == nullptr) return false;
  const bool advised = ::madvise(page, kPageBytes, MADV_DONTNEED) == 0;
  release(page, kPageBytes);
  return advised;
}

bool has_guard_install() noexcept {
  void* page = reserve(kPageBytes);
  if (page == nullptr) return false;
  // Emulators answer 0 to advice that they do not know: a system call that reads from the page tells whether it is
  // guarded.
  const bool installed =
      guard_by_advice(page, kPageBytes) && ::access(static_cast<char*>(page), F_OK) < 0 && errno == EFAULT;
  release(page, kPageBytes);
  return installed;
}

bool has_openat2() noexcept {
  constexpr long kOpenat2 = 437;  // on every architecture
  const struct {
    std::uint64_t flags, mode, resolve;
  } how = {O_PATH | O_CLOEXEC, 0, 0};
  return opens(::syscall(kOpenat2, AT_FDCWD, "/", &how, sizeof how));
}

bool has_signalfd() noexcept {
  sigset_t none;
  sigemptyset(&none);
  return opens(::signalfd(-1, &none, SFD_CLOEXEC));
}

bool has_io_uring() noexcept {
  constexpr long kIoUringSetup = 425;  // on every architecture
  // A null argument is EFAULT where the call exists and is allowed.
  return ::syscall(kIoUringSetup, 1, nullptr) < 0 && errno != ENOSYS && errno != EPERM;
}

bool has_seccomp_filter() noexcept {
  // A null program is EFAULT where filters exist.
  constexpr unsigned long kModeFilter = 2;
  return ::prctl(PR_SET_SECCOMP, kModeFilter, nullptr, 0, 0) < 0 && errno == EFAULT;
}

bool has_landlock() noexcept {
  constexpr long kCreateRuleset = 444;  // on every architecture
  constexpr unsigned kVersion = 1;
  return ::syscall(kCreateRuleset, nullptr, 0, kVersion) > 0;
}

bool has_entropy() noexcept {
  unsigned char byte;
  return ::getrandom(&byte, 1, GRND_NONBLOCK) == 1;
}

}  // namespace

void probe(std::span<Feature, kFeatures> features) noexcept {
  constexpr int kStream = SOCK_STREAM | SOCK_CLOEXEC;
  std::size_t at = 0;
  const auto add = [&](const char* name, bool present, const char* with, const char* without) {
    features[at++] = {name, present, with, without};
  };
  add("epoll", opens(::epoll_create1(EPOLL_CLOEXEC)), "epoll, edge-triggered", "ppoll");
  add("eventfd", opens(::eventfd(0, EFD_CLOEXEC)), "eventfd wakes a sleeping worker",
      "needed: coird cannot run without");
  add("timerfd", opens(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)), "not needed: deadlines end the poll",
      "not needed: deadlines end the poll");
  add("signalfd", has_signalfd(), "not needed: signal handlers", "not needed: signal handlers");
  add("madvise", has_madvise(), "stacks given back by MADV_DONTNEED", "stacks given back by mapping over them");
  add("guard_install", has_guard_install(), "stack guards by MADV_GUARD_INSTALL", "stack guards by mprotect");
  add("openat2", has_openat2(), "files opened by openat2(RESOLVE_BENEATH)", "paths walked component by component");
  add("ipv4", opens(::socket(AF_INET, kStream, 0)), "TCP over IPv4", "no TCP over IPv4");
  add("ipv6", opens(::socket(AF_INET6, kStream, 0)), "'*:PORT' serves IPv6 and IPv4", "'*:PORT' serves IPv4");
  add("unix", opens(::socket(AF_UNIX, kStream, 0)), "Unix sockets", "no Unix sockets");
  add("io_uring", has_io_uring(), "not used", "not used");
  add("seccomp_filter", has_seccomp_filter(), "not used", "not used");
  add("landlock", has_landlock(), "not used", "not used");
  add("entropy", has_entropy(), "getrandom is ready", "getrandom would wait");
}

}  // namespace coir::port
