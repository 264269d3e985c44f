#pragma once

#include <coir/cancel_scope.h>
#include <coir/detail/intrusive_list.h>
#include <coir/event.h>
#include <coir/mcp.h>
#include <coir/mutex.h>
#include <coir/spinlock.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string_view>

#include "mcp/message/message.h"
#include "mcp/message/text.h"
#include "mcp/sessions/interests.h"
#include "mcp/sessions/listeners.h"

namespace coir::mcp {

struct Session;

// ActiveCall is a legacy call under way, for notifications/cancelled. A local variable of its fiber.
struct ActiveCall {
  ActiveCall* previous = nullptr;
  ActiveCall* next = nullptr;
  MessageId id;
  CancelScope* scope = nullptr;
  bool taken = false;  // somebody cancels it, once
  Event cancelled;     // that is done
};

// OpenQuestion is what a legacy client has been asked and has not answered. A local variable of the asking fiber.
struct OpenQuestion {
  OpenQuestion* previous = nullptr;
  OpenQuestion* next = nullptr;
  std::uint32_t number = 0;
  Text* answer = nullptr;  // the result, as JSON
  bool taken = false;      // somebody writes the answer
  bool failed = false;     // it is an error
  Event answered;
};

// RecordedStream is what a legacy call has sent, kept for a client that comes again: events with their numbers, the oldest
// dropped where they are too many. Shared by the call and whoever follows it.
struct RecordedStream {
  RecordedStream* previous = nullptr;
  RecordedStream* next = nullptr;
  std::uint32_t number = 0;  // of the stream in its session, from 1
  std::uint32_t references = 1;
  std::uint32_t events = 0;   // so far; an event's number is its place, from 1
  std::uint32_t dropped = 0;  // of them
  Atomic<bool> finished = false;
  std::int64_t ended_ns = 0;
  Mutex mutex;            // guards what was recorded
  char* bytes = nullptr;  // | u32 size | event | ...
  std::uint32_t size = 0;
  std::uint32_t capacity = 0;
  Event changed;
};

// Session is a legacy client between its requests. At rest it is this record, and what it watches.
struct Session {
  static constexpr std::size_t kIdBytes = 32;

  Session* previous = nullptr;  // in the order of use, the latest last
  Session* next = nullptr;
  Session* chain = nullptr;  // of its bucket
  char id[kIdBytes];
  Principal who;
  Version version = kNewestLegacy;
  CapabilitySet capabilities = 0;
  LogLevel level = LogLevel::info;
  Atomic<bool> ended = false;
  std::uint32_t references = 1;
  std::uint32_t streams_so_far = 0;
  std::uint32_t questions_so_far = 0;
  std::int64_t used_ns = 0;
  coir::detail::IntrusiveSet<ActiveCall> calls;
  coir::detail::IntrusiveSet<OpenQuestion> questions;
  coir::detail::IntrusiveSet<RecordedStream> streams;
  Interests interests;

  std::string_view id_text() const noexcept { return {id, kIdBytes}; }
};
static_assert(sizeof(Session) <= 400, "hundreds rest at a time");

// Sessions are those of the legacy era, found by their ids. One more than is allowed takes the place of the one that
// was used longest ago. A session that is found is referred to until it is released.
class Sessions {
 public:
  Sessions(std::size_t most, std::chrono::milliseconds lifetime, Listeners& listeners) noexcept
      : most_(most), lifetime_ns_(lifetime.count() * 1'000'000), listeners_(listeners) {}
  ~Sessions();

  // open takes memory for the table. False: there is none.
  bool open() noexcept;

  // Errors: no_memory; draw_secret's.
  std::expected<Session*, Error> create(const Principal& who) noexcept;
  Session* find(std::string_view id, const Principal& who) noexcept;
  void release(Session* session) noexcept;
  // end forgets a session: its calls are cancelled, its streams end.
  void end(Session* session) noexcept;
  std::size_t size() const noexcept { return size_; }

  void begin_call(Session& session, ActiveCall& call) noexcept;
  void end_call(Session& session, ActiveCall& call) noexcept;  // waits for a cancellation that is under way
  void cancel_call(Session& session, const MessageId& id) noexcept;

  void ask(Session& session, OpenQuestion& question) noexcept;
  void give_up(Session& session, OpenQuestion& question) noexcept;  // waits for an answer that is being written
  void answer(Session& session, const Message& message) noexcept;

  // recorded_streams.cpp has these.
  //
  // begin_stream has a session remember a new stream, while there is memory; null: it is not remembered.
  RecordedStream* begin_stream(Session& session, std::size_t most_streams, std::int64_t forget_before_ns) noexcept;
  RecordedStream* find_stream(Session& session, std::uint32_t number) noexcept;
  void release_stream(Session& session, RecordedStream* stream) noexcept;
  void end_stream(Session& session, RecordedStream* stream) noexcept;

 private:
  Session** bucket(std::string_view id) noexcept;
  void make_room(std::int64_t now, Session* made) noexcept;
  void enter(Session& session) noexcept;   // with the lock
  void unlink(Session& session) noexcept;  // with the lock
  // cancel_calls cancels those of that id, or all, without the lock.
  void cancel_calls(Session& session, const MessageId* id, const char* reason) noexcept;
  void wake_followers(Session& session) noexcept;
  void destroy(Session* session) noexcept;

  Spinlock lock_;
  coir::detail::IntrusiveList<Session> order_;
  Session** buckets_ = nullptr;
  std::size_t bucket_count_ = 0;
  std::size_t size_ = 0;
  const std::size_t most_;
  const std::int64_t lifetime_ns_;
  Listeners& listeners_;
};

// forget frees a stream that is in no list.
void forget(RecordedStream* stream) noexcept;
// record adds an event to a stream, and read_recorded copies the first behind number `after` into `into`, and returns
// its number; 0: there is none yet.
void record(RecordedStream& stream, std::string_view event, std::size_t most) noexcept;
std::uint32_t read_recorded(RecordedStream& stream, std::uint32_t after, Text& into) noexcept;
// has_recorded tells whether read_recorded would find one.
bool has_recorded(RecordedStream& stream, std::uint32_t after) noexcept;

}  // namespace coir::mcp
