// Want of memory or descriptors at any one point of the life of a client of MQTT: the n-th charge to the ledger is refused,
// or the n-th call to the kernel of a kind fails, for n = 1, 2, 3 ... until a life meets none. Either the client says so
// where it is made or started, or it connects again and everything is delivered; it ends when it is closed, and nothing
// is left over.

#include <CppUTest/TestHarness.h>
#include <coir/detail/accounts.h>
#include <coir/fiber.h>
#include <coir/mqtt.h>
#include <coir/runtime.h>
#include <errno.h>

#include "net/src/base/buffer_pool.h"
#include "tests/support/expectations.h"
#include "tests/support/faults.h"
#include "tests/support/pipe.h"
#include "tests/support/scale.h"
#include "tests/support/until.h"
#include "tests/unit/mqtt/scripted_broker.h"

namespace mqtt_faults_test {

using namespace std::chrono_literals;
using namespace coir::mqtt;
using namespace coir::test;
using coir::Deadline;
using coir::ErrorCode;

namespace {

struct Kind {
  Call call;
  int error;
};
constexpr Kind kKinds[] = {
    {Call::charge, 0},          {Call::epoll_ctl, ENOMEM},  {Call::epoll_ctl, ENOSPC},    {Call::epoll_wait, EINTR},
    {Call::eventfd, EMFILE},    {Call::madvise, ENOSYS},    {Call::mmap, ENOMEM},         {Call::mprotect, ENOMEM},
    {Call::poll, ENOMEM},       {Call::ppoll, ENOMEM},      {Call::recv, ENOMEM},         {Call::recv, ECONNRESET},
    {Call::send, ENOBUFS},      {Call::send, EPIPE},        {Call::sendmsg, ENOMEM},      {Call::socket, EMFILE},
    {Call::connect, ENOBUFS},   {Call::getsockopt, ENOMEM}, {Call::setsockopt, ENOMEM},   {Call::close, EINTR},
    {Call::shutdown, ENOTCONN}, {Call::recv, EHOSTUNREACH}, {Call::connect, ENETUNREACH},
};

constexpr Subscription kFilters[] = {{"in/#"}};

// serve takes a client in, sends it one message and acknowledges what it publishes.
void serve(Peer& peer) {
  spare_this_thread();
  BrokerSide side(peer);
  side.consent();
  for (unsigned first = side.hear(); first != 0 && first != 0xe0; first = side.hear()) {
    if (first >> 4 == 8) {
      side.grant();
      peer.say("\x32\x0a\0\4in/x\0\7hi"sv);
    }
    if (first >> 4 == 3 && (first & 6) != 0) side.acknowledge(side.id());
    if (first >> 4 == 12) peer.say("\xd0\0"sv);
  }
}

enum class Life { whole, refused, wrong };

// live has one client publish and receive.
Life live(std::uint16_t port) {
  auto client = MqttClient::create(
      {.host = "127.0.0.1", .port = port, .client_id = "c", .subscriptions = kFilters, .pause = 1ms});
  if (!client) return Life::refused;
  bool ran = false;
  std::atomic<int> received{0};
  coir::Fiber runs = coir::spawn({.name = "client"}, [&] { ran = client->run().has_value(); });
  if (!runs.started()) return Life::refused;
  // Answers come behind messages, which come again with each connection.
  coir::Fiber reads = coir::spawn({.name = "reader"}, [&] {
    while (const auto message = client->receive()) {
      if (message->topic == "in/x" && message->payload == "hi") ++received;
    }
  });
  const bool reading = reads.started();
  bool right = false;
  if (reading) {
    const Deadline deadline = Deadline::after(60s);
    right = client->publish("a", "1") && client->flush(deadline) && client->queued() == 0;
    right = until([&] { return received != 0; }, deadline) && right;
  }
  client->close();
  const bool ended = runs.join().has_value() && (!reading || reads.join().has_value());
  if (!reading) return ended && ran ? Life::refused : Life::wrong;
  return ended && ran && right ? Life::whole : Life::wrong;
}

}  // namespace

TEST_GROUP_BASE(MqttFaults, coir::test::Expecting) {
  unsigned failed_calls[kCalls] = {};

  static std::size_t buffers() { return coir::account::buffers.used() - coir::Buffer::spare_bytes(); }

  // try_every lets each call of each kind fail once.
  void try_every() {
    const ScriptedServer broker(serve);
    // The first one leaves things for good: registered descriptors, spare buffers.
    expect(live(broker.port()) == Life::whole);
    const std::size_t held = buffers();
    until([&] { return count_fds() != 0; });
    const int descriptors = count_fds();
    for (const Kind& kind : kKinds) {
      for (unsigned nth = 1; wrong() == 0; ++nth) {
        inject({.call = kind.call, .error = kind.error, .nth = nth});
        const Life life = live(broker.port());
        const unsigned failed = withdraw();
        failed_calls[static_cast<unsigned>(kind.call)] += failed;
        const bool right = life == Life::whole || (life == Life::refused && failed != 0);
        if (!right) fprintf(stderr, "%s of number %u, errno %d\n", coir::test::name_of(kind.call), nth, kind.error);
        expect(right);
        expect(live(broker.port()) == Life::whole);
        expect(coir::account::mqtt.used() == 0 && buffers() == held);
        // The broker's side closes in its own time.
        expect(until([&] { return count_fds() <= descriptors; }, Deadline::after(60s)));
        if (failed == 0) break;
        expect(nth < 200);
      }
    }
  }
};

TEST(MqttFaults, after_any_failure_all_is_delivered_or_the_client_says_so_and_nothing_is_left) {
  for (const unsigned workers : {1u, 2u}) {
    const auto ran = coir::run_until_idle({.workers = workers}, [&] { try_every(); });
    check();
    CHECK_TRUE(ran.has_value());
  }
  for (const Call call : {Call::charge, Call::recv, Call::send, Call::socket, Call::connect}) {
    if (failed_calls[static_cast<unsigned>(call)] == 0) FAIL(coir::test::name_of(call));
  }
}

}  // namespace mqtt_faults_test
