// Every buffer is charged, and refused if the ledger or the kernel has no memory. A few stay hot, and the others are
// returned at once. When memory is short, the hot ones are returned, too.

#include <CppUTest/TestHarness.h>
#include <coir/config.h>
#include <coir/detail/accounts.h>
#include <coir/ledger.h>
#include <coir/pressure.h>
#include <string.h>

#include <array>
#include <atomic>
#include <utility>

#include "base/buffer_pool.h"
#include "base/spare_mappings.h"
#include "tests/support/thread.h"

namespace buffer_pool_test {

using coir::Account;
using coir::Buffer;
using coir::ErrorCode;
using coir::Ledger;
using coir::Pressure;

namespace {

constexpr std::size_t kSizes[] = {4096, 16'384, 65'536, 262'144, 1024 * 1024};
constinit Account wanted("wanted");

}  // namespace

TEST_GROUP(BufferPool) {  // used is how much is borrowed.
  static std::size_t used() { return coir::account::buffers.used() - Buffer::spare_bytes(); }

  void teardown() override {
    LONGS_EQUAL(0, used());
    coir::account::buffers.set_ceiling(SIZE_MAX);
    Ledger::total().set_ceiling(SIZE_MAX);
    // The spare ones go, so that each test begins without any.
    Ledger::total().set_ceiling(Ledger::total().used());
    static_cast<void>(Pressure::make_room(wanted, coir::account::buffers.used()));
    Ledger::total().set_ceiling(SIZE_MAX);
    LONGS_EQUAL(0, coir::account::buffers.used());
  }
};

TEST(BufferPool, a_buffer_is_the_smallest_that_fits_and_is_charged) {
  for (const std::size_t size : kSizes) {
    for (const std::size_t bytes : {size / 4 + 1, size}) {
      auto buffer = Buffer::take(bytes);
      CHECK_TRUE(buffer.has_value());
      LONGS_EQUAL(size, buffer->size());
      LONGS_EQUAL(size, used());
      memset(buffer->data(), 1, buffer->size());
    }
  }
  LONGS_EQUAL(4096, Buffer::take(0)->size());
  CHECK_TRUE(Buffer::take(Buffer::kMost + 1).error() == ErrorCode::limit);
}

TEST(BufferPool, a_moved_buffer_is_given_back_once) {
  auto buffer = Buffer::take(1);
  Buffer other = std::move(*buffer);
  CHECK_FALSE(static_cast<bool>(*buffer));
  LONGS_EQUAL(0, buffer->size());
  *buffer = std::move(other);
  LONGS_EQUAL(4096, used());
  buffer->give();
  buffer->give();
  LONGS_EQUAL(0, used());
  CHECK_TRUE(buffer->bytes().empty());
}

TEST(BufferPool, a_buffer_that_grows_keeps_what_it_holds) {
  auto buffer = Buffer::take(1);
  memset(buffer->data(), 'a', 4096);
  for (std::size_t at = 1; at < std::size(kSizes); ++at) {
    CHECK_TRUE(buffer->grow(4096).has_value());
    LONGS_EQUAL(kSizes[at], buffer->size());
    LONGS_EQUAL(kSizes[at], used());
    for (std::size_t i = 0; i < 4096; ++i) BYTES_EQUAL('a', buffer->data()[i]);
  }
  CHECK_TRUE(buffer->grow(4096).error() == ErrorCode::limit);
  LONGS_EQUAL(Buffer::kMost, buffer->size());
}

TEST(BufferPool, a_refused_charge_is_no_memory_and_changes_nothing) {
  auto buffer = Buffer::take(1);
  memset(buffer->data(), 'a', 4096);
  coir::account::buffers.set_ceiling(4096);
  CHECK_TRUE(Buffer::take(1).error() == ErrorCode::no_memory);
  CHECK_TRUE(buffer->grow(4096).error() == ErrorCode::no_memory);
  LONGS_EQUAL(4096, buffer->size());
  BYTES_EQUAL('a', buffer->data()[4095]);
}

TEST(BufferPool, one_that_comes_back_serves_the_next) {
  auto first = Buffer::take(1);
  char* const memory = first->data();
  first->give();
  LONGS_EQUAL(4096, Buffer::spare_bytes());
  auto second = Buffer::take(1);
  POINTERS_EQUAL(memory, second->data());
  LONGS_EQUAL(0, Buffer::spare_bytes());
}

TEST(BufferPool, a_few_of_many_stay) {
  {
    std::array<Buffer, 100> many;
    for (Buffer& each : many) {
      each = std::move(*Buffer::take(4096));
      each.data()[0] = 1;
    }
    LONGS_EQUAL(100 * 4096, used());
  }
  LONGS_EQUAL(16 * 4096, Buffer::spare_bytes());
  LONGS_EQUAL(16 * 4096, coir::account::buffers.used());
}

TEST(BufferPool, short_memory_takes_the_spare_ones) {
  {
    const auto one = Buffer::take(1), other = Buffer::take(16'384);
  }
  LONGS_EQUAL(4096 + 16'384, Buffer::spare_bytes());
  Ledger::total().set_ceiling(Ledger::total().used());
  const std::uint64_t trims = Pressure::caches.taken();
  CHECK_TRUE(Pressure::charge(wanted, 4096 + 16'384));
  wanted.refund(4096 + 16'384);
  LONGS_EQUAL(0, Buffer::spare_bytes());
  CHECK_TRUE(Pressure::caches.taken() > trims);
}

TEST(BufferPool, one_size_makes_room_for_another) {
  {
    const auto small = Buffer::take(1);
  }
  coir::account::buffers.set_ceiling(16'384);
  auto large = Buffer::take(16'384);
  CHECK_TRUE(large.has_value());
  LONGS_EQUAL(16'384, coir::account::buffers.used());
}

TEST(BufferPool, threads_share_it) {
  // In a build for one worker the pool is that worker's.
  if constexpr (!coir::kManyWorkers) return;
  std::atomic<unsigned> mixed_up = 0;
  {
    const auto borrow = [&mixed_up] {
      for (unsigned turn = 0; turn < 2000; ++turn) {
        auto buffer = Buffer::take(turn % 20'000);
        char mark[16];
        memset(mark, static_cast<int>(turn), sizeof mark);
        memcpy(buffer->data(), mark, sizeof mark);
        auto other = Buffer::take(1);
        if (memcmp(buffer->data(), mark, sizeof mark) != 0) ++mixed_up;
      }
    };
    const coir::test::Thread first(borrow), second(borrow), third(borrow);
  }
  LONGS_EQUAL(0, mixed_up.load());
}

TEST(BufferPool, kept_buffers_are_kept_for_callers_that_want_spare_ones) {
  static constinit coir::SpareMappings mappings(wanted, 4096, 1, 2);
  void* const one = mappings.take();
  void* const two = mappings.take();
  mappings.give(one);
  mappings.give(two);
  LONGS_EQUAL(2 * 4096, mappings.spare_bytes());
  Ledger::total().set_ceiling(Ledger::total().used());
  CHECK_FALSE(Pressure::make_room(coir::account::buffers, 2 * 4096));
  Ledger::total().set_ceiling(SIZE_MAX);
  LONGS_EQUAL(4096, mappings.spare_bytes());
  void* const kept = mappings.take_spare();
  POINTERS_EQUAL(one, kept);
  POINTERS_EQUAL(nullptr, mappings.take_spare());
  mappings.give(kept);
  wanted.set_ceiling(4096);
  POINTERS_EQUAL(nullptr, mappings.take());
  wanted.set_ceiling(SIZE_MAX);
}

}  // namespace buffer_pool_test
