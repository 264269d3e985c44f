#include "hub/socket_table.h"

#include <coir/detail/accounts.h>
#include <coir/detail/fatal.h>
#include <coir/port/memory.h>
#include <coir/pressure.h>

#include <algorithm>
#include <bit>
#include <new>

#include "base/rounded.h"
#include "http/session/engine.h"
#include "stream/socket_opening.h"

namespace coir::http {
namespace {

constexpr std::size_t kMostHeld = 256 * 1024;
constexpr std::size_t kMostSockets = 1u << 24;

// held_whole are the options with a message that can be held as a whole: WebSocketOptions' own default is larger.
WebSocketHubOptions held_whole(WebSocketHubOptions options) noexcept {
  options.socket.max_message = std::min<std::uint64_t>(options.socket.max_message, kMostHeld);
  return options;
}

std::int64_t ns(std::chrono::milliseconds span) noexcept {
  return std::chrono::nanoseconds(span).count();
}

}  // namespace

SocketTable* SocketTable::create(const detail::SocketHub::Calls& calls, const WebSocketHubOptions& options) noexcept {
  if (options.max_sockets == 0 || options.max_sockets > kMostSockets || options.max_subscriptions > kMostSockets) {
    coir::detail::fatal("WebSocketHubOptions: max_sockets must be 1 to 16777216, max_subscriptions at most that");
  }
  if (options.socket.max_message == 0 || options.socket.max_frame == 0 || options.max_unsent == 0 ||
      options.max_unsent > kMostHeld) {
    coir::detail::fatal(
        "WebSocketHubOptions: max_message, max_frame and max_unsent must not be 0, max_unsent at most 256 KiB");
  }
  const Layout layout(options, calls.state_bytes);
  void* const memory = port::reserve(layout.bytes);
  return memory != nullptr ? ::new (memory) SocketTable(calls, options, layout) : nullptr;
}

SocketTable::Layout::Layout(const WebSocketHubOptions& options, std::size_t state_bytes) noexcept
    : stride(rounded(sizeof(SocketRecord) + state_bytes, std::size_t{8})),
      records(rounded(sizeof(SocketTable), std::size_t{64})),
      nodes(rounded(records + stride * options.max_sockets, std::size_t{64})),
      // Each topic has a subscription at least.
      topics(rounded(nodes + sizeof(Subscription) * options.max_subscriptions, std::size_t{64})),
      chains(topics + sizeof(Topic) * options.max_subscriptions),
      chain_count(std::bit_ceil(options.max_subscriptions)),
      bytes(rounded(chains + sizeof(std::uint32_t) * chain_count, port::kPageBytes)) {}

SocketTable::SocketTable(const detail::SocketHub::Calls& calls, const WebSocketHubOptions& options,
                         const Layout& layout) noexcept
    : Hub("websocket hub", true),
      calls_(calls),
      options_(held_whole(options)),
      stride_(layout.stride),
      chain_count_(layout.chain_count),
      mapped_bytes_(layout.bytes),
      records_(reinterpret_cast<char*>(this) + layout.records),
      nodes_(reinterpret_cast<Subscription*>(reinterpret_cast<char*>(this) + layout.nodes)),
      topics_(reinterpret_cast<Topic*>(reinterpret_cast<char*>(this) + layout.topics)),
      chains_(reinterpret_cast<std::uint32_t*>(reinterpret_cast<char*>(this) + layout.chains)) {}

void SocketTable::destroy(SocketTable* table) noexcept {
  const std::size_t bytes = table->mapped_bytes_;
  table->~SocketTable();
  // Those that were cut off with their run have refunded nothing.
  account::connections.refund(table->sockets() * table->stride_);
  port::release(table, bytes);
}

SocketRecord* SocketTable::take_record() noexcept {
  if (!Pressure::charge(account::connections, stride_)) return nullptr;
  SocketRecord* record = nullptr;
  {
    const Locked locked(records_lock_);
    if (free_record_ != SocketRecord::kNone) {
      record = &record_at(free_record_);
      free_record_ = record->subscription;
    } else if (used_records_ < options_.max_sockets) {
      record = ::new (records_ + used_records_++ * stride_) SocketRecord();
    }
  }
  if (record == nullptr) {
    account::connections.refund(stride_);
    return nullptr;
  }
  count_.fetch_add(1, std::memory_order_relaxed);
  // A publisher to the record's last socket may still read its generation and its lock: they stay.
  const tls::Holding held(record->lock);
  record->decoder = MessageDecoder(WebSocketRole::server);
  record->connection = nullptr;
  record->corked = record->sending = record->ends = record->drops = record->leaves = false;
  for (Atomic<bool>* const mark : {&record->work, &record->doomed, &record->closing, &record->pinged}) {
    mark->store(false, std::memory_order_relaxed);
  }
  record->code = CloseCode::abnormal;
  record->subscription = SocketRecord::kNone;
  return record;
}

void SocketTable::give_record(SocketRecord& record) noexcept {
  {
    const Locked locked(records_lock_);
    record.subscription = free_record_;
    free_record_ = number_of(record);
  }
  count_.fetch_sub(1, std::memory_order_relaxed);
  account::connections.refund(stride_);
}

void* SocketTable::begin(Exchange& exchange) noexcept {
  const auto offer = SocketOpening::judge(exchange, options_.subprotocols, options_.origins);
  if (!offer || !is_ready(exchange)) return nullptr;
  SocketRecord* const record = take_record();
  if (record != nullptr) return record->state();
  exchange.respond_status(503, kComeAgain);
  return nullptr;
}

void SocketTable::finish(Exchange& exchange, void* state) noexcept {
  const auto mark = reinterpret_cast<std::uintptr_t>(static_cast<SocketRecord*>(state) - 1);
  if (!SocketOpening::answer(exchange, options_.subprotocols) || !keep(exchange, mark)) dropped(mark);
}

void SocketTable::dropped(std::uint64_t mark) noexcept {
  auto& record = *reinterpret_cast<SocketRecord*>(mark);
  calls_.destroy(record.state());
  give_record(record);
}

// next_work is behind a fraction of the shortest of the times, so that each is kept to within that.
Deadline SocketTable::next_work() const noexcept {
  using namespace std::chrono_literals;
  const WebSocketOptions& times = options_.socket;
  auto least = std::min({times.pong_timeout, times.message_timeout, times.close_timeout, times.write_timeout});
  if (times.ping_after.count() > 0) least = std::min(least, times.ping_after);
  return Deadline::after(std::clamp<std::chrono::milliseconds>(least / 4, 5ms, 1s));
}

void SocketTable::work(bool) noexcept {
  const std::int64_t now = coarse_ns();
  for (const Direction direction : {Direction::readable, Direction::writable}) {
    while (Connection* const connection =
               take(direction, [&](const Connection& each, bool&) { return is_due(each, now); })) {
      act(*connection);
    }
  }
}

// is_due tells whether something has to be done for a socket that rests.
bool SocketTable::is_due(const Connection& connection, std::int64_t now) const noexcept {
  const SocketRecord& record = record_of(connection);
  const WebSocketOptions& times = options_.socket;
  const std::int64_t silent = now - connection.since_ns;
  if (connection.awaits == Direction::writable) return silent >= SlowPeer::half(times.write_timeout).count();
  const auto ms_since = [now](std::uint32_t begun_ms) {
    // It may have begun a tick after `now` was read: its age is then below 0.
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(now / 1'000'000) - begun_ms);
  };
  if (record.leaves) return ms_since(connection.part) >= times.close_timeout.count();
  if (record.pinged.load(std::memory_order_relaxed)) return silent >= ns(times.pong_timeout);
  // The owner that left half a message left it before the connection was put to rest, with the keeper's lock.
  if (record.message && ms_since(record.half().begun_ms) >= times.message_timeout.count()) return true;
  return times.ping_after.count() > 0 && silent >= ns(times.ping_after);
}

// act does it. The connection belongs to the caller.
void SocketTable::act(Connection& connection) noexcept {
  SocketRecord& record = record_of(connection);
  if (connection.awaits == Direction::writable && !is_stuck(record)) {
    if (!rest_full(record)) serve_soon(connection);
    return;
  }
  if (connection.awaits == Direction::writable || record.leaves || record.pinged.load(std::memory_order_relaxed)) {
    return end(record);
  }
  const std::int64_t silent = coarse_ns() - connection.since_ns;
  if (options_.socket.ping_after.count() == 0 || silent < ns(options_.socket.ping_after)) {
    fail(record, CloseCode::policy_violation);
  } else {
    record.pinged.store(true, std::memory_order_relaxed);
    connection.part = coarse_ms();
    static_cast<void>(send(record, Opcode::ping, {}));
  }
  go_on(record, {});
}

namespace detail {

SocketHub::SocketHub(const Calls& calls, const WebSocketHubOptions& options) noexcept
    : table_(SocketTable::create(calls, options)) {}

SocketHub::~SocketHub() {
  if (table_ != nullptr) SocketTable::destroy(table_);
}

void* SocketHub::begin(Exchange& exchange) noexcept {
  if (table_ != nullptr) return table_->begin(exchange);
  exchange.respond_status(503, Hub::kComeAgain);
  return nullptr;
}

void SocketHub::finish(Exchange& exchange, void* state) noexcept {
  table_->finish(exchange, state);
}

Published SocketHub::publish(std::string_view topic, std::string_view payload, bool text) noexcept {
  return table_ != nullptr ? table_->publish(topic, payload, text) : Published();
}

std::size_t SocketHub::sockets() const noexcept {
  return table_ != nullptr ? table_->sockets() : 0;
}

std::size_t SocketHub::subscribers(std::string_view topic) const noexcept {
  return table_ != nullptr ? table_->subscribers(topic) : 0;
}

std::uint64_t SocketHub::dropped() const noexcept {
  return table_ != nullptr ? table_->dropped_count() : 0;
}

}  // namespace detail
}  // namespace coir::http
