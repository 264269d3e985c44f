// What fibers cost, through the public interface. tests/bench/README.md defines the figures.
//
//   fibers_bench switch|yield|spawn|suspended [COUNT]

#include <coir/fiber.h>
#include <coir/port/context.h>
#include <coir/runtime.h>

#include <chrono>
#include <cstddef>

#include "measure.h"

namespace {

using namespace coir;

constexpr SpawnOptions kFiber{.name = "bench", .stack = 8_KiB};

// The one place at which both contexts park, as a scheduler has one.
[[gnu::noinline]] void change_sides(void** here, void* const* there) {
  port::coir_switch(here, *there, nullptr);
}

// Two contexts that switch to each other and do nothing else.
void measure_switch(long count) {
  alignas(port::kStackAlignment) static std::byte stack[16 * 1024];
  static void* contexts[2];
  contexts[1] = port::make_context(
      stack + sizeof stack,
      [](void*, void*) {
        for (;;) change_sides(&contexts[1], &contexts[0]);
      },
      nullptr);
  const double ns = bench::ns_per(count * 2, [&] {
    for (long i = 0; i < count; ++i) change_sides(&contexts[0], &contexts[1]);
  });
  bench::print("switch_ns", ns, "ns");
}

void must(const std::expected<void, Error>& outcome) {
  if (outcome) return;
  std::fprintf(stderr, "fibers_bench: %s\n", describe(outcome.error()));
  std::exit(1);
}

void measure_yield(long count) {
  const double ns = bench::ns_per(count, [&] {
    const auto body = [&] {
      for (long i = 0; i < count; ++i) yield();
    };
    Fiber first = spawn(kFiber, body);
    Fiber second = spawn(kFiber, body);
    must(first.join());
    must(second.join());
  });
  bench::print("yield_pair_ns", ns, "ns");
}

void measure_spawn(long count) {
  const double ns = bench::ns_per(count, [&] {
    for (long i = 0; i < count; ++i) must(spawn(kFiber, [] {}).join());
  });
  bench::print("spawn_join_ns", ns, "ns");
}

// park starts fibers that sleep for longer than anybody looks, and returns once each has gone to sleep. It returns how
// many there are: fewer than asked for when there are no more stacks.
long park(long count) {
  long asleep = 0;
  long started = 0;
  while (started < count) {
    Fiber fiber = spawn(kFiber, [&asleep] {
      ++asleep;
      static_cast<void>(sleep(std::chrono::hours(1)));
    });
    if (!fiber.started()) break;
    ++started;
  }
  while (asleep < started) yield();
  return started;
}

void measure_suspended(long count) {
  park(1000);
  const bench::Memory before = bench::Memory::now();
  const long held = park(count);
  bench::print_growth(before, bench::Memory::now(), held);
  bench::print("suspended_max", held, "fibers");
  const RuntimeStats now = stats();
  // Stacks that share a guard with others count as unguarded.
  const long unguarded = static_cast<long>(now.stacks_used - now.stacks_guarded);
  char unit[32];
  std::snprintf(unit, sizeof unit, "by-%s", now.guard_mode);
  bench::print("suspended_guarded", held > unguarded ? held - unguarded : 0L, unit);
  std::fflush(stdout);
  shutdown();
}

}  // namespace

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  const long count = argc > 2 ? std::atol(argv[2]) : 1'000'000;
  if (std::strcmp(what, "switch") == 0) {
    measure_switch(count);
    return 0;
  }
  void (*measure)(long) = nullptr;
  if (std::strcmp(what, "yield") == 0) measure = measure_yield;
  if (std::strcmp(what, "spawn") == 0) measure = measure_spawn;
  if (std::strcmp(what, "suspended") == 0) measure = measure_suspended;
  if (measure == nullptr) {
    std::fputs("usage: fibers_bench switch|yield|spawn|suspended [COUNT]\n", stderr);
    return 2;
  }
  return run(RunOptions{}, [=] { measure(count); });
}
