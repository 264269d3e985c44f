// Lines of a file of routes.

#include <coir/http/proxy_table.h>

#include <CppUTest/TestHarness.h>

#include "proxy/routes/route_servers.h"

namespace route_line_test {

using namespace coir::http;

TEST_GROUP(RouteLine) {  // refused tells whether a line is refused, by that word and with a cure.
  static bool refused(std::string_view line, std::string_view word) {
    RouteLine route;
    const auto parsed = parse_route_line(line, route);
    return !parsed && parsed.error().word == word && parsed.error().cure[0] != '\0';
  }
  static bool taken(std::string_view line, RouteLine& route) {
    const auto parsed = parse_route_line(line, route);
    return parsed && *parsed;
  }
};

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

TEST(RouteLine, limits_and_deadlines_are_read) {
  RouteLine route;
  CHECK(
      taken("/ http://a,http://b balance=client rate=10,30 auth=/etc/a max-body=64K body-timeout=2m body-rate=4K "
            "trust=127.0.0.1,fd00::/8,unix "
            "request-id head=32K connect=500ms first-byte=2 idle=3s rest-idle=1h max-waiting=100 max-connections=20 "
            "forwarded",
            route));
  CHECK(route.balance == Balance::hash);
  CHECK_EQUAL(10, route.rate);
  CHECK_EQUAL(30, route.burst);
  CHECK(route.auth == "/etc/a");
  CHECK(route.max_body == 65536);
  CHECK_EQUAL(120'000, route.body_timeout.count());
  CHECK(route.body_rate == 4096);
  CHECK(route.trust == "127.0.0.1,fd00::/8,unix");
  CHECK(route.request_id);
  CHECK_EQUAL(32'768, route.max_head);
  CHECK_EQUAL(500, route.connect.count());
  CHECK_EQUAL(2000, route.first_byte.count());
  CHECK_EQUAL(3000, route.idle.count());
  CHECK_EQUAL(3'600'000, route.rest_idle.count());
  CHECK_EQUAL(100, route.max_waiting);
  CHECK_EQUAL(20, route.max_connections);
  CHECK(route.forwarded);
  RouteLine other;
  CHECK(taken("/ http://a rate=7 max-body=0", other));
  CHECK_EQUAL(7, other.burst);
  CHECK(other.max_body == 0);
  RouteLine none;
  CHECK(taken("/ http://a", none));
  CHECK(none.rate == 0 && none.auth.empty() && none.max_body == UINT64_MAX && none.trust.empty() && !none.request_id);
  CHECK(none.body_timeout.count() == 0 && !none.body_rate);
  CHECK(none.rest_idle.count() == 0 && none.connect.count() == 0 && none.max_waiting == 0);
  CHECK(none.max_connections == 0 && !none.forwarded);
}

TEST(RouteLine, wrong_limits_and_deadlines_are_named) {
  for (const std::string_view word : {"rate=0",
                                      "rate=",
                                      "rate=1,",
                                      "rate=,1",
                                      "rate=1,2,3",
                                      "rate=-1",
                                      "rate=1000001",
                                      "rate=1.5",
                                      "auth=",
                                      "max-body=",
                                      "max-body=1T",
                                      "max-body=-1",
                                      "max-body=99999999999999999999",
                                      "max-body=1K0",
                                      "body-timeout=soon",
                                      "body-rate=",
                                      "body-rate=4G",
                                      "trust=",
                                      "trust=here",
                                      "trust=10.0.0.0/33",
                                      "trust=::/129",
                                      "trust=10.0.0.0/",
                                      "trust=1.2.3.4:80",
                                      "trust=[::1]",
                                      "trust=,",
                                      "trust=1.2.3",
                                      "trust=1.1.1.1,1.1.1.2,1.1.1.3,1.1.1.4,1.1.1.5,1.1.1.6,1.1.1.7,1.1.1.8,1.1.1.9",
                                      "request-id=yes",
                                      "head=3K",
                                      "head=49K",
                                      "head=",
                                      "connect=0",
                                      "connect=",
                                      "first-byte=1d",
                                      "idle=-1s",
                                      "rest-idle=9999h",
                                      "rest-idle",
                                      "max-waiting=0",
                                      "max-waiting=many",
                                      "max-connections=0",
                                      "max-connections=1000001",
                                      "forwarded=yes"}) {
    char line[160] = "/ http://a ";
    word.copy(line + 11, word.size());
    CHECK_TRUE_TEXT(refused({line, 11 + word.size()}, word), word.data());
  }
}

TEST(RouteLine, checks_of_the_servers_are_read) {
  RouteLine route;
  CHECK(taken("/ http://a health=/healthz?x health-interval=500ms slow-start=2m", route));
  CHECK(route.health == "/healthz?x");
  CHECK_EQUAL(500, route.health_interval.count());
  CHECK_EQUAL(120'000, route.slow_start.count());
  for (const std::string_view wrong : {"health=healthz", "health=", "health=/\xc3\xa4", "health-interval=0s",
                                       "slow-start=s", "slow-start=12345678s", "slow-start=1d"}) {
    char line[64] = "/ http://a ";
    wrong.copy(line + 11, wrong.size());
    CHECK(refused({line, 11 + wrong.size()}, wrong));
  }
}

TEST(RouteLine, hosts_match_in_any_case_with_or_without_port) {
  RouteLine route;
  CHECK(taken("/ http://a host=x.example,[::1]", route));
  CHECK(route.admits("x.example") && route.admits("X.Example:8080"));
  // A dot may end a name.
  CHECK(route.admits("x.example.") && route.admits("x.example.:80") && !route.admits("x.example..") &&
        !route.admits("."));
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

TEST(RouteLine, the_rest_behind_a_prefix_is_found_in_the_path_as_it_was_sent) {
  const auto rest = [](std::string_view path, std::string_view prefix) {
    return coir::http::rest_below(path, prefix).value_or("none");
  };
  CHECK(rest("/a/x", "/a") == "/x" && rest("/a", "/a") == "" && rest("/ax", "/a") == "none" &&
        rest("/", "/a") == "none");
  CHECK(rest("//%61//%78", "/a") == "//%78" && rest("/a%2Fx", "/a") == "%2Fx" && rest("/a/x", "/a/") == "x");
  CHECK(rest("/a//x", "/a/") == "/x" && rest("/x", "/") == "x" && rest("/a b", "/a%20b") == "" &&
        rest("/a", "/a/") == "none");
}

}  // namespace route_line_test
