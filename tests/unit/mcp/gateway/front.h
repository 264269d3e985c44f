#pragma once

#include <coir/http/server.h>
#include <coir/mcp.h>
#include <coir/mcp/gateway.h>
#include <coir/nursery.h>
#include <coir/program.h>

#include <atomic>
#include <memory>
#include <optional>

#include "tests/support/until.h"
#include "tests/unit/mcp/client/scripted_mcp.h"

namespace coir::test {

// Front is a server of ours with mounts, and a client of it.
class Front {
 public:
  explicit Front(std::span<const mcp::Mount> mounts, mcp::GatewayOptions options = {},
                 const mcp::McpClientOptions& as_client = {}) {
    options.changed = [&own = *this](mcp::ItemKind kind) {
      ++own.changes;
      if (own.mcp_) own.mcp_->list_changed(kind);
    };
    options.updated = [&own = *this](std::string_view uri) {
      if (own.mcp_) own.mcp_->resource_updated(uri);
    };
    options.wanted = [&own = *this](std::string_view uri) { return own.mcp_ && own.mcp_->wants(uri); };
    if (options.pause == std::chrono::seconds(1)) options.pause = std::chrono::milliseconds(1);
    auto gateway = mcp::Gateway::create(mounts, options);
    if (!gateway) __builtin_trap();
    gateway_.emplace(std::move(*gateway));
    sources_[0] = &gateway_->source();
    mcp::McpServerOptions serving;
    serving.sources = sources_;
    auto made = mcp::McpServer::create(serving);
    if (!made) __builtin_trap();
    mcp_.emplace(std::move(*made));
    auto listener = TcpListener::listen(*Address::parse("127.0.0.1:0"));
    if (!listener) __builtin_trap();
    const std::uint16_t port = listener->local_address().port();
    auto http = http::Server::create({.handler = *mcp_, .handler_stack = 16 * 1024});
    if (!http || !http->add(std::move(*listener)) || !http->start()) __builtin_trap();
    http_.emplace(std::move(*http));
    mcp::McpClientOptions asking = as_client;
    asking.url = coir::format(url_, "http://127.0.0.1:", port, "/mcp");
    auto client = mcp::McpClient::create(asking);
    if (!client) __builtin_trap();
    client_.emplace(std::move(*client));
    run_ = spawn([this] { return gateway_->run(); });
  }
  ~Front() {
    gateway_->close();
    if (!run_.await()) __builtin_trap();
    client_.reset();
    if (!http_->stop(Deadline::after(std::chrono::seconds(10)))) __builtin_trap();
    http_.reset();
    mcp_.reset();
  }

  mcp::McpClient& client() { return *client_; }
  mcp::Gateway& gateway() { return *gateway_; }
  bool is_up(std::size_t mount) { return gateway_->gauges(mount).up; }
  void until_up() {
    until([&] {
      for (std::size_t i = 0; i < gateway_->mounts(); ++i) {
        if (!is_up(i)) return false;
      }
      return true;
    });
  }
  // names lists the names of a kind, each with a space behind it.
  std::string_view names(mcp::Listed kind) {
    std::size_t used = 0;
    const char* const key = kind == mcp::Listed::resources   ? "uri"
                            : kind == mcp::Listed::templates ? "uriTemplate"
                                                             : "name";
    const auto listed = client_->list(kind,
                                      [&](JsonView item, std::string_view) noexcept {
                                        const auto name = item[key].text();
                                        if (!name || used + name->size() + 1 > sizeof names_) return false;
                                        memcpy(names_ + used, name->data(), name->size());
                                        used += name->size();
                                        names_[used++] = ' ';
                                        return true;
                                      },
                                      {.deadline = Deadline::after(std::chrono::seconds(60))});
    return listed ? std::string_view(names_, used) : "failed";
  }

  std::atomic<unsigned> changes = 0;

 private:
  mcp::Source* sources_[1] = {};
  std::optional<mcp::Gateway> gateway_;
  std::optional<mcp::McpServer> mcp_;
  std::optional<http::Server> http_;
  std::optional<mcp::McpClient> client_;
  Task<void> run_;
  char url_[64];
  char names_[1024];
};

// Upstream is a server by a script of McpPeer's, mounted as `up`.
struct Upstream {
  template <class Answer>
  Upstream(Answer answer, mcp::Mount mount) : server(mcp_script(answer)), mounts{mount} {
    mounts[0].prefix = "up";
    mounts[0].upstream.url = server.url("/mcp");
  }

  ScriptedServer server;
  mcp::Mount mounts[1];
};

// FrontOf is a front of one such server, once that is up.
struct FrontOf : private Upstream, Front {
  template <class Answer>
  explicit FrontOf(Answer answer, mcp::GatewayOptions options = {}, mcp::Mount mount = {})
      : Upstream(answer, mount), Front(mounts, options) {
    until_up();
  }
};

inline mcp::CallOptions patience() {
  return {.deadline = Deadline::after(std::chrono::seconds(60))};
}

// begin_changes begins a stream of changes.
inline bool begin_changes(McpPeer& server) {
  return server.begin_events() &&
         server.event(R"({"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{}})");
}

// stay holds a stream until its client is gone, and ends the connection.
inline bool stay(McpPeer& server) {
  server.peer().until_gone();
  return false;
}

// modern answers as a server with these tools and resources, whose tools answer their own name.
inline bool modern(McpPeer& server, std::string_view tools, std::string_view resources = "") {
  char text[1024];
  const auto list = [&](const char* member, std::string_view items) {
    snprintf(text, sizeof text, R"("resultType":"complete","ttlMs":60000,"cacheScope":"public","%s":[%.*s])", member,
             static_cast<int>(items.size()), items.data());
    return server.result(text);
  };
  if (server.is("server/discover")) return server.result(kModern);
  if (server.is("tools/list")) return list("tools", tools);
  if (server.is("resources/list")) return list("resources", resources);
  if (server.is("resources/templates/list")) return list("resourceTemplates", R"({"uriTemplate":"t:{x}","name":"t"})");
  if (server.is("prompts/list")) return list("prompts", R"({"name":"p"})");
  if (server.is("subscriptions/listen")) {
    begin_changes(server);
    return stay(server);
  }
  return server.result(R"("resultType":"complete","content":[{"type":"text","text":"done"}])");
}

inline constexpr std::string_view kAdd = R"({"name":"add","inputSchema":{"type":"object"}})";

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

// WithMounts runs a body in every kind of run, and looks that nothing is left of it.
class WithMounts : public Expecting {
 public:
  template <class Body>
  void with(Body body) {
    for (const unsigned workers : {1u, 2u}) {
      const auto ended = run_until_idle({.workers = workers}, body);
      check();
      CHECK_TRUE(ended.has_value());
      CHECK_EQUAL(0u, account::mcp.used());
    }
  }
};

}  // namespace coir::test
