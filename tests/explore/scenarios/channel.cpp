#include <coir/cancel_scope.h>
#include <coir/channel.h>

#include "tests/explore/explore.h"

// Channels between threads: every value is received once, in order, and nobody waits for good.

namespace coir::explore {

namespace {

using std::chrono::milliseconds;

void rendezvous() {
  Channel<int> channel;
  threads(
      [&] {
        require(channel.send(1).has_value());
        require(channel.send(2).has_value());
      },
      [&] {
        require(channel.receive().value_or(0) == 1);
        require(channel.receive().value_or(0) == 2);
      });
}

void bounded_with_two_senders() {
  Channel<int> channel({.capacity = 1});
  int sum = 0;
  threads([&] { require(channel.send(1).has_value()); },
          [&] {
            require(channel.send(2).has_value());
            require(channel.send(4).has_value());
          },
          [&] {
            int last = 0;
            for (int i = 0; i < 3; ++i) {
              const int value = channel.receive().value_or(0);
              require(value != 0 && (value != 4 || (last & 2) != 0));
              last |= value;
              sum += value;
            }
          });
  require(sum == 7 && channel.size() == 0);
}

// At a close what was sent is received, and what was not is still with its sender.
void close_drains() {
  Channel<int> channel({.capacity = 1});
  int sent = 0, received = 0;
  threads(
      [&] {
        for (int i = 0; i < 2; ++i) {
          const auto outcome = channel.send(1);
          require(outcome.has_value() || outcome.error() == ErrorCode::closed);
          sent += outcome.has_value();
        }
      },
      [&] {
        while (channel.receive().has_value()) ++received;
      },
      [&] { channel.close(); });
  require(sent == received);
}

void close_wakes_everyone() {
  Channel<int> channel;
  const auto receive = [&] { require(channel.receive().error() == ErrorCode::closed); };
  threads(receive, receive, [&] { channel.close(); });
}

// A send that ends by its deadline has sent nothing.
void timeout_sends_nothing() {
  Channel<int> channel;
  int sent = 0, received = 0;
  threads([&] { sent += channel.send(1, Deadline::after(milliseconds(1))).has_value(); },
          [&] { received += channel.receive(Deadline::after(milliseconds(1))).has_value(); });
  require(sent == received);
}

// A receive that is cancelled has taken nothing.
void cancellation_takes_nothing() {
  Channel<int> channel({.capacity = 1});
  Atomic<CancelScope*> scope{nullptr};
  Atomic<bool> left{false};
  int received = 0;
  threads(
      [&] {
        CancelScope mine;
        scope.store(&mine);
        received += channel.receive().has_value();
        while (!left.load()) let_others_go();
      },
      [&] {
        while (scope.load() == nullptr) let_others_go();
        scope.load()->cancel();
        left.store(true);
      },
      [&] { require(channel.send(1).has_value()); });
  require(received + static_cast<int>(channel.size()) == 1);
}

void unbounded() {
  Channel<int> channel({.capacity = kUnbounded});
  int next = 1;
  threads(
      [&] {
        for (int i = 1; i <= 3; ++i) require(channel.send(i).has_value());
        channel.close();
      },
      [&] {
        while (auto value = channel.receive()) require(*value == next++);
      });
  require(next == 4);
}

// Many at a time beside single ones, through a ring that is full at times.
void many_at_a_time() {
  Channel<int> channel({.capacity = 2});
  threads(
      [&] {
        int values[] = {1, 2, 3};
        require(channel.send_many(values) == 3u);
        require(channel.send(4).has_value());
        channel.close();
      },
      [&] {
        int into[3];
        int next = 1;
        while (auto count = channel.receive_up_to(into)) {
          for (std::size_t i = 0; i < *count; ++i) require(into[i] == next++);
        }
        require(next == 5);
      });
}

constexpr Scenario kChannelScenarios[] = {
    {"channel_rendezvous", rendezvous},
    {"channel_bounded_with_two_senders", bounded_with_two_senders},
    {"channel_close_drains", close_drains},
    {"channel_close_wakes_everyone", close_wakes_everyone},
    {"channel_timeout_sends_nothing", timeout_sends_nothing, {.timeouts = true}},
    {"channel_cancellation_takes_nothing", cancellation_takes_nothing},
    {"channel_unbounded", unbounded},
    {"channel_many_at_a_time", many_at_a_time},
};

}  // namespace

std::span<const Scenario> channel_scenarios() noexcept {
  return kChannelScenarios;
}

}  // namespace coir::explore
