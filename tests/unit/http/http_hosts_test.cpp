// By which names a server may be called: nobody's page gets at it by a name of its own that leads here.

#include <CppUTest/TestHarness.h>
#include <coir/config.h>
#include <coir/format.h>
#include <coir/http/server.h>
#include <coir/port/limits.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <unistd.h>

#include <array>
#include <string_view>

#include "tests/support/expectations.h"
#include "tests/unit/http/run_beside.h"

#if COIR_TLS
#include "tests/support/tls_pair.h"
#endif

namespace http_hosts_test {

using namespace std::chrono_literals;
using coir::Address;
using coir::Deadline;
using coir::TcpListener;
using coir::TcpStream;
using coir::http::Exchange;
using coir::http::Server;
using coir::http::ServerOptions;

namespace {

// ask returns the status that a request is answered by; 0: none.
int ask(const Address& address, std::string_view method, std::string_view host, std::string_view fields = {}) {
  char room[1024];
  const std::string_view request =
      coir::format(room, method, " / HTTP/1.1\r\nHost: ", host, "\r\n", fields, "Connection: close\r\n\r\n");
  auto stream = TcpStream::connect(address, Deadline::after(60s));
  if (!stream || !stream->write(request, Deadline::after(60s))) return 0;
  std::size_t have = 0;
  while (auto got = stream->read(std::span(room).subspan(have), Deadline::after(60s))) have += *got;
  const std::string_view answer(room, have);
  if (!answer.starts_with("HTTP/1.1 ") || have < 12) return 0;
  return (answer[9] - '0') * 100 + (answer[10] - '0') * 10 + (answer[11] - '0');
}

// beside runs `visit` as a client of a server with these options, which listens at each of `addresses`.
template <class Visit>
void beside(ServerOptions options, std::string_view at, Visit visit, coir::TlsContextSlot* tls = nullptr) {
  options.handler = [](Exchange& exchange) { exchange.respond(200, "text/plain", "mine\n"); };
  auto server = Server::create(options);
  CHECK(server.has_value());
  auto listener = TcpListener::listen(*Address::parse(at));
  CHECK(listener.has_value());
  const Address address = listener->local_address();
  CHECK(server->add(std::move(*listener)).has_value());
  if (tls != nullptr) CHECK(server->add(*TcpListener::listen(*Address::parse("127.0.0.1:0")), tls).has_value());
  coir::test::run_beside(*server, [&] { visit(address); });
}

}  // namespace

TEST_GROUP_BASE(HttpHosts, coir::test::Expecting) {
  void teardown() override { check(); }
};

TEST(HttpHosts, a_change_for_another_host_is_421) {
  beside({}, "127.0.0.1:0", [&](const Address& address) {
    for (const std::string_view evil : {"evil.example", "evil.example:80", "127.0.0.1.evil.example", "1.2.3.4",
                                        "[2001:db8::1]:80", "0.0.0.0", "[::]", "localhost.evil", "xlocalhost"}) {
      for (const std::string_view method : {"POST", "PUT", "DELETE", "PATCH", "TRACE", "PURGE"})
        expect(ask(address, method, evil, "Content-Length: 0\r\n") == 421);
      for (const std::string_view method : {"GET", "HEAD", "OPTIONS"}) expect(ask(address, method, evil) == 200);
    }
  });
}

TEST(HttpHosts, a_websocket_for_another_host_is_421) {
  beside({}, "127.0.0.1:0", [&](const Address& address) {
    expect(ask(address, "GET", "evil.example", "Upgrade: h2c, WebSocket\r\n") == 421);
    expect(ask(address, "GET", "evil.example", "Upgrade: h2c\r\n") == 200);
    expect(ask(address, "GET", "localhost", "Upgrade: websocket\r\n") == 200);
  });
}

TEST(HttpHosts, the_names_and_addresses_of_this_machine_are_its_own) {
  char host[256] = {}, local[300], upper[300] = {};
  CHECK_EQUAL(0, ::gethostname(host, sizeof host - 1));
  const std::string_view label = std::string_view(host).substr(0, std::string_view(host).find('.'));
  const std::string_view name = coir::format(local, label, ".local");
  for (std::size_t i = 0; i < name.size(); ++i)
    upper[i] = name[i] >= 'a' && name[i] <= 'z' ? static_cast<char>(name[i] - 32) : name[i];
  beside({}, "127.0.0.1:0", [&](const Address& address) {
    const std::string_view names[] = {
        "localhost", "LocalHost:8080", "localhost.", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.",
        "127.9.9.9", "[::1]",          "[::1]:80",   host,        name,          upper};
    for (const std::string_view own : names) {
      // A kernel without IPv6 has no ::1.
      if (own.starts_with('[') && !TcpListener::listen(*Address::parse("[::1]:0"))) continue;
      expect(ask(address, "POST", own, "Content-Length: 0\r\n") == 200);
    }
    ifaddrs* all = nullptr;
    expect(::getifaddrs(&all) == 0);
    for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
      if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET) continue;
      char text[Address::kMaxText];
      const auto one = Address::from_sockaddr(each->ifa_addr, sizeof(sockaddr_in)).format(text);
      expect(ask(address, "POST", one, "Content-Length: 0\r\n") == 200);
    }
    ::freeifaddrs(all);
  });
}

TEST(HttpHosts, further_names_are_given) {
  constexpr std::string_view names[] = {"board.lan", "203.0.113.7", "2001:db8::7"};
  beside({.allow_hosts = names}, "127.0.0.1:0", [&](const Address& address) {
    for (const std::string_view own :
         {"board.lan", "BOARD.lan:81", "board.lan.", "203.0.113.7:80", "[2001:db8::7]", "localhost"})
      expect(ask(address, "POST", own, "Content-Length: 0\r\n") == 200);
    expect(ask(address, "POST", "other.lan", "Content-Length: 0\r\n") == 421);
  });
  constexpr std::string_view any[] = {"*"};
  beside({.allow_hosts = any}, "127.0.0.1:0",
         [&](const Address& address) { expect(ask(address, "POST", "evil.example", "Content-Length: 0\r\n") == 200); });
}

TEST(HttpHosts, no_page_comes_by_a_unix_socket) {
  char path[64];
  const std::string_view at = coir::format(path, "unix:@coir-hosts-", static_cast<unsigned>(::getpid()));
  beside({}, at,
         [&](const Address& address) { expect(ask(address, "POST", "evil.example", "Content-Length: 0\r\n") == 200); });
}

#if COIR_TLS
TEST(HttpHosts, names_in_certificates_are_this_machines) {
  const coir::test::Authority certified("device.example");
  coir::TlsContextSlot tls(certified.server());
  beside(
      {}, "127.0.0.1:0",
      [&](const Address& address) {
        expect(ask(address, "POST", "Device.example:8080", "Content-Length: 0\r\n") == 200);
        expect(ask(address, "POST", "other.example", "Content-Length: 0\r\n") == 421);
      },
      &tls);
}
#endif

}  // namespace http_hosts_test
