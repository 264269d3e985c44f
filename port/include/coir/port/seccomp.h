#pragma once

// A thread gives up kinds of system calls for good, or a process all but those of a network service.
//
//   if (const int refused = deny_system_calls({.net = true})) return complain(Error::from_errno(refused));
//   show(system_calls_denied());
//   if (keep_service_calls() != 0) show("this kernel filters no system calls");

namespace coir::port {

// DeniedCalls is what a thread gives up: new sockets and connections, everything that names a file by path, the start
// of programs and processes. coir/isolate.h says in full what each means; os/linux/seccomp.cpp has the lists.
struct DeniedCalls {
  bool net = false;
  bool fs = false;
  bool process = false;
  bool isolates = false;  // no system call: isolates_denied remembers it
};

// kLastKnownCall is the highest number of a system call that was judged, that of Linux 6.18. Each denial has those
// above answer ENOSYS: nobody knows yet what they lead to, and programs take it for an older kernel.
inline constexpr int kLastKnownCall = 469;

// deny_system_calls makes the kernel answer EPERM to those system calls of the calling thread, and of every thread and
// process that it starts from now on, for good. It also gives up gaining privileges by exec. Returns 0, or the errno of
// a kernel that cannot: without CONFIG_SECCOMP_FILTER, or an emulator. Nothing is denied then.
int deny_system_calls(DeniedCalls denied) noexcept;

// system_calls_denied tells whether deny_system_calls was called on this thread, or on one that it descends from. Cost:
// a system call.
bool system_calls_denied() noexcept;

// isolates_denied tells whether DeniedCalls::isolates was among the denials of this thread, or of one that it descends
// from. Cost: a system call.
bool isolates_denied() noexcept;

// keep_service_calls leaves the process, with all its threads, those system calls that a program on core and net makes while
// it serves. Any other one raises SIGSYS, whose si_syscall is its number; the default action ends the process. To start a
// program or a process, to make memory executable, to become another user, to mount and to look into another process are
// among them, and signals to another by kill and tgkill. Sockets of other families than IP, Unix and netlink are
// EAFNOSUPPORT. It also gives up gaining privileges by exec. It holds for good, and for each process that is started: a
// program that starts others cannot use it.
// Returns 0, or the errno of a kernel that cannot; nothing has changed then.
int keep_service_calls() noexcept;

// system_call_name returns the name of a system call that keep_service_calls leaves out, or null if it is none of those
// that are known. May be called in a signal handler.
const char* system_call_name(int number) noexcept;

}  // namespace coir::port
