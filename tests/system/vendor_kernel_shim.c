// usage: vendor_kernel_shim [--keep-epoll] PROGRAM [ARGUMENT ...]
//
// Runs PROGRAM as if this machine's kernel were the one of the Milk-V Duo's images: a seccomp filter answers ENOSYS to
// the system calls that kernel was built without. PROGRAM is run natively, or is "qemu-riscv64 BINARY ...", which passes
// the guest's calls on to this kernel. The filter holds for everything that PROGRAM starts.
//
// The oldest images lack epoll too; --keep-epoll stands for V1.1.0 and later.

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define THIS_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define THIS_ARCH AUDIT_ARCH_AARCH64
#elif defined(__riscv)
#define THIS_ARCH AUDIT_ARCH_RISCV64
#else
#error "this CPU's audit architecture is not named here"
#endif

// Switched off in the vendor's configuration, or younger than its Linux 5.10.
static const int lacking[] = {
    // TIMERFD, SIGNALFD
    __NR_timerfd_create,
    __NR_timerfd_settime,
    __NR_timerfd_gettime,
    __NR_signalfd4,
    // ADVISE_SYSCALLS
    __NR_madvise,
    __NR_fadvise64,
    // AIO, IO_URING
    __NR_io_setup,
    __NR_io_destroy,
    __NR_io_submit,
    __NR_io_cancel,
    __NR_io_getevents,
    __NR_io_pgetevents,
    __NR_io_uring_setup,
    __NR_io_uring_enter,
    __NR_io_uring_register,
    // FHANDLE
    __NR_name_to_handle_at,
    __NR_open_by_handle_at,
    // Younger than 5.10: process_madvise, epoll_pwait2, landlock_*, futex_waitv, futex_wake, futex_wait, futex_requeue.
    // Their numbers are the same on every CPU.
    440,
    441,
    444,
    445,
    446,
    449,
    454,
    455,
    456,
#if defined(__x86_64__)
    __NR_signalfd,
#endif
};

static const int epoll[] = {
    __NR_epoll_create1, __NR_epoll_ctl,  __NR_epoll_pwait,
#if defined(__x86_64__)
    __NR_epoll_create,  __NR_epoll_wait,
#endif
};

enum { kLacking = sizeof lacking / sizeof *lacking, kEpoll = sizeof epoll / sizeof *epoll };

// append_refusals writes two instructions a call: if it is this one, ENOSYS.
static size_t append_refusals(struct sock_filter* program, size_t at, const int* calls, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    program[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i], 0, 1);
    program[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
  }
  return at;
}

int main(int count, char** arguments) {
  int first = 1;
  int has_epoll = 0;
  if (first < count && strcmp(arguments[first], "--keep-epoll") == 0) {
    has_epoll = 1;
    ++first;
  }
  if (first >= count) {
    fprintf(stderr, "usage: %s [--keep-epoll] PROGRAM [ARGUMENT ...]\n", arguments[0]);
    return 2;
  }

  struct sock_filter program[4 + 2 * (kLacking + kEpoll) + 1] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, THIS_ARCH, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
  };
  size_t length = append_refusals(program, 4, lacking, kLacking);
  if (!has_epoll) length = append_refusals(program, length, epoll, kEpoll);
  program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);

  const struct sock_fprog filter = {.len = (unsigned short)length, .filter = program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
    perror("vendor_kernel_shim: cannot install the filter");
    return 1;
  }
  execvp(arguments[first], arguments + first);
  fprintf(stderr, "vendor_kernel_shim: %s: %s\n", arguments[first], strerror(errno));
  return 127;
}
