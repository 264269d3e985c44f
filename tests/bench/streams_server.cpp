// The server of scripts/bench streams and of capacity --sse and --ws: one hub of events, streams that rest on fibers, WebSockets that rest.
//
//   streams_server PORT TLS_PORT [ADDRESS [ROOT]]    0: a port that is free; on stderr: listening PORT TLS_PORT
//
//   GET /feed      follows the hub of events
//   GET /fiber     the same request, kept by the handler's own fiber
//   GET /polling   follows as a copy does that looks once a second whether there is something new
//   GET /socket    a WebSocket that rests, and sends back what it gets
//   GET /...       a file below ROOT
//   POST /publish  sends the next event: twenty digits of the monotonic clock in ns, a space, twelve of its number
//
// A server of another protocol adds its routes here.

#include <coir/config.h>
#include <coir/events.h>
#include <coir/fiber.h>
#include <coir/format.h>
#include <coir/http/files.h>
#include <coir/http/routes.h>
#include <coir/http/server.h>
#include <coir/net/certificates.h>
#include <coir/runtime.h>
#include <coir/tls.h>
#include <coir/websocket.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <optional>

using namespace std::chrono_literals;
using namespace coir::http;
using coir::operator""_KiB;

namespace {

constexpr std::size_t kMostSockets = 8192;

// Echo sends back what it gets.
struct Echo {
  void message(HubSocket& socket, const WebSocketMessage& message) {
    static_cast<void>(socket.send_binary(message.bytes));
  }
};

struct Hub {
  EventHub feed{{.keep_alive = 0ms}};
  WebSocketHub<Echo> sockets{{.max_sockets = kMostSockets, .max_subscriptions = 1, .socket = {.ping_after = 0ms}}};
  FileTree* files = nullptr;
  coir::Atomic<std::uint64_t> number = 0;
};

// stamp writes what an event says. Nothing of a fixed width would do for peers that are to send the same.
std::string_view stamp(std::span<char> room, std::uint64_t number) {
  char digits[2][24];
  const auto padded = [](std::span<char> into, std::uint64_t value, std::size_t width) {
    for (std::size_t i = width; i-- > 0; value /= 10) into[i] = static_cast<char>('0' + value % 10);
    return std::string_view(into.data(), width);
  };
  return coir::format(room, padded(digits[0], static_cast<std::uint64_t>(coir::monotonic_ns()), 20), " ",
                      padded(digits[1], number, 12));
}

void follow_on_a_fiber(Exchange& exchange) {
  if (auto stream = EventStream::open(exchange, {.keep_alive = 0ms})) {
    static_cast<void>(stream->pause(coir::Deadline::never()));
  }
}

void follow_by_polling(Hub& hub, Exchange& exchange) {
  std::uint64_t seen = hub.number.load(std::memory_order_acquire);
  auto stream = EventStream::open(exchange, {.keep_alive = 0ms});
  while (stream && stream->pause(coir::Deadline::after(1s))) {
    const std::uint64_t now = hub.number.load(std::memory_order_acquire);
    char room[40];
    while (seen < now) {
      if (!stream->send({.data = stamp(room, ++seen)})) return;
    }
  }
}

void publish(Hub& hub, Exchange& exchange) {
  char room[40];
  const std::uint64_t number = hub.number.load(std::memory_order_relaxed) + 1;
  if (!hub.feed.publish({.data = stamp(room, number)})) return exchange.respond_status(503);
  hub.number.store(number, std::memory_order_release);
  exchange.respond_status(200);
}

auto routes_of(Hub& hub) {
  return routes(get<"/feed">(hub.feed), get<"/fiber">(follow_on_a_fiber),
                get<"/polling">([&](Exchange& exchange) { follow_by_polling(hub, exchange); }),
                get<"/socket">(hub.sockets), get<"/{path...}">([&](Exchange& exchange) {
                  hub.files != nullptr ? hub.files->serve(exchange) : exchange.respond_status(404);
                }),
                post<"/publish">([&](Exchange& exchange) { publish(hub, exchange); }));
}

std::expected<void, coir::Error> serve(const char* const* arguments) {
  char text[64];
  const char* const address = arguments[2] != nullptr ? arguments[2] : "127.0.0.1";
  Hub hub;
  std::optional<FileTree> files;
  if (arguments[2] != nullptr && arguments[3] != nullptr) {
    hub.files = &files.emplace(arguments[3]);
    if (auto opened = files->opened(); !opened) return opened;
  }
  ServerOptions options{.max_connections = 60'000, .max_active = 4096, .handler_stack = 8_KiB};
  options.idle_timeout = 600s;
  auto app = routes_of(hub);
  auto server = Server::create(answered_by(app, options));
  if (!server) return std::unexpected(server.error());
  auto listener = coir::TcpListener::listen(*coir::Address::parse(coir::format(text, address, ":", arguments[0])));
  if (!listener) return std::unexpected(listener.error());
  const int port = listener->local_address().port();
  int tls_port = 0;
  if (auto added = server->add(std::move(*listener)); !added) return std::unexpected(added.error());
#if COIR_TLS
  static std::optional<coir::TlsContextSlot> slot;
  static coir::SelfSigned made;
  const std::string_view names[] = {"bench"};
  if (!coir::make_self_signed(names, made)) return std::unexpected(coir::Error(coir::ErrorCode::system));
  const coir::TlsCertificate own[] = {{.chain = made.certificate, .key = made.key}};
  auto context = coir::TlsContext::server({.certificates = own});
  if (!context) return std::unexpected(coir::Error(coir::ErrorCode::system));
  slot.emplace(*context);
  auto secure = coir::TcpListener::listen(*coir::Address::parse(coir::format(text, address, ":", arguments[1])));
  if (!secure) return std::unexpected(secure.error());
  tls_port = secure->local_address().port();
  if (auto added = server->add(std::move(*secure), &*slot); !added) return std::unexpected(added.error());
#endif
  if (auto started = server->start(); !started) return started;
  char line[64];
  const std::string_view told = coir::format(line, "listening ", port, " ", tls_port, "\n");
  fwrite(told.data(), 1, told.size(), stderr);
  server->serve_until({SIGTERM, SIGINT}, 5s);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 5) {
    fputs("usage: streams_server PORT TLS_PORT [ADDRESS [ROOT]]\n", stderr);
    return 2;
  }
  return coir::run({.default_stack = 64_KiB}, [&] { return serve(argv + 1); });
}
