#include <coir/deadline.h>
#include <coir/port/barrier.h>
#include <coir/port/futex.h>
#include <coir/port/poller.h>
#include <errno.h>
#include <pthread.h>

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

namespace {

struct Call {
  void* (*body)(void*);
  void* argument;
};
Call g_calls[8];

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
