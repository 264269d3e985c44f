#pragma once

#include <coir/config.h>

#if !COIR_NO_ASYNC
#include <coir/cancel_scope.h>
#include <coir/cancellation.h>
#include <coir/event.h>
#include <coir/resting_wait.h>
#include <coir/select.h>

#include <optional>
#endif

#include "http/connection/connection.h"

namespace coir::http {

class Engine;
struct Session;

// HandlerWatch ends a handler's waits for other things than its client once the client is gone, has ended its side, or
// the server stops: otherwise a handler that waits would outlive its client. It is the scope around all that the
// handler does. http/concurrent/handler_watch.cpp has it; without fibers nobody looks at a client while its handler waits.
//
//   begin     a handler runs
//               about_to_wait   the connection's record sleeps on the socket, and a hang-up wakes it (woken)
//               pause           the handler turns to its client, and hears of a hang-up by reading and writing; or it
//                               waits for the blocking pool, whose work is not ended by the end of a client
//               resume
//   end       the record is the session's again
//
// The stop is told by Engine::stops, as it is to streams that a handler has taken over (Detached, WebSocket).
//
// A reset cancels the scope in any case. An end of the client's side and the server's stop cancel it only when the
// handler waits for something else than its client, for one that is writing its answer goes on.
//
// A handler that begins such a wait offers its place to others (ActivePlace).
//
// A handler that never waits costs its begin and end. One that waits has a system call when more arrives from its
// client meanwhile. On a kernel without epoll a hang-up behind bytes that nobody reads goes unnoticed until the next
// wait: ppoll would report the bytes over and over.
#if COIR_NO_ASYNC

class HandlerWatch {
 public:
  explicit HandlerWatch(Engine&) noexcept {}
  void meet(Connection&, Session&) noexcept {}
  void begin() noexcept {}
  bool end() noexcept { return false; }
  bool pause() noexcept { return false; }
  void resume() noexcept {}
  void glance() noexcept {}
  void lost() noexcept {}
  bool lend_place(bool) noexcept { return false; }
};

#else

class HandlerWatch : coir::detail::Scope {
 public:
  // The fiber that serves enters the scope here, and leaves it in the end.
  explicit HandlerWatch(Engine& engine) noexcept;
  ~HandlerWatch();
  HandlerWatch(const HandlerWatch&) = delete;
  HandlerWatch& operator=(const HandlerWatch&) = delete;

  // meet names the connection that is served from now on, and the session that serves it.
  void meet(Connection& connection, Session& session) noexcept {
    connection_ = &connection;
    session_ = &session;
    if (client_.load(std::memory_order_relaxed) != Client::there) forget();
  }
  // begin and end surround a handler, pause and resume each use of the connection meanwhile; outside a handler the
  // latter do nothing. end and pause may yield. True: something has been heard of the socket that no reader was told
  // of.
  void begin() noexcept {
    state_ = State::runs;
    outlives_stop_ = false;
  }
  bool end() noexcept {
    state_ = State::none;
    return used_ && finish();
  }
  bool pause() noexcept {
    if (state_ != State::runs) return false;
    state_ = State::paused;
    return watching_ ? let_go() : take_noticed();
  }
  void resume() noexcept {
    if (state_ == State::paused) state_ = State::runs;
  }
  // glance asks the kernel whether the client is still there, where its hang-up may have been heard by others.
  void glance() noexcept;
  // lost tells that the connection has failed, or was ended for others.
  void lost() noexcept;
  // lend_place offers the place before a wait for the client, unless a child of the handler lives, which may be what
  // waits. hold follows the wait. False: nobody can have the place meanwhile.
  bool lend_place(bool keeps_buffers) noexcept;
  // outlive_stop has this handler's waits go on when the server stops, which then waits for its answer.
  void outlive_stop() noexcept { outlives_stop_ = true; }

  // These are Exchange's functions of the same names.
  Case client_gone() noexcept;
  Case stopping() noexcept;

 private:
  enum class State : std::uint8_t { none, runs, paused };
  enum class Client : std::uint8_t { there, ended, gone };

  static const char* about_to_wait(Scope& scope) noexcept;
  static bool work(Scope& scope, bool begins) noexcept;
  static void woken(RestingWait& resting) noexcept;
  static Client look(int fd) noexcept;
  // take_noticed tells once that the socket's edge was taken.
  bool take_noticed() noexcept {
    return noticed_.load(std::memory_order_relaxed) && noticed_.exchange(false, std::memory_order_relaxed);
  }
  void attend() noexcept;
  bool server_stops() noexcept;
  void offer_place() noexcept;
  bool has_children() noexcept;
  void forget() noexcept;
  bool sleep(Client& client) noexcept;
  void tell(Client client) noexcept;
  bool let_go() noexcept;
  bool finish() noexcept;

  Engine& engine_;
  Connection* connection_ = nullptr;
  Session* session_ = nullptr;
  RestingWait::Wake wake_ = nullptr;  // the connection's own
  Event gone_;  // client_ is no longer `there`; set where no wait of the owner has begun, or on a worker's own stack
  State state_ = State::none;
  bool used_ = false;  // by this handler: `end` has something to undo
  bool outlives_stop_ = false;
  bool watching_ = false;         // the record is used, and stop_watch_ there
  Atomic<bool> asleep_ = false;   // the record sleeps, or its wake runs
  Atomic<bool> noticed_ = false;  // the socket's edge was taken
  Atomic<Client> client_ = Client::there;
  std::optional<CancellationWatch> stop_watch_;
};

#endif

}  // namespace coir::http
