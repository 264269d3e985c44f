// pin_edges device|sysfs NAME prints each edge of a pin, as a fiber that waits for it sees it: "edge high=1 lost=0". The line
// "watching" comes first. It ends with "closed" when the chip vanishes.

#include <coir/pin_watch.h>
#include <coir/port/pins.h>
#include <coir/runtime.h>
#include <stdio.h>

#include <string_view>
#include <utility>

int main(int count, char** arguments) {
  if (count != 3) return 2;
  const bool sysfs = std::string_view(arguments[1]) == "sysfs";
  setlinebuf(stdout);
  const auto ran = coir::run_until_idle({}, [&] {
    auto pins = coir::port::Pins::open({.devices = sysfs ? nullptr : "/dev"});
    if (!pins) return void(printf("no pins: %d\n", pins.error()));
    auto pin = pins->take(arguments[2], {.edges = coir::port::PinEdges::both});
    if (!pin) return void(printf("no pin: %d %s\n", pin.error().number, pin.error().holder));
    coir::PinWatch watch(std::move(*pin));
    puts("watching");
    for (;;) {
      const auto edge = watch.next();
      if (edge) {
        printf("edge high=%d lost=%u\n", edge->high, static_cast<unsigned>(edge->lost));
      } else if (edge.error() != coir::ErrorCode::temporary) {
        return void(puts(edge.error() == coir::ErrorCode::closed ? "closed" : "failed"));
      }
    }
  });
  return ran ? 0 : 1;
}
