// A machine whose clock is behind what has been seen of the time. A time once seen stays seen, so all of it is one test.

#include <CppUTest/TestHarness.h>
#include <coir/json.h>
#include <coir/mcp/access.h>
#include <coir/tls.h>

#include "tests/unit/mcp/access/signed_token.h"

namespace mcp_unset_clock_test {

using namespace coir::mcp;
using namespace coir::test;

TEST_GROUP(McpUnsetClock) {};

TEST(McpUnsetClock, no_signed_token_is_judged_until_the_clock_is_set) {
  const auto keys = SigningKeys::read(kFirstKey, kRules);
  CHECK(keys.has_value());
  coir::time_was_seen(3'000'000'000);
  Principal who;
  CHECK(keys->judge(kGood, who) == Verdict::unavailable);
  CHECK(who.name().empty());
  CHECK(keys->judge("nonsense", who) == Verdict::unavailable);
}

}  // namespace mcp_unset_clock_test
