#include <coir/isolated_worker.h>

#include <CppUTest/TestHarness.h>
#include <coir/blocking.h>
#include <coir/file.h>
#include <coir/port/seccomp.h>
#include <coir/process.h>
#include <coir/runtime.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/everywhere.h"
#include "tests/support/pipe.h"
#include "tests/support/thread.h"

using coir::Deny;
using coir::Error;
using coir::ErrorCode;
using coir::Worker;
using coir::WorkerPort;

namespace {

int closed(int fd) noexcept {
  if (fd >= 0) close(fd);
  return fd;
}

// Each is the errno of a call that a denial is about, or 0 where it succeeded.
int errno_of(long result) noexcept {
  return result < 0 ? errno : 0;
}
int open_socket() noexcept {
  return errno_of(closed(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)));
}
int open_file() noexcept {
  return errno_of(closed(open("/dev/null", O_RDONLY | O_CLOEXEC)));
}
int fork_child() noexcept {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  if (child > 0) waitpid(child, nullptr, 0);
  return errno_of(child);
}

// in_fork runs a question in a child process and returns its answer; -1 where there is no child.
int in_fork(int (*ask)() noexcept) noexcept {
  const pid_t child = fork();
  if (child == 0) _exit(ask());
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

int in_thread(int (*ask)() noexcept) noexcept {
  int answer = -1;
  {
    coir::test::Thread thread([&] { answer = ask(); });
  }
  return answer;
}

// Asked is what a worker found, by errno.
struct Asked {
  int net, fs, process;
};
Asked ask_all() noexcept {
  return {open_socket(), open_file(), fork_child()};
}

// why_not is why nothing can be denied here, or null.
const char* why_not() noexcept {
  auto worker = Worker::spawn([](WorkerPort&) {}, {.deny = Deny::net});
  if (worker) return nullptr;
  return worker.error() == ErrorCode::unsupported ? "this kernel, or emulator, has no seccomp filters" : "spawn failed";
}

}  // namespace

TEST_GROUP_BASE(IsolatedWorkerDeny,
                coir::test::Everywhere){bool skipped(const char* promise){const char* const why = why_not();
if (why != nullptr) printf("ok - %s # SKIP %s\n", promise, why);
return why != nullptr;
}

// in_worker returns what `ask` returned in a worker with that denial.
template <class Ask>
auto in_worker(Deny deny, Ask ask) {
  using Answer = decltype(ask());
  auto worker = Worker::spawn([ask](WorkerPort&) { return ask(); }, {.deny = deny});
  expect(worker.has_value());
  auto answer = worker ? worker->template result<Answer>() : std::unexpected(worker.error());
  expect(answer.has_value());
  return answer ? *answer : Answer{};
}
}
;

TEST(IsolatedWorkerDeny, each_denies_its_own_calls_and_no_others) {
  if (skipped("each denial denies its own calls and no others")) return;
  everywhere([&] {
    const Asked net = in_worker(Deny::net, &ask_all);
    expect(net.net == EPERM && net.fs == 0 && net.process == 0);
    const Asked fs = in_worker(Deny::fs, &ask_all);
    expect(fs.net == 0 && fs.fs == EPERM && fs.process == 0);
    const Asked process = in_worker(Deny::process, &ask_all);
    expect(process.net == 0 && process.fs == 0 && process.process == EPERM);
    const Asked all = in_worker(Deny::net | Deny::fs | Deny::process, &ask_all);
    expect(all.net == EPERM && all.fs == EPERM && all.process == EPERM);
  });
}

TEST(IsolatedWorkerDeny, the_process_keeps_what_its_worker_gave_up) {
  if (skipped("the process keeps what its worker gave up")) return;
  everywhere([&] {
    static_cast<void>(in_worker(Deny::net | Deny::fs | Deny::process, &ask_all));
    expect(open_socket() == 0 && open_file() == 0 && !coir::port::system_calls_denied());
    expect(in_worker(Deny::nothing, &open_socket) == 0);
  });
}

TEST(IsolatedWorkerDeny, holds_for_threads_that_it_starts) {
  if (skipped("a denial holds for threads that the worker starts")) return;
  everywhere([&] {
    expect(in_worker(Deny::net | Deny::process, [] { return in_thread(&open_socket); }) == EPERM);
    expect(in_worker(Deny::net, [] {
             return in_thread([]() noexcept -> int { return coir::port::system_calls_denied(); });
           }) == 1);
  });
}

TEST(IsolatedWorkerDeny, holds_for_processes_that_it_starts) {
  if (skipped("a denial holds for processes that the worker starts")) return;
  everywhere([&] { expect(in_worker(Deny::net, [] { return in_fork(&open_socket); }) == EPERM); });
}

TEST(IsolatedWorkerDeny, holds_for_its_blocking_calls_and_files) {
  if (skipped("a denial holds for the worker's blocking calls and files")) return;
  everywhere([&] {
    // The process's pool has threads, which nothing is denied to.
    expect(coir::blocking(&open_file).value_or(-1) == 0);
    expect(in_worker(Deny::fs, [] { return coir::blocking(&open_file).value_or(-1); }) == EPERM);
    expect(in_worker(Deny::fs, [] {
             auto file = coir::File::open("/dev/null");
             return file ? 0 : file.error().sys;
           }) == EPERM);
  });
}

TEST(IsolatedWorkerDeny, no_program_is_started_where_processes_are_denied) {
  if (skipped("no program is started where processes are denied")) return;
  everywhere([&] {
    const char* const arguments[] = {"/bin/true", nullptr};
    expect(in_worker(Deny::process, [&arguments] {
             auto ran = coir::run_process({.argv = arguments});
             return ran ? 0 : ran.error().sys;
           }) == EPERM);
    expect(in_worker(Deny::process, [] { return syscall(SYS_clone3, nullptr, 0) == -1 && errno == ENOSYS; }));
    expect(in_worker(Deny::process, [] {
      const long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
      if (child == 0) _exit(0);
      return child == -1 && errno == EPERM;
    }));
  });
}

TEST(IsolatedWorkerDeny, what_is_open_already_stays_usable) {
  if (skipped("what is open already stays usable")) return;
  everywhere([&] {
    int ends[2];
    expect(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    const int folder = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    expect(in_worker(Deny::net | Deny::fs | Deny::process, [fd = ends[0], folder] {
      struct stat status{};
      return send(fd, "x", 1, 0) == 1 && syscall(SYS_fstat, folder, &status) == 0 &&
             openat(folder, "dev", O_RDONLY | O_CLOEXEC) == -1 && errno == EPERM;
    }));
    char byte = 0;
    expect(read(ends[1], &byte, 1) == 1 && byte == 'x');
    for (const int fd : {ends[0], ends[1], folder}) close(fd);
  });
}

TEST(IsolatedWorkerDeny, ways_around_are_denied_with_any) {
  if (skipped("ways around a denial are denied with any")) return;
  everywhere([&] {
    for (const Deny deny : {Deny::net, Deny::fs, Deny::process}) {
      expect(in_worker(deny, [] {
        return syscall(SYS_io_uring_setup, 1, nullptr) == -1 && errno == EPERM &&
               syscall(SYS_ptrace, 0, 0, 0, 0) == -1 && errno == EPERM;
      }));
    }
  });
}

TEST(IsolatedWorkerDeny, what_cannot_be_enforced_is_an_error_before_it_runs) {
  if (why_not() == nullptr) {
    printf("ok - what cannot be enforced is an error # SKIP this kernel enforces it\n");
    return;
  }
  everywhere([&] {
    coir::test::Pipe pipe;
    auto worker = Worker::spawn([fd = pipe.writer](WorkerPort&) { return write(fd, "x", 1); }, {.deny = Deny::fs});
    expect(!worker && worker.error() == ErrorCode::unsupported && worker.error().sys != 0);
    fcntl(pipe.reader, F_SETFL, O_NONBLOCK);
    char byte;
    expect(read(pipe.reader, &byte, 1) == -1 && errno == EAGAIN);
  });
}
