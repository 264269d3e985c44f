// Want of memory or descriptors at any one point of an MCP client's life: the n-th charge is refused, or the n-th call to
// the kernel of a kind fails, for n = 1, 2, 3 ... until a request meets none. Each request ends with its answer or with an
// error, the next succeeds, and nothing is left over.

#include <CppUTest/TestHarness.h>
#include <coir/detail/accounts.h>
#include <coir/program.h>
#include <errno.h>

#include "tests/support/faults.h"
#include "tests/support/pipe.h"
#include "tests/support/until.h"
#include "tests/unit/mcp/client/scripted_mcp.h"

namespace mcp_client_faults_test {

using namespace std::chrono_literals;
using namespace coir::mcp;
using namespace coir::test;
using coir::Deadline;

namespace {

struct Kind {
  Call call;
  int error;
};
constexpr Kind kKinds[] = {{Call::charge, 0},          {Call::epoll_ctl, ENOMEM}, {Call::mmap, ENOMEM},
                           {Call::recv, ECONNRESET},   {Call::recv, ENOMEM},      {Call::send, EPIPE},
                           {Call::sendmsg, ENOMEM},    {Call::socket, EMFILE},    {Call::connect, ENETUNREACH},
                           {Call::setsockopt, ENOMEM}, {Call::close, EINTR}};

// modern answers by one text, by events with progress before, or by a question; legacy by a session of its own.
ScriptedServer::Script serve(bool legacy) {
  return [legacy](Peer& peer) {
    spare_this_thread();
    McpPeer server(peer);
    while (server.hear()) {
      bool goes_on = true;
      if (server.is("server/discover")) {
        goes_on = legacy ? server.empty("400 Bad Request") : server.result(kModern);
      } else if (server.is("initialize")) {
        goes_on = server.result(R"("protocolVersion":"2025-11-25","capabilities":{})", "Mcp-Session-Id: s\r\n");
      } else if (server.is("notifications/initialized") || server.is("notifications/cancelled") ||
                 (server.says("\"result\"") && !server.says("\"method\""))) {
        goes_on = server.empty("202 Accepted");
      } else if (server.is("tools/list")) {
        goes_on = server.says("cursor") ? server.result(R"("tools":[{"name":"b","inputSchema":{}}])")
                                        : server.result(R"("tools":[{"name":"a","inputSchema":{}}],"nextCursor":"2")");
      } else if (server.says("\"events\"")) {
        server.begin_events();
        server.event(R"({"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}})");
        if (legacy) server.event(R"({"jsonrpc":"2.0","id":"q","method":"ping"})");
        goes_on = server.result_event(R"("content":["whole"])") && server.end_events();
      } else if (server.says("\"asks\"") && !legacy && !server.says("inputResponses")) {
        goes_on = server.result(R"("resultType":"input_required","inputRequests":{"k":)"
                                R"({"method":"elicitation/create","params":{}}})");
      } else {
        goes_on = server.result(R"("content":["whole"])");
      }
      if (!goes_on) return;
    }
  };
}

enum class Heard { whole, error, wrong };

Heard ask(McpClient& client, std::string_view what) {
  const CallOptions options{.deadline = Deadline::after(60s), .told = [](const Notification&) {}};
  if (what == "list") {
    unsigned count = 0;
    const auto listed = client.list(
        Listed::tools,
        [&](coir::JsonView, std::string_view) noexcept {
          ++count;
          return true;
        },
        options);
    if (!listed) return Heard::error;
    return count == 2 && listed->count == 2 ? Heard::whole : Heard::wrong;
  }
  if (what == "fan") {
    Branch branches[] = {{.client = &client, .tool = "json", .within = 60s},
                         {.client = &client, .tool = "json", .within = 60s}};
    const auto answered = fan_out(branches);
    for (const Branch& each : branches) {
      if (!each.outcome) return Heard::error;
      const auto text = each.outcome->result()["content"][0].text();
      if (!text || *text != "whole") return Heard::wrong;
    }
    return answered == 2 ? Heard::whole : Heard::wrong;
  }
  const auto answer = client.call(what, R"({"x":1})", options);
  if (!answer) return Heard::error;
  const auto text = answer->result()["content"][0].text();
  return text && *text == "whole" ? Heard::whole : Heard::wrong;
}

bool decline(const Question&, coir::JsonWriter&) noexcept {
  return false;
}

}  // namespace

TEST_GROUP_BASE(McpClientFaults,
                Expecting) {  // try_every lets each call of each kind fail once, from the first request of a client on.
  void try_every(bool legacy) {
    const ScriptedServer server(serve(legacy));
    const std::string_view url = server.url("/mcp");
    const McpClientOptions options{.url = url, .elicitation = true, .asked = decline};
    for (const char* const what : {"json", "events", "asks", "list", "fan"}) {
      // The first request leaves things for good: threads, registered descriptors, spare buffers.
      {
        auto client = McpClient::create(options);
        expect(client && ask(*client, what) == Heard::whole);
      }
      const std::size_t http = coir::account::http.used();
      const int descriptors = count_fds();
      for (const Kind& kind : kKinds) {
        for (unsigned nth = 1;; ++nth) {
          Heard heard = Heard::error;
          unsigned failed = 0;
          inject({.call = kind.call, .error = kind.error, .nth = nth});
          if (auto client = McpClient::create(options)) {
            heard = ask(*client, what);
            failed = withdraw();
            expect(ask(*client, what) == Heard::whole);
          } else {
            failed = withdraw();
          }
          expect(heard == Heard::whole || (heard == Heard::error && failed != 0));
          expect(coir::account::http.used() == http && coir::account::mcp.used() == 0);
          until([&] { return count_fds() <= descriptors; });
          if (failed == 0 || wrong() != 0) break;
          expect(nth < 300);
        }
      }
    }
  }
};

TEST(McpClientFaults, fail_one_request_of_a_modern_server_and_leave_nothing) {
  const auto ran = coir::run_until_idle({.workers = 1}, [&] { try_every(false); });
  CHECK_TRUE(ran.has_value());
  check();
}

TEST(McpClientFaults, fail_one_request_of_a_legacy_server_and_leave_nothing) {
  const auto ran = coir::run_until_idle({.workers = 1}, [&] { try_every(true); });
  CHECK_TRUE(ran.has_value());
  check();
}

}  // namespace mcp_client_faults_test
