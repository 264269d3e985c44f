// Content of a request and of its answer on their way at the same time.

#include <CppUTest/TestHarness.h>
#include <coir/format.h>
#include <coir/http/server.h>

#include <string_view>

#include "tests/support/ask.h"

namespace http_streamed_test {

namespace {

using namespace coir::http;
using coir::test::Asker;
using coir::test::with_server;

// echo answers each piece of the content as it arrives.
void echo(Exchange& exchange) {
  char piece[512];
  bool begun = false;
  while (const auto got = exchange.read_body(piece)) {
    if (!begun) {
      exchange.start(200);
      if (!exchange.begin_chunked()) return;
      begun = true;
    }
    if (!exchange.write({piece, *got}) || !exchange.flush()) return;
  }
}

}  // namespace

TEST_GROUP(HttpStreamed) {};

TEST(HttpStreamed, content_streams_both_ways_at_once) {
  with_server({.handler = echo}, [](Asker& asker) {
    asker.expectations.expect(asker.say(
        "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n00000\r\n"));
    char heard[1024];
    asker.expectations.expect(asker.hear(heard, "5\r\n00000\r\n").starts_with("HTTP/1.1 200 "));
    // Each piece comes back before the next is sent; all of them together are larger than the buffers.
    for (int i = 1; i < 4000; ++i) {
      char text[16];
      const auto chunk = coir::format(text, "5\r\n", coir::zeros(i, 5), "\r\n");
      asker.expectations.expect(asker.say(chunk));
      asker.expectations.expect(asker.hear(heard, chunk) == chunk);
    }
    asker.expectations.expect(asker.say("0\r\n\r\n"));
    asker.expectations.expect(asker.hear(heard) == "0\r\n\r\n");
  });
}

}  // namespace http_streamed_test
