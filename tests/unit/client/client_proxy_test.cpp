// Which proxy a client asks, and how.

#include "client/proxies.h"

#include <coir/http/client.h>

#include <CppUTest/TestHarness.h>
#include <stdlib.h>

#include <atomic>

#include "tests/support/both_sides.h"
#include "tests/unit/client/scripted_server.h"

namespace client_proxy_test {

using namespace std::chrono_literals;
using namespace coir::http;
using coir::Deadline;
using coir::ErrorCode;
using coir::test::Peer;
using coir::test::ScriptedServer;

namespace {

constexpr std::string_view kHello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

constexpr const char* kVariables[] = {"http_proxy", "HTTP_PROXY", "https_proxy",   "HTTPS_PROXY",
                                      "no_proxy",   "NO_PROXY",   "REQUEST_METHOD"};

// proxy_for is the host of the proxy for an address by the environment of now.
std::string_view proxy_for(std::string_view url) {
  static char host[64];
  Proxies proxies;
  proxies.read_environment();
  const auto proxy = proxies.choose(*parse_url(url));
  if (!proxy) return "error";
  if (!*proxy) return "none";
  return {host, (*proxy)->host.copy(host, sizeof host)};
}

}  // namespace

TEST_GROUP_BASE(ClientProxy, coir::test::BothSides) {
  void setup() override {
    for (const char* const each : kVariables) unsetenv(each);
  }
  void teardown() override { setup(); }
};

TEST(ClientProxy, is_what_the_environment_says) {
  CHECK(proxy_for("http://a/") == "none");
  setenv("http_proxy", "http://p:3128/", 1);
  setenv("HTTPS_PROXY", "q:3129", 1);
  CHECK(proxy_for("http://a/") == "p");
  CHECK(proxy_for("https://a/") == "q");
  setenv("no_proxy", "b, .c", 1);
  CHECK(proxy_for("http://b/") == "none");
  CHECK(proxy_for("http://x.c/") == "none");
  CHECK(proxy_for("http://a/") == "p");
  setenv("http_proxy", "https://p/", 1);
  CHECK(proxy_for("http://a/") == "error");
  setenv("http_proxy", "http://p p/", 1);
  CHECK(proxy_for("http://a/") == "error");
}

TEST(ClientProxy, of_a_cgi_program_is_not_the_requests_to_choose) {
  setenv("HTTP_PROXY", "http://p:3128/", 1);
  CHECK(proxy_for("http://a/") == "p");
  setenv("REQUEST_METHOD", "GET", 1);
  CHECK(proxy_for("http://a/") == "none");
}

TEST(ClientProxy, stays_what_it_was_when_the_client_was_made) {
  setenv("http_proxy", "http://127.0.0.1:1/", 1);
  Proxies proxies;
  proxies.read_environment();
  setenv("http_proxy", "http://other:2/", 1);
  unsetenv("http_proxy");
  const auto proxy = proxies.choose(*parse_url("http://a/"));
  CHECK(proxy && *proxy && (*proxy)->host == "127.0.0.1");
}

TEST(ClientProxy, that_is_too_long_to_be_kept_is_not_passed_by) {
  const std::string_view filler = "0123456789abcdef";
  char longest[2048];
  for (std::size_t at = 0; at < sizeof longest; ++at) longest[at] = filler[at % 16];
  longest[sizeof longest - 1] = '\0';
  setenv("http_proxy", longest, 1);
  CHECK(proxy_for("http://a/") == "error");
  setenv("http_proxy", "p", 1);
  setenv("no_proxy", longest, 1);
  CHECK(proxy_for("http://a/") == "error");
}

TEST(ClientProxy, is_not_asked_for_hosts_that_are_excepted) {
  CHECK_TRUE(is_excepted("*", "a", 80));
  CHECK_TRUE(is_excepted("x,a", "A", 80));
  CHECK_TRUE(is_excepted("example.org", "www.example.org", 80));
  CHECK_TRUE(is_excepted(".example.org", "example.org", 80));
  CHECK_TRUE(is_excepted("a:8080", "a", 8080));
  CHECK_TRUE(is_excepted("[::1]:81 ::2", "::1", 81));
  CHECK_TRUE(is_excepted("[::1]:81 ::2", "::2", 80));
  CHECK_FALSE(is_excepted("", "a", 80));
  CHECK_FALSE(is_excepted("example.org", "badexample.org", 80));
  CHECK_FALSE(is_excepted("www.example.org", "example.org", 80));
  CHECK_FALSE(is_excepted("a:8080", "a", 80));
  CHECK_FALSE(is_excepted(",,:", "a", 80));
  // An address lies in networks, a name in domains.
  CHECK_TRUE(is_excepted("127.0.0.1", "127.0.0.1", 80));
  CHECK_TRUE(is_excepted("127.0.0.0/8", "127.0.0.1", 80));
  CHECK_TRUE(is_excepted("10.0.0.0/8,192.168.4.0/22", "192.168.7.255", 80));
  CHECK_TRUE(is_excepted("fd00::/8", "fd12::1", 80));
  CHECK_TRUE(is_excepted("0:0:0:0:0:0:0:1", "::1", 80));
  CHECK_TRUE(is_excepted("0.0.0.0/0", "1.2.3.4", 80));
  CHECK_FALSE(is_excepted("0.0.1,.0.1,1", "127.0.0.1", 80));
  CHECK_FALSE(is_excepted("192.168.4.0/22", "192.168.8.0", 80));
  CHECK_FALSE(is_excepted("10.0.0.0/33,10.0.0.0/,10.0.0.0/-1,10.0.0.0/8x", "10.0.0.0", 80));
  CHECK_FALSE(is_excepted("0.0.0.0/0", "::1", 80));
  CHECK_FALSE(is_excepted("10.0.0.0/8", "a.10.0.0.0", 80));
}

TEST(ClientProxy, is_given_the_whole_address) {
  both_sides([&] {
    const std::unique_ptr<char[]> head(new char[1024]{});
    const ScriptedServer proxy([&](Peer& peer) {
      while (true) {
        const auto heard = peer.hear();
        if (heard.empty()) return;
        memcpy(head.get(), heard.data(), heard.size());
        peer.say(kHello);
      }
    });
    char variable[64];
    snprintf(variable, sizeof variable, "http://me:p%%20w@127.0.0.1:%u", proxy.port());
    setenv("http_proxy", variable, 1);
    auto client = Client::create();
    for (const std::string_view url : {"http://one.example/a?b", "http://two.example:81/c"}) {
      auto answer = client->get(url, {.deadline = Deadline::after(60s)});
      const auto text = answer ? answer->text() : std::unexpected(coir::Error(ErrorCode::busy));
      expect(text && *text == "hello");
    }
    const std::string_view heard(head.get());
    expect(heard.starts_with("GET http://two.example:81/c HTTP/1.1\r\nHost: two.example:81\r\n"));
    expect(heard.find("\r\nProxy-Authorization: Basic bWU6cCB3\r\n") != heard.npos);
    // One connection to the proxy serves all hosts.
    expect(proxy.connections() == 1);
  });
}

TEST(ClientProxy, that_refuses_a_tunnel_is_told) {
  both_sides([&] {
    const std::unique_ptr<char[]> head(new char[1024]{});
    const ScriptedServer proxy([&](Peer& peer) {
      const auto heard = peer.hear();
      memcpy(head.get(), heard.data(), heard.size());
      // A consent with bytes behind it is none: no server can have said them.
      peer.say(peer.number == 0 ? "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n" : "HTTP/1.1 200 OK\r\n\r\nx");
    });
    char variable[64];
    snprintf(variable, sizeof variable, "http://127.0.0.1:%u", proxy.port());
    setenv("https_proxy", variable, 1);
    auto client = Client::create();
    for (int i = 0; i < 2; ++i) {
      const auto answer = client->get("https://board.test/", {.deadline = Deadline::after(60s)});
      if (!coir::kTls) {
        expect(!answer && answer.error() == ErrorCode::unsupported);
        continue;
      }
      expect(!answer && std::string_view(describe(answer.error())) == "the proxy has refused the connection");
      expect(std::string_view(head.get()).starts_with("CONNECT board.test:443 HTTP/1.1\r\nHost: board.test:443\r\n"));
    }
  });
}

// A Content-Length in a proxy's consent means nothing: the tunnel begins behind the head.
TEST(ClientProxy, that_consents_with_a_length_is_believed) {
  both_sides([&] {
    std::atomic<bool> tunnelled{false};
    const ScriptedServer proxy([&](Peer& peer) {
      peer.hear();
      peer.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n");
      // A ClientHello follows.
      tunnelled = peer.hear_content(1) == "\x16";
    });
    char variable[64];
    snprintf(variable, sizeof variable, "http://127.0.0.1:%u", proxy.port());
    setenv("https_proxy", variable, 1);
    auto client = Client::create();
    unsetenv("https_proxy");
    expect(!client->get("https://board.test/", {.deadline = Deadline::after(60s)}).has_value());
    expect(tunnelled == coir::kTls);
  });
}

}  // namespace client_proxy_test
