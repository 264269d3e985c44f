// A board that tells a broker how warm it is, and does as it is told. The queue lies in a file: what is published while
// the broker is away, or before a restart, arrives later.

#include <coir/fiber.h>
#include <coir/format.h>
#include <coir/mqtt.h>
#include <coir/nursery.h>
#include <coir/program.h>
#include <stdio.h>

using namespace std::chrono_literals;
using namespace coir::mqtt;

int main(int count, char** arguments) {
  if (count < 2) {
    puts(
        "usage: mqtt HOST [QUEUE_FILE]\n\nPublishes demo/temperature each second, and prints what comes below "
        "demo/command.");
    return 0;
  }
  return coir::run_program([&] {
    static constexpr Subscription kCommands[] = {{"demo/command/#"}};
    auto client = MqttClient::create({.host = arguments[1],
                                      .client_id = "coir-demo",
                                      .will = {"demo/state", "offline", {.retained = true}},
                                      .subscriptions = kCommands,
                                      .when_full = WhenFull::drop_oldest,
                                      .queue_file = count > 2 ? arguments[2] : nullptr});
    if (!client) return 1;
    coir::Nursery nursery;
    nursery.start({.name = "client"}, [&] { return client->run(); });
    nursery.start({.name = "sensor"}, [&]() -> std::expected<void, coir::Error> {
      if (auto told = client->publish("demo/state", "online", {.retained = true}); !told) return told;
      for (int tenths = 215;; tenths = 200 + (tenths + 7) % 40) {
        char text[16];
        const auto value = coir::format(text, tenths / 10, ".", tenths % 10);
        if (auto told = client->publish("demo/temperature", value); !told) return told;
        if (auto slept = coir::sleep(1s); !slept) return slept;
      }
    });
    while (const auto message = client->receive()) {
      char line[128];
      puts(coir::format(line, message->topic, ": ", message->payload, '\0').data());
    }
    return nursery.join() ? 0 : 1;
  });
}
