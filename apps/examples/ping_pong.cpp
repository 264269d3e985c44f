// Two fibers hand a ball to each other. A channel without capacity is a rendezvous: send returns once the other fiber
// has the value, so that the two take turns without a lock.

#include <coir/channel.h>
#include <coir/fiber.h>
#include <coir/runtime.h>
#include <stdio.h>

namespace {

// play returns whatever comes, until its opponent has had enough and closes.
void play(const char* name, coir::Channel<int>& incoming, coir::Channel<int>& outgoing) {
  while (auto ball = incoming.receive()) {
    printf("%s %d\n", name, *ball);
    if (*ball == 6) break;
    if (!outgoing.send(*ball + 1)) break;
  }
  outgoing.close();
}

}  // namespace

int main() {
  return coir::run([] {
    coir::Channel<int> to_ping, to_pong;
    coir::Fiber ping = coir::spawn({.name = "ping"}, [&] { play("ping", to_ping, to_pong); });
    coir::Fiber pong = coir::spawn({.name = "pong"}, [&] { play("pong", to_pong, to_ping); });
    static_cast<void>(to_ping.send(1));
    static_cast<void>(ping.join());
    static_cast<void>(pong.join());
    printf("after the game: %s\n", coir::describe(to_pong.send(7).error()));
  });
}
