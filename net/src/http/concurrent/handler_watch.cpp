#include "http/connection/handler_watch.h"

#include <poll.h>

#include "http/session/engine.h"
#include "http/session/session.h"

namespace coir::http {
namespace {

constexpr const char* kGone = "the client is gone";
constexpr const char* kEnded = "the client has ended its side";

}  // namespace

HandlerWatch::HandlerWatch(Engine& engine) noexcept : engine_(engine) {
  before_wait = about_to_wait;
  around_work = work;
  coir::detail::enter(*this, Deadline::never());
}

HandlerWatch::~HandlerWatch() {
  coir::detail::leave(*this);
}

// about_to_wait is before_wait: everything that could have ended a wait before this one began is looked at here, and
// all that comes later finds the wait, as cancel_waiting says.
const char* HandlerWatch::about_to_wait(Scope& scope) noexcept {
  auto& self = static_cast<HandlerWatch&>(scope);
  if (self.works_.load(std::memory_order_relaxed)) return nullptr;
  State seen = State::runs;
  if (!self.state_.compare_exchange_strong(seen, State::attends, std::memory_order_acquire,
                                           std::memory_order_relaxed)) {
    if (seen == State::none || seen == State::owner_uses) return nullptr;
    // A child uses the exchange, and watches behind that, in watch_for_owner. Its call goes on without the place.
    self.missed_.store(true, std::memory_order_seq_cst);
    seen = State::runs;
    if (!self.state_.compare_exchange_strong(seen, State::attends, std::memory_order_seq_cst)) {
      self.session_->offer(true);
      return nullptr;
    }
  }
  self.attend();
  const Client client = self.client_.load(std::memory_order_relaxed);
  const bool stops = client == Client::there && self.server_stops();
  self.leave_to_others();
  // A handler whose wait ends at once may wait on below a shield, where no wait offers the place.
  self.offer_place();
  switch (client) {
    case Client::there:
      return stops ? kServerStops : nullptr;
    case Client::ended:
      return kEnded;
    case Client::gone:
      return kGone;
  }
  return nullptr;
}

// work is around_work. The next pause reports events of the socket. While a child uses the exchange there is no watch.
bool HandlerWatch::work(Scope& scope, bool begins) noexcept {
  auto& self = static_cast<HandlerWatch&>(scope);
  if (!begins) {
    self.works_.store(false, std::memory_order_relaxed);
    return true;
  }
  const State seen = self.state_.load(std::memory_order_relaxed);
  if (seen == State::none || seen == State::owner_uses) return false;
  self.works_.store(true, std::memory_order_seq_cst);
  self.offer_place();
  if (self.enter(State::attends)) {
    if (self.take_back(true)) self.noticed_.store(true, std::memory_order_relaxed);
    self.leave_to_others();
  }
  return true;
}

bool HandlerWatch::enter_behind(State state) noexcept {
  for (State seen = State::attends; seen == State::attends;) {
    yield();
    seen = State::runs;
    if (state_.compare_exchange_strong(seen, state, std::memory_order_seq_cst)) return true;
  }
  return false;
}

// watch_for_owner is for the end of a child's use, where the owner may be waiting without a watch. During `attends` the owner
// cannot begin to use the exchange: a wait that is ended here is never one for its client.
void HandlerWatch::watch_for_owner() noexcept {
  do {
    if (!enter(State::attends)) return;
    missed_.store(false, std::memory_order_seq_cst);
    if (!works_.load(std::memory_order_seq_cst)) {
      attend();
      if (const Client client = client_.load(std::memory_order_relaxed); client != Client::there) {
        tell(client);
      } else if (server_stops()) {
        static_cast<void>(coir::detail::cancel_waiting(*this, kServerStops));
      }
    }
    state_.store(State::runs, std::memory_order_seq_cst);
    // A wait that has begun meanwhile has found `attends`.
  } while (missed_.load(std::memory_order_seq_cst));
}

// offer_place: a child that lives may be in the middle of a call of the exchange. Only the owner opens nurseries, so that
// none begins to live before the owner goes on, unless one lives.
void HandlerWatch::offer_place() noexcept {
  session_->offer(has_children());
}

bool HandlerWatch::has_children() noexcept {
  Locked locked(lock);
  return !inner.empty();
}

bool HandlerWatch::lend_place(bool keeps_buffers) noexcept {
  if (!engine_.lends_places) return false;
  const bool shared = has_children();
  if (shared && !is_owners()) return session_->offered.load(std::memory_order_relaxed);
  session_->offer(keeps_buffers || shared);
  return true;
}

// attend sees to it that a hang-up and the server's stop reach the handler.
void HandlerWatch::attend() noexcept {
  if (!watching_) {
    watching_ = true;
    used_.store(true, std::memory_order_relaxed);
    wake_ = connection_->wake;
    connection_->wake = woken;
    connection_->watch = this;
    if (!outlives_stop_.load(std::memory_order_seq_cst))
      stop_watch_.emplace(engine_.stops.token(), static_cast<coir::detail::Scope&>(*this));
  }
  // acquire pairs with the release in woken: the record is the owner's again.
  if (asleep_.load(std::memory_order_acquire) || client_.load(std::memory_order_relaxed) != Client::there) return;
  asleep_.store(true, std::memory_order_relaxed);
  Client client = Client::there;
  if (sleep(client)) return;
  // A child may have lost the client meanwhile.
  if (client != Client::there) client_.store(client, std::memory_order_relaxed);
  asleep_.store(false, std::memory_order_relaxed);
}

// server_stops is false while a select that has the case `stopping` has yet to be told: the source's lock, which a watch
// takes, orders that before.
bool HandlerWatch::server_stops() noexcept {
  if (outlives_stop_.load(std::memory_order_seq_cst) || !engine_.stops.cancelled()) return false;
  stop_watch_.emplace(engine_.stops.token(), static_cast<coir::detail::Scope&>(*this));
  return true;
}

// sleep puts the record to sleep. True: from then on it belongs to woken, and to let_go. False: `client` says why, or
// the kernel is short of what a wait takes.
bool HandlerWatch::sleep(Client& client) noexcept {
  // A word holds two edges at most.
  for (int edges = 0; edges < 4; ++edges) {
    const int fd = connection_->stream.fd();
    const auto armed = arm_resting_wait(*connection_, fd);
    if (armed) return true;
    if (armed.error() != ErrorCode::busy) return false;
    noticed_.store(true, std::memory_order_relaxed);
    client = look(fd);
    if (client != Client::there) return false;
  }
  return false;
}

// look asks the kernel, which tells of an end behind bytes that nobody has read, too.
HandlerWatch::Client HandlerWatch::look(int fd) noexcept {
  pollfd entry{.fd = fd, .events = POLLRDHUP, .revents = 0};
  if (poll(&entry, 1, 0) <= 0) return Client::there;
  return (entry.revents & (POLLHUP | POLLERR)) != 0 ? Client::gone : Client::ended;
}

// woken runs on a worker's own stack, while the handler waits or computes.
void HandlerWatch::woken(RestingWait& resting) noexcept {
  HandlerWatch& self = *static_cast<Connection&>(resting).watch;
  self.noticed_.store(true, std::memory_order_relaxed);
  Client client = look(resting.fd);
  if (client == Client::there && resting_wait_hears_edges() && self.sleep(client)) return;
  if (client != Client::there) self.tell(client);
  // release pairs with the acquire in attend and let_go. The owner may be gone afterwards.
  self.asleep_.store(false, std::memory_order_release);
}

// tell is for a handler that may be waiting. The event comes first: a select that has the case for it is told by it.
void HandlerWatch::tell(Client client) noexcept {
  gone_.set();
  client_.store(client, std::memory_order_relaxed);
  if (client == Client::gone) {
    coir::detail::cancel(*this, kGone);
  } else {
    static_cast<void>(coir::detail::cancel_waiting(*this, kEnded));
  }
}

void HandlerWatch::glance() noexcept {
  const Client client = look(connection_->stream.fd());
  if (client == Client::there) return;
  used_.store(true, std::memory_order_relaxed);
  tell(client);
}

void HandlerWatch::lost() noexcept {
  if (state_.load(std::memory_order_relaxed) == State::none) return;
  used_.store(true, std::memory_order_relaxed);
  tell(Client::gone);
}

// let_go takes everything back that others could wake the handler by.
bool HandlerWatch::let_go() noexcept {
  watching_ = false;
  stop_watch_.reset();
  // acquire pairs with the release in woken.
  while (asleep_.load(std::memory_order_acquire)) {
    if (disarm_resting_wait(*connection_)) {
      asleep_.store(false, std::memory_order_relaxed);
    } else {
      yield();
    }
  }
  connection_->wake = wake_;
  connection_->next = nullptr;
  return take_noticed();
}

bool HandlerWatch::finish() noexcept {
  used_.store(false, std::memory_order_relaxed);
  const bool noticed = watching_ ? let_go() : take_noticed();
  if (cancelled.load(std::memory_order_relaxed)) {
    // The reason that ended this handler does not apply to the next one, nor to a stream that this one opens (Detached):
    // scopes of its own may be open then, so that this one stays in its place. A canceller holds the lock from before the
    // mark until it touches the scope for the last time, and let_go has taken back all that could cancel it anew.
    const Locked wait_for_them(lock);
    cancelled.store(false, std::memory_order_relaxed);
    reason.store(nullptr, std::memory_order_relaxed);
  }
  return noticed;
}

// outlive_stop: an earlier wait has left a watch for the stop, unless the exchange has been used since. If another fiber is
// in `attends`, enter waits for it. If a child uses the exchange, it takes the watch back, and the one that follows its use
// finds the mark: seq_cst, as the change to `runs` that ends the use.
void HandlerWatch::outlive_stop() noexcept {
  outlives_stop_.store(true, std::memory_order_seq_cst);
  if (!enter(State::attends)) return;
  stop_watch_.reset();
  leave_to_others();
}

void HandlerWatch::forget() noexcept {
  client_.store(Client::there, std::memory_order_relaxed);
  gone_.reset();
}

Case HandlerWatch::client_gone() noexcept {
  if (enter(State::attends)) {
    attend();
    leave_to_others();
  }
  if (client_.load(std::memory_order_relaxed) != Client::there) gone_.set();
  return Case::opened(gone_);
}

Case HandlerWatch::stopping() noexcept {
  return Case::cancelled(engine_.stops.token());
}

// Exchange's functions that only a build with fibers has.

Case Exchange::client_gone() noexcept {
  return session_.watch_->client_gone();
}

Case Exchange::stopping() noexcept {
  return session_.watch_->stopping();
}

}  // namespace coir::http
