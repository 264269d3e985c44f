// accept_each and the connections of its listener.

#include <CppUTest/TestHarness.h>
#include <coir/runtime.h>
#include <coir/tcp.h>
#include <sys/resource.h>
#include <unistd.h>

#include <optional>

#include "tests/support/expectations.h"
#include "tests/support/until.h"

namespace accept_test {

using coir::Address;
using coir::Deadline;
using coir::ErrorCode;
using coir::TcpListener;
using coir::TcpStream;
using coir::test::until;
using coir::test::until_parked;
using namespace std::chrono_literals;

namespace {

Deadline soon() {
  return Deadline::after(60s);
}

}  // namespace

TEST_GROUP_BASE(Accept, coir::test::Expecting) {
  template <class Body>
  void run(Body body) {
    CHECK_TRUE(coir::run_until_idle({.workers = 1}, body).has_value());
    check();
  }
};

TEST(Accept, each_connection_is_handed_over_until_the_listener_is_closed) {
  run([&] {
    auto listener = *TcpListener::listen(*Address::parse("127.0.0.1:0"));
    int count = 0;
    auto accepting = coir::spawn([&] {
      return coir::accept_each(listener, [&](TcpStream client) {
        ++count;
        expect(client.write("x", soon()).has_value());
      });
    });
    for (int i = 0; i < 5; ++i) {
      auto stream = TcpStream::connect(listener.local_address(), soon());
      char byte;
      expect(stream && stream->read({&byte, 1}, soon()).value_or(0) == 1);
    }
    until_parked(accepting, "readable");
    listener.close();
    expect(accepting.await(soon()).has_value() && count == 5);
  });
}

TEST(Accept, a_cancelled_caller_gets_cancelled) {
  run([&] {
    auto listener = *TcpListener::listen(*Address::parse("127.0.0.1:0"));
    auto accepting = coir::spawn([&] { return coir::accept_each(listener, [](TcpStream) {}); });
    until_parked(accepting, "readable");
    static_cast<void>(accepting.cancel());
    const auto ended = accepting.await(soon());
    expect(!ended && ended.error() == ErrorCode::cancelled);
  });
}

TEST(Accept, without_a_descriptor_left_a_connection_waits_for_one) {
  run([&] {
    auto listener = *TcpListener::listen(*Address::parse("127.0.0.1:0"));
    auto stream = TcpStream::connect(listener.local_address(), soon());
    expect(stream.has_value());
    rlimit before;
    expect(getrlimit(RLIMIT_NOFILE, &before) == 0);
    const rlimit few{64, before.rlim_max};
    expect(setrlimit(RLIMIT_NOFILE, &few) == 0);
    int taken[64], count = 0;
    while (count < 64 && (taken[count] = dup(STDERR_FILENO)) >= 0) ++count;

    std::optional<TcpStream> client;
    auto accepting = coir::spawn(
        [&] { return coir::accept_each(listener, [&](TcpStream accepted) { client.emplace(std::move(accepted)); }); });
    until_parked(accepting, "sleep");
    expect(!client.has_value());
    while (count > 0) close(taken[--count]);
    expect(setrlimit(RLIMIT_NOFILE, &before) == 0);
    until([&] { return client.has_value(); });
    expect(client->write("x", soon()).has_value());
    listener.close();
    expect(accepting.await(soon()).has_value());
  });
}

}  // namespace accept_test
