#pragma once

#include <coir/cancellation.h>
#include <coir/error.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string_view>

#include "hub/hub.h"
#include "mcp/message/message.h"
#include "mcp/sessions/interests.h"

namespace coir::mcp {

struct Session;

// Listener is a stream that rests: the answer to subscriptions/listen, or to a legacy session's GET. Its connection's
// mark is its address, and part how much of the event under way has been sent.
struct Listener {
  Interests* interests = nullptr;  // its own, or the session's
  Interests own = {};
  Session* session = nullptr;  // legacy
  Watched* current = nullptr;  // with `item` watched: what is being sent
  std::uint32_t number = 0;    // of the event being sent; legacy
  bool retired = false;        // another stream, or none, takes its place; guarded by the listeners' lock
  enum class Item : std::uint8_t { none, tools, resources, prompts, watched } item = Item::none;
  bool id_is_text = false;
  std::uint8_t id_bytes = 0;  // of a text, which stands behind
  std::int64_t id_number = 0;

  MessageId id() const noexcept {
    return {.given = true,
            .is_text = id_is_text,
            .number = id_number,
            .text = {reinterpret_cast<const char*>(this + 1), id_bytes}};
  }
};

// Listeners keeps the streams that listen, as an EventHub keeps subscribers; but instead of a history each has a few
// bits of what it has not been told yet.
class Listeners final : public http::Hub {
 public:
  static constexpr std::size_t kMostUri = 512;
  static constexpr std::size_t kMostResources = 32;  // of a request of subscriptions/listen
  static constexpr std::size_t kMostId = 64;

  struct Options {
    std::chrono::milliseconds keep_alive;
    std::chrono::milliseconds retry;
    std::size_t most;
  };
  explicit Listeners(const Options& options) noexcept : Hub("mcp listeners"), options_(options) {}
  // Sessions that listeners refer to outlive it.
  void end_all() noexcept { leave_all(); }

  // enter and leave have interests told of what comes about; leave gives back what is watched and retires the stream.
  void enter(Interests& interests) noexcept;
  void leave(Interests& interests) noexcept;
  // watch adds a resource; false: it is watched already. Errors: no_memory, limit (too long a URI, or too many).
  std::expected<bool, Error> watch(Interests& interests, std::string_view uri, std::size_t most) noexcept;
  void unwatch(Interests& interests, std::string_view uri) noexcept;
  // resume makes pending again what was told by events behind `number`.
  void resume(Interests& interests, std::uint32_t number) noexcept;

  void list_changed(ListBits lists) noexcept;
  void updated(std::string_view uri) noexcept;
  // wants tells whether any client wants to hear of a resource.
  bool wants(std::string_view uri) noexcept;

  // make_listener makes one for a request of subscriptions/listen, or with a session for its GET: then the session's
  // earlier stream ends. If the session has ended, the new one ends at once, too. Null: no memory.
  Listener* make_listener(const MessageId& id, Session* session, Interests* interests) noexcept;
  void drop_listener(Listener* listener) noexcept;
  // listen answers the exchange with the listener's stream, or drops the listener and answers 503.
  void listen(http::Exchange& exchange, Listener* listener) noexcept;

  // pick chooses what a listener is sent next, if nothing is under way. False: there is nothing. True with no item: it is
  // retired. sent is called when all of it has been written.
  bool pick(Listener& one) noexcept;
  void sent(Listener& one) noexcept;

  // attach_to has the server of `exchange` tell of its stop, which ends `stops`.
  void attach_to(http::Exchange& exchange) noexcept;
  CancellationToken stops() noexcept { return stopping_source_.token(); }

  // release_session is called with the session of a listener that has gone.
  void (*release_session)(void* context, Session* session) noexcept = nullptr;
  void* context = nullptr;

  // These are Hub's and Keeper's.
  void begin(http::Connection& connection, std::string_view sent, http::KeptMemory memory) noexcept override;
  void serve(http::Connection& connection, http::KeptMemory memory) noexcept override;
  void farewell(http::Connection& connection) noexcept override;
  void dropped(std::uint64_t mark) noexcept override;
  void stopping() noexcept override;
  void work(bool told) noexcept override;
  Deadline next_work() const noexcept override;

 private:
  static constexpr std::size_t kPieceBytes = 4608;

  static Listener& listener(const http::Connection& connection) noexcept {
    return *reinterpret_cast<Listener*>(static_cast<std::uintptr_t>(connection.mark));
  }
  bool has_news(const Listener& one) const noexcept {  // with the lock
    return one.retired || one.item != Listener::Item::none || one.interests->any_pending();
  }
  void send_to_all() noexcept;
  void send_news(http::Connection& connection, http::KeptMemory memory, bool readable) noexcept;
  // let_go ends that a listener sends what it has picked, with the lock; it returns the record if that is to be freed,
  // without the lock, by forget.
  static Watched* let_go(Listener& one) noexcept;
  static void forget(Watched* watched) noexcept;
  void end(http::Connection& connection) noexcept;

  const Options options_;
  coir::detail::IntrusiveList<Interests> interests_;  // guarded by lock_
  Deadline keep_alive_at_ = Deadline::never();
  CancellationSource stopping_source_;
  char piece_[kPieceBytes];  // the fiber's
  char dropped_[64];         // what clients say
};

// listener_events.cpp: what is written to a listener, into `out`: the first event, those that tell of something, and the last.
std::string_view write_acknowledged(const Listener& one, std::span<char> out) noexcept;
std::string_view write_news(const Listener& one, std::span<char> out) noexcept;
std::string_view write_last(const Listener& one, std::span<char> out) noexcept;

}  // namespace coir::mcp
