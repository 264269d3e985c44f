#pragma once

#include <CppUTest/TestHarness.h>
#include <coir/config.h>
#include <coir/http/server.h>

#include <chrono>

#if COIR_NO_ASYNC
#include <coir/signal.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#else
#include <coir/runtime.h>
#endif

namespace coir::test {

// run_beside starts a server, runs `body` as its client and stops it: all as a fiber of one run; without fibers the
// server has a thread of its own. Test thread only.
#if COIR_NO_ASYNC
template <class Body>
void run_beside(http::Server& server, Body body) {
  CHECK(server.start().has_value());
  pthread_t thread;
  const auto serve = [](void* argument) -> void* {
    return static_cast<http::Server*>(argument)->serve_until({SIGUSR1}, std::chrono::seconds(60)) == 0 ? argument
                                                                                                       : nullptr;
  };
  CHECK(catch_signals({SIGUSR1}).has_value());
  CHECK_EQUAL(0, pthread_create(&thread, nullptr, serve, &server));
  body();
  CHECK_EQUAL(0, kill(getpid(), SIGUSR1));
  void* served = nullptr;
  CHECK_EQUAL(0, pthread_join(thread, &served));
  CHECK(served != nullptr);
  // A server that had stopped by itself has left it to the next.
  static_cast<void>(wait_signal({SIGUSR1}, Deadline::now()));
}
#else
template <class Body>
void run_beside(http::Server& server, Body body) {
  const auto ran = run_until_idle({.default_stack = 65'536}, [&] {
    CHECK(server.start().has_value());
    body();
    CHECK(server.stop(Deadline::after(std::chrono::seconds(60))).has_value());
  });
  CHECK(ran.has_value());
}
#endif

}  // namespace coir::test
