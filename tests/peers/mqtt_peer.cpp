// usage: mqtt_peer publish PORT COUNT QOS [FILE] | mqtt_peer receive PORT COUNT
//
// Publishes the numbers from 1 to COUNT to the broker on that port of this machine, through the queue's file if one is
// named, and prints "queued", and "sent MICROSECONDS" once all are out; or receives them all, and prints "ready" and "all".
#include <coir/mqtt.h>

#include <coir/fiber.h>
#include <coir/format.h>
#include <coir/nursery.h>
#include <coir/program.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bitset>

using namespace std::chrono_literals;
using namespace coir::mqtt;

namespace {

constexpr std::size_t kMost = 1'000'000;
std::bitset<kMost + 1> seen;

int publish(MqttClient& client, unsigned count, PublishOptions options) {
  const std::int64_t began = coir::monotonic_ns();
  for (unsigned i = 1; i <= count; ++i) {
    char text[16];
    for (;;) {
      const auto published = client.publish("load", coir::format(text, i), options);
      if (published) break;
      if (published.error() != coir::ErrorCode::queue_full) return 1;
      if (!client.flush()) return 1;
    }
  }
  puts("queued");
  if (!client.flush()) return 1;
  printf("sent %lld\n", static_cast<long long>(coir::monotonic_ns() - began) / 1000);
  return 0;
}

int receive(MqttClient& client, unsigned count) {
  for (unsigned have = 0; have < count;) {
    const auto message = client.receive();
    if (!message) return 1;
    char text[16] = {};
    memcpy(text, message->payload.data(), std::min<std::size_t>(message->payload.size(), sizeof text - 1));
    const unsigned long number = strtoul(text, nullptr, 10);
    if (number > count || seen[number]) continue;
    seen[number] = true;
    ++have;
  }
  puts("all");
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) return 2;
  const bool publishes = strcmp(arguments[1], "publish") == 0;
  const auto number = static_cast<unsigned>(atoi(arguments[3]));
  if (number > kMost) return 2;
  setvbuf(stdout, nullptr, _IOLBF, 0);
  return coir::run_program([&] {
    constexpr Subscription kFilters[] = {{"load"}};
    ClientOptions options{.host = "127.0.0.1",
                          .port = static_cast<std::uint16_t>(atoi(arguments[2])),
                          .client_id = arguments[1],
                          .pause = 20ms,
                          .longest_pause = 200ms,
                          .queue_bytes = 64 * 1024,
                          .queue_file = count > 5 ? arguments[5] : nullptr,
                          .on_connection = [](const Connection& connection) {
                            puts(connection.connected ? "connected" : "not connected");
                          }};
    if (!publishes) options.subscriptions = kFilters;
    auto client = MqttClient::create(options);
    if (!client) return 1;
    coir::Nursery nursery;
    nursery.start({.name = "client", .stack = 16 * 1024}, [&] { static_cast<void>(client->run()); });
    const bool once = count > 4 && arguments[4][0] == '0';
    const int status = publishes ? publish(*client, number, {.qos = once ? Qos::at_most_once : Qos::at_least_once})
                                 : receive(*client, number);
    client->close();
    return nursery.join() ? status : 1;
  });
}
