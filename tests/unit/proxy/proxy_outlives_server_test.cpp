// How a proxy continues when its server does not: one of two servers stops, or the run is shut down while exchanges rest.

#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>
#include <coir/program.h>

#include "tests/support/child.h"
#include "tests/unit/proxy/gateway.h"

namespace proxy_outlives_server_test {

using namespace coir::test;
using namespace coir::http;
using coir::Address;
using coir::TcpListener;

TEST_GROUP_BASE(ProxyOutlivesServer, Gateway) {};

TEST(ProxyOutlivesServer, behind_two_servers_of_which_one_has_stopped_connections_rest) {
  Heard heard;
  through(keep_head(heard), [&](const Address& address, Stage& stage) {
    const auto asks = [&](const Address& at) {
      Client client(at);
      expect(client.say(kGet) && client.hear("hello"));
      return until([&] { return stage.group->state().resting == 1; }, soon());
    };
    {
      static Stage* at;
      at = &stage;
      auto first = Server::create(
          {.handler = [](Exchange& exchange) { at->forwarder->forward(exchange, *at->group, at->rules); }});
      auto listener = TcpListener::listen(*Address::parse("127.0.0.1:0"));
      const Address own = listener->local_address();
      expect(first->add(std::move(*listener)) && first->start());
      expect(asks(own));
      expect(first->stop(soon()).has_value() && stage.group->state().resting == 0);
      expect(asks(address));
    }
    expect(asks(address));
  });
}

namespace {

struct Cut {
  const coir::http::ForwardRules rules;
  std::optional<Upstreams> upstreams;
  std::optional<Forwarder> forwarder;
};

}  // namespace

// An event stream rests, or a request that is not answered. The server is destroyed behind the run's end.
TEST(ProxyOutlivesServer, a_run_that_is_cut_off_leaks_no_record) {
  for (const bool answers : {true, false}) {
    const ChildEnd end = in_child([&] {
      static constexpr std::string_view kEvents = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
      std::atomic<bool> asked = false;
      ScriptedServer upstream([&](Peer& peer) {
        peer.hear();
        if (answers) peer.say(kEvents);
        asked = true;
        peer.until_gone();
      });
      Cut cut;
      std::optional<Server> server;
      std::optional<Client> client;
      const int status = coir::run([&] {
        char url[32];
        cut.upstreams.emplace(std::move(*Upstreams::create(coir::format(url, "http://127.0.0.1:", upstream.port()))));
        cut.forwarder.emplace(std::move(*Forwarder::create()));
        server.emplace(*Server::create({.handler = [&cut](Exchange& exchange) {
          cut.forwarder->forward(exchange, cut.upstreams->group(), cut.rules);
        }}));
        auto listener = *TcpListener::listen(*Address::parse("127.0.0.1:0"));
        const Address address = listener.local_address();
        if (!server->add(std::move(listener)) || !server->start()) return 9;
        if (!client.emplace(address).say(kGet) || (answers && !client->hear("\r\n\r\n"))) return 9;
        if (!until([&] { return asked && server->gauges().active == 0; }, soon())) return 9;
        coir::shutdown();
        return 0;
      });
      server.reset();
      cut.forwarder.reset();
      cut.upstreams.reset();
      client.reset();
      return status != 0 ? status : coir::account::streams.used() == 0 ? 0 : 8;
    });
    LONGS_EQUAL(0, end.status);
    STRCMP_EQUAL("", end.output);
  }
}

}  // namespace proxy_outlives_server_test
