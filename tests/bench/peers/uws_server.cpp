// usage: uws_server
//
// uWebSockets as sockets_server.cpp is: the same paths on a port that is free, told on standard error. Built by
// streams.sh in the tree that COIR_UWS names.

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "App.h"

namespace {

struct Nothing {};
using Behavior = uWS::App::WebSocketBehavior<Nothing>;

Behavior behavior() {
  Behavior out;
  out.compression = uWS::DISABLED;
  out.maxPayloadLength = 64 * 1024;
  out.idleTimeout = 0;  // and no pings
  out.message = [](auto* socket, std::string_view message, uWS::OpCode) { socket->send(message, uWS::OpCode::BINARY); };
  return out;
}

}  // namespace

int main() {
  signal(SIGTERM, [](int) { _exit(0); });
  uWS::App app;
  Behavior topic = behavior(), publish = behavior();
  topic.open = [](auto* socket) { socket->subscribe("all"); };
  publish.message = [&app](auto*, std::string_view, uWS::OpCode) {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    char stamp[65];
    std::snprintf(stamp, sizeof stamp, "%020lld............................................",
                  static_cast<long long>(now.tv_sec) * 1'000'000'000 + now.tv_nsec);
    app.publish("all", {stamp, 64}, uWS::OpCode::TEXT);
  };
  app.ws<Nothing>("/echo", behavior())
      .ws<Nothing>("/topic", std::move(topic))
      .ws<Nothing>("/publish", std::move(publish));
  app.listen("127.0.0.1", 0, [](us_listen_socket_t* socket) {
    if (socket == nullptr) _exit(1);
    std::fprintf(stderr, "listening %d 0\n", us_socket_local_port(0, reinterpret_cast<us_socket_t*>(socket)));
  });
  app.run();
}
