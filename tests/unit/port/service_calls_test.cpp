// The two ways in which a process gives up what a service does not do, each tried in a child.

#include <CppUTest/TestHarness.h>
#include <coir/port/landlock.h>
#include <coir/port/seccomp.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/support/child.h"
#include "tests/support/folder.h"

namespace service_calls_test {

using coir::port::keep_service_calls;
using coir::port::keep_writes_to;
using coir::port::system_call_name;

namespace {

constexpr int kCannot = 99;  // what a child says where the kernel, or an emulator, cannot

// g_refused is the number of the call that ended it.
constinit volatile int g_refused = 0;

void note_refusal(int, siginfo_t* info, void*) noexcept {
  g_refused = info->si_syscall;
}

// refused tells whether a call raised SIGSYS, and which it was.
template <class Call>
bool refused(int number, Call call) noexcept {
  g_refused = 0;
  static_cast<void>(call());
  return g_refused == number;
}

bool enter() noexcept {
  struct sigaction action{};
  action.sa_sigaction = note_refusal;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSYS, &action, nullptr);
  return keep_service_calls() == 0;
}

void* say_done(void* done) noexcept {
  *static_cast<bool*>(done) = true;
  return nullptr;
}

int serves() noexcept {
  if (!enter()) return kCannot;
  const int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  char byte;
  if (file < 0 || read(file, &byte, 1) != 1 || close(file) != 0) return 1;
  for (const int family : {AF_INET, AF_UNIX}) {
    const int socket = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket < 0 || close(socket) != 0) return 2;
  }
  bool done = false;
  pthread_t thread;
  if (pthread_create(&thread, nullptr, say_done, &done) != 0 || pthread_join(thread, nullptr) != 0 || !done) return 3;
  if (kill(getpid(), 0) != 0) return 4;
  return g_refused == 0 ? 0 : 5;
}

int refuses() noexcept {
  const pid_t parent = getppid();
  if (!enter()) return kCannot;
  if (!refused(SYS_chroot, [] { return chroot("/"); })) return 1;
  if (!refused(SYS_execve, [] { return execl("/bin/true", "true", nullptr); })) return 2;
  if (!refused(SYS_clone, [] { return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); })) return 3;
  if (!refused(SYS_kill, [=] { return kill(parent, 0); })) return 4;
  if (!refused(SYS_mprotect, [] { return mprotect(nullptr, 4096, PROT_READ | PROT_EXEC); })) return 5;
  if (!refused(SYS_setuid, [] { return syscall(SYS_setuid, 0); })) return 6;
  if (socket(AF_PACKET, SOCK_RAW, 0) != -1 || errno != EAFNOSUPPORT) return 7;
  // Numbers that no kernel had when the list was made are those of an older kernel.
  if (syscall(100'000) != -1 || errno != ENOSYS) return 8;
  return 0;
}

int ends() noexcept {
  if (keep_service_calls() != 0) return kCannot;
  syscall(SYS_chroot, "/");
  return 0;
}

bool writes(const char* path) noexcept {
  const int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const bool done = file >= 0 && write(file, "x", 1) == 1;
  if (file >= 0) close(file);
  return done;
}

int writes_inside_alone(coir::test::Folder& inside, coir::test::Folder& beside) noexcept {
  const char* const folders[] = {inside.path(), "/nonexistent"};
  if (keep_writes_to(folders) != 0) return kCannot;
  if (!writes(inside.at("new"))) return 1;
  if (writes(beside.at("new")) || errno != EACCES) return 2;
  if (writes(beside.at("old"))) return 3;
  if (mkdir(beside.at("folder"), 0700) == 0) return 4;
  if (open(beside.at("old"), O_RDONLY | O_CLOEXEC) < 0) return 5;
  execl("/bin/true", "true", nullptr);
  return errno == EACCES ? 0 : 6;
}

}  // namespace

TEST_GROUP(ServiceCalls) {
  // answers runs it in a child and expects 0 of it; where the kernel cannot, it says so.
  template <class Child>
  void answers(Child child, const char* promise) {
    const coir::test::ChildEnd end = coir::test::in_child(child);
    if (end.status == kCannot) {
      printf("ok - %s # SKIP this kernel, or emulator, cannot\n", promise);
      return;
    }
    LONGS_EQUAL(0, end.status);
  }
};

TEST(ServiceCalls, a_service_keeps_what_it_calls) {
  answers(serves, "a service keeps what it calls");
}

TEST(ServiceCalls, other_calls_raise_a_signal_with_their_number) {
  answers(refuses, "other calls raise a signal with their number");
}

TEST(ServiceCalls, a_refused_call_ends_the_process) {
  const coir::test::ChildEnd end = coir::test::in_child([] { return ends(); });
  if (end.status != kCannot) LONGS_EQUAL(SIGSYS, end.signal);
}

TEST(ServiceCalls, refused_calls_have_names) {
  STRCMP_EQUAL("chroot", system_call_name(SYS_chroot));
  STRCMP_EQUAL("acct", system_call_name(SYS_acct));
  STRCMP_EQUAL("waitid", system_call_name(SYS_waitid));
  POINTERS_EQUAL(nullptr, system_call_name(SYS_read));
  POINTERS_EQUAL(nullptr, system_call_name(-1));
}

TEST(ServiceCalls, files_are_written_below_the_folders_alone) {
  coir::test::Folder inside, beside;
  CHECK(writes(beside.at("old")));
  answers([&] { return writes_inside_alone(inside, beside); }, "files are written below the folders alone");
}

}  // namespace service_calls_test
