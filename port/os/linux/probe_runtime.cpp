#include "probe_runtime.h"

#include <coir/port/memory.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <csignal>

namespace coir::port {
namespace {

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

bool has_signalfd() noexcept {
  sigset_t none;
  sigemptyset(&none);
  return opens(::signalfd(-1, &none, SFD_CLOEXEC));
}

}  // namespace

std::size_t probe_runtime(std::span<Feature, kFeatures> features) noexcept {
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
  return at;
}

}  // namespace coir::port
