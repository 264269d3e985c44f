#include <coir/deadline.h>
#include <coir/port/barrier.h>
#include <coir/port/futex.h>
#include <coir/port/poller.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include <coir/config.h>
#if COIR_ASAN
#include <sanitizer/asan_interface.h>
#endif

#include <algorithm>
#include <cstddef>
#include <utility>

#include "explore.h"
#include "steps.h"

// The explored code's system: a clock, futexes, a poller and threads, none of them the kernel's.

namespace coir {

std::int64_t monotonic_ns() noexcept {
  return explore::now_ns();
}

int Deadline::remaining_ms() const noexcept {
  if (is_never()) return -1;
  const std::int64_t left = ns_ - monotonic_ns();
  return left <= 0 ? 0 : static_cast<int>((left + 999'999) / 1'000'000);
}

namespace port {

namespace {

std::int64_t due(std::int64_t timeout_ns) noexcept {
  return timeout_ns < 0 ? INT64_MAX : explore::now_ns() + timeout_ns;
}

}  // namespace

void futex_wait(SharedAtomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t timeout_ns,
                std::source_location where) noexcept {
  explore::before(explore::Step::sleep, &word, std::memory_order_seq_cst, where);
  std::uint32_t now;
  __builtin_memcpy(&now, static_cast<const void*>(&word), sizeof now);
  if (now == expected) explore::sleep_on(&word, due(timeout_ns));
}

void futex_wake(SharedAtomic<std::uint32_t>& word, std::source_location where) noexcept {
  explore::before(explore::Step::wake, &word, std::memory_order_seq_cst, where);
  if (!explore::loses_this_wake()) explore::wake_one(&word);
}

bool prepare_barrier() noexcept {
  return true;
}

bool barrier_everywhere(std::source_location where) noexcept {
  explore::before(explore::Step::fence, nullptr, std::memory_order_seq_cst, where);
  explore::barrier_everywhere();
  return true;
}

// The descriptors, numbered from 0, are those of whichever scenario runs.
namespace {

struct Descriptor {
  bool added, edge, closed;
  int ready;  // how much is to be read
  std::uint32_t tag;
};
Descriptor g_descriptors[Poller::kDescriptors];
const Poller* g_poller;

}  // namespace

int Poller::open(bool, std::size_t) noexcept {
  kind_ = Kind::epoll;
  interrupted_ = false;
  g_poller = this;
  for (Descriptor& one : g_descriptors) one = {};
  return 0;
}

void Poller::close() noexcept {
  kind_ = Kind::closed;
  g_poller = nullptr;
}

int Poller::add(int fd, std::uint32_t tag) noexcept {
  explore::before(explore::Step::poll, this, std::memory_order_seq_cst, std::source_location::current());
  Descriptor& one = g_descriptors[fd];
  if (one.closed) return EBADF;
  one.added = true;
  one.tag = tag;
  one.edge = one.ready != 0;
  if (one.edge) explore::wake_one(this);
  return 0;
}

std::size_t Poller::wait(std::span<PollEvent> events, std::int64_t timeout_ns, Collect, void*) noexcept {
  explore::before(explore::Step::poll, this, std::memory_order_seq_cst, std::source_location::current());
  for (bool slept = timeout_ns == 0;; slept = true) {
    std::size_t count = 0;
    for (int fd = 0; fd < kDescriptors; ++fd) {
      Descriptor& one = g_descriptors[fd];
      if (!one.edge || count == events.size()) continue;
      one.edge = false;
      events[count++] = {.fd = fd, .tag = one.tag, .readable = true, .writable = false, .hung_up = false};
    }
    if (count != 0 || interrupted_ || slept) {
      interrupted_ = false;
      return count;
    }
    explore::sleep_on(this, due(timeout_ns));
  }
}

void Poller::interrupt() noexcept {
  explore::before(explore::Step::wake, this, std::memory_order_seq_cst, std::source_location::current());
  if (explore::loses_this_wake()) return;
  interrupted_ = true;
  explore::wake_one(this);
}

void Poller::get_ready(int fd) noexcept {
  explore::before(explore::Step::poll, &g_descriptors[fd], std::memory_order_seq_cst, std::source_location::current());
  Descriptor& one = g_descriptors[fd];
  ++one.ready;
  if (one.added && !one.closed) {
    one.edge = true;
    explore::wake_one(g_poller);
  }
}

bool Poller::drain(int fd) noexcept {
  explore::before(explore::Step::poll, &g_descriptors[fd], std::memory_order_seq_cst, std::source_location::current());
  return std::exchange(g_descriptors[fd].ready, 0) != 0;
}

bool Poller::take(int fd) noexcept {
  explore::before(explore::Step::poll, &g_descriptors[fd], std::memory_order_seq_cst, std::source_location::current());
  if (g_descriptors[fd].ready == 0) return false;
  --g_descriptors[fd].ready;
  return true;
}

void Poller::close_descriptor(int fd) noexcept {
  explore::before(explore::Step::poll, &g_descriptors[fd], std::memory_order_seq_cst, std::source_location::current());
  g_descriptors[fd] = {.added = false, .edge = false, .closed = true, .ready = 0, .tag = 0};
}

}  // namespace port

}  // namespace coir

// The linker turns the explored code's calls of pthread_create and pthread_join into these (--wrap): a worker is an
// explored thread as well. Its handle is its number and one.
extern "C" int __wrap_pthread_create(pthread_t* handle, const pthread_attr_t*, void* (*body)(void*), void* argument);
extern "C" int __wrap_pthread_join(pthread_t handle, void** result);
// Turns decide who runs, and each step of a thread that spins is one: to give the CPU to other processes, for milliseconds
// where they compute, would only cost time.
extern "C" int __wrap_sched_yield();
// All explored threads are one of the kernel's, which has one signal stack.
extern "C" int __wrap_sigaltstack(const stack_t* stack, stack_t* before);
// Runs begin by the ten thousand with fresh pages, each of which costs the kernel more than a run's steps. So what a run gives
// back stays resident and is cleared, and what it releases is kept for the next that wants as much: inaccessible under
// AddressSanitizer, elsewhere filled with a pattern that must be there still.
extern "C" void* __real__ZN4coir4port7reserveEm(std::size_t bytes);
extern "C" void* __wrap__ZN4coir4port7reserveEm(std::size_t bytes);
extern "C" void __real__ZN4coir4port7releaseEPvm(void* start, std::size_t bytes);
extern "C" void __wrap__ZN4coir4port7releaseEPvm(void* start, std::size_t bytes);
extern "C" bool __wrap__ZN4coir4port9give_backEPvm(void* start, std::size_t bytes);
// Each run would read the files of its control groups.
extern "C" unsigned __wrap__ZN4coir4port9cpu_quotaEPKc(const char* root);

namespace {

struct Call {
  void* (*body)(void*);
  void* argument;
};
Call g_calls[8];

struct Released {
  void* start;
  std::size_t bytes;
};
Released g_released[64];
unsigned g_released_count = 0;

constexpr std::uint64_t kReleased = 0xdbdb'dbdb'dbdb'dbdb;  // no pointer, and no state of anything

// for_each_page calls each(words) for the pages that are resident. AddressSanitizer may hold parts of a stack for inaccessible:
// what was there has ended.
constexpr std::size_t kPage = 4096;
template <class Each>
[[clang::disable_sanitizer_instrumentation]] void for_each_page(void* start, std::size_t bytes, Each each) {
  constexpr std::size_t kAtOnce = 256;
  unsigned char resident[kAtOnce];
  auto* at = static_cast<char*>(start);
  for (std::size_t left = (bytes + kPage - 1) / kPage; left != 0;) {
    const std::size_t some = std::min(left, kAtOnce);
    if (mincore(at, some * kPage, resident) != 0) __builtin_trap();
    for (std::size_t i = 0; i < some; ++i, at += kPage) {
      if ((resident[i] & 1) != 0) each(reinterpret_cast<std::uint64_t*>(at));
    }
    left -= some;
  }
}

[[clang::disable_sanitizer_instrumentation]] void fill(std::uint64_t* words, std::uint64_t with) {
  std::size_t count = kPage / sizeof *words;
  asm volatile("rep stosq" : "+D"(words), "+c"(count) : "a"(with) : "memory");
}

// For AddressSanitizer. Elsewhere what was released reads as kReleased.
void make_accessible([[maybe_unused]] void* start, [[maybe_unused]] std::size_t bytes) {
#if COIR_ASAN
  __asan_unpoison_memory_region(start, bytes);
#endif
}
void make_inaccessible([[maybe_unused]] void* start, [[maybe_unused]] std::size_t bytes) {
#if COIR_ASAN
  __asan_poison_memory_region(start, bytes);
#endif
}

void clear(void* start, std::size_t bytes) {
  for_each_page(start, bytes, [](std::uint64_t* words) { fill(words, 0); });
}

}  // namespace

int __wrap_pthread_create(pthread_t* handle, const pthread_attr_t*, void* (*body)(void*), void* argument) {
  static unsigned next = 0;
  Call& call = g_calls[next++ % 8];
  call = {body, argument};
  const int thread = coir::explore::start(
      [](void* given) {
        const Call mine = *static_cast<Call*>(given);
        mine.body(mine.argument);
      },
      &call);
  *handle = reinterpret_cast<pthread_t>(static_cast<std::uintptr_t>(thread) + 1);
  return 0;
}

int __wrap_pthread_join(pthread_t handle, void**) {
  coir::explore::join(static_cast<int>(reinterpret_cast<std::uintptr_t>(handle) - 1));
  return 0;
}

int __wrap_sched_yield() {
  return 0;
}

int __wrap_sigaltstack(const stack_t*, stack_t* before) {
  if (before != nullptr) *before = {.ss_sp = nullptr, .ss_flags = SS_DISABLE, .ss_size = 0};
  return 0;
}

void* __wrap__ZN4coir4port7reserveEm(std::size_t bytes) {
  for (unsigned i = g_released_count; i-- > 0;) {
    if (g_released[i].bytes != bytes) continue;
    void* const start = g_released[i].start;
    g_released[i] = g_released[--g_released_count];
    make_accessible(start, bytes);
    bool untouched = true;
    for_each_page(start, bytes, [&](std::uint64_t* words) {
      for (std::size_t w = 0; w < kPage / sizeof *words; ++w) untouched &= words[w] == kReleased;
      fill(words, 0);
    });
    coir::explore::require(untouched);  // what one run has released was written to
    return start;
  }
  return __real__ZN4coir4port7reserveEm(bytes);
}

void __wrap__ZN4coir4port7releaseEPvm(void* start, std::size_t bytes) {
  if (g_released_count == std::size(g_released)) return __real__ZN4coir4port7releaseEPvm(start, bytes);
  for_each_page(start, bytes, [](std::uint64_t* words) { fill(words, kReleased); });
  make_inaccessible(start, bytes);
  g_released[g_released_count++] = {start, bytes};
}

bool __wrap__ZN4coir4port9give_backEPvm(void* start, std::size_t bytes) {
  clear(start, bytes);
  return true;
}

unsigned __wrap__ZN4coir4port9cpu_quotaEPKc(const char*) {
  return 0;
}
