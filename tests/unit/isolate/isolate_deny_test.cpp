#include <coir/isolate.h>

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
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/everywhere.h"
#include "tests/support/pipe.h"
#include "tests/support/thread.h"

namespace isolate_deny_test {

using coir::Deny;
using coir::Error;
using coir::ErrorCode;
using coir::Isolate;
using coir::IsolatePort;

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

// Asked is the errno of each call that an isolate tried.
struct Asked {
  int net, fs, process;
};
Asked ask_all() noexcept {
  return {open_socket(), open_file(), fork_child()};
}

// why_not is why nothing can be denied here, or null.
const char* why_not() noexcept {
  auto isolate = Isolate::spawn([](IsolatePort&) {}, {.deny = Deny::net});
  if (isolate) return nullptr;
  return isolate.error() == ErrorCode::unsupported ? "this kernel, or emulator, has no seccomp filters"
                                                   : "spawn failed";
}

}  // namespace

TEST_GROUP_BASE(IsolateDeny, coir::test::Everywhere) {
  bool skipped(const char* promise) {
    const char* const why = why_not();
    if (why != nullptr) printf("ok - %s # SKIP %s\n", promise, why);
    return why != nullptr;
  }

  // in_isolate returns what `ask` returned in an isolate with that denial.
  template <class Ask>
  auto in_isolate(Deny deny, Ask ask) {
    using Answer = decltype(ask());
    auto isolate = Isolate::spawn([ask](IsolatePort&) { return ask(); }, {.deny = deny});
    expect(isolate.has_value());
    auto answer = isolate ? isolate->template await<Answer>() : std::unexpected(isolate.error());
    expect(answer.has_value());
    return answer ? *answer : Answer{};
  }
};

TEST(IsolateDeny, each_denies_its_own_calls_and_no_others) {
  if (skipped("each denial denies its own calls and no others")) return;
  everywhere([&] {
    const Asked net = in_isolate(Deny::net, &ask_all);
    expect(net.net == EPERM && net.fs == 0 && net.process == 0);
    const Asked fs = in_isolate(Deny::fs, &ask_all);
    expect(fs.net == 0 && fs.fs == EPERM && fs.process == 0);
    const Asked process = in_isolate(Deny::process, &ask_all);
    expect(process.net == 0 && process.fs == 0 && process.process == EPERM);
    const Asked all = in_isolate(Deny::net | Deny::fs | Deny::process, &ask_all);
    expect(all.net == EPERM && all.fs == EPERM && all.process == EPERM);
  });
}

TEST(IsolateDeny, the_process_keeps_what_its_isolate_gave_up) {
  if (skipped("the process keeps what its isolate gave up")) return;
  everywhere([&] {
    static_cast<void>(in_isolate(Deny::net | Deny::fs | Deny::process, &ask_all));
    expect(open_socket() == 0 && open_file() == 0 && !coir::port::system_calls_denied());
    expect(in_isolate(Deny::nothing, &open_socket) == 0);
  });
}

TEST(IsolateDeny, holds_for_threads_that_it_starts) {
  if (skipped("a denial holds for threads that the isolate starts")) return;
  everywhere([&] {
    expect(in_isolate(Deny::net | Deny::process, [] { return in_thread(&open_socket); }) == EPERM);
    expect(in_isolate(Deny::net, [] {
             return in_thread([]() noexcept -> int { return coir::port::system_calls_denied(); });
           }) == 1);
  });
}

TEST(IsolateDeny, holds_for_processes_that_it_starts) {
  if (skipped("a denial holds for processes that the isolate starts")) return;
  everywhere([&] { expect(in_isolate(Deny::net, [] { return in_fork(&open_socket); }) == EPERM); });
}

TEST(IsolateDeny, holds_for_its_blocking_calls_and_files) {
  if (skipped("a denial holds for the isolate's blocking calls and files")) return;
  everywhere([&] {
    // The process's pool has threads, which nothing is denied to.
    expect(coir::blocking(&open_file).value_or(-1) == 0);
    expect(in_isolate(Deny::fs, [] { return coir::blocking(&open_file).value_or(-1); }) == EPERM);
    expect(in_isolate(Deny::fs, [] {
             auto file = coir::File::open("/dev/null");
             return file ? 0 : file.error().sys;
           }) == EPERM);
  });
}

TEST(IsolateDeny, no_program_is_started_where_processes_are_denied) {
  if (skipped("no program is started where processes are denied")) return;
  everywhere([&] {
    const char* const arguments[] = {"/bin/true", nullptr};
    expect(in_isolate(Deny::process, [&arguments] {
             auto ran = coir::run_process({.argv = arguments});
             return ran ? 0 : ran.error().sys;
           }) == EPERM);
    expect(in_isolate(Deny::process, [] { return syscall(SYS_clone3, nullptr, 0) == -1 && errno == ENOSYS; }));
    expect(in_isolate(Deny::process, [] {
      const long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
      if (child == 0) _exit(0);
      return child == -1 && errno == EPERM;
    }));
  });
}

TEST(IsolateDeny, an_open_descriptor_stays_usable) {
  if (skipped("what is open already stays usable")) return;
  everywhere([&] {
    int ends[2];
    expect(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    const int folder = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    expect(in_isolate(Deny::net | Deny::fs | Deny::process, [fd = ends[0], folder] {
      struct stat status{};
      return send(fd, "x", 1, 0) == 1 && syscall(SYS_fstat, folder, &status) == 0 &&
             openat(folder, "dev", O_RDONLY | O_CLOEXEC) == -1 && errno == EPERM;
    }));
    char byte = 0;
    expect(read(ends[1], &byte, 1) == 1 && byte == 'x');
    for (const int fd : {ends[0], ends[1], folder}) close(fd);
  });
}

TEST(IsolateDeny, ways_around_are_denied_with_any) {
  if (skipped("ways around a denial are denied with any")) return;
  everywhere([&] {
    for (const Deny deny : {Deny::net, Deny::fs, Deny::process}) {
      expect(in_isolate(deny, [] {
        return syscall(SYS_io_uring_setup, 1, nullptr) == -1 && errno == EPERM &&
               syscall(SYS_ptrace, 0, 0, 0, 0) == -1 && errno == EPERM;
      }));
    }
  });
}

TEST(IsolateDeny, a_denial_that_cannot_be_enforced_is_an_error_before_it_runs) {
  if (why_not() == nullptr) {
    printf("ok - what cannot be enforced is an error # SKIP this kernel enforces it\n");
    return;
  }
  everywhere([&] {
    coir::test::Pipe pipe;
    auto isolate = Isolate::spawn([fd = pipe.writer](IsolatePort&) { return write(fd, "x", 1); }, {.deny = Deny::fs});
    expect(!isolate && isolate.error() == ErrorCode::unsupported && isolate.error().sys != 0);
    fcntl(pipe.reader, F_SETFL, O_NONBLOCK);
    char byte;
    expect(read(pipe.reader, &byte, 1) == -1 && errno == EAGAIN);
  });
}

namespace {

struct Asking {
  const char* name;
  int (*ask)() noexcept;
};
sockaddr_un path_address() noexcept {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  strcpy(address.sun_path, "/nonexistent");
  return address;
}

// Each names a file by its path, in a way that open, stat and their like do not.
constexpr Asking kByPath[] = {
    {"file_getattr",
     []() noexcept {
       char attributes[64] = {};
       return errno_of(syscall(468, AT_FDCWD, "/nonexistent", attributes, 24, 0));
     }},
    {"file_setattr",
     []() noexcept {
       char attributes[64] = {};
       return errno_of(syscall(469, AT_FDCWD, "/nonexistent", attributes, 24, 0));
     }},
    {"bpf",
     []() noexcept {
       alignas(8) char attributes[128] = {};
       return errno_of(syscall(SYS_bpf, 7, attributes, sizeof attributes));  // BPF_OBJ_GET
     }},
    {"a socket of AF_UNIX", []() noexcept { return errno_of(closed(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0))); }},
    {"a pair of them",
     []() noexcept {
       int ends[2] = {-1, -1};
       const int error = errno_of(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends));
       closed(ends[0]);
       closed(ends[1]);
       return error;
     }},
};

}  // namespace

TEST(IsolateDeny, fs_denies_every_other_way_to_name_a_file) {
  if (skipped("fs denies every other way to name a file")) return;
  for (const Asking& one : kByPath) {
    const int answer = in_isolate(Deny::fs, one.ask);
    if (answer != EPERM) printf("%s: %d\n", one.name, answer);
    LONGS_EQUAL(EPERM, answer);
  }
}

TEST(IsolateDeny, net_denies_pairs_of_sockets_which_send_to_any_address) {
  if (skipped("net denies pairs of sockets, which send to any address")) return;
  LONGS_EQUAL(EPERM, in_isolate(Deny::net, kByPath[4].ask));
}

// A socket that was open before the denial is documented as usable.
TEST(IsolateDeny, a_socket_that_was_open_before_stays_usable) {
  if (skipped("a socket that was open before stays usable")) return;
  static int s_open = -1;
  s_open = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  LONGS_EQUAL(ENOENT, in_isolate(Deny::fs, [] {
                const sockaddr_un nowhere = path_address();
                return errno_of(sendto(s_open, "x", 1, 0, reinterpret_cast<const sockaddr*>(&nowhere), sizeof nowhere));
              }));
  close(s_open);
}

TEST(IsolateDeny, a_call_that_nobody_has_judged_is_as_if_the_kernel_had_none) {
  if (skipped("a call that nobody has judged is as if the kernel had none")) return;
  for (const Deny deny : {Deny::net, Deny::fs, Deny::process}) {
    CHECK_TRUE(in_isolate(deny, [] {
      bool none = true;
      for (int call = coir::port::kLastKnownCall + 1; call < coir::port::kLastKnownCall + 200; ++call)
        none = syscall(call, -1, -1, -1, -1, -1, -1) == -1 && errno == ENOSYS && none;
      return none;
    }));
  }
}

// The kernel's table, as its headers on this machine have it: a number that is new there has to be judged.
TEST(IsolateDeny, every_call_of_the_kernels_table_was_judged) {
  FILE* const table = fopen("/usr/include/asm-generic/unistd.h", "re");
  if (table == nullptr) {
    puts("ok - every call of the kernel's table was judged # SKIP no headers of the kernel");
    return;
  }
  char line[256], name[128];
  int number = 0, seen = 0, highest = 0;
  while (fgets(line, sizeof line, table) != nullptr) {
    if (sscanf(line, "#define __NR_%127s %d", name, &number) != 2 || strcmp(name, "syscalls") == 0) continue;
    ++seen;
    if (number > highest) highest = number;
    if (number > coir::port::kLastKnownCall) printf("%s, %d, is in no list of seccomp.cpp\n", name, number);
  }
  fclose(table);
  CHECK_TRUE(seen > 200);
  CHECK_TRUE(highest <= coir::port::kLastKnownCall);
}

}  // namespace isolate_deny_test
