// Lines of a file of routes.

#include <coir/http/route_line.h>

#include <CppUTest/TestHarness.h>

using namespace coir::http;

TEST_GROUP(RouteLine){// refused tells whether a line is refused, by that word and with a cure.
                      static bool refused(std::string_view line, std::string_view word){RouteLine route;
const auto parsed = parse_route_line(line, route);
return !parsed && parsed.error().word == word && parsed.error().cure[0] != '\0';
}
static bool taken(std::string_view line, RouteLine& route) {
  const auto parsed = parse_route_line(line, route);
  return parsed && *parsed;
}
}
;

TEST(RouteLine, empty_lines_and_comments_are_no_routes) {
  for (const std::string_view line : {"", " \t", "\r", "# /a http://b", "  #"}) {
    RouteLine route;
    const auto parsed = parse_route_line(line, route);
    CHECK(parsed && !*parsed);
  }
}

TEST(RouteLine, prefix_and_servers_are_all_it_takes) {
  RouteLine route;
  CHECK(taken("  /api\thttp://127.0.0.1:1,unix:/run/a.sock \r", route));
  CHECK(route.prefix == "/api");
  CHECK(route.urls == "http://127.0.0.1:1,unix:/run/a.sock");
  CHECK(route.balance == Balance::round_robin);
  CHECK(route.hosts.empty() && route.host.empty() && route.weights[0] == 0);
  CHECK(route.request.lines().empty() && route.response.drops().empty());
}

TEST(RouteLine, every_key_is_read) {
  RouteLine route;
  CHECK(
      taken("/ http://a,http://b host=x.example,y.example send-host=z balance=least weights=3,100 set-request=X-A:1 "
            "set-request=X-B:a:b drop-request=Cookie drop-response=Server set-response=X-C:2",
            route));
  CHECK(route.hosts == "x.example,y.example");
  CHECK(route.host == "z");
  CHECK(route.balance == Balance::least_connections);
  CHECK_EQUAL(3, route.weights[0]);
  CHECK_EQUAL(100, route.weights[1]);
  CHECK(route.request.lines() == "X-A: 1\r\nX-B: a:b\r\n");
  CHECK_EQUAL(3, route.request.drops().size());
  CHECK(route.request.drops()[2] == "Cookie");
  CHECK(route.response.lines() == "X-C: 2\r\n");
  CHECK_EQUAL(2, route.response.drops().size());
}

TEST(RouteLine, hosts_match_in_any_case_with_or_without_port) {
  RouteLine route;
  CHECK(taken("/ http://a host=x.example,[::1]", route));
  CHECK(route.admits("x.example") && route.admits("X.Example:8080"));
  CHECK(route.admits("[::1]") && route.admits("[::1]:80"));
  CHECK(!route.admits("y.example") && !route.admits("") && !route.admits("ax.example") && !route.admits("x.example.b"));
  RouteLine any;
  CHECK(taken("/ http://a", any));
  CHECK(any.admits("y.example") && any.admits(""));
}

TEST(RouteLine, fields_that_the_proxy_makes_are_refused) {
  for (const std::string_view word :
       {"set-request=Content-Length:5", "set-request=transfer-encoding:chunked", "drop-request=Host",
        "set-response=Connection:x", "set-request=Via:x", "drop-request=X-Forwarded-For"}) {
    char line[128] = "/ http://a ";
    word.copy(line + 11, word.size());
    CHECK(refused({line, 11 + word.size()}, word));
  }
}

TEST(RouteLine, wrong_words_are_named) {
  CHECK(refused("api http://a", "api"));
  CHECK(refused("/api", "/api"));
  CHECK(refused("/api http://a,", "/api"));
  CHECK(refused("/ http://a hosts=b", "hosts=b"));
  CHECK(refused("/ http://a host=", "host="));
  CHECK(refused("/ http://a host=b host=c", "host=c"));
  CHECK(refused("/ http://a send-host=b,c", "send-host=b,c"));
  CHECK(refused("/ http://a balance=hash", "balance=hash"));
  CHECK(refused("/ http://a weights=1,2", "weights=1,2"));
  for (const std::string_view line : {"/ http://a weights=0", "/ http://a weights=101", "/ http://a weights=1x",
                                      "/ http://a weights=99999999999", "/ http://a weights="}) {
    CHECK(refused(line, line.substr(11)));
  }
  CHECK(refused("/ http://a set-request=X", "set-request=X"));
  CHECK(refused("/ http://a set-request=X:", "set-request=X:"));
  CHECK(refused("/ http://a set-request=:x", "set-request=:x"));
  CHECK(refused("/ http://a\nb", ""));
}

TEST(RouteLine, no_more_fields_than_there_is_room_for) {
  CHECK(refused("/ http://a drop-request=A drop-request=B drop-request=C drop-request=D drop-request=E",
                "drop-request=E"));
  char line[256] = "/ http://a set-request=X:";
  for (std::size_t i = 25; i < 148; ++i) line[i] = 'v';
  RouteLine route;
  CHECK(taken({line, 148}, route));
  CHECK_EQUAL(FieldChanges::kLineBytes, route.request.size);
  line[148] = 'v';
  CHECK(refused({line, 149}, {line + 11, 138}));
}
