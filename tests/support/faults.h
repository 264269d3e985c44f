#pragma once

namespace coir::test {

// The operations that can fail: charges to the ledger, and calls to the kernel. A close that fails has closed.
enum class Call : unsigned {
  charge,
  accept4,
  close,
  connect,
  epoll_create1,
  epoll_ctl,
  epoll_wait,
  eventfd,
  fstat,
  getsockopt,
  madvise,
  mmap,
  mprotect,
  open,
  openat,
  openat2,
  poll,
  ppoll,
  pread,
  preadv2,
  pthread_create,
  recv,
  recvmsg,
  send,
  sendfile,
  sendmsg,
  setsockopt,
  shutdown,
  socket,
};
inline constexpr unsigned kCalls = 29;

// name_of is a call's name.
const char* name_of(Call call) noexcept;

// Fault says which call fails, and how: the nth of its kind from now on, or that one and all that follow.
struct Fault {
  Call call;
  int error = 0;  // what errno says; a charge has none
  unsigned nth = 1;
  bool lasting = false;
};

// inject lets a call fail. It is for programs whose calls the linker leads here: see tests/unit/faults.cmake.
void inject(const Fault& fault) noexcept;

// withdraw ends it and returns how many calls have failed.
unsigned withdraw() noexcept;

// failures is how many calls have failed since inject, 0 after withdraw.
unsigned failures() noexcept;

// spare_this_thread keeps faults from the calls of the test itself.
void spare_this_thread() noexcept;

}  // namespace coir::test
