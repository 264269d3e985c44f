#include "http/sockets/socket_table.h"

#include <coir/http/accounts.h>
#include <coir/port/memory.h>
#include <coir/pressure.h>

#include <algorithm>
#include <new>

#include "http/session/coarse_clock.h"
#include "http/session/engine.h"
#include "http/sockets/opening.h"

namespace coir::http {
namespace {

constexpr std::size_t kMostHeld = 256 * 1024;
constexpr std::size_t kMostSockets = 1u << 24;

constexpr std::size_t rounded(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// held_whole are the options with a message that can be held as a whole: WebSocketOptions' own default is larger.
RestingSocketsOptions held_whole(RestingSocketsOptions options) noexcept {
  options.socket.max_message = std::min<std::uint64_t>(options.socket.max_message, kMostHeld);
  return options;
}

std::int64_t ns(std::chrono::milliseconds span) noexcept {
  return std::chrono::nanoseconds(span).count();
}

}  // namespace

std::expected<SocketTable*, Error> SocketTable::create(const RestingSocketsBase::Calls& calls,
                                                       const RestingSocketsOptions& options) noexcept {
  if (options.max_sockets == 0 || options.max_sockets > kMostSockets || options.max_subscriptions > kMostSockets ||
      options.socket.max_message == 0 || options.socket.max_frame == 0 || options.max_unsent == 0 ||
      options.max_unsent > kMostHeld) {
    return std::unexpected(Error{ErrorCode::invalid});
  }
  const std::size_t stride = rounded(sizeof(SocketRecord) + calls.state_bytes, 8);
  const std::size_t records_at = rounded(sizeof(SocketTable), 64);
  const std::size_t nodes_at = rounded(records_at + stride * options.max_sockets, 64);
  const std::size_t bytes = rounded(nodes_at + sizeof(Subscription) * options.max_subscriptions, port::kPageBytes);
  auto* const memory = static_cast<char*>(port::reserve(bytes));
  if (memory == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  return ::new (memory)
      SocketTable(calls, options, memory + records_at, reinterpret_cast<Subscription*>(memory + nodes_at), bytes);
}

SocketTable::SocketTable(const RestingSocketsBase::Calls& calls, const RestingSocketsOptions& options, char* records,
                         Subscription* nodes, std::size_t mapped_bytes) noexcept
    : calls_(calls),
      options_(held_whole(options)),
      stride_(rounded(sizeof(SocketRecord) + calls.state_bytes, 8)),
      records_(records),
      nodes_(nodes),
      mapped_bytes_(mapped_bytes) {}

SocketTable::~SocketTable() = default;

void SocketTable::destroy(SocketTable* table) noexcept {
  const std::size_t bytes = table->mapped_bytes_;
  table->~SocketTable();
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
  // Who published to the last one may still look at its generation and its lock: they stay.
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
  if (!offer) return nullptr;
  SocketRecord* const record = take_record();
  if (record == nullptr) {
    exchange.respond_status(503, "Retry-After: 5\r\n");
    return nullptr;
  }
  return record->state();
}

std::expected<void, Error> SocketTable::finish(Exchange& exchange, void* state) noexcept {
  SocketRecord& record = *(static_cast<SocketRecord*>(state) - 1);
  auto opened = SocketOpening::answer(exchange, options_.subprotocols);
  if (opened) opened = keep(exchange, reinterpret_cast<std::uintptr_t>(&record));
  if (!opened) dropped(reinterpret_cast<std::uintptr_t>(&record));
  return opened;
}

void SocketTable::dropped(std::uint64_t mark) noexcept {
  auto& record = *reinterpret_cast<SocketRecord*>(mark);
  calls_.destroy(record.state());
  give_record(record);
}

bool SocketTable::stopped() noexcept {
#if COIR_NO_ASYNC
  return true;
#else
  return !timer_runs_.load(std::memory_order_acquire);
#endif
}

// start_timer sees to it that somebody looks at the clock, for all sockets.
void SocketTable::start_timer() noexcept {
#if COIR_NO_ASYNC
  if (next_tick_ns_ == 0) next_tick_ns_ = due().ns();
#else
  // Of two that begin at the same time one spawns.
  if (timer_runs_.load(std::memory_order_acquire) || timer_runs_.exchange(true, std::memory_order_acq_rel)) return;
  const Fiber fiber = spawn({.name = "websocket timer", .stack = 8_KiB}, [this]() noexcept {
    const auto sleep_while_serving = [this] {
      CancelScope serving;
      const CancellationWatch watch(engine()->stops.token(), serving);
      return sleep(std::chrono::nanoseconds(due().ns() - monotonic_ns())).has_value();
    };
    while (!server_stops() && sleep_while_serving()) tick();
    // release pairs with the acquire in stopped: nothing of the table is touched behind it.
    timer_runs_.store(false, std::memory_order_release);
  });
  if (!fiber.started()) timer_runs_.store(false, std::memory_order_release);
#endif
}

// due is a fraction of the shortest of the times from now, so that each is kept to within that.
Deadline SocketTable::due() const noexcept {
  using namespace std::chrono_literals;
  if (next_tick_ns_ != 0) return Deadline::at_ns(next_tick_ns_);
  const WebSocketOptions& times = options_.socket;
  auto least = std::min({times.pong_timeout, times.message_timeout, times.close_timeout, times.write_timeout});
  if (times.ping_after.count() > 0) least = std::min(least, times.ping_after);
  return Deadline::after(std::clamp<std::chrono::milliseconds>(least / 4, 5ms, 1s));
}

void SocketTable::tick() noexcept {
  next_tick_ns_ = 0;
  const std::int64_t now = coarse_ns();
  for (const Direction direction : {Direction::readable, Direction::writable}) {
    while (Connection* const connection =
               take(direction, [&](const Connection& each, bool&) { return is_due(each, now); })) {
      act(*connection);
    }
  }
  if constexpr (!kFibers) next_tick_ns_ = due().ns();
}

// is_due tells whether something has to be done for a socket that rests.
bool SocketTable::is_due(const Connection& connection, std::int64_t now) const noexcept {
  const SocketRecord& record = record_of(connection);
  const WebSocketOptions& times = options_.socket;
  const std::int64_t silent = now - connection.since_ns;
  if (connection.awaits == Direction::writable) return silent >= ns(times.write_timeout);
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
  if (connection.awaits == Direction::writable || record.leaves || record.pinged.load(std::memory_order_relaxed)) {
    return end(record);
  }
  const std::int64_t silent = coarse_ns() - connection.since_ns;
  if (options_.socket.ping_after.count() == 0 || silent < ns(options_.socket.ping_after)) {
    fail(record, CloseCode::policy_violation);
  } else {
    record.pinged.store(true, std::memory_order_relaxed);
    static_cast<void>(send(record, Opcode::ping, {}));
  }
  go_on(record, {});
}

RestingSocketsBase::~RestingSocketsBase() {
  if (table_ != nullptr) SocketTable::destroy(table_);
}

std::size_t RestingSocketsBase::open() const noexcept {
  return table_->open();
}

std::uint64_t RestingSocketsBase::dropped() const noexcept {
  return table_->dropped_count.load(std::memory_order_relaxed);
}

std::expected<SocketTable*, Error> RestingSocketsBase::make(const Calls& calls,
                                                            const RestingSocketsOptions& options) noexcept {
  return SocketTable::create(calls, options);
}

void* RestingSocketsBase::begin(Exchange& exchange) noexcept {
  return table_->begin(exchange);
}

std::expected<void, Error> RestingSocketsBase::finish(Exchange& exchange, void* state) noexcept {
  return table_->finish(exchange, state);
}

}  // namespace coir::http
