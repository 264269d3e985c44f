#include <coir/http/resting_sockets.h>
#include <coir/http/topic.h>

using namespace coir::http;

namespace {

struct Chat {
  struct State {
    unsigned said = 0;
  };
  Topic everybody{Slow::drop};

  void opened(RestingSocket& socket, State&) { static_cast<void>(socket.subscribe(everybody)); }
  void message(RestingSocket&, State& state, const WebSocketMessage& message) {
    ++state.said;
    everybody.publish_text(message.bytes);
  }
};

}  // namespace

extern "C" void use_resting_sockets(Exchange& exchange) {
  Chat chat;
  auto sockets = RestingSockets<Chat>::create(chat);
  if (sockets) static_cast<void>(sockets->accept(exchange));
}
