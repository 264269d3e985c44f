#include <coir/cancel_scope.h>
#include <coir/select.h>

#include "tests/explore/explore.h"

// select on threads: one case comes about, its send or receive is done and none of the others is.

namespace coir::explore {

namespace {

using std::chrono::milliseconds;

void two_senders() {
  Channel<int> one, other;
  int received = 0;
  threads(
      [&] {
        for (int i = 0; i < 2; ++i) {
          int first = 0, second = 0;
          const auto won = select({Case::receive(one, first), Case::receive(other, second)});
          require(won.has_value() && !won->closed && first + second == (won->index == 0 ? 1 : 2));
          received += first + second;
        }
      },
      [&] { require(one.send(1).has_value()); }, [&] { require(other.send(2).has_value()); });
  require(received == 3);
}

void sender_against_closer() {
  Channel<int> one, other;
  int received = 0, sent = 0;
  bool closed = false;
  threads(
      [&] {
        int value = 0;
        const auto won = select({Case::receive(one, value), Case::receive(other, value)});
        require(won.has_value());
        received = value;
        closed = won->closed;
        require(won->closed == (won->index == 1));
      },
      [&] { sent += one.send(1, Deadline::after(milliseconds(1))).has_value(); }, [&] { other.close(); });
  require(sent == received && closed != (received == 1));
}

void sender_against_canceller() {
  Channel<int> one, other;
  Atomic<CancelScope*> scope{nullptr};
  Atomic<bool> left{false};
  int received = 0, sent = 0;
  threads(
      [&] {
        CancelScope mine;
        scope.store(&mine);
        int value = 0;
        const auto won = select({Case::receive(one, value), Case::receive(other, value)});
        require(won.has_value() || won.error() == ErrorCode::cancelled);
        received = value;
        require(won.has_value() == (value == 1));
        while (!left.load()) let_others_go();
      },
      [&] { sent += one.send(1, Deadline::after(milliseconds(1))).has_value(); },
      [&] {
        while (scope.load() == nullptr) let_others_go();
        scope.load()->cancel();
        left.store(true);
      });
  require(sent == received);
}

// Two selects that could each serve the other, named in opposite orders: they meet once, on one channel.
void selects_meet() {
  Channel<int> one, other;
  int got[2] = {};
  std::size_t index[2] = {9, 9};
  threads(
      [&] {
        int out = 1;
        const auto won = select({Case::send(one, out), Case::receive(other, got[0])});
        require(won.has_value());
        index[0] = won->index;
      },
      [&] {
        int out = 2;
        const auto won = select({Case::send(other, out), Case::receive(one, got[1])});
        require(won.has_value());
        index[1] = won->index;
      });
  require(index[0] != index[1]);
  require(index[0] == 0 ? got[1] == 1 && got[0] == 0 : got[0] == 2 && got[1] == 0);
}

void event_against_send() {
  Channel<int> channel({.capacity = 1});
  Event event;
  require(channel.send(5).has_value());
  int sent = 0;
  threads(
      [&] {
        int value = 7;
        const auto won = select({Case::send(channel, value), Case::opened(event)});
        require(won.has_value());
        sent = won->index == 0;
      },
      [&] { event.set(); }, [&] { require(channel.receive().value_or(0) == 5); });
  require(static_cast<int>(channel.size()) == sent);
}

// One waits for a mutex by select, others lock it: one at a time, and whoever is called in vain comes again.
void mutex_against_locks() {
  Mutex mutex;
  Event never;
  int inside = 0, turns = 0;
  const auto section = [&](Mutex::Guard held) {
    require(++inside == 1);
    ++turns;
    --inside;
    held.unlock();
  };
  const auto locks = [&] {
    auto held = mutex.lock();
    require(held.has_value());
    section(std::move(*held));
  };
  threads(
      [&] {
        for (int i = 0; i < 2; ++i) {
          std::optional<Mutex::Guard> held;
          const auto won = select({Case::opened(never), Case::lock(mutex, held)});
          require(won && won->index == 1 && held);
          section(std::move(*held));
        }
      },
      locks, locks);
  require(turns == 4 && !mutex.locked());
}

// A select for two permits stands first in line, and leaves; who wants one is behind it, or comes before.
void semaphore_line_is_left() {
  Semaphore permits(1);
  Event end;
  threads(
      [&] {
        const auto won = select({Case::acquire(permits, 2), Case::opened(end)});
        require(won && won->index == 1);
      },
      [&] { require(permits.acquire(1).has_value()); }, [&] { end.set(); });
  require(permits.available() == 0);
}

constexpr Scenario kSelectScenarios[] = {
    {"select_two_senders", two_senders, {.preemptions = 1, .interleavings = 2500, .samples = 1000}},
    {"select_sender_against_closer", sender_against_closer, {.timeouts = true, .interleavings = 2500, .samples = 1000}},
    {"select_sender_against_canceller",
     sender_against_canceller,
     {.timeouts = true, .interleavings = 2500, .samples = 1000}},
    {"select_selects_meet", selects_meet, {.interleavings = 2500, .samples = 1000}},
    {"select_mutex_against_locks", mutex_against_locks, {.interleavings = 4000, .samples = 2000}},
    {"select_semaphore_line_is_left", semaphore_line_is_left, {.interleavings = 2500, .samples = 1000}},
    {"select_event_against_send", event_against_send, {.interleavings = 2500, .samples = 1000}},
};

}  // namespace

std::span<const Scenario> select_scenarios() noexcept {
  return kSelectScenarios;
}

}  // namespace coir::explore
