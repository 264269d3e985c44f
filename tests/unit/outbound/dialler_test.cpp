// How a connection to a server is made, and which step of it fails when.

#include "net/src/outbound/dialler.h"

#include <coir/tcp.h>
#if COIR_TLS
#include <coir/tls.h>
#endif

#include <CppUTest/TestHarness.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/support/both_sides.h"
#include "tests/support/dead_host.h"

namespace dialler_test {

using namespace coir;
using namespace std::chrono_literals;
using Step = Dialler::Step;

namespace {

Deadline soon() {
  return Deadline::after(60s);
}

TcpListener listen() {
  return std::move(*TcpListener::listen(*Address::parse("127.0.0.1:0")));
}

}  // namespace

TEST_GROUP_BASE(Dialler, coir::test::BothSides) {};

TEST(Dialler, goes_to_a_name_to_an_address_and_to_a_unix_socket) {
  both_sides([&] {
    const TcpListener listener = listen();
    Stream stream;
    Dialler dialler{stream, {.last = soon()}};
    expect(dialler.dial("localhost", listener.local_address().port(), nullptr).has_value());
    expect(stream.is_open() && dialler.step == Step::connect);
    expect(dialler.connect(listener.local_address()).has_value());
    char path[64];
    snprintf(path, sizeof path, "unix:/tmp/coir_dialler_test.%d", static_cast<int>(getpid()));
    const auto at = Address::parse(path);
    {
      const auto local = TcpListener::listen(*at);
      expect(local.has_value() && dialler.connect(*at).has_value());
    }
    ::unlink(path + 5);
  });
}

TEST(Dialler, each_step_has_its_own_time_and_all_of_them_one) {
  both_sides([&] {
    const coir::test::DeadHost dead("127.0.0.2", 0);
    expect(dead.usable());
    for (const bool own : {true, false}) {
      Stream stream;
      Dialler dialler{stream,
                      {.connect = own ? std::chrono::nanoseconds(20ms) : Dialler::kUnlimited,
                       .last = own ? soon() : Deadline::after(20ms)}};
      const auto made = dialler.dial("127.0.0.2", dead.port(), nullptr);
      expect(!made && made.error() == ErrorCode::timed_out && dialler.step == Step::connect && !stream.is_open());
    }
  });
}

TEST(Dialler, tells_which_step_failed) {
  both_sides([&] {
    Stream stream;
    Dialler dialler{stream, {.last = soon()}};
    const auto unknown = dialler.dial("no..name", 1, nullptr);
    expect(!unknown && unknown.error() == ErrorCode::invalid && dialler.step == Step::resolve);
    std::uint16_t port;
    {
      const TcpListener listener = listen();
      port = listener.local_address().port();
    }
    const auto refused = dialler.dial("127.0.0.1", port, nullptr);
    expect(!refused && refused.error() == ErrorCode::system && dialler.step == Step::connect);
#if COIR_TLS
    const TcpListener silent = listen();
    const auto context = TlsContext::client({.accept_any_peer_without_verifying_it = true});
    expect(context.has_value());
    if (!context) return;
    dialler.times.tls = 20ms;
    const auto late = dialler.dial("127.0.0.1", silent.local_address().port(), &*context);
    expect(!late && late.error() == ErrorCode::timed_out && dialler.step == Step::tls);
#endif
  });
}

}  // namespace dialler_test
