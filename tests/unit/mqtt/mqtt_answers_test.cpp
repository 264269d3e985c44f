// How coir/mqtt.h uses the network while the broker acknowledges: its writes, and the acknowledgements of its kernel.

#include <coir/mqtt.h>

#include <CppUTest/TestHarness.h>
#include <coir/nursery.h>
#include <coir/runtime.h>
#include <netinet/tcp.h>

#include "tests/support/expectations.h"
#include "tests/support/until.h"
#include "tests/unit/mqtt/scripted_broker.h"

namespace mqtt_answers_test {

using namespace std::chrono_literals;
using namespace coir::mqtt;
using coir::Deadline;
using coir::test::BrokerSide;
using coir::test::Peer;
using coir::test::ScriptedServer;

namespace {

constexpr unsigned kWindow = 16, kWindows = 40;
constexpr char kPublish = 0x32;

std::atomic<unsigned> g_writes = 0;        // that begin with a PUBLISH of QoS 1
std::atomic<unsigned> g_acknowledged = 0;  // times that the kernel had to acknowledge at once

}  // namespace

extern "C" {
ssize_t __real_send(int fd, const void* bytes, size_t size, int flags);
ssize_t __wrap_send(int fd, const void* bytes, size_t size, int flags) {
  if (size != 0 && *static_cast<const char*>(bytes) == kPublish) ++g_writes;
  return __real_send(fd, bytes, size, flags);
}
int __real_setsockopt(int fd, int level, int name, const void* value, socklen_t size);
int __wrap_setsockopt(int fd, int level, int name, const void* value, socklen_t size) {
  if (level == IPPROTO_TCP && name == TCP_QUICKACK) ++g_acknowledged;
  return __real_setsockopt(fd, level, name, value, size);
}
}

TEST_GROUP_BASE(MqttAnswers, coir::test::Expecting) {
  // with has `count` messages sent to a broker of this script, which meets a client that has queued them all, and checks
  // how many writes they take and how often the kernel acknowledges at once.
  void with(const ScriptedServer::Script& script, unsigned count, unsigned writes, unsigned acknowledged) {
    for (const unsigned workers : {1u, 2u}) {
      g_writes = g_acknowledged = 0;
      const auto ended = coir::run_until_idle({.workers = workers}, [&] {
        const ScriptedServer server(script);
        auto client = MqttClient::create({.host = "127.0.0.1",
                                          .port = server.port(),
                                          .client_id = "c",
                                          .queue_bytes = 65'536,
                                          .max_in_flight = kWindow});
        expect(client.has_value());
        if (!client) return;
        for (unsigned i = 0; i < count; ++i) expect(client->publish("a", "b").has_value());
        coir::Nursery nursery;
        nursery.start({.name = "client"}, [&] { expect(client->run().has_value()); });
        expect(client->flush(Deadline::after(60s)).has_value());
        client->close();
        expect(nursery.join().has_value());
      });
      check();
      CHECK_TRUE(ended.has_value());
      CHECK_EQUAL(writes, g_writes.load());
      CHECK_EQUAL(acknowledged, g_acknowledged.load());
    }
  }
};

TEST(MqttAnswers, those_that_come_together_refill_the_window_in_one_write) {
  const auto script = [&](Peer& peer) {
    BrokerSide side(peer);
    expect(side.consent());
    for (unsigned window = 0; window < kWindows; ++window) {
      char answers[kWindow * 4];
      for (unsigned i = 0; i < kWindow; ++i) {
        expect(side.hear() == kPublish && side.id() == window * kWindow + i + 1);
        const char answer[] = {'\x40', 2, static_cast<char>(side.id() >> 8), static_cast<char>(side.id())};
        memcpy(answers + 4 * i, answer, sizeof answer);
      }
      peer.say({answers, sizeof answers});
    }
    side.hear_type(14);
  };
  with(script, kWindows * kWindow, kWindows, 0);
}

TEST(MqttAnswers, those_that_are_missing_are_not_held_back_by_a_late_acknowledgement) {
  const auto script = [&](Peer& peer) {
    BrokerSide side(peer);
    expect(side.consent());
    expect(side.hear() == kPublish && side.hear() == kPublish);
    side.acknowledge(1);
    // A broker under Nagle's algorithm does not send the second before that.
    expect(coir::test::until([] { return g_acknowledged == 1; }, Deadline::after(60s)));
    side.acknowledge(2);
    side.hear_type(14);
  };
  with(script, 2, 1, 1);
}

}  // namespace mqtt_answers_test
