// Content in chunks behind heads of any length, at any place in a session's buffer.

#include <CppUTest/TestHarness.h>
#include <coir/http/server.h>

#include <memory>
#include <string_view>

#include "tests/support/ask.h"

namespace http_long_heads_test {

namespace {

using namespace coir::http;
using coir::test::Asker;
using coir::test::with_server;

constexpr std::size_t kLongestHead = 8192;
constexpr std::size_t kContent = 4000;

// count answers by the number of letters 'c' in the content, and of those in the field X-Fill.
void count(Exchange& exchange) {
  char piece[512];
  std::size_t letters = 0;
  while (const auto got = exchange.read_body(piece)) letters += *got;
  for (const char each : exchange.request().header("X-Fill")) letters += each == 'f';
  exchange.respond(200, "text/plain", letters == 0 ? "none\n" : letters >= kContent ? "all\n" : "some\n");
}

struct Requests {
  char text[24 * 1024];
  std::size_t size = 0;

  void add(std::string_view more) {
    more.copy(text + size, more.size());
    size += more.size();
  }
  // add_head adds one of so many bytes.
  void add_head(std::string_view line, std::size_t bytes) {
    const std::size_t begin = size;
    add(line);
    add(" / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nX-Fill: ");
    while (size - begin < bytes - 4) text[size++] = 'f';
    add("\r\n\r\n");
  }
};

}  // namespace

TEST_GROUP(HttpLongHeads) {};

TEST(HttpLongHeads, chunks_follow_a_head_that_ends_anywhere_in_the_buffer) {
  const auto requests = std::make_unique<Requests>();
  with_server({.handler = count, .limits = {.max_head_bytes = kLongestHead}}, [&](Asker& asker) {
    // Heads that end beside the longest, and beside the buffer's end behind requests that have been answered.
    for (const std::size_t before : {0, 100, 2047, 2048, 2049, 4000, 7000}) {
      for (std::size_t head = kLongestHead - 3; head <= kLongestHead; ++head) {
        for (const std::size_t less : {std::size_t(0), before}) {
          requests->size = 0;
          if (before != 0) {
            requests->add_head("POST", std::max<std::size_t>(before - 5, 90));
            requests->add("0\r\n\r\n");
          }
          requests->add_head("PUT", std::max<std::size_t>(head - less, 90));
          requests->add("fa0\r\n");
          for (std::size_t i = 0; i < kContent; ++i) requests->add("c");
          requests->add("\r\n0\r\n\r\n");
          asker.expectations.expect(asker.say({requests->text, requests->size}));
          char heard[2048];
          asker.expectations.expect(asker.hear(heard, "all\n").ends_with("all\n"));
        }
      }
    }
  });
}

}  // namespace http_long_heads_test
