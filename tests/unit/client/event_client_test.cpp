// How coir/events.h follows a stream of events over broken connections.

#include <coir/events.h>

#include <CppUTest/TestHarness.h>
#include <coir/config.h>
#include <coir/detail/accounts.h>
#if !COIR_NO_ASYNC
#include <coir/fiber.h>
#endif

#include "tests/support/both_sides.h"
#include "tests/unit/client/scripted_server.h"

namespace event_client_test {

using namespace std::chrono_literals;
using namespace coir::http;
using coir::Deadline;
using coir::Error;
using coir::ErrorCode;
using coir::test::Peer;
using coir::test::ScriptedServer;

namespace {

constexpr std::string_view kHead = "HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream; charset=utf-8\r\n\r\n";

Deadline patience() {
  return Deadline::after(60s);
}

}  // namespace

TEST_GROUP_BASE(EventClient, coir::test::BothSides) {
  // follow runs the body with a client that follows a server with this script.
  template <class Body>
  void follow(const ScriptedServer::Script& script, EventClientOptions options, Body body, Timeouts timeouts = {}) {
    both_sides([&] {
      const std::size_t before = coir::account::http.used();
      {
        auto client = Client::create({.timeouts = timeouts});
        const ScriptedServer server(script);
        options.url = server.url("/events");
        auto events = coir::http::EventClient::create(*client, options);
        expect(events.has_value());
        if (events) body(*events);
      }
      expect(coir::account::http.used() == before);
    });
  }
};

TEST(EventClient, goes_on_behind_the_last_event_when_a_stream_breaks) {
  const auto script = [](Peer& peer) {
    const auto head = peer.hear();
    peer.say(kHead);
    if (peer.number == 0) {
      peer.say("id: 7\ndata: one\n\nid: 8\ndata: unfin");  // an event that is not whole does not count
    } else if (peer.number == 1) {
      peer.say(head.find("\r\nLast-Event-ID: 7\r\n") != head.npos ? "data: two\n\n" : "data: wrong\n\n");
      peer.until_gone();
    }
  };
  follow(script, {.pause = 1ms}, [&](coir::http::EventClient& events) {
    auto event = events.next(patience());
    expect(event && event->data == "one" && event->id == "7");
    event = events.next(patience());
    expect(event && event->data == "two" && events.attempts() == 2 && events.last_id() == "7");
  });
}

TEST(EventClient, begins_where_an_earlier_run_has_ended) {
  const auto script = [](Peer& peer) {
    const auto head = peer.hear();
    peer.say(kHead);
    peer.say(head.find("\r\nLast-Event-ID: 41\r\n") != head.npos ? "data: right\n\n" : "data: wrong\n\n");
  };
  follow(script, {.last_id = "41"}, [&](coir::http::EventClient& events) {
    const auto event = events.next(patience());
    expect(event && event->data == "right");
  });
}

TEST(EventClient, does_not_come_back_where_it_is_not_wanted) {
  const auto ends = [&](std::string_view answer, ErrorCode code) {
    const auto script = [answer](Peer& peer) {
      peer.hear();
      peer.say(answer);
    };
    follow(script, {.pause = 1ms}, [&](coir::http::EventClient& events) {
      for (int i = 0; i < 2; ++i) {
        const auto event = events.next(patience());
        expect(!event && event.error() == code && events.attempts() == 1);
      }
    });
  };
  ends("HTTP/1.1 204 No Content\r\n\r\n", ErrorCode::end_of_stream);
  ends("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", ErrorCode::not_found);
  ends("HTTP/1.1 500 Failed\r\nContent-Length: 0\r\n\r\n", ErrorCode::temporary);
  ends("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\ndata: x\n\n", ErrorCode::protocol);
  ends("HTTP/1.1 200 OK\r\n\r\ndata: x\n\n", ErrorCode::protocol);
  ends("220 a mail server\r\n\r\n", ErrorCode::protocol);
}

TEST(EventClient, does_not_repeat_a_request_that_is_none) {
  const RequestField fields[] = {{"Connection", "close"}};
  follow([](Peer& peer) { peer.hear(); }, {.fields = fields, .pause = 1ms},
         [&](coir::http::EventClient& events) {
           for (int i = 0; i < 2; ++i) {
             const auto event = events.next(patience());
             expect(!event && event.error() == ErrorCode::invalid && events.attempts() == 1);
           }
         });
}

TEST(EventClient, comes_back_without_an_id_that_no_field_may_hold) {
  const auto script = [](Peer& peer) {
    const bool has_id = peer.hear().find("Last-Event-ID") != std::string_view::npos;
    peer.say(kHead);
    if (peer.number == 0) {
      peer.say("id: a\x01z\ndata: one\n\n");
    } else {
      peer.say(has_id ? "data: with\n\n" : "data: without\n\n");
      peer.until_gone();
    }
  };
  follow(script, {.pause = 1ms}, [&](coir::http::EventClient& events) {
    auto event = events.next(patience());
    expect(event && event->data == "one" && event->id == "a\x01z");
    event = events.next(patience());
    expect(event && event->data == "without" && events.last_id() == "a\x01z");
  });
}

TEST(EventClient, misses_nothing_when_a_deadline_passes) {
  std::atomic<bool> go{false};
  const auto script = [&](Peer& peer) {
    peer.hear();
    peer.say(kHead);
    peer.say("data: one\n\ndata: ha");
    while (!go && usleep(1000) == 0) {
    }
    peer.say("lf\n\n");
    peer.until_gone();
  };
  follow(script, {}, [&](coir::http::EventClient& events) {
    go = false;
    // Before its first event a deadline may pass while there is no connection yet, which is another matter.
    auto event = events.next(patience());
    expect(event && event->data == "one");
    const auto attempts = events.attempts();
    const auto late = events.next(Deadline::after(30ms));
    expect(!late && late.error() == ErrorCode::timed_out && late.error().scope == 0);
    go = true;
    event = events.next(patience());
    expect(event && event->data == "half" && events.attempts() == attempts);
  });
}

// A server that has lost its power sends nothing, not even a reset.
TEST(EventClient, a_caller_with_short_deadlines_leaves_a_silent_server) {
  std::atomic<bool> left{false};
  const auto script = [&](Peer& peer) {
    peer.hear();
    peer.say(kHead);
    peer.say("data: one\n\n");
    peer.until_gone();
    left = true;
  };
  constexpr auto kNow = -1ms;
  for (const auto deadline : {20ms, 0ms, kNow}) {
    follow(script, {.pause = 100s},
           [&](coir::http::EventClient& events) {
             left = false;
             const Deadline last = patience();
             expect(events.next(last).has_value());
             while (!left && !last.passed()) {
               const auto none = events.next(deadline == kNow ? Deadline::now() : Deadline::after(deadline));
               expect(!none && none.error().is_late());
             }
             expect(left);
           },
           {.between_bytes = 100ms});
  }
}

// A program that looks for events now and then, with deadlines shorter than its server takes to answer, floods no server.
TEST(EventClient, a_caller_with_short_deadlines_makes_one_attempt) {
  const auto script = [](Peer& peer) {
    peer.hear();
    peer.until_gone();
  };
  follow(script, {.pause = 100s}, [&](coir::http::EventClient& events) {
    for (int i = 0; i < 5; ++i) {
      const auto event = events.next(Deadline::after(20ms));
      expect(!event && event.error() == ErrorCode::timed_out);
    }
    expect(events.attempts() == 1);
  });
}

#if !COIR_NO_ASYNC

TEST(EventClient, on_a_fiber_an_attempt_goes_on_from_one_call_to_the_next) {
  std::atomic<bool> go{false};
  const auto script = [&](Peer& peer) {
    peer.hear();
    while (!go && usleep(1000) == 0) {
    }
    peer.say(kHead);
    peer.say("data: x\n\n");
    peer.until_gone();
  };
  follow(script, {.pause = 1ms}, [&](coir::http::EventClient& events) {
    if (coir::current().id() == 0) return;
    go = false;
    for (int i = 0; i < 3; ++i) {
      const auto late = events.next(Deadline::after(10ms));
      expect(!late && late.error().is_late());
    }
    expect(events.attempts() == 1);
    go = true;
    std::expected<ServerEvent, Error> event = events.next(Deadline::after(10ms));
    while (!event && event.error().is_late()) event = events.next(Deadline::after(10ms));
    expect(event && event->data == "x" && events.attempts() == 1);
  });
}

TEST(EventClient, is_destroyed_while_it_connects) {
  const auto script = [](Peer& peer) {
    peer.hear();
    peer.until_gone();
  };
  follow(script, {}, [&](coir::http::EventClient& events) {
    const auto late = events.next(Deadline::after(10ms));
    expect(!late && late.error().is_late());
  });
}

#endif

TEST(EventClient, waits_longer_with_each_attempt_that_brings_nothing) {
  const auto script = [](Peer& peer) { peer.hear(); };
  follow(script, {.pause = 10ms, .longest_pause = 40ms}, [&](coir::http::EventClient& events) {
    const auto begin = coir::monotonic_ns();
    while (events.attempts() < 8 && wrong() == 0) {
      const auto none = events.next(Deadline::after(300ms));
      expect(!none && none.error() == ErrorCode::timed_out);
    }
    // 10, 20, 40, 40 ... ms.
    const auto elapsed_ms = static_cast<std::uint64_t>((coir::monotonic_ns() - begin) / 1'000'000);
    expect(events.attempts() <= 4 + elapsed_ms / 40);
  });
}

TEST(EventClient, keeps_to_the_pause_that_the_stream_wants) {
  const auto script = [](Peer& peer) {
    peer.hear();
    peer.say(kHead);
    peer.say("retry: 600000\ndata: x\n\n");
  };
  follow(script, {.pause = 1ms, .longest_pause = 1ms}, [&](coir::http::EventClient& events) {
    expect(events.next(patience()).has_value());
    const auto none = events.next(Deadline::after(50ms));
    expect(!none && none.error() == ErrorCode::timed_out && events.attempts() == 1);
  });
}

TEST(EventClient, does_not_hurry_where_a_stream_wants_no_pause_and_brings_nothing) {
  const auto script = [](Peer& peer) {
    peer.hear();
    peer.say(kHead);
    peer.say("retry: 0\n\n");
  };
  follow(script, {}, [&](coir::http::EventClient& events) {
    const auto begin = coir::monotonic_ns();
    const auto none = events.next(Deadline::after(700ms));
    expect(!none && none.error() == ErrorCode::timed_out);
    // 0, 500, 1500, 3500 ... ms.
    const auto elapsed_ms = static_cast<std::uint64_t>((coir::monotonic_ns() - begin) / 1'000'000);
    expect(events.attempts() <= 1 + elapsed_ms / 500);
  });
}

TEST(EventClient, a_comment_of_any_length_is_dropped) {
  const auto script = [](Peer& peer) {
    peer.hear();
    peer.say(kHead);
    peer.say(":");
    for (int i = 0; i < 1000; ++i) peer.say(": data: a comment may well be longer than an event ");
    peer.say("\ndata: x\n\n");
    peer.until_gone();
  };
  follow(script, {.pause = 1ms}, [&](coir::http::EventClient& events) {
    const auto event = events.next(patience());
    expect(event && event->data == "x" && events.attempts() == 1);
  });
}

TEST(EventClient, bounds_an_event) {
  const auto script = [](Peer& peer) {
    peer.hear();
    peer.say(kHead);
    while (peer.say("data: 0123456789012345678901234567890123456789\n")) {
    }
  };
  follow(script, {.pause = 1ms}, [&](coir::http::EventClient& events) {
    const auto event = events.next(patience());
    expect(!event && event.error() == ErrorCode::limit && events.attempts() == 1);
  });
}

TEST(EventClient, comes_back_as_often_as_it_takes) {
  const auto script = [](Peer& peer) {
    peer.hear();
    if (peer.number < 100) return;
    peer.say(kHead);
    peer.say("data: x\n\n");
    peer.until_gone();
  };
  follow(script, {.pause = 1ms, .longest_pause = 1ms}, [&](coir::http::EventClient& events) {
    expect(events.next(patience()).has_value() && events.attempts() == 101);
  });
}

TEST(EventClient, an_event_ends_the_growth_of_the_pause) {
  const auto script = [](Peer& peer) {
    peer.hear();
    peer.say(kHead);
    peer.say("data: x\n\n");
  };
  // Pauses that went on doubling would come to more than two minutes.
  follow(script, {.pause = 1ms, .longest_pause = 24h}, [&](coir::http::EventClient& events) {
    for (int i = 0; i < 20; ++i) expect(events.next(patience()).has_value());
  });
}

}  // namespace event_client_test
