#pragma once

#include <coir/event.h>
#include <coir/fiber.h>
#include <coir/format.h>
#include <coir/http/server.h>
#include <coir/mcp.h>
#include <coir/spinlock.h>
#include <coir/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/everywhere.h"
#include "tests/support/until.h"

// A server of MCP with a few tools, and clients that speak HTTP by hand.
namespace coir::test {

using namespace std::chrono_literals;

inline Deadline soon() {
  return Deadline::after(100s);
}

// McpPeer is one connection, and what it has heard.
struct McpPeer {
  TcpStream stream;
  std::string heard;

  explicit McpPeer(const Address& to) {
    if (auto connected = TcpStream::connect(to, soon())) stream = std::move(*connected);
  }
  bool say(std::string_view text) { return stream.write(text, soon()).has_value(); }
  bool hear() {
    char piece[4096];
    const auto got = stream.read(piece, soon());
    if (got) heard.append(piece, *got);
    return got.has_value();
  }
  bool hears(std::string_view text) {
    while (heard.find(text) == std::string::npos) {
      if (!hear()) return false;
    }
    return true;
  }
  bool hears_end() {
    while (hear()) {
    }
    return true;
  }
  bool has(std::string_view text) const { return heard.find(text) != std::string::npos; }
  // answer is what follows once a whole response with a length has come.
  bool whole() {
    if (!hears("\r\n\r\n")) return false;
    const std::size_t head = heard.find("\r\n\r\n") + 4;
    const std::size_t at = heard.find("Content-Length: ");
    if (at == std::string::npos || at > head) return hears_end();
    const std::size_t length = strtoul(heard.c_str() + at + 16, nullptr, 10);
    while (heard.size() < head + length) {
      if (!hear()) return false;
    }
    return true;
  }
  void reset() {
    const linger now{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(stream.fd(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
    stream.close();
  }
};

// Stage is a server and what its tools tell the test.
struct Stage {
  mcp::McpServer* mcp = nullptr;
  Address address;
  Event go;                       // what `hold` waits for
  std::atomic<int> holding{0};    // calls of `hold` under way
  std::atomic<int> cancelled{0};  // of which were cancelled
  std::atomic<int> finished{0};
  // says waits until the latest line that was audited begins so. A call is audited behind its response.
  bool says(std::string_view text) {
    return until(
        [&] {
          const Locked locked(lock);
          return std::string_view(audit).starts_with(text);
        },
        soon());
  }
  Spinlock lock;
  std::string audit;
  std::chrono::milliseconds took{0};  // as the latest line has it
};

inline constexpr std::string_view kMeta =
    R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}})";

// post is a request with its content's length.
inline std::string post(std::string_view fields, std::string_view body) {
  char length[64];
  std::string text = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
  text += coir::format(length, "Content-Length: ", body.size(), "\r\n");
  text += fields;
  text += "\r\n";
  text += body;
  return text;
}

// modern is a request of 2026-07-28; `params` are members behind _meta, with a comma before them, or empty.
inline std::string modern(std::string_view method, std::string_view params = {}, std::string_view name = {},
                          std::string_view meta = kMeta) {
  std::string fields = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: " + std::string(method) + "\r\n";
  if (!name.empty()) fields += "Mcp-Name: " + std::string(name) + "\r\n";
  return post(fields, R"({"jsonrpc":"2.0","id":1,"method":")" + std::string(method) + R"(","params":{)" +
                          std::string(meta) + std::string(params) + "}}");
}
inline std::string modern_call(std::string_view tool, std::string_view arguments = "{}") {
  return modern("tools/call", R"(,"name":")" + std::string(tool) + R"(","arguments":)" + std::string(arguments), tool);
}

// legacy is a request of a session.
inline std::string legacy(std::string_view session, std::string_view body) {
  return post("Mcp-Session-Id: " + std::string(session) + "\r\nMCP-Protocol-Version: 2025-11-25\r\n", body);
}
inline std::string legacy_call(std::string_view session, int id, std::string_view tool, std::string_view rest = {}) {
  char number[16];
  return legacy(session, R"({"jsonrpc":"2.0","id":)" + std::string(coir::format(number, id)) +
                             R"(,"method":"tools/call","params":{"name":")" + std::string(tool) + "\"" +
                             std::string(rest) + "}}");
}
inline std::string initialize(std::string_view version = "2025-11-25") {
  return post({}, R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":")" +
                      std::string(version) +
                      R"(","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}})");
}

// ask is what a request is answered, head and content.
inline std::string ask(const Address& to, const std::string& request) {
  McpPeer peer(to);
  peer.say(request);
  peer.whole();
  return peer.heard;
}
// begin is the id of a new session.
inline std::string begin(const Address& to, std::string_view version = "2025-11-25") {
  const std::string heard = ask(to, initialize(version));
  const std::size_t at = heard.find("Mcp-Session-Id: ");
  return at == std::string::npos ? std::string() : heard.substr(at + 16, 32);
}

inline bool holds(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

struct Echo {
  std::string_view text;
};
inline constexpr auto kEcho = mcp::fields(mcp::field<&Echo::text>("text").mirrored("Text"));

namespace tools {

inline void echo(mcp::Call& call, const Echo& arguments) {
  call.text(arguments.text);
}
inline void hold(mcp::Call& call) {
  Stage& stage = call.context<Stage>();
  call.progress(1, 2);
  ++stage.holding;
  const auto waited = stage.go.wait();
  --stage.holding;
  if (!waited) {
    ++stage.cancelled;
    return;
  }
  ++stage.finished;
  call.text("held");
}
inline void large(mcp::Call& call) {
  char text[1000];
  memset(text, 'x', sizeof text);
  for (int i = 0; i < 1000; ++i) call.text({text, sizeof text});
}
inline void slow(mcp::Call& call) {
  static_cast<void>(call);
  static_cast<void>(sleep(1h));
}
inline void name(mcp::Call& call) {
  const auto answer = call.elicit("name", "Who?", R"({"type":"object","properties":{"n":{"type":"string"}}})");
  if (answer) call.text((*answer)["content"]["n"].text().value_or("nobody"));
}
inline void twice(mcp::Call& call) {
  call.progress(1, 2, "half");
  call.log(mcp::LogLevel::warning, "a line");
  call.text("twice");
}
inline void leave(mcp::Call& call) {
  call.disconnect();
  static_cast<void>(call.context<Stage>().go.wait());
  call.text("the rest");
}

}  // namespace tools

inline constexpr mcp::Tool kTools[] = {
    mcp::tool<tools::echo, kEcho>({.name = "echo", .read_only = true}),
    mcp::tool<tools::hold>({.name = "hold"}),
    mcp::tool<tools::large>({.name = "large"}),
    mcp::tool<tools::slow>({.name = "slow", .deadline = 20ms}),
    mcp::tool<tools::name>({.name = "name"}),
    mcp::tool<tools::twice>({.name = "twice"}),
    mcp::tool<tools::leave>({.name = "leave"}),
};
inline constexpr mcp::Resource kResources[] = {
    {.uri = "t://one", .name = "one", .read = [](mcp::Call& call) { call.text("1"); }},
};

// McpServer is the group of tests beside a server.
class McpServer : public Everywhere {
 public:
  std::size_t max_active = http::ServerOptions().max_active;

  mcp::McpServerOptions options(Stage& stage) const {
    return {.name = "t",
            .version = "1",
            .tools = kTools,
            .resources = kResources,
            .context = &stage,
            .audit = [&of = stage](const mcp::Audit& line) {
              char text[200];
              const Locked locked(of.lock);
              of.took = line.took;
              of.audit =
                  coir::format(text, line.who, "|", line.method, "|", line.name, "|", line.outcome, "|", line.code);
            }};
  }
  template <class Change, class Visit>
  void serving(Change change, Visit visit) {
    everywhere([&] {
      Stage stage;
      mcp::McpServerOptions chosen = options(stage);
      change(chosen);
      {
        auto made = mcp::McpServer::create(chosen);
        expect(made.has_value());
        if (!made) return;
        stage.mcp = &*made;
        const auto handler = [&made](http::Exchange& exchange) {
          if (exchange.request().path.starts_with("/.well-known")) return made->serve_metadata(exchange);
          (*made)(exchange);
        };
        auto server = http::Server::create({.handler = handler, .max_active = max_active});
        auto listener = TcpListener::listen(*Address::parse("127.0.0.1:0"));
        stage.address = listener->local_address();
        expect(server && server->add(std::move(*listener)) && server->start());
        visit(stage, *server);
        stage.go.set();
        expect(server->stop(soon()).has_value());
        expect(server->gauges().open == 0);
      }
      expect(account::mcp.used() == 0);
    });
  }
  template <class Visit>
  void serving(Visit visit) {
    serving([](mcp::McpServerOptions&) {}, [&](Stage& stage, http::Server&) { visit(stage); });
  }
};

}  // namespace coir::test
