#pragma once

#include <coir/detail/intrusive_list.h>
#include <coir/event.h>

#include <cstdint>

#include "http/concurrent/queues/session_pool.h"
#include "http/connection/active_place.h"

namespace coir::http {

// OfferedPlaces lends the places of handlers that wait for others (ActivePlace) to whoever finds none free, and gives
// handlers that go on a place again, before new exchanges begin.
//
//   offer -> offered --- withdraw ---> the handler's again: nobody has needed it
//               |
//            free_one     the pool's
//               |
//             retake, or in line -> grant ---> the handler's again
//
// A handler in line waits only for exchanges through which bytes move or whose handlers compute, and for slow clients,
// whose waits are ended when others want their places. Its user holds the dispatcher's lock.
class OfferedPlaces {
 public:
  // Returning is a handler's fiber in line. It lies on its stack until `granted` is set, without the lock.
  struct Returning {
    Returning(ActivePlace& for_place, std::int64_t now_ns) noexcept : place(for_place), since_ns(now_ns) {}

    ActivePlace& place;
    const std::int64_t since_ns;
    Event granted;
    Returning* next = nullptr;
  };
  using Line = coir::detail::IntrusiveQueue<Returning>;

  explicit OfferedPlaces(SessionPool& pool) noexcept : pool_(pool) {}
  OfferedPlaces(const OfferedPlaces&) = delete;
  OfferedPlaces& operator=(const OfferedPlaces&) = delete;

  // offer and lend are Engine's functions of the same names. offer returns true if the place can be taken at once, or its
  // buffers have been given away.
  bool offer(ActivePlace& place, bool keeps_buffers, std::int64_t now_ns) noexcept;
  void lend(ActivePlace& place) noexcept;
  // withdraw ends an offer that nobody has taken. False: somebody has.
  bool withdraw(ActivePlace& place, std::int64_t now_ns) noexcept;
  // take_back gives all to the pool that an exchange with buffers has, in a handler's wait that has offered it, too.
  void take_back(ActivePlace& place) noexcept;
  // retake gives a handler a place again if one is free and nobody stands in line before it.
  bool retake(ActivePlace& place) noexcept { return in_line_ == 0 && give(place); }
  void wait_in_line(Returning& returning) noexcept {
    line_.push(returning);
    ++in_line_;
  }
  std::size_t in_line() const noexcept { return in_line_; }
  bool any_in_line() const noexcept { return in_line_ != 0; }
  // any_in_line_since tells whether one has stood in line since then.
  bool any_in_line_since(std::int64_t since_ns) const noexcept {
    return in_line_ != 0 && line_.front()->since_ns <= since_ns;
  }

  // free_one takes a place whose handler has waited for long enough, for the pool. False: there is none.
  bool free_one(std::int64_t now_ns) noexcept;
  // free_buffers does so with the first place that gives its buffers, too, however short its handler's wait.
  bool free_buffers() noexcept;
  // has_place tells whether the pool would lend one, if need be behind free_one.
  bool has_place(std::int64_t now_ns) noexcept { return pool_.available() || (free_one(now_ns) && pool_.available()); }
  // grant takes out of the line whoever gets a place now.
  Line grant(std::int64_t now_ns) noexcept;

  // needs_spare tells whether handlers will come back for buffers: not the last may be freed, or none could go on where
  // memory is short.
  bool needs_spare() const noexcept { return without_buffers_ != 0; }

 private:
  void take_away(ActivePlace& place) noexcept;
  void give_buffers(ActivePlace& place) noexcept;
  bool give(ActivePlace& place) noexcept;

  SessionPool& pool_;
  // In front those that could be taken when they were offered, the latest first; then the others, as they came.
  coir::detail::IntrusiveList<ActivePlace> offers_;
  Line line_;
  std::size_t in_line_ = 0;
  std::size_t without_buffers_ = 0;
};

}  // namespace coir::http
