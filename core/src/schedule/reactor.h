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
//                     kReady, so that whoever is content with the bytes finds the end at the wait after that
//   Waiter*           somebody is parked here
//   Waiter* | kLock   the waiter is being claimed; who sees the bit spins until it is gone
//   RestingWait* | kSleep a record that wants its wake called
//
// The word is changed by CAS alone. A claim happens only under kLock, and a waiter that leaves for another reason takes
// itself out with the same CAS, so that no claim reaches a later wait.
class Reactor {
 public:
  // open reserves the table for `max_fds` descriptors (touched page by page) and opens the poller. Returns 0 or an
  // errno.
  int open(std::size_t max_fds, bool want_ppoll) noexcept;
  void close() noexcept;

  // attach shows `waiter`, which is armed, to fd's direction and registers fd with the poller if need be.
  // Returns true when it now waits there, false when the descriptor is known to be ready, which the word then forgets.
  std::expected<bool, Error> attach(int fd, Direction direction, Waiter& waiter) noexcept;

  // detach takes a waiter out that was woken by something else. False: it was out already, for an event has come or the
  // descriptor was forgotten.
  bool detach(int fd, Direction direction, Waiter& waiter) noexcept;

  // knows tells whether the table has room for fd.
  bool knows(int fd) noexcept { return entry(fd) != nullptr; }

  // tag tells one descriptor of that number from the next: forget changes it before it wakes anybody. The number is one
  // that was attached to.
  std::uint32_t tag(int fd) noexcept { return entry(fd)->tag.load(std::memory_order_acquire); }

  // take tells whether fd's direction is known to be ready, which the word then forgets. restore makes it known again,
  // for an event whose waiter goes on with something else.
  bool take(int fd, Direction direction) noexcept;
  void restore(int fd, Direction direction) noexcept;

  std::expected<void, Error> attach(int fd, RestingWait& resting) noexcept;
  bool detach(int fd, RestingWait& resting) noexcept;

  // forget wakes fd's waiters with `closed` before the descriptor is closed; forgotten, after it, frees the number for
  // its next owner. A wait that comes in between is held up until then, and finds that the descriptor is gone.
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
  // What a wait that takes the readiness leaves: a hang-up stays known.
  static constexpr Word taken_from(Word word) noexcept { return word == kReadyEnded ? kReady : kEmpty; }

  // Only who has set kAdding asks the poller; others that come wait for its answer, for what it refuses is not
  // registered.
  static constexpr std::uint32_t kNo = 0, kYes = 1, kClosing = 2, kAdding = 3;

  struct Entry {
    Atomic<Word> word[2];
    Atomic<std::uint32_t> tag;         // counts the descriptors that had this number; stale events carry an old one
    Atomic<std::uint32_t> registered;  // kNo, kAdding, kYes or kClosing
  };
  static_assert(sizeof(Entry) == kDescriptorBytes);

  Entry* entry(int fd) noexcept;
  std::expected<void, Error> enroll(int fd, Entry& entry) noexcept;
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
