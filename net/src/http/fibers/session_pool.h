#pragma once

#include <cstddef>
#include <cstdint>

#include "http/session/session.h"

namespace coir::http {

// SessionPool lends sessions to fibers. They lie in one array whose memory is touched, and charged to account::http,
// when a session is first lent. After a peak, unused sessions are freed, except those needed recently.
//
// Its user holds the dispatcher's lock.
class SessionPool {
 public:
  // `array` and `freed` have room for `most` each.
  SessionPool(Engine& engine, Session* array, std::uint32_t* freed, std::size_t most) noexcept
      : engine_(engine), array_(array), freed_(freed), most_(most) {}
  SessionPool(const SessionPool&) = delete;
  SessionPool& operator=(const SessionPool&) = delete;
  // The destructor refunds what the sessions were charged with.
  ~SessionPool();

  // available tells whether take would return a session; starved, whether it would not because memory is short.
  bool available() const noexcept;
  bool starved() const noexcept { return unused_ == nullptr && may_grow() && !available(); }
  // take lends a session, or returns null.
  Session* take() noexcept;
  void give(Session& session) noexcept;
  std::size_t taken() const noexcept { return taken_; }

  // Freeing a session takes three steps, for the second is a system call and made without the lock: take_unused takes a
  // session that is not lent, or returns null; free gives its memory to the system, and is false if that fails;
  // note_freed or keep files it.
  Session* take_unused() noexcept;
  static bool free(Session& session) noexcept;
  void note_freed(Session& session) noexcept;
  void keep(Session& session) noexcept;

  // surplus returns how many unused sessions were not needed since the last call.
  std::size_t surplus() noexcept;

 private:
  bool may_grow() const noexcept { return freed_count_ > 0 || used_ < most_; }

  Engine& engine_;
  Session* const array_;
  std::uint32_t* const freed_;  // the numbers of those whose memory was freed, a stack
  const std::size_t most_;
  Session* unused_ = nullptr;
  std::size_t used_ = 0;  // those that were ever lent: the rest of the array is untouched
  std::size_t freed_count_ = 0;
  std::size_t unused_count_ = 0;
  std::size_t surplus_ = 0;  // the least that unused_count_ was since the last call of surplus
  std::size_t taken_ = 0;
};

}  // namespace coir::http
