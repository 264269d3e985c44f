#include "hub/event_keeper.h"

#include <coir/detail/accounts.h>
#include <coir/detail/fatal.h>
#include <coir/format.h>
#include <string.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/charged.h"
#include "base/turn.h"
#include "http/session/engine.h"
#include "socket/kernel.h"
#include "stream/event_encoder.h"

namespace coir::http {
namespace {

using namespace std::chrono_literals;

// The word in the record of a subscriber that has missed events, until begin has read it.
constexpr std::uint32_t kHasMissed = 1;

// The sender sends to so many before it asks whether others have waited for long.
constexpr unsigned kSentInTurn = 32;

}  // namespace

EventKeeper* EventKeeper::create(const EventHubOptions& options) noexcept {
  if (options.history_bytes == 0 || options.history_events == 0) {
    coir::detail::fatal("EventHubOptions: history_bytes and history_events must not be 0");
  }
  auto history = History::create({.bytes = options.history_bytes, .events = options.history_events}, account::streams);
  if (!history) return nullptr;
  void* const memory = take_charged(account::streams, sizeof(EventKeeper));
  if (memory == nullptr) return nullptr;
  auto* const keeper = ::new (memory) EventKeeper(options, std::move(*history));
  const auto missed = encode_event(options.missed, keeper->missed_);
  if (!missed) coir::detail::fatal("EventHubOptions: `missed` cannot be sent, or is longer than 1024 bytes");
  keeper->missed_bytes_ = static_cast<std::uint32_t>(missed->size());
  return keeper;
}

void EventKeeper::destroy(EventKeeper* keeper) noexcept {
  destroy_charged(account::streams, keeper);
}

std::expected<void, Error> EventKeeper::publish(const ServerEvent& event) noexcept {
  {
    Locked locked(lock_);
    if (auto appended = history_.append(event); !appended) return std::unexpected(appended.error());
  }
  news();
  return {};
}

void EventKeeper::disconnect_all() noexcept {
  {
    Locked locked(lock_);
    history_.forget();
  }
  news();
}

void EventKeeper::subscribe(Exchange& exchange) noexcept {
  const Method method = exchange.request().method;
  if (method != Method::get && method != Method::head) return exchange.respond_status(405, "Allow: GET, HEAD\r\n");
  Place place = method == Method::get ? admit(exchange, options_.max_subscribers) : Place();
  if (method == Method::get && !place) return;
  const std::string_view last = exchange.request().header("Last-Event-ID");
  HistoryCursor from;
  bool missed = false;
  {
    Locked locked(lock_);
    from = options_.replay ? history_.oldest() : history_.newest();
    if (!last.empty()) {
      const auto after = history_.after(last);
      missed = !after;
      from = after.value_or(history_.oldest());
    }
  }
  ResponseHead& head = exchange.start(200);
  head.field("Content-Type", "text/event-stream");
  head.fixed("Cache-Control: no-store\r\nX-Accel-Buffering: no\r\n");
  if (method == Method::head) {
    static_cast<void>(exchange.begin_chunked());
    return;
  }
  if (!open(exchange, Opening::content)) return;
  // A server that stops closes the connection behind the head: the client comes again.
  static_cast<void>(keep(exchange, from.sequence, missed ? kHasMissed : 0, std::move(place)));
}

void EventKeeper::begin(Connection& connection, std::string_view, KeptMemory memory) noexcept {
  const bool missed = connection.part == kHasMissed;
  connection.part = 0;
  if (options_.vanished_after > 0ms) {
    kernel::give_up_after(connection.stream.fd(), static_cast<unsigned>(options_.vanished_after.count()));
  }
  // Something at once: some clients, and what lies between, tell their program nothing of a stream without a byte.
  char line[40];
  const std::string_view first =
      options_.retry > 0ms ? format(line, "retry: ", options_.retry.count(), "\n\n") : kKeepAlive;
  const bool begun = connection.stream.write(first, Deadline::after(1s)).has_value() &&
                     (!missed || connection.stream.write({missed_, missed_bytes_}, Deadline::after(1s)).has_value());
  if (!begun) return close(connection);
  send_news(connection, memory, false);
}

void EventKeeper::serve(Connection& connection, KeptMemory memory) noexcept {
  send_news(connection, memory, connection.awaits == Direction::readable);
}

void EventKeeper::send_news(Connection& connection, KeptMemory memory, bool readable) noexcept {
  for (;;) {
    if (readable && !drop_input(connection, memory.in)) return close(connection);
    const auto ahead = read_news(connection, memory.out);
    if (!ahead) return let_fall(connection);
    if (*ahead == 0) {
      if (rest(connection, Direction::readable, [&] { return has_news(connection); })) return;
      readable = true;
      continue;
    }
    const iovec part = {memory.out.data(), *ahead};
    const auto sent = connection.stream.write_some({&part, 1}, Deadline::now());
    if (sent) {
      if (!advance(connection, *sent)) return let_fall(connection);
    } else if (sent.error() != ErrorCode::timed_out) {
      return close(connection);
    } else if (rest(connection, Direction::writable, [&] { return history_.has_fallen_off(cursor(connection)); })) {
      return;
    }
  }
}

std::optional<std::size_t> EventKeeper::read_news(const Connection& connection, std::span<char> into) noexcept {
  Locked locked(lock_);
  if (history_.has_fallen_off(cursor(connection))) return std::nullopt;
  std::size_t bytes = 0;
  for (const std::string_view piece : history_.read(cursor(connection))) {
    const std::size_t fits = std::min(piece.size(), into.size() - bytes);
    memcpy(into.data() + bytes, piece.data(), fits);
    bytes += fits;
  }
  return bytes;
}

// advance is false where the connection has fallen off while its bytes were sent: what it has is not whole.
bool EventKeeper::advance(Connection& connection, std::size_t bytes) noexcept {
  Locked locked(lock_);
  if (history_.has_fallen_off(cursor(connection))) return false;
  const HistoryCursor next = history_.advance(cursor(connection), bytes);
  connection.mark = next.sequence;
  connection.part = next.offset;
  return true;
}

void EventKeeper::let_fall(Connection& connection) noexcept {
  too_slow();
  // Without an end in good order: what was sent is not all.
  abandon(connection);
  close(connection);
}

// An event that is published while the time for keep-alives comes may leave no news: each time sends what there is.
void EventKeeper::work(bool told) noexcept {
  send_to_all();
  if (told) return;
  const auto has_had_all = [this](const Connection& each, bool& over) {
    over = has_news(each);
    return !over;
  };
  send_keep_alives(
      has_had_all, [this](Connection& each) { send_news(each, {.in = dropped_, .out = piece_}, false); },
      [this](Connection& each) { close(each); });
}

Deadline EventKeeper::next_work() const noexcept {
  return options_.keep_alive > 0ms ? Deadline::after(options_.keep_alive) : Deadline::never();
}

void EventKeeper::send_to_all() noexcept {
  const KeptMemory memory = {.in = dropped_, .out = piece_};
  unsigned sent = 0;
  Slice slice;
  while (Connection* const next = take(Direction::readable, [this](const Connection& each, bool& over) {
           over = !has_news(each);
           return !over;
         })) {
    send_news(*next, memory, false);
    // To send to thousands takes tens of milliseconds.
    if (++sent % kSentInTurn == 0) slice.go_on();
  }
  while (Connection* const fallen = take(Direction::writable, [this](const Connection& each, bool&) {
           return history_.has_fallen_off(cursor(each));
         })) {
    let_fall(*fallen);
  }
}

EventHub::EventHub(const EventHubOptions& options) noexcept : keeper_(EventKeeper::create(options)) {}

EventHub::~EventHub() {
  EventKeeper::destroy(keeper_);
}

std::expected<void, Error> EventHub::publish(const ServerEvent& event) noexcept {
  if (keeper_ == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  return keeper_->publish(event);
}

void EventHub::disconnect_all() noexcept {
  if (keeper_ != nullptr) keeper_->disconnect_all();
}

void EventHub::operator()(Exchange& exchange) noexcept {
  if (keeper_ == nullptr) return exchange.respond_status(503, Hub::kComeAgain);
  keeper_->subscribe(exchange);
}

std::size_t EventHub::subscribers() const noexcept {
  return keeper_ != nullptr ? keeper_->size() : 0;
}

std::uint64_t EventHub::dropped() const noexcept {
  return keeper_ != nullptr ? keeper_->dropped_count() : 0;
}

}  // namespace coir::http
