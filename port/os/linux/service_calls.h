#pragma once

#include <sys/syscall.h>

#include <cstdint>

// The system calls that libc's headers may not number have the same number on every CPU.
#if !defined(SYS_openat2)
#define SYS_openat2 437
#endif
#if !defined(SYS_faccessat2)
#define SYS_faccessat2 439
#endif
#if !defined(SYS_epoll_pwait2)
#define SYS_epoll_pwait2 441
#endif

namespace coir::port {

// clang-format off

// All that core, net and the C library call once a program serves. tests/system/coird_sandbox compares the list with the calls
// that coird holds.
inline constexpr int kKept[] = {
    SYS_accept, SYS_accept4, SYS_adjtimex, SYS_bind, SYS_brk, SYS_clock_adjtime, SYS_clone,
    SYS_close, SYS_connect, SYS_dup, SYS_dup3, SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_pwait,
    SYS_epoll_pwait2, SYS_eventfd2, SYS_exit, SYS_exit_group, SYS_faccessat, SYS_fchmod,
    SYS_fchmodat, SYS_fchown, SYS_fchownat, SYS_fcntl, SYS_flock, SYS_fstat, SYS_fstatfs, SYS_fsync,
    SYS_ftruncate, SYS_futex, SYS_getcwd, SYS_getdents64, SYS_getegid, SYS_geteuid, SYS_getgid,
    SYS_getgroups, SYS_getpeername, SYS_getpid, SYS_getrandom, SYS_getsockname, SYS_getsockopt,
    SYS_gettid, SYS_getuid, SYS_ioctl, SYS_listen, SYS_lseek, SYS_madvise, SYS_membarrier,
    SYS_memfd_create, SYS_mincore, SYS_mkdirat, SYS_mprotect, SYS_mremap, SYS_munlock, SYS_munmap,
    SYS_nanosleep, SYS_openat, SYS_openat2, SYS_pidfd_open, SYS_pipe2, SYS_ppoll, SYS_prctl,
    SYS_pread64, SYS_preadv, SYS_preadv2, SYS_prlimit64, SYS_pwrite64, SYS_read, SYS_readlinkat,
    SYS_readv, SYS_recvfrom, SYS_recvmmsg, SYS_recvmsg, SYS_renameat2, SYS_restart_syscall,
    SYS_rseq, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigtimedwait,
    SYS_sched_getaffinity, SYS_sched_setscheduler, SYS_sched_yield, SYS_sendfile, SYS_sendmmsg,
    SYS_sendmsg, SYS_sendto, SYS_set_robust_list, SYS_set_tid_address, SYS_setitimer, SYS_setrlimit,
    SYS_setsockopt, SYS_shutdown, SYS_sigaltstack, SYS_signalfd4, SYS_socket, SYS_socketpair,
    SYS_statx, SYS_sysinfo, SYS_timerfd_create, SYS_tkill, SYS_umask, SYS_uname, SYS_unlinkat,
    SYS_utimensat, SYS_write, SYS_writev,
#if defined(SYS_mmap2)  // with 32 bits, sizes and times of 64 have calls of their own
    SYS_mmap2, SYS__llseek, SYS_fcntl64, SYS_fstat64, SYS_fstatat64, SYS_lstat64, SYS_stat64, SYS_fstatfs64,
    SYS_ftruncate64, SYS_sendfile64, SYS_ugetrlimit, SYS_fchown32, SYS_getegid32, SYS_geteuid32,
    SYS_getgid32, SYS_getuid32, SYS_getgroups32, SYS_send, SYS_recv, SYS_sigreturn,
    SYS_clock_getres_time64, SYS_clock_gettime64, SYS_clock_nanosleep_time64, SYS_futex_time64, SYS_ppoll_time64,
    SYS_recvmmsg_time64, SYS_rt_sigtimedwait_time64, SYS_timerfd_gettime64,
    SYS_timerfd_settime64, SYS_utimensat_time64, SYS_clock_adjtime64,
#if defined(SYS_clock_gettime32)  // musl's names
    SYS_clock_getres_time32, SYS_clock_gettime32, SYS_clock_nanosleep_time32, SYS_gettimeofday_time32,
    SYS_timerfd_gettime32, SYS_timerfd_settime32,
#endif
#else
    SYS_mmap, SYS_newfstatat, SYS_clock_getres, SYS_clock_gettime, SYS_clock_nanosleep, SYS_getrlimit,
    SYS_gettimeofday, SYS_timerfd_gettime, SYS_timerfd_settime,
#endif
#if defined(SYS_open)  // CPUs of before 2010
    SYS_open, SYS_access, SYS_stat, SYS_lstat, SYS_readlink, SYS_chmod, SYS_chown, SYS_unlink, SYS_rename,
    SYS_mkdir, SYS_utimes, SYS_futimesat, SYS_poll, SYS_pipe, SYS_dup2, SYS_epoll_create,
    SYS_epoll_wait, SYS_eventfd, SYS_signalfd, SYS_pause,
#endif
#if defined(SYS_renameat)
    SYS_renameat,
#endif
#if defined(SYS_arch_prctl)
    SYS_arch_prctl,
#endif
#if defined(SYS_riscv_flush_icache)
    SYS_riscv_flush_icache,
#endif
};

// The others that have a name here, so that a refusal can tell it.
#define COIR_REFUSED_CALLS(X) \
  X(acct) X(add_key) X(bpf) X(capget) X(capset) X(chdir) X(chroot) X(close_range) X(copy_file_range) \
  X(delete_module) X(execve) X(execveat) X(faccessat2) X(fallocate) X(fanotify_init) X(fanotify_mark) X(fchdir) \
  X(fdatasync) X(fgetxattr) X(finit_module) X(flistxattr) X(fremovexattr) X(fsconfig) X(fsetxattr) X(fsmount) \
  X(fsopen) X(fspick) X(futex_waitv) X(get_mempolicy) X(get_robust_list) X(getcpu) X(getitimer) X(getpgid) \
  X(getppid) X(getpriority) X(getresgid) X(getresuid) X(getrusage) X(getsid) X(getxattr) X(init_module) \
  X(inotify_add_watch) X(inotify_init1) X(inotify_rm_watch) X(io_cancel) X(io_destroy) X(io_getevents) \
  X(io_pgetevents) X(io_setup) X(io_submit) X(io_uring_enter) X(io_uring_register) X(io_uring_setup) X(ioprio_get) \
  X(ioprio_set) X(kcmp) X(kexec_file_load) X(kexec_load) X(keyctl) X(kill) X(landlock_add_rule) \
  X(landlock_create_ruleset) X(landlock_restrict_self) X(lgetxattr) X(linkat) X(listxattr) X(llistxattr) \
  X(lremovexattr) X(lsetxattr) X(mbind) X(migrate_pages) X(mknodat) X(mlock) X(mlock2) X(mlockall) X(mount) \
  X(mount_setattr) X(move_mount) X(move_pages) X(mq_getsetattr) X(mq_notify) X(mq_open) X(mq_timedreceive) \
  X(mq_timedsend) X(mq_unlink) X(msgctl) X(msgget) X(msgrcv) X(msgsnd) X(msync) X(munlockall) X(name_to_handle_at) \
  X(open_by_handle_at) X(open_tree) X(perf_event_open) X(personality) X(pidfd_getfd) X(pidfd_send_signal) \
  X(pivot_root) X(pkey_alloc) X(pkey_free) X(pkey_mprotect) X(process_madvise) X(process_mrelease) \
  X(process_vm_readv) X(process_vm_writev) X(ptrace) X(pwritev) X(pwritev2) X(quotactl) X(readahead) X(reboot) \
  X(remap_file_pages) X(removexattr) X(request_key) X(rt_sigpending) X(rt_sigqueueinfo) X(rt_sigsuspend) \
  X(rt_tgsigqueueinfo) X(sched_get_priority_max) X(sched_get_priority_min) X(sched_getattr) X(sched_getparam) \
  X(sched_getscheduler) X(sched_rr_get_interval) X(sched_setaffinity) X(sched_setattr) X(sched_setparam) \
  X(seccomp) X(semctl) X(semget) X(semop) X(semtimedop) X(set_mempolicy) X(set_mempolicy_home_node) \
  X(setdomainname) X(setfsgid) X(setfsuid) X(setgid) X(setgroups) X(sethostname) X(setns) X(setpgid) \
  X(setpriority) X(setregid) X(setresgid) X(setresuid) X(setreuid) X(setsid) X(setuid) X(setxattr) X(shmat) \
  X(shmctl) X(shmdt) X(shmget) X(splice) X(statfs) X(swapoff) X(swapon) X(symlinkat) X(sync) X(syncfs) X(syslog) \
  X(tee) X(timer_create) X(timer_delete) X(timer_getoverrun) X(times) X(truncate) X(umount2) X(unshare) \
  X(userfaultfd) X(vhangup) X(vmsplice) X(wait4) X(waitid)

#define COIR_NUMBER(name) SYS_##name,
#define COIR_NAME(name) #name "\0"
inline constexpr std::uint16_t kNumbers[] = {COIR_REFUSED_CALLS(COIR_NUMBER)};
inline constexpr char kNames[] = COIR_REFUSED_CALLS(COIR_NAME);
#undef COIR_NUMBER
#undef COIR_NAME
#undef COIR_REFUSED_CALLS

// clang-format on

}  // namespace coir::port
