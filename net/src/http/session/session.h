#pragma once

#include <coir/deadline.h>
#include <coir/error.h>
#include <coir/http/exchange.h>
#include <coir/http/wire/request.h>
#include <coir/http/wire/response.h>
#include <coir/wait.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string_view>

#include "http/connection/active_place.h"
#include "http/connection/kept_head.h"
#include "http/message/chunked_content.h"
#include "http/session/session_buffers.h"

namespace coir::http {

class Engine;
class HandlerWatch;
class LogLine;
class Keeper;
struct Suspended;
struct Forwarding;
struct Connection;
enum class Owes : std::uint8_t;

// Session is what a fiber serves a connection with while there is something to serve: the parsed request, the state of
// its content and of the response, and buffers. It lies on the fiber's stack, and serves many connections in turn.
//
// A function that touches the buffers begins with `hold`, because a handler that has waited may have none.
struct Session : ActivePlace {
 public:
  // As much content that nobody wants is read, so that the connection may be kept. Before more of it is read the answer
  // is given and the connection closed.
  static constexpr std::uint64_t kMostUnwanted = 64 * 1024;
  static constexpr std::size_t kOutputBytes = SessionBuffers::kOutputBytes;
  static constexpr std::size_t kMaxHeadBytes = SessionBuffers::kMaxHeadBytes;
  static constexpr std::size_t kInputBytes = SessionBuffers::kInputBytes;

  Session(Engine& engine, SessionBuffers& lent) noexcept : engine_(engine) { buffers = &lent; }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // of is the session behind an exchange.
  static Session& of(Exchange& exchange) noexcept { return exchange.session_; }
  Engine& engine() noexcept { return engine_; }

  // serve answers what the connection has sent, until it is asleep again or closed. Then the session serves whoever
  // waits for one, and goes back to the pool. `watch` is the calling fiber's.
  void serve(Connection& connection, HandlerWatch& watch) noexcept;

  // has_own_host tells whether the request is for a name of this machine.
  bool has_own_host() const noexcept;

  // offer lets others have the place and what of the buffers is not needed, because the handler is about to wait for
  // somebody else. `shared`: its children may use the exchange meanwhile. On the handler's fiber, or on a child's if `shared`.
  void offer(bool shared) noexcept;

 private:
  friend class Exchange;
  friend class Keeper;
  friend class Detached;
  friend class ForwardKeeper;
  friend struct Forwarding;
  friend struct FastCgiExchange;
  friend struct RelayedExchange;
  friend class AnswerKeeper;

  // The connection's next state.
  enum class After : std::uint8_t { go_on, rest, close, linger, kept, detached };
  enum class Phase : std::uint8_t { none, head, content };
  enum class Content : std::uint8_t { fixed, chunked, until_close, upgrade, empty };

  // handshake.cpp, in a build with TLS
  bool begin_handshake() noexcept;
  After advance_handshake() noexcept;

  // session.cpp: the connection
  After run() noexcept;
  After answer_parsed() noexcept;
  bool is_misdirected() const noexcept;
  After answer_arrived() noexcept;
  void linger() noexcept;
  // These are the engine's.
  void begin_waiting(Direction direction, Owes owes, Deadline deadline) noexcept;
  // begin_content_wait is begin_waiting for content, with the place offered. `soon`: the exchange rests before long.
  void begin_content_wait(Direction direction, bool soon, bool keeps_buffers, Deadline deadline) noexcept;
  bool end_waiting() noexcept;
  // Use pauses the watch over the handler for a call that uses the connection, or for what is left of an outer one.
  class Use {
   public:
    explicit Use(Session& session) noexcept;
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    Session& session_;
    bool pauses_;
  };
  void end_content() noexcept;
  After finish() noexcept;
  void begin_answer(std::int64_t now_ns) noexcept;
  After end_answer() noexcept;
  // kept_exchange.cpp: what goes to keepers and comes back
  After resume(Keeper& keeper, const Suspended& exchange) noexcept;
  After hand_over() noexcept;
  void serve_kept(Connection& connection) noexcept;

  // places.cpp: hold comes before each use of the buffers. It may wait until there is a place for the handler, which
  // ends by nothing else.
  void hold() noexcept {
    if (offered.load(std::memory_order_relaxed)) [[unlikely]]
      reclaim();
  }
  void reclaim() noexcept;
  bool needs_buffers() const noexcept;
  void release_buffer() noexcept;
  void give_back_pages() noexcept;

  // request_head.cpp: the request's head
  std::expected<std::size_t, Error> read_input(Deadline deadline) noexcept;
  void compact() noexcept;
  std::expected<std::size_t, Error> read_rest_of_head() noexcept;
  std::expected<std::size_t, Error> read_what_is_there() noexcept;
  void take_half_head() noexcept;
  void refuse(int status) noexcept;

  // request_body.cpp: the request's content
  void begin_body(std::size_t head_bytes) noexcept;
  // take_body delivers content; with `into` null it drops what comes.
  std::expected<std::size_t, Error> take_body(char* into, std::size_t size) noexcept;
  std::expected<std::size_t, Error> take_fixed(char* into, std::size_t size) noexcept;
  std::expected<std::size_t, Error> take_chunked(char* into, std::size_t size) noexcept;
  std::expected<std::size_t, Error> read_for_body(std::span<char> into) noexcept;
  std::expected<void, Error> begin_taking() noexcept;
  Deadline body_deadline(std::int64_t now_ns) const noexcept;
  std::expected<bool, Error> await_content(int beside, bool may_wait = true,
                                           Deadline patience = Deadline::never()) noexcept;
  bool skip_body() noexcept;
  std::unexpected<Error> body_failed(Error error) noexcept;
  std::string_view trailer(std::string_view name) const noexcept;
  bool holds_trailers() const noexcept { return chunks_.trailer_bytes() != 0; }

  // trailers.cpp: what follows its content
  std::expected<void, Error> add_trailer(std::string_view name, std::string_view value) noexcept;
  std::expected<void, Error> end_chunks() noexcept;

  // response_writer.cpp: the response
  ResponseHead& start(int status) noexcept;
  void add_fields(std::string_view lines) noexcept;
  std::expected<void, Error> begin_content(Content kind, std::uint64_t bytes) noexcept;
  std::expected<void, Error> write(std::string_view content) noexcept;
  std::expected<void, Error> send_file(int file, std::uint64_t offset, std::uint64_t count) noexcept;
  void answer(int status, std::string_view type, std::string_view content, std::string_view fields) noexcept;
  void answer_status(int status, std::string_view fields) noexcept;
  std::expected<void, Error> append(std::string_view bytes) noexcept;
  std::expected<void, Error> send(std::span<iovec> parts, bool more_follows) noexcept;
  std::expected<void, Error> flush(bool more_follows = false) noexcept;
  template <class Attempt>
  std::expected<std::size_t, Error> send_patiently(Attempt attempt) noexcept;
  std::unexpected<Error> broken(Error error) noexcept;
  std::unexpected<Error> cut_short(Error error) noexcept;
  std::int64_t now() noexcept;

  // access_log.cpp: told_end follows the answer, or what there is of it. forget_notes begins an exchange of which
  // nothing is noted.
  void forget_notes() noexcept {
    log_why_ = nullptr;
    log_id_ = {};
  }
  void told_end() noexcept;
  // told_stream follows the head of a stream, whose line in the log is written by end_log.
  void told_stream() noexcept;
  void count_end() noexcept;
  void log_access() noexcept;
  void compose(LogLine& line, const char** gaps) noexcept;

  std::size_t output_room() const noexcept { return kOutputBytes - out_used_; }

  // ends_by_close tells whether the end of the content is the connection's.
  bool ends_by_close() const noexcept {
    return content_kind_ == Content::until_close || content_kind_ == Content::upgrade;
  }
  // may_be_kept tells whether the connection may stay open behind what the handler has answered.
  bool may_be_kept() const noexcept { return keeper_ == nullptr && has_begun_content() && ends_by_close(); }
  bool has_begun_content() const noexcept { return phase_ == Phase::content && !head_only_ && body_done_; }

  Engine& engine_;
  Connection* connection_ = nullptr;
  HandlerWatch* watch_ = nullptr;

  // The keeper of the connection once the handler has returned, and the word that it stores in the record.
  Keeper* keeper_ = nullptr;
  std::uint64_t mark_ = 0;
  std::uint32_t part_ = 0;
  bool suspended_ = false;  // the exchange goes on when `keeper_` says so

  std::uint32_t begin_ = 0;
  std::uint32_t end_ = 0;
  std::uint32_t seen_ = 0;  // bytes that parse_head has been shown already
  std::uint32_t out_used_ = 0;
  // If the client takes nothing for so long, `send` fails with timed_out, and the last `unsent_` bytes of what it was given are
  // unsent; the connection is in order. 0: `send` waits for as long as ServerOptions::write_timeout allows.
  std::chrono::milliseconds patience_{0};
  std::size_t unsent_ = 0;
  Deadline head_deadline_;

  // The request's content.
  std::uint32_t head_end_ = 0;
  std::uint32_t body_at_ = 0;
  std::uint64_t body_left_ = 0;
  ChunkedContent chunks_;
  std::chrono::milliseconds body_timeout_{0};  // ServerOptions::body_timeout and body_rate, or the handler's own
  std::uint32_t body_rate_ = 0;
  std::int64_t body_waited_ns_ = 0;  // for which the client has been waited for, to send it
  bool body_begun_ = false;          // the handler has asked for it
  bool body_done_ = true;
  bool only_looks_ = false;  // if nothing more has come, reading it fails with timed_out instead of waiting
  bool unwanted_ = false;    // nobody wants it, and there is too much of it to be read to its end
  std::uint16_t fault_ = 0;  // the status that answers what was wrong with the content; 0 none

  // The response.
  Phase phase_ = Phase::none;
  Content content_kind_ = Content::fixed;
  bool keep_ = true;         // the connection, after this exchange
  bool broken_ = false;      // the connection cannot carry anything any more
  bool cut_short_ = false;   // the answer is not whole, which is not the connection's fault
  bool look_again_ = false;  // the socket may hold more than the stream knows of
  bool detached_ = false;    // the connection belongs to a handler, and the session serves others
  bool hurried_ = false;     // others have waited for long: the next answer is this connection's last
  bool head_only_ = false;
  std::uint16_t status_ = 0;
  std::uint16_t added_ = 0;  // bytes of added_fields; one more than there are: they did not fit. Behind the head of a
                             // response they are its trailers
  const Exchange::ErrorLook* error_look_ = nullptr;  // the server's, or own_look_; null: it has been called
  Exchange::ErrorLook own_look_;                     // of this exchange
  std::uint64_t content_left_ = 0;
  std::uint64_t content_sent_ = 0;
  // The access log says two things more of the exchange: a word, and a name of the request's head or of
  // made_id_.
  const char* log_why_ = nullptr;
  std::string_view log_id_ = {};
  char made_id_[16];
  std::uint64_t max_body_ = 0;  // of its content, if it comes in chunks
  std::int64_t now_ = 0;        // 0: not read yet for this exchange
  // For which the client has been waited for in this exchange, whichever way content goes.
  std::int64_t client_waited_ns_ = 0;
  std::int64_t began_ns_ = 0;  // when the head was whole, on the monotonic clock
  std::int64_t ended_ns_ = 0;  // when the answer was made; 0: none was, or the client has been waited for since
  ResponseHead head_{std::span<char>()};

  Request request_;
  KeptHead kept_head_;
  // The use of the buffers, beside the numbers above: the handler has been given memory, or the head is in them.
  bool lends_scratch_ = false;
  bool lends_path_ = false;
  bool head_in_buffers_ = false;
  bool releases_ = false;  // the pages that hold nothing go when the handler waits
};

// OwnSession is a session with buffers that nobody else uses. The session comes first, on a page that is in use already.
struct OwnSession {
  explicit OwnSession(Engine& engine) noexcept : session(engine, buffers) {}

  Session session;
  SessionBuffers buffers;
};

}  // namespace coir::http
