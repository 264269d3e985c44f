#pragma once

#include <coir/config.h>

#include "http/session/keeper.h"

#if !COIR_NO_ASYNC
#include <coir/event.h>
#endif

namespace coir::http {

// Hub is the Keeper of a hub's members, whatever they are sent. It has one fiber, from the first member on, which works
// by the clock and when there is news; it refuses members that are too many, closes those that are too slow, and all of
// them when it ends.
class Hub : public Keeper {
 public:
  static constexpr const char* kComeAgain = "Retry-After: 5\r\n";  // with 503

  // dropped_count counts the members that were closed because they were too slow.
  std::uint64_t dropped_count() const noexcept { return dropped_.load(std::memory_order_relaxed); }

  // These are Keeper's.
  void stopping() noexcept override;
  bool stopped() noexcept final;
  Deadline due() const noexcept final { return due_; }
  void tick() noexcept final;

 protected:
  // `calls_program`: the program is called on the hub's fiber, with as much stack as a handler has.
  explicit Hub(const char* name, bool calls_program = false) noexcept : name_(name), calls_program_(calls_program) {}
  ~Hub() = default;

  // admit reserves a place for one member more, whose keep gets it. Without a place: there are `most` members, or the server
  // stops, and the exchange has been answered 503. is_ready is the same for members that are bounded otherwise.
  [[nodiscard]] Place admit(Exchange& exchange, std::size_t most) noexcept;
  [[nodiscard]] bool is_ready(Exchange& exchange) noexcept;
  // news has the fiber work soon; any thread. Without fibers it works at once, if there is a server.
  void news() noexcept;

  // too_slow counts a member that is closed because it takes less than it is sent.
  void too_slow() noexcept { dropped_.fetch_add(1, std::memory_order_relaxed); }

  // send_keep_alives goes round the members once, while `is_meant` takes them, as Keeper::take: each gets a comment, and
  // then `go_on` is called with it, or `end` if its socket does not take three bytes after so long a silence. The fiber's.
  template <class IsMeant, class GoOn, class End>
  void send_keep_alives(IsMeant is_meant, GoOn go_on, End end) noexcept {
    for (std::size_t left = size(); left > 0; --left) {
      Connection* const next = take(Direction::readable, is_meant);
      if (next == nullptr) return;
      send_keep_alive(*next) ? go_on(*next) : end(*next);
    }
  }

  // leave_all says farewell to all members and waits until the last has gone. The destructors of derived classes begin
  // by it. On a fiber, or once the server's run has ended; from none of the hub's own calls.
  void leave_all() noexcept;
  bool ends() const noexcept { return leaves_.load(std::memory_order_relaxed) || server_stops(); }

  // work is done by the fiber: `told` by news, or else as the time has come that next_work told behind the last time; there
  // may be news then, too.
  virtual void work(bool) noexcept {}
  virtual Deadline next_work() const noexcept { return Deadline::never(); }

 private:
  void put_off() noexcept { due_ = next_work(); }
  bool start() noexcept;
  static bool send_keep_alive(Connection& connection) noexcept;
  void run() noexcept;

  const char* const name_;
  [[maybe_unused]] const bool calls_program_;
  Atomic<std::uint64_t> dropped_ = 0;
  Deadline due_ = Deadline::never();
#if !COIR_NO_ASYNC
  Event news_;
  Atomic<bool> stops_ = false;
  Atomic<bool> runs_ = false;
#endif
};

}  // namespace coir::http
