// EventStream serves a handler that streams from its own fiber.

#include <CppUTest/TestHarness.h>
#include <coir/events.h>
#include <coir/fiber.h>
#include <coir/select.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <atomic>
#include <optional>
#include <string_view>

#include "tests/support/slow_reader.h"
#include "tests/support/until.h"
#include "tests/unit/stream/follower.h"

namespace event_stream_test {

using namespace coir::http;
using namespace coir::test;
using namespace std::chrono_literals;
using coir::Deadline;
using coir::ErrorCode;
using coir::Event;

namespace {

// Told is what a handler has come to.
struct Told {
  EventStreamOptions options;
  Event opened, go_on, ended;
  std::atomic<int> error{-1};
  std::atomic<int> sent{0};
  std::atomic<int> fd{-1};

  template <class Outcome>
  bool ends(const Outcome& outcome) {
    if (outcome) return false;
    error = static_cast<int>(outcome.error().code);
    return true;
  }
  bool ended_by(ErrorCode code) { return ended.wait(patience()).has_value() && error.load() == static_cast<int>(code); }
};

// told_now is that of the server that runs.
Told* told_now = nullptr;

// serve lets `body` stream, and tells how that ended.
template <class Body>
void serve(Exchange& exchange, Body body) {
  Told& told = *told_now;
  {
    auto stream = EventStream::open(exchange, told.options);
    if (!told.ends(stream)) {
      told.opened.set();
      body(*stream, told);
    }
  }
  told.ended.set();
}

void two_events(Exchange& exchange) {
  serve(exchange, [](EventStream& stream, Told& told) {
    if (told.ends(stream.send({.data = "one\ntwo", .type = "lines", .id = "7"}))) return;
    static_cast<void>(told.ends(stream.send({.data = "last"})));
  });
}

void pause_long(Exchange& exchange) {
  serve(exchange,
        [](EventStream& stream, Told& told) { static_cast<void>(told.ends(stream.pause(Deadline::never()))); });
}

// send_without_end sends until that fails; it waits for nothing of the client's.
void send_without_end(Exchange& exchange) {
  static const char bytes[20'000] = {};
  static const std::string_view large = [] {
    __builtin_memset(const_cast<char*>(bytes), 'x', sizeof bytes);
    return std::string_view(bytes, sizeof bytes);
  }();
  serve(exchange, [](EventStream& stream, Told& told) {
    while (!told.ends(stream.send({.data = large}))) ++told.sent;
    // An ended stream stays ended.
    if (stream.send({.data = "more"}) || stream.pause(Deadline::now()) || stream.keep_alive()) told.error = -2;
  });
}

// end_has_arrived tells whether the peer's kernel has acknowledged the end of what this side had to say.
bool end_has_arrived(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 && info.tcpi_state == TCP_FIN_WAIT2;
}

}  // namespace

TEST_GROUP_BASE(EventStreams, EventServers) {};

TEST(EventStreams, events_arrive_in_order_and_the_end_of_the_handler_is_theirs) {
  everywhere([&] {
    Told told;
    told_now = &told;
    with_server({.handler = two_events}, [&](Server&, const coir::Address& address) {
      Follower client(address);
      expect(client.ask("/"));
      expect(client.hears_head("HTTP/1.1 200 OK\r\n"));
      expect(client.hears_head("Content-Type: text/event-stream\r\n"));
      expect(client.hears_head("Cache-Control: no-store\r\n"));
      expect(client.hears_head("X-Accel-Buffering: no\r\n"));
      expect(client.hears("\r\n\r\n") && client.hears_next(":\n\n"));
      expect(client.hears_next("id: 7\nevent: lines\ndata: one\ndata: two\n\ndata: last\n\n"));
      expect(client.hears_end());
    });
  });
}

TEST(EventStreams, a_stream_goes_over_tls) {
  everywhere([&] {
    Told told;
    told_now = &told;
    const coir::TlsContext tls = authority().server(), trusts = authority().client();
    with_server({.handler = two_events}, &tls, [&](Server&, const coir::Address& address) {
      Follower client(address, &trusts);
      expect(client.ask("/"));
      expect(client.hears(":\n\n") && client.hears("data: last\n\n"));
      expect(client.hears_end());
    });
  });
}

TEST(EventStreams, the_client_is_told_when_to_come_again) {
  everywhere([&] {
    Told told{.options = {.retry = 2500ms}};
    told_now = &told;
    with_server({.handler = two_events}, [&](Server&, const coir::Address& address) {
      Follower client(address);
      expect(client.ask("/"));
      expect(client.hears("\r\n\r\n") && client.hears_next("retry: 2500\n\nid: 7\n"));
      expect(client.end() == ErrorCode::end_of_stream);
    });
  });
}

TEST(EventStreams, head_gets_the_head_alone_and_post_405) {
  everywhere([&] {
    Told told;
    told_now = &told;
    with_server({.handler = two_events}, [&](Server&, const coir::Address& address) {
      Follower asks(address), posts(address);
      expect(asks.ask("/", {}, "HEAD"));
      expect(asks.hears_head("text/event-stream"));
      expect(asks.hears("\r\n\r\n"));
      expect(told.ended_by(ErrorCode::invalid));
      expect(asks.hears_end());
      expect(posts.ask("/", "Content-Length: 0\r\n", "POST"));
      expect(posts.hears_head(" 405 ") && posts.hears_head("Allow: GET, HEAD\r\n"));
    });
  });
}

TEST(EventStreams, a_client_that_hangs_up_ends_a_pause) {
  everywhere([&] {
    Told told{.options = {.keep_alive = 0ms}};
    told_now = &told;
    with_server({.handler = pause_long}, [&](Server&, const coir::Address& address) {
      Follower client(address);
      expect(client.ask("/"));
      expect(client.hears(":\n\n"));
      client.close();
      expect(told.ended_by(ErrorCode::closed));
    });
  });
}

TEST(EventStreams, a_client_that_hangs_up_is_an_error_of_the_next_send) {
  const auto wait_then_send = [](Exchange& exchange) {
    serve(exchange, [](EventStream& stream, Told& told) {
      static_cast<void>(told.go_on.wait(patience()));
      if (!told.ends(stream.send({.data = "too late"}))) ++told.sent;
    });
  };
  everywhere([&] {
    Told told;
    told_now = &told;
    with_server({.handler = wait_then_send}, [&](Server&, const coir::Address& address) {
      Follower client(address);
      expect(client.ask("/"));
      expect(client.hears(":\n\n"));
      client.stream().shutdown_write();
      until([&] { return end_has_arrived(client.stream().fd()); });
      told.go_on.set();
      expect(told.ended_by(ErrorCode::closed));
      expect(told.sent == 0);
    });
  });
}

TEST(EventStreams, a_client_that_does_not_read_is_given_up_and_not_told_that_all_has_come) {
  everywhere([&] {
    Told told;
    told_now = &told;
    with_server({.handler = send_without_end, .write_timeout = 50ms}, [&](Server&, const coir::Address& address) {
      Follower client(address);
      expect(client.ask("/"));
      expect(told.ended_by(ErrorCode::timed_out));
      expect(client.end() != ErrorCode::end_of_stream);
    });
  });
}

TEST(EventStreams, a_client_that_takes_a_little_at_a_time_stays) {
  static const auto context = authority().server(), trusts = authority().client();
  bool secure = false;
  everywhere([&] {
    Told told;
    told_now = &told;
    const ServerOptions options = {.handler = send_without_end, .write_timeout = 400ms};
    with_server(options, secure ? &context : nullptr, [&](Server&, const coir::Address& address) {
      Follower client(address, secure ? &trusts : nullptr);
      expect(client.ask("/"));
      until_narrow(client.stream().fd());
      expect(takes_slowly(client.stream(), 400ms, patience()) && told.error == -1);
      client.close();
      expect(told.ended.wait(patience()).has_value() && told.error == static_cast<int>(ErrorCode::closed));
    });
    secure = !secure;
  });
}

TEST(EventStreams, comments_keep_a_pause_alive) {
  everywhere([&] {
    Told told{.options = {.keep_alive = 5ms}};
    told_now = &told;
    with_server({.handler = pause_long}, [&](Server&, const coir::Address& address) {
      Follower client(address);
      expect(client.ask("/"));
      for (int comments = 0; comments < 5; ++comments) expect(client.hears(":\n\n"));
      // Bytes from the client are dropped.
      expect(client.say("hello?"));
      for (int comments = 0; comments < 5; ++comments) expect(client.hears(":\n\n"));
      client.close();
      expect(told.ended_by(ErrorCode::closed));
    });
  });
}

TEST(EventStreams, a_pause_lasts_as_long_as_it_was_told) {
  const auto pause_twice = [](Exchange& exchange) {
    serve(exchange, [](EventStream& stream, Told& told) {
      const Deadline over = Deadline::after(20ms);
      if (told.ends(stream.pause(over))) return;
      if (!over.passed()) ++told.sent;
      static_cast<void>(told.ends(stream.send({.data = "after"})));
    });
  };
  everywhere([&] {
    Told told{.options = {.keep_alive = 3ms}};
    told_now = &told;
    with_server({.handler = pause_twice}, [&](Server&, const coir::Address& address) {
      Follower client(address);
      expect(client.ask("/"));
      expect(client.hears("data: after\n\n"));
      expect(client.hears_end());
      expect(told.sent == 0);
    });
  });
}

TEST(EventStreams, an_event_that_cannot_be_sent_changes_nothing) {
  const auto send_wrong = [](Exchange& exchange) {
    serve(exchange, [](EventStream& stream, Told& told) {
      const auto wrong = stream.send({.data = "x", .id = "a\nb"});
      if (!wrong && wrong.error() == ErrorCode::invalid) ++told.sent;
      static_cast<void>(told.ends(stream.send({.data = "right"})));
    });
  };
  everywhere([&] {
    Told told;
    told_now = &told;
    with_server({.handler = send_wrong}, [&](Server&, const coir::Address& address) {
      Follower client(address);
      expect(client.ask("/"));
      expect(client.hears(":\n\n") && client.hears_next("data: right\n\n"));
      expect(client.hears_end());
      expect(told.sent == 1);
    });
  });
}

// Sessions are the server's memory for requests under way.
TEST(EventStreams, a_stream_holds_no_session) {
  constexpr int kStreams = 20;
  everywhere([&] {
    Told told{.options = {.keep_alive = 0ms}};
    told_now = &told;
    with_server({.handler = pause_long, .max_active = 4}, [&](Server& server, const coir::Address& address) {
      static std::optional<Follower> clients[kStreams];
      // More streams are open than requests may be under way.
      for (auto& client : clients) expect(client.emplace(address).ask("/"));
      for (auto& client : clients) expect(client->hears(":\n\n"));
      expect(server.gauges().open == kStreams);
      for (auto& client : clients) client.reset();
    });
  });
}

TEST(EventStreams, the_kernel_gives_up_a_client_that_acknowledges_nothing) {
  everywhere([&] {
    Told told{.options = {.keep_alive = 0ms, .vanished_after = 12'345ms}};
    told_now = &told;
    with_server({.handler = pause_long}, [&](Server&, const coir::Address& address) {
      Follower client(address);
      expect(client.ask("/") && client.hears(":\n\n"));
      expect(far_option(client.stream().tcp().fd(), IPPROTO_TCP, TCP_USER_TIMEOUT) == 12'345);
    });
  });
}

TEST(EventStreams, a_server_that_stops_ends_a_pause) {
  everywhere([&] {
    Told told{.options = {.keep_alive = 0ms}};
    told_now = &told;
    Follower* client = nullptr;
    alignas(Follower) static char memory[sizeof(Follower)];
    with_server({.handler = pause_long}, [&](Server&, const coir::Address& address) {
      client = new (memory) Follower(address);
      expect(client->ask("/"));
      expect(client->hears(":\n\n"));
    });
    expect(told.ended_by(ErrorCode::closed));
    expect(client->hears_end());
    client->~Follower();
  });
}

TEST(EventStreams, an_enclosing_deadline_ends_a_pause_and_leaves_the_stream) {
  everywhere([&] {
    Told told{.options = {.keep_alive = 0ms}};
    told_now = &told;
    const auto handler = [](Exchange& exchange) {
      serve(exchange, [](EventStream& stream, Told& told) {
        {
          coir::CancelScope scope(Deadline::after(20ms));
          const auto paused = stream.pause(Deadline::never());
          if (!told.ends(paused) || !scope.caused(paused.error())) told.error = -2;
        }
        if (!stream.send({.data = "still here"})) told.error = -2;
      });
    };
    with_server({.handler = handler}, [&](Server&, const coir::Address& address) {
      Follower client(address);
      expect(client.ask("/") && client.hears("data: still here\n\n"));
      expect(told.ended_by(ErrorCode::timed_out) && client.hears_end());
    });
  });
}

TEST(EventStreams, a_handler_that_waits_for_something_else_has_a_case_for_the_stop) {
  everywhere([&] {
    Told told;
    told_now = &told;
    const auto handler = [](Exchange& exchange) {
      serve(exchange, [](EventStream& stream, Told& told) {
        const auto won = coir::select({coir::Case::opened(told.go_on), stream.stopping()});
        if (won && won->index == 1) static_cast<void>(told.ends(stream.send({.data = "late"})));
      });
    };
    with_server({.handler = handler}, [&](Server&, const coir::Address& address) {
      Follower client(address);
      expect(client.ask("/") && client.hears(":\n\n"));
    });
    // The client has gone or the server stops: both are told by closed.
    expect(told.ended_by(ErrorCode::closed));
  });
}

TEST(EventStreams, a_server_that_stops_ends_a_handler_that_only_sends) {
  everywhere([&] {
    Told told;
    told_now = &told;
    const auto handler = [](Exchange& exchange) {
      serve(exchange, [](EventStream& stream, Told& told) {
        while (!told.ends(stream.send({.data = "again"}))) static_cast<void>(coir::sleep(1ms));
      });
    };
    alignas(Follower) static char memory[sizeof(Follower)];
    Follower* client = nullptr;
    with_server({.handler = handler}, [&](Server&, const coir::Address& address) {
      client = new (memory) Follower(address);
      expect(client->ask("/") && client->hears("data: again\n\n"));
    });
    expect(told.ended_by(ErrorCode::closed));
    client->~Follower();
  });
}

}  // namespace event_stream_test
