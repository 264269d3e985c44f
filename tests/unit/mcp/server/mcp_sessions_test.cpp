// The legacy era: sessions, calls that outlive their connections, streams that are followed again.

#include <algorithm>

#include "mcp_stage.h"

namespace mcp_sessions_test {

using namespace coir;
using namespace coir::test;

TEST_GROUP_BASE(McpSessions, McpServer) {};

namespace {

constexpr std::string_view kPing = R"({"jsonrpc":"2.0","id":5,"method":"ping"})";

std::string get(std::string_view session, std::string_view last = {}) {
  std::string text = "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: ";
  text += session;
  text += "\r\n";
  if (!last.empty()) text += "Last-Event-ID: " + std::string(last) + "\r\n";
  return text + "\r\n";
}

void lines(mcp::Call& call) {
  call.progress(1, 2);
  call.result_json("{\n  \"content\": [\r\n]}");
}
void where(mcp::Call& call) {
  const auto answer = call.ask("where", mcp::Capability::roots, {});
  call.text(answer ? "answered" : "not answered");
}
constexpr std::size_t kWhyBytes = 20'000;
void refuse(mcp::Call& call) {
  call.refuse(-32050, "no", '"' + std::string(kWhyBytes, 'y') + '"');
}
constexpr std::size_t kHugeBytes = 8 * 1024 * 1024;
void huge(mcp::Call& call) {
  call.progress(1, 2);
  call.text(std::string(kHugeBytes, 'x'));
}

}  // namespace

TEST(McpSessions, a_session_begins_and_ends) {
  serving([&](Stage& stage) {
    const std::string session = begin(stage.address);
    expect(session.size() == 32);
    expect(holds(ask(stage.address, legacy(session, kPing)), R"({"jsonrpc":"2.0","id":5,"result":{}})"));
    expect(ask(stage.address, legacy(session, R"({"jsonrpc":"2.0","method":"notifications/initialized"})"))
               .starts_with("HTTP/1.1 202"));
    expect(ask(stage.address, "DELETE /mcp HTTP/1.1\r\nHost: localhost\r\nMcp-Session-Id: " + session + "\r\n\r\n")
               .starts_with("HTTP/1.1 204"));
    // An unknown session is 404, so that the client begins anew, whatever it asks.
    expect(ask(stage.address, legacy(session, kPing)).starts_with("HTTP/1.1 404"));
    expect(ask(stage.address, get(session)).starts_with("HTTP/1.1 404"));
    expect(ask(stage.address, legacy("0123", kPing)).starts_with("HTTP/1.1 404"));
    expect(stage.mcp->gauges().sessions == 0);
  });
}

TEST(McpSessions, a_revision_is_agreed_and_a_bad_field_refused) {
  serving([&](Stage& stage) {
    expect(holds(ask(stage.address, initialize("2025-06-18")), R"("protocolVersion":"2025-06-18")"));
    expect(holds(ask(stage.address, initialize("2025-03-26")), R"("protocolVersion":"2025-03-26")"));
    expect(holds(ask(stage.address, initialize("1999-01-01")), R"("protocolVersion":"2025-11-25")"));
    expect(holds(ask(stage.address, initialize("2026-07-28")), R"("protocolVersion":"2025-11-25")"));
    const std::string session = begin(stage.address);
    std::string request = legacy(session, kPing);
    request.replace(request.find("2025-11-25"), 10, "2025-00-00");
    expect(ask(stage.address, request).starts_with("HTTP/1.1 400"));
    expect(ask(stage.address, post("MCP-Protocol-Version: 2025-11-25\r\n", kPing)).starts_with("HTTP/1.1 400"));
    expect(
        holds(ask(stage.address, legacy(session, R"({"jsonrpc":"2.0","id":5,"method":"server/discover"})")), "-32601"));
  });
}

TEST(McpSessions, batches_exist_in_the_first_revision_alone) {
  serving([&](Stage& stage) {
    constexpr std::string_view kBatch =
        R"([{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":2,"method":"no"},7])";
    const std::string old = begin(stage.address, "2025-03-26");
    std::string request = legacy(old, kBatch);
    request.replace(request.find("2025-11-25"), 10, "2025-03-26");
    const std::string heard = ask(stage.address, request);
    expect(holds(heard, R"([{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"error":{"code":-32601)"));
    expect(holds(heard, R"(,{"jsonrpc":"2.0","error":{"code":-32600)") && heard.ends_with("]"));
    expect(ask(stage.address, legacy(begin(stage.address), kBatch)).starts_with("HTTP/1.1 400"));
  });
}

TEST(McpSessions, closing_the_connection_leaves_a_legacy_call_running) {
  serving([&](Stage& stage) {
    const std::string session = begin(stage.address);
    McpPeer peer(stage.address);
    peer.say(legacy_call(session, 7, "hold"));
    expect(until([&] { return stage.holding == 1; }, soon()));
    peer.reset();
    // Something that the server has to read behind the reset shows that it has seen it, or will not.
    expect(holds(ask(stage.address, legacy(session, kPing)), "result"));
    stage.go.set();
    expect(until([&] { return stage.finished == 1; }, soon()));
    expect(stage.cancelled == 0);
  });
}

// Calls that begin no stream; of some the head stays in the buffers.
TEST(McpSessions, a_legacy_call_that_waits_holds_no_place) {
  constexpr int kCalls = 8, kLong = 2;
  max_active = 2;
  serving([&](Stage& stage) {
    const std::string session = begin(stage.address);
    const std::size_t before = account::http.used();
    std::vector<McpPeer> peers;
    for (int i = 0; i < kCalls; ++i) {
      std::string request = legacy_call(session, i, "hold");
      if (i < kLong) request.insert(request.find("Host"), "X-Long: " + std::string(600, 'x') + "\r\n");
      expect(peers.emplace_back(stage.address).say(request));
    }
    expect(until([&] { return stage.holding == kCalls; }, soon()));
    expect(holds(ask(stage.address, legacy(session, kPing)), R"({"jsonrpc":"2.0","id":5,"result":{}})"));
    expect(account::http.used() - before <= (kLong + max_active) * http::Server::request_bytes());
    stage.go.set();
    for (McpPeer& peer : peers) expect(peer.whole() && peer.has("held"));
  });
}

TEST(McpSessions, a_notification_cancels_a_legacy_call) {
  serving([&](Stage& stage) {
    const std::string session = begin(stage.address);
    McpPeer peer(stage.address);
    peer.say(legacy_call(session, 7, "hold"));
    expect(until([&] { return stage.holding == 1; }, soon()));
    // Another session's, and another id, cancel nothing.
    constexpr std::string_view kCancel =
        R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}})";
    ask(stage.address, legacy(begin(stage.address), kCancel));
    ask(stage.address,
        legacy(session, R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"7"}})"));
    expect(stage.holding == 1);
    ask(stage.address, legacy(session, kCancel));
    expect(until([&] { return stage.cancelled == 1; }, soon()));
    expect(peer.whole() && peer.has("-31002"));
  });
}

TEST(McpSessions, a_client_comes_again_for_the_rest_of_its_own_stream) {
  serving([&](Stage& stage) {
    const std::string session = begin(stage.address);
    McpPeer peer(stage.address);
    peer.say(legacy_call(session, 7, "leave"));
    expect(peer.hears_end());
    // First an event without content, whose id the client comes again by.
    expect(peer.has("id: 1-0\nretry: 1000\ndata: \n\n") && !peer.has("the rest"));
    // Another stream of the session runs beside.
    McpPeer other(stage.address);
    other.say(legacy_call(session, 8, "hold", R"(,"_meta":{"progressToken":1})"));
    expect(other.hears("notifications/progress"));
    McpPeer again(stage.address);
    again.say(get(session, "1-0"));
    expect(again.hears("text/event-stream"));
    stage.go.set();
    expect(again.hears_end());
    expect(again.has("id: 1-1\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\"") && again.has("the rest"));
    expect(!again.has("progress") && !again.has("held"));
    // It is remembered for one who comes once more, and nobody else's session has it.
    McpPeer third(stage.address);
    third.say(get(session, "1-0"));
    expect(third.hears_end() && third.has("the rest"));
    expect(ask(stage.address, get(begin(stage.address), "1-0")).starts_with("HTTP/1.1 400"));
    expect(ask(stage.address, get(session, "9-9")).starts_with("HTTP/1.1 400"));
    expect(ask(stage.address, get(session, "x")).starts_with("HTTP/1.1 400"));
  });
}

TEST(McpSessions, an_answer_that_was_not_kept_is_not_waited_for) {
  serving([](mcp::McpServerOptions& options) { options.max_stream_bytes = 64; },
          [&](Stage& stage, http::Server&) {
            const std::string session = begin(stage.address);
            McpPeer peer(stage.address);
            peer.say(legacy_call(session, 7, "leave"));
            expect(peer.hears_end());
            stage.go.set();
            // Once the call has ended.
            expect(until([&] { return ask(stage.address, get(session, "1-0")).starts_with("HTTP/1.1 400"); }, soon()));
          });
}

TEST(McpSessions, a_result_of_several_lines_is_one_line_of_an_event) {
  static constexpr mcp::Tool kLines[] = {mcp::tool<lines>({.name = "lines"})};
  serving([](mcp::McpServerOptions& options) { options.tools = kLines; },
          [&](Stage& stage, http::Server&) {
            McpPeer peer(stage.address);
            peer.say(legacy_call(begin(stage.address), 7, "lines", R"(,"_meta":{"progressToken":1})"));
            expect(peer.hears_end());
            expect(peer.has("notifications/progress") && peer.has("  \"content\": [  ]}}\n\n"));
          });
}

TEST(McpSessions, a_legacy_client_is_asked_on_the_stream) {
  serving([&](Stage& stage) {
    const std::string session = begin(stage.address);
    McpPeer peer(stage.address);
    peer.say(legacy_call(session, 7, "name"));
    expect(peer.hears("\"method\":\"elicitation/create\""));
    // An answer to what nobody asked changes nothing.
    ask(stage.address, legacy(session, R"({"jsonrpc":"2.0","id":99,"result":{"action":"decline"}})"));
    expect(ask(stage.address,
               legacy(session, R"({"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"n":"Ann"}}})"))
               .starts_with("HTTP/1.1 202"));
    expect(peer.hears(R"("text":"Ann")"));
  });
}

TEST(McpSessions, a_question_without_params_is_whole) {
  static constexpr mcp::Tool kWhere[] = {mcp::tool<where>({.name = "where"})};
  serving([](mcp::McpServerOptions& options) { options.tools = kWhere; },
          [&](Stage& stage, http::Server&) {
            std::string hello = initialize();
            hello.replace(hello.find(R"("elicitation":{})"), 16, R"("roots":    {  })");
            const std::string heard = ask(stage.address, hello);
            const std::string session = heard.substr(heard.find("Mcp-Session-Id: ") + 16, 32);
            McpPeer peer(stage.address);
            peer.say(legacy_call(session, 7, "where"));
            expect(peer.hears(R"("method":"roots/list","params":{}})"));
            ask(stage.address, legacy(session, R"({"jsonrpc":"2.0","id":1,"result":{"roots":[]}})"));
            expect(peer.hears(R"("text":"answered")"));
          });
}

TEST(McpSessions, a_refusal_has_its_code_however_long_it_is) {
  static constexpr mcp::Tool kRefuse[] = {mcp::tool<refuse>({.name = "refuse"})};
  for (const bool has_room : {true, false}) {
    serving(
        [has_room](mcp::McpServerOptions& options) {
          options.tools = kRefuse;
          if (!has_room) options.max_result_bytes = 4096;
        },
        [&](Stage& stage, http::Server&) {
          const std::string refusal = ask(stage.address, legacy_call(begin(stage.address), 7, "refuse"));
          expect(holds(refusal, R"({"jsonrpc":"2.0","id":7,"error":{"code":-32050,"message":"no")"));
          expect(refusal.ends_with(has_room ? "yyy\"}}" : R"("message":"no"}})"));
        });
  }
}

TEST(McpSessions, a_flaw_in_a_batch_is_answered_however_long_its_id_is) {
  serving([&](Stage& stage) {
    const std::string id = '"' + std::string(120, 'i') + '"';
    std::string request =
        legacy(begin(stage.address, "2025-03-26"), R"([{"jsonrpc":"2.0","id":)" + id + R"(,"method":7}])");
    request.replace(request.find("2025-11-25"), 10, "2025-03-26");
    expect(holds(ask(stage.address, request), R"([{"jsonrpc":"2.0","id":)" + id + R"(,"error":{"code":-32600)"));
  });
}

TEST(McpSessions, a_client_that_takes_a_long_event_slowly_gets_all_of_it) {
  static constexpr mcp::Tool kHuge[] = {mcp::tool<huge>({.name = "huge"})};
  constexpr auto kPatience = 1000ms;
  everywhere([&] {
    mcp::McpServerOptions options{.tools = kHuge, .max_result_bytes = 2 * kHugeBytes};
    auto made = mcp::McpServer::create(options);
    auto server = http::Server::create({.handler = *made, .write_timeout = kPatience});
    auto listener = TcpListener::listen(*Address::parse("127.0.0.1:0"));
    const Address address = listener->local_address();
    expect(server && server->add(std::move(*listener)) && server->start());
    McpPeer peer(address);
    const int little = 64 * 1024;
    ::setsockopt(peer.stream.fd(), SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
    peer.say(legacy_call(begin(address), 7, "huge", R"(,"_meta":{"progressToken":1})"));
    static char piece[64 * 1024];
    std::size_t xs = 0;
    std::string end;
    for (Deadline slow = Deadline::never();;) {
      const auto got = peer.stream.read(piece, soon());
      if (!got || *got == 0) break;
      xs += static_cast<std::size_t>(std::count(piece, piece + *got, 'x'));
      end.assign(piece + *got - std::min<std::size_t>(*got, 16), piece + *got);
      // The server begins the long event once it has made the text.
      if (slow.is_never() && xs > 0) slow = Deadline::after(kPatience + kPatience / 2);
      if (!slow.passed()) static_cast<void>(sleep(kPatience / 20));
    }
    expect(xs >= kHugeBytes && end.ends_with("}\n\n"));
    expect(server->stop(soon()).has_value());
  });
}

TEST(McpSessions, one_session_more_takes_the_place_of_the_most_silent) {
  serving([](mcp::McpServerOptions& options) { options.max_sessions = 2; },
          [&](Stage& stage, http::Server&) {
            const std::string first = begin(stage.address);
            const std::string second = begin(stage.address);
            ask(stage.address, legacy(first, kPing));
            const std::string third = begin(stage.address);
            expect(ask(stage.address, legacy(second, kPing)).starts_with("HTTP/1.1 404"));
            expect(ask(stage.address, legacy(first, kPing)).starts_with("HTTP/1.1 200"));
            expect(ask(stage.address, legacy(third, kPing)).starts_with("HTTP/1.1 200"));
          });
}

TEST(McpSessions, a_session_at_rest_costs_400_bytes_at_most) {
  serving([&](Stage& stage) {
    const std::size_t before = account::mcp.used();
    for (int i = 0; i < 10; ++i) expect(!begin(stage.address).empty());
    expect(until([&] { return account::mcp.used() <= before + 10 * 400; }, soon()));
  });
}

}  // namespace mcp_sessions_test
