#pragma once

#include <cstddef>
#include <cstdint>

#include "http/session/session_buffers.h"

namespace coir::http {

// SessionPool lends places among the active to fibers, each with a session's buffers. These lie in one array whose memory
// is touched, and charged to account::http, when they are first lent. After a peak, unused ones are freed, except those
// needed recently.
//
// Its user holds the dispatcher's lock.
class SessionPool {
 public:
  // `array` and `freed` have room for `most` each, of which `most_active` are places.
  SessionPool(SessionBuffers* array, std::uint32_t* freed, std::size_t most, std::size_t most_active) noexcept
      : array_(array), freed_(freed), most_(most), most_active_(most_active) {}
  SessionPool(const SessionPool&) = delete;
  SessionPool& operator=(const SessionPool&) = delete;
  // The destructor refunds what the sessions were charged with.
  ~SessionPool();

  // available tells whether take would return a session; starved, whether it would not because memory is short.
  bool available() const noexcept;
  bool starved() const noexcept { return taken_ < most_active_ && unused_ == nullptr && may_grow() && !available(); }
  // take lends a place with buffers, or returns null.
  SessionBuffers* take() noexcept;
  void give(SessionBuffers& buffers) noexcept;
  // leave gives back the place alone, and enter takes one for buffers that are there. False: none is free.
  void leave() noexcept { --taken_; }
  [[nodiscard]] bool enter() noexcept { return taken_ < most_active_ && (++taken_, true); }
  std::size_t taken() const noexcept { return taken_; }
  std::size_t unused() const noexcept { return unused_count_; }

  // Freeing buffers takes three steps, for the second is a system call and made without the lock: take_unused takes
  // some that are not lent, or returns null; free gives their memory to the system, and is false if that fails;
  // note_freed or keep files them.
  SessionBuffers* take_unused() noexcept;
  static bool free(SessionBuffers& buffers) noexcept;
  void note_freed(SessionBuffers& buffers) noexcept;
  void keep(SessionBuffers& buffers) noexcept;

  // surplus returns how many unused buffers were not needed since the last call.
  std::size_t surplus() noexcept;

 private:
  bool may_grow() const noexcept { return freed_count_ > 0 || used_ < most_; }

  SessionBuffers* const array_;
  std::uint32_t* const freed_;  // the numbers of those whose memory was freed, a stack
  const std::size_t most_;
  const std::size_t most_active_;
  SessionBuffers* unused_ = nullptr;
  std::size_t used_ = 0;  // those that were ever lent: the rest of the array is untouched
  std::size_t freed_count_ = 0;
  std::size_t unused_count_ = 0;
  std::size_t surplus_ = 0;  // the least that unused_count_ was since the last call of surplus
  std::size_t taken_ = 0;    // places
};

}  // namespace coir::http
