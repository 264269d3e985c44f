#include <coir/port/cpu.h>
#include <coir/port/memory.h>
#include <coir/port/seccomp.h>

#include <errno.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <new>

#include "filter.h"

// System calls that libc's headers do not number: the new calls have the same number on every CPU.
#if !defined(SYS_openat2)
#define SYS_openat2 437
#endif
#if !defined(SYS_pidfd_getfd)
#define SYS_pidfd_getfd 438
#endif
#if !defined(SYS_faccessat2)
#define SYS_faccessat2 439
#endif
#if !defined(SYS_mount_setattr)
#define SYS_mount_setattr 442
#endif
#if !defined(SYS_quotactl_fd)
#define SYS_quotactl_fd 443
#endif
#if !defined(SYS_fchmodat2)
#define SYS_fchmodat2 452
#endif

namespace coir::port {

namespace {

// The calls since Linux 6.8, 6.13 and 6.17 that act on paths; no libc numbers them yet.
constexpr int kStatmount = 457, kListmount = 458, kSetxattrat = 463, kGetxattrat = 464, kListxattrat = 465,
              kRemovexattrat = 466, kOpenTreeAttr = 467, kFileGetattr = 468, kFileSetattr = 469;
static_assert(kFileSetattr <= kLastKnownCall);

// Ways around any denial: system calls on behalf of the thread that no filter sees, and other processes' memory and
// descriptors.
constexpr int kAround[] = {
    SYS_io_uring_setup,   SYS_io_uring_enter,    SYS_io_uring_register, SYS_ptrace,
    SYS_process_vm_readv, SYS_process_vm_writev, SYS_pidfd_getfd,
};

// A pair of datagram sockets sends to any address.
constexpr int kNet[] = {SYS_socket, SYS_socketpair, SYS_connect, SYS_bind, SYS_listen, SYS_accept, SYS_accept4};

constexpr int kFs[] = {
    SYS_openat,
    SYS_openat2,
    SYS_open_by_handle_at,
    SYS_name_to_handle_at,
#if defined(SYS_open)
    SYS_open,
    SYS_creat,
    SYS_access,
    SYS_stat,
    SYS_lstat,
    SYS_readlink,
    SYS_chmod,
    SYS_chown,
    SYS_lchown,
    SYS_link,
    SYS_unlink,
    SYS_symlink,
    SYS_rename,
    SYS_mkdir,
    SYS_rmdir,
    SYS_mknod,
    SYS_utimes,
    SYS_futimesat,
    SYS_uselib,
#endif
#if defined(SYS_utime)
    SYS_utime,
#endif
#if defined(SYS_stat64)  // with 32 bits, sizes and times of 64 have calls of their own
    SYS_stat64,
    SYS_lstat64,
    SYS_fstatat64,
    SYS_statfs64,
    SYS_truncate64,
    SYS_utimensat_time64,
#else
    SYS_newfstatat,
#endif
#if defined(SYS_renameat)
    SYS_renameat,
#endif
    SYS_renameat2,
    SYS_statx,
    SYS_faccessat,
    SYS_faccessat2,
    SYS_readlinkat,
    SYS_fchmodat,
    SYS_fchmodat2,
    SYS_fchownat,
    SYS_linkat,
    SYS_symlinkat,
    SYS_unlinkat,
    SYS_mkdirat,
    SYS_mknodat,
    SYS_utimensat,
    SYS_truncate,
    SYS_statfs,
    SYS_chdir,
    SYS_chroot,
    SYS_pivot_root,
    SYS_mount,
    SYS_umount2,
    SYS_move_mount,
    SYS_open_tree,
    kOpenTreeAttr,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_mount_setattr,
    kStatmount,
    kListmount,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
    SYS_quotactl,
    SYS_quotactl_fd,
    SYS_setxattr,
    SYS_lsetxattr,
    SYS_getxattr,
    SYS_lgetxattr,
    SYS_listxattr,
    SYS_llistxattr,
    SYS_removexattr,
    SYS_lremovexattr,
    kSetxattrat,
    kGetxattrat,
    kListxattrat,
    kRemovexattrat,
    kFileGetattr,
    kFileSetattr,
    SYS_bpf,         // its objects have paths
    SYS_socketpair,  // of the family whose addresses are paths; see write_filter for socket
    SYS_inotify_add_watch,
    SYS_fanotify_mark,
    SYS_mq_open,
    SYS_mq_unlink,
    SYS_execve,
    SYS_execveat,
};

constexpr int kProcess[] = {
#if defined(SYS_fork)
    SYS_fork,
    SYS_vfork,
#endif
    SYS_execve,
    SYS_execveat,
};

// The questions of system_calls_denied and isolates_denied: no options of prctl(2), which answers EINVAL without the
// filter.
constexpr std::uint32_t kAnyDenied = 0x636f6972, kIsolatesDenied = 0x636f6973;
constexpr int kYes = EKEYREJECTED;

bool is_yes(std::uint32_t question) noexcept {
  const int before = errno;
  const bool yes = prctl(static_cast<int>(question), 0, 0, 0, 0) == -1 && errno == kYes;
  errno = before;
  return yes;
}

using Program = FilterProgram<40 + 2 * (sizeof kAround + sizeof kNet + sizeof kFs + sizeof kProcess) / sizeof(int)>;

void write_filter(Program& program, DeniedCalls denied) noexcept {
  program.load(offsetof(seccomp_data, arch));
  program.skip_if_equal(kAuditArchitecture, 1);  // another CPU's calls have other numbers: all refused
  program.refuse(EPERM);
  program.load(offsetof(seccomp_data, nr));
  if constexpr (kForeignCallBit != 0) {
    program.skip_unless_any(kForeignCallBit, 1);  // so have those of another ABI
    program.refuse(EPERM);
  }
  program.skip_unless_above(kLastKnownCall, 1);
  program.refuse(ENOSYS);
  program.refuse_each(kAround);
  if (denied.net) program.refuse_each(kNet);
  if (denied.fs) program.refuse_each(kFs);
  if (denied.fs) {
    // Addresses lie in memory, where no filter looks: a socket whose addresses may be paths is not had at all.
    program.skip_unless_equal(SYS_socket, 4);
    program.load_argument(0);
    program.skip_unless_equal(AF_UNIX, 1);
    program.refuse(EPERM);
    program.allow();
  }
  if (denied.process) {
    program.refuse_each(kProcess);
    // clone3's flags lie in memory, where no filter looks: it is as if the kernel had none, and libc takes clone.
    program.skip_unless_equal(SYS_clone3, 1);
    program.refuse(ENOSYS);
    program.skip_unless_equal(SYS_clone, 4);
    program.load_argument(0);
    program.skip_unless_any(CLONE_THREAD, 1);
    program.allow();
    program.refuse(EPERM);
  }
  program.skip_unless_equal(SYS_prctl, denied.isolates ? 5 : 3);
  program.load_argument(0);
  program.skip_unless_equal(kAnyDenied, 1);
  program.refuse(kYes);
  if (denied.isolates) {
    program.skip_unless_equal(kIsolatesDenied, 1);
    program.refuse(kYes);
  }
  program.allow();
}

}  // namespace

int deny_system_calls(DeniedCalls denied) noexcept {
  // An unprivileged thread gives up new privileges before it may filter.
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  void* const place = reserve(sizeof(Program));  // too large for a small stack
  if (place == nullptr) return ENOMEM;
  auto* const program = new (place) Program;
  write_filter(*program, denied);
  const sock_fprog filter = program->get();
  const int error = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0 ? 0 : errno;
  release(place, sizeof(Program));
  return error;
}

bool system_calls_denied() noexcept {
  return is_yes(kAnyDenied);
}

bool isolates_denied() noexcept {
  return is_yes(kIsolatesDenied);
}

}  // namespace coir::port
