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
  // A wait of less than this keeps its place: most are short, and with each place more handlers would be under way.
  static constexpr std::int64_t kLeastWaitNs = 20'000'000;

  // Returning is a handler's fiber in line. It lies on its stack until `granted` is set, without the lock.
  struct Returning {
    explicit Returning(ActivePlace& for_place) noexcept : place(for_place) {}

    ActivePlace& place;
    Event granted;
    Returning* next = nullptr;
  };
  using Line = coir::detail::IntrusiveQueue<Returning>;

  explicit OfferedPlaces(SessionPool& pool) noexcept : pool_(pool) {}
  OfferedPlaces(const OfferedPlaces&) = delete;
  OfferedPlaces& operator=(const OfferedPlaces&) = delete;

  // offer and lend are Engine's functions of the same names.
  void offer(ActivePlace& place, bool keeps_buffers, std::int64_t now_ns) noexcept;
  void lend(ActivePlace& place) noexcept;
  // withdraw ends an offer that nobody has taken. False: somebody has.
  bool withdraw(ActivePlace& place) noexcept;
  // retake gives a handler a place again if one is free and nobody stands in line before it.
  bool retake(ActivePlace& place) noexcept { return in_line_ == 0 && give(place); }
  void wait_in_line(Returning& returning) noexcept {
    line_.push(returning);
    ++in_line_;
  }
  std::size_t in_line() const noexcept { return in_line_; }
  bool any_in_line() const noexcept { return in_line_ != 0; }

  // free_one takes the place that was offered first, if that is long enough ago, for the pool. False: there is none.
  bool free_one(std::int64_t now_ns) noexcept;
  // has_place tells whether the pool would lend one, if need be behind free_one.
  bool has_place(std::int64_t now_ns) noexcept { return pool_.available() || (free_one(now_ns) && pool_.available()); }
  // grant takes out of the line whoever gets a place now.
  Line grant(std::int64_t now_ns) noexcept;

  // needs_spare tells whether handlers will come back for buffers: not the last may be freed, or none could go on where
  // memory is short.
  bool needs_spare() const noexcept { return without_buffers_ != 0; }

 private:
  void take_away(ActivePlace& place) noexcept;
  bool give(ActivePlace& place) noexcept;

  SessionPool& pool_;
  coir::detail::IntrusiveList<ActivePlace> offers_;
  Line line_;
  std::size_t in_line_ = 0;
  std::size_t without_buffers_ = 0;
};

}  // namespace coir::http
