// A machine so busy that time passes between any two looks at the clock.

#include <time.h>

#include "mcp_stage.h"

namespace mcp_late_machine_test {

std::atomic<std::int64_t> passed_ns = 0;
std::atomic<bool> late = false;

}  // namespace mcp_late_machine_test

extern "C" int __real_clock_gettime(clockid_t clock, timespec* into);
extern "C" int __wrap_clock_gettime(clockid_t clock, timespec* into) {
  using namespace mcp_late_machine_test;
  const int result = __real_clock_gettime(clock, into);
  if (clock != CLOCK_MONOTONIC) return result;
  constexpr std::int64_t kSecond = 1'000'000'000;
  if (late) passed_ns += 2'000'000;
  const std::int64_t now = into->tv_sec * kSecond + into->tv_nsec + passed_ns;
  into->tv_sec = static_cast<time_t>(now / kSecond);
  into->tv_nsec = static_cast<long>(now % kSecond);
  return result;
}

namespace mcp_late_machine_test {

using namespace coir;
using namespace coir::test;

TEST_GROUP_BASE(McpLateMachine, McpServer) {};

TEST(McpLateMachine, comments_go_on) {
  serving([](mcp::McpServerOptions& options) { options.keep_alive = 1ms; },
          [&](Stage& stage, http::Server&) {
            McpPeer peer(stage.address);
            peer.say(modern("subscriptions/listen", R"(,"notifications":{})"));
            late = true;
            expect(peer.hears("\n\n:\n\n:\n\n:\n\n:\n\n"));
            late = false;
          });
}

}  // namespace mcp_late_machine_test
