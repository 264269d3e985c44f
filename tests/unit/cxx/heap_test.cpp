#include <coir/heap.h>

#include <CppUTest/TestHarness.h>
#include <coir/pressure.h>
#include <coir/program.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>

#include <new>
#include <utility>

#include "tests/support/child.h"
#include "tests/support/random.h"
#include "tests/unit/cxx/heap.h"

namespace heap_test {

using coir::test::entered;
using coir::test::Limited;
using std::align_val_t;
using std::nothrow;

namespace {

constexpr std::size_t kOverhead = 16;

// Each form of operator new with the form of operator delete that the compiler pairs it with.
struct Form {
  const char* name;
  void* (*allocate)(std::size_t bytes);
  void (*free)(void* block, std::size_t bytes);
  std::size_t alignment = 1;
};
constexpr align_val_t kWide{256};
constexpr Form kForms[] = {
    {"new", [](std::size_t n) { return ::operator new(n); }, [](void* p, std::size_t) { ::operator delete(p); }},
    {"new[]", [](std::size_t n) { return ::operator new[](n); }, [](void* p, std::size_t) { ::operator delete[](p); }},
    {"sized", [](std::size_t n) { return ::operator new(n); }, [](void* p, std::size_t n) { ::operator delete(p, n); }},
    {"sized []", [](std::size_t n) { return ::operator new[](n); },
     [](void* p, std::size_t n) { ::operator delete[](p, n); }},
    {"nothrow", [](std::size_t n) { return ::operator new(n, nothrow); },
     [](void* p, std::size_t) { ::operator delete(p, nothrow); }},
    {"nothrow []", [](std::size_t n) { return ::operator new[](n, nothrow); },
     [](void* p, std::size_t) { ::operator delete[](p, nothrow); }},
    {"aligned", [](std::size_t n) { return ::operator new(n, kWide); },
     [](void* p, std::size_t) { ::operator delete(p, kWide); }, 256},
    {"aligned []", [](std::size_t n) { return ::operator new[](n, kWide); },
     [](void* p, std::size_t) { ::operator delete[](p, kWide); }, 256},
    {"aligned, sized", [](std::size_t n) { return ::operator new(n, kWide); },
     [](void* p, std::size_t n) { ::operator delete(p, n, kWide); }, 256},
    {"aligned [], sized", [](std::size_t n) { return ::operator new[](n, kWide); },
     [](void* p, std::size_t n) { ::operator delete[](p, n, kWide); }, 256},
    {"aligned, nothrow", [](std::size_t n) { return ::operator new(n, kWide, nothrow); },
     [](void* p, std::size_t) { ::operator delete(p, kWide, nothrow); }, 256},
    {"aligned [], nothrow", [](std::size_t n) { return ::operator new[](n, kWide, nothrow); },
     [](void* p, std::size_t) { ::operator delete[](p, kWide, nothrow); }, 256},
};

}  // namespace

TEST_GROUP(Heap) {};

TEST(Heap, each_form_charges_the_block_and_refunds_it) {
  for (const Form& form : kForms) {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{100}, std::size_t{5000}, std::size_t{300'000}}) {
      const std::size_t before = entered();
      void* const block = form.allocate(bytes);
      CHECK_TRUE_TEXT(block != nullptr && reinterpret_cast<uintptr_t>(block) % form.alignment == 0, form.name);
      memset(block, 0xff, bytes);
      const std::size_t charged = entered() - before;
      CHECK_TRUE_TEXT(charged >= bytes + kOverhead && charged <= bytes + kOverhead + form.alignment + 32, form.name);
      form.free(block, bytes);
      LONGS_EQUAL_TEXT(before, entered(), form.name);
    }
  }
}

TEST(Heap, a_block_of_no_bytes_is_a_block_and_deleting_null_is_nothing) {
  const std::size_t before = entered();
  for (const Form& form : kForms) {
    void* const one = form.allocate(0);
    void* const other = form.allocate(0);
    CHECK_TRUE_TEXT(one != nullptr && other != nullptr && one != other, form.name);
    form.free(one, 0);
    form.free(other, 0);
    form.free(nullptr, 0);
  }
  LONGS_EQUAL(before, entered());
}

TEST(Heap, the_account_never_shows_less_than_is_allocated_and_at_most_8_KB_more) {
  constexpr int kBlocks = 64;
  struct Block {
    void* memory = nullptr;
    std::size_t bytes = 0;
  } blocks[kBlocks];
  coir::test::Random random(7);
  const std::size_t before = entered();
  std::size_t live = 0;
  bool less = false, more = false;
  for (int i = 0; i < 20'000; ++i) {
    Block& block = blocks[random.below(kBlocks)];
    if (block.memory != nullptr) {
      ::operator delete(block.memory);
      live -= block.bytes + kOverhead;
      block.memory = nullptr;
    } else {
      block.bytes = random.below(10) == 0 ? random.below(20'000) + 1 : random.below(200) + 1;
      block.memory = ::operator new(block.bytes);
      live += block.bytes + kOverhead;
    }
    const std::size_t shown = coir::account::heap.used() - before;
    less = less || shown < live;
    more = more || shown > live + 8192 + kBlocks * 32;  // where the C library rounds sizes up
  }
  for (Block& block : blocks) ::operator delete(block.memory);
  CHECK_FALSE(less);
  CHECK_FALSE(more);
  LONGS_EQUAL(before, entered());
}

TEST(Heap, beyond_the_ceiling_nothrow_is_null_and_charges_nothing) {
  const std::size_t before = entered();
  {
    Limited limited(10'000);
    CHECK_TRUE(::operator new(10'000, nothrow) == nullptr);
    void* const fits = ::operator new(9'000, nothrow);
    CHECK_TRUE(fits != nullptr);
    CHECK_TRUE(::operator new(1'000, nothrow) == nullptr);
    ::operator delete(fits);
    CHECK_TRUE(::operator new(SIZE_MAX - 8, nothrow) == nullptr);
    CHECK_TRUE(::operator new(SIZE_MAX / 2, nothrow) == nullptr);
    CHECK_TRUE(::operator new(SIZE_MAX - 8, kWide, nothrow) == nullptr);
  }
  LONGS_EQUAL(before, entered());
}

TEST(Heap, room_is_made_before_a_block_is_refused) {
  static void* s_cached = nullptr;
  s_cached = ::operator new(50'000);
  coir::Relief relief(
      coir::Pressure::caches,
      [](void*, std::size_t) noexcept -> std::size_t {
        if (s_cached == nullptr) return 0;
        ::operator delete(std::exchange(s_cached, nullptr));
        coir::enter_heap_charges();
        return 50'000;
      },
      nullptr);
  coir::Pressure::add(relief);
  Limited limited(20'000);
  void* const block = ::operator new(40'000, nothrow);
  coir::Pressure::remove(relief);
  CHECK_TRUE(block != nullptr && s_cached == nullptr);
  ::operator delete(block);
}

TEST(Heap, beyond_the_ceiling_new_ends_the_process_with_a_line_that_names_the_size) {
  const coir::test::ChildEnd end = coir::test::in_child([] {
    Limited limited(100'000);
    ::operator delete(::operator new(123'456));
    return 0;
  });
  LONGS_EQUAL(SIGABRT, end.signal);
  LONGS_EQUAL(1, end.lines());
  CHECK_TRUE(end.wrote("coir: no memory: 123456 bytes for operator new; heap "));
}

TEST(Heap, beyond_the_total_ceiling_too) {
  const coir::test::ChildEnd end = coir::test::in_child([] {
    coir::Ledger::total().set_ceiling(coir::Ledger::total().used() + 100'000);
    ::operator delete(::operator new(123'456));
    return 0;
  });
  LONGS_EQUAL(SIGABRT, end.signal);
  CHECK_TRUE(end.wrote("coir: no memory: 123456 bytes for operator new"));
}

TEST(Heap, the_line_names_the_fiber) {
  if (!coir::kFibers) return;
  const coir::test::ChildEnd end = coir::test::in_child([] {
    coir::account::heap.set_ceiling(entered() + 100'000);
    return coir::run_program([] { ::operator delete(::operator new(123'456)); });
  });
  LONGS_EQUAL(SIGABRT, end.signal);
  CHECK_TRUE(end.wrote("; fiber ") && end.wrote("\"main\", spawned at "));
}

}  // namespace heap_test
