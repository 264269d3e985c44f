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
// Its children may use the exchange while it waits: pause and resume are theirs then, on another worker too. One that resumes
// watches again for the handler, which waits on.
//
// A handler that begins such a wait offers its place to others (ActivePlace); a child takes it for the moment of a call.
//
// A handler that never waits costs its begin and end, and an atomic exchange for each use. One that waits has a system
// call when more arrives from its client meanwhile. On a kernel without epoll a hang-up behind bytes that nobody reads
// goes unnoticed until the next wait: ppoll would report the bytes over and over.
#if COIR_NO_ASYNC

class HandlerWatch {
 public:
  explicit HandlerWatch(Engine&) noexcept {}
  void meet(Connection&, Session&) noexcept {}
  void begin() noexcept {}
  bool end() noexcept { return false; }
  bool pause(bool&) noexcept { return false; }
  void resume() noexcept {}
  bool is_owners() const noexcept { return true; }
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
  // begin and end surround a handler. pause begins a use of the connection meanwhile, and resume ends it where pause was true:
  // it is not outside a handler, nor within another use. All but begin may yield. `noticed`, or end's result: something has been
  // heard of the socket that no reader was told of.
  void begin() noexcept {
    outlives_stop_.store(false, std::memory_order_relaxed);
    missed_.store(false, std::memory_order_relaxed);
    works_.store(false, std::memory_order_relaxed);
    state_.store(State::runs, std::memory_order_relaxed);
  }
  bool end() noexcept {
    state_.store(State::none, std::memory_order_relaxed);
    return used_.load(std::memory_order_relaxed) && finish();
  }
  bool pause(bool& noticed) noexcept {
    if (state_.load(std::memory_order_relaxed) == State::none) return false;
    const bool own = is_owners();
    if (!enter(own ? State::owner_uses : State::child_uses)) return false;
    noticed = take_back(own);
    return true;
  }
  void resume() noexcept {
    const State seen = state_.load(std::memory_order_relaxed);
    if (seen == State::owner_uses) leave_to_others();
    if (seen != State::child_uses) return;
    // seq_cst here and in about_to_wait: a wait that begins finds `runs`, or is seen to have been missed.
    state_.store(State::runs, std::memory_order_seq_cst);
    if (missed_.load(std::memory_order_seq_cst)) watch_for_owner();
  }
  // is_owners tells whether the caller is the handler's own fiber, not a child.
  bool is_owners() const noexcept { return coir::detail::is_owner(*this); }
  // glance asks the kernel whether the client is still there, where its hang-up may have been heard by others.
  void glance() noexcept;
  // lost tells that the connection has failed, or was ended for others.
  void lost() noexcept;
  // lend_place offers the place before a wait for the client, but not for a child, whose handler may compute. hold follows the
  // wait. False: nobody can have the place meanwhile.
  bool lend_place(bool keeps_buffers) noexcept;
  // outlive_stop has this handler's waits go on from now on when the server stops, which then waits for its answer. It may
  // yield.
  void outlive_stop() noexcept;

  // These are Exchange's functions of the same names.
  Case client_gone() noexcept;
  Case stopping() noexcept;

 private:
  // attends: a fiber sets up the watch or takes it back. The fiber that has changed `runs` into another state alone touches what
  // it guards, until it is `runs` again: stop_watch_, wake_, watching_ and the record.
  enum class State : std::uint8_t { none, runs, attends, owner_uses, child_uses };
  enum class Client : std::uint8_t { there, ended, gone };

  static const char* about_to_wait(Scope& scope) noexcept;
  static bool work(Scope& scope, bool begins) noexcept;
  static void woken(RestingWait& resting) noexcept;
  static Client look(int fd) noexcept;
  // take_noticed tells once that the socket's edge was taken.
  bool take_noticed() noexcept {
    return noticed_.load(std::memory_order_relaxed) && noticed_.exchange(false, std::memory_order_relaxed);
  }
  // enter changes `runs` into that state; where another fiber is in `attends`, it yields until that has left it. False: no
  // handler runs, or somebody uses the exchange.
  bool enter(State state) noexcept {
    State seen = State::runs;
    // It reads the release that made it `runs`. seq_cst: see works_.
    return state_.compare_exchange_strong(seen, state, std::memory_order_seq_cst) ||
           (seen == State::attends && enter_behind(state));
  }
  bool enter_behind(State state) noexcept;
  void leave_to_others() noexcept { state_.store(State::runs, std::memory_order_release); }
  bool take_back(bool own) noexcept {
    if (!watching_) return take_noticed();
    if (!own) missed_.store(true, std::memory_order_relaxed);
    return let_go();
  }
  void attend() noexcept;
  void watch_for_owner() noexcept;
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
  Event gone_;  // client_ is no longer `there`; the owner's own fiber sets it only where it has begun no wait
  Atomic<State> state_ = State::none;
  Atomic<bool> missed_ = false;  // the owner's wait, if it is in one, has no watch
  // The owner has work done by the pool, whose wait is not ended by the end of a client. seq_cst: either the owner finds that
  // no child uses the exchange, or the child that watches for it finds this.
  Atomic<bool> works_ = false;
  Atomic<bool> used_ = false;  // by this handler: `end` has something to undo
  Atomic<bool> outlives_stop_ = false;
  bool watching_ = false;         // the record is used, and stop_watch_ there
  Atomic<bool> asleep_ = false;   // the record sleeps, or its wake runs
  Atomic<bool> noticed_ = false;  // the socket's edge was taken
  Atomic<Client> client_ = Client::there;
  std::optional<CancellationWatch> stop_watch_;
};

#endif

}  // namespace coir::http
