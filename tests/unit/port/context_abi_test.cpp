#include "context_abi.h"

#include <CppUTest/TestHarness.h>

namespace context_abi_test {

TEST_GROUP(ContextAbi) {
  alignas(16) char stack[16 * 1024];
  context_abi::Pair pair;

  void setup() override { context_abi::exchange(pair, stack + sizeof(stack)); }
};

TEST(ContextAbi, switching_away_and_back_keeps_every_callee_saved_register) {
  STRCMP_EQUAL(nullptr, pair.here.changed());
}

TEST(ContextAbi, the_other_context_keeps_every_callee_saved_register_too) {
  STRCMP_EQUAL(nullptr, pair.there.changed());
}

}  // namespace context_abi_test
