// coir/mcp/client.h: one call over several servers, of which some are dead or slow.

#include <CppUTest/TestHarness.h>
#include <coir/detail/accounts.h>
#include <coir/fiber.h>
#include <coir/mcp/client.h>
#include <coir/port/memory.h>
#include <coir/program.h>
#include <coir/runtime.h>

#include <optional>

#include "base/buffer_pool.h"
#include "tests/support/until.h"
#include "tests/unit/mcp/client/scripted_mcp.h"

namespace mcp_fan_out_test {

using namespace std::chrono_literals;
using namespace coir::mcp;
using namespace coir::test;
using coir::Deadline;
using coir::ErrorCode;

namespace {

constexpr std::size_t kServers = 8;
std::atomic<unsigned> g_hanging = 0;  // calls that servers have heard and do not answer

// serve answers by its number; the tool "hang" never, "fail" by a failure, "die" by hanging up.
ScriptedServer::Script serve(std::atomic<unsigned>& gone) {
  return mcp_script([&gone](McpPeer& server) {
    if (server.is("server/discover")) return server.result(kModern);
    if (server.says("\"die\"")) return false;
    if (server.says("\"fail\"")) return server.result(R"("isError":true,"content":[])");
    if (server.says("\"hang\"")) {
      ++g_hanging;
      server.peer().until_gone();
      ++gone;
      return false;
    }
    return server.result(R"("content":[])");
  });
}

}  // namespace

TEST_GROUP_BASE(McpFanOut, Expecting) {
  // with runs the body with eight servers, and a branch to each that calls "quick".
  template <class Body>
  void with(Body body) {
    for (const unsigned workers : {1u, 2u}) {
      const auto ended = coir::run_until_idle({.workers = workers}, [&] {
        std::atomic<unsigned> gone = 0;
        std::optional<ScriptedServer> servers[kServers];
        std::optional<McpClient> clients[kServers];
        const std::unique_ptr<Branch[]> branches(new Branch[kServers]);
        for (std::size_t i = 0; i < kServers; ++i) {
          servers[i].emplace(serve(gone));
          auto client = McpClient::create({.url = servers[i]->url("/mcp")});
          expect(client.has_value());
          if (!client) return;
          clients[i].emplace(std::move(*client));
          branches[i].client = &*clients[i];
          branches[i].tool = "quick";
          branches[i].within = 60s;
        }
        body(std::span(branches.get(), kServers), gone);
      });
      check();
      CHECK_TRUE(ended.has_value());
      CHECK_EQUAL(0u, coir::account::mcp.used());
    }
  }
};

TEST(McpFanOut, a_server_that_hangs_costs_its_own_part_alone) {
  with([&](std::span<Branch> branches, std::atomic<unsigned>& gone) {
    g_hanging = 0;
    branches[3].tool = "hang";
    branches[3].within = 300ms;
    branches[5].tool = "die";
    struct Came {
      Branch* order[kServers];
      std::size_t count = 0;
    } came;
    const std::int64_t begun = coir::monotonic_ns();
    const auto answered = fan_out(branches, {.came = [&own = came](Branch& branch) {
                                    if (own.count < kServers) own.order[own.count++] = &branch;
                                  }});
    expect(answered && *answered == kServers - 2);
    for (std::size_t i = 0; i < kServers; ++i) expect(branches[i].outcome.has_value() == (i != 3 && i != 5));
    expect(branches[3].outcome.error() == ErrorCode::timed_out && branches[3].took >= 300ms);
    // Each came as it ended: the slow one last, when the whole was over, unless this machine is slower still.
    bool others_first = true;
    for (std::size_t i = 0; i < kServers; ++i) others_first &= i == 3 || branches[i].took < 300ms;
    expect(came.count == kServers && (!others_first || came.order[kServers - 1] == &branches[3]));
    expect(coir::monotonic_ns() - begun < 20'000'000'000);
    // On a slow machine its time is over before the server has heard it.
    until([&] { return gone == g_hanging; });
  });
}

TEST(McpFanOut, branches_that_wait_hold_neither_fiber_nor_buffer) {
  with([&](std::span<Branch> branches, std::atomic<unsigned>& gone) {
    const auto borrowed = [] { return coir::account::buffers.used() - coir::Buffer::spare_bytes(); };
    expect(fan_out(branches) == kServers);
    for (Branch& each : branches) each.tool = "hang";
    const std::uint64_t fibers = coir::stats().fibers_alive;  // the last may be about to end
    g_hanging = 0;
    auto whole = coir::spawn([&] {
      const auto answered = fan_out(branches);
      expect(!answered && answered.error() == ErrorCode::cancelled);
    });
    until([&] { return g_hanging == kServers && coir::stats().fibers_alive <= fibers + 1 && borrowed() == 0; });
    expect(whole.cancel().has_value() && whole.join().has_value());
    for (Branch& each : branches) expect(!each.outcome && each.outcome.error() == ErrorCode::cancelled);
    until([&] { return gone == kServers; });
  });
}

#if !COIR_ASAN && !COIR_TSAN && !defined(COIR_PAINT)
// go_deep touches two pages of the caller's stack.
[[gnu::noinline]] void go_deep() {
  volatile char touched[8192];
  for (std::size_t i = 0; i < sizeof touched; i += 512) touched[i] = 1;
}

TEST(McpFanOut, a_call_that_waits_holds_one_page_of_stack) {
  with([&](std::span<Branch> branches, std::atomic<unsigned>&) {
    for (Branch& each : branches) each.tool = "hang";
    g_hanging = 0;
    std::atomic<char*> page = nullptr;
    auto whole = coir::spawn({.name = "whole", .stack = 16 * 1024}, [&] {
      go_deep();
      const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
      page = reinterpret_cast<char*>(here & ~std::uintptr_t{coir::port::kPageBytes - 1});
      expect(!fan_out(branches));
    });
    expect(until_parked(whole));
    until([&] { return g_hanging == kServers; });
    constexpr std::size_t kBelow = 3 * coir::port::kPageBytes;
    until([&] { return coir::port::resident_bytes(page - kBelow, kBelow) == 0; });
    expect(coir::port::resident_bytes(page, coir::port::kPageBytes) == coir::port::kPageBytes);
    expect(whole.cancel().has_value() && whole.join().has_value());
  });
}
#endif

// The client gives its server less time to answer than the branch has.
TEST(McpFanOut, a_branch_that_waits_ends_when_its_client_s_time_for_an_answer_is_over) {
  with([&](std::span<Branch> branches, std::atomic<unsigned>&) {
    std::atomic<unsigned> gone = 0;
    g_hanging = 0;
    ScriptedServer server(serve(gone));
    auto client = McpClient::create({.url = server.url("/mcp"), .silence = 300ms});
    expect(client.has_value());
    if (!client) return;
    branches[0].client = &*client;
    branches[0].tool = "hang";
    const auto answered = fan_out(branches);
    expect(answered && *answered == kServers - 1);
    expect(!branches[0].outcome && branches[0].outcome.error() == ErrorCode::timed_out);
    expect(branches[0].took >= 300ms && branches[0].took < 30s);
    until([&] { return gone == g_hanging; });
  });
}

TEST(McpFanOut, one_deadline_ends_all_that_have_not_answered) {
  with([&](std::span<Branch> branches, std::atomic<unsigned>&) {
    for (std::size_t i = 4; i < kServers; ++i) branches[i].tool = "hang";
    // The quick ones have their answers before the common deadline, or the test's machine is very slow.
    const auto answered = fan_out(branches, {.deadline = Deadline::after(2s)});
    expect(answered && *answered == 4);
    for (std::size_t i = 4; i < kServers; ++i) {
      expect(!branches[i].outcome && branches[i].outcome.error() == ErrorCode::timed_out);
    }
  });
}

TEST(McpFanOut, a_race_ends_with_the_first_that_has_not_failed) {
  with([&](std::span<Branch> branches, std::atomic<unsigned>& gone) {
    for (std::size_t i = 0; i < kServers; ++i) branches[i].tool = i == 0 ? "fail" : i == 1 ? "die" : "hang";
    branches[7].tool = "quick";
    const auto answered = fan_out(branches, {.spread = Spread::race});
    expect(answered && *answered >= 1 && branches[7].outcome.has_value());
    for (std::size_t i = 2; i < 7; ++i) {
      expect(!branches[i].outcome && branches[i].outcome.error() == ErrorCode::cancelled);
    }
    static_cast<void>(gone);
  });
}

TEST(McpFanOut, a_limit_is_kept_and_a_cancelled_caller_ends_all) {
  with([&](std::span<Branch> branches, std::atomic<unsigned>&) {
    expect(fan_out(branches, {.limit = 2}) == kServers);
    for (Branch& each : branches) each.tool = "hang";
    auto whole = coir::spawn([&] {
      const auto answered = fan_out(branches);
      expect(!answered && answered.error() == ErrorCode::cancelled);
    });
    expect(until_parked(whole));
    expect(whole.cancel().has_value() && whole.join().has_value());
    for (Branch& each : branches) expect(!each.outcome && each.outcome.error() == ErrorCode::cancelled);
  });
}

}  // namespace mcp_fan_out_test
