#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>

#include <coir/descriptor.h>
#include <coir/error.h>
#include <coir/port/poller.h>
#include <coir/resting_wait.h>

#include "fiber/waiter.h"

namespace coir {

// Reactor turns the poller's news into wakeups. It keeps one word per descriptor and direction:
//
//   kEmpty            nothing known: the next wait parks
//   kReady            an edge came while nobody waited: the next wait returns at once and empties the word
//   kReadyEnded       the same with a hang-up, whose edge does not come again: the next wait returns at once and leaves
//                     kReady, so that a reader that takes the bytes only finds the end at its next wait
//   Waiter*           a waiter is parked here
//   Waiter* | kLock   the waiter is being claimed; other threads spin until the bit is gone
//   RestingWait* | kSleep a resting wait, whose wake is called
//
// The word is changed by CAS alone. A claim happens only under kLock. A waiter that leaves for another reason takes
// itself out with the same CAS, so that no claim reaches a later wait.
class Reactor {
 public:
  // open reserves the table for `max_fds` descriptors (touched page by page) and opens the poller. Returns 0 or an
  // errno.
  int open(std::size_t max_fds, bool want_ppoll) noexcept;
  void close() noexcept;

  // attach puts `waiter`, which is armed, on fd's direction and registers fd with the poller if need be. Returns true
  // when it now waits there; false when the descriptor is known to be ready, and the word is then empty.
  std::expected<bool, Error> attach(int fd, Direction direction, Waiter& waiter) noexcept;

  // detach takes out a waiter that something else woke. False: it was out already, because an event has come or the
  // descriptor was forgotten.
  bool detach(int fd, Direction direction, Waiter& waiter) noexcept;

  // knows tells whether the table has room for fd.
  bool knows(int fd) noexcept { return entry(fd) != nullptr; }

  // tag tells successive descriptors of one number apart: forget changes it before it wakes anybody. `fd` was attached
  // to before.
  std::uint32_t tag(int fd) noexcept { return entry(fd)->tag.load(std::memory_order_acquire); }

  // take tells whether fd's direction is known to be ready, and empties the word. restore makes it ready again, for an
  // event whose waiter continues with something else.
  bool take(int fd, Direction direction) noexcept;
  void restore(int fd, Direction direction) noexcept;

  std::expected<void, Error> attach(int fd, Direction direction, RestingWait& resting) noexcept;
  bool detach(int fd, Direction direction, RestingWait& resting) noexcept;

  // forget wakes fd's waiters with `closed` before the descriptor is closed. forgotten, called after closing, frees the
  // number for its next owner. A wait that begins in between waits until then, and finds that the descriptor is gone.
  void forget(int fd) noexcept;
  void forgotten(int fd) noexcept;

  // poll waits for events; dispatch hands them out on the calling worker. One worker at a time polls and then
  // dispatches.
  void poll(std::int64_t timeout_ns) noexcept;
  void dispatch() noexcept;
  void interrupt() noexcept { poller_.interrupt(); }

  bool in_use() const noexcept { return registered_.load(std::memory_order_relaxed) != 0; }
  bool fell_back() const noexcept { return poller_.kind() == port::Poller::Kind::ppoll; }

 private:
  using Word = std::uintptr_t;
  static constexpr Word kEmpty = 0, kLock = 1, kSleep = 2, kReady = 4, kReadyEnded = 8;
  static constexpr bool holds_readiness(Word word) noexcept { return word == kReady || word == kReadyEnded; }
  static constexpr bool holds_nobody(Word word) noexcept { return word == kEmpty || holds_readiness(word); }
  // The word that a wait leaves when it takes the readiness: a hang-up stays known.
  static constexpr Word taken_from(Word word) noexcept { return word == kReadyEnded ? kReady : kEmpty; }

  // Only the caller that has set kAdding registers with the poller. Others wait for the result, because a descriptor
  // that the poller refuses is not registered.
  static constexpr std::uint32_t kNo = 0, kYes = 1, kClosing = 2, kAdding = 3;

  struct Entry {
    Atomic<Word> word[3];              // by Direction
    Atomic<std::uint32_t> tag;         // counts the descriptors that had this number; stale events carry an old one
    Atomic<std::uint32_t> registered;  // kNo, kAdding, kYes or kClosing
  };
  static_assert(sizeof(Entry) == kDescriptorBytes);

  Entry* entry(int fd) noexcept;
  std::expected<void, Error> enroll(int fd, Entry& entry) noexcept;
  void expect_watched(int fd, const Entry& entry) noexcept;
  void signal(Atomic<Word>& word, bool hung_up) noexcept;
  static bool take_waiter(Atomic<Word>& word, Word seen, WakeReason reason, Word leave) noexcept;
  static std::size_t collect(void* self, std::span<pollfd> into) noexcept;

  port::Poller poller_;
  Entry* entries_ = nullptr;
  std::size_t max_fds_ = 0;
  Atomic<int> highest_fd_{-1};
  Atomic<std::uint32_t> registered_{0};
  std::size_t pending_ = 0;
  int rotate_ = 0;  // where collect starts, so that no descriptor is always the last
  port::PollEvent events_[128];
};

}  // namespace coir
