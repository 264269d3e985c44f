#include "schedule/reactor.h"

#include <errno.h>

#include <coir/port/memory.h>
#include <coir/spinlock.h>

#include "schedule/scheduler.h"

namespace coir {

using detail::DescriptorNode;

namespace {

void count_out_resting() noexcept {
  if (const Visit run; run) run->count_resting(-1);
}

}  // namespace

int Reactor::open(std::size_t max_fds, bool want_ppoll) noexcept {
  entries_ = static_cast<Entry*>(port::reserve(max_fds * sizeof(Entry)));
  if (entries_ == nullptr) return ENOMEM;
  max_fds_ = max_fds;
  const int error = poller_.open(want_ppoll, max_fds);
  if (error != 0) close();
  return error;
}

void Reactor::close() noexcept {
  poller_.close();
  if (entries_ != nullptr) port::release(entries_, max_fds_ * sizeof(Entry));
  entries_ = nullptr;
}

void Reactor::dispatch() noexcept {
  for (std::size_t i = 0; i < pending_; ++i) {
    const port::PollEvent& event = events_[i];
    Entry* const at = entry(event.fd);
    if (at == nullptr || (!fell_back() && at->tag.load(std::memory_order_acquire) != event.tag)) continue;
    if (event.readable) signal(at->word[0], event.hung_up);
    // Each event of a socket that is read says again that it has room.
    const bool is_news = kManyWorkers || event.hung_up || at->word[1].load(std::memory_order_relaxed) != kReady;
    if (event.writable && is_news) signal(at->word[1], event.hung_up);
    // Files of /sys fail at every news, and do not hang up.
    if (event.urgent || event.hung_up) signal(at->word[2], event.hung_up && !event.urgent);
  }
  pending_ = 0;
}

// signal delivers an edge. A hang-up leaves the word ready even when it woke a waiter: its edge does not come again,
// and the waiter may read only the bytes that came with it.
void Reactor::signal(Atomic<Word>& word, bool hung_up) noexcept {
  const Word leave = hung_up ? kReady : kEmpty;
  Word seen = word.load(std::memory_order_acquire);
  for (SpinWait turn;;) {
    if (holds_nobody(seen)) {
      if (fell_back() && !hung_up) return;  // level-triggered: ppoll asks again when somebody waits
      const Word known = hung_up || seen == kReadyEnded ? kReadyEnded : kReady;
      if (word.compare_exchange_weak(seen, known, std::memory_order_acq_rel, std::memory_order_acquire)) return;
    } else if ((seen & kLock) != 0) {
      turn.pause();
      seen = word.load(std::memory_order_acquire);
    } else if ((seen & kSleep) != 0) {
      if (word.compare_exchange_weak(seen, leave, std::memory_order_acq_rel, std::memory_order_acquire)) {
        count_out_resting();
        auto* resting = reinterpret_cast<RestingWait*>(seen & ~kSleep);
        return resting->wake(*resting);
      }
    } else if (take_all(word, seen, WakeReason::ready, leave)) {
      return;
    } else {
      seen = word.load(std::memory_order_acquire);
    }
  }
}

// take_all claims the waiters in the list that was seen in the word, and leaves `leave` there. No owner gets past detach
// while kLock is set, so that each claim meets its wait or none. If something else woke all of them, the edge stays in
// the word. False: the word has changed.
bool Reactor::take_all(Atomic<Word>& word, Word seen, WakeReason reason, Word leave) noexcept {
  Word expected = seen;
  // acquire pairs with the release in attach: the nodes are complete.
  if (!word.compare_exchange_strong(expected, seen | kLock, std::memory_order_acq_rel, std::memory_order_relaxed))
    return false;
  DescriptorNode* parked = nullptr;
  const Waiter* first = nullptr;
  for (auto* node = reinterpret_cast<DescriptorNode*>(seen); node != nullptr;) {
    DescriptorNode* const next = node->next.load(std::memory_order_relaxed);
    Waiter* const waiter = node->waiter;
    // Once it is claimed an armed waiter may return, and its node is gone.
    const Waiter::Claim won = waiter->claim(reason);
    if (won != Waiter::Claim::lost) first = waiter;
    if (won == Waiter::Claim::parked) {
      node->next.store(parked, std::memory_order_relaxed);
      parked = node;
    }
    node = next;
  }
  if (first == nullptr) {
    leave = leave == kReady ? kReadyEnded : kReady;
  } else if (leave == kEmpty && reason == WakeReason::ready && !fell_back()) {
    leave = taken_by(*first);
  }
  // release pairs with the acquire in detach and attach.
  word.store(leave, std::memory_order_release);
  while (DescriptorNode* const node = parked) {
    parked = node->next.load(std::memory_order_relaxed);
    node->waiter->wake();
  }
  return true;
}

std::expected<bool, Error> Reactor::attach(int fd, Direction direction, DescriptorNode& node) noexcept {
  Entry* const at = entry(fd);
  if (at == nullptr)
    return std::unexpected(Error{fd < 0 ? ErrorCode::invalid : ErrorCode::limit, fd < 0 ? EBADF : EMFILE});
  Atomic<Word>& word = at->word[static_cast<int>(direction)];
  Word seen = word.load(std::memory_order_acquire);
  for (SpinWait turn;;) {
    if (holds_readiness(seen)) {
      if (word.compare_exchange_weak(seen, taken_from(seen), std::memory_order_acq_rel, std::memory_order_acquire))
        return false;
    } else if ((seen & kTaken) != 0 && seen != taken_by(*node.waiter)) {
      if (word.compare_exchange_weak(seen, taken_by(*node.waiter), std::memory_order_acq_rel,
                                     std::memory_order_acquire))
        return false;
    } else if ((seen & kLock) != 0) {
      turn.pause();
      seen = word.load(std::memory_order_acquire);
    } else if ((seen & kSleep) != 0) {
      return std::unexpected(Error{ErrorCode::busy});
    } else {
      node.next.store(holds_nobody(seen) ? nullptr : reinterpret_cast<DescriptorNode*>(seen),
                      std::memory_order_relaxed);
      // release pairs with the acquire in signal: the event finds an armed waiter.
      if (word.compare_exchange_weak(seen, reinterpret_cast<Word>(&node), std::memory_order_acq_rel,
                                     std::memory_order_acquire))
        break;
    }
  }
  // Register after the waiter is in place: the first event reports the present state, and must find the waiter.
  if (auto enrolled = enroll(fd); !enrolled) {
    detach(fd, direction, node);
    return std::unexpected(enrolled.error());
  }
  restart();
  return true;
}

bool Reactor::detach(int fd, Direction direction, DescriptorNode& node) noexcept {
  Atomic<Word>& word = entry(fd)->word[static_cast<int>(direction)];
  const Word mine = reinterpret_cast<Word>(&node);
  Word seen = word.load(std::memory_order_acquire);
  for (SpinWait turn;;) {
    if ((seen & kLock) != 0) {
      turn.pause();
      seen = word.load(std::memory_order_acquire);
    } else if (holds_nobody(seen) || (seen & kSleep) != 0) {
      return false;
    } else if (seen == mine && node.next.load(std::memory_order_relaxed) == nullptr) {
      // Nothing comes behind a node, only before it.
      if (word.compare_exchange_weak(seen, kEmpty, std::memory_order_acq_rel, std::memory_order_acquire)) return true;
    } else if (word.compare_exchange_weak(seen, seen | kLock, std::memory_order_acq_rel, std::memory_order_acquire)) {
      break;
    }
  }
  auto* head = reinterpret_cast<DescriptorNode*>(seen);
  DescriptorNode* const next = node.next.load(std::memory_order_relaxed);
  bool found = head == &node;
  if (found) head = next;
  for (DescriptorNode* each = head; each != nullptr && !found;) {
    DescriptorNode* const after = each->next.load(std::memory_order_relaxed);
    found = after == &node;
    if (found) each->next.store(next, std::memory_order_relaxed);
    each = after;
  }
  // release pairs with the acquire of the next that takes the lock.
  word.store(reinterpret_cast<Word>(head), std::memory_order_release);
  return found;
}

bool Reactor::take(int fd, Direction direction) noexcept {
  Entry* const at = entry(fd);
  if (at == nullptr) return false;
  Atomic<Word>& word = at->word[static_cast<int>(direction)];
  Word seen = word.load(std::memory_order_acquire);
  while (holds_readiness(seen)) {
    if (word.compare_exchange_weak(seen, taken_from(seen), std::memory_order_acq_rel, std::memory_order_acquire))
      return true;
  }
  return false;
}

void Reactor::restore(int fd, Direction direction) noexcept {
  Atomic<Word>& word = entry(fd)->word[static_cast<int>(direction)];
  Word seen = word.load(std::memory_order_relaxed);
  while (seen == kEmpty || seen == kReady || (seen & kTaken) != 0) {
    // An edge that came with a hang-up has left kReady for the second of its two returns, or a new edge has come.
    const Word known = seen == kReady ? kReadyEnded : kReady;
    if (word.compare_exchange_weak(seen, known, std::memory_order_acq_rel, std::memory_order_relaxed)) return;
  }
}

std::expected<void, Error> Reactor::attach(int fd, Direction direction, RestingWait& resting) noexcept {
  // A wake that puts its record back to sleep must not write what a concurrent disarm_resting_wait reads.
  if (resting.fd != fd) resting.fd = fd;
  if (resting.direction != direction) resting.direction = direction;
  Atomic<Word>& word = entry(fd)->word[static_cast<int>(direction)];
  // The fiber that an edge has woken no longer uses the descriptor: the caller has met EAGAIN, or gets busy and reads.
  Word seen = word.load(std::memory_order_relaxed);
  while (seen == kEmpty || (seen & kTaken) != 0) {
    if (word.compare_exchange_weak(seen, reinterpret_cast<Word>(&resting) | kSleep, std::memory_order_acq_rel,
                                   std::memory_order_acquire)) {
      return {};
    }
  }
  if (holds_readiness(seen))
    word.compare_exchange_strong(seen, taken_from(seen), std::memory_order_acq_rel, std::memory_order_relaxed);
  return std::unexpected(Error{ErrorCode::busy});
}

bool Reactor::detach(int fd, Direction direction, RestingWait& resting) noexcept {
  Entry* const at = entry(fd);
  if (at == nullptr) return false;
  Word seen = reinterpret_cast<Word>(&resting) | kSleep;
  return at->word[static_cast<int>(direction)].compare_exchange_strong(seen, kEmpty, std::memory_order_acq_rel,
                                                                       std::memory_order_acquire);
}

void Reactor::end(int fd, std::uint32_t as) noexcept {
  Entry* const at = entry(fd);
  if (at == nullptr) return;
  // Change the tag first: an event of the old descriptor that is under way no longer counts.
  at->tag.fetch_add(1, std::memory_order_acq_rel);
  if (at->registered.exchange(as, std::memory_order_acq_rel) == kYes) {
    registered_.fetch_sub(1, std::memory_order_relaxed);
  }
  for (Atomic<Word>& word : at->word) {
    Word seen = word.load(std::memory_order_acquire);
    for (SpinWait turn;;) {
      if ((seen & kLock) != 0) {
        turn.pause();
        seen = word.load(std::memory_order_acquire);
      } else if (holds_nobody(seen) || (seen & kSleep) != 0) {
        if (word.compare_exchange_weak(seen, kEmpty, std::memory_order_acq_rel, std::memory_order_acquire)) {
          if ((seen & kSleep) != 0) count_out_resting();
          break;
        }
      } else {
        take_all(word, seen, WakeReason::closed, kEmpty);
        seen = word.load(std::memory_order_acquire);
      }
    }
  }
}

bool Reactor::is_enrolled(int fd) noexcept {
  Entry* const at = entry(fd);
  return at != nullptr && at->registered.load(std::memory_order_relaxed) != kNo;
}

void Reactor::forgotten(int fd) noexcept {
  if (Entry* const at = entry(fd); at != nullptr) at->registered.store(kNo, std::memory_order_release);
}

void Reactor::poll(std::int64_t timeout_ns) noexcept {
  pending_ = poller_.wait(events_, timeout_ns, collect, this);
}

Reactor::Entry* Reactor::entry(int fd) noexcept {
  return fd >= 0 && static_cast<std::size_t>(fd) < max_fds_ ? &entries_[fd] : nullptr;
}

}  // namespace coir
