// How an exchange that rests until its upstream answers continues: by the answer, in parts too, by the upstream's end, by the
// deadline, by the client's next request, and when the server stops.

#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>
#include <coir/resting_wait.h>
#include <poll.h>

#include "tests/unit/proxy/gateway.h"

namespace proxy_waiting_ends_test {

using namespace coir::test;
using coir::Address;
using coir::Fiber;
using namespace std::chrono_literals;

namespace {

constexpr std::string_view kWait = "GET /wait HTTP/1.1\r\nHost: t\r\n\r\n";
constexpr std::string_view kWaitAndFine = "GET /wait HTTP/1.1\r\nHost: t\r\n\r\nGET /fine HTTP/1.1\r\nHost: t\r\n\r\n";
constexpr std::string_view kFineAndWait = "GET /fine HTTP/1.1\r\nHost: t\r\n\r\nGET /wait HTTP/1.1\r\nHost: t\r\n\r\n";
constexpr std::string_view kPutAndFine =
    "PUT /wait HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nonceGET /fine HTTP/1.1\r\nHost: t\r\n\r\n";
constexpr std::string_view kFine = "GET /fine HTTP/1.1\r\nHost: t\r\n\r\n";

// Paused is an upstream that does `then` with each request for /wait once the test lets it.
struct Paused {
  std::function<bool(Peer&)> then;
  std::atomic<int> heard{0};
  std::atomic<int> steps{0};

  ScriptedServer::Script script() {
    heard = steps = 0;
    return [this](Peer& peer) {
      for (std::string_view head = peer.hear(); !head.empty(); head = peer.hear()) {
        if (head.find("/wait") != head.npos) {
          ++heard;
          if (!until_step(1) || !then(peer)) return;
        } else if (!peer.say(kHello)) {
          return;
        }
      }
    };
  }
  // until_step waits for the test; false if the test is over.
  bool until_step(int step) const {
    while (steps < step) ::poll(nullptr, 0, 1);
    return true;
  }
  ~Paused() { steps = 100; }
};

}  // namespace

TEST_GROUP_BASE(ProxyWaitingEnds, Gateway) {
  // at_rest has a client ask for /wait and runs `visit` once nothing of its exchange is active.
  template <class Visit>
  void at_rest(Paused& paused, const ForwardRules& rules, std::string_view request, Visit visit) {
    through(paused.script(), rules, {}, [&](Server& server, const Address& address, Stage& stage) {
      paused.heard = paused.steps = 0;
      Client client(address);
      expect(client.say(request) && until([&] { return paused.heard == 1 && server.gauges().active == 0; }, soon()));
      visit(server, client, stage);
      paused.steps = 100;
    });
  }
  // rests_again waits until nothing is active behind something that has woken the exchange. A busy machine may miss that it was.
  void rests_again(Server& server) {
    until([&] { return server.gauges().active != 0; }, coir::Deadline::after(2s));
    expect(until([&] { return server.gauges().active == 0; }, soon()));
  }
};

TEST(ProxyWaitingEnds, an_answer_in_parts_is_passed_on_whole) {
  Paused paused;
  paused.then = [&](Peer& peer) {
    return peer.say("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 20") && paused.until_step(2) &&
           peer.say("0 OK\r\nContent-Length: 5\r\n\r\nhel") && paused.until_step(3) && peer.say("lo");
  };
  at_rest(paused, {}, kWait, [&](Server&, Client& client, Stage&) {
    paused.steps = 1;
    expect(client.hear("103 Early Hints"));
    paused.steps = 2;
    expect(client.hear("200 OK") && client.hear("hel"));
    paused.steps = 3;
    expect(client.hear("hello") && client.say(kFine) && client.hear("X-Name: board"));
  });
}

TEST(ProxyWaitingEnds, an_upstream_that_hangs_up_is_502_and_the_client_stays) {
  Paused paused;
  paused.then = [](Peer& peer) { return peer.hang_up(), false; };
  at_rest(paused, {}, kWait, [&](Server&, Client& client, Stage& stage) {
    const auto before = stage.forwarder->counters().bad_gateway.load();
    paused.steps = 1;
    expect(client.hear("502 Bad Gateway"));
    expect(stage.forwarder->counters().bad_gateway.load() == before + 1);
    expect(client.say(kFine) && client.hear("X-Name: board"));
  });
}

TEST(ProxyWaitingEnds, an_answer_that_is_none_is_502) {
  Paused paused;
  paused.then = [](Peer& peer) { return peer.say("SSH-2.0-board\r\n\r\n"), false; };
  at_rest(paused, {}, kWait, [&](Server&, Client& client, Stage&) {
    paused.steps = 1;
    expect(client.hear("502 Bad Gateway"));
  });
}

TEST(ProxyWaitingEnds, the_deadline_ends_it_by_504) {
  Paused paused;
  paused.then = [](Peer& peer) { return peer.say(kHello); };
  at_rest(paused, {.first_byte = 1s}, kWait, [&](Server&, Client& client, Stage& stage) {
    const auto before = stage.forwarder->counters().timed_out.load();
    expect(client.hear("504 Gateway Timeout"));
    expect(stage.forwarder->counters().timed_out.load() == before + 1);
  });
}

TEST(ProxyWaitingEnds, a_request_behind_it_is_answered_behind_it) {
  Paused paused;
  paused.then = [](Peer& peer) { return peer.say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst"); };
  at_rest(paused, {}, kWait, [&](Server&, Client& client, Stage&) {
    expect(client.say(kFine));
    paused.steps = 1;
    expect(client.hear("first") && client.hear("hello"));
    expect(heard_by(client).find("first") < heard_by(client).find("hello"));
  });
}

// The upstream has no keep-alive behind the content of the second.
TEST(ProxyWaitingEnds, requests_that_came_with_it_are_answered_behind_it) {
  for (const std::string_view requests : {kWaitAndFine, kPutAndFine}) {
    Paused paused;
    paused.then = [](Peer& peer) {
      return peer.say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nfirst"), false;
    };
    at_rest(paused, {}, requests, [&](Server&, Client& client, Stage&) {
      paused.steps = 1;
      expect(client.hear("first") && client.hear("hello"));
      expect(heard_by(client).find("first") < heard_by(client).find("hello"));
    });
  }
}

TEST(ProxyWaitingEnds, answers_before_it_are_sent_before_it_rests) {
  Paused paused;
  paused.then = [](Peer& peer) { return peer.say("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlast"); };
  at_rest(paused, {}, kFineAndWait, [&](Server&, Client& client, Stage&) {
    expect(client.hear("hello"));
    paused.steps = 1;
    expect(client.hear("last"));
  });
}

TEST(ProxyWaitingEnds, one_that_was_woken_for_nothing_rests_again) {
  Paused paused;
  paused.then = [&](Peer& peer) {
    return peer.say("HTTP/1.1 20") && paused.until_step(2) && peer.say("0 OK\r\nContent-Length: 5\r\n\r\nfirst");
  };
  at_rest(paused, {}, kWait, [&](Server& server, Client& client, Stage&) {
    paused.steps = 1;
    rests_again(server);
    for (const char each : kFine) {
      expect(client.say({&each, 1}));
      // Without edges the kernel would tell of the byte over and over.
      if (each == 'G' && coir::resting_wait_hears_edges()) rests_again(server);
    }
    paused.steps = 2;
    expect(client.hear("200 OK") && client.hear("first") && client.hear("hello"));
  });
}

// The connection was used before: the content is there until it is certain that it was heard.
TEST(ProxyWaitingEnds, content_that_might_be_sent_again_is_let_go) {
  Paused paused;
  paused.then = [](Peer& peer) { return peer.say("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlast"); };
  through(paused.script(), {}, {}, [&](Server& server, const Address& address, Stage&) {
    paused.heard = paused.steps = 0;
    Client client(address);
    expect(client.say(kFine) && client.hear("hello"));
    expect(client.say("PUT /wait HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nonce"));
    expect(until([&] { return paused.heard == 1 && server.gauges().active == 0; }, soon()));
    paused.steps = 1;
    expect(client.hear("last"));
  });
}

TEST(ProxyWaitingEnds, an_upload_that_rests_is_not_sent_twice) {
  Paused paused;
  paused.then = [](Peer& peer) { return peer.hang_up(), false; };
  at_rest(paused, {}, "PUT /wait HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nonce",
          [&](Server&, Client& client, Stage&) {
            paused.steps = 1;
            expect(client.hear("502 Bad Gateway"));
            expect(paused.heard == 1);
          });
}

TEST(ProxyWaitingEnds, a_request_that_was_answered_in_part_is_not_sent_twice) {
  std::atomic<int> heard{0};
  std::atomic<bool> released{false};
  const auto script = [&](Peer& peer) {
    for (std::string_view head = peer.hear(); !head.empty(); head = peer.hear()) {
      if (head.find("/wait") == head.npos) {
        if (!peer.say(kHello)) return;
        continue;
      }
      ++heard;
      if (!peer.say("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")) return;
      while (!released) ::poll(nullptr, 0, 1);
      return peer.hang_up();
    }
  };
  through(script, {}, {}, [&](Server& server, const Address& address, Stage&) {
    heard = 0;
    released = false;
    Client client(address);
    expect(client.say(kFine) && client.hear("hello") && client.say(kWait) && client.hear("103 Early Hints"));
    expect(until([&] { return server.gauges().active == 0; }, soon()));
    released = true;
    expect(client.hear("502 Bad Gateway") && heard == 1);
  });
  released = true;
}

TEST(ProxyWaitingEnds, a_flood_of_interim_responses_with_rests_between_is_502) {
  Paused paused;
  paused.then = [&](Peer& peer) {
    for (int step = 2; peer.say("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n") && step < 100; ++step)
      paused.until_step(step);
    return false;
  };
  at_rest(paused, {}, kWait, [&](Server& server, Client& client, Stage& stage) {
    const auto before = stage.forwarder->counters().bad_gateway.load();
    for (int step = 1; step <= 16; ++step) {
      paused.steps = step;
      expect(client.hear("\r\n\r\n") && heard_by(client).starts_with("HTTP/1.1 103 "));
      client.have = 0;
      expect(until([&] { return server.gauges().active == 0; }, soon()));
    }
    paused.steps = 17;
    expect(client.hear("502 Bad Gateway") && stage.forwarder->counters().bad_gateway.load() == before + 1);
  });
}

TEST(ProxyWaitingEnds, a_server_that_stops_still_answers_it) {
  Paused paused;
  paused.then = [](Peer& peer) { return peer.say(kHello); };
  at_rest(paused, {}, kWait, [&](Server& server, Client& client, Stage&) {
    Fiber stopper = coir::spawn([&] { expect(server.stop(soon()).has_value()); });
    // The exchange is taken up by a fiber, which waits for the answer.
    expect(until([&] { return server.gauges().active == 1; }, soon()));
    paused.steps = 1;
    expect(client.hear("hello") && client.hear_the_end());
    client.reset();
    expect(stopper.join().has_value());
  });
}

}  // namespace proxy_waiting_ends_test
