// pin_edges device|sysfs NAME prints each edge of a pin, as a fiber that waits for it sees it: "edge high=1 lost=0". The line
// "watching" comes first. It ends with "closed" when the chip vanishes, and at SIGTERM, and then gives the line back.

#include <coir/pin_watch.h>
#include <coir/port/pins.h>
#include <coir/race.h>
#include <coir/runtime.h>
#include <coir/signal.h>
#include <signal.h>
#include <stdio.h>

#include <expected>
#include <string_view>
#include <utility>

namespace {

std::expected<int, coir::Error> print_edges(coir::PinWatch& watch) {
  puts("watching");
  for (;;) {
    const auto edge = watch.next();
    if (edge) {
      printf("edge high=%d lost=%u\n", edge->high, static_cast<unsigned>(edge->lost));
    } else if (edge.error() != coir::ErrorCode::temporary) {
      if (edge.error() != coir::ErrorCode::cancelled)
        puts(edge.error() == coir::ErrorCode::closed ? "closed" : "failed");
      return std::unexpected(edge.error());
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  if (!coir::catch_signals({SIGTERM})) return 1;
  const bool sysfs = std::string_view(arguments[1]) == "sysfs";
  setlinebuf(stdout);
  const auto ran = coir::run_until_idle({}, [&] {
    auto pins = coir::port::Pins::open({.devices = sysfs ? nullptr : "/dev"});
    if (!pins) return void(printf("no pins: %d\n", pins.error()));
    auto pin = pins->take(arguments[2], {.edges = coir::port::PinEdges::both});
    if (!pin) return void(printf("no pin: %d %s\n", pin.error().number, pin.error().holder));
    coir::PinWatch watch(std::move(*pin));
    // Which of the two was first does not matter here.
    static_cast<void>(coir::race([&] { return print_edges(watch); }, [] { return coir::wait_signal({SIGTERM}); }));
  });
  return ran ? 0 : 1;
}
