// A guard decides which hosts a client may reach if others tell it what to fetch.

#include <coir/http/client.h>
#include <coir/net/address.h>

#include <CppUTest/TestHarness.h>

#include "tests/support/both_sides.h"
#include "tests/unit/client/scripted_server.h"

namespace client_guard_test {

using namespace std::chrono_literals;
using namespace coir::http;
using coir::Address;
using coir::Deadline;
using coir::ErrorCode;
using coir::test::answer_all;
using coir::test::Peer;
using coir::test::ScriptedServer;

namespace {

constexpr std::string_view kHello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

// Notes remembers what it was asked, and admits a host but not `forbidden`, and addresses as `only_public` says.
struct Notes : ClientGuard {
  Notes() : ClientGuard{.admits_host = &judge_host, .admits_address = &judge_address} {}

  static bool judge_host(const ClientGuard& self, std::string_view host, std::uint16_t port) noexcept {
    auto& notes = const_cast<Notes&>(static_cast<const Notes&>(self));
    ++notes.hosts;
    notes.last_port = port;
    return host != notes.forbidden;
  }
  static bool judge_address(const ClientGuard& self, std::string_view, const Address& address) noexcept {
    auto& notes = const_cast<Notes&>(static_cast<const Notes&>(self));
    ++notes.addresses;
    return !notes.only_public || coir::is_public(address);
  }

  std::string_view forbidden = "";
  bool only_public = false;
  int hosts = 0;
  int addresses = 0;
  std::uint16_t last_port = 0;
};

ClientRequest soon() {
  return {.deadline = Deadline::after(60s)};
}

bool refused(const std::expected<Response, coir::Error>& answer) {
  return !answer && answer.error() == ErrorCode::invalid &&
         std::string_view(describe(answer.error())) == "refused: this client may not go there";
}

}  // namespace

TEST_GROUP_BASE(ClientGuard, coir::test::BothSides) {
  template <class Body>
  void with_guard(Body body) {
    both_sides([&] {
      Notes notes;
      auto client = Client::create({.guard = &notes});
      expect(client.has_value());
      if (client) body(*client, notes);
    });
  }
};

TEST(ClientGuard, a_request_that_is_admitted_goes_where_it_should) {
  with_guard([&](Client& client, Notes& notes) {
    const ScriptedServer server(answer_all(kHello));
    auto answer = client.get(server.url("/"), soon());
    expect(answer && *answer->text() == "hello");
    expect(notes.hosts == 1 && notes.addresses == 1 && notes.last_port == server.port());
    // A connection that rested leads to an address that was admitted; the host is asked about anew.
    auto again = client.get(server.url("/"), soon());
    expect(again && *again->text() == "hello");
    expect(notes.hosts == 2 && notes.addresses == 1);
  });
}

TEST(ClientGuard, a_redirect_to_a_forbidden_host_is_not_followed) {
  with_guard([&](Client& client, Notes& notes) {
    const ScriptedServer inner(answer_all(kHello));
    char away[256];
    snprintf(away, sizeof away, "HTTP/1.1 302 Go\r\nLocation: http://localhost:%u/secret\r\nContent-Length: 0\r\n\r\n",
             inner.port());
    const ScriptedServer outer(answer_all(away));
    notes.forbidden = "localhost";
    expect(refused(client.get(outer.url("/"), soon())));
    expect(notes.hosts == 2 && inner.connections() == 0 && outer.connections() == 1);
    notes.forbidden = "";
    auto answer = client.get(outer.url("/"), soon());
    expect(answer && *answer->text() == "hello" && inner.connections() == 1);
  });
}

TEST(ClientGuard, a_name_that_stands_for_this_machine_is_not_connected_to) {
  with_guard([&](Client& client, Notes& notes) {
    const ScriptedServer server(answer_all(kHello));
    notes.only_public = true;
    char url[64];
    for (const char* host : {"localhost", "127.0.0.1", "[::ffff:127.0.0.1]", "sub.localhost"}) {
      snprintf(url, sizeof url, "http://%s:%u/", host, server.port());
      expect(refused(client.get(url, soon())));
    }
    expect(notes.hosts == 4 && notes.addresses >= 4 && server.connections() == 0);
  });
}

TEST(ClientGuard, an_address_beside_the_url_is_judged_too) {
  with_guard([&](Client& client, Notes& notes) {
    const ScriptedServer server(answer_all(kHello));
    char text[64];
    snprintf(text, sizeof text, "127.0.0.1:%u", server.port());
    const Address to = *Address::parse(text);
    ClientRequest asked = soon();
    asked.to = &to;
    notes.only_public = true;
    expect(refused(client.get("http://board.example/", asked)) && server.connections() == 0);
    notes.only_public = false;
    auto answer = client.get("http://board.example/", asked);
    expect(answer && *answer->text() == "hello");
  });
}

TEST(ClientGuard, no_proxy_is_asked_which_would_look_names_up_itself) {
  const ScriptedServer proxy(answer_all(kHello));
  char text[64];
  snprintf(text, sizeof text, "http://127.0.0.1:%u", proxy.port());
  setenv("http_proxy", text, 1);
  with_guard([&](Client& client, Notes&) {
    const ScriptedServer server(answer_all(kHello));
    auto answer = client.get(server.url("/"), soon());
    expect(answer && *answer->text() == "hello" && server.connections() == 1);
  });
  unsetenv("http_proxy");
  UNSIGNED_LONGS_EQUAL(0, proxy.connections());
}

}  // namespace client_guard_test
