// How late a fiber's timer is while handshakes run back to back on the same worker, both ends of each.
//
//   tls_delay PAIRS SECONDS     prints "timer_delay_max_ms_PAIRS: N ms"
//
// For one pair also "server_step_ms: N ms": a handshake yields between the steps of mbedTLS only, and this is how
// long the longest of a server's takes when nothing disturbs it.
#include <coir/fiber.h>
#include <coir/net/certificates.h>
#include <coir/runtime.h>
#include <coir/tls.h>
#include <mbedtls/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <algorithm>
#include <string_view>
#include <utility>

using namespace std::chrono_literals;
using coir::Deadline;
using coir::TlsContext;
using coir::TlsStream;

extern "C" int __real_mbedtls_ssl_handshake_step(mbedtls_ssl_context* ssl);

namespace {

std::int64_t g_longest_ns = 0;        // step of the server's handshake that is under way
std::int64_t g_least_ns = INT64_MAX;  // that this was in any handshake

}  // namespace

// Led here by the linker.
extern "C" int __wrap_mbedtls_ssl_handshake_step(mbedtls_ssl_context* ssl) {
  const std::int64_t begun = coir::monotonic_ns();
  const int code = __real_mbedtls_ssl_handshake_step(ssl);
  if (mbedtls_ssl_conf_get_endpoint(mbedtls_ssl_context_get_config(ssl)) == MBEDTLS_SSL_IS_SERVER) {
    g_longest_ns = std::max(g_longest_ns, coir::monotonic_ns() - begun);
  }
  return code;
}

namespace {

// shake_hands makes one session after the other until it is stopped.
void shake_hands(const TlsContext& server, const TlsContext& client, const bool& over, unsigned& made) {
  while (!over) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) return;
    coir::TcpStream near(ends[0]);
    auto serving = coir::spawn({.stack = 8 * 1024}, [&] {
      static_cast<void>(TlsStream::accept(std::move(near), server, Deadline::after(10s)));
    });
    const auto stream = TlsStream::connect(coir::TcpStream(ends[1]), client, "bench.test", Deadline::after(10s));
    static_cast<void>(serving.join());
    made += stream.has_value();
    g_least_ns = std::min(g_least_ns, std::exchange(g_longest_ns, 0));
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  const int pairs = atoi(arguments[1]);
  const Deadline end = Deadline::after(std::chrono::seconds(atoi(arguments[2])));
  static coir::SelfSigned made;
  const std::string_view names[] = {"bench.test"};
  if (!coir::make_self_signed(names, made)) return 1;
  const coir::TlsCertificate certificates[] = {{.chain = made.certificate, .key = made.key}};
  const auto server = TlsContext::server({.certificates = certificates, .tickets = false});
  const auto client = TlsContext::client({.authorities = made.certificate});
  if (!server || !client) return 1;
  std::int64_t worst = 0;
  unsigned sessions = 0;
  bool over = false;
  const auto ended = coir::run_until_idle({.workers = 1}, [&] {
    for (int i = 0; i < pairs; ++i) {
      coir::spawn({.stack = 16 * 1024}, [&] { shake_hands(*server, *client, over, sessions); }).detach();
    }
    while (!end.passed()) {
      const std::int64_t due = coir::monotonic_ns() + 1'000'000;
      static_cast<void>(coir::sleep(1ms));
      worst = std::max(worst, coir::monotonic_ns() - due);
    }
    over = true;
  });
  if (!ended || sessions == 0) return 1;
  printf("timer_delay_max_ms_%d: %.2f ms\n", pairs, static_cast<double>(worst) / 1e6);
  if (pairs == 1) printf("server_step_ms: %.2f ms\n", static_cast<double>(g_least_ns) / 1e6);
  fprintf(stderr, "%u sessions\n", sessions);
  return 0;
}
