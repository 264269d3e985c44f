// A hub of WebSockets, its program and its clients.

#include <CppUTest/TestHarness.h>
#include <coir/detail/accounts.h>
#include <coir/ledger.h>
#include <coir/websocket.h>

#include <array>
#include <atomic>
#include <optional>
#include <string_view>
#include <vector>

#include "tests/support/child.h"
#include "tests/support/slow_reader.h"
#include "tests/unit/stream/socket_server.h"
#include "tests/unit/websocket/no_buffers.h"

#if !COIR_NO_ASYNC
#include <coir/fiber.h>
#include <coir/inspect.h>
#endif

namespace websocket_hub_test {

using namespace coir::http;
using namespace coir::test;
using namespace std::chrono_literals;
using coir::Buffer;
using coir::Deadline;
using coir::ErrorCode;

namespace {

char g_large[200'000];

std::string_view large(std::size_t size) {
  if (g_large[0] == 0) {
    for (std::size_t i = 0; i < sizeof g_large; ++i) g_large[i] = static_cast<char>('a' + i % 26);
  }
  return {g_large, size};
}

// Program does what the test says by the first letter of a message.
struct Program {
  struct State {
    std::uint32_t number = 0;
    std::uint32_t said = 0;
  };

  std::atomic<int> opened_count = 0, closed_count = 0;
  std::atomic<unsigned> last_code = 0;
  std::atomic<bool> greets = false, joins = false;
  Published published;

  void opened(HubSocket& socket, State& state) {
    ++opened_count;
    if (greets) static_cast<void>(socket.send_text("welcome"));
    if (joins) static_cast<void>(socket.subscribe(state.number % 2 == 0 ? "all" : "some"));
  }
  void message(HubSocket& socket, State& state, const WebSocketMessage& message) {
    ++state.said;
    const std::string_view text = message.bytes;
    if (!message.text) return static_cast<void>(socket.send_binary(text));
    switch (text.empty() ? ' ' : text[0]) {
      case 'n': {
        const char digits[] = {static_cast<char>('0' + state.number), static_cast<char>('0' + state.said)};
        return static_cast<void>(socket.send_text({digits, 2}));
      }
      case 'j':
        return told(socket, socket.subscribe("all"));
      case 'l':
        return socket.unsubscribe("all");
      case 's':
        return told(socket, socket.subscribe(text.substr(1)));
      case 'u':
        return socket.unsubscribe(text.substr(1));
      case 'p':
        published = socket.publish("all", text.substr(1));
        return;
      case 'c':
        return told(socket, socket.close(CloseCode{4002}, "asked"));
      case 'x':
        return static_cast<void>(socket.send_text(large(100'000)));
      case 'w':
        static_cast<void>(socket.send_text(large(600)));
        return told(socket, socket.send_text(large(600)));
      default:
        return static_cast<void>(socket.send_text(text));
    }
  }
  void closed(HubSocket& socket, State&, CloseCode code) {
    last_code = static_cast<unsigned>(code);
    if (socket.send_text("too late").has_value()) last_code = 1;
    ++closed_count;
  }

  static void told(HubSocket& socket, std::expected<void, coir::Error> outcome) {
    if (!outcome) static_cast<void>(socket.send_text(coir::describe(outcome.error())));
  }
};

Program* g_program;
WebSocketHub<Program>* g_hub;
std::atomic<std::uint32_t> g_number;

void handler(Exchange& exchange) {
  g_hub->accept(exchange, {.number = g_number++});
}

}  // namespace

struct WebSocketHubGroup : SocketServer {
  WebSocketHubOptions options = {.max_sockets = 64};
  ServerOptions server_options = {.handler = handler};
  std::size_t charged = 0;

  // serving runs the body as a client.
  template <class Body>
  void serving(Body body) {
    charged = coir::account::connections.used();
    within(
        server_options,
        [this](auto run) {
          WebSocketHub<Program> hub(options);
          g_hub = &hub;
          g_program = &hub.program();
          g_number = 0;
          run();
          expect(hub.sockets() == 0 && g_program->opened_count == g_program->closed_count);
        },
        body);
    LONGS_EQUAL(charged, coir::account::connections.used());
    LONGS_EQUAL(0, borrowed());
  }
  static std::size_t borrowed() { return coir::account::buffers.used() - Buffer::spare_bytes(); }

  // echoes tells whether the socket is alive and well.
  void refused(std::string_view request, std::string_view status, std::string_view field = {}) {
    Stream stream = connected();
    char head[512];
    const auto answer = answer_to(stream, request, head);
    expect(answer.starts_with(status));
    expect(answer.find(field) != std::string_view::npos);
  }
  using Stream = coir::Stream;
};

TEST_GROUP_BASE(WebSocketHub, WebSocketHubGroup) {};

TEST(WebSocketHub, the_program_is_called_with_each_message_and_its_own_state) {
  serving([&] {
    auto first = joined();
    auto second = joined();
    expect(first.say(Opcode::text, "n") && first.hear().is(Opcode::text, "01"));
    expect(second.say(Opcode::text, "n") && second.hear().is(Opcode::text, "11"));
    expect(first.say(Opcode::text, "n") && first.hear().is(Opcode::text, "02"));
    expect(first.say(Opcode::binary, "\xff") && first.hear().is(Opcode::binary, "\xff"));
    expect(g_hub->sockets() == 2 && g_program->opened_count == 2);
  });
}

TEST(WebSocketHub, handshakes_that_are_none_are_refused) {
  serving([&] {
    refused("POST /ws HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 405", "Allow: GET\r\n");
    refused("GET /ws HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 426", "Upgrade: websocket\r\n");
    refused(
        "GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: "
        "13\r\n\r\n",
        "HTTP/1.1 400");
    refused(
        "GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: "
        "8\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        "HTTP/1.1 426", "Sec-WebSocket-Version: 13\r\n");
    expect(g_hub->sockets() == 0);
  });
}

TEST(WebSocketHub, pages_of_other_origins_are_refused_unless_allowed) {
  static constexpr std::string_view kAllowed[] = {"https://panel.test"};
  options.origins = kAllowed;
  serving([&] {
    for (const auto& [origin, status] : {std::pair{"Origin: https://evil.test\r\n\r\n", "HTTP/1.1 403"},
                                         std::pair{"Origin: http://localhost\r\n\r\n", "HTTP/1.1 101"},
                                         std::pair{"Origin: https://panel.test\r\n\r\n", "HTTP/1.1 101"}}) {
      char request[512];
      snprintf(request, sizeof request, "%s%s", kOpening.data(), origin);
      refused(request, status);
    }
  });
}

TEST(WebSocketHub, a_subprotocol_that_both_speak_is_agreed_on) {
  static constexpr std::string_view kSpoken[] = {"log", "chat"};
  options.subprotocols = kSpoken;
  serving([&] {
    char request[512];
    snprintf(request, sizeof request, "%sSec-WebSocket-Protocol: mail, chat\r\n\r\n", kOpening.data());
    refused(request, "HTTP/1.1 101", "Sec-WebSocket-Protocol: chat\r\n");
  });
}

TEST(WebSocketHub, one_more_than_fits_is_refused_503) {
  options.max_sockets = 1;
  serving([&] {
    auto first = joined();
    expect(echoes(first));
    char request[512];
    snprintf(request, sizeof request, "%s\r\n", kOpening.data());
    refused(request, "HTTP/1.1 503", "Retry-After");
    expect(first.close(CloseCode::normal) && first.hear().closes(CloseCode::normal));
    until([&] { return g_hub->sockets() == 0; });
    auto second = joined();
    expect(echoes(second));
  });
}

TEST(WebSocketHub, a_greeting_comes_behind_the_handshake_and_haste_is_no_harm) {
  serving([&] {
    g_program->greets = true;
    // "hi", masked by zeros, right behind the request.
    auto peer = joined(std::string_view("\x81\x82\0\0\0\0hi", 8));
    expect(peer.hear().is(Opcode::text, "welcome"));
    expect(peer.hear().is(Opcode::text, "hi"));
  });
}

TEST(WebSocketHub, a_message_of_many_kilobytes_comes_with_the_request) {
  serving([&] { expect_long_messages_with_the_request(); });
}

TEST(WebSocketHub, fragments_and_control_frames_between_them) {
  serving([&] {
    auto peer = joined();
    expect(peer.say(Opcode::text, "one ", false) && peer.say(Opcode::ping, large(125)));
    expect(peer.hear().is(Opcode::pong, large(125)));
    expect(peer.say(Opcode::continuation, "", false) && peer.say(Opcode::continuation, "two"));
    expect(peer.hear().is(Opcode::text, "one two"));
  });
}

TEST(WebSocketHub, every_cut_of_the_bytes_gives_the_same) {
  serving([&] {
    auto peer = joined();
    // A fragment, a ping and the rest, masked by zeros.
    const std::string_view bytes("\x01\x82\0\0\0\0ab\x89\x83\0\0\0\0png\x80\x82\0\0\0\0cd", 25);
    for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
      expect(peer.raw(bytes.substr(0, cut)));
      if (cut % 3 == 0) until([&] { return borrowed() <= Buffer::kLeast; });
      expect(peer.raw(bytes.substr(cut)));
      expect(peer.hear().is(Opcode::pong, "png"));
      expect(peer.hear().is(Opcode::text, "abcd"));
    }
  });
}

TEST(WebSocketHub, large_messages_come_and_go_whole) {
  options.socket.max_message = options.socket.max_frame = 256 * 1024;
  options.max_unsent = 256 * 1024;
  serving([&] {
    auto peer = joined();
    for (int turn = 0; turn < 3; ++turn) {
      expect(peer.say(Opcode::binary, large(180'000)));
      const auto echo = peer.hear();
      expect(echo.opcode == Opcode::binary && echo.size == 180'000 && echo.payload() == large(sizeof echo.bytes));
    }
    until([] { return borrowed() == 0; });
  });
}

TEST(WebSocketHub, many_messages_at_once_are_answered_in_order) {
  serving([&] {
    auto peer = joined();
    for (int i = 0; i < 300; ++i) expect(peer.say(Opcode::text, i % 2 == 0 ? "even" : "odd"));
    for (int i = 0; i < 300; ++i) expect(peer.hear().is(Opcode::text, i % 2 == 0 ? "even" : "odd"));
  });
}

// If a program sets one of a socket's options, the others have the defaults of sockets on fibers.
TEST(WebSocketHub, a_larger_message_than_can_be_held_is_refused_by_1009) {
  options.socket = {.ping_after = 20s};
  serving([&] {
    auto peer = joined();
    expect(peer.say(Opcode::binary, large(150'000), false));
    expect(peer.say(Opcode::continuation, large(150'000)));
    expect(peer.hear().closes(CloseCode::too_big));
  });
}

TEST(WebSocketHub, a_peer_that_breaks_the_protocol_is_told_why) {
  options.socket.max_message = 1000;
  options.socket.max_fragments = 3;
  options.socket.close_timeout = 50ms;
  serving([&] {
    struct Case {
      Opcode opcode;
      std::string_view payload;
      bool masks;
      CloseCode code;
    };
    for (const Case& each : {Case{Opcode::text, "x", false, CloseCode::protocol_error},
                             Case{Opcode::continuation, "x", true, CloseCode::protocol_error},
                             Case{Opcode::text, "\xff", true, CloseCode::invalid_payload},
                             Case{Opcode::binary, large(1001), true, CloseCode::too_big},
                             Case{Opcode::close, "x", true, CloseCode::protocol_error}}) {
      auto peer = joined();
      expect(peer.say(each.opcode, each.payload, true, each.masks));
      expect(peer.hear().closes(each.code));
      expect(peer.ended());
    }
    auto peer = joined();
    for (int i = 0; i < 4; ++i) expect(peer.say(i == 0 ? Opcode::text : Opcode::continuation, "x", false));
    expect(peer.hear().closes(CloseCode::policy_violation));
    until([&] { return g_hub->sockets() == 0; });
  });
}

TEST(WebSocketHub, a_client_that_closes_is_answered_and_the_program_told) {
  serving([&] {
    auto peer = joined();
    expect(peer.close(CloseCode{4001}, "enough"));
    expect(peer.hear().closes(CloseCode{4001}) && peer.ended());
    until([&] { return g_program->closed_count == 1; });
    expect(g_program->last_code == 4001);
  });
}

TEST(WebSocketHub, a_client_that_vanishes_ends_as_1006) {
  serving([&] {
    auto peer = joined();
    expect(peer.say(Opcode::text, "half", false));
    peer.stream().close();
    until([&] { return g_program->closed_count == 1; });
    expect(g_program->last_code == 1006);
  });
}

TEST(WebSocketHub, the_program_closes_and_waits_for_the_answer_in_time) {
  options.socket.close_timeout = 100s;
  serving([&] {
    auto peer = joined();
    expect(peer.say(Opcode::text, "c"));
    const auto heard = peer.hear();
    expect(heard.closes(CloseCode{4002}) && read_close(heard.payload()).reason == "asked");
    // Messages that come now are dropped.
    expect(peer.say(Opcode::text, "late") && peer.close(CloseCode{4002}));
    expect(peer.ended());
    until([&] { return g_program->closed_count == 1; });
    expect(g_program->last_code == 4002);
  });
  options.socket.close_timeout = 50ms;
  serving([&] {
    auto silent = joined();
    expect(silent.say(Opcode::text, "c") && silent.hear().closes(CloseCode{4002}));
    expect(silent.ended());
    until([&] { return g_program->closed_count == 1; });
    expect(g_program->last_code == 1006);
  });
}

TEST(WebSocketHub, the_silent_are_pinged_and_those_that_do_not_answer_closed) {
  options.socket.ping_after = 20ms;
  options.socket.pong_timeout = 100s;
  serving([&] {
    auto peer = joined();
    for (int i = 0; i < 3; ++i) {
      expect(peer.hear().is(Opcode::ping, ""));
      expect(peer.say(Opcode::pong, ""));
    }
    expect(echoes(peer));
  });
  options.socket.pong_timeout = 20ms;
  serving([&] {
    auto peer = joined();
    expect(peer.hear().is(Opcode::ping, "") && peer.ended());
    until([&] { return g_program->closed_count == 1; });
    expect(g_program->last_code == 1006);
  });
}

TEST(WebSocketHub, a_message_that_drips_ends_with_1008) {
  options.socket.message_timeout = 20ms;
  options.socket.close_timeout = 20ms;
  serving([&] {
    auto peer = joined();
    expect(peer.say(Opcode::text, "half", false));
    expect(peer.hear().closes(CloseCode::policy_violation));
    expect(peer.ended());
  });
}

TEST(WebSocketHub, a_client_that_goes_on_sending_keeps_no_socket_that_has_ended) {
  // goes_on sends `piece` every few milliseconds until the connection ends.
  const auto goes_on = [&](RawPeer& peer, std::string_view piece) {
    const Deadline enough = Deadline::after(40s);
    char byte[1];
    for (;;) {
      if (enough.passed()) return false;
      if (!peer.raw(piece)) return true;
      const auto got = peer.stream().read(byte, Deadline::after(10ms));
      if (!got && got.error() != ErrorCode::timed_out) return true;
    }
  };
  options.socket.close_timeout = 300ms;
  serving([&] {
    // One that has failed.
    auto bad = joined();
    expect(bad.say(Opcode::text, "x", true, false) && bad.hear().closes(CloseCode::protocol_error));
    expect(goes_on(bad, "z"));
    // One that the program has closed, whose client sends good frames.
    auto closed = joined();
    expect(closed.say(Opcode::text, "c") && closed.hear().closes(CloseCode{4002}));
    expect(goes_on(closed, "\x81\x81\1\2\3\4y"));
    until([&] { return g_program->closed_count == 2 && server->gauges().kept == 0; });
  });
  // However fast it sends, and before its time is over.
  options.socket.close_timeout = 1h;
  serving([&] {
    auto bad = joined();
    expect(bad.say(Opcode::text, "x", true, false) && bad.hear().closes(CloseCode::protocol_error));
    std::size_t sent = 0;
    while (sent < 100'000'000 && bad.raw(large(100'000))) sent += 100'000;
    expect(sent >= 4'000'000 && sent < 100'000'000);
    until([&] { return server->gauges().kept == 0; });
  });
}

TEST(WebSocketHub, while_nothing_moves_there_is_no_buffer) {
  serving([&] {
    std::array<std::optional<RawPeer>, 10> peers;
    for (auto& each : peers) {
      each.emplace(joined());
      expect(echoes(*each));
    }
    until([] { return borrowed() == 0; });
    expect(g_hub->sockets() == peers.size());
#if !COIR_NO_ASYNC
    // The acceptor, the reaper, the timer, this one.
    until([] { return coir::list_fibers({}) <= 4; });
#endif
  });
}

TEST(WebSocketHub, published_messages_reach_every_subscriber_until_it_leaves) {
  serving([&] {
    auto first = joined(), second = joined(), third = joined();
    for (RawPeer* each : {&first, &second}) expect(each->say(Opcode::text, "j") && echoes(*each));
    expect(first.say(Opcode::text, "j") && echoes(first));  // twice is once
    expect(g_hub->subscribers("all") == 2);
    expect(third.say(Opcode::text, "pnews"));
    expect(first.hear().is(Opcode::text, "news") && second.hear().is(Opcode::text, "news"));
    expect(echoes(third));
    expect(g_program->published.sent == 2);
    expect(first.say(Opcode::text, "l") && echoes(first));
    second.stream().close();
    until([&] { return g_hub->subscribers("all") == 0; });
    expect(third.say(Opcode::text, "pnothing") && echoes(third) && echoes(first));
    expect(g_program->published.sent == 0);
  });
}

TEST(WebSocketHub, a_subscriber_that_publishes_hears_itself_in_order) {
  serving([&] {
    auto peer = joined();
    expect(peer.say(Opcode::text, "j") && peer.say(Opcode::text, "pone") && peer.say(Opcode::text, "two"));
    expect(peer.hear().is(Opcode::text, "one") && peer.hear().is(Opcode::text, "two"));
  });
}

#if !COIR_NO_ASYNC
// Crowd is so many subscribers that a large message to all of them takes more than a slice.
struct Crowd {
  static constexpr std::size_t kPeers = 100, kOne = 60'000, kTwo = 50'000;
  static constexpr int kRounds = 100;
  std::vector<RawPeer> peers;

  explicit Crowd(WebSocketHubGroup& test) {
    g_program->joins = true;
    while (peers.size() < kPeers) {
      g_number = 0;
      peers.push_back(test.joined());
    }
    until([] { return g_hub->subscribers("all") == kPeers; });
  }
  // hears returns the size of the message that all hear next, 0 if they do not agree.
  std::size_t hears() {
    std::size_t size = 0;
    bool agree = true;
    for (RawPeer& each : peers) {
      const auto frame = each.hear();
      if (size == 0) size = frame.size;
      agree = agree && frame.opcode == Opcode::binary && frame.size == size;
    }
    return agree ? size : 0;
  }
};

TEST(WebSocketHub, others_run_while_a_message_is_published) {
  options = {.max_sockets = 128, .max_subscriptions = 128};
  serving([&] {
    Crowd crowd(*this);
    std::atomic<bool> over = false;
    std::atomic<int> runs = 0;
    auto other = coir::spawn([&] {
      for (; !over; ++runs) coir::yield();
    });
    until([&] { return runs > 0; });
    bool ran = false;
    for (int round = 0; round < Crowd::kRounds && !ran; ++round) {
      const int before = runs;
      const auto published = g_hub->publish_binary("all", large(Crowd::kOne));
      ran = runs > before;
      if (published.sent != Crowd::kPeers || crowd.hears() != Crowd::kOne) break;
    }
    expect(ran);
    over = true;
    expect(other.join().has_value());
  });
}

TEST(WebSocketHub, all_hear_in_one_order_what_two_publish_and_of_a_cancelled_fiber_too) {
  options = {.max_sockets = 128, .max_subscriptions = 128};
  serving([&] {
    Crowd crowd(*this);
    bool at_once = false, sound = true;
    for (int round = 0; round < Crowd::kRounds && !at_once && sound; ++round) {
      std::atomic<bool> publishing = false, over = false, overlaps = false;
      std::atomic<std::size_t> sent = 0;
      auto other = coir::spawn([&] {
        while (!publishing) coir::yield();
        overlaps = !over;
        sent = g_hub->publish_binary("all", large(Crowd::kTwo)).sent;
      });
      static_cast<void>(other.cancel());
      publishing = true;
      sound = g_hub->publish_binary("all", large(Crowd::kOne)).sent == Crowd::kPeers;
      over = true;
      static_cast<void>(other.join());
      const std::size_t first = crowd.hears(), second = first == 0 ? 0 : crowd.hears();
      sound = sound && sent == Crowd::kPeers && first + second == Crowd::kOne + Crowd::kTwo;
      at_once = overlaps;
    }
    expect(sound);
    expect(at_once);
  });
}
#endif

TEST(WebSocketHub, an_idle_connection_makes_room_for_a_newcomer_and_a_socket_does_not) {
  server_options.max_connections = 2;
  server_options.evict_after = 0ms;
  serving([&] {
    auto first = joined();
    expect(echoes(first));
    coir::Stream idle = connected();
    char head[512];
    expect(answer_to(idle, "GET /ws HTTP/1.1\r\nHost: localhost\r\n\r\n", head).starts_with("HTTP/1.1 4"));
#if !COIR_NO_ASYNC
    until([&] { return server->gauges().idle == 1; });
#endif
    auto second = joined();
    expect(echoes(first) && echoes(second));
    coir::Stream third = connected();
    char request[512];
    const auto end = std::copy(kOpening.begin(), kOpening.end(), request);
    const auto whole = std::copy_n("\r\n", 2, end);
    expect(answer_to(third, {request, whole}, head).starts_with("HTTP/1.1 503 "));
    expect(echoes(first) && echoes(second) && g_hub->sockets() == 2);
  });
}

TEST(WebSocketHub, subscriptions_have_a_ceiling) {
  options.max_subscriptions = 1;
  serving([&] {
    auto first = joined(), second = joined();
    expect(first.say(Opcode::text, "j") && echoes(first));
    expect(second.say(Opcode::text, "j") && second.hear().is(Opcode::text, coir::describe(ErrorCode::limit)));
    expect(first.say(Opcode::text, "l") && echoes(first));
    expect(second.say(Opcode::text, "j") && echoes(second));
  });
}

TEST(WebSocketHub, a_slow_subscriber_is_disconnected_and_counted_and_no_other) {
  options.max_unsent = 150'000;
  serving([&] {
    g_program->joins = true;
    auto slow = joined();   // of "all"
    auto other = joined();  // of "some"
    auto quick = joined();  // of "all"
    expect(echoes(quick));
    until([&] { return g_hub->subscribers("all") == 2 && g_hub->subscribers("some") == 1; });
#if !COIR_NO_ASYNC
    std::atomic<std::size_t> heard = 0;
    auto hearing = coir::spawn([&] {
      while (quick.hear().opcode == Opcode::binary) ++heard;
    });
    // The slow one is not read: the kernel takes some megabytes.
    std::size_t sent = 0;
    Published last;
    while (sent < 1000 && last.dropped == 0) {
      last = g_hub->publish_binary("all", large(100'000));
      ++sent;
      until([&] { return heard == sent; });
    }
    expect(last.dropped == 1 && last.sent == 1 && g_hub->dropped() == 1);
    until([&] { return g_hub->subscribers("all") == 1; });
    expect(g_hub->publish("all", "the end").sent == 1);
    expect(hearing.join().has_value());
    // Each message that has come whole is right; then the stream ends.
    auto frame = slow.hear();
    for (; !frame.gone; frame = slow.hear()) expect(frame.opcode == Opcode::binary && frame.size == 100'000);
    expect(g_hub->subscribers("some") == 1 && echoes(other));
#endif
  });
}

TEST(WebSocketHub, topics_are_told_apart_and_as_many_as_there_are_subscriptions) {
  options.max_subscriptions = 40;
  serving([&] {
    auto peer = joined();
    // As long as a name may be, and alike but for one place, where two that follow each other hash to one chain. The first
    // letter is the wish.
    static char wish[1 + 65 + 1];
    memset(wish, 'r', 66);
    const auto room = [&](char letter, int number) {
      wish[0] = letter;
      wish[61] = static_cast<char>(' ' + number % 40 / 2 + number % 2 * 64);
      return std::string_view(wish, 65);
    };
    const auto subscribers = [&](int number) { return g_hub->subscribers(room('s', number).substr(1)); };
    // Twice, as what a topic was is used again.
    for (int turn = 0; turn < 2; ++turn) {
      for (int i = 0; i < 40; ++i) {
        expect(peer.say(Opcode::text, room('s', i)) && echoes(peer));
        expect(subscribers(i) == 1);
      }
      for (int i = 0; i < 40; ++i) {
        expect(peer.say(Opcode::text, room('u', i)) && echoes(peer));
        expect(subscribers(i) == 0 && subscribers(i + 1) == (i < 39 ? 1u : 0u));
      }
    }
    expect(peer.say(Opcode::text, {room('s', 0).data(), 66}));
    expect(peer.hear().is(Opcode::text, coir::describe(ErrorCode::limit)));
  });
}

TEST(WebSocketHub, no_more_waits_than_max_unsent) {
  options.max_unsent = 1000;
  serving([&] {
    auto peer = joined();
    expect(peer.say(Opcode::text, "w"));
    const auto first = peer.hear();
    expect(first.opcode == Opcode::text && first.size == 600);
    expect(peer.hear().is(Opcode::text, coir::describe(ErrorCode::limit)));
  });
}

TEST(WebSocketHub, a_client_that_takes_nothing_for_too_long_is_closed) {
  options.max_unsent = 256 * 1024;
  options.socket.write_timeout = 50ms;
  serving([&] {
    auto peer = joined();
    // Until what the kernel holds and what may wait are full; then nothing is read any more.
    for (int i = 0; i < 200 && g_program->closed_count == 0; ++i) {
      if (!peer.stream().write(std::string_view("\x81\x81\0\0\0\0x", 7), Deadline::after(5s))) break;
    }
    until([&] { return g_program->closed_count == 1; });
  });
}

TEST(WebSocketHub, a_client_that_takes_a_little_at_a_time_stays) {
  const auto context = authority().server();
  coir::TlsContextSlot slot(context);
  options.max_unsent = 256 * 1024;
  options.socket.write_timeout = 400ms;
  for (const bool secure : {false, true}) {
    tls = secure ? &slot : nullptr;
    serving([&] {
      auto peer = joined();
      for (int i = 0; i < 30; ++i) expect(peer.say(Opcode::text, "x"));
      until_narrow(peer.stream().fd());
      expect(takes_slowly(peer.stream(), 400ms, patience()) && g_program->closed_count == 0);
    });
    if (!coir::kFibers) return;  // as there is no TLS
  }
}

TEST(WebSocketHub, stop_sends_1001_to_all) {
#if !COIR_NO_ASYNC
  serving([&] {
    auto first = joined(), second = joined();
    expect(echoes(first) && echoes(second));
    server->begin_stop();
    until([&] { return server->stopped() || g_hub->sockets() == 0; });
    for (RawPeer* each : {&first, &second}) expect(each->hear().closes(CloseCode::going_away) && each->ended());
    until([&] { return g_program->closed_count == 2; });
  });
#endif
}

// Either of a hub and its server may go first.
TEST(WebSocketHub, one_that_is_destroyed_sends_1001_and_the_server_goes_on) {
#if !COIR_NO_ASYNC
  const auto context = authority().server();
  coir::TlsContextSlot slot(context);
  for (const bool secure : {false, true}) {
    tls = secure ? &slot : nullptr;
    static std::optional<WebSocketHub<Program>> hub;
    server_options.handler = [](Exchange& exchange) { hub ? (*hub)(exchange) : exchange.respond_status(410); };
    within(
        server_options,
        [this](auto run) {
          hub.emplace(options);
          g_hub = &*hub;
          g_program = &hub->program();
          run();
        },
        [&] {
          g_program->joins = true;
          auto first = joined(), second = joined();
          expect(echoes(first) && second.say(Opcode::text, "half", false));
          until([&] { return g_hub->subscribers("all") == 2 && server->gauges().active == 0; });
          hub.reset();
          for (RawPeer* each : {&first, &second}) expect(each->hear().closes(CloseCode::going_away) && each->ended());
          expect(server->gauges().kept == 0);
          refused("GET /ws HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 410");
        });
    LONGS_EQUAL(0, borrowed());
  }
#endif
}

#if !COIR_NO_ASYNC
TEST(WebSocketHub, hears_what_has_come_while_its_handler_waited_for_something_else) {
  static std::atomic<int> waiting;
  static coir::Event go;
  server_options.handler = [](Exchange& exchange) {
    ++waiting;
    static_cast<void>(go.wait(patience()));
    handler(exchange);
  };
  serving([&] {
    waiting = 0;
    go.reset();
    auto peer = joined_early(waiting, go, std::string_view("\x81\x82\0\0\0\0hi", 8));
    expect(peer.hear().is(Opcode::text, "hi"));
  });
}

// A run that is shut down cuts its connections off. Then the server is destroyed, and the hub before or after it.
TEST(WebSocketHub, after_a_run_that_was_cut_off_either_may_go_first) {
  for (const bool hub_first : {true, false}) {
    const ChildEnd end = in_child([&] {
      static std::optional<WebSocketHub<Program>> hub;
      hub.emplace(options);
      std::optional<Server> cut_off;
      std::optional<RawPeer> peer;
      const int status = coir::run([&] {
        cut_off.emplace(*Server::create({.handler = [](Exchange& exchange) { (*hub)(exchange); }}));
        auto listener = *coir::TcpListener::listen(*coir::Address::parse("127.0.0.1:0"));
        address = listener.local_address();
        if (!cut_off->add(std::move(listener)) || !cut_off->start()) return 9;
        peer.emplace(joined());
        if (!peer->say(Opcode::text, "j") || !echoes(*peer)) return 9;
        if (!until([&] { return cut_off->gauges().active == 0; })) return 9;
        coir::shutdown();
        return 0;
      });
      if (hub_first) hub.reset();
      cut_off.reset();
      hub.reset();
      return status != 0 ? status : coir::account::connections.used() == 0 ? 0 : 8;
    });
    LONGS_EQUAL(0, end.status);
    STRCMP_EQUAL("", end.output);
  }
}
#endif

TEST(WebSocketHub, without_buffers_whole_messages_pass_and_halves_end_with_1013) {
  serving([&] {
    auto first = joined(), second = joined();
    expect(echoes(first) && echoes(second));
    until([] { return borrowed() == 0; });
    const NoBuffers none;
    expect(echoes(first));
    expect(second.say(Opcode::text, "half", false));
    expect(second.hear().closes(CloseCode::try_again_later));
    none.end();
    second.stream().close();
    expect(echoes(first));
  });
}

TEST(WebSocketHub, half_a_message_without_a_buffer_for_the_rest_ends_the_connection) {
  serving([&] {
    auto peer = joined();
    expect(echoes(peer));
    until([] { return borrowed() == 0; });
    const NoBuffers none;
    // The peer does not read until the kernel takes a part of a message and the rest has no place. Each message is sent in
    // one piece.
    for (int i = 0; i < 400 && g_program->closed_count == 0; ++i) {
      if (!peer.stream().write(std::string_view("\x81\x81\0\0\0\0x", 7), patience())) break;
    }
    // Reading sooner would make room.
    expect(until([&] { return g_program->closed_count == 1; }, Deadline::after(60s)));
    expect(g_program->last_code == 1006);
    // Each message that arrives whole is right; the kernel decides how many do, which may be none.
    for (auto frame = peer.hear(); !frame.gone; frame = peer.hear()) {
      expect(frame.opcode == Opcode::text && frame.size == 100'000);
    }
    none.end();
  });
}

TEST(WebSocketHub, a_refused_charge_is_503) {
  serving([&] {
    auto first = joined();
    expect(echoes(first));
    // A connection is charged for when it is accepted.
    Stream stream = connected();
    until([&] { return server->gauges().open == 2; });
    coir::account::connections.set_ceiling(coir::account::connections.used());
    char request[512], head[512];
    snprintf(request, sizeof request, "%s\r\n", kOpening.data());
    expect(answer_to(stream, request, head).starts_with("HTTP/1.1 503"));
    expect(first.say(Opcode::text, "j"));
    expect(first.hear().is(Opcode::text, coir::describe(ErrorCode::no_memory)));
    coir::account::connections.set_ceiling(SIZE_MAX);
    expect(first.say(Opcode::text, "j") && echoes(first));
  });
}

#if COIR_TLS && !COIR_NO_ASYNC
TEST(WebSocketHub, by_tls_they_do_the_same) {
  const auto context = authority().server();
  coir::TlsContextSlot slot(context);
  tls = &slot;
  serving([&] {
    g_program->joins = true;
    auto first = joined(), second = joined(), third = joined();
    expect(echoes(first) && echoes(second) && echoes(third));
    const auto sent = g_hub->publish("all", "news");
    expect(sent.sent == 2);
    expect(first.hear().is(Opcode::text, "news") && third.hear().is(Opcode::text, "news"));
    expect(second.say(Opcode::binary, large(60'000)));
    const auto echo = second.hear();
    expect(echo.size == 60'000 && echo.payload() == large(sizeof echo.bytes));
    expect(third.close(CloseCode::normal) && third.hear().closes(CloseCode::normal));
    until([] { return borrowed() == 0; });
  });
}

// It is the client's silence that counts, however much is sent to it.
TEST(WebSocketHub, the_silent_are_pinged_though_much_is_published_to_them) {
  const auto context = authority().server();
  coir::TlsContextSlot slot(context);
  options.socket.ping_after = 400ms;
  options.socket.pong_timeout = 100s;
  for (const bool secure : {false, true}) {
    tls = secure ? &slot : nullptr;
    serving([&] {
      g_program->joins = true;
      auto peer = joined();
      until([] { return g_hub->subscribers("all") == 1; });
      bool pinged = false;
      for (const Deadline enough = Deadline::after(30s); !pinged && !enough.passed();) {
        static_cast<void>(g_hub->publish("all", "tick"));
        pinged = peer.hear().is(Opcode::ping, "");
        static_cast<void>(coir::sleep(10ms));
      }
      expect(pinged);
    });
  }
}
#endif

}  // namespace websocket_hub_test
