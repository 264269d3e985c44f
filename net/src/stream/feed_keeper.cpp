#include "stream/feed_keeper.h"

#include <coir/detail/fatal.h>
#include <coir/format.h>
#include <coir/http/accounts.h>
#include <string.h>

#include <algorithm>
#include <memory>

#include "http/session/engine.h"
#include "socket/charged.h"
#include "socket/kernel.h"
#include "socket/turn.h"
#include "stream/event_encoder.h"

namespace coir::http {
namespace {

using namespace std::chrono_literals;

// What the record of a subscriber that has to be told of missed events says until begin has read it.
constexpr std::uint32_t kHasMissed = 1;

// The sender sends to so many before it asks whether others have waited for long.
constexpr unsigned kSentInTurn = 32;

}  // namespace

std::expected<FeedKeeper*, Error> FeedKeeper::create(const FeedOptions& options) noexcept {
  auto history = History::create({.bytes = options.history_bytes, .events = options.history_events}, account::streams);
  if (!history) return std::unexpected(history.error());
  void* const memory = take_charged(account::streams, sizeof(FeedKeeper));
  if (memory == nullptr) return std::unexpected(ErrorCode::no_memory);
  auto* const keeper = ::new (memory) FeedKeeper(options, std::move(*history));
  const auto missed = encode_event(options.missed, keeper->missed_);
  if (!missed) {
    destroy(keeper);
    return std::unexpected(missed.error());
  }
  keeper->missed_bytes_ = static_cast<std::uint32_t>(missed->size());
  return keeper;
}

void FeedKeeper::destroy(FeedKeeper* keeper) noexcept {
  if (!keeper->stopped()) coir::detail::fatal("a feed is destroyed before its server has stopped");
  destroy_charged(account::streams, keeper);
}

FeedKeeper::FeedKeeper(const FeedOptions& options, History&& history) noexcept
    : options_(options), history_(std::move(history)) {}

void FeedKeeper::subscribe(Exchange& exchange) noexcept {
  const Method method = exchange.request().method;
  if (method != Method::get && method != Method::head) return exchange.respond_status(405, "Allow: GET, HEAD\r\n");
  // The server has to know of the feed before anything of the feed's runs, which it ends when it stops.
  if (method == Method::get && (size() >= options_.max_subscribers || !attach(exchange) || !start_sender())) {
    return exchange.respond_status(503, "Retry-After: 5\r\n");
  }
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
  static_cast<void>(keep(exchange, from.sequence, missed ? kHasMissed : 0));
}

void FeedKeeper::begin(Connection& connection, std::string_view, KeptMemory memory) noexcept {
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

void FeedKeeper::serve(Connection& connection, KeptMemory memory) noexcept {
  send_news(connection, memory, connection.awaits == Direction::readable);
}

void FeedKeeper::send_news(Connection& connection, KeptMemory memory, bool readable) noexcept {
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

std::optional<std::size_t> FeedKeeper::read_news(const Connection& connection, std::span<char> into) noexcept {
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
bool FeedKeeper::advance(Connection& connection, std::size_t bytes) noexcept {
  Locked locked(lock_);
  if (history_.has_fallen_off(cursor(connection))) return false;
  const HistoryCursor next = history_.advance(cursor(connection), bytes);
  connection.mark = next.sequence;
  connection.part = next.offset;
  return true;
}

// drop_input is false when the client has hung up, or goes on talking.
bool FeedKeeper::drop_input(Connection& connection, std::span<char> into) noexcept {
  constexpr int kMost = 8;
  for (int reads = 0; reads < kMost; ++reads) {
    const auto got = connection.stream.read(into, Deadline::now());
    if (!got) return got.error() == ErrorCode::timed_out;
    if (connection.stream.drained()) return true;
  }
  return false;
}

void FeedKeeper::let_fall(Connection& connection) noexcept {
  fallen_off_.fetch_add(1, std::memory_order_relaxed);
  // Without an end in good order: what was sent is not all.
  connection.stream.abandon();
  close(connection);
}

void FeedKeeper::send_to_all() noexcept {
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

// send_keep_alives goes round the subscribers once. One whose socket does not take three bytes after so long a silence
// is gone.
void FeedKeeper::send_keep_alives() noexcept {
  put_off_keep_alive();
  const KeptMemory memory = {.in = dropped_, .out = piece_};
  const iovec comment = {const_cast<char*>(kKeepAlive.data()), kKeepAlive.size()};
  for (std::size_t left = size(); left > 0; --left) {
    Connection* const next = take(Direction::readable, [this](const Connection& each, bool& over) {
      over = has_news(each);
      return !over;
    });
    if (next == nullptr) break;
    const auto sent = next->stream.write_some({&comment, 1}, Deadline::now());
    if (!sent || *sent != kKeepAlive.size()) {
      close(*next);
    } else {
      send_news(*next, memory, false);
    }
  }
}

void FeedKeeper::put_off_keep_alive() noexcept {
  keep_alive_at_ = options_.keep_alive > 0ms ? Deadline::after(options_.keep_alive) : Deadline::never();
}

#if COIR_NO_ASYNC

std::expected<void, Error> FeedKeeper::publish(const ServerEvent& event) noexcept {
  if (auto appended = history_.append(event); !appended) return std::unexpected(appended.error());
  put_off_keep_alive();
  if (engine() != nullptr) send_to_all();
  return {};
}

bool FeedKeeper::start_sender() noexcept {
  if (keep_alive_at_ == Deadline::never()) put_off_keep_alive();
  return true;
}

void FeedKeeper::stopping() noexcept {}

bool FeedKeeper::stopped() noexcept {
  return size() == 0;
}

#else

std::expected<void, Error> FeedKeeper::publish(const ServerEvent& event) noexcept {
  {
    Locked locked(lock_);
    if (auto appended = history_.append(event); !appended) return std::unexpected(appended.error());
  }
  published_.store(true, std::memory_order_relaxed);
  news_.set();
  return {};
}

// start_sender spawns the sender for the first subscriber. False: there is no stack for it.
bool FeedKeeper::start_sender() noexcept {
  if (started_.exchange(true, std::memory_order_acq_rel)) return true;
  runs_.store(true, std::memory_order_relaxed);
  const Fiber sender = spawn({.name = "http feed", .stack = 8_KiB}, [this]() noexcept { run_sender(); });
  if (sender.started()) return true;
  runs_.store(false, std::memory_order_relaxed);
  started_.store(false, std::memory_order_release);
  return false;
}

void FeedKeeper::run_sender() noexcept {
  put_off_keep_alive();
  while (!stops_.load(std::memory_order_acquire)) {
    const auto told = news_.wait(keep_alive_at_);
    if (!told && (told.error() != ErrorCode::timed_out || told.error().ends_waits())) break;
    // What is published from here on sets it again.
    news_.reset();
    if (stops_.load(std::memory_order_acquire)) break;
    send_to_all();
    if (published_.exchange(false, std::memory_order_relaxed)) {
      put_off_keep_alive();
    } else if (keep_alive_at_.passed()) {
      send_keep_alives();
    }
  }
  // release pairs with the acquire in stopped: nothing of the feed is touched from here on.
  runs_.store(false, std::memory_order_release);
}

void FeedKeeper::stopping() noexcept {
  stops_.store(true, std::memory_order_release);
  news_.set();
}

bool FeedKeeper::stopped() noexcept {
  return size() == 0 && !runs_.load(std::memory_order_acquire);
}

#endif

}  // namespace coir::http
