// Origins, tokens, verdicts, rates and tools that are off say who may ask; each request leaves a line.

#include "mcp_stage.h"

namespace mcp_gate_test {

using namespace coir;
using namespace coir::test;

TEST_GROUP_BASE(McpGate, McpServer) {};

namespace {

// judge takes a token for the name of who has it, but for two.
mcp::Verdict judge(const http::Request&, std::string_view token, mcp::Principal& who) {
  who.set(token);
  if (token == "eve") return mcp::Verdict::forbidden;
  if (token == "later") return mcp::Verdict::unavailable;
  return token == "ann" || token == "bob" ? mcp::Verdict::allowed : mcp::Verdict::unknown;
}

std::string by(std::string_view who, std::string request) {
  return request.insert(request.find("Content-Type"), "Authorization: Bearer " + std::string(who) + "\r\n");
}

// keep has the client bring its state back, and tells it then.
void keep(mcp::Call& call) {
  if (call.state().empty()) return call.keep_state("of-ann");
  call.text(call.state());
}
constexpr mcp::Tool kKeep[] = {mcp::tool<keep>({.name = "keep"})};

}  // namespace

TEST(McpGate, each_verdict_has_its_answer_and_its_line) {
  serving([](mcp::McpServerOptions& options) { options.authorize = judge; },
          [&](Stage& stage, http::Server&) {
            const auto as = [&](std::string_view who) { return ask(stage.address, by(who, modern_call("twice"))); };
            expect(as("ann").starts_with("HTTP/1.1 200"));
            expect(stage.says("ann|tools/call|twice|ok|0"));
            const std::string forbidden = as("eve");
            expect(forbidden.starts_with("HTTP/1.1 403") && holds(forbidden, "insufficient_scope"));
            expect(stage.says("eve|||forbidden|403"));
            const std::string later = as("later");
            expect(later.starts_with("HTTP/1.1 503") && holds(later, "Retry-After: 1"));
            expect(!holds(later, "WWW-Authenticate"));
            expect(stage.says("later|||unavailable|503"));
            const std::string unknown = as("mallory");
            expect(unknown.starts_with("HTTP/1.1 401") && holds(unknown, "invalid_token"));
            expect(stage.says("mallory|||unknown|401"));
            for (const std::string& each : {forbidden, later, unknown}) expect(!holds(each, "result"));
          });
}

TEST(McpGate, a_call_s_line_says_what_has_become_of_it) {
  serving([](mcp::McpServerOptions& options) { options.authorize = judge; },
          [&](Stage& stage, http::Server&) {
            ask(stage.address, by("ann", modern_call("no")));
            expect(stage.says("ann|tools/call|no|refused|-32602"));
            ask(stage.address, by("bob", modern_call("slow")));
            expect(stage.says("bob|tools/call|slow|timed out|"));
            expect(stage.took >= 20ms);
            const std::string heard = ask(stage.address, by("bob", initialize()));
            expect(stage.says("bob|initialize||ok|0"));
            const std::string session = heard.substr(heard.find("Mcp-Session-Id: ") + 16, 32);
            ask(stage.address, by("bob", legacy_call(session, 1, "twice")));
            expect(stage.says("bob|tools/call|twice|ok|0"));
          });
}

// A session's id, or a state, is of use to its own principal alone.
TEST(McpGate, nothing_of_one_principal_serves_another) {
  serving(
      [](mcp::McpServerOptions& options) {
        options.authorize = judge;
        options.tools = kKeep;
      },
      [&](Stage& stage, http::Server&) {
        const std::string heard = ask(stage.address, by("ann", initialize()));
        const std::string session = heard.substr(heard.find("Mcp-Session-Id: ") + 16, 32);
        const std::string ping = legacy(session, R"({"jsonrpc":"2.0","id":5,"method":"ping"})");
        expect(ask(stage.address, by("ann", ping)).starts_with("HTTP/1.1 200"));
        expect(ask(stage.address, by("bob", ping)).starts_with("HTTP/1.1 404"));

        const std::string asked = ask(stage.address, by("ann", modern_call("keep")));
        const std::size_t at = asked.find("\"requestState\":\"");
        expect(at != std::string::npos);
        if (at == std::string::npos) return;
        const std::string state = asked.substr(at + 16, asked.find('"', at + 16) - at - 16);
        const std::string again =
            modern("tools/call", R"(,"name":"keep","arguments":{},"requestState":")" + state + "\"", "keep");
        expect(holds(ask(stage.address, by("ann", again)), R"("text":"of-ann")"));
        expect(holds(ask(stage.address, by("bob", again)), "-32602"));
        expect(stage.says("bob|tools/call|keep|forged|-32602"));
      });
}

TEST(McpGate, foreign_origins_are_refused) {
  serving(
      [](mcp::McpServerOptions& options) {
        static constexpr std::string_view kOrigins[] = {"http://page.example"};
        options.allow_origins = kOrigins;
      },
      [&](Stage& stage, http::Server&) {
        const auto with = [&](std::string_view host, std::string_view origin) {
          std::string request = modern_call("twice");
          request.replace(request.find("localhost"), 9, host);
          if (!origin.empty()) request.insert(request.find("Content-Type"), "Origin: " + std::string(origin) + "\r\n");
          return ask(stage.address, request).substr(9, 3);
        };
        // Hosts are the HTTP server's to judge.
        expect(with("127.0.0.1:80", "") == "200");
        expect(with("evil.example", "") == "421");
        expect(with("localhost:80", "http://localhost:80") == "200");
        expect(with("localhost:80", "http://evil.example") == "403");
        expect(with("localhost:80", "http://page.example") == "200");
        expect(with("localhost:80", "null") == "403");
      });
}

TEST(McpGate, a_token_is_wanted_and_compared) {
  serving(
      [](mcp::McpServerOptions& options) {
        options.token = "secret";
        options.resource_url = "https://board.example/mcp";
      },
      [&](Stage& stage, http::Server&) {
        const auto with = [&](std::string_view field) {
          std::string request = modern_call("twice");
          request.insert(request.find("Content-Type"), field);
          return ask(stage.address, request);
        };
        const std::string none = with("");
        expect(none.starts_with("HTTP/1.1 401"));
        expect(holds(none, "resource_metadata=\"https://board.example/.well-known/oauth-protected-resource/mcp\""));
        expect(!holds(none, "invalid_token") && holds(with("Authorization: Bearer secre\r\n"), "invalid_token"));
        expect(with("Authorization: Bearer secret\r\n").starts_with("HTTP/1.1 200"));
        expect(with("Authorization: Bearer secrets\r\n").starts_with("HTTP/1.1 401"));
        // Everybody learns where to get one.
        McpPeer peer(stage.address);
        peer.say(
            "GET /.well-known/oauth-protected-resource/mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        expect(peer.hears_end() && peer.has("200 OK") && peer.has(R"("resource":"https://board.example/mcp")"));
      });
}

TEST(McpGate, a_principal_makes_so_many_requests_a_second) {
  serving(
      [](mcp::McpServerOptions& options) {
        options.calls_per_second = 1;
        options.authorize = [](const http::Request&, std::string_view token, mcp::Principal& who) {
          who.set(token);
          return token.data() == nullptr ? mcp::Verdict::unknown : mcp::Verdict::allowed;
        };
      },
      [&](Stage& stage, http::Server&) {
        const auto as = [&](std::string_view who) {
          std::string request = modern_call("twice");
          request.insert(request.find("Content-Type"), "Authorization: Bearer " + std::string(who) + "\r\n");
          return ask(stage.address, request).substr(9, 3);
        };
        // On a busy machine a second may pass between two of them.
        expect(until([&] { return as("ann") == "429"; }, soon()));
        // Another has its own.
        expect(as("bob") == "200");
        // One's requests give nothing back to the other.
        expect(until([&] { return as("bob") != "" && as("ann") == "429"; }, soon()));
        expect(stage.says("bob|"));
      });
}

// It is one POST.
TEST(McpGate, each_request_of_a_batch_is_one) {
  serving([](mcp::McpServerOptions& options) { options.calls_per_second = 5; },
          [&](Stage& stage, http::Server&) {
            constexpr std::string_view kPing = R"({"jsonrpc":"2.0","id":1,"method":"ping"},)";
            std::string batch = "[";
            for (int i = 0; i < 100; ++i) batch += kPing;
            batch.back() = ']';
            std::string request = legacy(begin(stage.address, "2025-03-26"), batch);
            request.replace(request.find("2025-11-25"), 10, "2025-03-26");
            const std::string heard = ask(stage.address, request);
            expect(holds(heard, R"("result":{})") && holds(heard, R"("error":{"code":-31000,)"));
          });
}

TEST(McpGate, a_tool_that_is_off_is_none) {
  serving(
      [](mcp::McpServerOptions& options) {
        static constexpr std::string_view kOn[] = {"twice"};
        options.every_tool = false;
        options.enabled_tools = kOn;
      },
      [&](Stage& stage, http::Server&) {
        const std::string list = ask(stage.address, modern("tools/list"));
        expect(holds(list, R"("name":"twice")") && !holds(list, R"("name":"echo")"));
        expect(holds(ask(stage.address, modern_call("large")), "Unknown tool"));
        expect(holds(ask(stage.address, legacy_call(begin(stage.address), 1, "large")), "Unknown tool"));
        McpPeer listener(stage.address);
        listener.say(modern("subscriptions/listen", R"(,"notifications":{"toolsListChanged":true})"));
        expect(listener.hears("acknowledged"));
        expect(stage.mcp->enable("large", true) && !stage.mcp->enable("no", true));
        expect(listener.hears("notifications/tools/list_changed"));
        expect(holds(ask(stage.address, modern("tools/list")), R"("name":"large")"));
      });
}

}  // namespace mcp_gate_test
