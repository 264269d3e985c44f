#include <coir/heap.h>

#include <CppUTest/TestHarness.h>
#include <coir/blocking.h>
#include <coir/fiber.h>
#include <coir/isolate.h>
#include <coir/runtime.h>
#include <signal.h>

#include <atomic>
#include <string>
#include <vector>

#include "tests/support/child.h"
#include "tests/support/everywhere.h"
#include "tests/support/random.h"
#include "tests/support/scale.h"
#include "tests/support/thread.h"
#include "tests/unit/cxx/heap.h"

namespace heap_threads_test {

using coir::account::heap;
using coir::test::entered;
using coir::test::Thread;

namespace {

constexpr std::size_t kLarge = 100'000;

// churn allocates and frees in an uneven way, and leaves nothing.
void churn() {
  std::vector<std::string> lines;
  for (int i = 0; i < 500; ++i) {
    lines.emplace_back(static_cast<std::size_t>(i * 37 % 300), 'x');
    if (i % 3 == 0) lines.erase(lines.begin());
  }
}

}  // namespace

TEST_GROUP_BASE(HeapThreads, coir::test::Everywhere) {};

TEST(HeapThreads, a_thread_that_has_ended_leaves_no_charge) {
  const std::size_t before = entered();
  for (int i = 0; i < 3; ++i) {
    {
      Thread thread([] { churn(); });
    }
    LONGS_EQUAL(before, entered());
  }
}

TEST(HeapThreads, memory_that_outlives_its_thread_stays_charged_until_another_frees_it) {
  const std::size_t before = entered();
  void* block = nullptr;
  {
    Thread thread([&] { block = ::operator new(kLarge); });
  }
  CHECK_TRUE(entered() >= before + kLarge);
  ::operator delete(block);
  LONGS_EQUAL(before, entered());
  block = ::operator new(kLarge);
  CHECK_TRUE(entered() >= before + kLarge);
  {
    Thread thread([&] { ::operator delete(block); });
  }
  LONGS_EQUAL(before, entered());
}

TEST(HeapThreads, a_block_may_be_freed_before_its_charge_was_entered) {
  const std::size_t before = entered();
  void* block = nullptr;
  {
    Thread thread([&] { block = ::operator new(kLarge); });
  }
  ::operator delete(block);
  LONGS_EQUAL(before, entered());
}

TEST(HeapThreads, blocks_go_from_thread_to_thread_at_random_and_end_at_zero) {
  constexpr int kSlots = 50, kSteps = coir::test::scaled({20'000, 5'000, 2'000, 5'000});
  const std::size_t before = entered();
  std::atomic<void*> slots[kSlots] = {};
  const auto work = [&](unsigned seed) {
    coir::test::Random random(seed);
    for (int i = 0; i < kSteps; ++i) {
      void* const block = random.below(3) == 0 ? nullptr : ::operator new(random.below(3000));
      ::operator delete(slots[random.below(kSlots)].exchange(block));
    }
  };
  {
    Thread first([&] { work(1); }), second([&] { work(2); }), third([&] { work(3); });
  }
  CHECK_TRUE(entered() > before);
  for (auto& slot : slots) ::operator delete(slot.load());
  LONGS_EQUAL(before, entered());
}

TEST(HeapThreads, where_an_isolates_end_is_awaited_its_charges_are_entered) {
  everywhere([&] {
    const std::size_t before = entered();
    auto isolate = coir::Isolate::spawn([](coir::IsolatePort&) {
      churn();
      return 1;
    });
    expect(isolate && isolate->await<int>().has_value());
    expect(heap.used() == before);
    void* block = nullptr;
    auto other = coir::Isolate::spawn([&block](coir::IsolatePort&) { block = ::operator new(kLarge); });
    expect(other && other->await().has_value());
    expect(heap.used() >= before + kLarge);
    ::operator delete(block);
    expect(entered() == before);
  });
}

TEST(HeapThreads, where_an_isolate_is_dropped_its_charges_are_entered) {
  everywhere([&] {
    const std::size_t before = entered();
    {
      auto isolate = coir::Isolate::spawn([](coir::IsolatePort& port) {
        churn();
        static_cast<void>(port.receive<int>());
      });
      expect(isolate.has_value());
    }
    expect(heap.used() == before);
    // The fiber may go on on another worker: what this one has charged ahead is given back first.
    void* const block = ::operator new(kLarge);
    expect(entered() >= before + kLarge);
    {
      auto isolate = coir::Isolate::spawn([block](coir::IsolatePort& port) {
        static_cast<void>(port.receive<int>());
        ::operator delete(block);
      });
      expect(isolate.has_value());
    }
    expect(heap.used() == before);
  });
}

TEST(HeapThreads, where_a_blocking_call_ends_its_charges_are_entered) {
  everywhere([&] {
    const std::size_t before = entered();
    expect(coir::blocking([] { churn(); }).has_value());
    expect(heap.used() == before);
    expect(coir::blocking_borrowed([](const coir::BlockingStop&) { churn(); }).has_value());
    expect(heap.used() == before);
    {
      auto text = coir::blocking([] { return std::string(kLarge, 'x'); });
      expect(text && text->size() == kLarge && heap.used() >= before + kLarge);
    }
    expect(entered() == before);
  });
}

TEST(HeapThreads, where_a_run_ends_its_charges_are_entered) {
  for (const unsigned workers : {1u, 2u}) {
    const std::size_t before = entered();
    const auto ended = coir::run_until_idle({.workers = workers, .migrate = workers == 2}, [] {
      for (int i = 0; i < 20; ++i) {
        static_cast<void>(coir::spawn([] {
          std::string text;
          for (int j = 0; j < 20; ++j) {
            text.append(static_cast<std::size_t>(j * 50), 'x');
            coir::yield();
          }
        }));
      }
    });
    CHECK_TRUE(ended.has_value());
    LONGS_EQUAL(before, heap.used());
  }
}

TEST(HeapThreads, an_isolate_beyond_the_ceiling_ends_the_process_with_a_line) {
  const coir::test::ChildEnd end = coir::test::in_child([] {
    heap.set_ceiling(entered() + kLarge);
    auto isolate = coir::Isolate::spawn(
        [](coir::IsolatePort& port) {
          void* const block = ::operator new(2 * kLarge);
          static_cast<void>(port.send(1));
          static_cast<void>(port.receive<int>());
          ::operator delete(block);
        },
        {.name = "greedy"});
    static_cast<void>(isolate->receive<int>());
    coir::enter_heap_charges();
    return 1;
  });
  LONGS_EQUAL(SIGABRT, end.signal);
  CHECK_TRUE(end.wrote("coir: no memory: ") && end.wrote("bytes"));
  if (coir::kManyWorkers) CHECK_TRUE(end.wrote("\"greedy\""));
}

}  // namespace heap_threads_test
