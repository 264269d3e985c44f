#include <coir/port/probe.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "probe_runtime.h"

namespace coir::port {
namespace {

bool has_openat2() noexcept {
  constexpr long kOpenat2 = 437;  // on every architecture
  const struct {
    std::uint64_t flags, mode, resolve;
  } how = {O_PATH | O_CLOEXEC, 0, 0};
  return opens(::syscall(kOpenat2, AT_FDCWD, "/", &how, sizeof how));
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

std::size_t probe(std::span<Feature, kFeatures> features) noexcept {
  constexpr int kStream = SOCK_STREAM | SOCK_CLOEXEC;
  std::size_t at = probe_runtime(features);
  const auto add = [&](const char* name, bool present, const char* with, const char* without) {
    features[at++] = {name, present, with, without};
  };
  add("openat2", has_openat2(), "files opened by openat2(RESOLVE_BENEATH)", "paths walked component by component");
  add("ipv4", opens(::socket(AF_INET, kStream, 0)), "TCP over IPv4", "no TCP over IPv4");
  add("ipv6", opens(::socket(AF_INET6, kStream, 0)), "'*:PORT' serves IPv6 and IPv4", "'*:PORT' serves IPv4");
  add("unix", opens(::socket(AF_UNIX, kStream, 0)), "Unix sockets", "no Unix sockets");
  add("io_uring", has_io_uring(), "not used", "not used");
  add("seccomp_filter", has_seccomp_filter(), "coird keeps the system calls of a server", "all are allowed");
  add("landlock", has_landlock(), "coird writes below few folders", "where its user may");
  add("entropy", has_entropy(), "getrandom is ready", "getrandom would wait");
  return at;
}

}  // namespace coir::port
