// The server of scripts/bench streams's WebSockets. peers/ws_server.mjs and peers/uws_server.cpp do the same.
//
//   sockets_server PORT TLS_PORT [SOCKETS]       0: a port that is free; on stderr: listening PORT TLS_PORT
//
//   /echo      a hub's socket that sends each message back
//   /topic     the same, which also gets what is published
//   /fiber     as /echo, by the handler's own fiber
//   /publish   each message has one published: twenty digits of the monotonic clock in ns, and dots, 64 bytes in all

#include <coir/config.h>
#include <coir/format.h>
#include <coir/http/routes.h>
#include <coir/http/server.h>
#include <coir/net/certificates.h>
#include <coir/runtime.h>
#include <coir/tls.h>
#include <coir/websocket.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <optional>

using namespace std::chrono_literals;
using namespace coir::http;
using coir::operator""_KiB;

namespace {

enum class Role : std::uint8_t { echoes, subscribes, publishes };

struct Program {
  // The role is what the request's path says; echoes that rest for their size alone keep it too.
  struct State {
    Role role;
  };
  void opened(HubSocket& socket, State& state) {
    if (state.role == Role::subscribes && !socket.subscribe("all")) abort();
  }
  void message(HubSocket& socket, State& state, const WebSocketMessage& message) {
    if (state.role != Role::publishes) return static_cast<void>(socket.send_binary(message.bytes));
    char stamp[64];
    memset(stamp, '.', sizeof stamp);
    auto now = static_cast<std::uint64_t>(coir::monotonic_ns());
    for (std::size_t i = 20; i-- > 0; now /= 10) stamp[i] = static_cast<char>('0' + now % 10);
    socket.publish("all", {stamp, sizeof stamp});
  }
};

auto rest(WebSocketHub<Program>& hub, Role role) {
  return [&hub, role](Exchange& exchange) { hub.accept(exchange, {.role = role}); };
}

void read_on_a_fiber(Exchange& exchange) {
  auto socket = accept_websocket(exchange);
  while (socket) {
    const auto message = socket->receive();
    if (!message || !socket->send_binary(message->bytes)) return;
  }
}

std::expected<int, coir::Error> listen(Server& server, std::string_view port, coir::TlsContextSlot* tls) {
  char text[64];
  auto listener = coir::TcpListener::listen(*coir::Address::parse(coir::format(text, "127.0.0.1:", port)));
  if (!listener) return std::unexpected(listener.error());
  const int number = listener->local_address().port();
  if (auto added = server.add(std::move(*listener), tls); !added) return std::unexpected(added.error());
  return number;
}

std::expected<void, coir::Error> serve(const char* const* arguments) {
  const std::size_t most = arguments[2] != nullptr ? strtoul(arguments[2], nullptr, 10) : 20'000;
  // No peer pings: the clients take messages alone.
  WebSocketHubOptions resting{.max_sockets = most, .max_subscriptions = most};
  resting.socket.ping_after = 0ms;
  WebSocketHub<Program> hub(resting);
  auto app = routes(get<"/echo">(rest(hub, Role::echoes)), get<"/topic">(rest(hub, Role::subscribes)),
                    get<"/publish">(rest(hub, Role::publishes)), get<"/fiber">(read_on_a_fiber));
  auto server =
      Server::create(answered_by(app, {.max_connections = most + 16, .max_active = most, .handler_stack = 8_KiB}));
  if (!server) return std::unexpected(server.error());
  const auto port = listen(*server, arguments[0], nullptr);
  if (!port) return std::unexpected(port.error());
  int tls_port = 0;
#if COIR_TLS
  static std::optional<coir::TlsContextSlot> slot;
  static coir::SelfSigned made;
  const std::string_view names[] = {"bench"};
  if (!coir::make_self_signed(names, made)) return std::unexpected(coir::Error(coir::ErrorCode::system));
  const coir::TlsCertificate own[] = {{.chain = made.certificate, .key = made.key}};
  auto context = coir::TlsContext::server({.certificates = own});
  if (!context) return std::unexpected(coir::Error(coir::ErrorCode::system));
  slot.emplace(*context);
  const auto secure = listen(*server, arguments[1], &*slot);
  if (!secure) return std::unexpected(secure.error());
  tls_port = *secure;
#endif
  if (auto started = server->start(); !started) return started;
  char line[64];
  const std::string_view told = coir::format(line, "listening ", *port, " ", tls_port, "\n");
  fwrite(told.data(), 1, told.size(), stderr);
  server->serve_until({SIGTERM, SIGINT}, 5s);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    fputs("usage: sockets_server PORT TLS_PORT [SOCKETS]\n", stderr);
    return 2;
  }
  return coir::run({.default_stack = 64_KiB}, [&] { return serve(argv + 1); });
}
