#pragma once

#include <coir/mcp/client.h>
#include <coir/mcp/detail/account.h>
#include <coir/runtime.h>
#include <stdio.h>
#include <stdlib.h>

#include <string_view>

#include "tests/support/expectations.h"
#include "tests/unit/client/scripted_server.h"

namespace coir::test {

// McpPeer is the server's side of one connection, message by message, with nothing of coir's MCP.
class McpPeer {
 public:
  explicit McpPeer(Peer& peer) : peer_(peer) {}

  // hear reads one request with its content. False: the client is gone.
  bool hear() {
    head = peer_.hear();
    if (head.empty()) return false;
    const std::size_t at = head.find("Content-Length: ");
    const std::size_t bytes = at == head.npos ? 0 : strtoul(head.data() + at + 16, nullptr, 10);
    body = peer_.hear_content(bytes);
    return true;
  }
  bool is(std::string_view method) const { return has(body, "\"method\":\"", method, "\""); }
  bool has_field(std::string_view name, std::string_view value) const { return has(head, name, ": ", value, "\r\n"); }
  bool says(std::string_view text) const { return body.find(text) != body.npos; }
  bool gets(std::string_view verb) const { return head.starts_with(verb); }
  // id is the request's, as it was sent.
  std::string_view id() const {
    const std::size_t at = body.find("\"id\":");
    if (at == body.npos) return "null";
    return body.substr(at + 5, body.find_first_of(",}", at) - at - 5);
  }

  bool say(std::string_view text) { return peer_.say(text); }
  // json answers with a status and a text; `fields` are lines with their ends.
  bool json(std::string_view text, const char* status = "200 OK", std::string_view fields = {}) {
    char start[256];
    snprintf(start, sizeof start, "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n", status,
             text.size());
    return say(start) && say(fields) && say("\r\n") && say(text);
  }
  bool empty(const char* status) {
    char start[128];
    snprintf(start, sizeof start, "HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n", status);
    return say(start);
  }
  // result and error answer what was heard.
  bool result(std::string_view members, std::string_view fields = {}) {
    char text[4096];
    return json(message(text, "\"result\":{", members, "}"), "200 OK", fields);
  }
  bool error(int code, const char* status, std::string_view data = "{}") {
    char own[1024], text[2048];
    const int size = snprintf(own, sizeof own, "\"error\":{\"code\":%d,\"message\":\"no\",\"data\":%.*s}", code,
                              static_cast<int>(data.size()), data.data());
    return json(message(text, {own, static_cast<std::size_t>(size)}), status);
  }
  // A stream of events: begin, then one for each message, then the answer.
  bool begin_events(std::string_view fields = {}) {
    return say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n") && say(fields) &&
           say("\r\n");
  }
  bool chunk(std::string_view text) {
    char size[32];
    snprintf(size, sizeof size, "%zx\r\n", text.size());
    return say(size) && say(text) && say("\r\n");
  }
  bool event(std::string_view data, std::string_view more = {}) {
    char text[4096];
    const int size = snprintf(text, sizeof text, "%.*sdata: %.*s\n\n", static_cast<int>(more.size()), more.data(),
                              static_cast<int>(data.size()), data.data());
    return chunk({text, static_cast<std::size_t>(size)});
  }
  bool result_event(std::string_view members, std::string_view more = {}) {
    char text[4096];
    return event(message(text, "\"result\":{", members, "}"), more);
  }
  bool end_events() { return say("0\r\n\r\n"); }

  Peer& peer() { return peer_; }

  std::string_view head, body;

 private:
  template <class... Parts>
  static bool has(std::string_view where, Parts... parts) {
    char text[512] = {};
    std::size_t used = 0;
    ((memcpy(text + used, std::string_view(parts).data(), std::string_view(parts).size()),
      used += std::string_view(parts).size()),
     ...);
    return where.find(std::string_view(text, used)) != where.npos;
  }
  std::string_view message(std::span<char> into, std::string_view a, std::string_view b = {}, std::string_view c = {}) {
    const std::string_view own = id();
    const int size = snprintf(into.data(), into.size(), "{\"jsonrpc\":\"2.0\",\"id\":%.*s,%.*s%.*s%.*s}",
                              static_cast<int>(own.size()), own.data(), static_cast<int>(a.size()), a.data(),
                              static_cast<int>(b.size()), b.data(), static_cast<int>(c.size()), c.data());
    return {into.data(), std::min(static_cast<std::size_t>(size), into.size() - 1)};
  }

  Peer& peer_;
};

// mcp_script answers each request of a connection by `answer`, which returns false to hang up.
template <class Answer>
ScriptedServer::Script mcp_script(Answer answer) {
  return [answer](Peer& peer) {
    McpPeer server(peer);
    while (server.hear() && answer(server)) {
    }
  };
}

constexpr std::string_view kModern = R"("resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{})";

// WithClient runs a body beside a client of a scripted server, with one worker and with two.
class WithClient : public Expecting {
 public:
  template <class Body>
  void with(const ScriptedServer::Script& script, mcp::McpClientOptions options, Body body) {
    for (const unsigned workers : {1u, 2u}) {
      const auto ended = run_until_idle({.workers = workers}, [&] {
        const ScriptedServer server(script);
        options.url = server.url("/mcp");
        auto client = mcp::McpClient::create(options);
        expect(client.has_value());
        if (client) body(*client);
      });
      check();
      CHECK_TRUE(ended.has_value());
      CHECK_EQUAL(0u, account::mcp.used());
    }
  }
};

}  // namespace coir::test
