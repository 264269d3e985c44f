// Jobs that stand or fall together: a device asks five peers for the time, two at a time. When one of them answers
// nonsense the group ends the others' waits, and join tells the first failure, once, after the last job has ended.
//
// Unlike a Nursery a Group leaves its owner alone: the owner's own waits go on when a job has failed.

#include <coir/fiber.h>
#include <coir/group.h>
#include <coir/runtime.h>
#include <stdio.h>

#include <span>

using namespace std::chrono_literals;

namespace {

using Outcome = std::expected<void, coir::Error>;

struct Peer {
  const char* name;
  bool sound = true;
  const char* end = "was not asked";

  // ask is what a job does. A job that is cancelled returns what its wait returned, and that is no failure.
  Outcome ask() {
    if (auto answered = coir::sleep(sound ? 1ms : 0ms); !answered) {
      end = describe(answered.error());
      return answered;
    }
    end = sound ? "answered" : "answered nonsense";
    return sound ? Outcome() : std::unexpected(coir::Error(coir::ErrorCode::protocol));
  }

  // watch is a job without an end.
  Outcome watch() {
    auto woken = coir::sleep(1h);
    end = describe(woken.error());
    return woken;
  }
};

void tell(const char* what, const Outcome& outcome, std::span<const Peer> peers) {
  printf("%s: %s\n", what, outcome ? "fine" : describe(outcome.error()));
  for (const Peer& peer : peers) printf("  %s %s\n", peer.name, peer.end);
}

Outcome ask_all(std::span<Peer> peers) {
  coir::Group group({.limit = 2});
  for (Peer& peer : peers) group.start({.name = peer.name}, [&peer] { return peer.ask(); });
  return group.join();
}

Outcome watch_all(std::span<Peer> peers, Peer& broken) {
  coir::Group group;
  for (Peer& peer : peers) group.start({.name = peer.name}, [&peer] { return peer.watch(); });
  group.start({.name = broken.name}, [&broken] { return broken.ask(); });
  return group.join();
}

}  // namespace

int main() {
  return coir::run([] {
    Peer peers[] = {{"anna"}, {"ben"}, {"carla"}, {"dan"}, {"eva"}};
    tell("all are asked, two at a time", ask_all(peers), peers);

    Peer watched[] = {{"anna"}, {"ben"}};
    Peer broken{.name = "zoe", .sound = false};
    tell("two are watched, a third is broken", watch_all(watched, broken), watched);

    coir::Group late;
    for (Peer& peer : watched) late.start([&peer] { return peer.watch(); });
    tell("a deadline for all", late.join(coir::Deadline::after(10ms)), watched);
    printf("one more job: %s\n", coir::describe(late.start([] {}).error()));
  });
}
