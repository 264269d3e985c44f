#pragma once

#include <coir/detail/accounts.h>
#include <coir/format.h>
#include <string.h>

#include <optional>
#include <string_view>

#include "base/buffer_pool.h"
#include "proxy/forwarder.h"
#include "proxy/upstreams/upstream.h"
#include "tests/unit/client/scripted_server.h"
#include "tests/unit/http/handler_server.h"

namespace coir::test {

using http::Forwarder;
using http::ForwardRules;
using http::UpstreamGroup;

// look_often has the times of what rests looked at every 10 ms, instead of once a second.
inline void look_often(ServerOptions& options) {
  options.handshake_timeout = std::chrono::milliseconds(40);
}

inline constexpr std::string_view kHello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Name: board\r\n\r\nhello";

// Heard is what an upstream has heard, for the test to look at once its client has the answer.
struct Heard {
  char text[16384];
  std::atomic<std::size_t> size{0};
  void keep(std::string_view more) {
    const std::size_t fits = std::min(more.size(), sizeof text - size);
    if (fits != 0) memcpy(text + size, more.data(), fits);
    size += fits;
  }
  std::string_view view() const { return {text, size}; }
  bool has(std::string_view what) const { return view().find(what) != std::string_view::npos; }
  int count(std::string_view what) const {
    int found = 0;
    for (std::size_t at = 0; (at = view().find(what, at)) != std::string_view::npos; at += what.size()) ++found;
    return found;
  }
};

// keep_head answers the first requests of each connection, and keeps their heads.
inline ScriptedServer::Script keep_head(Heard& heard, std::string_view answer = kHello) {
  return [&heard, answer](Peer& peer) {
    for (std::string_view head = peer.hear(); !head.empty(); head = peer.hear()) {
      heard.keep(head);
      if (!peer.say(answer)) return;
    }
  };
}

// keep_nothing answers what else comes.
inline void keep_nothing(Peer& peer) {
  while (!peer.hear().empty() && peer.say(kHello)) {
  }
}

// Gateway is the group of tests of a proxy between clients and an upstream that plays a script.
class Gateway : public HandlerServer {
 public:
  struct Stage {
    Forwarder* forwarder;
    UpstreamGroup* group;
    ForwardRules rules;
    http::RequestRules own = {};
    bool waits_first = false;  // the handler has waited by then
    std::uint16_t port = 0;    // of the upstream
  };

  TlsContextSlot* tls = nullptr;  // null: plain clients

  // through runs `visit` beside a server that forwards to an upstream of that script, in every kind of run. Nothing may
  // be left of it.
  template <class Visit>
  void through(ScriptedServer::Script script, const ForwardRules& rules, ServerOptions options, Visit visit) {
    script_ = &script;
    // A handshake has its time.
    if (tls == nullptr) look_often(options);
    options.handler = [](Exchange& exchange) {
      Stage& stage = *stage_;
      if (stage.waits_first) static_cast<void>(sleep(std::chrono::milliseconds(1)));
      stage.forwarder->forward(exchange, *stage.group, stage.rules, stage.own);
    };
    std::optional<ScriptedServer> upstream;
    std::optional<http::Upstreams> group;
    std::optional<Forwarder> forwarder;
    Stage stage;
    serving(options, tls, [&](Server& server, const Address& address, Seen&) {
      const std::size_t streams = account::streams.used();
      const std::size_t buffers = account::buffers.used() - Buffer::spare_bytes();
      upstream.emplace(script);
      char url[32];
      group.emplace(std::move(*http::Upstreams::create(coir::format(url, "http://127.0.0.1:", upstream->port()))));
      forwarder.emplace(std::move(*Forwarder::create()));
      stage = {.forwarder = &*forwarder, .group = &group->group(), .rules = rules, .port = upstream->port()};
      stage_ = &stage;
      visit(server, address, stage);
      expect(server.stop(soon()).has_value());
      expect(forwarder->streams() == 0);
      forwarder.reset();
      group.reset();
      upstream.reset();
      expect(account::streams.used() == streams);
      expect(account::buffers.used() - Buffer::spare_bytes() == buffers);
    });
  }
  template <class Visit>
  void through(ScriptedServer::Script script, Visit visit) {
    through(std::move(script), {}, {}, [&](Server&, const Address& address, Stage& stage) { visit(address, stage); });
  }
  template <class Visit>
  void through(ScriptedServer::Script script, const ForwardRules& rules, Visit visit) {
    through(std::move(script), rules, {},
            [&](Server&, const Address& address, Stage& stage) { visit(address, stage); });
  }

 private:
  const ScriptedServer::Script* script_ = nullptr;
  static inline Stage* stage_ = nullptr;
};

// all that a client has heard.
inline std::string_view heard_by(const Client& client) {
  return {client.memory.data(), client.have};
}

}  // namespace coir::test
