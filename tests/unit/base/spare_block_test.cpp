// A block that comes back is the next one's, if it is large enough.

#include <CppUTest/TestHarness.h>

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
  POINTERS_EQUAL(first.memory, again.memory);
  CHECK_EQUAL(2000u, again.bytes);
  // Meanwhile there is another.
  const auto other = spare.take(1000);
  CHECK(other.memory != nullptr && other.memory != again.memory);
  spare.give(other);
  spare.give(again);
}

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
