// Want of memory or descriptors at any one point of a call, a session and a stream that listens: the n-th charge to the
// ledger is refused, or the n-th call to the kernel of a kind fails, for n = 1, 2, 3 ... until a life meets none. The
// client is refused or its connection ends, never left waiting; the next lives as if nothing had been; nothing is left
// over.

#include <coir/mcp.h>

#include <optional>

#include "tests/unit/http/faulty_streams.h"

namespace mcp_faults_test {

using namespace coir::test;
using namespace std::chrono_literals;
namespace http = coir::http;
namespace mcp = coir::mcp;

namespace {

std::optional<mcp::McpServer> g_server;

// More than the scratch memory holds: the result grows on the heap.
void tell(mcp::Call& call) {
  call.progress(1, 2, "half");
  for (int i = 0; i < 20; ++i) call.text({large, 400});
  call.text("the end");
}
void ask(mcp::Call& call) {
  call.keep_state("a state");
  const auto answer = call.elicit("q", "Who?", R"({"type":"object","properties":{}})");
  if (answer) call.text("answered");
}

constexpr mcp::Tool kTools[] = {mcp::tool<tell>({.name = "tell"}), mcp::tool<ask>({.name = "ask"})};

bool answer(http::Exchange& exchange) {
  const std::string_view path = exchange.request().path;
  if (path == "/mcp") return (*g_server)(exchange), true;
  if (path != "/change") return false;
  g_server->list_changed(mcp::ItemKind::tools);
  exchange.close_after();
  return exchange.respond_status(204), true;
}

// change asks until it is done: it may be this that meets the failure.
bool change(StreamPeer& peer) {
  for (int attempt = 0; attempt < 3; ++attempt) {
    StreamPeer other(peer.port());
    if (other.say("GET /change HTTP/1.1\r\nHost: localhost\r\n\r\n") && other.hears_head("204")) return true;
  }
  return false;
}

#define COIR_META                                                                              \
  "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"progressToken\":1," \
  "\"io.modelcontextprotocol/clientCapabilities\":{\"elicitation\":{}}}"

bool say(StreamPeer& peer, std::string_view method, std::string_view name, std::string_view body, bool modern = true) {
  char request[2048];
  const int size = snprintf(
      request, sizeof request,
      "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
      "Content-Length: %zu\r\n%s%.*s%s%.*s\r\n\r\n%.*s",
      body.size(), modern ? "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: " : "X: ", static_cast<int>(method.size()),
      method.data(), name.empty() ? "" : "\r\nMcp-Name: ", static_cast<int>(name.size()), name.data(),
      static_cast<int>(body.size()), body.data());
  return peer.say({request, static_cast<std::size_t>(size)});
}

constexpr StreamLife kLives[] = {
    {"a call",
     [](StreamPeer& peer) {
       return say(peer, "tools/call", "tell",
                  R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tell",)" COIR_META "}}") &&
              peer.hears_head("200") && peer.finds("\"half\"");
     },
     [](StreamPeer& peer) { return peer.finds("the end") && peer.ends(); }},
#if COIR_TLS
    {"a call that asks",
     [](StreamPeer& peer) {
       return say(peer, "tools/call", "ask",
                  R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask",)" COIR_META "}}") &&
              peer.hears_head("200");
     },
     [](StreamPeer& peer) { return peer.finds("requestState") && peer.ends(); }},
#endif
    {"a session",
     [](StreamPeer& peer) {
       return say(peer, "", "",
                  R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}})",
                  false) &&
              peer.hears_head("200");
     },
     [](StreamPeer& peer) { return peer.finds("2025-11-25") && peer.ends(); }},
    {"a stream that listens",
     [](StreamPeer& peer) {
       return say(peer, "subscriptions/listen", "",
                  R"({"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},)" COIR_META
                  "}}") &&
              peer.hears_head("200") && peer.finds("acknowledged") && peer.finds("\n\n");
     },
     [](StreamPeer& peer) { return change(peer) && peer.finds("list_changed") && peer.finds(":\n\n"); }},
};

}  // namespace

struct McpFaultsServer : FaultyStreams {
  bool prepare() override {
    auto server = mcp::McpServer::create({.tools = kTools, .keep_alive = 5ms, .max_sessions = 1});
    if (server) g_server.emplace(std::move(*server));
    site.also = answer;
    return g_server.has_value();
  }
  void release() override { g_server.reset(); }
  std::size_t kept() const override { return g_server->gauges().listeners + g_server->gauges().calls; }
};

TEST_GROUP_BASE(McpFaults, McpFaultsServer) {};

TEST(McpFaults, any_failure_ends_one_request) {
  whatever_fails(kLives);
  met({Call::charge, Call::close, Call::recv, Call::send, Call::setsockopt});
}

TEST(McpFaults, a_server_stops_though_something_fails) {
  a_stop_while_something_fails(std::span(kLives).last(1));
}

}  // namespace mcp_faults_test
