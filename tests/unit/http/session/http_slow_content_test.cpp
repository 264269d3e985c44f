// How long a server waits for a request's content: for ever while it comes fast enough.

#include <CppUTest/TestHarness.h>
#include <coir/http/server.h>

#include <string_view>

#include "tests/support/ask.h"

namespace http_slow_content_test {

namespace {

using namespace coir::http;
using namespace std::chrono_literals;
using coir::Deadline;
using coir::test::Asker;
using coir::test::status_of;
using coir::test::with_server;

constexpr int kPieces = 30;

void take(Exchange& exchange) {
  char piece[64];
  int have = 0;
  while (const auto got = exchange.read_body(piece)) have += static_cast<int>(*got);
  exchange.respond(have == kPieces ? 200 : 500, "text/plain", "\n");
}

// take_patiently is take with rules of its own: hours, or a rate that nobody keeps to.
void take_patiently(Exchange& exchange) {
  exchange.set_body_pace(1h, 0);
  take(exchange);
}
void take_impatiently(Exchange& exchange) {
  exchange.set_body_pace(300ms, 1'000'000);
  take(exchange);
}

// drip sends content a byte at a time, with pauses, until it is sent or answered, and returns the status.
int drip(Asker& asker, bool chunked, std::chrono::milliseconds pause) {
  asker.expectations.expect(
      asker.say(chunked ? "PUT / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
                        : "PUT / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 30\r\n\r\n"));
  char heard[1024];
  std::size_t have = 0;
  for (int i = 0; i < kPieces && have == 0; ++i) {
    const auto got = asker.stream.read(heard, Deadline::after(pause));
    if (got) have = *got;
    static_cast<void>(asker.say(chunked ? "1\r\nx\r\n" : "x"));
  }
  if (chunked) static_cast<void>(asker.say("0\r\n\r\n"));
  while (status_of({heard, have}) == 0) {
    const auto got = asker.stream.read(std::span(heard).subspan(have), Asker::soon());
    if (!got) break;
    have += *got;
  }
  return status_of({heard, have});
}

struct Case {
  Handler handler;
  std::chrono::milliseconds timeout;
  std::uint32_t rate;
  int status;
};

void drips(const Case& each, std::chrono::milliseconds pause = 100ms) {
  for (const bool chunked : {false, true}) {
    with_server({.handler = each.handler, .body_timeout = each.timeout, .body_rate = each.rate},
                [&](Asker& asker) { asker.expectations.expect(drip(asker, chunked, pause) == each.status); });
  }
}

}  // namespace

TEST_GROUP(HttpSlowContent) {};

TEST(HttpSlowContent, content_that_makes_progress_takes_as_long_as_it_needs) {
  drips({.handler = take, .timeout = 2s, .rate = 0, .status = 200});
  // Eight bytes a second are enough by a rate of 5.
  drips({.handler = take, .timeout = 2s, .rate = 5, .status = 200});
}

TEST(HttpSlowContent, content_that_drips_is_answered_408) {
  drips({.handler = take, .timeout = 500ms, .rate = 1000, .status = 408}, 50ms);
}

TEST(HttpSlowContent, content_that_pauses_is_answered_408) {
  drips({.handler = take, .timeout = 100ms, .rate = 0, .status = 408}, 1s);
}

TEST(HttpSlowContent, a_handler_has_its_own_patience) {
  drips({.handler = take_patiently, .timeout = 50ms, .rate = 1'000'000, .status = 200}, 80ms);
  drips({.handler = take_impatiently, .timeout = 1h, .rate = 0, .status = 408}, 50ms);
}

}  // namespace http_slow_content_test
