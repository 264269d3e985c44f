// The bound of scripts/bench tls: mbedTLS in a bare epoll loop, in the configuration that coird has, with the C
// library's allocator and nothing else. It answers every request with the same 250 bytes, or, asked for /big, with 64
// MB.
//
//   plain_mbedtls PORT CERTIFICATE-AND-KEY.pem
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <mbedtls/net_sockets.h>
#include <mbedtls/pk.h>
#include <mbedtls/platform_time.h>
#include <mbedtls/ssl.h>
#include <mbedtls/ssl_ticket.h>
#include <netinet/tcp.h>
#include <psa/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cstddef>
#include <new>
#include <string_view>

extern "C" void* coir_tls_calloc(size_t count, size_t size) {
  return calloc(count, size);
}
extern "C" void coir_tls_free(void* memory) {
  free(memory);
}
extern "C" psa_status_t mbedtls_psa_external_get_random(mbedtls_psa_external_random_context_t*, uint8_t* into,
                                                        size_t bytes, size_t* got) {
  if (getrandom(into, bytes, 0) != static_cast<ssize_t>(bytes)) return PSA_ERROR_INSUFFICIENT_ENTROPY;
  *got = bytes;
  return PSA_SUCCESS;
}

namespace {

constexpr std::size_t kBig = 64u << 20;

int random_bytes(void*, unsigned char* into, size_t bytes) {
  return getrandom(into, bytes, 0) == static_cast<ssize_t>(bytes) ? 0 : -1;
}

struct Connection {
  int fd;
  mbedtls_ssl_context ssl;
  char request[2048];
  std::size_t got = 0;
  const char* answer = nullptr;
  std::size_t left = 0;  // of the answer
  std::size_t step = 0;  // how much of it is written at a time
  bool last = false;     // the answer ends with the connection
};

mbedtls_ssl_config g_config;
char g_answer[251];
char g_block[4096];

int send_bytes(void* opaque, const unsigned char* from, size_t size) {
  const ssize_t sent = send(static_cast<Connection*>(opaque)->fd, from, size, MSG_NOSIGNAL);
  if (sent >= 0) return static_cast<int>(sent);
  return errno == EAGAIN ? MBEDTLS_ERR_SSL_WANT_WRITE : MBEDTLS_ERR_NET_SEND_FAILED;
}

int receive_bytes(void* opaque, unsigned char* into, size_t size) {
  const ssize_t got = recv(static_cast<Connection*>(opaque)->fd, into, size, 0);
  if (got >= 0) return static_cast<int>(got);
  return errno == EAGAIN ? MBEDTLS_ERR_SSL_WANT_READ : MBEDTLS_ERR_NET_RECV_FAILED;
}

bool waits(int code) {
  return code == MBEDTLS_ERR_SSL_WANT_READ || code == MBEDTLS_ERR_SSL_WANT_WRITE;
}

// go_on does what can be done without waiting. False: the connection is over.
bool go_on(Connection& connection) {
  if (connection.ssl.MBEDTLS_PRIVATE(state) != MBEDTLS_SSL_HANDSHAKE_OVER) {
    if (const int code = mbedtls_ssl_handshake(&connection.ssl); code != 0) return waits(code);
  }
  for (;;) {
    while (connection.left > 0) {
      const std::size_t size = connection.step < connection.left ? connection.step : connection.left;
      const int code =
          mbedtls_ssl_write(&connection.ssl, reinterpret_cast<const unsigned char*>(connection.answer), size);
      if (code < 0) return waits(code);
      connection.left -= static_cast<std::size_t>(code);
    }
    if (connection.last) {
      mbedtls_ssl_close_notify(&connection.ssl);
      return false;
    }
    const int code =
        mbedtls_ssl_read(&connection.ssl, reinterpret_cast<unsigned char*>(connection.request + connection.got),
                         sizeof connection.request - connection.got);
    if (code <= 0) {
      if (code < 0 && waits(code)) return true;
      mbedtls_ssl_close_notify(&connection.ssl);
      return false;
    }
    connection.got += static_cast<std::size_t>(code);
    const std::string_view request(connection.request, connection.got);
    if (!request.ends_with("\r\n\r\n")) continue;
    connection.got = 0;
    const bool big = request.starts_with("GET /big");
    connection.last = big;
    connection.answer = big ? g_block : g_answer;
    connection.left = big ? kBig : sizeof g_answer - 1;
    connection.step = big ? sizeof g_block : connection.left;
  }
}

int fail(const char* what, int code) {
  fprintf(stderr, "plain_mbedtls: %s: %d\n", what, code);
  return 1;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return fail("usage: plain_mbedtls PORT PEM", 0);
  mbedtls_platform_set_time([](mbedtls_time_t* into) {
    const mbedtls_time_t now = time(nullptr);
    if (into != nullptr) *into = now;
    return now;
  });
  psa_crypto_init();
  FILE* const file = fopen(arguments[2], "r");
  if (file == nullptr) return fail(arguments[2], errno);
  static unsigned char pem[65536];
  const std::size_t size = fread(pem, 1, sizeof pem - 1, file) + 1;
  static mbedtls_x509_crt chain;
  static mbedtls_pk_context key;
  static mbedtls_ssl_ticket_context tickets;
  mbedtls_x509_crt_init(&chain);
  mbedtls_pk_init(&key);
  mbedtls_ssl_ticket_init(&tickets);
  mbedtls_ssl_config_init(&g_config);
  if (const int code = mbedtls_x509_crt_parse(&chain, pem, size); code != 0) return fail("certificate", code);
  if (const int code = mbedtls_pk_parse_key(&key, pem, size, nullptr, 0, random_bytes, nullptr); code != 0)
    return fail("key", code);
  mbedtls_ssl_config_defaults(&g_config, MBEDTLS_SSL_IS_SERVER, MBEDTLS_SSL_TRANSPORT_STREAM,
                              MBEDTLS_SSL_PRESET_DEFAULT);
  mbedtls_ssl_conf_rng(&g_config, random_bytes, nullptr);
  mbedtls_ssl_conf_own_cert(&g_config, &chain, &key);
  mbedtls_ssl_conf_authmode(&g_config, MBEDTLS_SSL_VERIFY_NONE);
  mbedtls_ssl_ticket_setup(&tickets, random_bytes, nullptr, MBEDTLS_CIPHER_AES_128_GCM, 86400);
  mbedtls_ssl_conf_session_tickets_cb(&g_config, mbedtls_ssl_ticket_write, mbedtls_ssl_ticket_parse, &tickets);

  memset(g_block, 'x', sizeof g_block);
  memset(g_answer, 'x', sizeof g_answer - 1);
  const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 100\r\nX-Fill: ";
  memcpy(g_answer, head, sizeof head - 1);
  memcpy(g_answer + sizeof g_answer - 1 - 104, "\r\n\r\n", 4);

  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<in_port_t>(atoi(arguments[1])));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || listen(listener, 511) != 0)
    return fail("listen", errno);
  const int poller = epoll_create1(0);
  epoll_event interest{.events = EPOLLIN, .data = {.ptr = nullptr}};
  epoll_ctl(poller, EPOLL_CTL_ADD, listener, &interest);
  for (;;) {
    epoll_event events[64];
    const int ready = epoll_wait(poller, events, 64, -1);
    for (int i = 0; i < ready; ++i) {
      auto* connection = static_cast<Connection*>(events[i].data.ptr);
      if (connection == nullptr) {
        for (int fd; (fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK)) >= 0;) {
          setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
          connection = new (malloc(sizeof(Connection))) Connection;
          connection->fd = fd;
          mbedtls_ssl_init(&connection->ssl);
          if (mbedtls_ssl_setup(&connection->ssl, &g_config) != 0) return fail("setup", 0);
          mbedtls_ssl_set_bio(&connection->ssl, connection, send_bytes, receive_bytes, nullptr);
          epoll_event edge{.events = EPOLLIN | EPOLLOUT | EPOLLET, .data = {.ptr = connection}};
          epoll_ctl(poller, EPOLL_CTL_ADD, fd, &edge);
        }
      } else if (!go_on(*connection)) {
        close(connection->fd);
        mbedtls_ssl_free(&connection->ssl);
        free(connection);
      }
    }
  }
}
