#pragma once

// A client of MQTT 3.1.1 that stays connected.
//
//   const mqtt::Subscription filters[] = {{.filter = "boards/+/led"}};
//   auto client = mqtt::MqttClient::create({.host = "broker", .client_id = "board-7", .subscriptions = filters});
//   if (!client) return complain(client.error());
//   Nursery nursery;
//   nursery.start([&] { return client->run(); });
//   if (auto queued = client->publish("boards/7/temperature", "21.5"); !queued) complain(queued.error());
//   while (auto message = client->receive()) show(message->topic, message->payload);

#include <coir/config.h>

#if !COIR_MQTT
#error "this build of coir has no MQTT: configure it with -DCOIR_MQTT=ON"
#endif

#include <coir/atomic.h>
#include <coir/callable.h>
#include <coir/deadline.h>
#include <coir/error.h>
#include <coir/ledger.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string_view>
#include <utility>

namespace coir {
class TlsContext;
namespace account {
extern Account mqtt;  // clients; their buffers are of account::buffers
}  // namespace account
}  // namespace coir

namespace coir::mqtt {

// is_topic (topic.cpp) tells whether a message may be published under `text` (MQTT 3.1.1, 4.7): 1 to 65,535 bytes of
// UTF-8 without NUL and without the wildcards `+` and `#`. Topics that begin with `$` are the broker's own. Any
// context.
[[nodiscard]] bool is_topic(std::string_view text) noexcept;
[[nodiscard]] bool may_publish(std::string_view topic) noexcept;

// is_filter tells whether `text` may be subscribed to: as a topic, but `+` may stand for a whole level and `#` for all
// levels at the end. Any context.
[[nodiscard]] bool is_filter(std::string_view text) noexcept;

// matches tells whether a filter takes a topic in; both are well-formed. A wildcard in front takes no topic that begins
// with `$`. A shared subscription, $share/GROUP/FILTER, takes in what FILTER does. Any context.
[[nodiscard]] bool matches(std::string_view filter, std::string_view topic) noexcept;

// BrokerUrl is the address of a broker, "mqtt://user@host:port/path". It owns nothing; its views point into the text.
struct BrokerUrl {
  bool secure = false;        // mqtts
  std::uint16_t port = 1883;  // 8883 of mqtts
  std::string_view host;      // a name or an address, without the brackets of IPv6; never empty
  std::string_view user;      // empty: none
  std::string_view path;      // without the slash in front
};

// parse_broker_url (broker_url.cpp) takes an address apart. A password in it, which every user of the machine could read
// in the list of processes, is refused. Errors: unsupported (another scheme), untrusted (a password), invalid (anything
// else that is malformed; a byte that is not visible ASCII, a `%`). Any context.
[[nodiscard]] std::expected<BrokerUrl, Error> parse_broker_url(std::string_view text) noexcept;

#if !COIR_NO_ASYNC

// Qos is how a message is delivered: at most once (0), or at least once (1), acknowledged. There is no QoS 2 here: a
// broker that sends a message by it, from a session that another program has left, gets its answers, and the program
// gets the message at least once.
enum class Qos : std::uint8_t { at_most_once = 0, at_least_once = 1 };

struct PublishOptions {
  Qos qos = Qos::at_least_once;
  bool retained = false;  // the broker keeps it for those who subscribe later
};

// Message is one that has come. Its views are valid until the next receive.
struct Message {
  std::string_view topic;
  std::string_view payload;
  bool at_least_once = false;
  bool retained = false;   // the broker has kept it
  bool duplicate = false;  // it may have come before
};

struct Subscription {
  std::string_view filter;
  Qos qos = Qos::at_least_once;  // at most
};

inline constexpr std::size_t kMostSubscriptions = 64;

struct Will {
  std::string_view topic;  // empty: there is none
  std::string_view payload;
  PublishOptions options = {};
};

// WhenFull is what becomes of a publish for which the queue has no room.
enum class WhenFull : std::uint8_t { refuse, drop_oldest };

// Connection is what on_connection gets.
struct Connection {
  bool connected = false;
  bool session_present = false;  // the broker has kept the session
  Error error;                   // why there is none; describe tells the broker's refusal
  std::uint8_t refusal = 0;      // the broker's code of CONNACK, 0: it has not refused
};

// All that is pointed to outlives the client.
struct ClientOptions {
  std::string_view host;  // a name or an address
  std::uint16_t port = 1883;
  const TlsContext* tls = nullptr;  // null: without TLS
  std::string_view client_id;       // 1 to 65,535 bytes of UTF-8; brokers may take 23 letters and digits only
  std::string_view user = {};       // empty: none
  std::string_view password = {};
  Will will = {};
  bool clean_session = false;                         // the broker forgets what it has for us when we leave
  std::span<const Subscription> subscriptions = {};   // kMostSubscriptions at most
  std::chrono::seconds keep_alive{30};                // 1 to 65,535
  std::chrono::milliseconds connect_timeout{20'000};  // name, connection, TLS and the broker's consent
  std::chrono::milliseconds answer_timeout{10'000};   // for PINGRESP and SUBACK, and for a write without progress
  // The pause before the next attempt to connect, and to subscribe to what the broker refuses. It doubles with each that
  // fails, up to the longest, and is up to a quarter longer by chance.
  std::chrono::milliseconds pause{1'000};
  std::chrono::milliseconds longest_pause{60'000};
  std::size_t max_packet = 4096;      // of a message with its topic, either way; 128 to 1 MiB
  std::size_t queue_bytes = 16'384;   // what waits to be sent or acknowledged; up to 1 MiB
  std::size_t queue_messages = 1000;  // at least 1
  std::size_t max_in_flight = 16;     // of QoS 1, sent and not acknowledged; at least 1
  WhenFull when_full = WhenFull::refuse;
  const char* queue_file = nullptr;  // keeps what is queued of QoS 1 over a restart; only its owner may read it
  bool sync_queue_file = false;      // over a loss of power too: a publish then waits for the flash
  // run calls it when a connection has begun or ended, or an attempt has failed. It must not wait. May be empty.
  Callable<void(const Connection& connection)> on_connection = {};
  // run calls it each time that the broker refuses a subscription, which is then tried again. It must not wait. May be empty.
  Callable<void(std::string_view filter)> on_refused = {};
};

struct ClientCounters {
  Atomic<std::uint64_t> published = 0;     // taken by publish
  Atomic<std::uint64_t> acknowledged = 0;  // of QoS 1, by the broker
  Atomic<std::uint64_t> dropped = 0;       // the oldest, as the queue was full
  Atomic<std::uint64_t> refused = 0;       // by publish, as the queue was full
  Atomic<std::uint64_t> received = 0;      // handed to receive
  Atomic<std::uint64_t> too_large = 0;     // that came, and were left out
  Atomic<std::uint64_t> unasked = 0;       // that came from a kept session, of no subscription: left out
  Atomic<std::uint64_t> connections = 0;
  Atomic<std::uint64_t> refused_filters = 0;    // subscriptions, by the broker
  Atomic<std::uint64_t> queue_file_errors = 0;  // acknowledgements that could not be written: they are sent again
};

// MqttClient is a client of MQTT 3.1.1 that stays connected: one fiber runs it, any others publish and one receives.
//
// publish queues and returns. Queued messages are sent in order, over any number of connections: a message of QoS 1 stays
// in the queue until the broker has acknowledged it, one of QoS 0 until it is written. A message that came at QoS 1 is
// acknowledged once the program asks for the next one, so that a crash while it is handled loses nothing. While the
// program does not ask, nothing more is read from the broker.
//
// Memory: three buffers, for the queue and for a packet each way, from the start. Needs fibers.
class MqttClient {
 public:
  // create makes ready and reads the queue file, but does not connect.
  // Errors: invalid (a topic, a filter, the client's id, a number; the queue file is of another kind), limit (a size is
  // too large, there are too many subscriptions, or they do not fit into max_packet), no_memory, and File's.
  [[nodiscard]] static std::expected<MqttClient, Error> create(const ClientOptions& options) noexcept;

  MqttClient(MqttClient&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  MqttClient& operator=(MqttClient&& other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  // No call may be in progress.
  ~MqttClient();

  // run connects, and again whenever the connection is lost, until close or cancellation. One fiber, once.
  // Errors: cancelled, timed_out (a scope around it); no_memory (its second fiber cannot start).
  [[nodiscard]] std::expected<void, Error> run() noexcept;

  // publish queues a message. Any fiber or thread; it waits for the queue's file at most, if there is one.
  // Errors: invalid (no topic to publish to), limit (the message does not fit into max_packet or the queue), queue_full,
  // closed, File's, cancelled and timed_out (the queue's mutex).
  [[nodiscard]] std::expected<void, Error> publish(std::string_view topic, std::string_view payload,
                                                   PublishOptions options = {}) noexcept;

  // receive waits for the next message of a subscription. One fiber or thread at a time. Messages of other topics
  // that an earlier session left are acknowledged and dropped.
  // Errors: timed_out, cancelled, end_of_stream (the client is closed, or run has ended), unsupported.
  [[nodiscard]] std::expected<Message, Error> receive(Deadline deadline = Deadline::never()) noexcept;

  // flush waits until nothing is queued any more. Not between two calls of receive by the same fiber: answers come
  // behind messages. Errors: timed_out, cancelled, end_of_stream, unsupported.
  [[nodiscard]] std::expected<void, Error> flush(Deadline deadline = Deadline::never()) noexcept;

  // close takes leave of the broker, which then does not publish the will, and ends run, an attempt to connect too.
  // Queued messages stay in the queue's file. Idempotent; any fiber or thread.
  void close() noexcept;

  bool connected() const noexcept;
  std::size_t queued() const noexcept;  // messages
  const ClientCounters& counters() const noexcept;

  // memory_bytes is what a client with these options holds.
  static std::size_t memory_bytes(const ClientOptions& options) noexcept;

 private:
  friend struct ClientState;
  explicit MqttClient(struct ClientState* state) noexcept : state_(state) {}

  struct ClientState* state_;
};

#endif

}  // namespace coir::mqtt
