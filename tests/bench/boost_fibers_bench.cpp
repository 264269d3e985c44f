// The work of fibers_bench.cpp on Boost.Context and Boost.Fiber, with 8 KB stacks.
//
//   boost_fibers_bench switch|yield|spawn [COUNT]
//   boost_fibers_bench suspended|guarded COUNT
//
// `suspended` parks contexts on plain stacks, `guarded` on stacks with a guard page each, as many as the kernel lets it
// have. Contexts and not fibers: they are the smaller of the two (a parked Boost.Fiber touches both pages of its
// stack).

#define BOOST_ENABLE_ASSERT_HANDLER
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
    std::fputs("usage: boost_fibers_bench switch|yield|spawn|suspended|guarded [COUNT]\n", stderr);
    return 2;
  }
}
