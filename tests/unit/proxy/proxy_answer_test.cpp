// Proxy and FastCgi as values: mounted in a table like handlers, named where they are wrong, destroyed in any order.

#include <CppUTest/TestHarness.h>
#include <coir/http.h>
#include <coir/http/proxy.h>

#include <optional>

#include "proxy/routes/proxy_state.h"
#include "tests/support/folder.h"
#include "tests/unit/proxy/gateway.h"
#if COIR_FASTCGI
#include <coir/http/fastcgi.h>
#endif

namespace proxy_answer_test {

using namespace coir::http;
using namespace coir::test;

TEST_GROUP_BASE(ProxyAnswer, HandlerServer) {
  coir::test::Folder folder;

  // by has a server answer by a value: the context is the group's own.
  template <class Answer>
  static ServerOptions by(Answer& answer) {
    static Answer* answers;
    answers = &answer;
    ServerOptions options;
    options.handler = [](Exchange& exchange) { (*answers)(exchange); };
    return options;
  }
  bool asks(const coir::Address& address, std::string_view request, std::string_view answer) {
    coir::test::Client client(address);
    return client.say(request) && client.hear(answer);
  }
};

TEST(ProxyAnswer, is_mounted_with_its_servers_and_rules) {
  Heard first, second;
  ScriptedServer servers[] = {ScriptedServer(keep_head(first)), ScriptedServer(keep_head(second))};
  auto app = routes(any<"/api/{path...}">(
      Proxy{{{servers[0].url("/v1"), 1}, {servers[1].url("/v1"), 1}}, {.prefix = "/api", .host = "inner.example"}}));
  CHECK_TRUE(app.problem().empty());
  serving(by(app), [&](Server& server, const coir::Address& address, Seen&) {
    first.size = second.size = 0;
    for (int i = 0; i < 2; ++i)
      expect(asks(address, "GET /api/items?all HTTP/1.1\r\nHost: localhost\r\n\r\n", "hello"));
    expect(first.has("GET /v1/items?all HTTP/1.1\r\n") && second.has("GET /v1/items?all HTTP/1.1\r\n"));
    expect(first.has("Host: inner.example\r\n"));
    expect(asks(address, "GET /other HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 404 "));
    expect(server.stop(soon()).has_value());
  });
}

TEST(ProxyAnswer, names_an_address_that_is_none_and_is_not_served) {
  const auto names = [](std::string_view problem, std::string_view what) {
    return problem.find(what) != std::string_view::npos;
  };
  CHECK_TRUE(names(Proxy({"http://a", "ftp://b"}).problem(), "'ftp://b'"));
  CHECK_TRUE(names(Proxy("http://a", {.prefix = "api"}).problem(), "'api'"));
  CHECK_TRUE(names(Proxy("http://a", {.health = "up"}).problem(), "'http://a'"));
  if (coir::kTls) CHECK_TRUE(names(Proxy("https://a").problem(), "ProxyOptions::tls"));
#if COIR_FASTCGI
  CHECK_TRUE(names(FastCgi({"127.0.0.1:9000", "http://b"}).problem(), "'http://b'"));
  CHECK_TRUE(names(FastCgi("unix:/run/app.sock", {.suffix = ".php"}).problem(), "files"));
  CHECK_TRUE(FastCgi("unix:/run/app.sock").problem().empty());
#endif
  auto inner = routes(any<"/x/{path...}">(Proxy({"ftp://b"})));
  auto app = routes(get<"/">([](Exchange& exchange) { exchange.respond_status(204); }), mount<"/in">(std::move(inner)));
  CHECK_TRUE(names(app.problem(), "'ftp://b'"));
  CHECK_EQUAL(2, serve({.listen = "127.0.0.1:0"}, app));
}

// A proxy that outlives the run would hold it up by the connections that rest in its pool and by those that watch.
TEST(ProxyAnswer, outlives_server_and_run_and_answers_for_the_next) {
  char url[200];
  const char* const path = folder.at("socket");
  std::optional<ScriptedServer> upstream(std::in_place, answer_all(kHello), path);
  std::optional<Proxy> proxy(std::in_place, UpstreamServer(coir::format(url, "unix:", std::string_view(path))),
                             ProxyRules{.health = "/"});
  const std::size_t connections = coir::account::connections.used();
  serving(by(*proxy), [&](Server& server, const coir::Address& address, Seen&) {
    for (int i = 0; i < 3; ++i) expect(asks(address, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "hello"));
    expect(proxy->state()->hold().upstreams(0).state().resting != 0);
    expect(server.stop(soon()).has_value());
    expect(proxy->state()->hold().upstreams(0).state().resting == 0);
  });
  CHECK_EQUAL(connections, coir::account::connections.used());
  upstream.reset();
  ::unlink(path);
}

TEST(ProxyAnswer, goes_before_a_server_that_has_stopped) {
  char url[200];
  const char* const path = folder.at("socket");
  std::optional<ScriptedServer> upstream(std::in_place, answer_all(kHello), path);
  static std::optional<Proxy> proxy;
  ServerOptions options;
  options.handler = [](Exchange& exchange) { (*proxy)(exchange); };
  const std::size_t before = coir::account::http.used();
  serving(options, [&](Server& server, const coir::Address& address, Seen&) {
    proxy.emplace(UpstreamServer(coir::format(url, "unix:", std::string_view(path))), ProxyRules{.health = "/"});
    expect(asks(address, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "hello"));
    expect(server.stop(soon()).has_value());
    proxy.reset();
  });
  CHECK_EQUAL(before, coir::account::http.used());
  upstream.reset();
  ::unlink(path);
}

}  // namespace proxy_answer_test
