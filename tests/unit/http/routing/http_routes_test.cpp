// Tables of routes: which path finds which route, and the answer without one. Tables that must not compile are in
// tests/system/routes.sh.

#include <CppUTest/TestHarness.h>
#include <coir/format.h>
#include <coir/http/routes.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "tests/support/ask.h"

namespace http_routes_test {

namespace {

using namespace coir::http;
using namespace std::string_view_literals;
using coir::test::ask;
using coir::test::content_of;
using coir::test::status_of;

// Hub is what handlers refer to; `note` is what they were told.
struct Hub {
  char note[200] = {};
  std::size_t size = 0;
  bool open = false;

  void add(std::string_view text) {
    memcpy(note + size, text.data(), text.size());
    size += text.size();
  }
  std::string_view heard() const { return {note, size}; }
};

template <char kLetter>
void say(Exchange& exchange) {
  const char letter = kLetter;
  exchange.respond(200, "text/plain", {&letter, 1});
}
void say_one(Exchange& exchange, std::string_view text) {
  exchange.respond(200, "text/plain", text);
}
void say_two(Exchange& exchange, std::string_view a, std::string_view b) {
  exchange.start(200);
  if (!exchange.begin_chunked()) return;
  static_cast<void>(exchange.write(a));
  static_cast<void>(exchange.write("|"));
  if (!b.empty()) static_cast<void>(exchange.write(b));
}

// Gate is a middleware with a state of its own.
struct Gate {
  Hub& hub;

  void operator()(Exchange& exchange, Next next) {
    hub.add("(");
    if (hub.open) {
      next(exchange);
    } else {
      exchange.respond_status(403);
    }
    hub.add(")");
  }
};
struct Log {
  Hub& hub;

  void operator()(Exchange& exchange, Next next) const {
    exchange.add_fields("X-Before: 1\r\n");
    next(exchange);
    const int status = exchange.status();
    const char digits[] = {static_cast<char>('0' + status / 100), static_cast<char>('0' + status / 10 % 10),
                           static_cast<char>('0' + status % 10)};
    hub.add({digits, 3});
  }
};
// mark is a middleware that is known while compiling.
void mark(Exchange& exchange, Next next) {
  exchange.add_fields("X-Mark: 1\r\n");
  next(exchange);
}

// Answer is a value that answers: it counts what it was asked.
struct Answer {
  Answer() = default;
  Answer(const Answer&) = delete;
  int asked = 0;

  void operator()(Exchange& exchange) {
    ++asked;
    exchange.respond(200, "text/plain", exchange.request().path);
  }
};

auto inner_routes(Hub& hub) {
  return routes(get<"/">(say<'i'>), post<"/deep/er">(say<'p'>, Log{hub}), get<"/{one}">(say_one));
}

auto all_routes(Hub& hub, Answer& answer) {
  return routes(get<"/">(say<'r'>), get<"/sensors">(say<'s'>), post<"/sensors">(say<'n'>),
                get<"/sensors/{name}">(say_one), get<"/sensors/latest">(say<'l'>), head<"/sensors/latest">(say<'h'>),
                get<"/sensors/latest/">(say<'t'>),
                del<"/sensors/{name}">([&hub](Exchange& exchange, std::string_view name) {
                  hub.add(name);
                  exchange.respond(200, "text/plain", "captured");
                }),
                get<"/pair/{a}/{b}">(say_two),
                get<"/number/{number}/{small}">([&hub](Exchange& exchange, int number, std::uint8_t small) {
                  hub.add(number < 0 ? "negative" : "positive");
                  exchange.respond(200, "text/plain", small == 255 ? "most" : "less");
                }),
                get<"/files/{area}/{path...}">(say_two), any<"/any">(say<'a'>), get<"/dav">(say<'d'>),
                method<"PROPFIND", "/dav">(say<'f'>), method<"M-SEARCH", "/dav">(say<'m'>), options<"/own">(say<'o'>),
                mount<"/inner">(inner_routes(hub)), mount<"/gated/one">(inner_routes(hub), Gate{hub}),
                put<"/both">(say<'g'>, Log{hub}, Gate{hub}), put<"/marked", mark>(say<'k'>, Log{hub}),
                get<"/answer/{rest...}">(answer),
                get<"/lambda">([](Exchange& exchange) { exchange.respond(200, "text/plain", "lambda"); }),
                get<"/\xc3\xa4">(say<'u'>));
}
using All = decltype(all_routes(std::declval<Hub&>(), std::declval<Answer&>()));

char memory[64];

// found is the pattern of the route that a path finds, or its status.
std::string_view found(std::string_view path, Method method = Method::get) {
  const RouteMatch match = find_route(All::table(), method, path, memory);
  switch (match.status) {
    case 0:
      return match.route->pattern;
    case 400:
      return "400";
    case 404:
      return "404";
    case 405:
      return "405";
    default:
      return "414";
  }
}

bool fits_with(std::string_view path, std::string_view pattern, std::string_view first, std::string_view second = {}) {
  const RouteMatch match = find_route(All::table(), Method::get, path, memory);
  return match.status == 0 && match.route->pattern == pattern && match.parameters.values[0] == first &&
         (match.parameters.count < 2 || match.parameters.values[1] == second);
}

}  // namespace

TEST_GROUP(HttpRoutes) {
  Hub hub;
  Answer answer;
  All app = all_routes(hub, answer);
  ServerOptions options = answered_by(app);
  char request[2048];

  std::string_view say(std::string_view method, std::string_view target) {
    std::size_t size = 0;
    for (const auto piece : {method, " "sv, target, " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"sv}) {
      memcpy(request + size, piece.data(), piece.size());
      size += piece.size();
    }
    return ask(options, {request, size});
  }
  bool allows(std::string_view said, std::string_view methods) {
    const std::size_t at = said.find("\r\nAllow: ");
    if (at == said.npos) return false;
    const std::string_view rest(said.data() + at + 9, said.size() - at - 9);
    return rest.size() > methods.size() && rest.starts_with(methods) && rest[methods.size()] == '\r';
  }
};

TEST(HttpRoutes, text_goes_before_parameters_and_these_before_the_rest) {
  CHECK(found("/") == "/");
  CHECK(found("/sensors") == "/sensors");
  CHECK(found("/sensors/latest") == "/sensors/latest");
  CHECK(found("/sensors/late") == "/sensors/{name}");
  CHECK(fits_with("/sensors/x", "/sensors/{name}", "x"));
  CHECK(fits_with("/pair/1/2", "/pair/{a}/{b}", "1", "2"));
  CHECK(found("/sensors/a/b") == "404");
  CHECK(found("/pair/1") == "404");
  CHECK(found("/nothing") == "404");
  CHECK(found("/sensor") == "404");
}

TEST(HttpRoutes, a_parameter_is_not_empty_but_the_rest_may_be) {
  CHECK(found("/sensors/") == "404");
  CHECK(found("/pair//2") == "404");
  CHECK(fits_with("/files/a/", "/files/{area}/{path...}", "a", ""));
  CHECK(fits_with("/files/a/b/c.txt", "/files/{area}/{path...}", "a", "b/c.txt"));
  CHECK(fits_with("/files/a/b/", "/files/{area}/{path...}", "a", "b/"));
  CHECK(found("/files/a") == "404");
}

TEST(HttpRoutes, a_slash_at_the_end_makes_another_path) {
  CHECK(found("/sensors/latest/") == "/sensors/latest/");
  CHECK(found("/pair/1/2/") == "404");
}

TEST(HttpRoutes, empty_and_dot_segments_fit_nothing) {
  for (const auto path :
       {"//"sv, "//sensors"sv, "/files/a//b"sv, "/files/a/./b"sv, "/files/a/../b"sv, "/files/a/b/.."sv, "/."sv, "/.."sv,
        "/sensors/%2e"sv, "/sensors/%2E%2e"sv, "/files/a/.%2e/b"sv}) {
    CHECK(found(path) == "404");
  }
  CHECK(fits_with("/sensors/...", "/sensors/{name}", "..."));
}

TEST(HttpRoutes, an_encoded_slash_fits_nothing) {
  CHECK(found("/sensors/a%2Fb") == "404");
  CHECK(found("/files/a/b%2fc") == "404");
  CHECK(found("%2f") == "400");
}

TEST(HttpRoutes, a_path_is_compared_and_handed_over_decoded_once) {
  CHECK(found("/s%65nsors") == "/sensors");
  CHECK(found("/%C3%A4") == "/\xc3\xa4");
  CHECK(fits_with("/sensors/a%20%252F", "/sensors/{name}", "a %2F"));
  CHECK(fits_with("/files/%61/b%3Fc/d", "/files/{area}/{path...}", "a", "b?c/d"));
  CHECK(fits_with("/sensors/%7Bname%7D", "/sensors/{name}", "{name}"));
}

TEST(HttpRoutes, controls_are_400_and_what_does_not_fit_the_memory_414) {
  CHECK(found("/sensors/%01") == "400");
  CHECK(found("/sensors/%7f") == "400");
  CHECK(found("/sensors/%zz") == "400");
  // "/sensors/A" and 54 letters are as long as the memory.
  char path[12 + 56] = "/sensors/%41";
  memset(path + 12, 'a', 56);
  CHECK(found({path, 12 + 54}) == "/sensors/{name}");
  CHECK(found({path, 12 + 55}) == "414");
  path[9] = path[10] = path[11] = 'a';
  CHECK(found({path, sizeof path}) == "/sensors/{name}");
}

TEST(HttpRoutes, a_path_that_fits_no_pattern_is_404_by_any_method) {
  CHECK_EQUAL(404, status_of(say("GET", "/none")));
  CHECK_EQUAL(404, status_of(say("OPTIONS", "/none")));
  CHECK_EQUAL(404, status_of(say("TRACE", "/none")));
}

TEST(HttpRoutes, another_method_is_405_with_all_that_are_allowed) {
  auto said = say("PUT", "/sensors");
  CHECK_EQUAL(405, status_of(said));
  CHECK(allows(said, "GET, HEAD, POST, OPTIONS"));
  said = say("POST", "/sensors/latest");
  CHECK_EQUAL(405, status_of(said));
  CHECK(allows(said, "GET, HEAD, DELETE, OPTIONS"));
  said = say("TRACE", "/any");
  CHECK_EQUAL(405, status_of(said));
  CHECK(allows(said, "GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH"));
}

TEST(HttpRoutes, a_method_without_a_name_has_its_own_routes_and_those_for_any) {
  CHECK(content_of(say("PROPFIND", "/dav")) == "f");
  CHECK(content_of(say("M-SEARCH", "/dav")) == "m");
  CHECK(content_of(say("BREW", "/any")) == "a");
  for (const std::string_view method : {"BREW", "propfind", "PROPFIN"}) {
    const auto said = say(method, "/dav");
    CHECK(status_of(said) == 405);
    CHECK(allows(said, "GET, HEAD, OPTIONS, PROPFIND, M-SEARCH"));
  }
  CHECK(allows(say("PROPFIND", "/sensors"), "GET, HEAD, POST, OPTIONS"));
  CHECK(status_of(say("PROPFIND", "/nothing")) == 404);
}

TEST(HttpRoutes, a_route_for_get_answers_head_unless_head_has_its_own) {
  const auto said = say("HEAD", "/sensors");
  CHECK_EQUAL(200, status_of(said));
  CHECK(said.find("Content-Length: 1\r\n") != said.npos);
  CHECK(content_of(said).empty());
  CHECK(find_route(All::table(), Method::head, "/sensors/latest", memory).route->methods == method_set(Method::head));
  CHECK(find_route(All::table(), Method::get, "/sensors/latest", memory).route->methods == method_set(Method::get));
}

TEST(HttpRoutes, options_tells_the_methods_of_a_path_and_of_all) {
  auto said = say("OPTIONS", "/sensors");
  CHECK_EQUAL(204, status_of(said));
  CHECK(allows(said, "GET, HEAD, POST, OPTIONS"));
  said = say("OPTIONS", "*");
  CHECK_EQUAL(204, status_of(said));
  CHECK(allows(said, "GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH"));
  CHECK(content_of(say("OPTIONS", "/own")) == "o");
  CHECK(content_of(say("OPTIONS", "/any")) == "a");
}

TEST(HttpRoutes, handlers_are_functions_lambdas_with_what_they_capture_and_answers) {
  CHECK(content_of(say("GET", "/sensors")) == "s");
  CHECK(content_of(say("GET", "/lambda")) == "lambda");
  CHECK(content_of(say("DELETE", "/sensors/x%20y")) == "captured");
  CHECK(hub.heard() == "x y");
  CHECK(content_of(say("GET", "/answer/a/b")) == "/answer/a/b");
  CHECK_EQUAL(1, answer.asked);
}

TEST(HttpRoutes, a_table_is_no_larger_than_what_its_handlers_hold) {
  const auto none = [](Exchange&) {};
  CHECK_EQUAL(1, sizeof(routes(get<"/a">(none))) <= sizeof(void*) ? 1 : 0);
  auto captured = routes(get<"/a">([this](Exchange&) { hub.add("a"); }), get<"/b">([](Exchange&) {}));
  CHECK(sizeof captured <= 2 * sizeof(void*));
}

TEST(HttpRoutes, a_number_that_does_not_fit_its_type_is_404) {
  CHECK(content_of(say("GET", "/number/-3/255")) == "most");
  CHECK(hub.heard() == "negative");
  CHECK_EQUAL(404, status_of(say("GET", "/number/1/256")));
  CHECK_EQUAL(404, status_of(say("GET", "/number/1/-1")));
  CHECK_EQUAL(404, status_of(say("GET", "/number/2147483648/1")));
  CHECK_EQUAL(404, status_of(say("GET", "/number/x/1")));
  CHECK(hub.heard() == "negative");
}

TEST(HttpRoutes, a_mounted_table_has_its_prefix) {
  CHECK(content_of(say("GET", "/inner/")) == "i");
  CHECK(content_of(say("GET", "/inner/abc")) == "abc");
  CHECK_EQUAL(404, status_of(say("GET", "/inner")));
  CHECK(content_of(say("POST", "/inner/deep/er")) == "p");
  CHECK(hub.heard() == "200");
}

TEST(HttpRoutes, middleware_stands_around_what_it_is_named_for) {
  CHECK_EQUAL(403, status_of(say("GET", "/gated/one/abc")));
  CHECK(hub.heard() == "()");
  hub = {};
  hub.open = true;
  CHECK(content_of(say("GET", "/gated/one/abc")) == "abc");
  CHECK(hub.heard() == "()");
  hub.size = 0;
  CHECK(content_of(say("POST", "/gated/one/deep/er")) == "p");
  CHECK(hub.heard() == "(200)");
  hub.size = 0;
  CHECK(content_of(say("PUT", "/both")) == "g");
  CHECK(hub.heard() == "()200");
  hub.size = 0;
  const auto marked = say("PUT", "/marked");
  CHECK(content_of(marked) == "k");
  CHECK(marked.find("\r\nX-Mark: 1\r\nX-Before: 1\r\n") != marked.npos);
  CHECK(hub.heard() == "200");
}

TEST(HttpRoutes, middleware_around_a_table_sees_what_has_no_route) {
  auto logged = around(app, Log{hub});
  options = answered_by(logged);
  const auto none = say("GET", "/none");
  CHECK_EQUAL(404, status_of(none));
  CHECK(none.find("\r\nX-Before: 1\r\n") != none.npos);
  CHECK(hub.heard() == "404");
}

TEST(HttpRoutes, added_fields_that_do_not_fit_are_500_and_end_with_their_exchange) {
  static constexpr char kMuch[300] = "X: 1\r\n";
  options.handler = [](Exchange& exchange) {
    if (exchange.request().path == "/much") {
      exchange.add_fields({kMuch, 5});
      exchange.add_fields({kMuch, sizeof kMuch});
      exchange.add_fields({kMuch, sizeof kMuch});
    }
    exchange.respond(200, "text/plain", "ok");
  };
  const auto said = say("GET", "/much");
  CHECK_EQUAL(500, status_of(said));
  CHECK(said.find("X: 1") == said.npos);
  options.handler = [](Exchange& exchange) {
    if (exchange.request().path == "/one") exchange.add_fields("X: 1\r\n");
    exchange.respond(200, "text/plain", "ok");
  };
  const auto both = ask(options,
                        "GET /one HTTP/1.1\r\nHost: t\r\n\r\n"
                        "GET /two HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
  CHECK(both.find("X: 1") != both.npos);
  CHECK(both.find("X: 1") == both.rfind("X: 1"));
}

namespace {

// Errors makes errors look as JSON, in one piece or in several, and counts them.
struct Errors {
  int asked = 0;
  bool silent = false, streams = false;

  void operator()(Exchange& exchange, int status) {
    ++asked;
    if (silent) return;
    char text[40];
    const std::string_view look = coir::format(text, "{\"error\":", status, "}");
    if (!streams) return exchange.respond(status, "application/json", look);
    exchange.start(status);
    if (exchange.begin_chunked()) static_cast<void>(exchange.write(look));
  }
};

// take_content reads at most eight bytes, and leaves what is wrong with the content to the server.
void take_content(Exchange& exchange) {
  char piece[64];
  for (;;) {
    const auto got = exchange.read_body(piece);
    if (!got && got.error() != coir::ErrorCode::end_of_stream) return;
    if (!got) return exchange.respond(200, "text/plain", "taken");
  }
}

// More than an exchange has room for beside the head.
constexpr auto kLong = [] {
  std::array<char, Exchange::kAddedFieldBytes + 1> line;
  line.fill('x');
  constexpr std::string_view kName = "WWW-Authenticate: ", kEnd = "\r\n";
  std::ranges::copy(kName, line.begin());
  std::ranges::copy(kEnd, line.end() - kEnd.size());
  return line;
}();
constexpr std::string_view kLongFields(kLong.data(), kLong.size());

auto decided_routes(Errors& errors) {
  return routes(get<"/silent">([](Exchange&) {}),
                get<"/refused">([](Exchange& exchange) { exchange.respond_status(415, "Accept: text/plain\r\n"); }),
                get<"/long">([](Exchange& exchange) { exchange.respond_status(401, kLongFields); }),
                get<"/moved">([](Exchange& exchange) { exchange.respond_status(303, "Location: /\r\n"); }),
                get<"/own">([](Exchange& exchange) { exchange.respond(404, "text/plain", "its own"); }),
                get<"/{number}">([](Exchange& exchange, int) { exchange.respond(200, "text/plain", "number"); }),
                post<"/content">(take_content), on_error(errors));
}

bool looks(std::string_view said, int status, std::string_view content) {
  return status_of(said) == status && content_of(said) == content;
}

}  // namespace

TEST_GROUP(HttpRouteErrors) {
  Errors errors;
  Hub hub;
  decltype(decided_routes(std::declval<Errors&>())) app = decided_routes(errors);

  template <class App>
  std::string_view say(App& table, std::string_view line, std::string_view rest = {}) {
    static char request[400];
    ServerOptions options = answered_by(table);
    options.limits.max_body = 8;
    return ask(options, coir::format(request, line, " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n", rest,
                                     rest.empty() ? "\r\n" : ""));
  }
};

TEST(HttpRouteErrors, on_error_decides_how_they_look) {
  CHECK_TRUE(looks(say(app, "GET /a/b"), 404, "{\"error\":404}"));
  CHECK_TRUE(looks(say(app, "GET /no-number"), 404, "{\"error\":404}"));
  CHECK_TRUE(looks(say(app, "GET /%01"), 400, "{\"error\":400}"));
  CHECK_TRUE(looks(say(app, "GET /silent"), 500, "{\"error\":500}"));
  CHECK_TRUE(looks(say(app, "POST /content", "Content-Length: 9\r\n\r\n123456789"), 413, "{\"error\":413}"));
  CHECK_TRUE(looks(say(app, "POST /content", "Transfer-Encoding: chunked\r\n\r\n9\r\n123456789\r\n0\r\n\r\n"), 413,
                   "{\"error\":413}"));
  CHECK_TRUE(looks(say(app, "GET nowhere"), 400, "{\"error\":400}"));
  const auto head = say(app, "HEAD /a/b");
  CHECK_TRUE(looks(head, 404, "") && head.find("Content-Length: 13\r\n") != head.npos);
  LONGS_EQUAL(8, errors.asked);
}

TEST(HttpRouteErrors, middleware_around_a_table_changes_nothing) {
  auto all = around(app, Log{hub});
  CHECK_TRUE(looks(say(all, "GET /a/b"), 404, "{\"error\":404}"));
  CHECK_TRUE(looks(say(all, "GET nowhere"), 400, "{\"error\":400}"));
  LONGS_EQUAL(2, errors.asked);
}

TEST(HttpRouteErrors, the_headers_stay) {
  const auto other = say(app, "DELETE /silent");
  CHECK_TRUE(looks(other, 405, "{\"error\":405}"));
  CHECK_TRUE(other.find("Allow: GET, HEAD") != other.npos);
  const auto refused = say(app, "GET /refused");
  CHECK_TRUE(looks(refused, 415, "{\"error\":415}"));
  CHECK_TRUE(refused.find("Accept: text/plain\r\n") != refused.npos);
}

TEST(HttpRouteErrors, headers_that_are_too_long_for_a_look_stay_with_the_status_own_words) {
  const auto refused = say(app, "GET /long");
  CHECK_TRUE(looks(refused, 401, "401 Unauthorized\n"));
  CHECK_TRUE(refused.find(kLongFields) != refused.npos);
  LONGS_EQUAL(0, errors.asked);
}

TEST(HttpRouteErrors, an_answer_in_pieces_is_whole) {
  errors.streams = true;
  CHECK_TRUE(looks(say(app, "GET /a/b"), 404, "d\r\n{\"error\":404}\r\n0\r\n\r\n"));
  CHECK_TRUE(looks(say(app, "GET /silent"), 500, "d\r\n{\"error\":500}\r\n0\r\n\r\n"));
}

TEST(HttpRouteErrors, answers_that_are_no_error_or_the_handlers_own_stay) {
  LONGS_EQUAL(303, status_of(say(app, "GET /moved")));
  CHECK_TRUE(looks(say(app, "GET /own"), 404, "its own"));
  CHECK_TRUE(looks(say(app, "GET /7"), 200, "number"));
  LONGS_EQUAL(0, errors.asked);
}

TEST(HttpRouteErrors, an_error_that_it_does_not_answer_gets_the_words_of_the_status) {
  errors.silent = true;
  CHECK_TRUE(looks(say(app, "GET /a/b"), 404, "404 Not Found\n"));
  CHECK_TRUE(looks(say(app, "GET /silent"), 500, "500 Internal Server Error\n"));
  const auto other = say(app, "DELETE /silent");
  CHECK_TRUE(other.find("\r\nAllow: ") != other.npos && other.find("Allow: ") == other.rfind("Allow: "));
}

TEST(HttpRouteErrors, a_mounted_tables_own_decides_for_its_handlers) {
  Errors outer;
  auto all = routes(mount<"/in">(app), get<"/bare">([](Exchange&) {}), on_error(outer));
  LONGS_EQUAL(500, status_of(say(all, "GET /in/silent")));
  LONGS_EQUAL(1, errors.asked);
  LONGS_EQUAL(500, status_of(say(all, "GET /bare")));
  LONGS_EQUAL(404, status_of(say(all, "GET /in/a/b")));
  LONGS_EQUAL(1, errors.asked);
  LONGS_EQUAL(2, outer.asked);
}

}  // namespace http_routes_test
