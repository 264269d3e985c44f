// The name of an upstream is looked up again by the time of its answer.
#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>
#include <coir/format.h>
#include <coir/runtime.h>
#include <coir/tcp.h>
#include <stdio.h>
#include <sys/socket.h>

#include <atomic>
#include <string_view>

#include "proxy/upstreams/upstream.h"
#include "tests/support/child.h"
#include "tests/support/name_server.h"
#include "tests/support/until.h"

namespace upstream_names_test {

using namespace coir;
using namespace coir::http;
using namespace coir::test;
using namespace std::chrono_literals;

namespace {

constexpr int kNoServer = 77;

Deadline soon() {
  return Deadline::after(60s);
}

// peer_of is the last number of the address that a lease is connected to; 0: there is none.
int peer_of(const std::expected<UpstreamLease, Error>& lease) {
  if (!lease) return 0;
  sockaddr_storage memory{};
  socklen_t length = sizeof memory;
  auto* const address = reinterpret_cast<sockaddr*>(&memory);
  if (::getpeername(lease->stream().fd(), address, &length) != 0) return 0;
  char text[Address::kMaxText];
  const std::string_view peer = Address::from_sockaddr(address, length).format(text);
  return peer.starts_with("127.0.0.") ? peer[8] - '0' : 0;
}

// moves tells whether all is as it should be.
bool moves(NameServer& names) {
  auto old = TcpListener::listen(*Address::parse("127.0.0.2:0"));
  if (!old) return false;
  // The network is the test's own: nobody has the port at the other address.
  char text[48];
  const std::uint16_t port = old->local_address().port();
  auto fresh = TcpListener::listen(*Address::parse(coir::format(text, "127.0.0.3:", port)));
  if (!fresh) return false;
  auto upstreams = Upstreams::create(coir::format(text, "http://moving.example:", port));
  if (!upstreams) return false;
  UpstreamGroup& group = upstreams->group();

  auto first = group.take({}, soon());
  if (peer_of(first) != 2) return false;
  const int asked = names.asked();
  // While the answer holds nobody is asked again.
  if (peer_of(group.take({.must_be_new = true}, soon())) != 2 || names.asked() != asked) return false;
  // A connection rests that has been read from.
  auto peer = old->accept(soon());
  char byte[2];
  if (!peer || !peer->write("x", soon()) || !first->stream().read(byte, soon())) return false;
  first->give_back(true);
  if (upstreams->state().resting != 1) return false;
  names.move();
  // The old address is used until there is the new one, which may be at once; then the pool's connection is closed.
  if (!sleep_until(group.members()[0].look_again)) return false;
  if (const int used = peer_of(group.take({.must_be_new = true}, soon())); used != 2 && used != 3) return false;
  if (!until([&] { return upstreams->state().resting == 0; }) || names.asked() <= asked) return false;
  return peer_of(group.take({}, soon())) == 3 && peer_of(group.take({.must_be_new = true}, soon())) == 3;
}

// goes_on tells whether a name server that has fallen silent costs nobody any time.
bool goes_on(NameServer& names) {
  auto listener = TcpListener::listen(*Address::parse("127.0.0.2:0"));
  if (!listener) return false;
  char text[48];
  auto upstreams = Upstreams::create(coir::format(text, "http://moving.example:", listener->local_address().port()));
  if (!upstreams || peer_of(upstreams->group().take({}, soon())) != 2) return false;
  const int asked = names.asked();
  names.silence();
  if (!sleep_until(upstreams->group().members()[0].look_again)) return false;
  // The resolver is patient for ten seconds.
  const Deadline patience = Deadline::after(9s);
  for (int i = 0; i < 3; ++i) {
    if (peer_of(upstreams->group().take({}, soon())) != 2 || patience.passed()) return false;
  }
  return until([&] { return names.asked() > asked; });
}

// asks_once tells whether many exchanges that need a name nobody knows yet ask for it once.
bool asks_once(NameServer& names) {
  auto upstreams = Upstreams::create("http://late.example:80");
  if (!upstreams) return false;
  names.hold();
  Fiber fibers[20];
  for (Fiber& each : fibers) {
    each = spawn({.name = "takes"}, [&] { static_cast<void>(upstreams->group().take({}, soon())); });
  }
  for (const Fiber& each : fibers) until_parked(each);
  // The one that asks may leave: then the next one asks.
  if (!fibers[0].cancel("it leaves") || !fibers[0].join()) return false;
  names.release();
  for (std::size_t i = 1; i < std::size(fibers); ++i) {
    if (!fibers[i].join()) return false;
  }
  // Two ask for IPv4 and IPv6, and maybe once more on a busy machine.
  return upstreams->group().members()[0].known.size() == 1 && names.asked() <= 8;
}

// keeps_failure tells whether a name that could not be found is asked for again after a second, and not before.
bool keeps_failure(NameServer& names) {
  auto upstreams = Upstreams::create("http://broken.example:80");
  if (!upstreams) return false;
  UpstreamGroup& group = upstreams->group();
  const Deadline& look_again = group.members()[0].look_again;
  for (bool in_time = false; !in_time;) {
    const auto first = group.take({}, soon());
    const int asked = names.asked();
    const Deadline kept_until = look_again;
    const auto second = group.take({}, soon());
    if (first || second || !(first.error() == second.error()) || asked == 0) return false;
    if (kept_until == Deadline::now()) return false;
    in_time = !kept_until.passed();
    if (in_time && names.asked() != asked) return false;
  }
  const int asked = names.asked();
  return sleep_until(look_again).has_value() && !group.take({}, soon()) && names.asked() > asked;
}

// leaves_time tells whether the next server is tried where the name of the first one is not found.
bool leaves_time(NameServer&) {
  auto listener = TcpListener::listen(*Address::parse("127.0.0.2:0"));
  if (!listener) return false;
  char text[48];
  const UpstreamServer servers[] = {{"http://silent.example:80"},
                                    {coir::format(text, "http://127.0.0.2:", listener->local_address().port())}};
  bool has_lease = false;
  // A busy machine may need more time to connect.
  for (auto time = 50ms; !has_lease && time < 4s; time *= 2) {
    auto upstreams = Upstreams::create(servers, {.connect = 5ms});
    has_lease = upstreams && peer_of(upstreams->group().take({}, Deadline::after(time))) == 2;
  }
  return has_lease;
}

// tells_why tells whether a server is down because its name was not found in time.
bool tells_why(NameServer&) {
  std::atomic<bool> told = false;
  const auto hear = [&told](const UpstreamNews& news) {
    told = !news.up && news.why == "its name was not found in time";
  };
  auto upstreams = Upstreams::create("http://silent.example:80", {.health = {.timeout = 20ms}, .on_change = hear});
  return upstreams && upstreams->watch() && until([&] { return told.load(); }, soon());
}

// with_names runs the test in a process that asks a NameServer.
void with_names(const char* promise, bool (*test)(NameServer&)) {
  const ChildEnd end = in_child([test] {
    NameServer names;
    if (const char* const why = names.start(); why != nullptr) {
      fprintf(stderr, "%s", why);
      return kNoServer;
    }
    bool right = false;
    const auto ran = run_until_idle({.workers = 2}, [&] { right = test(names); });
    return ran && right ? 0 : 1;
  });
  if (end.status == kNoServer) {
    printf("ok - %s # SKIP %s\n", promise, end.output);
    return;
  }
  STRCMP_EQUAL("", end.output);
  LONGS_EQUAL(0, end.signal);
  LONGS_EQUAL(0, end.status);
}

}  // namespace

TEST_GROUP(UpstreamNames) {};

TEST(UpstreamNames, a_name_is_asked_again_when_its_time_is_over_and_its_new_address_used) {
  with_names("a name is asked again when its time is over", moves);
}

TEST(UpstreamNames, a_silent_name_server_costs_no_exchange_any_time_while_addresses_are_known) {
  with_names("a silent name server costs no exchange any time", goes_on);
}

TEST(UpstreamNames, a_name_that_nobody_knows_yet_is_asked_for_by_one_exchange_for_all) {
  with_names("a name that nobody knows yet is asked for once", asks_once);
}

TEST(UpstreamNames, a_name_that_could_not_be_found_is_asked_for_again_after_a_second) {
  with_names("a name that could not be found is asked for again", keeps_failure);
}

TEST(UpstreamNames, a_silent_name_server_is_told_from_a_silent_server) {
  with_names("a silent name server is told from a silent server", tells_why);
}

TEST(UpstreamNames, a_silent_name_server_leaves_the_next_server_time) {
  with_names("a silent name server leaves the next server time", leaves_time);
}

}  // namespace upstream_names_test
