// The work of fibers_bench.cpp on Boost.Context and Boost.Fiber, with 8 KB stacks.
//
//   boost_fibers_bench switch|yield|spawn|rendezvous|buffered|mutex|pthread_mutex|pthread_mutex_contended|pthread_wake_idle|million [COUNT]
//   boost_fibers_bench suspended|guarded COUNT
//
// `suspended` parks contexts on plain stacks, `guarded` on stacks with a guard page each, as many as the kernel lets it
// have. Contexts and not fibers: they are the smaller of the two (a parked Boost.Fiber touches both pages of its
// stack).

#define BOOST_ENABLE_ASSERT_HANDLER
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include <boost/assert.hpp>
#include <boost/context/detail/fcontext.hpp>
#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <boost/fiber/all.hpp>

#include "measure.h"

namespace {

constexpr std::size_t kStack = 8192;
long held = 0;

[[noreturn]] void end_guarded() {
  bench::print("suspended_max", held, "fibers");
  std::fflush(stdout);
  _exit(0);
}

// The lowest layer there is: Boost's own assembly, without the C++ object around it.
void measure_switch(long count) {
  namespace detail = boost::context::detail;
  static char stack[64 * 1024];
  const auto echo = [](detail::transfer_t from) {
    for (;;) from = detail::jump_fcontext(from.fctx, nullptr);
  };
  detail::fcontext_t other = detail::make_fcontext(stack + sizeof stack, sizeof stack, +echo);
  const double ns = bench::ns_per(count * 2, [&] {
    for (long i = 0; i < count; ++i) other = detail::jump_fcontext(other, nullptr).fctx;
  });
  bench::print("switch_ns", ns, "ns");
}

void measure_yield(long count) {
  const double ns = bench::ns_per(count, [&] {
    const auto body = [&] {
      for (long i = 0; i < count; ++i) boost::this_fiber::yield();
    };
    boost::fibers::fiber first(body);
    boost::fibers::fiber second(body);
    first.join();
    second.join();
  });
  bench::print("yield_pair_ns", ns, "ns");
}

void measure_spawn(long count) {
  boost::context::pooled_fixedsize_stack pool(kStack);
  const double ns = bench::ns_per(count, [&] {
    for (long i = 0; i < count; ++i) boost::fibers::fiber(std::allocator_arg, pool, [] {}).join();
  });
  bench::print("spawn_join_ns", ns, "ns");
}

template <class Channel>
void echo(Channel& there, Channel& back) {
  int value = 0;
  while (there.pop(value) == boost::fibers::channel_op_status::success) back.push(value);
}

template <class Channel>
void round_trips(Channel& there, Channel& back, long count) {
  for (int i = 0; i < count; ++i) {
    there.push(i);
    int value = -1;
    back.pop(value);
    if (value != i) std::abort();
  }
}

void measure_rendezvous(long count) {
  boost::fibers::unbuffered_channel<int> there, back;
  boost::fibers::fiber other([&] { echo(there, back); });
  bench::print("rendezvous_rtt_ns", bench::ns_per(count, [&] { round_trips(there, back, count); }), "ns");
  there.close();
  other.join();
}

void measure_million(long count) {
  boost::fibers::unbuffered_channel<int> there, back;
  boost::fibers::fiber other([&] { echo(there, back); });
  timespec start, end;
  clock_gettime(CLOCK_MONOTONIC, &start);
  round_trips(there, back, count);
  clock_gettime(CLOCK_MONOTONIC, &end);
  bench::print("channel_million_rtt_s",
               static_cast<double>(end.tv_sec - start.tv_sec) + static_cast<double>(end.tv_nsec - start.tv_nsec) / 1e9,
               "s");
  there.close();
  other.join();
}

void measure_buffered(long count) {
  const double ns = bench::ns_per(count, [&] {
    boost::fibers::buffered_channel<int> channel(128);
    boost::fibers::fiber sender([&] {
      for (int i = 0; i < count; ++i) channel.push(i);
      channel.close();
    });
    long sum = 0;
    int value = 0;
    while (channel.pop(value) == boost::fibers::channel_op_status::success) sum += value;
    if (sum != count * (count - 1) / 2) std::abort();
    sender.join();
  });
  bench::print("buffered_message_ns", ns, "ns");
}

void measure_mutex(long count) {
  boost::fibers::mutex mutex;
  const double ns = bench::ns_per(count, [&] {
    for (long i = 0; i < count; ++i) {
      mutex.lock();
      mutex.unlock();
    }
  });
  bench::print("mutex_ns", ns, "ns");
}

void measure_pthread_mutex(long count) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  const double ns = bench::ns_per(count, [&] {
    for (long i = 0; i < count; ++i) {
      pthread_mutex_lock(&mutex);
      pthread_mutex_unlock(&mutex);
    }
  });
  bench::print("mutex_ns", ns, "ns");
}

// As fibers_bench's mutex_contended, by two threads.
void measure_pthread_mutex_contended(long count) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static long each;
  each = count / 2;
  const auto body = [](void*) -> void* {
    volatile int work = 0;
    for (long i = 0; i < each; ++i) {
      pthread_mutex_lock(&mutex);
      for (int step = 0; step < 20; ++step) work = work + 1;
      pthread_mutex_unlock(&mutex);
      for (int step = 0; step < 80; ++step) work = work + 1;
    }
    return nullptr;
  };
  const std::int64_t start = bench::wall_ns();
  pthread_t other;
  if (pthread_create(&other, nullptr, +body, nullptr) != 0) std::abort();
  body(nullptr);
  pthread_join(other, nullptr);
  bench::print("mutex_contended_ns", static_cast<double>(bench::wall_ns() - start) / static_cast<double>(count), "ns");
}

// As fibers_bench's wake_idle: a thread sleeps on a futex, another wakes it and computes on.
void measure_pthread_wake_idle(long count) {
  static std::atomic<std::uint32_t> word{0};
  static std::atomic<std::int64_t> sent{0};
  static bench::Delays delays(count);
  pthread_t other;
  const auto receive = [](void* rounds) -> void* {
    const auto last = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(rounds));
    for (std::uint32_t round = 0; round < last; ++round) {
      while (word.load() == round) syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, round, nullptr, nullptr, 0);
      delays.add(bench::wall_ns() - sent.load());
    }
    return nullptr;
  };
  if (pthread_create(&other, nullptr, +receive, reinterpret_cast<void*>(count)) != 0) std::abort();
  for (long i = 0; i < count; ++i) {
    bench::compute(bench::kSettleNs);
    sent.store(bench::wall_ns());
    word.fetch_add(1);
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    bench::compute(bench::kSettleNs);
  }
  pthread_join(other, nullptr);
  bench::print("wake_idle_us", delays.median_us(), "us");
}

// park starts `count` contexts, each of which goes back to its starter at once and is never taken up again. The objects
// that own them are counted too: what they point to could not be found without them.
template <class Stack>
void park(Stack stacks, long count) {
  namespace context = boost::context;
  auto* parked = new context::fiber[count];
  for (long i = 0; i < count; ++i) {
    parked[i] = context::fiber(std::allocator_arg, stacks, [](context::fiber&& starter) {
                  for (;;) starter = std::move(starter).resume();
                  return std::move(starter);
                }).resume();
    ++held;
  }
}

}  // namespace

// Boost only asserts that it got the guard page: a release build continues without it.
namespace boost {
void assertion_failed(const char*, const char*, const char*, long) {
  end_guarded();
}
void assertion_failed_msg(const char*, const char*, const char*, const char*, long) {
  end_guarded();
}
}  // namespace boost

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  const long count = argc > 2 ? std::atol(argv[2]) : 1'000'000;
  if (std::strcmp(what, "switch") == 0) {
    measure_switch(count);
  } else if (std::strcmp(what, "yield") == 0) {
    measure_yield(count);
  } else if (std::strcmp(what, "spawn") == 0) {
    measure_spawn(count);
  } else if (std::strcmp(what, "rendezvous") == 0) {
    measure_rendezvous(count);
  } else if (std::strcmp(what, "buffered") == 0) {
    measure_buffered(count);
  } else if (std::strcmp(what, "mutex") == 0) {
    measure_mutex(count);
  } else if (std::strcmp(what, "pthread_mutex") == 0) {
    measure_pthread_mutex(count);
  } else if (std::strcmp(what, "pthread_mutex_contended") == 0) {
    measure_pthread_mutex_contended(count);
  } else if (std::strcmp(what, "pthread_wake_idle") == 0) {
    measure_pthread_wake_idle(count);
  } else if (std::strcmp(what, "million") == 0) {
    measure_million(count);
  } else if (std::strcmp(what, "suspended") == 0) {
    park(boost::context::fixedsize_stack(kStack), 1000);
    const bench::Memory before = bench::Memory::now();
    park(boost::context::fixedsize_stack(kStack), count);
    bench::print_growth(before, bench::Memory::now(), count);
    std::fflush(stdout);
    _exit(0);
  } else if (std::strcmp(what, "guarded") == 0) {
    try {
      park(boost::context::protected_fixedsize_stack(kStack), count);
    } catch (const std::bad_alloc&) {
    }
    end_guarded();
  } else {
    std::fputs("usage: boost_fibers_bench switch|yield|spawn|rendezvous|...|suspended|guarded [COUNT]\n", stderr);
    return 2;
  }
}
