#include <CppUTest/TestHarness.h>
#include <coir/port/context.h>

#include <cfenv>
#include <cstdint>
#include <cstring>

namespace context_test {

using coir::port::coir_call_on;
using coir::port::coir_context_arrive;
using coir::port::coir_switch;
using coir::port::make_context;
using coir::port::ParkedFrame;
using coir::port::view_parked;

namespace {

constexpr std::size_t kStackBytes = 32 * 1024;

// Peers is a test's own context and the one it made; each finds the other's stack pointer here.
struct Peers {
  void* test = nullptr;
  void* other = nullptr;

  void* to_other(void* message) { return coir_switch(&test, other, message); }
  void* to_test(void* message) { return coir_switch(&other, test, message); }
};

void* as_message(std::uintptr_t value) {
  return reinterpret_cast<void*>(value);
}
std::uintptr_t as_number(void* message) {
  return reinterpret_cast<std::uintptr_t>(message);
}

// The caller's frame address may be the stack's top itself; the byte below it is on the stack.
[[gnu::always_inline]] inline void* on_this_stack() {
  return static_cast<char*>(__builtin_frame_address(0)) - 1;
}

}  // namespace

TEST_GROUP(Context) {
  alignas(16) char stack[kStackBytes];
  alignas(16) char second_stack[kStackBytes];
  Peers peers;

  char* top() { return stack + sizeof(stack); }
  static bool within(const char (&stack)[kStackBytes], const void* address) {
    return address >= stack && address < stack + kStackBytes;
  }
};

TEST(Context, messages_pass_both_ways) {
  auto const increment = [](void* message, void* argument) {
    auto& peers = *static_cast<Peers*>(argument);
    for (;;) message = peers.to_test(as_message(as_number(message) + 1));
  };
  peers.other = make_context(top(), increment, &peers);
  for (std::uintptr_t i = 0; i < 100; i += 7) LONGS_EQUAL(i + 1, as_number(peers.to_other(as_message(i))));
}

TEST(Context, a_million_switches_lose_none) {
  auto const count = [](void*, void* argument) {
    auto& peers = *static_cast<Peers*>(argument);
    for (std::uintptr_t switches = 1;; ++switches) peers.to_test(as_message(switches));
  };
  peers.other = make_context(top(), count, &peers);
  std::uintptr_t counted = 0;
  for (int i = 0; i < 500'000; ++i) counted = as_number(peers.to_other(nullptr));
  LONGS_EQUAL(500'000, counted);
}

TEST(Context, the_stack_is_aligned_at_entry_wherever_the_top_lies) {
  auto const report = [](void*, void* argument) {
    // The compiler aligns this by what the ABI says of the stack pointer at entry.
    alignas(16) char aligned[16];
    std::uintptr_t address = reinterpret_cast<std::uintptr_t>(aligned);
    asm volatile("" : "+r"(address) : : "memory");
    static_cast<Peers*>(argument)->to_test(as_message(address % 16));
  };
  // Each runs below the ones before it: what these left on their stacks is theirs.
  for (std::size_t offset = 0; offset < 33; ++offset) {
    peers.other = make_context(top() - 769 * offset, report, &peers);
    LONGS_EQUAL(0, as_number(peers.to_other(nullptr)));
  }
}

TEST(Context, making_one_writes_only_its_frame_below_the_top) {
  for (std::size_t offset = 0; offset < 16; ++offset) {
    std::memset(stack, 0x5a, sizeof(stack));
    char* const given = top() - 64 - offset;
    char* const made = static_cast<char*>(make_context(given, [](void*, void*) {}, nullptr));
    CHECK_TRUE(made + sizeof(ParkedFrame) <= given);
    CHECK_TRUE(made + sizeof(ParkedFrame) > given - 16);
    for (char* p = stack; p < top(); ++p) {
      if (p == made) p += sizeof(ParkedFrame);
      LONGS_EQUAL(0x5a, *p);
    }
  }
}

TEST(Context, a_parked_one_tells_where_it_goes_on) {
  peers.other =
      make_context(top(), [](void*, void* argument) { static_cast<Peers*>(argument)->to_test(nullptr); }, &peers);

  auto const fresh = view_parked(peers.other);
  CHECK_TRUE(fresh.pc == (reinterpret_cast<std::uintptr_t>(&coir_context_arrive) & coir::port::kPcBits));
  LONGS_EQUAL(0, fresh.frame_pointer);
  POINTERS_EQUAL(top(), reinterpret_cast<void*>(fresh.stack_pointer));

  peers.to_other(nullptr);
  auto const parked = view_parked(peers.other);
  CHECK_TRUE(parked.pc != fresh.pc);
  CHECK_TRUE(parked.stack_pointer <= fresh.stack_pointer);
  POINTERS_EQUAL(static_cast<char*>(peers.other) + sizeof(ParkedFrame), reinterpret_cast<void*>(parked.stack_pointer));
}

#ifdef FE_UPWARD
TEST(Context, the_rounding_mode_stays_with_its_context) {
  auto const round_up = [](void*, void* argument) {
    auto& peers = *static_cast<Peers*>(argument);
    peers.to_test(as_message(static_cast<std::uintptr_t>(std::fegetround())));
    std::fesetround(FE_UPWARD);
    peers.to_test(nullptr);
    peers.to_test(as_message(static_cast<std::uintptr_t>(std::fegetround())));
  };
  std::fesetround(FE_DOWNWARD);
  peers.other = make_context(top(), round_up, &peers);
  auto const at_first = as_number(peers.to_other(nullptr));
  peers.to_other(nullptr);
  int const here = std::fegetround();
  auto const there = as_number(peers.to_other(nullptr));
  std::fesetround(FE_TONEAREST);

  LONGS_EQUAL(FE_TONEAREST, at_first);
  LONGS_EQUAL(FE_DOWNWARD, here);
  LONGS_EQUAL(FE_UPWARD, there);
}
#endif

TEST(Context, call_on_runs_on_the_other_stack_and_returns_the_value) {
  auto const where = [](void* argument) {
    *static_cast<bool*>(argument) = true;
    return on_this_stack();
  };
  bool called = false;
  void* const address = coir_call_on(top(), where, &called);
  CHECK_TRUE(called);
  CHECK_TRUE(within(stack, address));
}

TEST(Context, call_on_aligns_the_stack) {
  auto const report = [](void*) {
    alignas(16) char aligned[16];
    std::uintptr_t address = reinterpret_cast<std::uintptr_t>(aligned);
    asm volatile("" : "+r"(address) : : "memory");
    return as_message(address % 16);
  };
  for (std::size_t offset = 0; offset < 33; ++offset)
    LONGS_EQUAL(0, as_number(coir_call_on(top() - offset, report, nullptr)));
}

TEST(Context, call_on_nests) {
  struct Nest {
    char* inner_top;
    void* outer;
    void* inner;
  } nest{second_stack + sizeof(second_stack), nullptr, nullptr};
  auto const outer = [](void* argument) {
    auto& nest = *static_cast<Nest*>(argument);
    nest.outer = on_this_stack();
    auto const inner = [](void* argument) {
      static_cast<Nest*>(argument)->inner = on_this_stack();
      return as_message(20);
    };
    return as_message(as_number(coir_call_on(nest.inner_top, inner, argument)) + 22);
  };
  LONGS_EQUAL(42, as_number(coir_call_on(top(), outer, &nest)));
  CHECK_TRUE(within(stack, nest.outer));
  CHECK_TRUE(within(second_stack, nest.inner));
}

TEST(Context, call_on_works_within_a_context) {
  struct Caller {
    Peers peers;
    char* large_top;
  } caller{{}, second_stack + sizeof(second_stack)};
  auto const body = [](void*, void* argument) {
    auto& caller = *static_cast<Caller*>(argument);
    caller.peers.to_test(coir_call_on(caller.large_top, [](void*) { return on_this_stack(); }, nullptr));
  };
  caller.peers.other = make_context(top(), body, &caller);
  CHECK_TRUE(within(second_stack, caller.peers.to_other(nullptr)));
}

TEST(Context, no_shadow_stack_guards_this_process) {
  CHECK_FALSE(coir::port::shadow_stack_active());
}

}  // namespace context_test
