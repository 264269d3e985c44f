// coir/mcp/client.h against servers of the revisions before 2026-07-28, and against servers that change.

#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>
#include <coir/nursery.h>

#include "tests/support/until.h"
#include "tests/unit/mcp/client/scripted_mcp.h"

namespace mcp_client_legacy_test {

using namespace std::chrono_literals;
using namespace coir::mcp;
using namespace coir::test;
using coir::Deadline;
using coir::ErrorCode;

namespace {

CallOptions patience() {
  return {.deadline = Deadline::after(60s)};
}

// Old answers what a legacy server answers beside its tools, with a session of that name. False: it is for the test.
struct Old {
  const char* version = "2025-11-25";
  const char* session = "s1";

  bool answer(McpPeer& server) const {
    if (server.is("server/discover")) {
      return server.json(R"({"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: no session"}})",
                         "400 Bad Request");
    }
    if (server.is("initialize")) {
      char result[256], field[64];
      snprintf(result, sizeof result, R"("protocolVersion":"%s","capabilities":{},"serverInfo":{"name":"old"})",
               version);
      snprintf(field, sizeof field, "Mcp-Session-Id: %s\r\n", session);
      return server.result(result, field);
    }
    if (server.is("notifications/initialized")) return server.empty("202 Accepted");
    return false;
  }
};

}  // namespace

TEST_GROUP_BASE(McpClientLegacy, WithClient) {};

TEST(McpClientLegacy, begins_a_session_by_each_revision) {
  for (const char* const version : {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}) {
    std::atomic<unsigned> wrong = 0;
    const Old old{.version = version};
    const auto script = mcp_script([&](McpPeer& server) {
      const bool tells = std::string_view(version) >= "2025-06-18";
      if (server.is("initialize")) {
        wrong += !server.says(R"("protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"coir")");
        wrong += server.head.find("Mcp-Session-Id") != server.head.npos;
      } else if (!server.is("server/discover")) {
        wrong += !server.has_field("Mcp-Session-Id", "s1");
        wrong += tells ? !server.has_field("MCP-Protocol-Version", version)
                       : server.head.find("MCP-Protocol-Version") != server.head.npos;
      }
      if (old.answer(server)) return true;
      wrong += server.says("_meta") || server.head.find("Mcp-Method") != server.head.npos;
      return server.result(R"("content":[])");
    });
    with(script, {}, [&](coir::mcp::McpClient& client) {
      expect(client.call("one", {}, patience()).has_value());
      expect(client.call("two", {}, patience()).has_value());
      expect(client.counters().sessions.load() == 1 && wrong == 0);
      const auto discovered = client.discover(patience());
      const auto name = discovered ? discovered->result()["serverInfo"]["name"].text() : std::unexpected(coir::Error{});
      expect(name && *name == "old");
      const auto agreed = client.version();
      expect(agreed && era_of(*agreed) == Era::legacy);
    });
  }
}

TEST(McpClientLegacy, takes_batches) {
  const Old old{.version = "2025-03-26"};
  const auto script = mcp_script([&](McpPeer& server) {
    if (old.answer(server)) return true;
    char text[512];
    snprintf(
        text, sizeof text,
        R"([{"jsonrpc":"2.0","method":"notifications/progress","params":{}},{"jsonrpc":"2.0","id":%.*s,"result":{}}])",
        static_cast<int>(server.id().size()), server.id().data());
    if (server.says("\"events\"")) {
      server.begin_events();
      return server.event(text) && server.end_events();
    }
    return server.json(text);
  });
  with(script, {}, [&](coir::mcp::McpClient& client) {
    unsigned told = 0;
    CallOptions options = patience();
    options.told = [&](const Notification&) { ++told; };
    expect(client.call("json", {}, options).has_value() && client.call("events", {}, options).has_value());
    expect(told == 2);
  });
}

TEST(McpClientLegacy, makes_a_lost_session_again_once_for_all_who_ask) {
  std::atomic<unsigned> initialized = 0;
  std::atomic<bool> forgets = false;
  const auto script = mcp_script([&](McpPeer& server) {
    char session[16];
    if (server.is("initialize")) ++initialized;
    snprintf(session, sizeof session, "s%u", initialized.load());
    if (forgets && server.has_field("Mcp-Session-Id", "s1")) return server.empty("404 Not Found");
    if (Old{.session = session}.answer(server)) return true;
    return server.result(R"("content":[])");
  });
  with(script, {}, [&](coir::mcp::McpClient& client) {
    initialized = 0;
    forgets = false;
    expect(client.call("one", {}, patience()).has_value());
    forgets = true;
    coir::Nursery nursery;
    for (int i = 0; i < 8; ++i) {
      nursery.start([&] { expect(client.call("more", {}, patience()).has_value()); });
    }
    expect(nursery.join().has_value());
    expect(initialized == 2 && client.counters().sessions.load() == 2);
  });
}

TEST(McpClientLegacy, follows_a_server_from_one_era_to_the_other_and_back) {
  std::atomic<bool> modern = false;
  const auto script = mcp_script([&](McpPeer& server) {
    if (!modern) {
      const bool known =
          server.is("server/discover") || server.is("initialize") || server.has_field("Mcp-Session-Id", "s1");
      if (!known) return server.empty("400 Bad Request");
      return Old{}.answer(server) || server.result(R"("content":[],"old":true)");
    }
    if (server.is("server/discover")) return server.result(kModern);
    if (!server.has_field("MCP-Protocol-Version", "2026-07-28")) {
      return server.error(-32022, "400 Bad Request", R"({"supported":["2026-07-28"]})");
    }
    return server.result(R"("content":[],"resultType":"complete")");
  });
  with(script, {}, [&](coir::mcp::McpClient& client) {
    for (const bool is_modern : {false, true, false, true}) {
      modern = is_modern;
      const auto answer = client.call("one", {}, patience());
      expect(answer && answer->result().find("old").has_value() != is_modern);
      expect(client.version() == (is_modern ? Version::v2026_07_28 : Version::v2025_11_25));
    }
  });
}

TEST(McpClientLegacy, says_what_it_cannot_speak) {
  const auto script = mcp_script([&](McpPeer& server) {
    if (server.says("2026-07-28")) return server.error(-32022, "400 Bad Request", R"({"supported":["2030-01-01"]})");
    return false;
  });
  with(script, {}, [&](coir::mcp::McpClient& client) {
    const auto answer = client.call("one", {}, patience());
    expect(!answer && answer.error() == ErrorCode::unsupported);
  });
  const auto refuses = mcp_script([&](McpPeer& server) { return server.empty("401 Unauthorized"); });
  with(refuses, {}, [&](coir::mcp::McpClient& client) {
    // A refused client is no reason to try another revision.
    const auto answer = client.call("one", {}, patience());
    expect(!answer && answer.error() == ErrorCode::invalid && client.counters().requests.load() == 1);
  });
}

TEST(McpClientLegacy, resumes_a_stream_behind_the_last_event) {
  std::atomic<unsigned> wrong = 0;
  char id[32] = {};
  const auto script = mcp_script([&](McpPeer& server) {
    if (server.gets("GET ")) {
      wrong += !server.has_field("Accept", "text/event-stream") || !server.has_field("Mcp-Session-Id", "s1");
      server.begin_events();
      if (server.has_field("Last-Event-ID", "e2")) {
        char text[128];
        snprintf(text, sizeof text, R"({"jsonrpc":"2.0","id":%s,"result":{"content":[]}})", id);
        return server.event(text, "id: e4\n") && server.end_events();
      }
      wrong += !server.has_field("Last-Event-ID", "e1");
      server.event(R"({"jsonrpc":"2.0","method":"notifications/progress","params":{}})", "id: e2\n");
      return false;  // breaks
    }
    if (Old{}.answer(server)) return true;
    snprintf(id, sizeof id, "%.*s", static_cast<int>(server.id().size()), server.id().data());
    server.begin_events();
    server.chunk("id: e1\nretry: 1\ndata:\n\n");
    return server.end_events();  // a server may close the stream, and be asked again
  });
  with(script, {}, [&](coir::mcp::McpClient& client) {
    unsigned told = 0;
    CallOptions options = patience();
    options.told = [&](const Notification&) { ++told; };
    expect(client.call("long", {}, options).has_value());
    expect(told == 1 && wrong == 0 && client.counters().resumed.load() == 2);
  });
}

TEST(McpClientLegacy, says_so_when_a_stream_cannot_be_resumed) {
  std::atomic<unsigned> gets = 0;
  const auto script = mcp_script([&](McpPeer& server) {
    if (server.gets("GET ")) {
      ++gets;
      return server.empty("404 Not Found");
    }
    if (Old{}.answer(server)) return true;
    server.begin_events();
    if (server.says("\"with\"")) server.chunk("id: e1\nretry: 1\ndata:\n\n");
    return server.end_events();
  });
  with(script, {}, [&](coir::mcp::McpClient& client) {
    gets = 0;
    auto answer = client.call("without", {}, patience());
    expect(!answer && answer.error() == ErrorCode::truncated && gets == 0);
    answer = client.call("with", {}, patience());
    expect(!answer && answer.error() == ErrorCode::truncated && gets == 1);
  });
}

TEST(McpClientLegacy, a_pause_of_nothing_makes_no_loop) {
  std::atomic<unsigned> gets = 0;
  const auto script = mcp_script([&](McpPeer& server) {
    if (server.gets("GET ")) {
      ++gets;
    } else if (Old{}.answer(server)) {
      return true;
    }
    server.begin_events();
    server.chunk("id: e1\nretry: 0\ndata:\n\n");
    return server.end_events();
  });
  with(script, {}, [&](coir::mcp::McpClient& client) {
    gets = 0;
    // The first pause is what the server wants; behind an attempt that brought nothing there is half a second at least.
    const auto answer = client.call("never", {}, {.deadline = coir::Deadline::after(std::chrono::milliseconds(400))});
    expect(!answer && answer.error() == ErrorCode::timed_out && gets <= 1);
  });
}

TEST(McpClientLegacy, tells_the_server_to_drop_a_request_that_is_cancelled) {
  std::atomic<unsigned> begun = 0, cancelled = 0, wrong = 0;
  std::atomic<unsigned long> asked = 0;
  const auto script = mcp_script([&](McpPeer& server) {
    if (Old{}.answer(server)) return true;
    if (server.is("notifications/cancelled")) {
      char wanted[64];
      snprintf(wanted, sizeof wanted, "\"requestId\":%lu}", asked.load());
      wrong += !server.says(wanted) || server.says("\"id\":");
      ++cancelled;
      return server.empty("202 Accepted");
    }
    asked = strtoul(server.id().data(), nullptr, 10);
    server.begin_events();
    ++begun;
    server.peer().until_gone();
    return false;
  });
  with(script, {}, [&](coir::mcp::McpClient& client) {
    begun = cancelled = 0;
    auto call = coir::spawn([&] {
      const auto answer = client.call("slow", {}, patience());
      expect(!answer && answer.error() == ErrorCode::cancelled);
    });
    until([&] { return begun == 1; });
    expect(call.cancel().has_value());
    expect(call.join().has_value());
    expect(cancelled == 1);
    const auto late = client.call("slow", {}, {.deadline = Deadline::after(20ms)});
    expect(!late && late.error() == ErrorCode::timed_out && cancelled == 2);
    expect(wrong == 0 && client.counters().cancelled.load() == 2);
  });
}

TEST(McpClientLegacy, answers_the_requests_of_a_server) {
  std::atomic<unsigned> right = 0;
  const auto script = mcp_script([&](McpPeer& server) {
    if (Old{}.answer(server)) return true;
    if (server.says("\"result\"") || server.says("\"error\"")) {
      right += server.says(R"({"jsonrpc":"2.0","id":"q\n1","result":{"action":"accept"}})");
      right += server.says(R"({"jsonrpc":"2.0","id":7,"result":{}})");
      right += server.says(R"({"jsonrpc":"2.0","id":8,"error":{"code":-32601)");
      return server.empty("202 Accepted");
    }
    server.begin_events();
    server.event(R"({"jsonrpc":"2.0","id":"q\n1","method":"elicitation/create","params":{"message":"?"}})");
    server.event(R"({"jsonrpc":"2.0","id":7,"method":"ping"})");
    server.event(R"({"jsonrpc":"2.0","id":8,"method":"sampling/createMessage","params":{}})");
    return server.result_event(R"("content":[])") && server.end_events();
  });
  McpClientOptions options{.elicitation = true};
  options.asked = [](const Question& question, coir::JsonWriter& answer) {
    if (question.method != "elicitation/create") return false;
    answer.object().member("action", "accept").end();
    return true;
  };
  with(script, options, [&](coir::mcp::McpClient& client) {
    right = 0;
    expect(client.call("asks", {}, patience()).has_value() && right == 3);
  });
}

TEST(McpClientLegacy, listens_by_a_stream_of_its_own_and_ends_its_session) {
  std::atomic<unsigned> wrong = 0, subscribed = 0, left = 0;
  const auto script = mcp_script([&](McpPeer& server) {
    if (server.gets("DELETE ")) {
      left += server.has_field("Mcp-Session-Id", "s1");
      return server.empty("204 No Content");
    }
    if (server.gets("GET ")) {
      server.begin_events();
      server.event(R"({"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:b"}})");
      return server.end_events();
    }
    if (Old{}.answer(server)) return true;
    if (server.is("resources/subscribe")) {
      subscribed += server.says(R"("params":{"uri":"a:b"})");
      return server.result("");
    }
    ++wrong;
    return false;
  });
  with(script, {}, [&](coir::mcp::McpClient& client) {
    subscribed = left = 0;
    unsigned told = 0;
    const std::string_view uris[] = {"a:b"};
    CallOptions options;
    options.told = [&](const Notification& notification) {
      told += notification.method == "notifications/resources/updated" ? 10 : 1;
    };
    const auto listened = client.listen({.resources = true, .uris = uris}, options);
    expect(!listened && listened.error() == ErrorCode::truncated && told == 11 && subscribed == 1);
    expect(client.leave(Deadline::after(60s)).has_value() && left == 1 && wrong == 0 && !client.version());
  });
  // A server without such a stream says 405.
  const auto none = mcp_script([&](McpPeer& server) {
    return server.gets("GET ") ? server.empty("405 Method Not Allowed") : Old{}.answer(server);
  });
  with(none, {}, [&](coir::mcp::McpClient& client) {
    const auto listened = client.listen({.tools = true}, {.deadline = Deadline::after(60s)});
    expect(!listened && listened.error() == ErrorCode::unsupported);
  });
}

}  // namespace mcp_client_legacy_test
