// coir/mcp/client.h against modern servers (2026-07-28) that do as a test wants.

#include <CppUTest/TestHarness.h>
#include <coir/cancel_scope.h>
#include <coir/fiber.h>

#include "tests/support/until.h"
#include "tests/unit/mcp/client/scripted_mcp.h"

namespace mcp_client_test {

using namespace std::chrono_literals;
using namespace coir::mcp;
using namespace coir::test;
using coir::Deadline;
using coir::ErrorCode;

namespace {

CallOptions patience() {
  return {.deadline = Deadline::after(60s)};
}

}  // namespace

TEST_GROUP_BASE(McpClient, WithClient) {};

TEST(McpClient, calls_a_tool_and_says_in_fields_what_the_body_says) {
  std::atomic<unsigned> wrong = 0;
  const auto script = mcp_script([&](McpPeer& server) {
    if (!server.has_field("MCP-Protocol-Version", "2026-07-28") ||
        !server.has_field("Accept", "application/json, text/event-stream") ||
        !server.says(R"("io.modelcontextprotocol/protocolVersion":"2026-07-28")") ||
        !server.says(R"("io.modelcontextprotocol/clientInfo":{"name":"a test","version":"7"})") ||
        !server.says(R"("io.modelcontextprotocol/clientCapabilities":{})") || !server.gets("POST ")) {
      ++wrong;
    }
    if (server.is("server/discover")) {
      wrong += !server.has_field("Mcp-Method", "server/discover");
      return server.result(kModern);
    }
    wrong += !server.has_field("Mcp-Method", "tools/call") || !server.has_field("Mcp-Name", "add");
    wrong += !server.says(R"("name":"add","arguments":{"a":2,"b":3})");
    return server.result(R"("resultType":"complete","content":[{"type":"text","text":"5"}],"isError":true)");
  });
  with(script, {.name = "a test", .version = "7"}, [&](coir::mcp::McpClient& client) {
    expect(!client.version());
    const auto answer = client.call("add", R"({"a":2,"b":3})", patience());
    expect(answer && answer->is_error());
    if (!answer) return;
    const auto text = answer->result()["content"][0]["text"].text();
    expect(text && *text == "5");
    expect(answer->text().starts_with(R"({"resultType":"complete","content":)"));
    expect(client.version() == Version::v2026_07_28 && wrong == 0);
    expect(client.counters().sessions.load() == 1 && client.counters().requests.load() == 2);
  });
}

TEST(McpClient, encodes_names_that_no_field_can_hold) {
  std::atomic<unsigned> wrong = 0;
  const auto script = mcp_script([&](McpPeer& server) {
    if (server.is("server/discover")) return server.result(kModern);
    wrong += !server.has_field("Mcp-Name", server.is("prompts/get") ? "=?base64?IHBhZGRlZCA=?=" : "=?base64?w6Q=?=");
    return server.result(R"("resultType":"complete")");
  });
  with(script, {}, [&](coir::mcp::McpClient& client) {
    expect(client.read("\xc3\xa4", patience()).has_value());
    expect(client.prompt(" padded ", {}, patience()).has_value());
    expect(wrong == 0);
  });
}

TEST(McpClient, repeats_arguments_in_fields_where_the_schema_wants_it) {
  constexpr std::string_view kSchema =
      R"({"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},)"
      R"("deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}},)"
      R"("none":{"type":"boolean","x-mcp-header":"None"},"text":{"type":"string","x-mcp-header":"Text"}}})";
  std::atomic<unsigned> lists = 0;
  const auto script = mcp_script([&](McpPeer& server) {
    if (server.is("server/discover")) return server.result(kModern);
    if (server.is("tools/list")) {
      ++lists;
      char text[1024];
      snprintf(
          text, sizeof text,
          R"("tools":[{"name":"bad","inputSchema":{"x-mcp-header":"A"}},{"name":"sql","inputSchema":%s}],"ttlMs":5)",
          kSchema.data());
      return server.result(text);
    }
    const bool has = server.has_field("Mcp-Param-Region", "us-west1") && server.has_field("Mcp-Param-N", "-7") &&
                     server.has_field("Mcp-Param-Text", "=?base64?bGluZTEKbGluZTI=?=") &&
                     server.head.find("Mcp-Param-None") == server.head.npos;
    return has ? server.result(R"("content":[])") : server.error(-32020, "400 Bad Request");
  });
  constexpr const char* kArguments = R"({"region":"us-west1","deep":{"n":-7},"none":null,"text":"line1\nline2"})";
  with(script, {}, [&](coir::mcp::McpClient& client) {
    lists = 0;
    // Without the schema the server's refusal has it looked up, once.
    expect(client.call("sql", kArguments, patience()).has_value() && lists == 1);
    CallOptions knowing = patience();
    knowing.input_schema = kSchema;
    expect(client.call("sql", kArguments, knowing).has_value() && lists == 1);
    // A tool whose marks no request can carry is left out of the list.
    unsigned count = 0;
    const auto listed = client.list(
        Listed::tools,
        [&](coir::JsonView, std::string_view) noexcept {
          ++count;
          return true;
        },
        patience());
    expect(listed && listed->count == 1 && count == 1 && listed->fresh == 5ms);
  });
}

TEST(McpClient, follows_the_pages_of_a_list) {
  const auto script = mcp_script([&](McpPeer& server) {
    if (server.is("server/discover")) return server.result(kModern);
    if (server.says(R"("cursor":"2 \"")")) {
      return server.result(R"("resources":[{"uri":"c"}],"ttlMs":10,"cacheScope":"private")");
    }
    return server.result(
        R"("resources":[{"uri":"a"},{"uri":"b"}],"nextCursor":"2 \"","ttlMs":60000,"cacheScope":"public")");
  });
  with(script, {}, [&](coir::mcp::McpClient& client) {
    char uris[8] = {};
    unsigned count = 0;
    const auto listed = client.list(
        Listed::resources,
        [&](coir::JsonView item, std::string_view text) noexcept {
          const auto uri = item["uri"].text();
          if (uri && uri->size() == 1 && count < 7) uris[count++] = uri->front();
          return text.starts_with("{\"uri\"");
        },
        patience());
    expect(listed && listed->count == 3 && std::string_view(uris) == "abc");
    expect(listed && listed->fresh == 10ms && listed->is_private);
  });
}

TEST(McpClient, is_told_of_progress_before_the_answer) {
  const auto script = mcp_script([&](McpPeer& server) {
    if (server.is("server/discover")) return server.result(kModern);
    const bool asked =
        server.says(R"("progressToken":)") && server.says(R"("io.modelcontextprotocol/logLevel":"info")");
    server.begin_events();
    server.chunk(": a comment\r\n\r\n");
    server.event(R"({"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":50,"total":100}})");
    server.event(R"({"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"half"}})");
    server.event("what is no JSON");
    server.event(R"({"jsonrpc":"2.0","id":99999,"result":{}})");
    return server.result_event(asked ? R"("content":[])" : R"("wrong":1)") && server.end_events();
  });
  struct Told {
    int progress = 0, messages = 0, wrong = 0;
  };
  with(script, {}, [&](coir::mcp::McpClient& client) {
    Told told;
    CallOptions options = patience();
    options.log_level = "info";
    options.told = [&own = told](const Notification& notification) {
      if (notification.method == "notifications/progress") {
        const auto value = notification.params["progress"].integer<int>();
        value && *value == 50 ? ++own.progress : ++own.wrong;
        own.wrong += notification.text != R"({"progress":50,"total":100})";
      } else if (notification.method == "notifications/message") {
        ++own.messages;
      }
    };
    for (int i = 0; i < 2; ++i) {
      const auto answer = client.call("slow", {}, options);
      expect(answer && answer->result().find("content"));
    }
    expect(told.progress == 2 && told.messages == 2 && told.wrong == 0);
    expect(client.counters().ignored.load() == 4);
  });
}

TEST(McpClient, tells_an_error_by_its_code_and_message) {
  const auto script = mcp_script([&](McpPeer& server) {
    if (server.is("server/discover")) return server.result(kModern);
    if (server.is("resources/read")) return server.error(-32602, "200 OK", R"({"uri":"x:y"})");
    if (server.is("prompts/get")) return server.error(-32601, "404 Not Found");
    return server.empty("503 Service Unavailable");
  });
  with(script, {}, [&](coir::mcp::McpClient& client) {
    const auto read = client.read("x:y", patience());
    expect(!read && read.error() == ErrorCode::invalid && read.error().code() == -32602);
    expect(!read && read.error().message() == "no" && read.error().data() == R"({"uri":"x:y"})");
    const auto prompt = client.prompt("none", {}, patience());
    expect(!prompt && prompt.error() == ErrorCode::unsupported && prompt.error().code() == -32601);
    const auto call = client.call("none", {}, patience());
    expect(!call && call.error() == ErrorCode::temporary && call.error().code() == 0 && call.error().message().empty());
    expect(client.counters().sessions.load() == 1);
  });
}

TEST(McpClient, answers_what_a_server_asks_and_sends_the_request_again) {
  std::atomic<unsigned> wrong = 0;
  const auto script = mcp_script([&](McpPeer& server) {
    if (server.is("server/discover")) return server.result(kModern);
    wrong += !server.says(R"("io.modelcontextprotocol/clientCapabilities":{"elicitation":{}})");
    if (!server.says("requestState")) {
      return server.result(
          R"("resultType":"input_required","requestState":"s\u0041","inputRequests":{"who":{"method":"elicitation/create",)"
          R"("params":{"message":"name?"}},"more":{"method":"elicitation/create","params":{"message":"more?"}}})");
    }
    wrong += !server.says(R"("arguments":{"x":1})") || !server.says(R"("requestState":"s\u0041")");
    wrong += !server.says(
        R"("inputResponses":{"who":{"action":"accept","content":{"name":"coir"}},"more":{"action":"decline"}})");
    return server.result(R"("content":[])");
  });
  McpClientOptions options{.elicitation = true};
  options.asked = [](const Question& question, coir::JsonWriter& answer) {
    const auto message = question.params["message"].text();
    if (!message || *message != "name?" || question.text != R"({"message":"name?"})") return false;
    answer.object().member("action", "accept").name("content").object().member("name", "coir").end().end();
    return true;
  };
  with(script, options, [&](coir::mcp::McpClient& client) {
    const auto answer = client.call("ask", R"({"x":1})", patience());
    expect(answer && answer->result().find("content") && wrong == 0);
  });
}

TEST(McpClient, refuses_to_be_asked_what_it_has_not_offered_and_to_be_asked_for_ever) {
  std::atomic<unsigned> rounds = 0;
  const auto script = mcp_script([&](McpPeer& server) {
    if (server.is("server/discover")) return server.result(kModern);
    if (server.says("endless")) {
      ++rounds;
      return server.result(R"("resultType":"input_required","requestState":"again")");
    }
    return server.result(
        R"("resultType":"input_required","inputRequests":{"s":{"method":"sampling/createMessage","params":{}}})");
  });
  with(script, {}, [&](coir::mcp::McpClient& client) {
    rounds = 0;
    const auto sampled = client.call("sample", {}, patience());
    expect(!sampled && sampled.error() == ErrorCode::unsupported);
    const auto endless = client.call("endless", {}, patience());
    expect(!endless && endless.error() == ErrorCode::limit && rounds == 17);
  });
}

TEST(McpClient, closes_the_stream_of_a_request_that_is_cancelled_and_says_nothing_else) {
  std::atomic<unsigned> begun = 0, gone = 0, notifications = 0;
  const auto script = mcp_script([&](McpPeer& server) {
    if (server.is("server/discover")) return server.result(kModern);
    notifications += server.is("notifications/cancelled");
    server.begin_events();
    ++begun;
    server.peer().until_gone();
    ++gone;
    return false;
  });
  with(script, {}, [&](coir::mcp::McpClient& client) {
    begun = gone = 0;
    auto call = coir::spawn([&] {
      const auto answer = client.call("slow", {}, patience());
      expect(!answer && answer.error() == ErrorCode::cancelled);
    });
    until([&] { return begun == 1; });
    expect(call.cancel().has_value());
    expect(call.join().has_value());
    until([&] { return gone == 1; });
    // Its own deadline ends a request as well. On a slow machine the first ones pass before it is sent.
    for (auto within = 20ms; begun == 1; within *= 2) {
      const auto late = client.call("slow", {}, {.deadline = Deadline::after(within)});
      expect(!late && late.error() == ErrorCode::timed_out && late.error().error().scope == 0);
    }
    until([&] { return gone == begun; });
    expect(notifications == 0);
  });
}

TEST(McpClient, bounds_what_it_is_sent) {
  const auto script = mcp_script([&](McpPeer& server) {
    if (server.is("server/discover")) return server.result(kModern);
    char large[3000];
    memset(large, 'x', sizeof large);
    const std::string_view text(large, sizeof large);
    if (server.says("\"events\"")) {
      server.begin_events();
      return server.event(text) && server.end_events();
    }
    if (server.says("\"deep\"")) {
      memset(large, '[', 100);
      memset(large + 100, ']', 100);
      char result[300];
      snprintf(result, sizeof result, "\"content\":%.200s", large);
      return server.result(result);
    }
    if (server.says("\"text\""))
      return server.say("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 0\r\n\r\n");
    if (server.says("\"none\"")) return server.json("[]");
    return server.json(text);
  });
  with(script, {.max_message = 2048}, [&](coir::mcp::McpClient& client) {
    for (const char* const tool : {"json", "events", "deep"}) {
      const auto answer = client.call(tool, {}, patience());
      expect(!answer && answer.error() == ErrorCode::limit);
    }
    const auto text = client.call("text", {}, patience());
    expect(!text && text.error() == ErrorCode::protocol);
    const auto none = client.call("none", {}, patience());
    expect(!none && none.error() == ErrorCode::truncated);
  });
}

TEST(McpClient, takes_a_message_that_is_larger_than_the_first_buffer) {
  const auto script = mcp_script([&](McpPeer& server) {
    if (server.is("server/discover")) return server.result(kModern);
    server.begin_events();
    server.event(R"({"jsonrpc":"2.0","method":"notifications/message","params":{}})", "id: 7\n");
    server.chunk("data: ");
    char part[1000];
    memset(part, ' ', sizeof part);
    for (int i = 0; i < 100; ++i) server.chunk({part, sizeof part});
    char end[256];
    snprintf(end, sizeof end, "{\"id\":%.*s,\"result\":{\"content\":[]}}\n\n", static_cast<int>(server.id().size()),
             server.id().data());
    return server.chunk(end) && server.end_events();
  });
  with(script, {}, [&](coir::mcp::McpClient& client) {
    const auto answer = client.call("large", {}, patience());
    expect(answer.has_value());
  });
}

TEST(McpClient, listens_for_changes_until_the_server_ends_the_stream) {
  std::atomic<unsigned> wrong = 0;
  const auto script = mcp_script([&](McpPeer& server) {
    if (server.is("server/discover")) return server.result(kModern);
    wrong += !server.is("subscriptions/listen") ||
             !server.says(R"("notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:b"]})");
    server.begin_events();
    server.event(R"({"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{}})");
    server.event(R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}})");
    return server.result_event(R"("resultType":"complete")") && server.end_events();
  });
  with(script, {}, [&](coir::mcp::McpClient& client) {
    unsigned told = 0;
    const std::string_view uris[] = {"a:b"};
    CallOptions options;
    options.told = [&](const Notification& notification) {
      told += notification.method == "notifications/tools/list_changed" ? 10 : 1;
    };
    expect(client.listen({.tools = true, .uris = uris}, options).has_value());
    expect(told == 11 && wrong == 0);
  });
}

TEST(McpClient, asks_again_for_what_may_be_asked_twice_when_the_connection_breaks) {
  std::atomic<unsigned> reads = 0, calls = 0;
  const auto script = mcp_script([&](McpPeer& server) {
    if (server.is("server/discover")) return server.result(kModern);
    if (server.is("tools/call")) {
      ++calls;
      return false;
    }
    return ++reads % 2 == 0 && server.result(R"("contents":[])");
  });
  with(script, {}, [&](coir::mcp::McpClient& client) {
    reads = calls = 0;
    expect(client.read("a:b", patience()).has_value() && reads == 2);
    expect(!client.call("once", {}, patience()) && calls == 1);
  });
}

TEST(McpClient, is_made_of_an_address_or_a_command) {
  const char* const argv[] = {"true", nullptr};
  const char* const endless[] = {"true"};
  CHECK_TRUE(!coir::mcp::McpClient::create({}));
  CHECK_TRUE(!coir::mcp::McpClient::create({.url = "http://a/", .command = argv}));
  CHECK_TRUE(!coir::mcp::McpClient::create({.command = endless}));
  CHECK_TRUE(!coir::mcp::McpClient::create({.url = "http://a/", .max_message = 2 * 1024 * 1024}));
  CHECK_TRUE(coir::mcp::McpClient::create({.url = "http://a/"}).has_value());
}

}  // namespace mcp_client_test
