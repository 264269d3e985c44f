// Streams that listen: told first what they will hear of, then that, and nothing else; a record while nothing comes.

#include <coir/detail/accounts.h>

#include <memory>

#include "mcp/sessions/sessions.h"
#include "mcp_stage.h"

namespace mcp_listening_test {

using namespace coir;
using namespace coir::test;

TEST_GROUP_BASE(McpListening, McpServer) {};

namespace {

std::string listen(std::string_view filter) {
  return modern("subscriptions/listen", R"(,"notifications":)" + std::string(filter));
}

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; at += part.size()) ++found;
  return found;
}

}  // namespace

TEST(McpListening, the_first_message_says_what_will_be_heard) {
  serving([&](Stage& stage) {
    McpPeer peer(stage.address);
    // There are no prompts to hear of.
    peer.say(listen(R"({"toolsListChanged":true,"promptsListChanged":true,"resourceSubscriptions":["t://one"]})"));
    expect(peer.hears("\n\n"));
    expect(peer.has("X-Accel-Buffering: no"));
    expect(peer.has(R"(data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":)"
                    R"({"io.modelcontextprotocol/subscriptionId":1},"notifications":{"toolsListChanged":true,)"
                    R"("resourceSubscriptions":["t://one"]}}})"));
  });
}

TEST(McpListening, nothing_outside_the_filter_is_told) {
  serving([&](Stage& stage) {
    McpPeer peer(stage.address);
    peer.say(listen(R"({"resourcesListChanged":true,"resourceSubscriptions":["t://one"]})"));
    expect(peer.hears("acknowledged"));
    stage.mcp->list_changed(mcp::ItemKind::tools);
    stage.mcp->resource_updated("t://two");
    stage.mcp->resource_updated("t://one");
    stage.mcp->list_changed(mcp::ItemKind::resources);
    expect(peer.hears("resources/list_changed") && peer.hears("resources/updated"));
    expect(!peer.has("tools/list_changed") && !peer.has("t://two"));
    expect(peer.has(R"("uri":"t://one","_meta":{"io.modelcontextprotocol/subscriptionId":1})"));
  });
}

TEST(McpListening, a_server_that_stops_ends_the_request_in_order) {
  serving([](mcp::McpServerOptions&) {},
          [&](Stage& stage, http::Server& server) {
            McpPeer peer(stage.address);
            peer.say(listen(R"({"toolsListChanged":true})"));
            expect(peer.hears("acknowledged"));
            expect(until([&] { return stage.mcp->gauges().listeners == 1; }, soon()));
            server.begin_stop();
            expect(until([&] { return server.stopped(); }, soon()));
            expect(peer.hears_end());
            expect(peer.has(R"({"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","_meta":)"
                            R"({"io.modelcontextprotocol/subscriptionId":1}}})"));
          });
}

TEST(McpListening, many_changes_of_one_thing_pile_up_for_nobody) {
  serving([&](Stage& stage) {
    McpPeer peer(stage.address);
    peer.say(listen(R"({"toolsListChanged":true})"));
    expect(peer.hears("acknowledged"));
    const std::size_t before = account::mcp.used();
    for (int i = 0; i < 10'000; ++i) stage.mcp->list_changed(mcp::ItemKind::tools);
    expect(account::mcp.used() == before);
    expect(peer.hears("tools/list_changed"));
    expect(count(peer.heard, "list_changed") < 10'000);
  });
}

TEST(McpListening, a_stream_at_rest_costs_a_record) {
  serving([&](Stage& stage) {
    constexpr std::size_t kPeers = 20;
    const std::size_t before = account::mcp.used() + account::connections.used();
    std::vector<McpPeer> peers;
    for (std::size_t i = 0; i < kPeers; ++i) {
      peers.emplace_back(stage.address);
      peers.back().say(listen(R"({"toolsListChanged":true})"));
      expect(peers.back().hears("acknowledged"));
    }
    expect(until([&] { return stage.mcp->gauges().listeners == kPeers; }, soon()));
    const std::size_t each = (account::mcp.used() + account::connections.used() - before) / kPeers;
    // The kernel's part of that is an estimate.
    expect(each - http::kKernelBytesPerConnection <= 250);
    stage.mcp->list_changed(mcp::ItemKind::tools);
    for (McpPeer& each_peer : peers) expect(each_peer.hears("tools/list_changed"));
    peers.clear();
    expect(until([&] { return stage.mcp->gauges().listeners == 0; }, soon()));
  });
}

TEST(McpListening, a_silent_stream_hears_comments) {
  serving([](mcp::McpServerOptions& options) { options.keep_alive = 5ms; },
          [&](Stage& stage, http::Server&) {
            McpPeer peer(stage.address);
            peer.say(listen("{}"));
            expect(peer.hears("\n\n:\n\n"));
          });
}

TEST(McpListening, news_for_others_put_no_comment_off) {
  serving([](mcp::McpServerOptions& options) { options.keep_alive = 50ms; },
          [&](Stage& stage, http::Server&) {
            McpPeer silent(stage.address), busy(stage.address);
            silent.say(listen("{}"));
            expect(silent.hears("acknowledged"));
            busy.say(listen(R"({"toolsListChanged":true})"));
            expect(busy.hears("acknowledged"));
            std::atomic<bool> heard = false;
            auto changing = spawn([&] {
              while (!heard) {
                stage.mcp->list_changed(mcp::ItemKind::tools);
                if (!sleep(1ms)) return;
              }
            });
            expect(silent.hears("\n\n:\n\n"));
            heard = true;
            expect(changing.join().has_value());
          });
}

TEST(McpListening, more_than_an_acknowledgement_holds_is_refused) {
  serving([&](Stage& stage) {
    const auto subscribe = [&](unsigned count, std::size_t bytes) {
      std::string uris;
      for (unsigned i = 0; i < count; ++i) {
        uris += (i > 0 ? ",\"t://" : "\"t://") + std::to_string(i) + std::string(bytes, 'x') + "\"";
      }
      McpPeer peer(stage.address);
      peer.say(listen(R"({"resourceSubscriptions":[)" + uris + "]}"));
      expect(peer.hears("}"));
      return peer.has("acknowledged");
    };
    expect(subscribe(32, 100));
    expect(!subscribe(33, 100));
    expect(subscribe(14, 450));
    expect(!subscribe(20, 450));
  });
}

TEST(McpListening, a_legacy_session_listens_and_comes_again) {
  serving([&](Stage& stage) {
    const std::string session = begin(stage.address);
    const auto get = [&](std::string_view last) {
      std::string text =
          "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: " + session;
      if (!last.empty()) text += "\r\nLast-Event-ID: " + std::string(last);
      return text + "\r\n\r\n";
    };
    expect(holds(
        ask(stage.address,
            legacy(session, R"({"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"t://one"}})")),
        R"("result":{})"));
    McpPeer peer(stage.address);
    peer.say(get(""));
    expect(peer.hears("id: 0-0\nretry: 1000\ndata: \n\n"));
    stage.mcp->resource_updated("t://one");
    expect(peer.hears(
        "id: 0-1\ndata: "
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\",\"params\":{\"uri\":\"t://one\"}}\n\n"));
    // It hears of changes while it was away, and of those it says it has not had.
    peer.reset();
    expect(until([&] { return stage.mcp->gauges().listeners == 0; }, soon()));
    stage.mcp->list_changed(mcp::ItemKind::tools);
    McpPeer again(stage.address);
    again.say(get("0-0"));
    expect(again.hears("tools/list_changed") && again.hears("resources/updated"));
    // A second stream takes the place of the first.
    McpPeer second(stage.address);
    second.say(get(""));
    expect(again.hears_end());
    stage.mcp->list_changed(mcp::ItemKind::tools);
    expect(second.hears("tools/list_changed"));
  });
}

TEST(McpListening, a_record_stays_while_any_stream_sends_it) {
  everywhere([&] {
    const std::size_t before = account::mcp.used();
    // Too large for a fiber's stack.
    const auto made =
        std::make_unique<mcp::Listeners>(mcp::Listeners::Options{.keep_alive = 0ms, .retry = 1s, .most = 4});
    mcp::Listeners& listeners = *made;
    listeners.release_session = [](void*, mcp::Session*) noexcept {};
    mcp::Session session;
    listeners.enter(session.interests);
    expect(listeners.watch(session.interests, "t://one", 4).has_value());
    const std::size_t watched = account::mcp.used() - before;
    const auto sends = [&](mcp::Listener& one) {
      listeners.updated("t://one");
      return listeners.pick(one) && one.current != nullptr;
    };
    mcp::Listener* const early = listeners.make_listener({}, &session, &session.interests);
    expect(early != nullptr && sends(*early));
    // A second stream retires the first in the middle of an event, and nobody wants the resource any more.
    mcp::Listener* const late = listeners.make_listener({}, &session, &session.interests);
    expect(late != nullptr && early->retired);
    const std::size_t both = account::mcp.used();
    listeners.unwatch(session.interests, "t://one");
    expect(account::mcp.used() == both && early->current->uri() == "t://one");
    listeners.drop_listener(early);
    expect(both - account::mcp.used() >= watched);
    // Two streams send the same, and the session ends.
    expect(listeners.watch(session.interests, "t://one", 4).has_value());
    expect(sends(*late));
    mcp::Listener* const last = listeners.make_listener({}, &session, &session.interests);
    expect(last != nullptr && sends(*last));
    listeners.leave(session.interests);
    expect(last->current->uri() == "t://one");
    listeners.sent(*late);
    expect(last->current->uri() == "t://one");
    listeners.drop_listener(late);
    listeners.drop_listener(last);
    expect(account::mcp.used() == before);
    // A session that has ended takes nothing any more.
    expect(listeners.watch(session.interests, "t://one", 4).has_value() && session.interests.watched == nullptr);
    mcp::Listener* const behind = listeners.make_listener({}, &session, &session.interests);
    expect(behind != nullptr && behind->retired);
    listeners.drop_listener(behind);
    expect(account::mcp.used() == before);
  });
}

}  // namespace mcp_listening_test
