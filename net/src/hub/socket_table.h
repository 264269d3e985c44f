#pragma once

#include <coir/websocket.h>
#include <sys/uio.h>

#include "base/buffer_pool.h"
#include "base/turn.h"
#include "http/connection/coarse_clock.h"
#include "hub/hub.h"
#include "socket/slow_peer.h"
#include "tls/library/thread_mutex.h"
#include "websocket/message_decoder.h"

namespace coir::http {

// SocketRecord is all that is kept of a hub's socket, beside its Connection. The program's state lies behind it.
//
// Its owner is its connection's, whose `part` is when the client was last heard or pinged, in ms; of one that `leaves`, from
// when on the client is waited for. `lock` guards the fields that senders touch meanwhile, which is held
// over system calls that do not wait, and never while a fiber parks. Order: `lock`, then the keeper's.
struct SocketRecord : HubSocket {
  void* state() noexcept { return this + 1; }

  SocketTable& table() const noexcept;
  // waiting is how many bytes wait in `unsent`; with the lock.
  std::size_t waiting() const noexcept { return unsent ? unsent_part().end - unsent_part().at : 0; }

  // The description of a buffer's content is in the buffer, so that a socket without a buffer has no place for it.
  struct Part {
    std::uint32_t at, end;
    Buffer sent_from;      // the buffer before this one, from which the owner still sends
    SlowPeer client = {};  // of a socket that rests until its client takes something
  };
  Part& unsent_part() const noexcept { return *reinterpret_cast<Part*>(unsent.data()); }
  struct Half {
    std::uint32_t bytes;     // of the message at hand, from kMessageAt on
    std::uint32_t begun_ms;  // when it began
    MessageDecoder::ControlPayload control;
  };
  Half& half() const noexcept { return *reinterpret_cast<Half*>(message.data()); }
  static constexpr std::size_t kMessageAt = 136;
  static_assert(sizeof(Half) <= kMessageAt);

  Connection* connection = nullptr;  // null before its begin
  MessageDecoder decoder{WebSocketRole::server};
  Buffer message;  // half a message, or half a control frame: see Half
  Buffer unsent;   // what the kernel did not take: see Part; guarded by lock, as all down to `sending`
  tls::ThreadMutex lock;
  Atomic<std::uint32_t> generation = 0;  // counts the sockets that had this record
  bool open : 1 = false;
  bool corked : 1 = false;       // the program is being called: what it sends waits for the call's end
  bool sending : 1 = false;      // the owner is sending from `unsent`, which stays where it is until then: see Part
  Atomic<bool> work = false;     // others have left something to do for the owner
  Atomic<bool> doomed = false;   // the connection was shut down
  Atomic<bool> closing = false;  // a close frame was sent
  bool ends : 1 = false;         // the owner's: nothing is to be done any more but to send what is left
  bool drops : 1 = false;        // the owner's: what arrives is dropped until the client ends
  bool leaves : 1 = false;       // the owner's: all is sent, and the client is to end
  Atomic<bool> pinged = false;
  CloseCode code = CloseCode::abnormal;
  std::uint32_t dropped_bytes = 0;     // the owner's: what has come since then
  std::uint32_t subscription = kNone;  // the first, or the next free record; guarded by the table's topics_lock_

  static constexpr std::uint32_t kNone = UINT32_MAX;
};
static_assert(sizeof(void*) != 8 || sizeof(SocketRecord) <= 80, "thousands rest at a time");

// coarse_ms is when something began: 32 bits are enough for how long ago that was.
inline std::uint32_t coarse_ms() noexcept {
  return static_cast<std::uint32_t>(coarse_ns() / 1'000'000);
}

// Subscription is one socket's to one topic; Topic, what has subscribers, or is being published to. Both are guarded by the
// table's topics_lock_, but for a Topic's `turn`. kNone ends every chain.
struct Subscription {
  std::uint32_t topic = 0, socket = 0;
  std::uint32_t next_of_socket = 0;  // or the next that is free
  std::uint32_t previous = 0, next = 0;
};

struct Topic {
  static constexpr std::size_t kMostName = 64;

  // Cursor is where a publisher has come to. A subscription that ends moves those that point to it.
  struct Cursor {
    std::uint32_t at;
    Cursor* next;
  };

  std::string_view name() const noexcept { return {text, name_bytes}; }

  TurnLock turn;  // held by who publishes
  Cursor* cursors = nullptr;
  std::uint32_t next = 0;   // of those whose names hash alike, or the next that is free
  std::uint32_t first = 0;  // its subscriptions
  std::uint32_t subscribers = 0;
  std::uint32_t publishers = 0;  // who publish, or wait for their turn
  std::uint8_t name_bytes = 0;
  char text[kMostName];
};

// SocketTable is a WebSocketHub: the records, and what is done for them. It lies at the start of one reserved mapping,
// followed by the records, each with its state, the subscriptions, the topics and the chains of their names, all of which
// are touched as far as they are used.
//
//   socket_table.cpp   records, the opening handshake, times      socket_input.cpp     what arrives
//   topics.cpp         subscriptions, publishing                  socket_output.cpp    what is sent
class SocketTable final : public Hub {
 public:
  static SocketTable* create(const detail::SocketHub::Calls& calls, const WebSocketHubOptions& options) noexcept;
  static void destroy(SocketTable* table) noexcept;

  // These are SocketHub's functions of the same names.
  void* begin(Exchange& exchange) noexcept;
  void finish(Exchange& exchange, void* state) noexcept;
  std::size_t sockets() const noexcept { return count_.load(std::memory_order_relaxed); }
  std::size_t subscribers(std::string_view topic) noexcept;

  // These are HubSocket's.
  std::expected<void, Error> send(SocketRecord& record, Opcode opcode, std::string_view payload) noexcept;
  std::expected<void, Error> close(SocketRecord& record, CloseCode code, std::string_view reason) noexcept;
  std::expected<void, Error> subscribe(SocketRecord& record, std::string_view topic) noexcept;
  void unsubscribe(SocketRecord& record, std::string_view topic) noexcept;
  Published publish(std::string_view topic, std::string_view payload, bool text) noexcept;

  // These are Hub's and Keeper's.
  void begin(Connection& connection, std::string_view sent, KeptMemory memory) noexcept override;
  void serve(Connection& connection, KeptMemory memory) noexcept override;
  void farewell(Connection& connection) noexcept override;
  void dropped(std::uint64_t mark) noexcept override;
  void work(bool told) noexcept override;
  Deadline next_work() const noexcept override;

 private:
  enum class Flushed : std::uint8_t { all, waits, failed };
  static constexpr std::uint32_t kNone = SocketRecord::kNone;

  // Layout says where in the mapping what stands.
  struct Layout {
    Layout(const WebSocketHubOptions& options, std::size_t state_bytes) noexcept;
    std::size_t stride, records, nodes, topics, chains, chain_count, bytes;
  };

  SocketTable(const detail::SocketHub::Calls& calls, const WebSocketHubOptions& options, const Layout& layout) noexcept;
  ~SocketTable() { leave_all(); }

  static SocketRecord& record_of(const Connection& connection) noexcept {
    return *reinterpret_cast<SocketRecord*>(connection.mark);
  }
  SocketRecord& record_at(std::uint32_t number) noexcept {
    return *reinterpret_cast<SocketRecord*>(records_ + number * stride_);
  }
  std::uint32_t number_of(const SocketRecord& record) const noexcept {
    return static_cast<std::uint32_t>(static_cast<std::size_t>(reinterpret_cast<const char*>(&record) - records_) /
                                      stride_);
  }

  // socket_table.cpp
  SocketRecord* take_record() noexcept;
  void give_record(SocketRecord& record) noexcept;
  bool is_due(const Connection& connection, std::int64_t now) const noexcept;
  void act(Connection& connection) noexcept;

  // socket_input.cpp
  void go_on(SocketRecord& record, KeptMemory memory) noexcept;
  bool rest_full(SocketRecord& record) noexcept;
  static bool is_stuck(SocketRecord& record) noexcept;
  bool has_left(SocketRecord& record) const noexcept;
  void decode(SocketRecord& record, std::span<char> bytes) noexcept;
  void take_piece(SocketRecord& record, const MessageEvent& event) noexcept;
  bool begin_half(SocketRecord& record, std::size_t bytes) noexcept;
  void call(SocketRecord& record, bool text, std::string_view bytes) noexcept;
  void fail(SocketRecord& record, CloseCode code) noexcept;
  void release(SocketRecord& record) noexcept;
  void end(SocketRecord& record) noexcept;

  // socket_output.cpp; those with `held` in their comments want the record's lock.
  // put sends a frame, given as parts. put_published does so to the socket of that number, if it is still of that
  // generation, and ends the connection of a client that is slow. Errors: closed, limit, no_memory.
  std::expected<void, Error> put(SocketRecord& record, std::span<const iovec> parts) noexcept;
  std::expected<void, Error> put_published(std::uint32_t socket, std::uint32_t generation,
                                           std::span<const iovec> parts) noexcept;
  std::expected<void, Error> put_held(SocketRecord& record, std::span<const iovec> parts, bool& wants_owner) noexcept;
  std::expected<void, Error> append_held(SocketRecord& record, std::span<const iovec> parts, std::size_t skip,
                                         bool bounded) noexcept;
  bool room_held(SocketRecord& record, std::size_t bytes) noexcept;
  std::expected<void, Error> put_close(SocketRecord& record, CloseCode code, std::string_view reason) noexcept;
  void doom_held(SocketRecord& record) noexcept;
  void hand_over_held(SocketRecord& record) noexcept;
  Flushed flush(SocketRecord& record) noexcept;

  // topics.cpp; those with `held` in their names want topics_lock_.
  std::uint32_t& chain_held(std::string_view name) noexcept;
  std::uint32_t find_held(std::string_view name) noexcept;
  std::uint32_t find_or_make_held(std::string_view name) noexcept;
  std::size_t give_unused_held(Topic& topic) noexcept;
  std::size_t leave_held(std::uint32_t& link) noexcept;
  void unsubscribe_all(SocketRecord& record) noexcept;

  const detail::SocketHub::Calls calls_;
  const WebSocketHubOptions options_;
  const std::size_t stride_, chain_count_, mapped_bytes_;
  char* const records_;
  Subscription* const nodes_;
  Topic* const topics_;
  std::uint32_t* const chains_;  // a topic's number and 1, or 0
  Spinlock records_lock_;
  std::uint32_t free_record_ = kNone;
  std::uint32_t used_records_ = 0;  // those that were ever taken
  Atomic<std::size_t> count_ = 0;
  Spinlock topics_lock_;
  std::uint32_t free_node_ = kNone, used_nodes_ = 0;
  std::uint32_t free_topic_ = kNone, used_topics_ = 0;
};

inline SocketTable& SocketRecord::table() const noexcept {
  return *static_cast<SocketTable*>(connection->keeper);
}

}  // namespace coir::http
