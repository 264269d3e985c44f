// read_json, called by a handler, and answers in JSON.

#include <CppUTest/TestHarness.h>
#include <coir/http/content.h>
#include <coir/http/server.h>

#include <cstring>
#include <string_view>

#include "tests/support/ask.h"

namespace http_json_test {

namespace {

using namespace coir;
using namespace coir::http;
using coir::test::ask;
using coir::test::content_of;
using coir::test::status_of;

// serve_sum answers with a sum and the text, from JSON to JSON.
template <class... Memory>
void answer_sum(Exchange& exchange, const JsonLimits& limits, Memory... memory) {
  auto document = read_json(exchange, memory..., limits);
  if (!document) return;
  int sum = 0;
  for (const JsonView each : document->root()["numbers"].elements()) {
    if (const auto number = each.integer<int>(0, 1000)) sum += *number;
  }
  const auto label = document->root()["label"].text(16);
  if (!document->sound() || !label) return refuse_json(exchange, *document);
  if (!begin_json(exchange)) return;
  JsonWriter(exchange).object().member("label", *label).member("sum", sum).end();
}

void from_ledger(Exchange& exchange) {
  answer_sum(exchange, {.max_bytes = 200, .max_depth = 3});
}

void from_memory(Exchange& exchange) {
  char memory[600];
  answer_sum(exchange, {.max_bytes = 200, .max_depth = 3}, std::span<char>(memory));
}

std::string_view post(const Handler& handler, std::string_view type, std::string_view content, bool chunked = false) {
  static char request[2048];
  const std::string_view whole =
      chunked ? coir::format(request,
                             "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: "
                             "chunked\r\nContent-Type: ",
                             type, "\r\n\r\n", hex(content.size()), "\r\n", content, "\r\n0\r\n\r\n")
              : coir::format(request, "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: ",
                             content.size(), "\r\nContent-Type: ", type, "\r\n\r\n", content);
  return ask({.handler = handler}, whole);
}

constexpr std::string_view kGood = R"({"numbers":[1,20,300],"label":"caf\u00e9"})";
constexpr std::string_view kSum = "{\"label\":\"caf\xc3\xa9\",\"sum\":321}";

}  // namespace

TEST_GROUP(HttpJson) {
  void teardown() override { CHECK_EQUAL(0, account::json.used()); }  // namespace http_json_test
};

TEST(HttpJson, is_read_and_answered) {
  for (const Handler handler : {from_ledger, from_memory}) {
    for (const bool chunked : {false, true}) {
      const auto answer = post(handler, "application/json", kGood, chunked);
      CHECK_EQUAL(200, status_of(answer));
      CHECK(answer.find("Content-Type: application/json\r\n") != answer.npos);
      CHECK(answer.find(kSum) != answer.npos);
    }
  }
}

TEST(HttpJson, media_types_with_parameters_and_suffixes_are_json) {
  for (const char* const type :
       {"Application/JSON; charset=utf-8", "application/vnd.device+json", "application/problem+JSON"}) {
    CHECK_EQUAL(200, status_of(post(from_ledger, type, kGood)));
  }
}

TEST(HttpJson, another_type_is_415_and_names_the_right_one) {
  for (const char* const type : {"text/plain", "application/x-www-form-urlencoded", "application/jsonx", "+json", ""}) {
    const auto answer = post(from_ledger, type, kGood);
    CHECK_EQUAL(415, status_of(answer));
    CHECK(answer.find("Accept: application/json\r\n") != answer.npos);
  }
}

TEST(HttpJson, longer_content_is_413) {
  char content[300];
  memset(content, ' ', sizeof content);
  content[sizeof content - 1] = '1';
  for (const Handler handler : {from_ledger, from_memory}) {
    for (const bool chunked : {false, true}) {
      CHECK_EQUAL(413, status_of(post(handler, "application/json", {content, sizeof content}, chunked)));
    }
  }
}

TEST(HttpJson, more_than_the_memory_holds_is_413) {
  const auto small = [](Exchange& exchange) {
    char memory[300];
    answer_sum(exchange, {}, std::span<char>(memory));
  };
  CHECK_EQUAL(413, status_of(post(small, "application/json", kGood)));
}

TEST(HttpJson, content_that_is_not_json_is_400_and_tells_where) {
  for (const Handler handler : {from_ledger, from_memory}) {
    auto answer = post(handler, "application/json", "[1,x]");
    CHECK_EQUAL(400, status_of(answer));
    CHECK(content_of(answer).starts_with("byte 3: "));
    answer = post(handler, "application/json", "");
    CHECK_EQUAL(400, status_of(answer));
    CHECK(content_of(answer) == "byte 0: no JSON at all\n");
    answer = post(handler, "application/json", "[[[[1]]]]");
    CHECK_EQUAL(400, status_of(answer));
    CHECK(content_of(answer) == "byte 3: nested deeper than is allowed\n");
  }
}

TEST(HttpJson, a_complaint_is_400_and_names_the_path) {
  const auto answer = post(from_ledger, "application/json", R"({"numbers":[1,2,3000],"label":"x"})");
  CHECK_EQUAL(400, status_of(answer));
  CHECK(content_of(answer) == "numbers[2]: a whole number from 0 to 1000 is wanted, this is 3000\n");
  CHECK(content_of(post(from_ledger, "application/json", "{\"numbers\":[]}")) == "label: missing\n");
}

TEST(HttpJson, no_room_on_the_ledger_is_503) {
  for (const std::size_t ceiling : {10u, 100u}) {
    account::json.set_ceiling(ceiling);
    const auto answer = post(from_ledger, "application/json", kGood);
    account::json.set_ceiling(SIZE_MAX);
    CHECK_EQUAL(503, status_of(answer));
    CHECK(answer.find("Retry-After: 1\r\n") != answer.npos);
  }
}

namespace {

struct Item {
  int id = 0;
  std::string_view name;
  std::optional<double> celsius;
};
constexpr auto fields_of(const Item*) {
  return fields(field<&Item::id>("id"), field<&Item::name>("name"), field<&Item::celsius>("celsius"));
}

std::string_view get(const Handler& handler, const char* method = "GET") {
  static char request[100];
  return ask({.handler = handler},
             format(request, method, " / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
}

}  // namespace

TEST(HttpJson, a_declared_struct_is_answered_with_its_length) {
  const auto answer = get([](Exchange& exchange) { exchange.respond_json(Item{7, "\"caf\xc3\xa9\"", 21.5}, 201); });
  LONGS_EQUAL(201, status_of(answer));
  CHECK(answer.find("Content-Type: application/json\r\n") != answer.npos);
  CHECK(answer.find("Content-Length: 42\r\n") != answer.npos);
  CHECK(content_of(answer) == "{\"id\":7,\"name\":\"\\\"caf\xc3\xa9\\\"\",\"celsius\":21.5}");
  const auto head = get([](Exchange& exchange) { exchange.respond_json(Item{7, "x", {}}); }, "HEAD");
  CHECK(head.find("Content-Length: 19\r\n") != head.npos && content_of(head).empty());
}

TEST(HttpJson, lists_and_plain_values_are_answered_too) {
  const auto list = get([](Exchange& exchange) {
    const Item items[] = {{1, "a", {}}, {2, "b", -0.5}};
    exchange.respond_json(std::span(items));
  });
  CHECK(content_of(list) == R"([{"id":1,"name":"a"},{"id":2,"name":"b","celsius":-0.5}])");
  CHECK(content_of(get([](Exchange& exchange) { exchange.respond_json(0.1); })) == "0.1");
  CHECK(content_of(get([](Exchange& exchange) { exchange.respond_json("text"); })) == "\"text\"");
  CHECK(content_of(get([](Exchange& exchange) { exchange.respond_json(true); })) == "true");
}

TEST(HttpJson, a_long_list_is_answered_whole) {
  const auto answer = get([](Exchange& exchange) {
    static Item items[200];
    for (int i = 0; i < 200; ++i) items[i] = {i, "a name of some length", i / 8.0};
    exchange.respond_json(std::span<const Item>(items));
  });
  char length[40];
  CHECK(answer.find(format(length, "Content-Length: ", content_of(answer).size(), "\r\n")) != answer.npos);
  CHECK(content_of(answer).size() > 9000 && content_of(answer).ends_with("\"celsius\":24.875}]"));
}

TEST(HttpJson, a_missing_value_is_404) {
  LONGS_EQUAL(404, status_of(get([](Exchange& exchange) { exchange.respond_json(std::optional<Item>()); })));
  LONGS_EQUAL(404,
              status_of(get([](Exchange& exchange) { exchange.respond_json(static_cast<const Item*>(nullptr)); })));
  const auto found = get([](Exchange& exchange) {
    const Item item{3, "c", {}};
    exchange.respond_json(&item);
  });
  CHECK(content_of(found) == R"({"id":3,"name":"c"})");
}

TEST(HttpJson, a_value_that_json_cannot_hold_is_500) {
  LONGS_EQUAL(500, status_of(get([](Exchange& exchange) {
                coir::http::detail::respond_json(exchange, 200, nullptr, [](JsonWriter& out, const void*) {
                  for (int depth = 0; depth < 100; ++depth) out.array();
                });
              })));
}

}  // namespace http_json_test
