// The work of fibers_bench.cpp on Boost.Context and Boost.Fiber, with 8 KB stacks.
//
//   boost_fibers_bench switch|yield|spawn|rendezvous|buffered|mutex|pthread_mutex|million [COUNT]
//   boost_fibers_bench suspended|guarded COUNT
//
// `suspended` parks contexts on plain stacks, `guarded` on stacks with a guard page each, as many as the kernel lets it
// have. Contexts and not fibers: they are the smaller of the two (a parked Boost.Fiber touches both pages of its
// stack).

#define BOOST_ENABLE_ASSERT_HANDLER
#include <pthread.h>
#include <unistd.h>

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

// A guard page that could not be had is only an assertion in Boost: a release build goes on without it.
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
