// A client over TLS.

#include <coir/http/client.h>
#if COIR_STREAMS
#include <coir/events.h>
#endif

#include <CppUTest/TestHarness.h>
#include <fcntl.h>
#include <mbedtls/sha256.h>
#include <mbedtls/x509_crt.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "tests/support/both_sides.h"
#include "tests/support/child.h"
#include "tests/support/folder.h"
#include "tests/support/tls_pair.h"
#include "tests/unit/client/scripted_server.h"

namespace client_tls_test {

using namespace std::chrono_literals;
using namespace coir::http;
using coir::Deadline;
using coir::Error;
using coir::ErrorCode;
using coir::TcpStream;
using coir::TlsContext;
using coir::TlsStream;
using coir::test::authority;
using coir::test::patience;
using coir::test::Peer;
using coir::test::ScriptedServer;

namespace {

constexpr std::string_view kHello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

// begin_tls shakes hands over a peer's connection.
std::expected<TlsStream, Error> begin_tls(Peer& peer, const TlsContext& context) {
  const int fd = fcntl(peer.fd(), F_DUPFD_CLOEXEC, 0);
  fcntl(fd, F_SETFL, O_NONBLOCK);
  return TlsStream::accept(TcpStream(fd), context, patience());
}

// hear reads a request's head.
bool hear(TlsStream& stream) {
  static thread_local char head[4096];
  std::size_t have = 0;
  while (!std::string_view(head, have).ends_with("\r\n\r\n")) {
    const auto got = stream.read({head + have, sizeof head - have}, patience());
    if (!got) return false;
    have += *got;
  }
  return true;
}

// secure_server answers each request by a text, and ends in good order.
ScriptedServer::Script secure_server(const TlsContext& context, std::string_view answer = kHello) {
  return [context, answer](Peer& peer) {
    auto stream = begin_tls(peer, context);
    while (stream && hear(*stream) && stream->write(answer, patience())) {
    }
  };
}

Error error_of(const std::expected<Response, Error>& answer) {
  return answer ? Error(ErrorCode::busy) : answer.error();
}

bool hello(std::expected<Response, Error>& answer) {
  if (!answer) return false;
  const auto got = answer->text();
  return got && *got == "hello";
}

}  // namespace

// SecureServer serves one connection after the other in a child process: in a build with one worker only one thread may
// use coir. It is made before any runtime runs.
class SecureServer {
 public:
  explicit SecureServer(const ScriptedServer::Script& script)
      : connections_(static_cast<std::atomic<unsigned>*>(
            mmap(nullptr, sizeof(unsigned), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    if (::bind(listener, reinterpret_cast<sockaddr*>(&at), size) != 0 || ::listen(listener, 64) != 0) __builtin_trap();
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&at), &size);
    port_ = ntohs(at.sin_port);
    child_ = ::fork();
    if (child_ == 0) {
      // It must not outlive a test program that is killed.
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (;;) {
        const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        if (fd < 0) _exit(1);
        Peer peer(fd, connections_->fetch_add(1));
        script(peer);
        peer.hang_up();
        ::close(fd);
      }
    }
    ::close(listener);
  }
  ~SecureServer() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    ::munmap(connections_, sizeof(unsigned));
  }
  SecureServer(const SecureServer&) = delete;
  SecureServer& operator=(const SecureServer&) = delete;

  unsigned connections() const { return connections_->load(); }
  std::uint16_t port() const { return port_; }
  // url writes the server's address, by the name of the certificate or another, into `text`.
  std::string_view url(const char* host = "127.0.0.1") const {
    static thread_local char text[64];
    const int size = snprintf(text, sizeof text, "https://%s:%u/", host, port_);
    return {text, static_cast<std::size_t>(size)};
  }

 private:
  std::atomic<unsigned>* const connections_;
  std::uint16_t port_ = 0;
  pid_t child_ = 0;
};

TEST_GROUP_BASE(ClientTls, coir::test::BothSides) {
  template <class Body>
  void with_client(const ClientOptions& options, Body body) {
    static_cast<void>(authority());
    both_sides([&] {
      auto client = Client::create(options);
      expect(client.has_value());
      if (client) body(*client);
    });
  }
  static ClientOptions trusting() {
    ClientOptions options;
    options.tls = authority().client();
    return options;
  }
};

TEST(ClientTls, speaks_to_a_server_that_it_trusts_and_keeps_the_connection) {
  const SecureServer server(secure_server(authority().server()));
  with_client(trusting(), [&](Client& client) {
    const unsigned before = server.connections();
    for (int i = 0; i < 3; ++i) {
      auto answer = client.get(server.url(), {.deadline = patience()});
      expect(hello(answer) && client.resting() == 1);
    }
    expect(server.connections() == before + 1);
  });
}

TEST(ClientTls, trusts_no_other_authority_and_no_other_name) {
  static const coir::test::Authority stranger("other.test");
  ClientOptions options;
  options.tls = stranger.client();
  const SecureServer server(secure_server(authority().server()));
  with_client(options, [&](Client& client) {
    expect(error_of(client.get(server.url(), {.deadline = patience()})) == ErrorCode::untrusted);
    expect(client.open() == 0);
  });
  const SecureServer again(secure_server(authority().server()));
  with_client(trusting(), [&](Client& client) {
    expect(error_of(client.get(again.url("localhost"), {.deadline = patience()})) == ErrorCode::untrusted);
  });
}

#if COIR_STREAMS
TEST(ClientTls, follows_no_events_of_a_server_that_it_does_not_trust) {
  static const coir::test::Authority stranger("other.test");
  ClientOptions options;
  options.tls = stranger.client();
  const SecureServer server(secure_server(authority().server()));
  with_client(options, [&](Client& client) {
    auto events = EventClient::create(client, {.url = server.url(), .pause = 1ms});
    const auto event = events->next(patience());
    expect(!event && event.error() == ErrorCode::untrusted && events->attempts() == 1);
  });
}
#endif

TEST(ClientTls, verifies_by_default) {
  // The system may have authorities or none; neither lets a stranger's certificate pass.
  const SecureServer server(secure_server(authority().server()));
  with_client({}, [&](Client& client) {
    const Error error = error_of(client.get(server.url(), {.deadline = patience()}));
    expect(error == ErrorCode::untrusted || error == ErrorCode::not_found);
  });
}

TEST(ClientTls, reads_the_authorities_that_the_environment_names) {
  coir::test::Folder folder;
  const char* const path = folder.at("authorities");
  coir::test::put(path, authority().made.certificate);
  setenv("SSL_CERT_FILE", path, 1);
  const SecureServer server(secure_server(authority().server()));
  with_client({}, [&](Client& client) {
    auto answer = client.get(server.url(), {.deadline = patience()});
    expect(hello(answer));
  });
  unlink(path);
  with_client({}, [&](Client& client) {
    const Error error = error_of(client.get("https://127.0.0.1:1/", {.deadline = patience()}));
    expect(!(error == ErrorCode::untrusted));
  });
  unsetenv("SSL_CERT_FILE");
}

TEST(ClientTls, takes_an_end_without_close_notify_for_no_end_of_content) {
  for (const bool in_good_order : {true, false}) {
    const SecureServer server([&](Peer& peer) {
      auto stream = begin_tls(peer, authority().server());
      if (!stream || !hear(*stream)) return;
      static_cast<void>(stream->write("HTTP/1.0 200 OK\r\n\r\nhello", patience()));
      if (!in_good_order) peer.hang_up();  // below TLS
    });
    with_client(trusting(), [&](Client& client) {
      auto answer = client.get(server.url(), {.deadline = patience()});
      expect(answer.has_value());
      const auto text = answer ? answer->text() : std::unexpected(Error(ErrorCode::busy));
      expect(in_good_order ? text && *text == "hello" : !text && text.error() == ErrorCode::truncated);
    });
  }
}

TEST(ClientTls, refuses_a_redirect_to_a_plain_server) {
  const SecureServer server(secure_server(
      authority().server(), "HTTP/1.1 302 Go\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"));
  with_client(trusting(), [&](Client& client) {
    const Error error = error_of(client.get(server.url(), {.deadline = patience()}));
    expect(error == ErrorCode::protocol);
    expect(std::string_view(describe(error)) == "refused: a redirect from https to http");
  });
}

TEST(ClientTls, does_not_wait_for_ever_for_a_handshake) {
  ClientOptions options = trusting();
  options.timeouts.tls = 50ms;
  const SecureServer server([](Peer& peer) { peer.until_gone(); });
  with_client(options, [&](Client& client) {
    const Error error = error_of(client.get(server.url(), {.deadline = patience()}));
    expect(timed_out_phase(error) == Phase::tls);
  });
}

TEST(ClientTls, reaches_a_server_behind_a_proxy) {
  static_cast<void>(authority());
  const SecureServer proxy([](Peer& peer) {
    if (!peer.hear().starts_with("CONNECT board.test:4433 ")) return;
    peer.say("HTTP/1.1 200 Connected\r\nContent-Length: 9\r\n\r\n");
    secure_server(authority().server())(peer);
  });
  both_sides([&] {
    char variable[64];
    snprintf(variable, sizeof variable, "http://127.0.0.1:%u", proxy.port());
    setenv("https_proxy", variable, 1);
    const unsigned before = proxy.connections();
    auto client = Client::create(trusting());
    unsetenv("https_proxy");
    for (int i = 0; i < 2; ++i) {
      auto answer = client->get("https://board.test:4433/", {.deadline = patience()});
      expect(hello(answer));
    }
    expect(proxy.connections() == before + 1);
  });
}

TEST(ClientTls, trusts_the_pinned_key_only) {
  // The digest of the key that the certificate holds, as openssl would tell it.
  coir::TlsKeyPin right{};
  mbedtls_x509_crt certificate;
  mbedtls_x509_crt_init(&certificate);
  LONGS_EQUAL(0,
              mbedtls_x509_crt_parse(&certificate, reinterpret_cast<const unsigned char*>(authority().made.certificate),
                                     strlen(authority().made.certificate) + 1));
  mbedtls_sha256(certificate.pk_raw.p, certificate.pk_raw.len, right.digest, 0);
  mbedtls_x509_crt_free(&certificate);
  const coir::TlsKeyPin pins[] = {{}, right};
  for (const std::size_t first : {0, 1}) {
    for (const std::size_t count : {1, 2}) {
      if (first + count > 2) continue;
      for (const bool by_pin_alone : {false, true}) {
        ClientOptions options;
        options.tls = *TlsContext::client({.authorities = by_pin_alone ? "" : authority().made.certificate,
                                           .accept_any_peer_without_verifying_it = by_pin_alone,
                                           .pins = std::span(pins).subspan(first, count)});
        const SecureServer server(secure_server(authority().server()));
        with_client(options, [&](Client& client) {
          auto answer = client.get(server.url(), {.deadline = patience()});
          if (first + count == 2) {
            expect(hello(answer));
          } else {
            const std::string_view told = describe(error_of(answer));
            expect(error_of(answer) == ErrorCode::untrusted && told == "certificate with a key that is not pinned");
          }
        });
      }
    }
  }
}

TEST(ClientTls, shows_a_certificate_to_a_server_that_asks_for_one) {
  const coir::TlsCertificate own[] = {authority().certificate()};
  const auto asking = TlsContext::server({.certificates = own, .client_authorities = authority().made.certificate});
  CHECK_TRUE(asking.has_value());
  for (const bool shows : {true, false}) {
    ClientOptions options;
    options.tls =
        *TlsContext::client({.authorities = authority().made.certificate, .certificate = shows ? own : nullptr});
    const SecureServer server(secure_server(*asking));
    with_client(options, [&](Client& client) {
      auto answer = client.get(server.url(), {.deadline = patience()});
      expect(hello(answer) == shows);
    });
  }
}

// A board without a clock starts in 1970 and judges by the latest time that it has seen, which here is past this machine's: as the
// server's certificates (tls_time_test), which hold from 2020 to 2050. A time once seen stays seen, hence the child.
TEST(ClientTls, tells_that_the_clock_is_not_set_where_a_certificate_does_not_hold) {
  const SecureServer server(secure_server(authority().server()));
  const auto end = coir::test::in_child([&] {
    constexpr std::int64_t kYear = 31'556'952;
    auto client = Client::create(trusting());
    if (!client) return 1;
    coir::time_was_seen(79 * kYear + kYear / 2);
    auto answer = client->get(server.url(), {.deadline = patience()});
    if (coir::time_valid() || !hello(answer)) return 2;
    client->close_resting();
    coir::time_was_seen(81 * kYear + kYear / 2);
    const Error error = error_of(client->get(server.url(), {.deadline = patience()}));
    if (error != ErrorCode::untrusted) return 3;
    return std::string_view(describe(error)).find("the clock is not set") != std::string_view::npos ? 0 : 4;
  });
  LONGS_EQUAL(0, end.status);
}

}  // namespace client_tls_test
