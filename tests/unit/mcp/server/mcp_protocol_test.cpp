// Both eras at one path: what is answered to whom, by the revisions' own words.

#include "mcp_stage.h"

namespace mcp_protocol_test {

using namespace coir;
using namespace coir::test;

TEST_GROUP_BASE(McpProtocol, McpServer) {};

// --- 2026-07-28 ---

TEST(McpProtocol, a_modern_call_is_answered_and_leaves_nothing) {
  serving([&](Stage& stage) {
    const std::size_t before = account::mcp.used();
    std::string request = modern_call("echo", R"({"text":"hi"})");
    request.insert(request.find("\r\nMcp-Name") + 2, "Mcp-Param-Text: hi\r\n");
    const std::string heard = ask(stage.address, request);
    expect(heard.starts_with("HTTP/1.1 200"));
    expect(holds(heard, R"("resultType":"complete")") && holds(heard, R"("content":[{"type":"text","text":"hi"}])"));
    expect(holds(heard, R"("io.modelcontextprotocol/serverInfo":{"name":"t","version":"1"})"));
    expect(!holds(heard, "Mcp-Session-Id"));
    expect(until([&] { return account::mcp.used() == before; }, soon()));
    expect(stage.says("|tools/call|echo|ok|0"));
  });
}

TEST(McpProtocol, fields_say_what_the_body_says_or_are_refused) {
  serving([&](Stage& stage) {
    const auto refused = [&](std::string request, std::string_view from, std::string_view to) {
      const std::size_t at = request.find(from);
      expect(at != std::string::npos);
      request.replace(at, from.size(), to);
      const std::string heard = ask(stage.address, request);
      return heard.starts_with("HTTP/1.1 400") && holds(heard, "-32020") && holds(heard, R"("id":1)");
    };
    const std::string call = modern_call("twice");
    expect(refused(call, "Mcp-Name: twice\r\n", "Mcp-Name: echo\r\n"));
    expect(refused(call, "Mcp-Name: twice\r\n", ""));
    expect(refused(call, "Mcp-Name: twice\r\n", "Mcp-Name: twice\r\nMcp-Name: echo\r\n"));
    expect(refused(call, "Mcp-Method: tools/call\r\n", "Mcp-Method: TOOLS/CALL\r\n"));
    expect(refused(call, "Mcp-Method: tools/call\r\n", ""));
    expect(refused(call, "MCP-Protocol-Version: 2026-07-28\r\n", ""));
    expect(refused(call, "MCP-Protocol-Version: 2026-07-28\r\n", "MCP-Protocol-Version: 2025-11-25\r\n"));
    expect(refused(call, "Mcp-Name: twice\r\n", "Mcp-Name: =?base64?dHdpY2?=\r\n"));
    // An argument that is mirrored: missing, other, and there though the argument is not.
    expect(refused(modern_call("echo", R"({"text":"hi"})"), "Mcp-Name", "Mcp-Name"));
    expect(refused(modern_call("echo", R"({"text":"hi"})"), "Mcp-Name", "Mcp-Param-Text: ho\r\nMcp-Name"));
    expect(refused(modern_call("echo", "{}"), "Mcp-Name", "Mcp-Param-Text: hi\r\nMcp-Name"));
    // In any case of the name, with white space, encoded: the same.
    std::string fine = call;
    fine.replace(fine.find("Mcp-Name: twice"), 15, "mcp-NAME:   =?base64?dHdpY2U=?=  ");
    expect(ask(stage.address, fine).starts_with("HTTP/1.1 200"));
  });
}

TEST(McpProtocol, a_modern_request_says_what_it_is) {
  serving([&](Stage& stage) {
    const auto status = [&](const std::string& request, std::string_view line, std::string_view code) {
      const std::string heard = ask(stage.address, request);
      return heard.starts_with(line) && holds(heard, code);
    };
    expect(status(modern("server/discover", {}, {}, R"("a":1)"), "HTTP/1.1 400", "-32602"));
    expect(
        status(modern("server/discover", {}, {}, R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"})"),
               "HTTP/1.1 400", "-32602"));
    std::string newer = modern("server/discover");
    for (std::size_t at; (at = newer.find("2026-07-28")) != std::string::npos;) newer.replace(at, 10, "2099-01-01");
    expect(status(newer, "HTTP/1.1 400", "-32022"));
    expect(status(newer, "HTTP/1.1 400", R"("supported":["2026-07-28","2025-11-25","2025-06-18","2025-03-26"])"));
    for (const char* const method :
         {"initialize", "ping", "logging/setLevel", "resources/subscribe", "prompts/list", "x"}) {
      expect(status(modern(method), "HTTP/1.1 404", "-32601"));
    }
    expect(status(modern("server/discover"), "HTTP/1.1 200", R"("supportedVersions":["2026-07-28")"));
    expect(status(modern("tools/list"), "HTTP/1.1 200", R"("cacheScope":"public")"));
    expect(
        status(modern("resources/read", R"(,"uri":"t://no")", "t://no"), "HTTP/1.1 200", R"("data":{"uri":"t://no"})"));
    expect(status(modern("tools/call", R"(,"name":"no")", "no"), "HTTP/1.1 200", "-32602"));
    expect(status("GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 405", "Allow"));
    expect(status("DELETE /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 405", "Allow"));
    expect(status(post("MCP-Protocol-Version: 2026-07-28\r\n", R"({"jsonrpc":"2.0","method":"notifications/x"})"),
                  "HTTP/1.1 202", ""));
    expect(status(post({}, "{"), "HTTP/1.1 400", "-32700"));
    expect(status(post({}, "[]"), "HTTP/1.1 400", "-32600"));
  });
}

TEST(McpProtocol, arguments_are_judged_before_the_function_runs) {
  serving([&](Stage& stage) {
    const std::string heard = ask(stage.address, modern_call("echo", "{}"));
    expect(heard.starts_with("HTTP/1.1 200") && holds(heard, "arguments.text: missing") &&
           holds(heard, R"("isError":true)"));
    expect(stage.says("|tools/call|echo|failed|0"));
  });
}

TEST(McpProtocol, progress_and_lines_come_only_to_who_wants_them) {
  serving([&](Stage& stage) {
    const std::string plain = ask(stage.address, modern_call("twice"));
    expect(holds(plain, "Content-Type: application/json") && !holds(plain, "notifications/"));
    const std::string meta =
        R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},)"
        R"("io.modelcontextprotocol/logLevel":"info","progressToken":"p"})";
    McpPeer peer(stage.address);
    peer.say(modern("tools/call", R"(,"name":"twice")", "twice", meta));
    expect(peer.hears("\"twice\""));
    expect(peer.has("text/event-stream") && peer.has("X-Accel-Buffering: no"));
    expect(peer.has(R"("progressToken":"p","progress":1,"total":2,"message":"half")"));
    expect(peer.has(R"("level":"warning","data":"a line")"));
  });
}

namespace {

// frugal leaves room for its result, and none for an event that holds it.
void frugal(mcp::Call& call) {
  call.progress(1, 2);
  const std::string text(3'000, 'x');
  call.text(text + "whole");
  account::mcp.set_ceiling(account::mcp.used() + 256);
}

constexpr mcp::Tool kFrugal[] = {mcp::tool<frugal>({.name = "frugal"})};

}  // namespace

TEST(McpProtocol, a_result_without_memory_for_its_event_comes_in_pieces) {
  serving([](mcp::McpServerOptions& options) { options.tools = kFrugal; },
          [&](Stage& stage, http::Server&) {
            const std::string meta = R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
                                     R"("io.modelcontextprotocol/clientCapabilities":{},"progressToken":"p"})";
            std::string request = modern("tools/call", R"(,"name":"frugal")", "frugal", meta);
            request.insert(request.find("Mcp-Name"), "Connection: close\r\n");
            McpPeer peer(stage.address);
            peer.say(request);
            expect(peer.hears_end());
            account::mcp.set_ceiling(SIZE_MAX);
            expect(peer.has("whole") && peer.has("notifications/progress"));
            expect(peer.heard.ends_with("\n\n\r\n0\r\n\r\n"));
          });
}

TEST(McpProtocol, a_client_is_answered_by_what_it_accepts) {
  serving([&](Stage& stage) {
    const std::string meta =
        R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},)"
        R"("progressToken":"p"})";
    const auto heard = [&](std::string_view fields) {
      std::string request = modern("tools/call", R"(,"name":"twice")", "twice", meta);
      request.insert(request.find("Mcp-Name"), fields);
      request.insert(request.find("Mcp-Name"), "Connection: close\r\n");
      McpPeer peer(stage.address);
      peer.say(request);
      peer.hears_end();
      return peer.heard;
    };
    for (const char* const neither : {"Accept: text/html\r\n", "Accept: text/event-stream\r\n", "Accept:\r\n",
                                      "Accept: text/html;a=application/json\r\n", "Accept: application/jso\r\n"}) {
      expect(heard(neither).starts_with("HTTP/1.1 406"));
    }
    for (const char* const json :
         {"Accept: application/json\r\n", "Accept: text/html;q=1 , APPLICATION/JSON ;q=0.5\r\n",
          "Accept: application/*\r\n"}) {
      const std::string answer = heard(json);
      expect(answer.starts_with("HTTP/1.1 200") && holds(answer, "Content-Type: application/json"));
      expect(!holds(answer, "notifications/progress"));
    }
    for (const char* const both :
         {"", "Accept: */*\r\n", "Accept: application/json\r\nAccept: a/b,text/event-stream\r\n",
          "Accept: application/json, text/*\r\n"}) {
      const std::string answer = heard(both);
      expect(holds(answer, "Content-Type: text/event-stream") && holds(answer, "notifications/progress"));
    }
  });
}

TEST(McpProtocol, closing_the_connection_cancels_a_modern_call) {
  serving([&](Stage& stage) {
    McpPeer peer(stage.address);
    peer.say(modern_call("hold"));
    expect(until([&] { return stage.holding == 1; }, soon()));
    peer.reset();
    expect(until([&] { return stage.cancelled == 1; }, soon()));
    expect(stage.finished == 0);
  });
}

TEST(McpProtocol, a_call_ends_at_its_deadline) {
  serving([&](Stage& stage) {
    const std::string heard = ask(stage.address, modern_call("slow"));
    expect(heard.starts_with("HTTP/1.1 200") && holds(heard, "-31001"));
    expect(stage.says("|tools/call|slow|timed out|-31001"));
  });
}

TEST(McpProtocol, a_result_over_the_ceiling_is_one_error) {
  serving([](mcp::McpServerOptions& options) { options.max_result_bytes = 100'000; },
          [&](Stage& stage, http::Server&) {
            expect(holds(ask(stage.address, modern_call("large")), "-31003"));
            expect(holds(ask(stage.address, modern_call("twice")), R"("text":"twice")"));
          });
  serving([&](Stage& stage) { expect(ask(stage.address, modern_call("large")).size() > 1'000'000); });
}

TEST(McpProtocol, at_the_ledgers_ceiling_a_call_is_refused_and_nothing_else) {
  serving([&](Stage& stage) {
    account::mcp.set_ceiling(account::mcp.used() + 4096);
    const std::string heard = ask(stage.address, modern_call("large"));
    expect(heard.starts_with("HTTP/1.1 503") && holds(heard, "-31000"));
    expect(holds(ask(stage.address, modern_call("twice")), R"("text":"twice")"));
    account::mcp.set_ceiling(SIZE_MAX);
  });
}

#if COIR_TLS
TEST(McpProtocol, a_question_is_asked_by_the_result) {
  serving([&](Stage& stage) {
    const std::string meta = R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
                             R"("io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}})";
    const std::string asked = ask(stage.address, modern("tools/call", R"(,"name":"name")", "name", meta));
    expect(holds(asked, R"("resultType":"input_required")") &&
           holds(asked, R"("name":{"method":"elicitation/create")"));
    const std::string answered = ask(
        stage.address,
        modern("tools/call", R"(,"name":"name","inputResponses":{"name":{"action":"accept","content":{"n":"Ann"}}})",
               "name", meta));
    expect(holds(answered, R"("text":"Ann")"));
    // A client that cannot be asked is not.
    const std::string cannot = ask(stage.address, modern("tools/call", R"(,"name":"name")", "name"));
    expect(cannot.starts_with("HTTP/1.1 400") && holds(cannot, R"("requiredCapabilities":{"elicitation":{}})"));
    // A state that nobody gave is none.
    expect(holds(ask(stage.address, modern("tools/call", R"(,"name":"name","requestState":"AAAA")", "name", meta)),
                 "-32602"));
  });
}
#endif

TEST(McpProtocol, a_list_comes_page_by_page) {
  serving([](mcp::McpServerOptions& options) { options.page_items = 3; },
          [&](Stage& stage, http::Server&) {
            const std::string first = ask(stage.address, modern("tools/list"));
            expect(holds(first, R"("nextCursor":"3")") && holds(first, "\"large\"") && !holds(first, "\"slow\""));
            const std::string last = ask(stage.address, modern("tools/list", R"(,"cursor":"6")"));
            expect(holds(last, "\"leave\"") && !holds(last, "nextCursor"));
            expect(holds(ask(stage.address, modern("tools/list", R"(,"cursor":"x")")), "-32602"));
          });
}

TEST(McpProtocol, clients_that_vanish_in_the_middle_leave_nothing) {
  serving([&](Stage& stage) {
    constexpr int kRounds = 10;
    constexpr int kEach = 50;
    const std::size_t before = account::mcp.used();
    for (int round = 1; round <= kRounds; ++round) {
      std::vector<McpPeer> peers;
      for (int i = 0; i < kEach; ++i) {
        peers.emplace_back(stage.address);
        peers.back().say(modern_call("hold"));
      }
      expect(until([&] { return stage.holding == kEach; }, soon()));
      for (McpPeer& each : peers) each.reset();
      expect(until([&] { return stage.cancelled == round * kEach && stage.holding == 0; }, soon()));
    }
    expect(until([&] { return account::mcp.used() == before; }, soon()));
    expect(holds(ask(stage.address, modern_call("twice")), "twice"));
  });
}

// --- what other servers offer ---

namespace {

class Mounted final : public mcp::Source {
 public:
  bool lists(mcp::ItemKind kind) noexcept override {
    return kind == mcp::ItemKind::tools || kind == mcp::ItemKind::prompts;
  }
  void list(mcp::ItemKind kind, mcp::Items& into) noexcept override {
    if (kind != mcp::ItemKind::tools) return;
    static_cast<void>(into.add("twice", R"({"name":"twice","inputSchema":{"type":"object"},"description":"theirs"})"));
    static_cast<void>(into.add("up.far", R"({"name":"up.far","inputSchema":{"type":"object"}})"));
  }
  bool owns(mcp::ItemKind, std::string_view name) noexcept override { return name.starts_with("up."); }
  void forward(mcp::Call& call, mcp::ItemKind, JsonView params) noexcept override {
    if (params["arguments"]["fail"].kind()) return call.refuse(mcp::kUpstream, "the mounted server does not answer");
    call.progress(1, 2);
    // The members of a value within are not the result's.
    if (params["arguments"]["within"].kind())
      return call.result_json(R"({"content":[],"structuredContent":{"resultType":"mine","_meta":{}}})");
    call.result_json(R"({"content":[{"type":"text","text":"from far"}],"resultType":"complete"})");
  }
};

}  // namespace

TEST(McpProtocol, a_mounted_servers_tools_appear_as_ours) {
  static Mounted mounted;
  static mcp::Source* const kSources[] = {&mounted};
  serving([](mcp::McpServerOptions& options) { options.sources = kSources; },
          [&](Stage& stage, http::Server&) {
            const std::string list = ask(stage.address, modern("tools/list"));
            expect(holds(list, R"("name":"up.far")") && !holds(list, "theirs"));
            const std::string heard = ask(stage.address, modern_call("up.far"));
            expect(holds(heard, "from far") && heard.find("resultType") == heard.rfind("resultType"));
            const std::string within = ask(stage.address, modern_call("up.far", R"({"within":1})"));
            expect(holds(within, R"("resultType":"complete")") && holds(within, R"("resultType":"mine","_meta":{}}})"));
            expect(holds(ask(stage.address, modern_call("up.far", R"({"fail":1})")), "-31004"));
            expect(holds(ask(stage.address, modern("prompts/list")), R"("prompts":[])"));
            const std::string session = begin(stage.address);
            expect(holds(ask(stage.address, legacy_call(session, 3, "up.far")),
                         R"({"jsonrpc":"2.0","id":3,"result":{"content":)"));
          });
}

}  // namespace mcp_protocol_test
