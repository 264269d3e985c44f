// Stands between coird and the C library (the linker's --wrap), and writes down every allocation that the daemon makes
// after it has said that it is ready, unless an account of the ledger was charged for it.
//
//   allocation: malloc of 24 bytes from 0x2034b1: no account knows it
//   allocations: 12 while it started, 1 after that, 1 of them unknown
//
// The first kind of line comes as it happens; the second, when the program ends. With COIR_PLANT=1 in the environment
// one byte is allocated for each connection, to see that it is found. With COIR_MEMINFO=FILE the daemon reads that file
// instead of /proc/meminfo. With COIR_CLOCK=FILE the monotonic clock is ahead by as many seconds as the file's first eight bytes
// tell, at any time.

#include <coir/blocking.h>
#include <coir/detail/accounts.h>
#include <coir/ledger.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

namespace {

constexpr char kReady[] = "coird: listening on ";

constinit std::atomic<bool> g_ready{false};
constinit std::atomic<std::size_t> g_before{0}, g_after{0}, g_unknown{0};

// Threads that were created while the daemon started, and the one that created them, may get their stacks for signals
// later, when another of them has already said that it is ready.
constinit thread_local bool t_starting = false;

// Within mbedTLS's allocator, which charges a session ahead and hands blocks out that others have freed; where a
// session is made, which holds the allocator that charges for it; and within the C library's, of which the outermost call is
// judged.
constinit thread_local int t_paid_for = 0;

class PaidFor {
 public:
  PaidFor() { ++t_paid_for; }
  ~PaidFor() { --t_paid_for; }
};

struct Start {
  void* (*run)(void*) = nullptr;
  void* argument = nullptr;
};
constinit Start g_starts[64];
constinit std::atomic<std::size_t> g_threads{0};

void* begin_thread(void* start) {
  t_starting = true;
  return static_cast<Start*>(start)->run(static_cast<Start*>(start)->argument);
}

constinit const std::atomic<std::int64_t>* g_ahead = nullptr;

// Bytes that the last charge of this thread still covers: an allocator charges, and then takes the memory at once.
constinit thread_local std::size_t t_covered = 0;

// The memory of these accounts is reserved at the start, so that a charge to one of them covers no allocation.
bool reserves_at_start(const coir::Account& account) {
  return &account == &coir::account::stacks || &account == &coir::account::connections ||
         &account == &coir::account::http || &account == &coir::account::files || &account == &coir::account::process;
}

// Line is put together by hand: printf needs more stack than a fiber has.
class Line {
 public:
  Line& operator<<(const char* text) {
    while (*text != '\0' && used_ < sizeof text_) text_[used_++] = *text++;
    return *this;
  }
  Line& operator<<(std::size_t number) { return add(number, 10); }
  Line& operator<<(const void* address) { return (*this << "0x").add(reinterpret_cast<std::uintptr_t>(address), 16); }
  ~Line() { [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, text_, used_); }

 private:
  Line& add(std::size_t number, unsigned base) {
    char digits[21] = {};
    char* at = digits + 20;
    do {
      *--at = "0123456789abcdef"[number % base];
      number /= base;
    } while (number != 0);
    return *this << at;
  }

  char text_[160];
  std::size_t used_ = 0;
};

void note(const char* function, std::size_t bytes, const void* from) {
  if (t_starting || !g_ready.load(std::memory_order_relaxed)) {
    g_before.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  g_after.fetch_add(1, std::memory_order_relaxed);
  if (t_paid_for > 0) return;
  if (bytes <= t_covered) {
    t_covered -= bytes;
    return;
  }
  g_unknown.fetch_add(1, std::memory_order_relaxed);
  Line() << "allocation: " << function << " of " << bytes << " bytes from " << from << ": no account knows it\n";
}

[[gnu::destructor]] void sum_up() {
  Line() << "allocations: " << g_before << " while it started, " << g_after << " after that, " << g_unknown
         << " of them unknown\n";
}

}  // namespace

// The names are the linker's.
#pragma clang diagnostic ignored "-Wreserved-identifier"
extern "C" {

bool __real__ZN4coir7Account6chargeEm(coir::Account* account, std::size_t bytes);
bool __wrap__ZN4coir7Account6chargeEm(coir::Account* account, std::size_t bytes) {
  const bool granted = __real__ZN4coir7Account6chargeEm(account, bytes);
  // A thread of the blocking pool is charged to the stacks when it starts.
  const bool is_thread = account == &coir::account::stacks && bytes == coir::kBlockingStackBytes;
  t_covered = granted && (is_thread || !reserves_at_start(*account)) ? bytes : 0;
  if (account == &coir::account::connections && getenv("COIR_PLANT") != nullptr) {
    void* volatile planted = malloc(1);
    free(planted);
  }
  return granted;
}

void* __real_coir_tls_calloc(std::size_t count, std::size_t size);
void* __wrap_coir_tls_calloc(std::size_t count, std::size_t size) {
  const PaidFor paid;
  return __real_coir_tls_calloc(count, size);
}

// coir::tls::Session::create(coir::tls::Config&, int, const char*, const coir::tls::Ticket*, coir::Deadline); a
// std::expected, which comes back in registers.
struct SessionOrError {
  void* words[2];
};
SessionOrError __real__ZN4coir3tls7Session6createERNS0_6ConfigEiPKcPKNS0_6TicketENS_8DeadlineE(void* config, int fd,
                                                                                               const char* name,
                                                                                               const void* ticket,
                                                                                               std::int64_t deadline);
SessionOrError __wrap__ZN4coir3tls7Session6createERNS0_6ConfigEiPKcPKNS0_6TicketENS_8DeadlineE(void* config, int fd,
                                                                                               const char* name,
                                                                                               const void* ticket,
                                                                                               std::int64_t deadline) {
  const PaidFor paid;
  return __real__ZN4coir3tls7Session6createERNS0_6ConfigEiPKcPKNS0_6TicketENS_8DeadlineE(config, fd, name, ticket,
                                                                                         deadline);
}

ssize_t __real_write(int fd, const void* from, std::size_t size);
ssize_t __wrap_write(int fd, const void* from, std::size_t size) {
  // Before anybody can read it: a client that has may be served before this call returns.
  if (fd == STDERR_FILENO && size > sizeof kReady && memcmp(from, kReady, sizeof kReady - 1) == 0) g_ready = true;
  return __real_write(fd, from, size);
}

int __real_open(const char* path, int flags, ...);
int __wrap_open(const char* path, int flags, ...) {
  const char* const meminfo = getenv("COIR_MEMINFO");
  if (meminfo != nullptr && strcmp(path, "/proc/meminfo") == 0) path = meminfo;
  // Nothing is created by the daemon.
  return __real_open(path, flags);
}

int __real_clock_gettime(clockid_t clock, timespec* into);
int __wrap_clock_gettime(clockid_t clock, timespec* into) {
  const int failed = __real_clock_gettime(clock, into);
  if (g_ahead != nullptr && (clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE))
    into->tv_sec += static_cast<time_t>(g_ahead->load(std::memory_order_relaxed));
  return failed;
}

void* __real_malloc(std::size_t size);
void* __wrap_malloc(std::size_t size) {
  note("malloc", size, __builtin_return_address(0));
  const PaidFor inside;
  return __real_malloc(size);
}
void* __real_calloc(std::size_t count, std::size_t size);
void* __wrap_calloc(std::size_t count, std::size_t size) {
  note("calloc", count * size, __builtin_return_address(0));
  const PaidFor inside;
  return __real_calloc(count, size);
}
void* __real_realloc(void* old, std::size_t size);
void* __wrap_realloc(void* old, std::size_t size) {
  note("realloc", size, __builtin_return_address(0));
  const PaidFor inside;
  return __real_realloc(old, size);
}
void* __real___libc_malloc(std::size_t size);
void* __wrap___libc_malloc(std::size_t size) {
  note("the C library's malloc", size, __builtin_return_address(0));
  return __real___libc_malloc(size);
}
void* __real___libc_calloc(std::size_t count, std::size_t size);
void* __wrap___libc_calloc(std::size_t count, std::size_t size) {
  note("the C library's calloc", count * size, __builtin_return_address(0));
  return __real___libc_calloc(count, size);
}
void* __real___libc_realloc(void* old, std::size_t size);
void* __wrap___libc_realloc(void* old, std::size_t size) {
  note("the C library's realloc", size, __builtin_return_address(0));
  return __real___libc_realloc(old, size);
}
void* __real_aligned_alloc(std::size_t alignment, std::size_t size);
void* __wrap_aligned_alloc(std::size_t alignment, std::size_t size) {
  note("aligned_alloc", size, __builtin_return_address(0));
  const PaidFor inside;
  return __real_aligned_alloc(alignment, size);
}
void* __real_memalign(std::size_t alignment, std::size_t size);
void* __wrap_memalign(std::size_t alignment, std::size_t size) {
  note("memalign", size, __builtin_return_address(0));
  const PaidFor inside;
  return __real_memalign(alignment, size);
}
int __real_posix_memalign(void** into, std::size_t alignment, std::size_t size);
int __wrap_posix_memalign(void** into, std::size_t alignment, std::size_t size) {
  note("posix_memalign", size, __builtin_return_address(0));
  const PaidFor inside;
  return __real_posix_memalign(into, alignment, size);
}

// A mapping over pages that are the process's already takes no more of them.
void* __real_mmap(void* at, std::size_t size, int protection, int flags, int fd, off_t offset);
[[gnu::constructor]] void set_clock() {
  const char* const path = getenv("COIR_CLOCK");
  const int fd = path != nullptr ? __real_open(path, O_RDONLY | O_CLOEXEC) : -1;
  void* const at = fd >= 0 ? __real_mmap(nullptr, sizeof *g_ahead, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
  if (at != MAP_FAILED) g_ahead = static_cast<const std::atomic<std::int64_t>*>(at);
  if (fd >= 0) close(fd);
}

void* __wrap_mmap(void* at, std::size_t size, int protection, int flags, int fd, off_t offset) {
  if ((flags & MAP_FIXED) == 0) note("mmap", size, __builtin_return_address(0));
  return __real_mmap(at, size, protection, flags, fd, offset);
}
void* __real___mmap(void* at, std::size_t size, int protection, int flags, int fd, off_t offset);
void* __wrap___mmap(void* at, std::size_t size, int protection, int flags, int fd, off_t offset) {
  if ((flags & MAP_FIXED) == 0) note("the C library's mmap", size, __builtin_return_address(0));
  return __real___mmap(at, size, protection, flags, fd, offset);
}
void* __real_mremap(void* old, std::size_t old_size, std::size_t size, int flags, void* to);
void* __wrap_mremap(void* old, std::size_t old_size, std::size_t size, int flags, void* to) {
  if (size > old_size) note("mremap", size, __builtin_return_address(0));
  return __real_mremap(old, old_size, size, flags, to);
}
int __real_brk(void* end);
int __wrap_brk(void* end) {
  note("brk", 1, __builtin_return_address(0));
  return __real_brk(end);
}
void* __real_sbrk(intptr_t more);
void* __wrap_sbrk(intptr_t more) {
  if (more > 0) note("sbrk", static_cast<std::size_t>(more), __builtin_return_address(0));
  return __real_sbrk(more);
}

// A thread has a stack.
int __real_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument);
int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument) {
  const std::size_t number = g_threads.fetch_add(1, std::memory_order_relaxed);
  // One of the first workers may say that coird is ready while this thread still creates the others.
  const bool at_start = t_starting || !g_ready.load(std::memory_order_relaxed);
  if (!at_start || number >= sizeof g_starts / sizeof g_starts[0]) {
    note("pthread_create", coir::kBlockingStackBytes, __builtin_return_address(0));
    const PaidFor inside;
    return __real_pthread_create(thread, attributes, run, argument);
  }
  t_starting = true;
  g_starts[number] = {run, argument};
  return __real_pthread_create(thread, attributes, begin_thread, &g_starts[number]);
}
int __real_sigaltstack(const stack_t* stack, stack_t* old);
int __wrap_sigaltstack(const stack_t* stack, stack_t* old) {
  t_starting = false;
  return __real_sigaltstack(stack, old);
}
}
