#pragma once

#include <coir/cancellation.h>
#include <coir/condition.h>
#include <coir/mqtt.h>
#include <coir/mutex.h>
#include <coir/net/stream.h>

#include "base/buffer_pool.h"
#include "mqtt/message_queue.h"
#include "mqtt/packet.h"
#include "mqtt/queue_file.h"
#include "outbound/reconnect_pause.h"

namespace coir::mqtt {

// phrase_of_refusal (connection.cpp) is what describe says of a broker's refusal.
const char* phrase_of_refusal(Error error) noexcept;

// ClientState is what a MqttClient is a handle of. client.cpp has the calls of the program, connection.cpp how a connection
// is made, reader.cpp and sender.cpp the two fibers that a connection has: run's own, which reads, and the sender.
//
// `lock` guards what both and the program touch. It is never held while the network is waited for.
struct ClientState {
  explicit ClientState(const ClientOptions& given) noexcept : options(given), lacking(all_subscriptions()) {}

  // connection.cpp
  std::expected<void, Error> run() noexcept;
  std::expected<void, Error> connect() noexcept;
  std::expected<void, Error> meet() noexcept;
  std::expected<void, Error> greet(Deadline deadline) noexcept;
  std::expected<void, Error> pause(bool settled) noexcept;
  void serve() noexcept;
  void tell(bool connected, Error error) noexcept;
  void end() noexcept;

  // reader.cpp
  Error read_all() noexcept;
  std::expected<Packet, Error> next_packet(Deadline deadline) noexcept;
  std::expected<void, Error> handle(const Packet& packet) noexcept;
  std::expected<void, Error> take_grants(const Packet& packet) noexcept;
  bool is_asked_for(std::string_view topic) const noexcept;
  std::expected<void, Error> hand_over(const Packet& packet) noexcept;
  std::expected<void, Error> reply(PacketType type, std::uint16_t id) noexcept;
  void drain() noexcept;
  std::expected<void, Error> take_answers(std::uint16_t id) noexcept;
  void answered(std::uint16_t id) noexcept;

  // sender.cpp
  void send_all() noexcept;
  std::expected<void, Error> write(std::string_view bytes) noexcept;
  std::size_t gather() noexcept;
  bool ping_is_due(std::int64_t now) noexcept;
  void note_ping(std::int64_t now) noexcept;
  Deadline next_look() const noexcept;
  std::size_t write_subscribe(std::span<char> out) noexcept;
  bool is_overdue(std::int64_t now) const noexcept;
  void fail(Error why) noexcept;

  const ClientOptions options;
  ClientCounters counters;
  Stream stream;
  Buffer in, out;

  // The reader's.
  std::size_t begin = 0, have = 0;  // of `in`
  std::size_t skipped = 0;          // bytes that still belong to a message which is too large
  // Answers are missing, and there is nothing to send that would acknowledge the bytes of the latest. A broker under
  // Nagle's algorithm holds the others back until the kernel acknowledges these, by itself after 40 ms.
  bool waits_for_answers = false;
  ReconnectPause pauses;
  std::uint8_t refusal = 0;
  bool session_present = false;

  Mutex lock;
  Condition to_send;   // the sender waits: something is to be sent
  Condition to_read;   // the program waits for a message
  Condition taken;     // the reader waits: the program is done with a message, or replies have left
  Condition all_sent;  // flush waits
  MessageQueue queue;
  QueueFile file;
  struct Reply {
    PacketType type;
    std::uint16_t id;
  };
  static constexpr std::size_t kMostReplies = 32;
  Reply replies[kMostReplies];
  std::size_t reply_count = 0;
  enum class Handing : std::uint8_t { nothing, offered, held } handing = Handing::nothing;
  Packet offered;
  std::uint64_t lacking = 0;  // the subscriptions that the broker has not granted, one bit each
  std::uint64_t asked = 0;    // of these the ones that it owes an answer to
  ReconnectPause refusals;
  std::int64_t asks_ns = 0;   // when it is asked next
  std::int64_t asked_ns = 0;  // when it was asked last
  bool said_goodbye = false;
  bool closing = false;
  CancellationSource closes;  // with `closing`: ends an attempt to connect
  bool ended = false;
  bool lost = false;  // this connection is
  Error lost_why;
  bool pinged = false;
  std::int64_t pinged_ns = 0, sent_ns = 0;
  std::uint64_t all_subscriptions() const noexcept {
    const std::size_t count = options.subscriptions.size();
    return count == 0 ? 0 : UINT64_MAX >> (kMostSubscriptions - count);
  }
  Atomic<std::int64_t> heard_ns{0};
  Atomic<bool> is_connected{false};
};

}  // namespace coir::mqtt
