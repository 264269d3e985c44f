#include <coir/websocket.h>

using namespace coir::http;

namespace {

struct Chat {
  struct State {
    unsigned said = 0;
  };
  void opened(HubSocket& socket) { static_cast<void>(socket.subscribe("room")); }
  void message(HubSocket& socket, State& state, const WebSocketMessage& message) {
    ++state.said;
    socket.publish("room", message.bytes);
  }
};

}  // namespace

extern "C" void use_websocket_hub(Exchange& exchange) {
  WebSocketHub<Chat> chat;
  chat(exchange);
}
