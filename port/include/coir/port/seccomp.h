#pragma once

// A thread gives up kinds of system calls for good.
//
//   if (const int refused = deny_system_calls({.net = true})) return complain(Error::from_errno(refused));
//   show(system_calls_denied());

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

}  // namespace coir::port
