#pragma once

#include <coir/deadline.h>
#include <coir/error.h>
#include <coir/spinlock.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string_view>
#include <utility>

#include "http/connection/connection.h"
#include "http/message/chunked_content.h"

namespace coir::http {

class Engine;
class Exchange;
struct Session;

// KeptMemory is lent to a keeper for as long as it serves a connection: buffers of the session that it came by.
struct KeptMemory {
  std::span<char> in;
  std::span<char> out;
};

// KeptContent is where the content of a request is that has not come whole.
struct KeptContent {
  std::uint64_t left = 0;           // of content with a length
  ChunkedContent chunks;            // of content in chunks, of which everything that has come is delivered
  std::int64_t waits_since_ns = 0;  // when the wait for it would have begun that has no breaks
};

// Suspended is what a session needs to go on with an exchange whose answer has not begun.
struct Suspended {
  std::string_view head;  // of its request
  std::int64_t began_ns = 0;
  std::uint32_t requests = 0;            // of its connection, this one among them
  std::uint16_t behind = 0;              // bytes that the client has sent behind it: they follow `head` in memory
  bool keep = true;                      // the connection, behind it
  const KeptContent* content = nullptr;  // null: it has been read
};

// Keeper keeps connections that stay open behind an answer: event streams, WebSockets, tunnels. While nothing moves
// such a connection is its record alone: no fiber, no stack, no session, no buffer.
//
//   handler:  exchange.start(...), Keeper::open(...)      the head of the answer
//             keeper.keep(exchange)
//   then:     begin(connection, what the client has sent already)       once, when the head is sent
//               -> rest(connection, direction)                          until its client sends, or its socket has room
//             serve(connection)                                         then, on a fiber
//               -> rest(...) again, or close(...)
//
// A connection has one owner. Between begin or serve and the end of rest or close that is the fiber that was called.
// One that rests belongs to nobody: take gives it to whoever disarms it, its wake to the fiber that will serve it.
//
// A keeper keeps the connections of one server. It outlives them; Server::stop closes them.
class Keeper {
 public:
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  // Place is what `reserve` has taken for a connection: keep passes it on to it, and the destructor gives it back.
  class Place {
   public:
    Place() noexcept : keeper_(nullptr) {}
    Place(Place&& other) noexcept : keeper_(std::exchange(other.keeper_, nullptr)) {}
    Place& operator=(Place&&) = delete;
    ~Place() {
      if (keeper_ != nullptr) keeper_->lose();
    }
    explicit operator bool() const noexcept { return keeper_ != nullptr; }

   private:
    friend class Keeper;
    explicit Place(Keeper& keeper) noexcept : keeper_(&keeper) {}
    Keeper* keeper_;
  };

  // keep has `exchange`'s connection kept once its handler has returned and the head is sent; mark and part are put
  // into the connection's record. Errors: invalid (the response has not been ended by open, or is to HEAD, or content
  // of the request is unread), busy (this keeper serves another server), unsupported (the server stops). A `place` of this keeper is the connection's, so that it is not counted twice.
  [[nodiscard]] std::expected<void, Error> keep(Exchange& exchange, std::uint64_t mark = 0, std::uint32_t part = 0,
                                                Place place = {}) noexcept;

  // keep_content is keep for a response whose content has another end than its connection's: what is left of it is
  // written by the keeper, framing included. Errors: as keep's.
  [[nodiscard]] std::expected<void, Error> keep_content(Exchange& exchange, std::uint64_t mark,
                                                        Place place = {}) noexcept;

  // open ends the head that exchange.start has begun, for a stream that lasts as long as its connection. By upgrade the
  // handler has written the fields Connection and Upgrade. Errors: as Exchange::begin_chunked.
  enum class Opening : std::uint8_t { content, upgrade };
  [[nodiscard]] static std::expected<void, Error> open(Exchange& exchange, Opening opening) noexcept;

  // begin and serve go on with a connection whose owner they make the caller's fiber: `sent` is what its client had
  // sent behind the request; serve is called when what it rested for has come about. Both end by rest or close. Without
  // a body of the keeper's own they close the connection; they are not pure, because a program would need the C++
  // library's runtime for that.
  virtual void begin(Connection& connection, std::string_view sent, KeptMemory memory) noexcept;
  virtual void serve(Connection& connection, KeptMemory memory) noexcept;

  // A keeper may also keep exchanges whose answers have not begun, because they wait for somebody else. suspended returns
  // what one needs to go on, which lasts until `answer_kept`; null: this is none. It may yield. answer_kept goes on in the place of
  // the handler, which has returned.
  virtual const Suspended* suspended(Connection&) noexcept { return nullptr; }
  virtual void answer_kept(Exchange&, std::uint64_t) noexcept {}

  // farewell sends a last word, as far as that goes without waiting, over a connection that is to be closed, because
  // the server stops or to make room, and gives back what the keeper has for it. It may run where memory is made room
  // for: it must not wait.
  virtual void farewell(Connection&) noexcept {}

  // dropped tells that a connection that was to be kept with this mark has failed before its begin.
  virtual void dropped(std::uint64_t) noexcept {}

  // outlives_stop tells whether a connection rests on when the server stops, because its answer is under way; the server
  // waits for its end. It is called with the lock held.
  virtual bool outlives_stop(const Connection&) const noexcept { return false; }

  // stopping is called, maybe more than once, when the server stops. stopped tells whether nothing of the keeper's own
  // runs any more.
  virtual void stopping() noexcept {}
  virtual bool stopped() noexcept { return true; }

  // look_around is called by an engine with fibers once in Engine::look_interval, for what a keeper does by the clock. It must
  // not wait. True: it is to be called again at once.
  virtual bool look_around(std::int64_t) noexcept { return false; }

  // tick is called when due has passed, by an engine without fibers.
  virtual Deadline due() const noexcept { return Deadline::never(); }
  virtual void tick() noexcept {}

  // These are for engines.
  Engine* engine() const noexcept { return engine_.load(std::memory_order_acquire); }
  // close ends a connection that belongs to the caller.
  void close(Connection& connection) noexcept;
  // leave takes a connection out of its list, because its wait is over.
  void leave(Connection& connection) noexcept;
  // close_resting says farewell to all that rest but those that outlive the stop, closes them, and returns how many. forget_all says farewell to those of
  // an engine that serves nothing any more, and leaves their connections to the engine's end. evict closes one whose
  // client has been silent since `not_after_ns` or for longer. False: there is none.
  std::size_t close_resting() noexcept;
  void forget_all() noexcept;
  bool evict(std::int64_t not_after_ns) noexcept;
  // resting_lists are for a poll(2) over what rests.
  ConnectionList& resting(Direction direction) noexcept { return resting_[static_cast<int>(direction)]; }
  // size counts those whose answers are being sent too, and places; acquire pairs with the release in lose.
  std::size_t size() const noexcept { return kept_.load(std::memory_order_acquire); }

  Keeper* previous = nullptr;
  Keeper* next = nullptr;
  std::uint32_t visits = 0;  // guarded by the lock of the Keepers

 protected:
  Keeper() noexcept = default;
  // Nothing is kept any more.
  ~Keeper();

  // rest lets the owner go: the connection rests until its client sends something, or hangs up, or for writing until
  // its socket has room. `has_work` is asked with the lock held; if it is true the owner goes on. True: it is the
  // caller's no more. False: the caller goes on, as something is ready already.
  template <class HasWork>
  [[nodiscard]] bool rest(Connection& connection, Direction direction, HasWork has_work) noexcept {
    connection.stream.rest();
    connection.awaits = direction;
    Rested rested;
    {
      Arming arming(connection.stream.fd());
      Locked locked(lock_);
      if (has_work()) return false;
      rested = rest_locked(connection, arming);
    }
    return finish_rest(connection, rested);
  }
  [[nodiscard]] bool rest(Connection& connection, Direction direction) noexcept {
    return rest(connection, direction, [] { return false; });
  }

  // take takes out the first that rests for `direction` and of which `is_meant` is true, so that it belongs to the
  // caller, or returns null. It ends early where `is_meant` says so by setting its second argument. One that is about
  // to wake is passed over: it will be served.
  template <class IsMeant>
  Connection* take(Direction direction, IsMeant is_meant) noexcept {
    Locked locked(lock_);
    bool over = false;
    ConnectionList& list = resting(direction);
    for (Connection* each = list.front(); each != nullptr && !over; each = each->next) {
      if (!is_meant(*each, over) || !disarm(*each)) continue;
      each->rests = false;
      list.remove(*each);
      return each;
    }
    return nullptr;
  }

  // suspend has an exchange go on by `answer_kept`, without its handler, which returns next. Errors: as attach's.
  [[nodiscard]] std::expected<void, Error> suspend(Exchange& exchange, std::uint64_t mark) noexcept;
  // attach has the server of `exchange` know of the keeper, whose stopping it will call. keep does so by itself.
  // Errors: busy, unsupported, as keep's.
  [[nodiscard]] std::expected<void, Error> attach(Exchange& exchange) noexcept;
  // reserve takes a place if fewer than `most` are taken, by connections that are kept and by other places. Several threads
  // together take no more either. Without a place: `most` are taken.
  [[nodiscard]] Place reserve(std::size_t most) noexcept;
  // detach ends this; nothing is kept any more. A keeper of which more than this class is destroyed calls it first.
  void detach() noexcept;
  // take takes out this one, if it rests and is not about to wake: true, it belongs to the caller.
  [[nodiscard]] bool take(Connection& connection) noexcept {
    Locked locked(lock_);
    return take_locked(connection);
  }
  // take_locked is take for a caller that holds the lock.
  [[nodiscard]] bool take_locked(Connection& connection) noexcept {
    if (!connection.rests || !disarm(connection)) return false;
    connection.rests = false;
    resting(connection.awaits).remove(connection);
    return true;
  }

  // give_back has the server serve further requests over a connection that belongs to the caller, as if nothing had been
  // kept. It has served `requests` before.
  void give_back(Connection& connection, std::uint32_t requests) noexcept;

  // linger has the client read what it was sent before the server closes a connection that belongs to the caller, whatever
  // else the client sends meanwhile, for at most ServerOptions::linger_timeout.
  void linger(Connection& connection) noexcept;

  // abandon has the client see that what it was sent is not whole. close follows.
  static void abandon(Connection& connection) noexcept;

  // drop_input reads away what a client says that has nothing to say. False: it has hung up, or goes on talking.
  static bool drop_input(Connection& connection, std::span<char> into) noexcept;

  // serve_soon has the server serve a connection that belongs to the caller, as if it had woken.
  void serve_soon(Connection& connection) noexcept;

  bool server_stops() const noexcept;
  // may_rest tells whether a connection need not be closed, because the keeper or the server ends.
  bool may_rest(const Connection& connection) const noexcept;
  // is_forgotten: forget_all is in progress. The run has ended, and forgotten every wait: a disarm fails, and no wake comes.
  bool is_forgotten() const noexcept { return forgotten_; }

  // When this is set nothing rests any more: its owner says farewell and closes it.
  Atomic<bool> leaves_ = false;

  // Guards the lists, and what a keeper wants to be guarded with them. Nothing under it parks or allocates.
  Spinlock lock_;

 private:
  friend struct Session;
  friend class Keepers;
  enum class Rested : std::uint8_t { yes, ready, failed };
#if COIR_NO_ASYNC
  struct Arming {  // nothing is armed for a poll(2)
    explicit Arming(int) noexcept {}
  };
#else
  using Arming = ArmingUnderLock;
#endif

  void set_engine(Engine* engine) noexcept { engine_.store(engine, std::memory_order_release); }
  Rested rest_locked(Connection& connection, Arming& arming) noexcept;
  bool finish_rest(Connection& connection, Rested rested) noexcept;
  static bool disarm(Connection& connection) noexcept;
  static void mark_ready(Connection& connection) noexcept;
  // claim counts the connection of an exchange as kept from the handler's answer on; lose ends that, and is the last that
  // anybody does with a keeper for a connection.
  void claim(Session& session, std::uint64_t mark, Place place = {}) noexcept;
  void lose() noexcept { kept_.fetch_sub(1, std::memory_order_release); }
  // admit makes a connection, which belongs to the caller, one that is kept.
  void admit(Connection& connection, std::uint64_t mark, std::uint32_t part) noexcept;
  // readmit makes it the session's again.
  void readmit(Connection& connection, std::uint32_t requests) noexcept;

  ConnectionList resting_[2];  // by direction; guarded by lock_
  Atomic<Engine*> engine_ = nullptr;
  Atomic<std::size_t> kept_ = 0;
  bool forgotten_ = false;
};

}  // namespace coir::http
