// usage: mqtt_bench PORT COUNT QOS
//
// Publishes COUNT short messages to a broker on this machine by coir's client and prints "sent MICROSECONDS" once all are out,
// and acknowledged at QoS 1. mosquitto_bench.c is the same by libmosquitto.
#include <coir/fiber.h>
#include <coir/format.h>
#include <coir/mqtt.h>
#include <coir/nursery.h>
#include <coir/program.h>
#include <stdio.h>
#include <stdlib.h>

using namespace std::chrono_literals;
using namespace coir::mqtt;

namespace {

// publish_all waits where the queue is full, as its user would.
bool publish_all(MqttClient& client, long count, Qos qos) {
  for (long i = 1; i <= count; ++i) {
    char text[24];
    for (;;) {
      const auto published = client.publish("bench/load", coir::format(text, i), {.qos = qos});
      if (published) break;
      if (published.error() != coir::ErrorCode::queue_full || !client.flush()) return false;
    }
  }
  return client.flush().has_value();
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return 2;
  return coir::run_program([&] {
    auto client = MqttClient::create({.host = "127.0.0.1",
                                      .port = static_cast<std::uint16_t>(atoi(arguments[1])),
                                      .client_id = "bench",
                                      .clean_session = true,
                                      .queue_bytes = 64 * 1024,
                                      .max_in_flight = 20});
    if (!client) return 1;
    coir::Nursery nursery;
    nursery.start({.name = "client", .stack = 16 * 1024}, [&] { static_cast<void>(client->run()); });
    while (!client->connected()) static_cast<void>(coir::sleep(1ms));
    const std::int64_t began = coir::monotonic_ns();
    const bool sent =
        publish_all(*client, atol(arguments[2]), arguments[3][0] == '0' ? Qos::at_most_once : Qos::at_least_once);
    if (sent) printf("sent %lld\n", static_cast<long long>(coir::monotonic_ns() - began) / 1000);
    client->close();
    return nursery.join() && sent ? 0 : 1;
  });
}
