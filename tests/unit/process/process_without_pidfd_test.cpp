#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>
#include <coir/process.h>
#include <coir/runtime.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/support/child.h"
#include "tests/support/without_syscall.h"

namespace process_without_pidfd_test {

// In a file of its own, because no other thread may run when it forks.
using coir::Deadline;
using coir::ErrorCode;
using coir::Process;
using coir::run_process;
using namespace std::chrono_literals;

namespace {

const char* const kSleeps[] = {"sleep", "100", nullptr};

bool no_child_is_left() noexcept {
  return waitpid(-1, nullptr, WNOHANG | __WALL) == -1 && errno == ECHILD;
}

constexpr int kNoFilter = 10;

int without_pidfd() noexcept {
  if (!coir::test::forget_syscall(SYS_pidfd_open)) return kNoFilter;
  int status = 11;
  const auto ended = coir::run_until_idle({.workers = 1}, [&] {
    const char* const exits[] = {"sh", "-c", "echo out; exit 5", nullptr};
    char out[16];
    const auto ran = run_process({.argv = exits}, {.out = out});
    if (!ran || ran->exit.status != 5 || ran->out_bytes != 4) return;
    auto process = Process::start({.argv = kSleeps});
    const auto early = process->wait(Deadline::after(20ms));
    if (early || early.error() != ErrorCode::timed_out) return;
    if (!coir::current().cancel()) return;
    const auto stopped = process->stop();
    if (!stopped || stopped->signal != SIGTERM) return;
    status = no_child_is_left() ? 0 : 12;
  });
  return ended ? status : 13;
}

}  // namespace

TEST_GROUP(ProcessWithoutPidfd) {};

TEST(ProcessWithoutPidfd, a_kernel_without_pidfd_is_asked_from_the_pool) {
  const auto end = coir::test::in_child([] {
    setenv("COIR_DEBUG", "1", 1);
    return without_pidfd();
  });
  if (end.status == kNoFilter) {
    printf("ok - a kernel without pidfd is asked from the pool # SKIP no filters of system calls here, as in QEMU\n");
    return;
  }
  LONGS_EQUAL(0, end.status);
  CHECK_TRUE(end.wrote("coir: debug: this kernel has no pidfd_open: the ends of child processes are polled for\n"));
}

}  // namespace process_without_pidfd_test
