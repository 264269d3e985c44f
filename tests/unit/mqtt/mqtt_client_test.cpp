// coir/mqtt.h against a broker that does as a test wants.

#include <coir/mqtt.h>

#include <CppUTest/TestHarness.h>
#include <coir/cancel_scope.h>
#include <coir/detail/accounts.h>
#include <coir/nursery.h>
#include <coir/runtime.h>
#include <string.h>

#include "mqtt/client_state.h"
#include "tests/support/expectations.h"
#include "tests/support/until.h"
#include "tests/unit/mqtt/scripted_broker.h"

namespace mqtt_client_test {

using namespace std::chrono_literals;
using namespace coir::mqtt;
using coir::Deadline;
using coir::Error;
using coir::ErrorCode;
using coir::test::BrokerSide;
using coir::test::kConsentToSession;
using coir::test::Peer;
using coir::test::ScriptedServer;
using namespace std::string_view_literals;

namespace {

constexpr Subscription kFilters[] = {{"in/#"}};

Deadline patience() {
  return Deadline::after(60s);
}

}  // namespace

TEST_GROUP_BASE(MqttClient, coir::test::Expecting) {
  // with runs the body beside a client of a broker with this script, with one worker and with two.
  template <class Body>
  void with(const ScriptedServer::Script& script, ClientOptions options, Body body) {
    options.host = "127.0.0.1";
    if (options.client_id.empty()) options.client_id = "c";
    if (options.pause == 1s) options.pause = 1ms;
    for (const unsigned workers : {1u, 2u}) {
      const auto ended = coir::run_until_idle({.workers = workers}, [&] {
        const ScriptedServer server(script);
        options.port = server.port();
        auto client = coir::mqtt::MqttClient::create(options);
        expect(client.has_value());
        if (!client) return;
        coir::Nursery nursery;
        nursery.start({.name = "client"}, [&] { expect(client->run().has_value()); });
        body(*client);
        client->close();
        expect(nursery.join().has_value());
      });
      check();
      CHECK_TRUE(ended.has_value());
      CHECK_EQUAL(0u, coir::account::mqtt.used());
    }
  }
};

TEST(MqttClient, introduces_itself_publishes_and_takes_its_leave) {
  std::atomic<bool> left = false;
  const auto script = [&](Peer& peer) {
    BrokerSide side(peer);
    expect(side.hear() == 0x10 && side.body() == "\0\4MQTT\4\xee\0\x0a\0\1c\0\4will\0\4gone\0\1u\0\1p"sv);
    peer.say(coir::test::kConsent);
    expect(side.hear() == 0x30 && side.body() == "\0\1aonce"sv);
    expect(side.hear() == 0x33 && side.topic() == "b" && side.payload() == "sure");
    side.acknowledge(side.id());
    expect(side.hear() == 0xe0);
    left = true;
  };
  const ClientOptions options{.user = "u",
                              .password = "p",
                              .will = {"will", "gone", {.retained = true}},
                              .clean_session = true,
                              .keep_alive = 10s};
  with(script, options, [&](coir::mqtt::MqttClient& client) {
    expect(client.publish("a", "once", {.qos = Qos::at_most_once}).has_value());
    expect(client.publish("b", "sure", {.retained = true}).has_value());
    expect(client.flush(patience()).has_value() && client.queued() == 0);
    expect(client.counters().acknowledged.load() == 1);
  });
  CHECK_TRUE(left);
}

TEST(MqttClient, a_message_without_acknowledgement_is_sent_again_under_its_id_as_a_duplicate) {
  const auto script = [&](Peer& peer) {
    BrokerSide side(peer);
    static std::atomic<unsigned> first_id;
    side.consent(peer.number == 0 ? coir::test::kConsent : kConsentToSession);
    expect(side.hear_type(3) == (peer.number == 0 ? 0x32u : 0x3au));
    if (peer.number == 0) {
      first_id = side.id();
      return;
    }
    expect(side.id() == first_id && side.payload() == "1");
    side.acknowledge(side.id());
    // It was in flight too, or was not: the order is kept in any case.
    expect(side.hear_type(3) != 0 && side.payload() == "2");
    side.acknowledge(side.id());
    peer.until_gone();
  };
  with(script, {.max_in_flight = 1}, [&](coir::mqtt::MqttClient& client) {
    expect(client.publish("a", "1").has_value() && client.publish("a", "2").has_value());
    expect(client.flush(patience()).has_value());
  });
}

TEST(MqttClient, in_a_session_that_the_broker_has_lost_nothing_is_a_duplicate_and_all_is_subscribed_again) {
  const auto script = [&](Peer& peer) {
    BrokerSide side(peer);
    side.consent();
    expect(side.hear() == 0x82 && side.body().substr(2) == "\0\4in/#\1"sv);
    side.grant();
    expect(side.hear_type(3) == 0x32);
    if (peer.number == 0) return;
    side.acknowledge(side.id());
    peer.until_gone();
  };
  with(script, {.subscriptions = kFilters}, [&](coir::mqtt::MqttClient& client) {
    expect(client.publish("a", "1").has_value() && client.flush(patience()).has_value());
  });
}

TEST(MqttClient, in_a_session_that_the_broker_has_kept_nothing_is_subscribed_again) {
  const auto script = [&](Peer& peer) {
    BrokerSide side(peer);
    side.consent(peer.number == 0 ? coir::test::kConsent : kConsentToSession);
    if (peer.number == 0) {
      expect(side.hear() == 0x82);
      side.grant();
      peer.say("\x32\x08\0\4in/a\0\1"sv);
      expect(side.hear() == 0x40);
      return;
    }
    peer.say("\x32\x08\0\4in/b\0\2"sv);
    // The leave, and nothing before it.
    expect(side.hear() == 0xe0);
    peer.until_gone();
  };
  with(script, {.subscriptions = kFilters}, [&](coir::mqtt::MqttClient& client) {
    auto message = client.receive(patience());
    expect(message && message->topic == "in/a" && message->at_least_once);
    message = client.receive(patience());
    expect(message && message->topic == "in/b");
    expect(client.counters().connections.load() == 2);
  });
}

TEST(MqttClient, a_kept_sessions_messages_of_other_topics_are_acknowledged_and_dropped) {
  const auto script = [&](Peer& peer) {
    BrokerSide side(peer);
    side.consent(kConsentToSession);
    peer.say("\x32\x0f\0\x0bold/command\0\1"sv);
    // The message is acknowledged before or behind the subscription.
    bool acknowledged = false;
    for (int i = 0; i < 2; ++i) {
      if (const unsigned first = side.hear(); first == 0x82)
        side.grant();
      else
        acknowledged = acknowledged || (first == 0x40 && side.number(0) == 1);
    }
    expect(acknowledged);
    peer.say("\x30\6\0\4in/z"sv);
    peer.until_gone();
  };
  with(script, {.subscriptions = kFilters}, [&](coir::mqtt::MqttClient& client) {
    const auto message = client.receive(patience());
    expect(message && message->topic == "in/z" && client.counters().unasked.load() == 1);
  });
}

TEST(MqttClient, a_refused_subscription_is_told_and_tried_again_alone) {
  std::atomic<int> told = 0;
  const auto script = [&](Peer& peer) {
    BrokerSide side(peer);
    side.consent();
    expect(side.hear() == 0x82 && side.body().substr(2) == "\0\4in/#\1\0\3b/c\0"sv);
    const char first[] = {'\x90', 4, side.body()[0], side.body()[1], 1, '\x80'};
    peer.say({first, sizeof first});
    expect(side.hear() == 0x82 && side.body().substr(2) == "\0\3b/c\0"sv);
    expect(told.exchange(0) == 1);
    side.grant(0);
    peer.say("\x30\5\0\3b/c"sv);
    peer.until_gone();
  };
  constexpr Subscription kTwo[] = {{"in/#"}, {"b/c", Qos::at_most_once}};
  const auto refused = [&](std::string_view filter) {
    if (filter == "b/c") ++told;
  };
  with(script, {.subscriptions = kTwo, .on_refused = refused}, [&](coir::mqtt::MqttClient& client) {
    const auto message = client.receive(patience());
    expect(message && message->topic == "b/c" && client.counters().refused_filters.load() == 1);
  });
}

TEST(MqttClient, a_broker_that_does_not_answer_a_subscription_is_left_and_asked_again) {
  const auto script = [&](Peer& peer) {
    BrokerSide side(peer);
    side.consent();
    expect(side.hear() == 0x82);
    if (peer.number == 0) return peer.until_cut_off();
    side.grant();
    peer.say("\x30\6\0\4in/z"sv);
    peer.until_gone();
  };
  with(script, {.subscriptions = kFilters, .answer_timeout = 200ms},
       [&](coir::mqtt::MqttClient& client) { expect(client.receive(patience()).has_value()); });
}

TEST(MqttClient, a_message_is_acknowledged_once_the_program_asks_for_the_next) {
  std::atomic<bool> handled = false;
  const auto script = [&](Peer& peer) {
    BrokerSide side(peer);
    side.consent();
    side.hear_type(8);
    side.grant();
    handled = false;
    peer.say("\x33\x0a\0\4in/x\0\7hi\x34\x08\0\4in/y\0\x08"sv);
    expect(side.hear() == 0x40 && side.number(0) == 7 && handled);
    // One of QoS 2, from a session that another program has left, gets its answers.
    expect(side.hear() == 0x50 && side.number(0) == 8);
    side.acknowledge(8, 0x62);
    expect(side.hear() == 0x70 && side.number(0) == 8);
    peer.say("\x30\6\0\4in/z"sv);
    peer.until_gone();
  };
  with(script, {.subscriptions = kFilters}, [&](coir::mqtt::MqttClient& client) {
    auto message = client.receive(patience());
    expect(message && message->topic == "in/x" && message->payload == "hi" && message->retained);
    handled = true;
    message = client.receive(patience());
    expect(message && message->topic == "in/y" && message->at_least_once);
    message = client.receive(patience());
    expect(message && message->topic == "in/z" && !message->at_least_once);
    expect(client.receive(Deadline::now()).error() == ErrorCode::timed_out);
  });
}

TEST(MqttClient, a_message_that_is_too_large_is_left_out_and_acknowledged) {
  const auto script = [&](Peer& peer) {
    BrokerSide side(peer);
    side.consent();
    side.hear_type(8);
    peer.say("\x32\xb8\x05\0\4in/x\0\7"sv);  // 696 bytes
    const char rest[688] = {};
    peer.say({rest, sizeof rest});
    peer.say("\x30\6\0\4in/z"sv);
    expect(side.hear() == 0x40 && side.number(0) == 7);
    peer.until_gone();
  };
  with(script, {.subscriptions = kFilters, .max_packet = 128}, [&](coir::mqtt::MqttClient& client) {
    const auto message = client.receive(patience());
    expect(message && message->topic == "in/z" && client.counters().too_large.load() == 1);
  });
}

TEST(MqttClient, a_full_queue_refuses_or_drops_its_oldest_and_counts) {
  const auto script = [](Peer& peer) { peer.until_gone(); };
  with(script, {.queue_messages = 2}, [&](coir::mqtt::MqttClient& client) {
    expect(client.publish("a", "1").has_value() && client.publish("a", "2").has_value());
    expect(client.publish("a", "3").error() == ErrorCode::queue_full && client.queued() == 2);
    expect(client.counters().refused.load() == 1 && client.counters().dropped.load() == 0);
    static const char large[4096] = {};
    expect(client.publish("a", {large, sizeof large}).error() == ErrorCode::limit);
    for (const std::string_view bad : {""sv, "a/+"sv, "#"sv, "$SYS/a"sv, "a\0b"sv, "\xff"sv}) {
      expect(client.publish(bad, "").error() == ErrorCode::invalid);
    }
  });
  with(script, {.queue_bytes = 64, .when_full = WhenFull::drop_oldest}, [&](coir::mqtt::MqttClient& client) {
    for (const char* text : {"1", "2", "3", "4", "5", "6", "7", "8", "9"}) {
      expect(client.publish("a", text).has_value());
    }
    expect(client.queued() == 4 && client.counters().dropped.load() == 5);
  });
}

TEST(MqttClient, close_ends_an_attempt_to_connect) {
  std::atomic<int> greeted{0}, closed{0};
  const auto script = [&](Peer& peer) {
    BrokerSide side(peer);
    if (side.hear_type(1) != 0) ++greeted;
    peer.until_gone();
  };
  const auto ended = [&](const coir::mqtt::Connection& connection) {
    if (!connection.connected && connection.error == ErrorCode::closed) ++closed;
  };
  int runs = 0;
  with(script, {.on_connection = ended}, [&](coir::mqtt::MqttClient&) {
    ++runs;
    expect(coir::test::until([&] { return greeted == runs; }, patience()));
  });
  CHECK_EQUAL(2, closed.load());
}

TEST(MqttClient, a_link_on_which_pings_are_not_answered_is_given_up) {
  const auto script = [&](Peer& peer) {
    BrokerSide side(peer);
    side.consent();
    if (peer.number == 0) {
      expect(side.hear_type(12) == 0xc0);
      return peer.until_cut_off();
    }
    side.hear_type(3);
    side.acknowledge(side.id());
    peer.until_gone();
  };
  with(script, {.keep_alive = 1s, .answer_timeout = 200ms}, [&](coir::mqtt::MqttClient& client) {
    expect(client.publish("a", "1").has_value() && client.flush(patience()).has_value());
  });
}

TEST(MqttClient, a_broker_that_refuses_or_talks_nonsense_is_tried_again) {
  std::atomic<unsigned> refusals = 0;
  const auto script = [&](Peer& peer) {
    BrokerSide side(peer);
    constexpr std::string_view kAnswers[] = {"\x20\2\0\5"sv, "HTTP/1.1 400 Bad Request\r\n"sv, "\xd0\0"sv, ""sv};
    if (peer.number < 4) {
      side.consent(kAnswers[peer.number]);
      return;
    }
    side.consent();
    side.hear_type(3);
    side.acknowledge(side.id());
    peer.until_gone();
  };
  const auto told = [&](const Connection& connection) {
    if (connection.refusal == 5 && strcmp(describe(connection.error), "not authorized") == 0) ++refusals;
  };
  with(script, {.longest_pause = 2ms, .on_connection = told}, [&](coir::mqtt::MqttClient& client) {
    expect(client.publish("a", "1").has_value() && client.flush(patience()).has_value());
  });
  CHECK_EQUAL(2u, refusals.load());
}

TEST(MqttClient, close_ends_a_client_that_waits_for_a_message_or_holds_one) {
  const auto script = [&](Peer& peer) {
    BrokerSide side(peer);
    side.consent();
    side.hear_type(8);
    peer.say("\x30\6\0\4in/z\x30\6\0\4in/z"sv);
    peer.until_gone();
  };
  with(script, {.subscriptions = kFilters},
       [&](coir::mqtt::MqttClient& client) { expect(client.receive(patience()).has_value()); });
}

TEST(MqttClient, bad_options_are_refused) {
  const auto refused = [](ClientOptions options, ErrorCode why) {
    if (options.host.empty()) options.host = "localhost";
    const auto made = coir::mqtt::MqttClient::create(options);
    return !made && made.error() == why;
  };
  CHECK_TRUE(refused({}, ErrorCode::invalid));
  CHECK_TRUE(refused({.client_id = "\xff"}, ErrorCode::invalid));
  CHECK_TRUE(refused({.client_id = "c", .will = {.topic = "a/#"}}, ErrorCode::invalid));
  CHECK_TRUE(refused({.client_id = "c", .keep_alive = 0s}, ErrorCode::invalid));
  CHECK_TRUE(refused({.client_id = "c", .queue_messages = 0}, ErrorCode::invalid));
  CHECK_TRUE(refused({.client_id = "c", .max_packet = 2 * 1024 * 1024}, ErrorCode::limit));
  constexpr Subscription kBad[] = {{"a/#/b"}};
  CHECK_TRUE(refused({.client_id = "c", .subscriptions = kBad}, ErrorCode::invalid));
  CHECK_EQUAL(0u, coir::account::mqtt.used());
}

TEST(MqttClient, ends_when_the_deadline_of_a_scope_around_it_has_passed) {
  const auto script = [](Peer& peer) {
    BrokerSide(peer).consent();
    peer.until_gone();
  };
  for (const unsigned workers : {1u, 2u}) {
    const auto ended = coir::run_until_idle({.workers = workers}, [&] {
      const ScriptedServer server(script);
      auto client = coir::mqtt::MqttClient::create({.host = "127.0.0.1", .port = server.port(), .client_id = "c"});
      expect(client.has_value());
      if (!client) return;
      coir::CancelScope scope(Deadline::after(20ms));
      const auto outcome = client->run();
      expect(!outcome && scope.caused(outcome.error()));
    });
    check();
    CHECK_TRUE(ended.has_value());
  }
}

TEST(MqttClient, a_ping_for_which_there_is_no_room_is_not_counted_as_sent) {
  constexpr std::size_t kPacket = 128;
  const std::string_view text = "0123456789012345678901234567890123456789012345678901234567890123456789";
  // Two messages of QoS 0 fill the output: each has a head of two bytes and its topic's five.
  ClientState state({.host = "h", .client_id = "c", .max_packet = kPacket});
  state.queue = std::move(*MessageQueue::create(1024, 10));
  state.out = std::move(*coir::Buffer::take(kPacket));
  state.queue.push({.topic = "abc", .payload = text.substr(0, 57)});
  state.queue.push({.topic = "abc", .payload = text.substr(0, 57)});
  state.sent_ns = state.asks_ns = coir::monotonic_ns();
  CHECK_EQUAL(kPacket, state.gather());  // nothing was ever heard: a ping is due
  CHECK_FALSE(state.pinged);
  CHECK_EQUAL(2u, state.gather());
  CHECK_TRUE(state.pinged);
}

}  // namespace mqtt_client_test
