// Bytes that the chunked decoder decodes, and bytes that it refuses. Every vector is decoded at once and in steps of every
// size.

#include <CppUTest/TestHarness.h>
#include <coir/http/wire/chunked.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace http_chunked_test {

namespace {

using namespace coir::http;
using namespace std::string_view_literals;

constexpr ChunkedLimits kLimits = {.max_body = 100, .max_extension_bytes = 16, .max_trailer_bytes = 32};

struct Decoded {
  ChunkedState state = ChunkedState::more;
  unsigned status = 0;
  std::size_t consumed = 0;
  std::size_t size = 0;
  char content[256];

  std::string_view text() const { return {content, size}; }
};

// decode feeds `body` in steps of `step` bytes, each in a block of exactly that size.
Decoded decode(std::string_view body, std::size_t step, const ChunkedLimits& limits) {
  Decoded out;
  ChunkedDecoder decoder;
  while (out.state == ChunkedState::more && out.consumed < body.size()) {
    const std::size_t here = step < body.size() - out.consumed ? step : body.size() - out.consumed;
    char* const exact = static_cast<char*>(malloc(here));
    memcpy(exact, body.data() + out.consumed, here);
    const ChunkedResult r = decoder.decode({exact, here}, limits);
    memcpy(out.content + out.size, exact, r.data_bytes);
    // The bytes behind the used ones belong to the next request.
    const bool untouched = memcmp(exact + r.consumed, body.data() + out.consumed + r.consumed, here - r.consumed) == 0;
    free(exact);
    CHECK(untouched);
    CHECK(r.state != ChunkedState::more || r.consumed == here);
    out.size += r.data_bytes;
    out.consumed += r.consumed;
    out.state = r.state;
    out.status = r.status;
  }
  LONGS_EQUAL(out.size, decoder.content_bytes());
  return out;
}

Decoded decode(std::string_view body, const ChunkedLimits& limits = kLimits) {
  const Decoded at_once = decode(body, body.size() + 1, limits);
  for (std::size_t step = 1; step <= body.size(); ++step) {
    const Decoded slow = decode(body, step, limits);
    const bool same = slow.state == at_once.state && slow.status == at_once.status &&
                      slow.consumed == at_once.consumed && slow.text() == at_once.text();
    CHECK(same);
  }
  return at_once;
}

unsigned status_of(std::string_view body) {
  return decode(body).status;
}

}  // namespace

TEST_GROUP(HttpChunked) {};

TEST(HttpChunked, chunks_become_content_and_what_follows_is_left) {
  const std::string_view body = "5\r\nhello\r\n7\r\n, world\r\n0\r\n\r\n";
  const Decoded d = decode("5\r\nhello\r\n7\r\n, world\r\n0\r\n\r\nGET / HTTP/1.1\r\n"sv);
  CHECK(d.state == ChunkedState::done);
  CHECK(d.text() == "hello, world");
  LONGS_EQUAL(body.size(), d.consumed);
}

TEST(HttpChunked, content_is_any_bytes) {
  const Decoded d = decode("8\r\n\r\n\0\n0\r\n\r\r\n0\r\n\r\n"sv);
  CHECK(d.state == ChunkedState::done);
  CHECK(d.text() == "\r\n\0\n0\r\n\r"sv);
}

TEST(HttpChunked, an_empty_body_is_its_last_chunk) {
  CHECK(decode("0\r\n\r\n").state == ChunkedState::done);
  CHECK(decode("000\r\n\r\n").state == ChunkedState::done);
}

TEST(HttpChunked, sizes_are_hexadecimal_in_either_case) {
  CHECK(decode("a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n").text() == "01234567890123456789");
  CHECK(decode("0000000000000001\r\nx\r\n0\r\n\r\n").text() == "x");
}

TEST(HttpChunked, a_body_cut_short_wants_more) {
  for (const std::string_view body : {"5"sv, "5\r"sv, "5\r\n"sv, "5\r\nhel"sv, "5\r\nhello"sv, "5\r\nhello\r\n"sv,
                                      "0\r\n"sv, "0\r\n\r"sv, "0\r\nA: b"sv, "0\r\nA: b\r\n"sv}) {
    CHECK(decode(body).state == ChunkedState::more);
  }
}

TEST(HttpChunked, a_size_with_sign_prefix_space_or_nothing_is_400) {
  for (const std::string_view body :
       {"+5\r\nhello\r\n"sv, "-5\r\nhello\r\n"sv, "0x5\r\nhello\r\n"sv, " 5\r\nhello\r\n"sv, "5 \r\nhello\r\n"sv,
        "5\t\r\nhello\r\n"sv, "\r\nhello\r\n"sv, "\r\n\r\n"sv, ";x\r\n\r\n"sv, ";x\r\nhello\r\n"sv, "g\r\n"sv,
        "5h\r\nhello\r\n"sv, "5 ;x\r\nhello\r\n"sv, "5,5\r\nhello\r\n"sv, "\0"sv, "5\0\r\n"sv, "\xb5\r\n"sv,
        "5_0\r\n"sv}) {
    LONGS_EQUAL(400, status_of(body));
  }
}

TEST(HttpChunked, a_size_of_more_than_sixteen_digits_is_400) {
  LONGS_EQUAL(400, status_of("10000000000000005\r\nhello\r\n"));
  LONGS_EQUAL(400, status_of("00000000000000005\r\nhello\r\n"));
}

TEST(HttpChunked, content_over_the_limit_is_413_before_it_arrives) {
  LONGS_EQUAL(413, status_of("65\r"));
  LONGS_EQUAL(413, status_of("ffffffffffffffff\r\n"));
  LONGS_EQUAL(413, status_of("8000000000000000\r\n"));
  LONGS_EQUAL(413, status_of("5\r\nhello\r\nfffffffffffffffc\r\n"));
  LONGS_EQUAL(413, status_of("5\r\nhello\r\n60\r\n"));
  CHECK(decode("5\r\nhello\r\n5f\r\n").state == ChunkedState::more);
}

TEST(HttpChunked, a_line_that_does_not_end_in_crlf_is_400) {
  LONGS_EQUAL(400, status_of("5\nhello\r\n"));
  LONGS_EQUAL(400, status_of("5\rhello\r\n"));
  LONGS_EQUAL(400, status_of("5\r\r\nhello\r\n"));
  LONGS_EQUAL(400, status_of("5;x\nhello\r\n"));
  LONGS_EQUAL(400, status_of("5;x\ry\r\nhello\r\n"));
  LONGS_EQUAL(400, status_of("0\r\n\n"));
  LONGS_EQUAL(400, status_of("0\r\n\r\r\n"));
  LONGS_EQUAL(400, status_of("0\n\n"));
}

TEST(HttpChunked, content_that_is_not_followed_by_crlf_at_once_is_400) {
  LONGS_EQUAL(400, status_of("5\r\nhello0\r\n\r\n"));
  LONGS_EQUAL(400, status_of("5\r\nhello\n0\r\n\r\n"));
  LONGS_EQUAL(400, status_of("5\r\nhello!\n0\r\n\r\n"));
  LONGS_EQUAL(400, status_of("5\r\nhello\r!0\r\n\r\n"));
  LONGS_EQUAL(400, status_of("5\r\nhello!\r\n0\r\n\r\n"));
  LONGS_EQUAL(400, status_of("5\r\nhello\r\r\n0\r\n\r\n"));
  LONGS_EQUAL(400, status_of("5\r\nhello \r\n0\r\n\r\n"));
}

TEST(HttpChunked, content_before_an_error_is_still_handed_over) {
  const Decoded d = decode("5\r\nhello\r\nx");
  CHECK(d.state == ChunkedState::bad);
  CHECK(d.text() == "hello");
}

TEST(HttpChunked, extensions_are_dropped) {
  CHECK(decode("5;a=\"b; c\"\r\nhello\r\n0;d\r\n\r\n").text() == "hello");
}

TEST(HttpChunked, extensions_keep_to_their_grammar) {
  for (const char* good :
       {"a", "a=b", "a=b;c", " a", "\ta = b", "a ;b", "a=b ; c", "a=\"\"", "a=\"\\\"\"", "a=\"b\" ;c", "a=\"\xe4\""}) {
    char body[64];
    snprintf(body, sizeof body, "1;%s\r\nx\r\n0;%s\r\n\r\n", good, good);
    CHECK_TRUE(decode(body, {.max_body = 100}).text() == "x");
  }
  for (const char* bad : {"",   ";",     ";a",    "a;",       "=;;,\"",   "=b", "a=",  "a=;b", "a==b", "a b",
                          "a ", "a=b c", "a=\"b", "a=\"b\"c", "a=b\"c\"", ",",  "a,b", "(",    "a=b ", "\xe4"}) {
    char body[64];
    snprintf(body, sizeof body, "1;%s\r\nx\r\n0\r\n\r\n", bad);
    LONGS_EQUAL_TEXT(400, status_of(body), bad);
  }
}

TEST(HttpChunked, extensions_over_the_limit_of_all_chunks_are_400) {
  CHECK(decode("1;12345678\r\nx\r\n1;12345678\r\ny\r\n0\r\n\r\n").state == ChunkedState::done);
  LONGS_EQUAL(400, status_of("1;12345678\r\nx\r\n1;123456789\r\ny\r\n0\r\n\r\n"));
  LONGS_EQUAL(400, status_of("1;12345678901234567"));
}

TEST(HttpChunked, a_response_may_sign_each_chunk_and_pad_its_size) {
  using coir::http::kResponseChunks;
  CHECK(decode("2  \r\nok\r\n0\t \r\n\r\n", kResponseChunks).text() == "ok");
  CHECK(decode("2 ;a\r\nok\r\n0\r\n\r\n", kResponseChunks).text() == "ok");
  LONGS_EQUAL(400, decode("2 2\r\nok\r\n", kResponseChunks).status);
  LONGS_EQUAL(400, decode(" 2\r\nok\r\n", kResponseChunks).status);
  LONGS_EQUAL(400, status_of("2 \r\nok\r\n0\r\n\r\n"));
  ChunkedDecoder decoder;
  for (int chunk = 0; chunk < 1000; ++chunk) {
    char text[] = "1;sig=0123456789abcdef\r\nx\r\n";
    const ChunkedResult r = decoder.decode({text, sizeof text - 1}, kResponseChunks);
    CHECK(r.state == ChunkedState::more && r.data_bytes == 1);
  }
}

TEST(HttpChunked, each_extension_of_a_response_has_its_own_limit) {
  static char text[6000];
  memset(text, 'a', sizeof text);
  memcpy(text, "2;", 2);
  ChunkedDecoder decoder;
  LONGS_EQUAL(400, decoder.decode(text, coir::http::kResponseChunks).status);
  ChunkedDecoder many;
  for (int i = 0; i < 3; ++i) {
    char chunk[3000];
    memset(chunk, 'a', sizeof chunk);
    memcpy(chunk, "2;", 2);
    memcpy(chunk + sizeof chunk - 6, "\r\nok\r\n", 6);
    CHECK(many.decode(chunk, coir::http::kResponseChunks).state == ChunkedState::more);
  }
}

TEST(HttpChunked, a_control_in_an_extension_is_400) {
  LONGS_EQUAL(400, status_of("5;\x01\r\nhello\r\n"));
  LONGS_EQUAL(400, status_of("5;\0\r\nhello\r\n"sv));
  LONGS_EQUAL(400, status_of("5;\x7f\r\nhello\r\n"));
}

TEST(HttpChunked, trailer_fields_are_checked_and_dropped) {
  const Decoded d = decode("1\r\nx\r\n0\r\nA: b\r\nC-D:\te \r\n\r\nrest");
  CHECK(d.state == ChunkedState::done);
  CHECK(d.text() == "x");
  LONGS_EQUAL(strlen("1\r\nx\r\n0\r\nA: b\r\nC-D:\te \r\n\r\n"), d.consumed);
}

TEST(HttpChunked, a_malformed_trailer_is_400) {
  for (const std::string_view body :
       {"0\r\nA : b\r\n\r\n"sv, "0\r\n: b\r\n\r\n"sv, "0\r\nA\r\n\r\n"sv, "0\r\nA: b\n\r\n"sv, "0\r\nA: b\rC\r\n\r\n"sv,
        "0\r\n A: b\r\n\r\n"sv, "0\r\nA: b\r\n c\r\n\r\n"sv, "0\r\nA: \0\r\n\r\n"sv, "0\r\nA\0: b\r\n\r\n"sv,
        "0\r\nA: b\x7f\r\n\r\n"sv}) {
    LONGS_EQUAL(400, status_of(body));
  }
}

TEST(HttpChunked, trailers_over_the_limit_are_431) {
  CHECK(decode("0\r\nName: 3456789012345678901234567890\r\n\r\n").status == 431);
  CHECK(decode("0\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\n\r\n").state == ChunkedState::done);
  CHECK(decode("0\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\n\r\n").status == 431);
}

TEST(HttpChunked, a_written_size_is_read_back) {
  char line[18];
  CHECK(write_chunk_size(1, line) == "1\r\n");
  CHECK(write_chunk_size(0x1a2b, line) == "1a2b\r\n");
  CHECK(write_chunk_size(UINT64_MAX, line) == "ffffffffffffffff\r\n");
}

}  // namespace http_chunked_test
