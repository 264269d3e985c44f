#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>

#include <coir/descriptor.h>
#include <coir/detail/descriptor_node.h>
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
//   Waiter* | kTaken  an edge has woken that waiter. It reads until EAGAIN before it waits again, and then parks; for any
//                     other, which may have met EAGAIN before the edge, its next wait returns at once
//   DescriptorNode*   waiters are parked here: the list of their nodes, the latest first
//   ...       | kLock the list is being changed, or its waiters claimed; other threads spin until the bit is gone
//   RestingWait* | kSleep a resting wait, whose wake is called
//
// The word is changed by CAS alone. A claim, and a change of the list but at its head, happen only under kLock. A waiter
// that leaves for another reason takes its node out, so that no claim reaches a later wait. An edge wakes all that wait.
//
// Invariant (no lost wakeup): at each edge everyone who has met EAGAIN before it tries again: those in the list are woken,
// the others find kReady or another's kTaken. So it does not matter who takes what the edge brought, or how much.
class Reactor {
 public:
  // open reserves the table for `max_fds` descriptors (touched page by page) and opens the poller. Returns 0 or an
  // errno.
  int open(std::size_t max_fds, bool want_ppoll) noexcept;
  void close() noexcept;

  // attach puts `node`, whose waiter is armed, on fd's direction and registers fd with the poller if need be. Returns
  // true when it now waits there; false when the descriptor may be ready. Errors: busy (a resting wait sleeps there).
  std::expected<bool, Error> attach(int fd, Direction direction, detail::DescriptorNode& node) noexcept;

  // detach takes out a node whose waiter something else woke. False: it was out already, because an event has come or
  // the descriptor was forgotten.
  bool detach(int fd, Direction direction, detail::DescriptorNode& node) noexcept;

  // knows tells whether the table has room for fd.
  bool knows(int fd) noexcept { return entry(fd) != nullptr; }

  // is_enrolled tells whether fd is registered with the poller, or was ended and not yet closed.
  bool is_enrolled(int fd) noexcept;

  // tag tells successive descriptors of one number apart: forget changes it before it wakes anybody. `fd` was attached
  // to before.
  std::uint32_t tag(int fd) noexcept { return entry(fd)->tag.load(std::memory_order_acquire); }

  // take tells whether fd's direction is known to be ready, and empties the word. restore makes it ready again, for an
  // event whose waiter continues with something else.
  bool take(int fd, Direction direction) noexcept;
  void restore(int fd, Direction direction) noexcept;

  // reactor_descriptors.cpp has enroll, and what ppoll is to watch.
  //
  // enroll registers fd with the poller, for its life. restart has a ppoll that is under way watch what was attached since
  // it began.
  std::expected<void, Error> enroll(int fd) noexcept;
  void restart() noexcept {
    if (kManyWorkers && fell_back()) poller_.interrupt();
  }

  // attach puts `resting` on the direction of fd, which is enrolled. It makes no system call; the caller restarts.
  std::expected<void, Error> attach(int fd, Direction direction, RestingWait& resting) noexcept;
  bool detach(int fd, Direction direction, RestingWait& resting) noexcept;

  // forget wakes fd's waiters with `closed` before the descriptor is closed. forgotten, called after closing, frees the
  // number for its next owner. A wait that begins in between waits until then, and finds that the descriptor is gone.
  void forget(int fd) noexcept { end(fd, kClosing); }
  void forgotten(int fd) noexcept;

  // end wakes fd's waiters with `closed` and lets nobody wait for it, until it is forgotten.
  void end(int fd) noexcept { end(fd, kEnded); }

  // poll waits for events; dispatch hands them out on the calling worker. One worker at a time polls and then
  // dispatches.
  void poll(std::int64_t timeout_ns) noexcept;
  void dispatch() noexcept;
  void interrupt() noexcept { poller_.interrupt(); }

  bool in_use() const noexcept { return registered_.load(std::memory_order_relaxed) != 0; }
  bool fell_back() const noexcept { return poller_.kind() == port::Poller::Kind::ppoll; }

 private:
  using Word = std::uintptr_t;
  static constexpr Word kEmpty = 0, kLock = 1, kSleep = 2, kTaken = 4, kReady = 8, kReadyEnded = 16;
  static constexpr bool holds_readiness(Word word) noexcept { return word == kReady || word == kReadyEnded; }
  static constexpr bool holds_nobody(Word word) noexcept {
    return word == kEmpty || holds_readiness(word) || (word & kTaken) != 0;
  }
  static Word taken_by(const Waiter& waiter) noexcept { return reinterpret_cast<Word>(&waiter) | kTaken; }
  // The word that a wait leaves when it takes the readiness: a hang-up stays known.
  static constexpr Word taken_from(Word word) noexcept { return word == kReadyEnded ? kReady : kEmpty; }

  // Only the caller that has set kAdding registers with the poller. Others wait for the result, because a descriptor
  // that the poller refuses is not registered. kEnded is open, but nobody may wait for it any more.
  static constexpr std::uint32_t kNo = 0, kYes = 1, kClosing = 2, kAdding = 3, kEnded = 4;

  struct Entry {
    Atomic<Word> word[3];              // by Direction
    Atomic<std::uint32_t> tag;         // counts the descriptors that had this number; stale events carry an old one
    Atomic<std::uint32_t> registered;  // one of the five above
  };
  static_assert(sizeof(Entry) == kDescriptorBytes);

  void end(int fd, std::uint32_t as) noexcept;
  Entry* entry(int fd) noexcept;
  void expect_watched(int fd, const Entry& entry) noexcept;
  void signal(Atomic<Word>& word, bool hung_up) noexcept;
  bool take_all(Atomic<Word>& word, Word seen, WakeReason reason, Word leave) noexcept;
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
