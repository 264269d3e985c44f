// A block that comes back is the next one's, if it is large enough.

#include <CppUTest/TestHarness.h>
#include <pthread.h>
#include <string.h>

#include "base/spare_block.h"

namespace spare_block_test {

using coir::SpareBlock;

TEST_GROUP(SpareBlocks) {};

TEST(SpareBlocks, what_comes_back_is_lent_again_with_all_of_its_bytes) {
  SpareBlock spare;
  const auto first = spare.take(2000);
  CHECK(first.memory != nullptr);
  CHECK_EQUAL(2000u, first.bytes);
  spare.give(first);
  const auto again = spare.take(1000);
  CHECK_EQUAL(SpareBlock::kKeeps, first.memory == again.memory);
  CHECK_EQUAL(SpareBlock::kKeeps ? 2000u : 1000u, again.bytes);
  // Meanwhile there is another.
  const auto other = spare.take(1000);
  CHECK(other.memory != nullptr && other.memory != again.memory);
  spare.give(other);
  spare.give(again);
}

TEST(SpareBlocks, one_that_is_more_than_twice_as_large_is_not_lent) {
  SpareBlock spare;
  spare.give(spare.take(2000));
  const auto small = spare.take(999);
  CHECK_EQUAL(999u, small.bytes);
  spare.give(small);
}

#if !COIR_SINGLE_WORKER
// Each writes the whole of what it holds, and finds it as it was.
TEST(SpareBlocks, a_block_is_one_threads_at_a_time) {
  static SpareBlock spare;
  constexpr auto kRound = [](void* mark) -> void* {
    for (int i = 0; i < 2000; ++i) {
      const auto block = spare.take(600);
      memset(block.memory, *static_cast<char*>(mark), block.bytes);
      for (std::size_t at = 0; at < block.bytes; ++at) {
        if (static_cast<char*>(block.memory)[at] != *static_cast<char*>(mark)) return mark;
      }
      spare.give(block);
    }
    return nullptr;
  };
  char marks[] = {'a', 'b'};
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], nullptr, +kRound, &marks[i]);
  for (pthread_t each : threads) {
    void* failed = nullptr;
    pthread_join(each, &failed);
    POINTERS_EQUAL(nullptr, failed);
  }
}
#endif

TEST(SpareBlocks, one_that_is_too_small_makes_way_and_a_large_one_is_not_kept) {
  SpareBlock spare;
  spare.give(spare.take(100));
  const auto larger = spare.take(3000);
  CHECK_EQUAL(3000u, larger.bytes);
  spare.give(larger);
  spare.give(spare.take(SpareBlock::kMost + 1));
  const auto kept = spare.take(SpareBlock::kMost);
  CHECK_EQUAL(SpareBlock::kMost, kept.bytes);
  spare.give(kept);
}

}  // namespace spare_block_test
