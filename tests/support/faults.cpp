#include "faults.h"

#include <coir/ledger.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>

namespace coir::test {
namespace {

constexpr unsigned kNoCall = kCalls;

// The rest is there before g_call names it.
constinit std::atomic<unsigned> g_call{kNoCall};
constinit std::atomic<unsigned> g_nth{0}, g_seen{0}, g_failed{0};
constinit std::atomic<int> g_error{0};
constinit std::atomic<bool> g_lasting{false};
constinit thread_local bool t_spared = false;

}  // namespace

const char* name_of(Call call) noexcept {
  constexpr const char* kNames[kCalls] = {
      "charge",   "accept4",    "close",      "connect",  "epoll_create1",  "epoll_ctl", "epoll_wait", "eventfd",
      "fstat",    "getsockopt", "madvise",    "mmap",     "mprotect",       "open",      "openat",     "openat2",
      "poll",     "ppoll",      "pread",      "preadv2",  "pthread_create", "recv",      "recvmsg",    "send",
      "sendfile", "sendmsg",    "setsockopt", "shutdown", "socket"};
  return kNames[static_cast<unsigned>(call)];
}

void inject(const Fault& fault) noexcept {
  g_nth.store(fault.nth, std::memory_order_relaxed);
  g_error.store(fault.error, std::memory_order_relaxed);
  g_lasting.store(fault.lasting, std::memory_order_relaxed);
  g_seen.store(0, std::memory_order_relaxed);
  g_failed.store(0, std::memory_order_relaxed);
  // release pairs with the acquire in fails.
  g_call.store(static_cast<unsigned>(fault.call), std::memory_order_release);
}

unsigned withdraw() noexcept {
  g_call.store(kNoCall, std::memory_order_release);
  return g_failed.exchange(0, std::memory_order_acq_rel);
}

unsigned failures() noexcept {
  return g_failed.load(std::memory_order_acquire);
}

void spare_this_thread() noexcept {
  t_spared = true;
}

namespace {

// fails tells whether this call fails.
bool fails(Call call) noexcept {
  if (g_call.load(std::memory_order_acquire) != static_cast<unsigned>(call) || t_spared) return false;
  const unsigned number = g_seen.fetch_add(1, std::memory_order_relaxed) + 1;
  const unsigned nth = g_nth.load(std::memory_order_relaxed);
  if (number < nth || (number > nth && !g_lasting.load(std::memory_order_relaxed))) return false;
  g_failed.fetch_add(1, std::memory_order_acq_rel);
  errno = g_error.load(std::memory_order_relaxed);
  return true;
}

}  // namespace
}  // namespace coir::test

using coir::test::Call;
using coir::test::fails;

// The names are the linker's. On CPUs with words of 32 bits some functions have other names: tests/unit/CMakeLists.txt.
#pragma clang diagnostic ignored "-Wreserved-identifier"
#if __SIZEOF_POINTER__ == 8
#define COIR_LINKED(narrow)
#else
#define COIR_LINKED(narrow) asm(narrow)
#endif
extern "C" {

bool __real__ZN4coir7Account6chargeEm(coir::Account* account, std::size_t bytes)
    COIR_LINKED("__real__ZN4coir7Account6chargeEj");
bool __wrap__ZN4coir7Account6chargeEm(coir::Account* account, std::size_t bytes)
    COIR_LINKED("__wrap__ZN4coir7Account6chargeEj");
bool __wrap__ZN4coir7Account6chargeEm(coir::Account* account, std::size_t bytes) {
  return !fails(Call::charge) && __real__ZN4coir7Account6chargeEm(account, bytes);
}

int __real_accept4(int fd, sockaddr* name, socklen_t* size, int flags);
int __wrap_accept4(int fd, sockaddr* name, socklen_t* size, int flags) {
  return fails(Call::accept4) ? -1 : __real_accept4(fd, name, size, flags);
}
int __real_close(int fd);
int __wrap_close(int fd) {
  const int closed = __real_close(fd);
  return fails(Call::close) ? -1 : closed;
}
int __real_epoll_create1(int flags);
int __wrap_epoll_create1(int flags) {
  return fails(Call::epoll_create1) ? -1 : __real_epoll_create1(flags);
}
int __real_epoll_ctl(int poller, int what, int fd, epoll_event* event);
int __wrap_epoll_ctl(int poller, int what, int fd, epoll_event* event) {
  return fails(Call::epoll_ctl) ? -1 : __real_epoll_ctl(poller, what, fd, event);
}
int __real_epoll_wait(int poller, epoll_event* events, int most, int timeout);
int __wrap_epoll_wait(int poller, epoll_event* events, int most, int timeout) {
  return fails(Call::epoll_wait) ? -1 : __real_epoll_wait(poller, events, most, timeout);
}
int __real_eventfd(unsigned value, int flags);
int __wrap_eventfd(unsigned value, int flags) {
  return fails(Call::eventfd) ? -1 : __real_eventfd(value, flags);
}
int __real_fstat(int fd, struct stat* into) COIR_LINKED("__real___fstat_time64");
int __wrap_fstat(int fd, struct stat* into) COIR_LINKED("__wrap___fstat_time64");
int __wrap_fstat(int fd, struct stat* into) {
  return fails(Call::fstat) ? -1 : __real_fstat(fd, into);
}
int __real_madvise(void* at, std::size_t size, int advice);
int __wrap_madvise(void* at, std::size_t size, int advice) {
  return fails(Call::madvise) ? -1 : __real_madvise(at, size, advice);
}
void* __real_mmap(void* at, std::size_t size, int protection, int flags, int fd, off_t offset);
void* __wrap_mmap(void* at, std::size_t size, int protection, int flags, int fd, off_t offset) {
  return fails(Call::mmap) ? MAP_FAILED : __real_mmap(at, size, protection, flags, fd, offset);
}
int __real_mprotect(void* at, std::size_t size, int protection);
int __wrap_mprotect(void* at, std::size_t size, int protection) {
  return fails(Call::mprotect) ? -1 : __real_mprotect(at, size, protection);
}
int __real_open(const char* path, int flags, ...);
int __wrap_open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const int mode = (flags & O_CREAT) != 0 ? va_arg(arguments, int) : 0;
  va_end(arguments);
  return fails(Call::open) ? -1 : __real_open(path, flags, mode);
}
int __real_openat(int at, const char* path, int flags, ...);
int __wrap_openat(int at, const char* path, int flags, ...) {
  return fails(Call::openat) ? -1 : __real_openat(at, path, flags, 0);
}
// The one call that has no function of its own is openat2.
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...) {
  long values[6];
  va_list arguments;
  va_start(arguments, number);
  for (long& value : values) value = va_arg(arguments, long);
  va_end(arguments);
  constexpr long kOpenat2 = 437;
  if (number == kOpenat2 && fails(Call::openat2)) return -1;
  return __real_syscall(number, values[0], values[1], values[2], values[3], values[4], values[5]);
}
int __real_poll(pollfd* entries, nfds_t count, int timeout);
int __wrap_poll(pollfd* entries, nfds_t count, int timeout) {
  return fails(Call::poll) ? -1 : __real_poll(entries, count, timeout);
}
int __real_ppoll(pollfd* entries, nfds_t count, const timespec* timeout, const sigset_t* mask)
    COIR_LINKED("__real___ppoll_time64");
int __wrap_ppoll(pollfd* entries, nfds_t count, const timespec* timeout, const sigset_t* mask)
    COIR_LINKED("__wrap___ppoll_time64");
int __wrap_ppoll(pollfd* entries, nfds_t count, const timespec* timeout, const sigset_t* mask) {
  return fails(Call::ppoll) ? -1 : __real_ppoll(entries, count, timeout, mask);
}
ssize_t __real_pread(int fd, void* into, std::size_t size, off_t offset);
ssize_t __wrap_pread(int fd, void* into, std::size_t size, off_t offset) {
  return fails(Call::pread) ? -1 : __real_pread(fd, into, size, offset);
}
ssize_t __real_preadv2(int fd, const iovec* parts, int count, off_t offset, int flags);
ssize_t __wrap_preadv2(int fd, const iovec* parts, int count, off_t offset, int flags) {
  return fails(Call::preadv2) ? -1 : __real_preadv2(fd, parts, count, offset, flags);
}
int __real_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument);
int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument) {
  return fails(Call::pthread_create) ? errno : __real_pthread_create(thread, attributes, run, argument);
}
ssize_t __real_recv(int fd, void* into, std::size_t size, int flags);
ssize_t __wrap_recv(int fd, void* into, std::size_t size, int flags) {
  return fails(Call::recv) ? -1 : __real_recv(fd, into, size, flags);
}
ssize_t __real_recvmsg(int fd, msghdr* message, int flags);
ssize_t __wrap_recvmsg(int fd, msghdr* message, int flags) {
  return fails(Call::recvmsg) ? -1 : __real_recvmsg(fd, message, flags);
}
ssize_t __real_send(int fd, const void* from, std::size_t size, int flags);
ssize_t __wrap_send(int fd, const void* from, std::size_t size, int flags) {
  return fails(Call::send) ? -1 : __real_send(fd, from, size, flags);
}
ssize_t __real_sendfile(int to, int from, off_t* offset, std::size_t count);
ssize_t __wrap_sendfile(int to, int from, off_t* offset, std::size_t count) {
  return fails(Call::sendfile) ? -1 : __real_sendfile(to, from, offset, count);
}
ssize_t __real_sendmsg(int fd, const msghdr* message, int flags);
ssize_t __wrap_sendmsg(int fd, const msghdr* message, int flags) {
  return fails(Call::sendmsg) ? -1 : __real_sendmsg(fd, message, flags);
}
int __real_setsockopt(int fd, int level, int name, const void* value, socklen_t size);
int __wrap_setsockopt(int fd, int level, int name, const void* value, socklen_t size) {
  return fails(Call::setsockopt) ? -1 : __real_setsockopt(fd, level, name, value, size);
}
int __real_shutdown(int fd, int how);
int __wrap_shutdown(int fd, int how) {
  return fails(Call::shutdown) ? -1 : __real_shutdown(fd, how);
}
int __real_connect(int fd, const sockaddr* to, socklen_t size);
int __wrap_connect(int fd, const sockaddr* to, socklen_t size) {
  return fails(Call::connect) ? -1 : __real_connect(fd, to, size);
}
int __real_getsockopt(int fd, int level, int name, void* value, socklen_t* size);
int __wrap_getsockopt(int fd, int level, int name, void* value, socklen_t* size) {
  return fails(Call::getsockopt) ? -1 : __real_getsockopt(fd, level, name, value, size);
}
int __real_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol) {
  return fails(Call::socket) ? -1 : __real_socket(domain, type, protocol);
}
}
