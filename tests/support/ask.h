#pragma once

#include <CppUTest/TestHarness.h>
#include <coir/http/server.h>
#include <coir/program.h>
#include <coir/signal.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "tests/support/expectations.h"

namespace coir::test {

// Asker is a client's connection to a server under test. Nothing of it checks, for it is used on a fiber.
struct Asker {
  TcpStream stream;
  Expectations& expectations;

  static Deadline soon() { return Deadline::after(std::chrono::seconds(60)); }

  bool say(std::string_view text) { return stream.write(text, soon()).has_value(); }

  // hear reads until `end` has come, or the end of the stream, or until `into` is full, and returns what came.
  std::string_view hear(std::span<char> into, std::string_view end = {}) {
    std::size_t have = 0;
    while (have < into.size()) {
      const auto got = stream.read(into.subspan(have), soon());
      if (!got) break;
      have += *got;
      if (!end.empty() && std::string_view(into.data(), have).find(end) != std::string_view::npos) break;
    }
    return {into.data(), have};
  }
};

// with_server runs `visit(asker)` as a client of a server with these options: as a fiber of the server's run; without
// fibers on the test's thread, while the server has another. Test thread only; fails the test if something cannot be
// set up.
template <class Visit>
void with_server(const http::ServerOptions& options, Visit visit) {
  auto server = http::Server::create(options);
  CHECK_TRUE(server.has_value());
  auto listener = TcpListener::listen(*Address::parse("127.0.0.1:0"));
  CHECK_TRUE(listener.has_value());
  const Address address = listener->local_address();
  CHECK_TRUE(server->add(std::move(*listener)).has_value());
  Expectations expectations;
  const auto once = [&] {
    auto connected = TcpStream::connect(address, Asker::soon());
    expectations.expect(connected.has_value());
    if (!connected) return;
    Asker asker{std::move(*connected), expectations};
    visit(asker);
  };
#if COIR_NO_ASYNC
  CHECK_TRUE(server->start().has_value());
  CHECK_TRUE(catch_signals({SIGUSR1}).has_value());
  const auto serve = [](void* argument) -> void* {
    static_cast<void>(static_cast<http::Server*>(argument)->serve_until({SIGUSR1}, std::chrono::seconds(10)));
    return nullptr;
  };
  pthread_t thread;
  CHECK_EQUAL(0, pthread_create(&thread, nullptr, serve, &*server));
  once();
  CHECK_EQUAL(0, kill(getpid(), SIGUSR1));
  CHECK_EQUAL(0, pthread_join(thread, nullptr));
#else
  auto ran = run_until_idle({.default_stack = 65536}, [&] {
    expectations.expect(server->start().has_value());
    once();
    expectations.expect(server->stop(Asker::soon()).has_value());
  });
  CHECK_TRUE(ran.has_value());
#endif
  expectations.check();
  LONGS_EQUAL(0, server->gauges().open);
}

// ask sends `request` to a server with these options and returns all that it answers until it closes, valid until the
// next call. The request asks for "Connection: close".
inline std::string_view ask(const http::ServerOptions& options, std::string_view request) {
  static char said[64 * 1024];
  static std::string_view heard;
  heard = {};
  with_server(options, [&](Asker& asker) {
    asker.expectations.expect(asker.say(request));
    heard = asker.hear(said);
  });
  return heard;
}

// status_of returns the status of an answer, 0 when it begins as none does.
inline int status_of(std::string_view answer) {
  constexpr std::string_view version = "HTTP/1.1 ";
  if (answer.size() < version.size() + 4 || !answer.starts_with(version)) return 0;
  const char* const digits = answer.data() + version.size();
  return (digits[0] - '0') * 100 + (digits[1] - '0') * 10 + (digits[2] - '0');
}

// content_of returns what stands behind the head of an answer.
inline std::string_view content_of(std::string_view answer) {
  const std::size_t end = answer.find("\r\n\r\n");
  return end == answer.npos ? std::string_view() : std::string_view(answer.data() + end + 4, answer.size() - end - 4);
}

}  // namespace coir::test
